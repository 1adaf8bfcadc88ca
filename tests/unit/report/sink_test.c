/* When the sink sends what: spec reporting 6 with TV14 … TV16 and TV18, generations 4.10 with M9, and the bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../net/peer.h"
#include "../net/test_clock.h"
#include "report/report_sink.h"

enum { PUSHES_MAX = 64, BODY_BYTES = 4096, PUSH_EVERY_MS = 10000 };

/* ---- a client that does as it is told ---- */

struct fake_push {
	char id[32];
	char body[BODY_BYTES];
};

struct fake {
	struct report_client client; /* first */
	struct loop *loop;
	struct fake_push pushes[PUSHES_MAX];
	unsigned count, cancelled;
	const struct report_push *current;
	report_push_done *done; /* of the push under way */
	void *context;
	unsigned fail_from, fail_to; /* pushes with these numbers (from 1) fail by themselves */
	bool by_hand;                /* each push waits for fake_end */
	struct loop_task task;
	bool destroyed;
};

static void fake_end(struct fake *fake, const char *cause)
{
	report_push_done *done = fake->done;
	struct error err;

	assert_non_null(done);
	fake->done = NULL;
	error_set(&err, ERROR_REFUSED, "told to fail");
	done(fake->context, cause != NULL ? &(struct report_failure){ .err = &err, .cause = cause } : NULL);
}

static void fake_answer(void *context)
{
	struct fake *fake = context;
	bool fails = fake->count >= fake->fail_from && fake->count <= fake->fail_to;

	fake_end(fake, fails ? "HTTP code 500" : NULL);
}

static void fake_push(struct report_client *client, const struct report_push *push, report_push_done *done,
                      void *context)
{
	struct fake *fake = (struct fake *)client;
	struct fake_push *record = &fake->pushes[fake->count++];

	assert_true(fake->count <= PUSHES_MAX);
	assert_null(fake->done);
	snprintf(record->id, sizeof record->id, "%s", push->id);
	snprintf(record->body, sizeof record->body, "%.*s", SLICE_ARGS(push->body));
	fake->done = done;
	fake->context = context;
	if (!fake->by_hand)
		loop_run_soon(fake->loop, &fake->task, fake_answer, fake);
}

static void fake_cancel(struct report_client *client)
{
	struct fake *fake = (struct fake *)client;

	if (fake->done == NULL)
		return;
	fake->done = NULL;
	fake->cancelled++;
	loop_task_cancel(fake->loop, &fake->task);
}

static size_t fake_describe(const struct report_client *client, struct log_field fields[REPORT_LOG_FIELDS])
{
	fields[0] = log_text("to", client->name);
	return 1;
}

static void fake_destroy(struct report_client *client)
{
	((struct fake *)client)->destroyed = true;
}

static const struct report_client_operations FAKE = { fake_push, fake_cancel, fake_describe, fake_destroy };

/* ---- a sink with up to two of them ---- */

struct scene {
	struct loop *loop;
	struct fake fakes[2];
	struct report_sink *sink;
	double queue_size[2];
	double duration[2]; /* -1: not told yet */
	unsigned errors[2];
	char cause[64];
	uint64_t dropped;
	unsigned finished;
};

static size_t number_of(const char *client)
{
	return strcmp(client, "s3") == 0 ? 1 : 0;
}

static void note_queue_size(void *context, const char *client, uint64_t events)
{
	((struct scene *)context)->queue_size[number_of(client)] = (double)events;
}

static void note_duration(void *context, const char *client, double seconds)
{
	((struct scene *)context)->duration[number_of(client)] = seconds;
}

static void note_error(void *context, const char *client, const char *cause)
{
	struct scene *scene = context;

	scene->errors[number_of(client)]++;
	snprintf(scene->cause, sizeof scene->cause, "%s", cause);
}

static void note_dropped(void *context, const char *client, uint64_t events)
{
	(void)client;
	((struct scene *)context)->dropped += events;
}

static void note_finished(void *context)
{
	((struct scene *)context)->finished++;
}

