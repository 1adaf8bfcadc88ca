/*
 * What the files behind stream.h share.
 *
 *   stream.c           the handle: writing, pausing, ending
 *   stream_io.c        moving bytes between the socket, TLS, the queue and the owner
 *   stream_connect.c   from a name to a connected socket
 *   stream_listener.c  from a listener to streams
 */
#ifndef BALLAST_NET_STREAM_INTERNAL_H
#define BALLAST_NET_STREAM_INTERNAL_H

#include "base/buffer.h"
#include "net/loop_internal.h"
#include "net/stream.h"
#include "net/tls_connection.h"

struct stream_connector;

enum stream_state {
	STREAM_CONNECTING,  /* looking up, connecting: the connector has the socket */
	STREAM_HANDSHAKING, /* TLS */
	STREAM_OPEN,
	STREAM_FINISHING, /* the owner let go; what is queued is being sent */
	STREAM_DRAINING,  /* everything is sent; waits for the peer's end */
	STREAM_CLOSED,    /* memory goes at the end of the turn */
};

struct stream {
	struct loop *loop;
	struct socket *socket;
	struct tls_connection *tls; /* NULL: plain */
	struct stream_handler handler;
	void *context;
	enum stream_state state;

	bool paused;
	bool read_ended;       /* the peer ended its side */
	bool read_wants_write; /* TLS can't go on reading before it has written */
	bool write_wants_read; /* the other way round */
	bool write_blocked;    /* the socket takes no more */
	bool write_failed;     /* what the peer had sent before is still read */

	struct buffer output; /* bytes from output_start on wait */
	size_t output_start;
	size_t write_limit;

	uint64_t turn; /* in which turn_bytes were read */
	size_t turn_bytes;

	struct stream_connector *connector; /* while connecting */
	struct stream_listener *listener;   /* that counts this stream; NULL for outgoing ones */
	struct stream *next, *previous;     /* among the listener's handshakes */
	struct address peer;
	struct loop_timer timer; /* deadline of connect, handshake or finish */
	struct loop_task write_task;
	struct loop_task read_task;
	struct loop_garbage garbage;
	struct loop_leftover leftover;
};

/* ---- stream.c ---- */

/* A stream without socket, or NULL when memory is short. */
struct stream *stream_create(struct loop *loop);
/* Ends everything the stream has. No callback. */
void stream_end(struct stream *stream, bool abort);
/* Ends the stream and tells its owner, if it still has one. */
void stream_fail(struct stream *stream, const struct error *err);
/*
 * The same for a failed handshake, but the socket goes gently: closing it with unread bytes would send a reset, and
 * that would take away the alert that tells the peer what was wrong.
 */
void stream_fail_handshake(struct stream *stream, const struct error *err);
/* Takes the stream from its owner; what is queued is sent in the background. */
void stream_let_go(struct stream *stream, uint64_t linger_ns);

/* ---- stream_io.c ---- */

extern const struct socket_handler STREAM_SOCKET_HANDLER;

/* How TLS reaches the stream's socket. */
struct tls_transport stream_transport(struct stream *stream);
/* The socket is connected: goes on with the handshake or opens the stream. */
void stream_connected(struct stream *stream, uint64_t tls_timeout_ns);
/* Asks the socket for what the stream waits for now. */
void stream_update_interest(struct stream *stream);
void stream_read_soon(struct stream *stream);
void stream_write_soon(struct stream *stream);
/* Sends what the socket takes. */
void stream_flush(struct stream *stream);
size_t stream_output_bytes(const struct stream *stream);

/* ---- stream_connect.c ---- */

void stream_connector_destroy(struct stream_connector *connector); /* NULL is fine */

/* ---- stream_listener.c ---- */

/* An accepted stream is ready for its owner. */
void stream_listener_hand_over(struct stream *stream);
/* A stream that the listener counts has ended, with err if it failed before it was handed over. */
void stream_listener_stream_failed(struct stream *stream, const struct error *err);
void stream_listener_stream_ended(struct stream *stream);

#endif
