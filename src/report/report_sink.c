#include "report/report_sink.h"

#include <string.h>

#include "base/memory.h"
#include "report/report_sender.h"

struct report_sink {
	struct loop *loop;
	struct report_sender senders[REPORT_CLIENTS_PER_SINK];
	size_t sender_count;
	bool finishing;
	size_t unfinished;
	struct loop_task task;
	void (*on_finished)(void *context);
	void *context;
};

static bool check_clients(const struct report_sink_options *options, const struct report_sink_client *clients,
                          size_t count, struct error *err)
{
	if (count > REPORT_CLIENTS_PER_SINK)
		return error_set(err, ERROR_LIMIT, "more than %d clients", REPORT_CLIENTS_PER_SINK);
	for (size_t i = 0; i < count; i++) {
		if (clients[i].push_every_ns == 0 || clients[i].push_timeout_ns == 0)
			return error_set(err, ERROR_INVARIANT, "a client without a period or a timeout");
		if (options->sending == REPORT_SEND_AT_TICKS && clients[i].client->format != REPORT_JSON_ARRAY)
			return error_set(err, ERROR_INVARIANT, "chunks are cut for JSON arrays only");
	}
	return true;
}

struct report_sink *report_sink_create(struct loop *loop, const struct report_sink_options *options,
                                       const struct report_sink_client *clients, size_t count, struct error *err)
{
	struct report_sink *sink = NULL;

	if (!check_clients(options, clients, count, err))
		goto failed;
	sink = memory_allocate(sizeof *sink);
	if (sink == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a sink of events");
		goto failed;
	}
	sink->loop = loop;
	for (size_t i = 0; i < count; i++)
		report_sender_start(&sink->senders[i], loop, options, &clients[i]);
	sink->sender_count = count;
	return sink;
failed:
	for (size_t i = 0; i < count; i++)
		report_client_destroy(clients[i].client);
	return NULL;
}

void report_sink_submit(struct report_sink *sink, struct slice json)
{
	for (size_t i = 0; i < sink->sender_count; i++)
		report_sender_submit(&sink->senders[i], json);
}

bool report_sink_progress(const struct report_sink *sink, const char *client, struct report_progress *ret_progress)
{
	for (size_t i = 0; i < sink->sender_count; i++) {
		const struct report_sender *sender = &sink->senders[i];

		if (strcmp(sender->client.client->name, client) != 0)
			continue;
		*ret_progress = (struct report_progress){
			.submitted = sender->submitted,
			.waiting = sender->queue.event_count,
			.dropped = sender->dropped,
			.pushing = sender->pushing,
			.push_began_ns = sender->push_began_ns,
			.push_timeout_ns = sender->client.push_timeout_ns,
		};
		return true;
	}
	return false;
}

uint64_t report_sink_queue_size(const struct report_sink *sink, const char *client)
{
	for (size_t i = 0; i < sink->sender_count; i++)
		if (strcmp(sink->senders[i].client.client->name, client) == 0)
			return sink->senders[i].queue.event_count;
	return 0;
}

static void tell_finished(void *context)
{
	struct report_sink *sink = context;

	sink->on_finished(sink->context); /* may destroy the sink */
}

static void on_sender_finished(void *context)
{
	struct report_sink *sink = context;

	if (--sink->unfinished == 0)
		loop_run_soon(sink->loop, &sink->task, tell_finished, sink);
}

void report_sink_finish(struct report_sink *sink, uint64_t grace_ns, void (*on_finished)(void *context), void *context)
{
	if (sink->finishing)
		return;
	sink->finishing = true;
	sink->on_finished = on_finished;
	sink->context = context;
	sink->unfinished = sink->sender_count;
	for (size_t i = 0; i < sink->sender_count; i++)
		report_sender_finish(&sink->senders[i], grace_ns, on_sender_finished, sink);
	if (sink->sender_count == 0)
		loop_run_soon(sink->loop, &sink->task, tell_finished, sink);
}

void report_sink_destroy(struct report_sink *sink)
{
	if (sink == NULL)
		return;
	loop_task_cancel(sink->loop, &sink->task);
	for (size_t i = 0; i < sink->sender_count; i++)
		report_sender_destroy(&sink->senders[i]);
	memory_release(sink);
}
