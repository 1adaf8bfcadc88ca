/*
 * A sender waits for its wake flag or its timer, and then runs a pass: batch after batch until none is left or one
 * fails. Whatever rings during a pass is looked at when it is over (S5). While it finishes, only passes count: one at
 * once, then after each failed one another, until nothing is left or the grace period is over.
 *
 * `look` decides what to do next. It is a task, so that nothing here calls itself.
 */
#include "report/report_sender.h"

#include <stdio.h>

#include "base/clock.h"

static const double NOTHING_TO_SEND = 1e-06; /* M2 */
enum { LOG_FIELDS = REPORT_LOG_FIELDS + 1 };

static void look(void *context);

static const char *name_of(const struct report_sender *sender)
{
	return sender->client.client->name;
}

static void tell_queue_size(const struct report_sender *sender)
{
	sender->metrics.queue_size(sender->metrics.context, name_of(sender), sender->queue.event_count);
}

static void tell_duration(const struct report_sender *sender, double seconds)
{
	if (sender->sending == REPORT_SEND_BATCHES)
		sender->metrics.last_send_duration(sender->metrics.context, name_of(sender), seconds);
}

static int64_t since(const struct report_sender *sender, uint64_t began_ns)
{
	return (int64_t)(loop_now_ns(sender->loop) - began_ns);
}

/* ---- dropped events ---- */

static void log_dropped(struct report_sender *sender, const char *message, const struct error *reason)
{
	log_error(&sender->logger, message, log_uint("count", sender->dropped - sender->dropped_logged),
	          log_uint("total", sender->dropped), log_error_field(reason));
	sender->dropped_logged = sender->dropped;
	sender->drop_was_logged = true;
	sender->drop_logged_ns = loop_now_ns(sender->loop);
}

static void drop(struct report_sender *sender, uint64_t events, const char *message, const struct error *reason)
{
	sender->dropped += events;
	sender->metrics.dropped(sender->metrics.context, name_of(sender), events);
	if (!sender->drop_was_logged ||
	    since(sender, sender->drop_logged_ns) >= (int64_t)REPORT_DROP_LOG_INTERVAL_S * NS_PER_S)
		log_dropped(sender, message, reason);
}

/* ---- the end ---- */

static void finish(struct report_sender *sender)
{
	loop_timer_stop(sender->loop, &sender->timer);
	loop_timer_stop(sender->loop, &sender->grace_timer);
	loop_task_cancel(sender->loop, &sender->look_task);
	log_info(&sender->logger, "Ending events sender loop");
	sender->on_finished(sender->finished_context);
}

static void give_up(void *context)
{
	struct report_sender *sender = context;
	struct error err;

	if (sender->pushing) {
		sender->client.client->operations->cancel(sender->client.client);
		report_queue_return_taken(&sender->queue);
		sender->pushing = false;
	}
	error_set(&err, ERROR_TIMEOUT, "not delivered before the grace period was over");
	sender->drop_was_logged = false; /* this one is always told */
	if (sender->queue.event_count > 0)
		drop(sender, sender->queue.event_count, "Some events could not be sent and are lost", &err);
	finish(sender);
}

/* ---- passes ---- */

static void end_pass(struct report_sender *sender, bool failed)
{
	sender->sending_now = false;
	sender->failed_passes = failed ? sender->failed_passes + 1 : 0;
	loop_run_soon(sender->loop, &sender->look_task, look, sender);
}

/* What the client says of where it sent to, and an end mark. */
static void describe(const struct report_sender *sender, struct log_field fields[LOG_FIELDS])
{
	size_t count = sender->client.client->operations->describe(sender->client.client, fields);

	for (size_t i = count; i < LOG_FIELDS; i++)
		fields[i] = LOG_END;
}

static void report_failure(struct report_sender *sender, const struct report_failure *failure)
{
	struct log_field fields[LOG_FIELDS];

	describe(sender, fields);
	sender->metrics.send_error(sender->metrics.context, name_of(sender), failure->cause);
	tell_duration(sender, 0);
	log_error(&sender->logger, "Failed to push billing events", log_uint("count", sender->push_events),
	          log_duration("after", since(sender, sender->push_began_ns)),
	          log_uint("totalEvents", sender->pass_events), log_uint("totalBatches", sender->pass_batches),
	          log_duration("totalTime", since(sender, sender->pass_began_ns)), log_error_field(failure->err),
	          fields[0], fields[1], fields[2], fields[3]);
}

