/*
 * A stream: an ordered, reliable, two-way flow of bytes, plain or TLS, with everything non-blocking behind it.
 *
 * The owner gets bytes pushed through on_data and may pause. Writes are buffered and flushed as the peer takes them; a
 * writer that cares about back-pressure looks at stream_pending_bytes and waits for on_drained. Exactly one of on_close
 * or the owner's own stream_close, stream_finish or stream_abort ends a stream; after either, the handle is gone and no
 * callback comes. Closing inside a callback is allowed.
 */
#ifndef BALLAST_NET_STREAM_H
#define BALLAST_NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/tls.h"

struct stream;

struct stream_handler {
	/* Connected and, with TLS, the handshake is done. Not called for accepted streams: they are open already. */
	void (*on_open)(void *context);
	/* Bytes arrived; valid during the call. */
	void (*on_data)(void *context, struct slice bytes);
	/* Everything written so far has left. May be NULL. */
	void (*on_drained)(void *context);
	/*
	 * The peer ended its side (err->code ERROR_ENDED, text "EOF"), or the stream failed. The handle is gone.
	 * Texts' roots are those of spec agent-runtime 0.5. A peer that goes away otherwise is ERROR_CLOSED: a reset, an
	 * end within a handshake, TLS that ends without a closing message ("unexpected EOF"). What was queued when the
	 * peer ended its side is still sent in the background, for at most NET_LINGER_MS.
	 */
	void (*on_close)(void *context, const struct error *err);
};

struct stream_connect_options {
	/* Name or literal address; also the name to verify and for SNI unless server_name is set. */
	const char *host;
	uint16_t port;
	const char *server_name;     /* NULL: host */
	struct tls_settings *tls;    /* NULL: plain; otherwise a reference is taken */
	const struct address *local; /* NULL: any */
	uint64_t connect_timeout_ns; /* lookup and TCP; 0: NET_CONNECT_TIMEOUT_MS */
	uint64_t tls_timeout_ns;     /* 0: NET_TLS_HANDSHAKE_TIMEOUT_MS */
};

/* Looks up, connects (each address in turn), shakes hands. NULL with *err only if nothing could be started. */
struct stream *stream_connect(struct loop *loop, const struct stream_connect_options *options,
                              const struct stream_handler *handler, void *context, struct error *err);

/*
 * Queues bytes (copied); they leave at the end of the turn, those of several calls together. Before the stream is open
 * they wait for that. False when the stream's write limit or memory is reached: nothing was queued, and the owner
 * should then close it.
 */
bool stream_write(struct stream *stream, struct slice bytes, struct error *err);
/* Bytes written that the peer's TCP hasn't taken yet. */
size_t stream_pending_bytes(const struct stream *stream);
void stream_set_write_limit(struct stream *stream, size_t bytes);
/* No on_data until resumed; nor is the end of the peer noticed meanwhile. */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);
void stream_set_handler(struct stream *stream, const struct stream_handler *handler, void *context);
bool stream_peer_address(const struct stream *stream, struct address *ret_address);
bool stream_local_address(const struct stream *stream, struct address *ret_address);
/*
 * Sends what is queued (and TLS's close_notify), ends our side and waits for the peer to end its own (so that no reset
 * destroys what is under way), all of it in the background and for at most linger_ns, then closes. The handle is gone
 * at once. A stream that isn't open yet is closed.
 */
void stream_finish(struct stream *stream, uint64_t linger_ns);
/* Closes at once; what was queued may be lost. */
void stream_close(struct stream *stream);
/* Closes with a TCP reset. */
void stream_abort(struct stream *stream);

/* ---- listening ---- */

struct stream_listener;

struct stream_listener_options {
	struct address address;
	/*
	 * NULL: plain. Asked for each new connection, so that certificates can change; returns settings (no reference
	 * passed). If it returns NULL, the connection is refused. Gets the context of the accept callback.
	 */
	struct tls_settings *(*tls)(void *context);
	size_t max_connections;  /* beyond it, accepting waits; 0: no limit */
	uint64_t tls_timeout_ns; /* 0: NET_TLS_HANDSHAKE_TIMEOUT_MS */
	/*
	 * May be NULL. Told when accepting fails (no descriptors, no memory): it pauses for NET_ACCEPT_PAUSE_MS; and
	 * when a TLS handshake fails: that connection is gone. Gets the context of the accept callback.
	 */
	void (*on_error)(void *context, const struct error *err);
};

/* Gets each new stream, ready for use (TLS done). The callback must set a handler on it or close it. */
typedef void stream_accept_callback(void *context, struct stream *stream);

struct stream_listener *stream_listen(struct loop *loop, const struct stream_listener_options *options,
                                      stream_accept_callback *callback, void *context, struct error *err);
bool stream_listener_address(const struct stream_listener *listener, struct address *ret_address);
/* Stops accepting; streams already handed over stay. */
void stream_listener_close(struct stream_listener *listener);

#endif
