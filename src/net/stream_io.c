/*
 * Reading and writing are two pumps that run until the socket has no more to give or to take, the owner has had enough
 * (paused, closed), or the turn's share is used up. Owners' callbacks may close the stream, so each pump looks at the
 * state after every callback; the memory stays until the end of the turn.
 *
 * TLS crosses the two: reading may first need to write, and writing to read. Two flags keep that, and both pumps are
 * tried whenever the socket is ready for what they wait for.
 */
#include <string.h>

#include "base/clock.h"
#include "net/limits.h"
#include "net/stream_internal.h"

size_t stream_output_bytes(const struct stream *stream)
{
	return stream->output.length - stream->output_start;
}

/* ---- plain or TLS ---- */

static enum socket_result transport_read(void *context, void *data, size_t size, size_t *ret_length, struct error *err)
{
	return socket_read(((struct stream *)context)->socket, data, size, ret_length, err);
}

static enum socket_result transport_write(void *context, const void *data, size_t length, size_t *ret_written,
                                          struct error *err)
{
	return socket_write(((struct stream *)context)->socket, data, length, ret_written, err);
}

struct tls_transport stream_transport(struct stream *stream)
{
	return (struct tls_transport){ .read = transport_read, .write = transport_write, .context = stream };
}

static enum tls_result receive(struct stream *stream, void *data, size_t size, size_t *ret_length, struct error *err)
{
	if (stream->tls != NULL)
		return tls_connection_read(stream->tls, data, size, ret_length, err);
	switch (socket_read(stream->socket, data, size, ret_length, err)) {
	case SOCKET_OK:
		return TLS_OK;
	case SOCKET_AGAIN:
		return TLS_WANT_READ;
	case SOCKET_END:
		return TLS_END;
	default:
		return TLS_FAILED;
	}
}

static enum tls_result transmit(struct stream *stream, const void *data, size_t length, size_t *ret_written,
                                struct error *err)
{
	if (stream->tls != NULL)
		return tls_connection_write(stream->tls, data, length, ret_written, err);
	switch (socket_write(stream->socket, data, length, ret_written, err)) {
	case SOCKET_OK:
		return TLS_OK;
	case SOCKET_AGAIN:
		return TLS_WANT_WRITE;
	default:
		return TLS_FAILED;
	}
}

/* ---- interest ---- */

static unsigned wanted_interest(const struct stream *stream)
{
	unsigned interest = 0;

	if (stream->state == STREAM_HANDSHAKING)
		return stream->read_wants_write ? SOCKET_WRITE : SOCKET_READ;
	if (!stream->paused && !stream->read_ended && !stream->read_wants_write)
		interest |= SOCKET_READ;
	if (stream->read_wants_write || stream->write_blocked)
		interest |= SOCKET_WRITE;
	if (stream->write_wants_read)
		interest |= SOCKET_READ;
	return interest;
}

static bool try_interest(struct stream *stream, struct error *err)
{
	if (stream->socket == NULL || stream->state == STREAM_CONNECTING)
		return true;
	return socket_set_interest(stream->socket, wanted_interest(stream), err);
}

void stream_update_interest(struct stream *stream)
{
	struct error ignored;

	/*
	 * If it fails, the task tries again and tells the owner, which must not happen from inside a call of the
	 * owner's.
	 */
	if (!try_interest(stream, &ignored))
		stream_read_soon(stream);
}

/* ---- reading ---- */

/* The peer ended its side: the owner hears of it; what it had queued still goes out. */
static void peer_ended(struct stream *stream)
{
	struct stream_handler handler = stream->handler;
	void *context = stream->context;
	struct error err;

	stream->read_ended = true;
	if (stream->state == STREAM_FINISHING) {
		stream_update_interest(stream);
		return;
	}
	error_set(&err, ERROR_ENDED, "EOF");
	if (stream->state != STREAM_OPEN || stream->write_failed || stream_output_bytes(stream) == 0) {
		stream_fail(stream, &err);
		return;
	}
	stream_let_go(stream, (uint64_t)NET_LINGER_MS * NS_PER_MS);
	if (handler.on_close != NULL)
		handler.on_close(context, &err);
}

