#include "net/stream.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/limits.h"
#include "net/stream_internal.h"

struct stream *stream_create(struct loop *loop)
{
	struct stream *stream = memory_allocate(sizeof *stream);

	if (stream == NULL)
		return NULL;
	stream->loop = loop;
	stream->write_limit = NET_STREAM_WRITE_BYTES;
	buffer_init(&stream->output, SIZE_MAX); /* stream_write keeps the limit */
	return stream;
}

static void release_stream(void *owner)
{
	memory_release(owner);
}

void stream_end(struct stream *stream, bool abort)
{
	stream->state = STREAM_CLOSED;
	loop_timer_stop(stream->loop, &stream->timer);
	loop_task_cancel(stream->loop, &stream->write_task);
	loop_task_cancel(stream->loop, &stream->read_task);
	loop_leftover_remove(stream->loop, &stream->leftover);
	stream_connector_destroy(stream->connector);
	stream->connector = NULL;
	tls_connection_destroy(stream->tls);
	stream->tls = NULL;
	if (stream->socket != NULL)
		socket_close(stream->socket, abort);
	stream->socket = NULL;
	buffer_destroy(&stream->output);
	if (stream->listener != NULL)
		stream_listener_stream_ended(stream);
	loop_release_later(stream->loop, &stream->garbage, release_stream, stream);
}

void stream_fail(struct stream *stream, const struct error *err)
{
	struct stream_handler handler = stream->handler;
	void *context = stream->context;

	if (stream->listener != NULL && stream->state == STREAM_HANDSHAKING)
		stream_listener_stream_failed(stream, err);
	if (stream->state == STREAM_CLOSED)
		return;
	stream_end(stream, false);
	if (handler.on_close != NULL)
		handler.on_close(context, err);
}

void stream_fail_handshake(struct stream *stream, const struct error *err)
{
	struct stream_handler handler = stream->handler;
	void *context = stream->context;

	if (stream->listener != NULL)
		stream_listener_stream_failed(stream, err);
	if (stream->state == STREAM_CLOSED)
		return;
	tls_connection_destroy(stream->tls);
	stream->tls = NULL;
	buffer_release(&stream->output);
	stream->output_start = 0;
	stream->read_wants_write = false;
	stream_let_go(stream, (uint64_t)NET_ALERT_LINGER_MS * NS_PER_MS);
	if (handler.on_close != NULL)
		handler.on_close(context, err);
}

/* ---- writing ---- */

bool stream_write(struct stream *stream, struct slice bytes, struct error *err)
{
	size_t pending = stream_output_bytes(stream);

	if (stream->write_failed || bytes.length == 0)
		return true; /* if it failed, on_close is about to tell why */
	if (pending > stream->write_limit || bytes.length > stream->write_limit - pending)
		return error_set(err, ERROR_LIMIT, "more than %zu bytes wait to be written", stream->write_limit);
	if (stream->output_start > stream->output.length / 2) {
		buffer_consume(&stream->output, stream->output_start);
		stream->output_start = 0;
	}
	buffer_append_slice(&stream->output, bytes);
	if (!buffer_check(&stream->output, "what waits to be written", err)) {
		stream->output.failed = false; /* what was queued before is whole */
		stream->output.no_memory = false;
		return false;
	}
	if (stream->state == STREAM_OPEN)
		stream_write_soon(stream);
	return true;
}

size_t stream_pending_bytes(const struct stream *stream)
{
	return stream_output_bytes(stream);
}

void stream_set_write_limit(struct stream *stream, size_t bytes)
{
	stream->write_limit = bytes;
}

/* ---- reading ---- */

void stream_pause(struct stream *stream)
{
	stream->paused = true;
	stream_update_interest(stream);
}

void stream_resume(struct stream *stream)
{
	if (!stream->paused)
		return;
	stream->paused = false;
	stream_update_interest(stream);
	if (stream->state == STREAM_OPEN)
		stream_read_soon(stream); /* TLS may hold bytes that the socket won't tell of */
}

void stream_set_handler(struct stream *stream, const struct stream_handler *handler, void *context)
{
	stream->handler = *handler;
	stream->context = context;
}

bool stream_peer_address(const struct stream *stream, struct address *ret_address)
{
	if (stream->socket == NULL || stream->state == STREAM_CONNECTING)
		return false;
	*ret_address = stream->peer;
	return true;
}

bool stream_local_address(const struct stream *stream, struct address *ret_address)
{
	return stream->socket != NULL && socket_local_address(stream->socket, ret_address);
}

/* ---- ending ---- */

static void linger_over(void *context)
{
	stream_end(context, false);
}

static void end_leftover(void *owner)
{
	stream_end(owner, false);
}

void stream_let_go(struct stream *stream, uint64_t linger_ns)
{
	stream->handler = (struct stream_handler){ 0 };
	stream->state = STREAM_FINISHING;
	stream->paused = false;
	loop_leftover_add(stream->loop, &stream->leftover, end_leftover, stream);
	loop_timer_start(stream->loop, &stream->timer, linger_ns, linger_over, stream);
	stream_update_interest(stream);
	stream_write_soon(stream);
}

void stream_finish(struct stream *stream, uint64_t linger_ns)
{
	if (stream->state == STREAM_OPEN && !stream->write_failed)
		stream_let_go(stream, linger_ns);
	else
		stream_end(stream, false);
}

void stream_close(struct stream *stream)
{
	stream_end(stream, false);
}

void stream_abort(struct stream *stream)
{
	stream_end(stream, true);
}