static void scene_init(struct scene *scene, enum report_sending sending, uint64_t max_batch, size_t clients,
                       size_t queue_events)
{
	static const char *const NAMES[] = { "http", "s3" };
	struct report_sink_options options = {
		.sending = sending,
		.queue_events = queue_events,
		.metrics = { scene, note_queue_size, note_duration, note_error, note_dropped },
		.logger = { .name = "autoscaler-agent.billing", .context_json = "" },
	};
	struct report_sink_client list[2];
	struct error err;

	*scene = (struct scene){ .loop = new_loop(), .duration = { -1, -1 }, .queue_size = { -1, -1 } };
	for (size_t i = 0; i < clients; i++) {
		scene->fakes[i] =
			(struct fake){ .client = { NAMES[i], REPORT_JSON_ARRAY, &FAKE }, .loop = scene->loop };
		list[i] = (struct report_sink_client){ .client = &scene->fakes[i].client,
			                               .push_every_ns = (uint64_t)PUSH_EVERY_MS * NS_PER_MS,
			                               .push_timeout_ns = NS_PER_S,
			                               .max_batch_events = max_batch };
	}
	scene->sink = report_sink_create(scene->loop, &options, list, clients, &err);
	assert_non_null(scene->sink);
}

static void scene_destroy(struct scene *scene)
{
	report_sink_destroy(scene->sink);
	loop_destroy(scene->loop);
}

/* Events are `{"n":first}` and so on. */
static void submit(struct scene *scene, unsigned first, unsigned count)
{
	char text[32];

	for (unsigned i = 0; i < count; i++) {
		snprintf(text, sizeof text, "{\"n\":%u}", first + i);
		report_sink_submit(scene->sink, slice_of(text));
	}
}

/* Lets happen what is due. */
static void settle(struct scene *scene)
{
	turn_for(scene->loop, 20);
}

static void beat(struct scene *scene)
{
	skip_time_ms(PUSH_EVERY_MS);
	settle(scene);
}

static void assert_pushed(const struct fake *fake, unsigned number, unsigned first, unsigned count)
{
	char expected[BODY_BYTES];
	size_t length = (size_t)snprintf(expected, sizeof expected, "{\"events\":[");

	assert_true(number < fake->count);
	for (unsigned i = 0; i < count; i++)
		length += (size_t)snprintf(expected + length, sizeof expected - length, "%s{\"n\":%u}",
		                           i > 0 ? "," : "", first + i);
	snprintf(expected + length, sizeof expected - length, "]}");
	assert_string_equal(fake->pushes[number].body, expected);
}

/* ---- generation B ---- */

static void the_queue_size_is_told_at_the_start(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 4, 2, 0);
	assert_true(scene.queue_size[0] == 0 && scene.queue_size[1] == 0);
	assert_true(scene.duration[0] == -1);
	scene_destroy(&scene);
	assert_true(scene.fakes[0].destroyed && scene.fakes[1].destroyed);
}

static void full_batches_go_at_once_and_the_rest_at_the_heartbeat(void **state) /* TV14 */
{
	struct scene scene;

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 4, 1, 0);
	scene.fakes[0].by_hand = true;
	submit(&scene, 1, 10);
	assert_true(scene.queue_size[0] == 10);
	assert_int_equal(scene.fakes[0].count, 0);
	settle(&scene);
	assert_int_equal(scene.fakes[0].count, 1);
	fake_end(&scene.fakes[0], NULL);
	assert_true(scene.queue_size[0] == 6);
	fake_end(&scene.fakes[0], NULL);
	assert_true(scene.queue_size[0] == 2);
	assert_true(scene.duration[0] > 0);
	settle(&scene);
	assert_int_equal(scene.fakes[0].count, 2);
	beat(&scene);
	assert_int_equal(scene.fakes[0].count, 3);
	fake_end(&scene.fakes[0], NULL);
	assert_true(scene.queue_size[0] == 0);
	assert_pushed(&scene.fakes[0], 0, 1, 4);
	assert_pushed(&scene.fakes[0], 1, 5, 4);
	assert_pushed(&scene.fakes[0], 2, 9, 2);
	scene_destroy(&scene);
}

