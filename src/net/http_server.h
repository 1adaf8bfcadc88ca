/*
 * HTTP/1.1 server: keep-alive, pipelining, deadlines against slow senders, capped connections and bodies, streaming
 * answers, upgrades, graceful drain.
 *
 * A handler gets a call when a request is there with its whole body (or piece by piece if on_body is set); it answers
 * now or later through the struct http_call. Pipelined requests wait until the one before is answered. If the peer goes
 * away before the answer, on_abort tells, and the call is gone; otherwise the call is gone after http_call_end or
 * http_call_upgrade.
 */
#ifndef BALLAST_NET_HTTP_SERVER_H
#define BALLAST_NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "net/address.h"
#include "net/http_message.h"
#include "net/limits.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/tls.h"

struct http_server;
struct http_call;

struct http_server_handler {
	/*
	 * The head is there: path, method, fields may be looked at. Optional; false refuses: the handler must have
	 * answered.
	 */
	bool (*on_head)(void *context, struct http_call *call);
	/* Body bytes as they come. NULL: the server collects the body (up to max_body_bytes; beyond: 413 and close). */
	void (*on_body)(void *context, struct http_call *call, struct slice bytes);
	/* The request is complete. Must not be NULL. */
	void (*on_request)(void *context, struct http_call *call);
	/*
	 * The peer went away (or ended its side), a deadline or limit was passed, or a drain was over, before the call
	 * was ended. Only for calls the handler has seen. The call is gone. May be NULL if the handler always answers
	 * at once.
	 */
	void (*on_abort)(void *context, struct http_call *call);
	/*
	 * All that was written of an answer begun with http_call_begin has left: time to write more of it, or to end it.
	 * May be NULL.
	 */
	void (*on_drained)(void *context, struct http_call *call);
};

struct http_server_options {
	struct address address;
	struct tls_settings *(*tls)(void *context); /* NULL: plain; see stream_listener_options */
	size_t max_connections;                     /* 0: HTTP_SERVER_CONNECTIONS */
	size_t max_body_bytes;
	/* The deadlines; 0: the defaults of limits.h. */
	uint64_t header_timeout_ns; /* from a request's first byte (at first: from accepting) to its head's end */
	uint64_t body_timeout_ns;   /* from there to the end of its body, not counting the time it is paused */
	uint64_t idle_timeout_ns;   /* from an answer to the next request */
	uint64_t write_timeout_ns;  /* without the peer taking a single byte of what waits for it */
	/* May be NULL: told when accepting or a TLS handshake fails, see stream_listener_options. */
	void (*on_error)(void *context, const struct error *err);
};

struct http_server *http_server_start(struct loop *loop, const struct http_server_options *options,
                                      const struct http_server_handler *handler, void *context, struct error *err);
bool http_server_address(const struct http_server *server, struct address *ret_address);
size_t http_server_connection_count(const struct http_server *server);
/*
 * Stops accepting at once; open requests are answered (with Connection: close), idle connections closed. on_drained
 * (may be NULL) comes when none is left, or after timeout_ns, when the rest is closed.
 */
void http_server_drain(struct http_server *server, uint64_t timeout_ns, void (*on_drained)(void *context),
                       void *context);
/* Closes everything without callbacks. */
void http_server_destroy(struct http_server *server);

/* ---- a call: what was asked (valid until the call is gone) ---- */

struct slice http_call_method(const struct http_call *call);
struct slice http_call_path(const struct http_call *call);  /* without the query, still escaped */
struct slice http_call_query(const struct http_call *call); /* without '?' */
struct http_fields http_call_fields(const struct http_call *call);
struct slice http_call_body(const struct http_call *call);
bool http_call_is_http10(const struct http_call *call);
bool http_call_peer(const struct http_call *call, struct address *ret_address);
void http_call_set_context(struct http_call *call, void *context); /* the handler's own data for this call */
void *http_call_context(const struct http_call *call);

/*
 * Back-pressure, for handlers with on_body: no more of the body is read until resumed. on_body isn't called from inside
 * either.
 */
void http_call_pause_body(struct http_call *call);
void http_call_resume_body(struct http_call *call);

/*
 * ---- a call: the answer ----
 *
 * Date, Content-Length, Transfer-Encoding and Connection are written by the server; of the handler's fields,
 * Content-Length counts in http_call_begin only, Transfer-Encoding never, and "Connection: close" closes after the
 * answer. Fields that can't be sent (line ends in a value) turn the answer into a 500. An answer given before the
 * request's body is complete closes the connection.
 */

/* The whole answer at once. content_type NULL: no such field. */
void http_call_respond(struct http_call *call, int status, const char *content_type, struct slice body);
void http_call_respond_with(struct http_call *call, int status, struct http_fields fields, struct slice body);
/* Or piece by piece: chunked (or, to an HTTP/1.0 client, until close) unless the fields have Content-Length. */
void http_call_begin(struct http_call *call, int status, struct http_fields fields);
/*
 * False when the peer doesn't take it (write limit), or when it is more than the Content-Length announced: the call
 * should be aborted.
 */
bool http_call_write(struct http_call *call, struct slice bytes);
size_t http_call_pending_bytes(const struct http_call *call);
void http_call_end(struct http_call *call);
/*
 * Cuts the connection after what was written so far, or at once with a reset: for stand-ins that misbehave, and for
 * answers that can't be finished. No on_abort.
 */
void http_call_abort(struct http_call *call, bool reset);
/*
 * Sends 101 with the fields and hands the stream over; *ret_extra are bytes that came already (copy them before the
 * next turn). NULL with *err, and the call still unanswered, for HTTP/1.0 and when memory is short.
 */
struct stream *http_call_upgrade(struct http_call *call, struct http_fields fields, struct slice *ret_extra,
                                 struct error *err);

#endif
