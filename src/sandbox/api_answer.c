/*
 * How answers leave. Short ones go at once; long ones as chunks that follow each other as the peer takes them, so that a list of any size and
 * a watch with many events at a time need no more room in the connection than others. The connection has no "taken" to be told of, so a
 * timer looks again.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/api_server_internal.h"

#define CACHE_FIELD                                                          \
	{                                                                    \
		SLICE_INIT("Cache-Control"), SLICE_INIT("no-cache, private") \
	}
#define JSON_FIELD                                                         \
	{                                                                  \
		SLICE_INIT("Content-Type"), SLICE_INIT("application/json") \
	}
#define TEXT_FIELD                                                                  \
	{                                                                           \
		SLICE_INIT("Content-Type"), SLICE_INIT("text/plain; charset=utf-8") \
	}
#define RETRY_FIELD                                        \
	{                                                  \
		SLICE_INIT("Retry-After"), SLICE_INIT("1") \
	}

static const struct http_field JSON_FIELDS[] = { CACHE_FIELD, JSON_FIELD, RETRY_FIELD };
static const struct http_field TEXT_FIELDS[] = { CACHE_FIELD, TEXT_FIELD, RETRY_FIELD };

static struct http_fields fields_of(bool json, bool retry_after)
{
	return (struct http_fields){ .items = json ? JSON_FIELDS : TEXT_FIELDS, .count = retry_after ? 3 : 2 };
}

/* ---- pending answers ---- */

void api_pending_add(struct api_pending *pending, struct api_server *server, struct http_call *call)
{
	pending->server = server;
	pending->call = call;
	pending->previous = server->pending.previous;
	pending->next = &server->pending;
	pending->previous->next = pending;
	server->pending.previous = pending;
	http_call_set_context(call, pending);
}

void api_pending_drop(struct api_pending *pending)
{
	pending->previous->next = pending->next;
	pending->next->previous = pending->previous;
	http_call_set_context(pending->call, NULL);
	pending->release(pending);
}

/* ---- flows ---- */

static void pump(void *context)
{
	struct api_flow *flow = context;
	struct http_call *call = flow->pending.call;

	while (flow->sent < flow->buffer.length && http_call_pending_bytes(call) < API_SERVER_FLOW_BYTES) {
		size_t length = flow->buffer.length - flow->sent;

		if (length > flow->chunk_bytes)
			length = flow->chunk_bytes;
		if (!http_call_write(call, slice_from(flow->buffer.data + flow->sent, length)))
			break;
		flow->sent += length;
	}
	if (flow->buffer.failed ||
	    (flow->sent < flow->buffer.length && http_call_pending_bytes(call) < API_SERVER_FLOW_BYTES)) {
		/* The watcher is too slow, or memory is short. */
		api_pending_drop(&flow->pending);
		http_call_abort(call, true);
		return;
	}
	if (flow->sent < flow->buffer.length) {
		loop_timer_start(flow->pending.server->loop, &flow->timer,
		                 (uint64_t)API_SERVER_FLOW_POLL_MS * NS_PER_MS, pump, flow);
		return;
	}
	buffer_release(&flow->buffer);
	flow->sent = 0;
	if (flow->ending) {
		api_pending_drop(&flow->pending);
		http_call_end(call);
	}
}

void api_flow_begin(struct api_flow *flow, struct api_server *server, struct http_call *call, size_t chunk_bytes,
                    size_t limit_bytes, void (*release)(struct api_pending *pending))
{
	flow->pending.release = release;
	flow->chunk_bytes = chunk_bytes;
	buffer_init(&flow->buffer, limit_bytes);
	api_pending_add(&flow->pending, server, call);
	http_call_begin(call, 200, fields_of(true, false));
}

void api_flow_push(struct api_flow *flow)
{
	if (!loop_timer_running(&flow->timer))
		loop_run_soon(flow->pending.server->loop, &flow->task, pump, flow);
}

void api_flow_destroy(struct api_flow *flow)
{
	loop_timer_stop(flow->pending.server->loop, &flow->timer);
	loop_task_cancel(flow->pending.server->loop, &flow->task);
	buffer_destroy(&flow->buffer);
}