static void on_failed(struct report_sender *sender, const struct report_failure *failure)
{
	report_failure(sender, failure);
	report_queue_return_taken(&sender->queue);
	end_pass(sender, true);
}

static void push_next(struct report_sender *sender);

static void on_sent(struct report_sender *sender)
{
	const int64_t total_ns = since(sender, sender->pass_began_ns);
	struct log_field fields[LOG_FIELDS];

	describe(sender, fields);
	report_queue_remove_taken(&sender->queue);
	sender->pass_events += sender->push_events;
	sender->pass_batches++;
	tell_queue_size(sender);
	tell_duration(sender, (double)total_ns / NS_PER_S);
	log_info(&sender->logger, "Successfully pushed some events", log_uint("count", sender->push_events),
	         log_duration("after", since(sender, sender->push_began_ns)),
	         log_uint("totalEvents", sender->pass_events), log_uint("totalBatches", sender->pass_batches),
	         log_duration("totalTime", total_ns), fields[0], fields[1], fields[2], fields[3]);
	if (report_queue_has_batch(&sender->queue)) {
		push_next(sender);
		return;
	}
	log_info(&sender->logger, "All available event batches have been sent",
	         log_uint("totalEvents", sender->pass_events), log_uint("totalBatches", sender->pass_batches),
	         log_duration("totalTime", total_ns));
	end_pass(sender, false);
}

static void on_pushed(void *context, const struct report_failure *failure)
{
	struct report_sender *sender = context;

	sender->pushing = false;
	if (failure != NULL)
		on_failed(sender, failure);
	else
		on_sent(sender);
}

static void push_next(struct report_sender *sender)
{
	struct report_client *client = sender->client.client;
	struct log_field fields[LOG_FIELDS];
	const struct report_batch *batch;
	struct error err;

	sender->push_began_ns = loop_now_ns(sender->loop);
	sender->push_events = 0;
	batch = report_queue_take(&sender->queue, &err);
	if (batch == NULL || !report_id_make(sender->loop, sender->id, &err)) {
		on_failed(sender, &(struct report_failure){ .err = &err, .cause = "internal" });
		return;
	}
	sender->push_events = batch->event_count;
	sender->pushing = true;
	client->operations->push(client,
	                         &(struct report_push){ .body = buffer_slice(&batch->body),
	                                                .id = sender->id,
	                                                .timeout_ns = sender->client.push_timeout_ns },
	                         on_pushed, sender);
	describe(sender, fields);
	log_info(&sender->logger, "Pushing events batch", log_uint("count", batch->event_count), fields[0], fields[1],
	         fields[2], fields[3]);
}

static void start_pass(struct report_sender *sender)
{
	sender->pass_began_ns = loop_now_ns(sender->loop);
	sender->pass_events = sender->pass_batches = 0;
	sender->sending_now = true;
	sender->turned_away = false;
	log_info(&sender->logger, "Pushing all available event batches");
	if (!report_queue_has_batch(&sender->queue)) {
		log_info(&sender->logger, "No event batches to push");
		tell_duration(sender, NOTHING_TO_SEND);
		end_pass(sender, false);
		return;
	}
	log_info(&sender->logger, "Current queue size is non-zero", log_uint("batchCount", sender->queue.batch_count));
	push_next(sender);
}

/* ---- what starts them ---- */

static void on_timer(void *context)
{
	struct report_sender *sender = context;

	sender->timer_due = true;
	look(sender);
}

static void arm_heartbeat(struct report_sender *sender)
{
	sender->timer_due = false;
	loop_timer_start(sender->loop, &sender->timer, sender->client.push_every_ns, on_timer, sender);
}

/* A grid of ticks; those missed during a long pass count as one, which is due at once. */
static void arm_tick(struct report_sender *sender)
{
	const uint64_t now_ns = loop_now_ns(sender->loop), every_ns = sender->client.push_every_ns;

	sender->timer_due = false;
	if (sender->next_tick_ns + every_ns > now_ns)
		sender->next_tick_ns += every_ns;
	else
		sender->next_tick_ns = now_ns + every_ns - (now_ns - sender->next_tick_ns) % every_ns;
	loop_timer_start(sender->loop, &sender->timer, sender->next_tick_ns - now_ns, on_timer, sender);
}