static void a_failed_batch_waits_for_the_next_one_and_keeps_its_bytes(void **state) /* TV15 */
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 1, 0);
	fake->fail_from = fake->fail_to = 1;
	submit(&scene, 1, 4);
	settle(&scene);
	assert_int_equal(fake->count, 1);
	assert_true(scene.queue_size[0] == 4);
	assert_true(scene.duration[0] == 0);
	assert_int_equal(scene.errors[0], 1);
	assert_string_equal(scene.cause, "HTTP code 500");
	for (int i = 0; i < 10; i++)
		beat(&scene);
	assert_int_equal(fake->count, 1);
	submit(&scene, 5, 1);
	beat(&scene);
	assert_int_equal(fake->count, 4);
	assert_pushed(fake, 0, 1, 2);
	assert_pushed(fake, 1, 1, 2);
	assert_pushed(fake, 2, 3, 2);
	assert_pushed(fake, 3, 5, 1);
	assert_string_not_equal(fake->pushes[0].id, fake->pushes[1].id);
	assert_true(scene.queue_size[0] == 0);
	scene_destroy(&scene);
}

static void a_batch_completed_during_a_pass_goes_with_it_and_wakes_once_more(void **state) /* TV16 */
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 1, 0);
	fake->by_hand = true;
	submit(&scene, 1, 2);
	settle(&scene);
	submit(&scene, 3, 2);
	settle(&scene);
	assert_int_equal(fake->count, 1);
	fake_end(fake, NULL);
	assert_int_equal(fake->count, 2);
	fake_end(fake, NULL);
	assert_true(scene.duration[0] > 1e-06);
	settle(&scene);
	assert_int_equal(fake->count, 2);
	assert_true(scene.duration[0] == 1e-06);
	scene_destroy(&scene);
}

static void a_batch_completed_during_a_failing_pass_has_it_tried_again(void **state) /* S5 */
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 1, 0);
	fake->by_hand = true;
	submit(&scene, 1, 2);
	settle(&scene);
	submit(&scene, 3, 2);
	fake_end(fake, "EOF");
	assert_int_equal(fake->count, 1);
	settle(&scene);
	assert_int_equal(fake->count, 2);
	assert_pushed(fake, 1, 1, 2);
	scene_destroy(&scene);
	assert_int_equal(fake->cancelled, 1);
}

static void a_heartbeat_during_a_pass_is_looked_at_when_it_is_over(void **state)
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 1, 0);
	fake->by_hand = true;
	submit(&scene, 1, 3);
	settle(&scene);
	beat(&scene);
	assert_int_equal(fake->count, 1);
	fake_end(fake, NULL);
	settle(&scene);
	assert_int_equal(fake->count, 2);
	assert_pushed(fake, 1, 3, 1);
	scene_destroy(&scene);
}

static void clients_dont_wait_for_each_other(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 2, 0);
	scene.fakes[0].by_hand = true;
	submit(&scene, 1, 2);
	settle(&scene);
	submit(&scene, 3, 2);
	settle(&scene);
	assert_int_equal(scene.fakes[0].count, 1);
	assert_int_equal(scene.fakes[1].count, 2);
	assert_int_equal(report_sink_queue_size(scene.sink, "http"), 4);
	assert_int_equal(report_sink_queue_size(scene.sink, "s3"), 0);
	scene_destroy(&scene);
}

static void without_clients_events_are_taken_and_forgotten(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 0, 0);
	submit(&scene, 1, 100);
	report_sink_finish(scene.sink, NS_PER_S, note_finished, &scene);
	settle(&scene);
	assert_int_equal(scene.finished, 1);
	assert_int_equal(scene.dropped, 0);
	scene_destroy(&scene);
}