/* ---- whole answers ---- */

static void release_flow(struct api_pending *pending)
{
	struct api_flow *flow = (struct api_flow *)(void *)pending;

	api_flow_destroy(flow);
	memory_release(flow);
}

void api_answer_large(struct api_server *server, struct http_call *call, struct buffer *body)
{
	struct api_flow *flow = memory_allocate(sizeof *flow);
	struct error err;

	if (flow == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "no memory for an answer");
		buffer_destroy(body);
		api_answer_failure(server, call, &err);
		return;
	}
	api_flow_begin(flow, server, call, API_SERVER_LIST_CHUNK_BYTES, 0, release_flow);
	flow->buffer = *body;
	*body = (struct buffer){ 0 };
	flow->ending = true;
	pump(flow);
}

void api_answer(struct api_server *server, struct http_call *call, int status, struct slice body)
{
	struct buffer text;

	buffer_init(&text, body.length + 1);
	buffer_append_slice(&text, body);
	buffer_append_char(&text, '\n');
	if (text.failed) {
		http_call_abort(call, true);
	} else if (text.length <= API_SERVER_WHOLE_BYTES || status != 200) {
		http_call_respond_with(call, status, fields_of(true, false), buffer_slice(&text));
	} else {
		api_answer_large(server, call, &text);
		return;
	}
	buffer_destroy(&text);
}

/* ---- errors ---- */

static void count_error(struct api_server *server, const struct api_error *error)
{
	int code = error->status.code;

	if (code == 401 || (code == 403 && error->status.has_details))
		server->counters.unauthorized++;
	else
		server->counters.rejected++;
}

void api_answer_error(struct api_server *server, struct http_call *call, const struct api_error *error)
{
	struct buffer body;
	struct error err;

	count_error(server, error);
	buffer_init(&body, (size_t)4 * API_TEXT_BYTES * API_CAUSES);
	if (api_error_print(error, &body, &err)) {
		bool plain = error->plain.length > 0;

		if (!plain)
			buffer_append_char(&body, '\n');
		http_call_respond_with(call, error->status.code, fields_of(!plain, error->retry_after),
		                       buffer_slice(&body));
	} else {
		http_call_abort(call, true);
	}
	buffer_destroy(&body);
}

void api_answer_failure(struct api_server *server, struct http_call *call, const struct error *err)
{
	struct api_error error;

	api_error_set(&error, 500, "InternalError", slice_of(err->text));
	api_answer_error(server, call, &error);
}

struct late_error {
	struct api_pending pending;
	struct loop_timer timer;
	struct buffer body;
	struct http_fields fields;
	int status;
};

static void release_late(struct api_pending *pending)
{
	struct late_error *late = (struct late_error *)(void *)pending;

	loop_timer_stop(pending->server->loop, &late->timer);
	buffer_destroy(&late->body);
	memory_release(late);
}

static void answer_late(void *context)
{
	struct late_error *late = context;
	struct http_call *call = late->pending.call;
	struct buffer body = late->body;
	struct http_fields fields = late->fields;
	int status = late->status;

	late->body = (struct buffer){ 0 };
	api_pending_drop(&late->pending);
	http_call_respond_with(call, status, fields, buffer_slice(&body));
	buffer_destroy(&body);
}

void api_answer_error_later(struct api_server *server, struct http_call *call, const struct api_error *error,
                            uint64_t delay_ns)
{
	struct late_error *late = memory_allocate(sizeof *late);
	struct error err;

	if (late == NULL) {
		http_call_abort(call, true);
		return;
	}
	count_error(server, error);
	buffer_init(&late->body, (size_t)4 * API_TEXT_BYTES * API_CAUSES);
	late->status = error->status.code;
	late->fields = fields_of(true, error->retry_after);
	late->pending.release = release_late;
	if (!api_error_print(error, &late->body, &err)) {
		buffer_destroy(&late->body);
		memory_release(late);
		http_call_abort(call, true);
		return;
	}
	buffer_append_char(&late->body, '\n');
	api_pending_add(&late->pending, server, call);
	loop_timer_start(server->loop, &late->timer, delay_ns, answer_late, late);
}
