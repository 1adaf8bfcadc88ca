/*
 * One websocket to a vm-monitor, from connecting to its end: the version exchange, calls and their replies, and what
 * the monitor says of its own accord (spec agent-runtime 11.2 … 11.4, 11.8).
 *
 * The guest isn't trusted: messages are bounded in size and number, and what it says is no metric label.
 *
 * A call waits for its reply at most the configured time. When the connection ends, calls still waiting stay
 * registered until the owner ends them with monitor_connection_fail_calls, so that it can first make known that the
 * connection is gone.
 *
 * Within any callback, of the handler or of a call, the connection may be closed and calls be made. Starting it anew
 * and letting go of the struct have to wait until the callback is over: they are for a timer or a task.
 */
#ifndef BALLAST_AGENT_MONITOR_CONNECTION_H
#define BALLAST_AGENT_MONITOR_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent_metrics.h"
#include "agent/config.h"
#include "agent/limits.h"
#include "agent/monitor_messages.h"
#include "agent/url_text.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/token_bucket.h"
#include "net/loop.h"
#include "net/websocket.h"

struct monitor_connection;

struct monitor_connection_handler {
	void *context;
	/* The version exchange went well. Messages are handled only after this. */
	void (*on_active)(void *context);
	/* The connection, or the attempt at one, is over. Once for each start; not after monitor_connection_close. */
	void (*on_end)(void *context, const struct error *err);
	void (*on_upscale_request)(void *context);
};

/* reply is NULL if it failed. Not from within monitor_connection_call unless sending fails. */
typedef void monitor_reply_callback(void *context, const struct monitor_message *reply, const struct error *err);

struct monitor_call {
	struct monitor_connection *connection;
	uint64_t id; /* 0: not in use */
	enum monitor_type type;
	monitor_reply_callback *callback;
	void *context;
	struct loop_timer timer;
};

enum monitor_connection_state { MONITOR_ENDED, MONITOR_CONNECTING, MONITOR_AGREEING, MONITOR_ACTIVE };

struct monitor_connection {
	struct loop *loop;
	const struct agent_monitor_config *config;
	struct agent_metrics *metrics;
	const char *host; /* literal address of the pod */
	char url[URL_TEXT_BYTES];
	struct monitor_connection_handler handler;
	bool capital_texts;   /* words of late 2023 (generations 4.5), which begin with capitals */
	struct logger logger; /* for the message handler */
	enum monitor_connection_state state;
	struct websocket *websocket; /* NULL once ended */
	struct loop_timer handshake_timer;
	uint64_t last_id;
	struct token_bucket allowed_messages; /* of the guest's */
	struct monitor_call calls[AGENT_MONITOR_CALLS];
};

/* Copies; what the copy points at, and the struct, must stay. Starts nothing. */
void monitor_connection_init(struct monitor_connection *connection, const struct monitor_connection *settings);
/* Connects. on_end may come from within if it can't even start. The connection before has ended. */
void monitor_connection_start(struct monitor_connection *connection);
/*
 * Ends the connection with a close frame, best effort and in the background, and without on_end. Nothing if it has
 * ended.
 */
void monitor_connection_close(struct monitor_connection *connection, int code, struct slice reason);
/* Ends every waiting call as if its time were up. */
void monitor_connection_fail_calls(struct monitor_connection *connection);

/*
 * Sends DownscaleRequest, UpscaleNotification (resources: the target) or HealthCheck (resources unused) and waits for
 * the reply with its id. A connection that has ended is a failure to send.
 */
void monitor_connection_call(struct monitor_connection *connection, enum monitor_type type, struct resources resources,
                             monitor_reply_callback *callback, void *context);

#endif