static void look_for_work(struct report_sender *sender)
{
	const bool ticks = sender->sending == REPORT_SEND_AT_TICKS;

	if (sender->timer_due && ticks) {
		arm_tick(sender);
		sender->awake = report_queue_has_batch(&sender->queue);
	} else if (sender->timer_due) {
		/*
		 * An event that found no room stands for the ongoing batch that it would have begun (S4). Without it, a queue
		 * that is full of completed batches would never be sent from again.
		 */
		if (report_queue_complete(&sender->queue) || sender->turned_away)
			sender->awake = true;
		arm_heartbeat(sender);
	}
	if (!sender->awake)
		return;
	sender->awake = false;
	if (!ticks)
		arm_heartbeat(sender);
	start_pass(sender);
}

/* How long to wait after a failed pass: doubling, and at random a bit shorter, so that agents don't come in step. */
static uint64_t retry_wait_ns(struct report_sender *sender)
{
	uint64_t wait_ms = REPORT_RETRY_FIRST_MS;

	for (unsigned i = 1; i < sender->failed_passes && wait_ms < REPORT_RETRY_MOST_MS; i++)
		wait_ms *= 2;
	return rng_between(loop_rng(sender->loop), wait_ms * NS_PER_MS / 2, wait_ms * NS_PER_MS);
}

static void look_for_the_end(struct report_sender *sender)
{
	if (sender->final_pass_made && sender->failed_passes > 0 && !sender->timer_due) {
		loop_timer_start(sender->loop, &sender->timer, retry_wait_ns(sender), on_timer, sender);
		return;
	}
	if (sender->final_pass_made && sender->queue.event_count == 0) {
		finish(sender);
		return;
	}
	sender->timer_due = false;
	sender->final_pass_made = true;
	(void)report_queue_complete(&sender->queue);
	start_pass(sender);
}

static void look(void *context)
{
	struct report_sender *sender = context;

	if (sender->sending_now)
		return; /* again when the pass is over */
	if (sender->finishing)
		look_for_the_end(sender);
	else
		look_for_work(sender);
}

void report_sender_finish(struct report_sender *sender, uint64_t grace_ns, void (*on_finished)(void *context),
                          void *context)
{
	log_info(&sender->logger, "Received notification that events submission is done");
	sender->finishing = true;
	sender->timer_due = false;
	sender->on_finished = on_finished;
	sender->finished_context = context;
	loop_timer_stop(sender->loop, &sender->timer);
	loop_timer_start(sender->loop, &sender->grace_timer, grace_ns, give_up, sender);
	loop_run_soon(sender->loop, &sender->look_task, look, sender);
}

/* ---- the rest ---- */

void report_sender_submit(struct report_sender *sender, struct slice json)
{
	struct error err;
	bool completed;

	sender->submitted++;
	if (!report_queue_add(&sender->queue, json, &completed, &err)) {
		sender->turned_away = true;
		drop(sender, 1, "The queue of events takes no more: some are lost", &err);
		return;
	}
	tell_queue_size(sender);
	if (!completed || sender->finishing)
		return;
	sender->awake = true;
	loop_run_soon(sender->loop, &sender->look_task, look, sender);
}

void report_sender_start(struct report_sender *sender, struct loop *loop, const struct report_sink_options *options,
                         const struct report_sink_client *client)
{
	const struct report_queue_settings settings = {
		.format = client->client->format,
		.cut_late = options->sending == REPORT_SEND_AT_TICKS,
		.max_batch_events = client->max_batch_events > 0 ? client->max_batch_events : 1,
		.limit_events = options->queue_events > 0 ? options->queue_events : REPORT_QUEUE_EVENTS,
		.limit_bytes = options->queue_bytes > 0 ? options->queue_bytes : REPORT_QUEUE_BYTES,
	};

	*sender = (struct report_sender){
		.loop = loop,
		.sending = options->sending,
		.client = *client,
		.metrics = options->metrics,
		.logger = options->logger,
		.next_tick_ns = loop_now_ns(loop),
	};
	(void)snprintf(sender->logger_name, sizeof sender->logger_name, "%s.send-%s", options->logger.name,
	               client->client->name);
	sender->logger.name = sender->logger_name;
	report_queue_init(&sender->queue, &settings);
	tell_queue_size(sender);
	if (sender->sending == REPORT_SEND_AT_TICKS)
		arm_tick(sender);
	else
		arm_heartbeat(sender);
}

void report_sender_destroy(struct report_sender *sender)
{
	loop_timer_stop(sender->loop, &sender->timer);
	loop_timer_stop(sender->loop, &sender->grace_timer);
	loop_task_cancel(sender->loop, &sender->look_task);
	if (sender->pushing)
		sender->client.client->operations->cancel(sender->client.client);
	report_client_destroy(sender->client.client);
	report_queue_destroy(&sender->queue);
}