static bool may_read(const struct stream *stream)
{
	return stream->state >= STREAM_OPEN && stream->state != STREAM_CLOSED && !stream->paused && !stream->read_ended;
}

/* What this turn leaves for reading. */
static size_t share_left(struct stream *stream)
{
	if (stream->turn != loop_turn_count(stream->loop)) {
		stream->turn = loop_turn_count(stream->loop);
		stream->turn_bytes = 0;
	}
	return stream->turn_bytes < NET_TURN_READ_BYTES ? NET_TURN_READ_BYTES - stream->turn_bytes : 0;
}

/* Reads once. Returns whether there may be more. */
static bool read_once(struct stream *stream, char chunk[NET_READ_CHUNK_BYTES])
{
	struct error err;
	size_t length = 0;
	enum tls_result result = receive(stream, chunk, NET_READ_CHUNK_BYTES, &length, &err);

	stream->read_wants_write = result == TLS_WANT_WRITE;
	switch (result) {
	case TLS_OK:
		stream->turn_bytes += length;
		if (stream->handler.on_data != NULL)
			stream->handler.on_data(stream->context, slice_from(chunk, length));
		explicit_bzero(chunk, length); /* there may have been a token in it */
		/* A short read from a plain socket has emptied it, or the level tells. */
		return stream->tls != NULL || length == NET_READ_CHUNK_BYTES;
	case TLS_END:
		peer_ended(stream);
		return false;
	case TLS_FAILED:
		stream_fail(stream, &err);
		return false;
	default:
		return false;
	}
}

static void read_available(struct stream *stream)
{
	char chunk[NET_READ_CHUNK_BYTES];

	while (may_read(stream)) {
		if (share_left(stream) == 0) {
			if (stream->tls != NULL)
				stream_read_soon(stream);
			break;
		}
		if (!read_once(stream, chunk))
			break;
	}
}

static void read_task(void *context)
{
	struct stream *stream = context;
	struct error err;

	read_available(stream);
	if (stream->state != STREAM_CLOSED && !try_interest(stream, &err))
		stream_fail(stream, &err);
}

void stream_read_soon(struct stream *stream)
{
	loop_run_soon(stream->loop, &stream->read_task, read_task, stream);
}

/* ---- writing ---- */

/* The peer may have said why before it stopped taking bytes: reads that first. */
static void write_failed(struct stream *stream, const struct error *err)
{
	stream->write_failed = true;
	stream->write_blocked = false;
	buffer_release(&stream->output);
	stream->output_start = 0;
	if (stream->state == STREAM_OPEN)
		read_available(stream);
	if (stream->state != STREAM_CLOSED)
		stream_fail(stream, err);
}

static void output_sent(struct stream *stream)
{
	stream->output_start = 0;
	if (stream->output.capacity > NET_OUTPUT_KEPT_BYTES)
		buffer_release(&stream->output);
	else
		buffer_clear(&stream->output);
}

/* Everything is sent: ends our side, then waits for the peer's end unless that came already. */
static void end_own_side(struct stream *stream)
{
	struct error err;
	enum tls_result result = stream->tls != NULL ? tls_connection_close_notify(stream->tls, &err) : TLS_OK;

	stream->write_blocked = result == TLS_WANT_WRITE;
	stream->write_wants_read = result == TLS_WANT_READ;
	if (stream->write_blocked || stream->write_wants_read)
		return;
	if (result == TLS_FAILED || stream->read_ended) {
		stream_end(stream, false);
		return;
	}
	socket_shutdown_write(stream->socket);
	stream->state = STREAM_DRAINING;
}

/* Returns whether everything queued has left. */
static bool send_queued(struct stream *stream, struct error *err, bool *ret_failed)
{
	size_t share = NET_TURN_WRITE_BYTES;

	stream->write_blocked = false;
	stream->write_wants_read = false;
	while (stream_output_bytes(stream) > 0) {
		size_t written = 0;
		enum tls_result result = transmit(stream, stream->output.data + stream->output_start,
		                                  stream_output_bytes(stream), &written, err);

		if (result == TLS_FAILED) {
			*ret_failed = true;
			return false;
		}
		stream->output_start += written;
		stream->write_wants_read = result == TLS_WANT_READ;
		stream->write_blocked = result == TLS_WANT_WRITE || (result == TLS_OK && written >= share);
		if (stream_output_bytes(stream) > 0 && (stream->write_blocked || stream->write_wants_read))
			return false;
		share -= written < share ? written : share;
	}
	stream->write_blocked = false;
	return true;
}

