/*
 * WebSocket (RFC 6455), client and server, text and binary messages.
 *
 * The protocol engine (websocket_engine.h) takes and gives bytes and knows no loop; this binds it to a stream. A
 * message over the limit, a framing fault or invalid UTF-8 closes with the code the RFC names. Pings are answered here.
 *
 * on_close comes exactly once, when the connection is over: handshake failed, peer closed, fault, or our own
 * websocket_close done (unless detached). After it the handle is gone. Every call below may be made from inside any
 * callback.
 */
#ifndef BALLAST_NET_WEBSOCKET_H
#define BALLAST_NET_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "net/http_server.h"
#include "net/limits.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/websocket_engine.h" /* the close codes */

struct websocket;

struct websocket_handler {
	void (*on_open)(void *context); /* client: 101 was right */
	void (*on_message)(void *context, struct slice message, bool is_text);
	/*
	 * code and reason: what the peer sent (1005: nothing), or what we sent on a fault, or 1006 if the connection
	 * just broke. err: why, with the root of spec agent-runtime 0.5; NULL for a clean close.
	 */
	void (*on_close)(void *context, int code, struct slice reason, const struct error *err);
};

struct websocket_connect_options {
	struct stream_connect_options stream;
	const char *path;
	const char *user_agent;        /* NULL: none */
	uint64_t handshake_timeout_ns; /* connect and upgrade together; 0: only the limits in stream */
	size_t max_message_bytes;
};

/* Client: connects and upgrades (spec agent-runtime 11.2.1, 11.2.2). NULL with *err if it can't start. */
struct websocket *websocket_connect(struct loop *loop, const struct websocket_connect_options *options,
                                    const struct websocket_handler *handler, void *context, struct error *err);

/*
 * Server: answers a call that asks for an upgrade. The caller has checked path and policy; the headers are checked here
 * (RFC 6455 4.2.1), and on failure NULL is returned with a sentence, the call still unanswered.
 */
struct websocket *websocket_accept(struct loop *loop, struct http_call *call, size_t max_message_bytes,
                                   const struct websocket_handler *handler, void *context, struct error *err);

/* One unfragmented message. False when it can't be queued (closing, write limit). */
bool websocket_send(struct websocket *websocket, struct slice message, bool is_text, struct error *err);
bool websocket_ping(struct websocket *websocket, struct slice payload, struct error *err);
/*
 * Starts the closing handshake; the reason is cut to 123 bytes at a character's border. on_close follows, never from
 * inside the call, with what the peer answers, or with 1006 and an error when it doesn't in time (5 s to write, then 5
 * s for the answer). Messages that come meanwhile are dropped.
 */
void websocket_close(struct websocket *websocket, int code, struct slice reason);
/*
 * Closes in the background without any further callback: sends the close frame best effort. The handle is gone at once.
 */
void websocket_detach_and_close(struct websocket *websocket, int code, struct slice reason);
/*
 * Drops TCP without a close frame and without callback. What was queued still goes out, best effort. The handle is gone
 * at once.
 */
void websocket_abort(struct websocket *websocket);

#endif
