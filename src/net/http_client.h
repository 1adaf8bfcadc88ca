/*
 * HTTP/1.1 client: keep-alive connections per origin, deadlines for each phase, capped bodies, no redirects, no proxy.
 *
 * An exchange is one request and its response. The response comes either whole (on_done has the body) or, for watches
 * and large lists, piece by piece (on_body set). on_done comes exactly once, never from inside http_client_send, unless
 * the exchange is cancelled first; the handle is gone then. Cancelling closes the connection unless the response was
 * complete.
 *
 * A request that fails on a reused connection before any byte of the response came, because the peer had closed it, is
 * sent once more on a fresh connection if its method is idempotent or nothing of it had been sent (RFC 9110 9.2.2).
 *
 * Every call below may be made from inside any callback, also http_exchange_cancel and http_client_destroy.
 */
#ifndef BALLAST_NET_HTTP_CLIENT_H
#define BALLAST_NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "net/http_message.h"
#include "net/limits.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/tls.h"

struct http_client;
struct http_exchange;

struct http_origin {
	bool secure;
	char host[NET_HOST_BYTES]; /* name or literal address, no brackets */
	uint16_t port;
};

/* Reads "http://host[:port]" or "https://…"; *ret_path is what follows ("/" if nothing). For people's configuration. */
bool http_url_parse(struct slice url, struct http_origin *ret_origin, struct slice *ret_path, struct error *err);

struct http_request {
	struct http_origin origin;
	struct slice method;            /* "GET" */
	struct slice target;            /* path and query, already escaped */
	struct http_fields fields;      /* besides Host, Content-Length, Connection, which the client writes */
	struct slice body;              /* copied; empty: none (Content-Length: 0 for POST, PUT, PATCH) */
	uint64_t connect_timeout_ns;    /* 0: NET_CONNECT_TIMEOUT_MS */
	uint64_t first_byte_timeout_ns; /* from request sent to head received; 0: no limit of its own */
	uint64_t idle_timeout_ns;       /* between bytes of the body; 0: none */
	uint64_t total_timeout_ns;      /* from http_client_send to the last byte; 0: none */
	size_t max_body_bytes;          /* 0: nothing but an empty body is accepted */
	bool fresh_connection;          /* don't use or keep a pooled one (untrusted guests) */
};

struct http_response {
	int status;
	struct http_fields fields; /* valid during the callback */
	struct slice body;         /* in on_done, if on_body was NULL; valid during the callback */
};

struct http_handler {
	/* Head received (the final one; interim 1xx responses are skipped). May be NULL. */
	void (*on_head)(void *context, const struct http_response *response);
	/* Body bytes as they come, already out of their chunks. NULL: the client collects the body for on_done. */
	void (*on_body)(void *context, struct slice bytes);
	/*
	 * err NULL: the response is complete. Otherwise the text's root is one of spec agent-runtime 0.5 ("connection
	 * refused", "EOF", "context deadline exceeded", …), and response may be NULL or lack its body.
	 */
	void (*on_done)(void *context, const struct http_response *response, const struct error *err);
};

struct http_client *http_client_create(struct loop *loop, struct error *err);
/*
 * For https origins; a reference is taken. May be replaced when files change: new connections use the new settings,
 * idle old ones are closed.
 */
void http_client_set_tls(struct http_client *client, struct tls_settings *tls);
/*
 * NULL with *err if it can't start (bad parts of the request, fields that the client writes itself, https without TLS
 * settings, out of memory).
 */
struct http_exchange *http_client_send(struct http_client *client, const struct http_request *request,
                                       const struct http_handler *handler, void *context, struct error *err);
void http_exchange_cancel(struct http_exchange *exchange);
/* Stops reading the body until resumed (back-pressure). */
void http_exchange_pause(struct http_exchange *exchange);
void http_exchange_resume(struct http_exchange *exchange);
/* Closes the connections that wait for the next request. */
void http_client_close_idle(struct http_client *client);
/* Cancels everything under way without callbacks. */
void http_client_destroy(struct http_client *client);

#endif
