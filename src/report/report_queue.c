/*
 * Bytes are counted as content: the JSON text of an array, the output of the packer, an event with its link. A completed
 * batch gives back the room it doesn't need.
 */
#include "report/report_queue.h"

#include <string.h>

#include "base/memory.h"

struct report_event {
	struct report_event *next;
	size_t length;
	char json[];
};

static const struct slice ARRAY_BEGIN = SLICE_INIT("{\"events\":[");
static const struct slice ARRAY_END = SLICE_INIT("]}");

enum { BODY_LIMIT_BYTES = 2 * REPORT_BATCH_BYTES + 1024 * 1024 };

void report_queue_init(struct report_queue *queue, const struct report_queue_settings *settings)
{
	*queue = (struct report_queue){ .settings = *settings };
}

static void release_batch(struct report_batch *batch)
{
	if (batch != NULL)
		buffer_destroy(&batch->body);
	memory_release(batch);
}

static void abandon_ongoing(struct report_queue *queue)
{
	gzip_packer_destroy(queue->packer);
	release_batch(queue->ongoing);
	queue->packer = NULL;
	queue->ongoing = NULL;
}

static struct report_event *unlink_event(struct report_queue *queue)
{
	struct report_event *event = queue->first_event;

	queue->first_event = event->next;
	if (queue->first_event == NULL)
		queue->last_event = NULL;
	return event;
}

static struct report_batch *unlink_batch(struct report_queue *queue)
{
	struct report_batch *batch = queue->first;

	queue->first = batch->next;
	if (queue->first == NULL)
		queue->last = NULL;
	return batch;
}

void report_queue_destroy(struct report_queue *queue)
{
	abandon_ongoing(queue);
	while (queue->first != NULL)
		release_batch(unlink_batch(queue));
	while (queue->first_event != NULL)
		memory_release(unlink_event(queue));
	*queue = (struct report_queue){ 0 };
}

/* ---- single events ---- */