void stream_flush(struct stream *stream)
{
	bool had_output = stream_output_bytes(stream) > 0;
	bool failed = false;
	struct error err;

	if (stream->state != STREAM_OPEN && stream->state != STREAM_FINISHING)
		return;
	if (send_queued(stream, &err, &failed)) {
		output_sent(stream);
		if (stream->state == STREAM_FINISHING)
			end_own_side(stream);
		else if (had_output && stream->handler.on_drained != NULL)
			stream->handler.on_drained(stream->context);
	} else if (failed) {
		write_failed(stream, &err);
	}
	if (stream->state != STREAM_CLOSED)
		stream_update_interest(stream);
}

static void write_task(void *context)
{
	struct stream *stream = context;

	if (!stream->write_blocked && !stream->write_wants_read)
		stream_flush(stream);
}

void stream_write_soon(struct stream *stream)
{
	loop_run_soon(stream->loop, &stream->write_task, write_task, stream);
}

/* ---- handshake ---- */

static void open_stream(struct stream *stream)
{
	loop_timer_stop(stream->loop, &stream->timer);
	stream->state = STREAM_OPEN;
	stream->read_wants_write = false;
	if (stream->listener != NULL)
		stream_listener_hand_over(stream);
	else if (stream->handler.on_open != NULL)
		stream->handler.on_open(stream->context);
	if (stream->state == STREAM_CLOSED)
		return;
	stream_update_interest(stream);
	if (stream->state == STREAM_OPEN && stream_output_bytes(stream) > 0)
		stream_write_soon(stream);
	if (stream->tls != NULL)
		stream_read_soon(stream); /* the peer's first bytes may have come with its last ones of the handshake */
}

static void shake_hands(struct stream *stream)
{
	struct error err;
	enum tls_result result = tls_connection_handshake(stream->tls, &err);

	stream->read_wants_write = result == TLS_WANT_WRITE;
	switch (result) {
	case TLS_OK:
		open_stream(stream);
		break;
	case TLS_WANT_READ:
	case TLS_WANT_WRITE:
		stream_update_interest(stream);
		break;
	case TLS_END:
		error_set(&err, ERROR_CLOSED, "EOF");
		error_wrap(&err, "TLS handshake with %s", tls_connection_peer(stream->tls));
		stream_fail(stream, &err);
		break;
	case TLS_FAILED:
		stream_fail_handshake(stream, &err);
		break;
	}
}

static void handshake_late(void *context)
{
	struct stream *stream = context;
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	error_wrap(&err, "TLS handshake with %s", tls_connection_peer(stream->tls));
	stream_fail(stream, &err);
}

void stream_connected(struct stream *stream, uint64_t tls_timeout_ns)
{
	if (stream->tls == NULL) {
		open_stream(stream);
		return;
	}
	if (tls_timeout_ns == 0)
		tls_timeout_ns = (uint64_t)NET_TLS_HANDSHAKE_TIMEOUT_MS * NS_PER_MS;
	stream->state = STREAM_HANDSHAKING;
	loop_timer_start(stream->loop, &stream->timer, tls_timeout_ns, handshake_late, stream);
	shake_hands(stream);
}

/* ---- the socket's callbacks ---- */

static void socket_readable(void *context)
{
	struct stream *stream = context;

	if (stream->state == STREAM_HANDSHAKING) {
		shake_hands(stream);
		return;
	}
	if (stream->write_wants_read)
		stream_flush(stream);
	read_available(stream);
	if (stream->state != STREAM_CLOSED)
		stream_update_interest(stream);
}

static void socket_writable(void *context)
{
	struct stream *stream = context;

	if (stream->state == STREAM_HANDSHAKING) {
		shake_hands(stream);
		return;
	}
	if (stream->read_wants_write)
		read_available(stream);
	stream_flush(stream);
}

const struct socket_handler STREAM_SOCKET_HANDLER = {
	.on_readable = socket_readable,
	.on_writable = socket_writable,
};
