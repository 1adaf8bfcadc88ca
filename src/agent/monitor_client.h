/*
 * Keeps a connection to one VM's vm-monitor, again and again, and asks it to agree to shrinking and tells it of growth
 * (spec agent-runtime 11).
 */
#ifndef BALLAST_AGENT_MONITOR_CLIENT_H
#define BALLAST_AGENT_MONITOR_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent_metrics.h"
#include "agent/config.h"
#include "agent/core/resources.h"
#include "agent/monitor_connection.h"
#include "agent/monitor_health.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "net/loop.h"

/* The client must not be stopped within any of these: that is for a task, or an event from elsewhere. */
struct monitor_client_handler {
	void *context;
	void (*on_connected)(void *context);
	/* The last connection, or attempt at one, is gone. Calls that were waiting on it fail right after this. */
	void (*on_disconnected)(void *context);
	void (*on_upscale_requested)(void *context);
	/* The monitor answered a health check. */
	void (*on_contact)(void *context);
	/* Ends of the two calls; err NULL is an answer. response: JSON for the log. */
	void (*on_downscale_done)(void *context, bool allowed, struct slice response, const struct error *err);
	void (*on_upscale_done)(void *context, const struct error *err);
};

struct monitor_client {
	struct loop *loop;
	const struct agent_monitor_config *config;
	struct agent_metrics *metrics;
	struct monitor_client_handler handler;
	const char *host;   /* literal address of the pod */
	bool capital_texts; /* words of late 2023 (generations 4.5) */
	struct log_sink *log_sink;
	const char *log_context;
	bool stopped;
	uint64_t attempt_started_ns;
	struct loop_timer retry;
	struct monitor_connection connection;
	struct monitor_health health;
	struct resources downscale_current, downscale_target; /* of the call under way */
	struct resources upscale_current, upscale_target;
};

/*
 * Copies; what the copy points at, and the struct, must stay until monitor_client_stop. The first attempt is made at
 * once.
 */
void monitor_client_start(struct monitor_client *client, const struct monitor_client *settings);
/*
 * Closes with 1000 "normal exit", in the background. Calls still waiting fail within. Also fine when stopped already.
 */
void monitor_client_stop(struct monitor_client *client);
bool monitor_client_connected(const struct monitor_client *client);
/* Calls that wait for a reply. */
size_t monitor_client_waiting_calls(const struct monitor_client *client);

/* One of each at a time. The end may be told from within. */
void monitor_client_downscale(struct monitor_client *client, struct resources current, struct resources target);
void monitor_client_upscale(struct monitor_client *client, struct resources current, struct resources target);

#endif