/* A sink that is down for minutes while events keep coming: nothing is lost, nothing comes twice. */
static void what_a_long_outage_holds_back_arrives_once_and_in_order(void **state)
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];
	unsigned expected = 1;

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 3, 1, 0);
	fake->fail_from = 1;
	fake->fail_to = 30;
	for (unsigned i = 0; i < 30; i++) {
		submit(&scene, 1 + 2 * i, 2);
		beat(&scene);
	}
	assert_true(scene.errors[0] >= 20);
	while (scene.queue_size[0] > 0) {
		submit(&scene, 61, 1);
		fake->fail_to = 0;
		beat(&scene);
		assert_true(scene.queue_size[0] == 0);
	}
	for (unsigned i = scene.errors[0]; i < fake->count; i++) {
		for (const char *at = fake->pushes[i].body; (at = strstr(at, "\"n\":")) != NULL; at++) {
			char number[16];

			snprintf(number, sizeof number, "\"n\":%u}", expected++);
			assert_int_equal(strncmp(at, number, strlen(number)), 0);
		}
	}
	assert_int_equal(expected, 62);
	assert_int_equal(scene.dropped, 0);
	scene_destroy(&scene);
}

static void a_full_queue_drops_the_newest_and_counts_them(void **state)
{
	struct report_progress progress;
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 1, 5);
	fake->by_hand = true;
	submit(&scene, 1, 8);
	assert_int_equal(scene.dropped, 3);
	assert_true(scene.queue_size[0] == 5);
	settle(&scene);
	assert_true(report_sink_progress(scene.sink, "http", &progress));
	assert_int_equal(progress.submitted, 8);
	assert_int_equal(progress.waiting, 5);
	assert_int_equal(progress.dropped, 3);
	assert_true(progress.pushing);
	assert_in_range(progress.push_began_ns, 1, loop_now_ns(scene.loop));
	assert_false(report_sink_progress(scene.sink, "s3", &progress));
	fake_end(fake, NULL);
	fake_end(fake, NULL);
	assert_true(report_sink_progress(scene.sink, "http", &progress));
	assert_int_equal(progress.waiting, 1);
	assert_false(progress.pushing);
	submit(&scene, 9, 1);
	assert_int_equal(scene.dropped, 3);
	settle(&scene);
	fake_end(fake, NULL);
	assert_pushed(fake, 0, 1, 2);
	assert_pushed(fake, 1, 3, 2);
	assert_int_equal(strncmp(fake->pushes[2].body, "{\"events\":[{\"n\":5},{\"n\":9}]}", 40), 0);
	scene_destroy(&scene);
}

/* All of it in completed batches, and none can come: what finds no room has it tried again, at the heartbeat. */
static void a_queue_that_filled_up_in_an_outage_is_sent_when_that_is_over(void **state)
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 1, 4);
	fake->fail_from = 1;
	fake->fail_to = 100;
	submit(&scene, 1, 4);
	settle(&scene);
	beat(&scene);
	assert_int_equal(fake->count, 1);
	submit(&scene, 5, 3);
	assert_int_equal(scene.dropped, 3);
	assert_int_equal(fake->count, 1);
	beat(&scene);
	assert_int_equal(fake->count, 2); /* once, though three were dropped */
	beat(&scene);
	assert_int_equal(fake->count, 2);
	fake->fail_to = 0;
	submit(&scene, 8, 1);
	beat(&scene);
	assert_int_equal(fake->count, 4);
	assert_pushed(fake, 2, 1, 2);
	assert_pushed(fake, 3, 3, 2);
	assert_true(scene.queue_size[0] == 0);
	assert_int_equal(scene.dropped, 4);
	scene_destroy(&scene);
}

/* ---- the end ---- */

static void what_waits_is_sent_at_the_end(void **state) /* TV18 */
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 10, 1, 0);
	submit(&scene, 1, 2);
	report_sink_finish(scene.sink, 25 * (uint64_t)NS_PER_S, note_finished, &scene);
	assert_int_equal(scene.finished, 0);
	settle(&scene);
	assert_int_equal(fake->count, 1);
	assert_pushed(fake, 0, 1, 2);
	assert_int_equal(scene.finished, 1);
	assert_int_equal(scene.dropped, 0);
	scene_destroy(&scene);
}

