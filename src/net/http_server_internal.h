/*
 * What the files behind http_server.h share.
 *
 *   http_server.c             listening, draining, the list of connections
 *   http_server_connection.c  from bytes to calls; deadlines
 *   http_server_call.c        from answers to bytes
 */
#ifndef BALLAST_NET_HTTP_SERVER_INTERNAL_H
#define BALLAST_NET_HTTP_SERVER_INTERNAL_H

#include "base/buffer.h"
#include "net/http_parser.h"
#include "net/http_server.h"
#include "net/loop_internal.h"

/* What the deadline for reading is about. */
enum read_phase {
	READ_PHASE_NONE, /* nothing is expected: a call is being answered, or reading is paused */
	READ_PHASE_IDLE, /* the next request */
	READ_PHASE_HEAD,
	READ_PHASE_BODY,
};

struct server_connection {
	struct http_server *server; /* NULL: closed, memory goes at the end of the turn */
	struct server_connection *next, *previous;
	struct stream *stream;
	struct http_parser parser;
	struct http_call *call; /* the request at hand, from its head to the end of its answer */
	struct buffer input;    /* bytes that came but can't be looked at yet */
	struct slice *unparsed; /* while parsing: what is left of the bytes at hand */
	enum read_phase phase;
	bool close_after; /* after the answer at hand */
	bool served;      /* some request has been answered */
	struct loop_timer read_timer;
	struct loop_timer write_timer;
	uint64_t written_bytes; /* all that was written to the stream */
	uint64_t taken_bytes;   /* of that, what the peer had taken when the write timer was started */
	struct loop_task task;  /* goes on with input */
	struct loop_garbage garbage;
};

enum answer_body {
	ANSWER_NONE, /* to HEAD, or with a status that has none */
	ANSWER_LENGTH,
	ANSWER_CHUNKED,
	ANSWER_UNTIL_CLOSE, /* to an HTTP/1.0 client */
};

struct http_call {
	struct server_connection *connection; /* NULL: gone, memory goes at the end of the turn */
	void *context;
	struct buffer body; /* collected, without on_body */
	uint64_t body_bytes;
	struct slice path, query;
	bool seen;    /* by the handler: it must hear of an abort */
	bool refused; /* by on_head: the rest of the request isn't looked at */
	bool request_complete;
	bool body_paused;
	bool begun;  /* the answer's head is written */
	bool broken; /* the answer can't be what the handler wants: what it writes is dropped */
	bool failed; /* something of the answer couldn't be written: it must not look complete */
	enum answer_body answer_body;
	uint64_t answer_left; /* ANSWER_LENGTH: bytes still to be written */
	struct loop_garbage garbage;
};

struct http_server {
	struct loop *loop;
	struct stream_listener *listener;
	struct http_server_handler handler;
	void *context;
	struct tls_settings *(*tls)(void *context);
	void (*on_error)(void *context, const struct error *err);
	size_t max_body_bytes;
	uint64_t header_timeout_ns, body_timeout_ns, idle_timeout_ns, write_timeout_ns;
	struct server_connection *connections;
	size_t connection_count;
	bool draining;
	void (*on_drained)(void *context);
	void *drained_context;
	struct loop_timer drain_timer;
	struct loop_task drained_task;
	struct loop_garbage garbage;
};

/* How a connection ends. */
enum connection_end {
	END_FINISH, /* what was written goes out, and the peer may read it */
	END_CLOSE,
	END_RESET,
	END_KEEP, /* the stream is somebody else's now, or gone already */
};

/* ---- http_server.c ---- */

/* Takes the connection out of the server, which may then be drained. */
void server_remove_connection(struct server_connection *connection);

/* ---- http_server_connection.c ---- */

/* Begins with a new stream; closes it if memory is short. */
void server_connection_start(struct http_server *server, struct stream *stream);
/* Ends the connection; an unfinished call is told if asked. */
void server_connection_end(struct server_connection *connection, enum connection_end end, bool tell);
/* Nothing of a request is there, and nothing is being answered. */
bool server_connection_is_idle(const struct server_connection *connection);
/* Goes on reading soon, with a deadline of its own. */
void server_connection_continue(struct server_connection *connection);
/* Writes, and watches that the peer takes it. */
bool server_connection_write(struct server_connection *connection, struct slice bytes);

/* ---- http_server_call.c ---- */

/* NULL when memory is short. */
struct http_call *server_call_create(struct server_connection *connection);
/* Separates the call from its connection; the memory goes at the end of the turn. */
void server_call_drop(struct http_call *call, struct loop *loop);
/* Writes a whole answer for a request that no handler gets to answer; the connection closes after it. */
void server_write_refusal(struct server_connection *connection, int status, const char *reason);

#endif
