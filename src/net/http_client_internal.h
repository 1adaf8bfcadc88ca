/*
 * What the files behind http_client.h share.
 *
 *   http_client.c      requests, the pool of connections
 *   http_exchange.c    one exchange: from bytes to callbacks; deadlines
 */
#ifndef BALLAST_NET_HTTP_CLIENT_INTERNAL_H
#define BALLAST_NET_HTTP_CLIENT_INTERNAL_H

#include "base/buffer.h"
#include "net/http_client.h"
#include "net/http_parser.h"
#include "net/loop_internal.h"

/* Kept small: idle ones may be many. */
struct client_connection {
	struct http_client *client; /* NULL: closed, memory goes at the end of the turn */
	struct client_connection *next, *previous;
	struct stream *stream;
	struct http_exchange *exchange; /* NULL: idle */
	char *host;
	uint16_t port;
	bool secure;
	bool reused; /* for the exchange at hand */
	bool stale;  /* its TLS settings have been replaced: not to be used again */
	struct loop_timer idle_timer;
	struct loop_garbage garbage;
};

struct http_exchange {
	struct http_client *client; /* NULL: over, memory goes at the end of the turn */
	struct http_exchange *next, *previous;
	struct client_connection *connection;
	struct http_handler handler;
	void *context;
	struct http_origin origin;
	struct buffer request; /* head and body, as long as it may have to be sent again */
	bool idempotent;
	bool fresh_connection;
	struct http_parser parser;
	bool head_came;
	struct buffer body;
	size_t body_bytes;
	size_t max_body_bytes;
	bool paused;
	struct buffer waiting; /* bytes that came before the pause took effect */
	uint64_t connect_timeout_ns, first_byte_timeout_ns, idle_timeout_ns;
	struct loop_timer total_timer;
	struct loop_timer phase_timer; /* first byte, then between bytes */
	struct loop_task resume_task;
	struct loop_garbage garbage;
};

struct http_client {
	struct loop *loop;
	struct tls_settings *tls;
	struct client_connection *connections; /* the latest first */
	struct http_exchange *exchanges;
	struct loop_garbage garbage;
};

/* ---- http_client.c ---- */

/* Finds or makes a connection for the exchange and writes the request to it. */
bool client_start_exchange(struct http_exchange *exchange, bool may_reuse, struct error *err);
/* Closes and forgets; also for one whose stream is gone already (stream NULL). */
void client_connection_close(struct client_connection *connection);
/* Keeps a connection for the next request to the same origin, or closes it if there are enough. */
void client_connection_keep(struct client_connection *connection);

/* ---- http_exchange.c ---- */

/* The connection is there and the request written. */
void exchange_connected(struct http_exchange *exchange);
void exchange_data(struct http_exchange *exchange, struct slice bytes);
/* The stream ended, connection->stream is NULL. */
void exchange_lost(struct http_exchange *exchange, const struct error *err);
void exchange_start_total_timer(struct http_exchange *exchange, uint64_t timeout_ns);
/* Separates the exchange from its client and stops what it has running; the memory goes at the end of the turn. */
void exchange_detach(struct http_exchange *exchange);
/* Of one that never got as far as a client's list. */
void exchange_release(struct http_exchange *exchange);

#endif