/* TV18, decision 13: the reference loses the events when the final request fails. */
static void a_failed_final_pass_is_tried_again_within_the_grace_period(void **state)
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 10, 1, 0);
	fake->fail_from = 1;
	fake->fail_to = 3;
	submit(&scene, 1, 2);
	report_sink_finish(scene.sink, 25 * (uint64_t)NS_PER_S, note_finished, &scene);
	for (int i = 0; i < 4; i++) {
		settle(&scene);
		assert_int_equal(scene.finished, i == 3);
		skip_time_ms(REPORT_RETRY_MOST_MS);
	}
	assert_int_equal(fake->count, 4);
	assert_pushed(fake, 3, 1, 2);
	assert_int_equal(scene.errors[0], 3);
	assert_int_equal(scene.dropped, 0);
	scene_destroy(&scene);
}

static void after_the_grace_period_the_rest_is_given_up_and_counted(void **state)
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 2, 0);
	fake->by_hand = true;
	submit(&scene, 1, 5);
	report_sink_finish(scene.sink, 25 * (uint64_t)NS_PER_S, note_finished, &scene);
	settle(&scene);
	assert_int_equal(scene.fakes[1].count, 3);
	assert_int_equal(scene.finished, 0);
	skip_time_ms(24900);
	settle(&scene);
	assert_int_equal(scene.finished, 0);
	skip_time_ms(100);
	settle(&scene);
	assert_int_equal(scene.finished, 1);
	assert_int_equal(fake->cancelled, 1);
	assert_int_equal(scene.dropped, 5);
	scene_destroy(&scene);
}

static void a_pass_under_way_ends_before_the_final_one(void **state)
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 1, 0);
	fake->by_hand = true;
	submit(&scene, 1, 3);
	settle(&scene);
	report_sink_finish(scene.sink, 25 * (uint64_t)NS_PER_S, note_finished, &scene);
	submit(&scene, 4, 1);
	settle(&scene);
	assert_int_equal(fake->count, 1);
	fake_end(fake, NULL);
	settle(&scene);
	assert_int_equal(scene.finished, 0);
	fake_end(fake, NULL);
	settle(&scene);
	assert_int_equal(scene.finished, 1);
	assert_pushed(fake, 0, 1, 2);
	assert_pushed(fake, 1, 3, 2);
	scene_destroy(&scene);
}

static void the_sink_may_be_destroyed_when_it_has_finished(void *context)
{
	struct scene *scene = context;

	scene->finished++;
	report_sink_destroy(scene->sink);
	scene->sink = NULL;
}

static void finishing_an_idle_sink_is_immediate(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene, REPORT_SEND_BATCHES, 2, 2, 0);
	report_sink_finish(scene.sink, 25 * (uint64_t)NS_PER_S, the_sink_may_be_destroyed_when_it_has_finished, &scene);
	report_sink_finish(scene.sink, 0, note_finished, NULL);
	settle(&scene);
	assert_int_equal(scene.finished, 1);
	assert_int_equal(scene.fakes[0].count, 0);
	assert_true(scene.duration[0] == 1e-06);
	scene_destroy(&scene);
}

/* ---- generation A ---- */

static void m9_the_older_sender_cuts_chunks_anew_at_each_tick(void **state)
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_AT_TICKS, 2, 1, 0);
	fake->fail_from = fake->fail_to = 2;
	submit(&scene, 1, 5);
	settle(&scene);
	assert_int_equal(fake->count, 0);
	beat(&scene);
	assert_int_equal(fake->count, 2);
	assert_true(scene.queue_size[0] == 3);
	beat(&scene);
	assert_int_equal(fake->count, 4);
	assert_true(scene.queue_size[0] == 0);
	assert_pushed(fake, 0, 1, 2);
	assert_pushed(fake, 1, 3, 2);
	assert_pushed(fake, 2, 3, 2);
	assert_pushed(fake, 3, 5, 1);
	assert_string_not_equal(fake->pushes[1].id, fake->pushes[2].id);
	assert_true(scene.duration[0] == -1);
	beat(&scene);
	assert_int_equal(fake->count, 4);
	scene_destroy(&scene);
}

