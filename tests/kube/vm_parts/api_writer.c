#include "api_writer.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "die.h"

enum { CALL_SECONDS = 10, BODY_BYTES = 8 * 1024 * 1024, REPEAT_MS = 200 };

struct waiting_write {
	struct waiting_write *next;
	const char *method;
	void *subject;
	unsigned attempts;
	struct slice path, body; /* in texts */
	char texts[];
};

struct api_writer {
	struct loop *loop;
	struct kube_client *client;
	api_written *on_written;
	void *context;
	struct waiting_write *first, *last; /* the first is under way */
	struct kube_call *call;
	struct loop_timer timer;
	struct api_writer_counters counters;
};

static void send_first(void *context);

static bool is(const struct waiting_write *write, const char *method)
{
	return strcmp(write->method, method) == 0;
}

static void repeat(struct api_writer *writer)
{
	writer->counters.repeated++;
	loop_timer_start(writer->loop, &writer->timer, (uint64_t)REPEAT_MS * NS_PER_MS, send_first, writer);
}

static void conclude(struct api_writer *writer, struct slice answer)
{
	struct waiting_write *write = writer->first;

	writer->first = write->next;
	if (writer->first == NULL)
		writer->last = NULL;
	else
		loop_timer_start(writer->loop, &writer->timer, 0, send_first, writer);
	writer->on_written(writer->context, write->subject, answer);
	memory_release(write);
}

static void on_done(void *context, int status, struct slice body, const struct error *err)
{
	struct api_writer *writer = context;
	const struct waiting_write *write = writer->first;
	bool refused = err != NULL && status >= 400;

	writer->call = NULL;
	if (err == NULL) {
		writer->counters.written++;
		/* What is answered to a deletion may be a Status. */
		conclude(writer, is(write, "DELETE") ? SLICE("") : body);
	} else if (refused && (status == 404 || (status == 409 && write->attempts > 1 && is(write, "POST")))) {
		/* It has gone; or an earlier attempt made it, and the answer got lost. */
		writer->counters.too_late++;
		conclude(writer, SLICE(""));
	} else if (refused && status != 429 && status < 500) {
		die("%s %.*s: %s\n%.*s", write->method, SLICE_ARGS(write->path), err->text, SLICE_ARGS(write->body));
	} else {
		repeat(writer);
	}
}

static void send_first(void *context)
{
	static const struct kube_handler HANDLER = { .on_done = on_done };
	struct api_writer *writer = context;
	struct waiting_write *write = writer->first;
	struct error err;
	struct kube_request request = {
		.method = slice_of(write->method),
		.path = write->path,
		.body = write->body,
		.timeout_ns = (uint64_t)CALL_SECONDS * NS_PER_S,
		.max_body_bytes = BODY_BYTES,
		.verb = write->method,
		.resource = "objects",
	};

	if (write->body.length > 0)
		request.content_type =
			is(write, "PATCH") ? SLICE("application/merge-patch+json") : SLICE("application/json");
	if (is(write, "DELETE"))
		request.query = SLICE("gracePeriodSeconds=0"); /* there is no kubelet to end pods */
	write->attempts++;
	writer->call = kube_client_send(writer->client, &request, &HANDLER, writer, &err);
	if (writer->call == NULL)
		repeat(writer);
}

struct api_writer *api_writer_create(struct loop *loop, struct kube_client *client, api_written *on_written,
                                     void *context)
{
	struct api_writer *writer = memory_allocate(sizeof *writer);

	if (writer == NULL)
		die("no memory for a writer");
	writer->loop = loop;
	writer->client = client;
	writer->on_written = on_written;
	writer->context = context;
	return writer;
}

void api_writer_destroy(struct api_writer *writer)
{
	loop_timer_stop(writer->loop, &writer->timer);
	if (writer->call != NULL)
		kube_call_cancel(writer->call);
	while (writer->first != NULL) {
		struct waiting_write *write = writer->first;

		writer->first = write->next;
		memory_release(write);
	}
	memory_release(writer);
}

void api_writer_write(struct api_writer *writer, const struct api_write *write)
{
	size_t path_length = strlen(write->path);
	struct waiting_write *waiting = memory_allocate(sizeof *waiting + path_length + write->body.length);

	if (waiting == NULL)
		die("no memory for a write");
	waiting->method = write->method;
	waiting->subject = write->subject;
	memcpy(waiting->texts, write->path, path_length);
	waiting->path = slice_from(waiting->texts, path_length);
	if (write->body.length > 0)
		memcpy(waiting->texts + path_length, write->body.data, write->body.length);
	waiting->body = slice_from(waiting->texts + path_length, write->body.length);
	if (writer->last != NULL) {
		writer->last->next = waiting;
	} else {
		writer->first = waiting;
		loop_timer_start(writer->loop, &writer->timer, 0, send_first, writer);
	}
	writer->last = waiting;
}

struct api_writer_counters api_writer_counters(const struct api_writer *writer)
{
	return writer->counters;
}