static bool add_single(struct report_queue *queue, struct slice json, struct error *err)
{
	struct report_event *event = memory_allocate(sizeof *event + json.length);

	if (event == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for an event");
	event->length = json.length;
	memcpy(event->json, json.data, json.length);
	if (queue->last_event != NULL)
		queue->last_event->next = event;
	else
		queue->first_event = event;
	queue->last_event = event;
	queue->bytes += sizeof *event + json.length;
	queue->event_count++;
	return true;
}

/* Makes a batch of the oldest events, which stay where they are. */
static struct report_batch *cut(struct report_queue *queue, struct error *err)
{
	struct report_batch *batch = memory_allocate(sizeof *batch);

	if (batch == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a batch");
		return NULL;
	}
	buffer_init(&batch->body, BODY_LIMIT_BYTES);
	buffer_append_slice(&batch->body, ARRAY_BEGIN);
	for (const struct report_event *event = queue->first_event;
	     event != NULL && batch->event_count < queue->settings.max_batch_events &&
	     batch->body.length < REPORT_BATCH_BYTES;
	     event = event->next) {
		if (batch->event_count > 0)
			buffer_append_char(&batch->body, ',');
		buffer_append(&batch->body, event->json, event->length);
		batch->event_count++;
	}
	buffer_append_slice(&batch->body, ARRAY_END);
	if (!buffer_check(&batch->body, "a batch of events", err)) {
		release_batch(batch);
		return NULL;
	}
	return batch;
}

/* ---- batches ---- */

static bool open_batch(struct report_queue *queue, struct error *err)
{
	struct report_batch *batch = memory_allocate(sizeof *batch);

	if (batch == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a batch");
	buffer_init(&batch->body, BODY_LIMIT_BYTES);
	queue->ongoing = batch;
	if (queue->settings.format == REPORT_GZIP_LINES)
		return (queue->packer = gzip_packer_create(err)) != NULL;
	buffer_append_slice(&batch->body, ARRAY_BEGIN);
	return buffer_check(&batch->body, "a batch of events", err);
}

static bool append_to_array(struct report_batch *batch, struct slice json, struct error *err)
{
	struct buffer *body = &batch->body;

	/* Room for the end is made now, so that completing can't fail. */
	if (buffer_reserve(body, 1 + json.length + ARRAY_END.length) == NULL) {
		buffer_check(body, "a batch of events", err);
		body->failed = body->no_memory = false;
		return false;
	}
	if (batch->event_count > 0)
		buffer_append_char(body, ',');
	buffer_append_slice(body, json);
	return true;
}

static bool add_to_batch(struct report_queue *queue, struct slice json, struct error *err)
{
	struct report_batch *batch;
	size_t before;

	if (queue->ongoing == NULL && !open_batch(queue, err)) {
		abandon_ongoing(queue);
		return false;
	}
	batch = queue->ongoing;
	before = batch->event_count > 0 ? batch->body.length : 0;
	if (queue->packer != NULL ? !gzip_packer_add(queue->packer, json, SLICE("\n"), &batch->body, err)
	                          : !append_to_array(batch, json, err)) {
		if (batch->event_count == 0)
			abandon_ongoing(queue);
		return false;
	}
	queue->bytes += batch->body.length - before;
	batch->event_count++;
	queue->event_count++;
	return true;
}

/* Gives back what the body doesn't need; if that fails, it keeps it. */
static void shrink(struct buffer *body)
{
	char *data = memory_resize(body->data, body->length + 1);

	if (data == NULL)
		return;
	body->data = data;
	body->capacity = body->length;
}

bool report_queue_complete(struct report_queue *queue)
{
	struct report_batch *batch = queue->ongoing;
	struct error err;
	size_t before;

	if (batch == NULL)
		return false;
	before = batch->body.length;
	if (queue->packer != NULL)
		(void)gzip_packer_finish(queue->packer, &batch->body, &err);
	else
		buffer_append_slice(&batch->body, ARRAY_END);
	queue->bytes += batch->body.length - before;
	gzip_packer_destroy(queue->packer);
	queue->packer = NULL;
	queue->ongoing = NULL;
	shrink(&batch->body);
	if (queue->last != NULL)
		queue->last->next = batch;
	else
		queue->first = batch;
	queue->last = batch;
	queue->batch_count++;
	return true;
}

bool report_queue_add(struct report_queue *queue, struct slice json, bool *ret_completed, struct error *err)
{
	const struct report_queue_settings *settings = &queue->settings;

	if (json.length > REPORT_EVENT_BYTES)
		return error_set(err, ERROR_LIMIT, "an event is over %d bytes", REPORT_EVENT_BYTES);
	if (queue->event_count >= settings->limit_events)
		return error_set(err, ERROR_LIMIT, "%llu events wait already", (unsigned long long)queue->event_count);
	if (queue->bytes + json.length > settings->limit_bytes)
		return error_set(err, ERROR_LIMIT, "%zu bytes of events wait already", queue->bytes);
	if (settings->cut_late) {
		*ret_completed = false;
		return add_single(queue, json, err);
	}
	if (!add_to_batch(queue, json, err))
		return false;
	*ret_completed = queue->ongoing->event_count >= settings->max_batch_events ||
	                 queue->ongoing->body.length >= REPORT_BATCH_BYTES;
	if (*ret_completed)
		(void)report_queue_complete(queue);
	return true;
}

/* ---- sending ---- */

bool report_queue_has_batch(const struct report_queue *queue)
{
	return queue->first != NULL || queue->first_event != NULL;
}

const struct report_batch *report_queue_take(struct report_queue *queue, struct error *err)
{
	if (queue->settings.cut_late)
		queue->first = queue->last = cut(queue, err);
	return queue->first;
}

void report_queue_remove_taken(struct report_queue *queue)
{
	struct report_batch *batch = unlink_batch(queue);

	if (queue->settings.cut_late) {
		for (uint64_t i = 0; i < batch->event_count; i++) {
			struct report_event *event = unlink_event(queue);

			queue->bytes -= sizeof *event + event->length;
			memory_release(event);
		}
	} else {
		queue->bytes -= batch->body.length;
		queue->batch_count--;
	}
	queue->event_count -= batch->event_count;
	release_batch(batch);
}

void report_queue_return_taken(struct report_queue *queue)
{
	if (queue->settings.cut_late && queue->first != NULL)
		release_batch(unlink_batch(queue));
}