static void what_came_since_a_failure_joins_its_chunk(void **state)
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_AT_TICKS, 4, 1, 0);
	fake->fail_from = fake->fail_to = 1;
	submit(&scene, 1, 1);
	beat(&scene);
	submit(&scene, 2, 2);
	beat(&scene);
	assert_int_equal(fake->count, 2);
	assert_pushed(fake, 0, 1, 1);
	assert_pushed(fake, 1, 1, 3);
	report_sink_finish(scene.sink, NS_PER_S, note_finished, &scene);
	submit(&scene, 4, 1);
	settle(&scene);
	assert_int_equal(scene.finished, 1);
	assert_pushed(fake, 2, 4, 1);
	scene_destroy(&scene);
}

static void ticks_missed_during_a_slow_drain_count_as_one(void **state)
{
	struct scene scene;
	struct fake *fake = &scene.fakes[0];

	(void)state;
	scene_init(&scene, REPORT_SEND_AT_TICKS, 1, 1, 0);
	fake->by_hand = true;
	submit(&scene, 1, 1);
	beat(&scene);
	skip_time_ms(5 * PUSH_EVERY_MS);
	settle(&scene);
	submit(&scene, 2, 1);
	fake_end(fake, "EOF");
	settle(&scene);
	assert_int_equal(fake->count, 2);
	fake_end(fake, "EOF");
	settle(&scene);
	assert_int_equal(fake->count, 2);
	beat(&scene);
	assert_int_equal(fake->count, 3);
	scene_destroy(&scene);
}

static void what_cant_be_is_refused(void **state)
{
	struct fake fake = { .client = { "s3", REPORT_GZIP_LINES, &FAKE } };
	struct report_sink_client client = { &fake.client, 1, 1, 1 };
	struct report_sink_options options = { .sending = REPORT_SEND_AT_TICKS };
	struct error err;

	(void)state;
	assert_null(report_sink_create(NULL, &options, &client, 1, &err));
	assert_true(fake.destroyed);
	client.push_every_ns = 0;
	options.sending = REPORT_SEND_BATCHES;
	assert_null(report_sink_create(NULL, &options, &client, 1, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_queue_size_is_told_at_the_start),
		cmocka_unit_test(full_batches_go_at_once_and_the_rest_at_the_heartbeat),
		cmocka_unit_test(a_failed_batch_waits_for_the_next_one_and_keeps_its_bytes),
		cmocka_unit_test(a_batch_completed_during_a_pass_goes_with_it_and_wakes_once_more),
		cmocka_unit_test(a_batch_completed_during_a_failing_pass_has_it_tried_again),
		cmocka_unit_test(a_heartbeat_during_a_pass_is_looked_at_when_it_is_over),
		cmocka_unit_test(clients_dont_wait_for_each_other),
		cmocka_unit_test(without_clients_events_are_taken_and_forgotten),
		cmocka_unit_test(what_a_long_outage_holds_back_arrives_once_and_in_order),
		cmocka_unit_test(a_full_queue_drops_the_newest_and_counts_them),
		cmocka_unit_test(a_queue_that_filled_up_in_an_outage_is_sent_when_that_is_over),
		cmocka_unit_test(what_waits_is_sent_at_the_end),
		cmocka_unit_test(a_failed_final_pass_is_tried_again_within_the_grace_period),
		cmocka_unit_test(after_the_grace_period_the_rest_is_given_up_and_counted),
		cmocka_unit_test(a_pass_under_way_ends_before_the_final_one),
		cmocka_unit_test(finishing_an_idle_sink_is_immediate),
		cmocka_unit_test(m9_the_older_sender_cuts_chunks_anew_at_each_tick),
		cmocka_unit_test(what_came_since_a_failure_joins_its_chunk),
		cmocka_unit_test(ticks_missed_during_a_slow_drain_count_as_one),
		cmocka_unit_test(what_cant_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
