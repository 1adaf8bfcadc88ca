#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/loop_internal.h"
#include "peer.h"

/* What ran, in order. */
struct diary {
	struct loop *loop;
	char text[64];
	struct loop_task tasks[4];
	struct loop_timer timers[4];
};

static void note(struct diary *diary, char c)
{
	size_t length = strlen(diary->text);

	assert_true(length + 1 < sizeof diary->text);
	diary->text[length] = c;
}

static void note_a(void *context)
{
	note(context, 'a');
}

static void note_b(void *context)
{
	note(context, 'b');
}

static void note_c(void *context)
{
	note(context, 'c');
}

static void turn(struct loop *loop)
{
	struct error err;

	assert_true(loop_turn(loop, &err));
}

/* ---- timers ---- */

static void timers_run_in_the_order_of_their_time_and_not_early(void **state)
{
	struct diary diary = { .loop = new_loop() };
	uint64_t start_ns = clock_monotonic_ns();

	(void)state;
	loop_timer_start(diary.loop, &diary.timers[0], 30 * NS_PER_MS, note_c, &diary);
	loop_timer_start(diary.loop, &diary.timers[1], 10 * NS_PER_MS, note_a, &diary);
	loop_timer_start(diary.loop, &diary.timers[2], 20 * NS_PER_MS, note_b, &diary);
	assert_true(loop_timer_running(&diary.timers[0]));
	TURN_UNTIL(diary.loop, strlen(diary.text) == 3);
	assert_string_equal(diary.text, "abc");
	assert_true(clock_monotonic_ns() - start_ns >= 30 * NS_PER_MS);
	assert_false(loop_timer_running(&diary.timers[0]));
	loop_destroy(diary.loop);
}

static void restart_at_once(void *context)
{
	struct diary *diary = context;

	note(diary, 'r');
	loop_timer_start(diary->loop, &diary->timers[0], 0, restart_at_once, diary);
}

static void a_timer_that_restarts_itself_runs_once_a_turn(void **state)
{
	struct diary diary = { .loop = new_loop() };

	(void)state;
	loop_timer_start(diary.loop, &diary.timers[0], 0, restart_at_once, &diary);
	loop_timer_start(diary.loop, &diary.timers[1], 0, note_a, &diary);
	turn(diary.loop);
	assert_string_equal(diary.text, "ra");
	turn(diary.loop);
	assert_string_equal(diary.text, "rar");
	loop_timer_stop(diary.loop, &diary.timers[0]);
	loop_timer_stop(diary.loop, &diary.timers[0]);
	loop_destroy(diary.loop);
}

static void stop_the_others(void *context)
{
	struct diary *diary = context;

	note(diary, 's');
	for (int i = 0; i < 4; i++)
		loop_timer_stop(diary->loop, &diary->timers[i]);
}

static void a_timer_stopped_by_another_in_the_same_turn_does_not_run(void **state)
{
	struct diary diary = { .loop = new_loop() };

	(void)state;
	loop_timer_start(diary.loop, &diary.timers[0], 0, stop_the_others, &diary);
	loop_timer_start(diary.loop, &diary.timers[1], 0, note_a, &diary);
	turn(diary.loop);
	assert_string_equal(diary.text, "s");
	loop_destroy(diary.loop);
}

static void starting_a_running_timer_moves_it(void **state)
{
	struct diary diary = { .loop = new_loop() };

	(void)state;
	loop_timer_start(diary.loop, &diary.timers[0], 3600ULL * NS_PER_S, note_a, &diary);
	loop_timer_start(diary.loop, &diary.timers[0], 0, note_b, &diary);
	turn(diary.loop);
	assert_string_equal(diary.text, "b");
	loop_timer_start(diary.loop, &diary.timers[0], UINT64_MAX, note_a, &diary); /* no overflow into the past */
	turn_for(diary.loop, 5);
	assert_string_equal(diary.text, "b");
	loop_timer_stop(diary.loop, &diary.timers[0]);
	loop_destroy(diary.loop);
}

static void a_loop_that_did_not_turn_for_long_starts_timers_from_now(void **state)
{
	struct diary diary = { .loop = new_loop() };
	uint64_t start_ns;

	(void)state;
	turn_for(diary.loop, 1);
	usleep(30 * 1000);
	start_ns = clock_monotonic_ns();
	assert_true(loop_now_ns(diary.loop) >= start_ns);
	loop_timer_start(diary.loop, &diary.timers[0], 20 * NS_PER_MS, note_a, &diary);
	TURN_UNTIL(diary.loop, diary.text[0] == 'a');
	assert_true(clock_monotonic_ns() - start_ns >= 20 * NS_PER_MS);
	loop_destroy(diary.loop);
}

static void without_memory_timers_run_all_the_same(void **state)
{
	enum { MANY = 500 };
	static struct loop_timer timers[MANY];
	struct diary diary = { .loop = new_loop() };
	unsigned counts[2] = { 0 };

	(void)state;
	for (unsigned failing = 0; failing < 2; failing++) {
		memset(timers, 0, sizeof timers);
		for (size_t i = 0; i < MANY; i++) {
			memory_fail_at(failing);
			loop_timer_start(diary.loop, &timers[i], 3600ULL * NS_PER_S, note_a, &diary);
			if (timers[i].waits_outside)
				counts[failing]++;
			memory_fail_at(0);
		}
		for (size_t i = 0; i < MANY; i++) {
			assert_true(loop_timer_running(&timers[i]));
			loop_timer_stop(diary.loop, &timers[i]);
			assert_false(loop_timer_running(&timers[i]));
		}
		loop_destroy(diary.loop);
		diary.loop = new_loop();
	}
	assert_int_equal(counts[0], 0);
	assert_true(counts[1] > 0);
	memory_fail_at(1);
	loop_timer_start(diary.loop, &diary.timers[0], 2 * NS_PER_MS, note_a, &diary);
	memory_fail_at(0);
	assert_true(diary.timers[0].waits_outside);
	loop_timer_start(diary.loop, &diary.timers[1], 20 * NS_PER_MS, note_b, &diary);
	TURN_UNTIL(diary.loop, strlen(diary.text) == 2);
	assert_string_equal(diary.text, "ab");
	loop_destroy(diary.loop);
}

/* ---- tasks ---- */

static void queue_more(void *context)
{
	struct diary *diary = context;

	note(diary, 'q');
	loop_run_soon(diary->loop, &diary->tasks[1], note_b, diary);
}

static void tasks_run_in_order_once_and_new_ones_in_the_next_turn(void **state)
{
	struct diary diary = { .loop = new_loop() };

	(void)state;
	loop_run_soon(diary.loop, &diary.tasks[0], queue_more, &diary);
	loop_run_soon(diary.loop, &diary.tasks[2], note_c, &diary);
	loop_run_soon(diary.loop, &diary.tasks[0], queue_more, &diary);
	turn(diary.loop);
	assert_string_equal(diary.text, "qc");
	turn(diary.loop);
	assert_string_equal(diary.text, "qcb");
	loop_destroy(diary.loop);
}

static void cancel_the_last(void *context)
{
	struct diary *diary = context;

	note(diary, 'x');
	loop_task_cancel(diary->loop, &diary->tasks[2]);
}

static void a_cancelled_task_does_not_run_and_the_rest_does(void **state)
{
	struct diary diary = { .loop = new_loop() };

	(void)state;
	loop_run_soon(diary.loop, &diary.tasks[0], cancel_the_last, &diary);
	loop_run_soon(diary.loop, &diary.tasks[1], note_b, &diary);
	loop_run_soon(diary.loop, &diary.tasks[2], note_c, &diary);
	turn(diary.loop);
	assert_string_equal(diary.text, "xb");
	/* alone: the one at hand and the last are neighbours */
	loop_run_soon(diary.loop, &diary.tasks[0], cancel_the_last, &diary);
	loop_run_soon(diary.loop, &diary.tasks[2], note_c, &diary);
	turn(diary.loop);
	assert_string_equal(diary.text, "xbx");
	loop_task_cancel(diary.loop, &diary.tasks[2]);
	loop_destroy(diary.loop);
}

/* ---- ends ---- */

struct thing {
	struct loop *loop;
	struct loop_garbage garbage;
	struct loop_leftover leftover;
	char *diary;
};

static void release_thing(void *owner)
{
	struct thing *thing = owner;

	strcat(thing->diary, "r");
	memory_release(thing);
}

static void end_thing(void *owner)
{
	struct thing *thing = owner;

	strcat(thing->diary, "e");
	loop_leftover_remove(thing->loop, &thing->leftover);
	loop_release_later(thing->loop, &thing->garbage, release_thing, thing);
}

static void what_is_released_lives_until_the_end_of_the_turn(void **state)
{
	char text[8] = "";
	struct thing *thing = memory_allocate(sizeof *thing);
	struct loop *loop = new_loop();
	struct loop_task task = { 0 };

	(void)state;
	*thing = (struct thing){ .loop = loop, .diary = text };
	loop_run_soon(loop, &task, end_thing, thing);
	assert_string_equal(text, "");
	turn(loop);
	assert_string_equal(text, "er");
	loop_destroy(loop);
}

static void destroying_the_loop_ends_what_was_left_over(void **state)
{
	char text[8] = "";
	struct loop *loop = new_loop();

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct thing *thing = memory_allocate(sizeof *thing);

		*thing = (struct thing){ .loop = loop, .diary = text };
		loop_leftover_add(loop, &thing->leftover, end_thing, thing);
	}
	loop_destroy(loop);
	assert_string_equal(text, "eeerrr");
}

static void stop_loop(void *context)
{
	loop_stop(context);
}

static void running_ends_with_stop_and_can_be_repeated(void **state)
{
	struct loop *loop = new_loop();
	struct loop_task task = { 0 };
	struct error err;
	uint64_t turns = loop_turn_count(loop);

	(void)state;
	for (int i = 0; i < 2; i++) {
		loop_run_soon(loop, &task, stop_loop, loop);
		assert_true(loop_run(loop, &err));
	}
	assert_int_equal(loop_turn_count(loop), turns + 2);
	loop_destroy(loop);
}

/* ---- descriptors ---- */

struct watcher {
	struct loop_watch *watch;
	int descriptor;
	unsigned calls;
	unsigned stop_after;
	bool reads;
};

static void watched(void *context)
{
	struct watcher *watcher = context;
	char byte;

	watcher->calls++;
	if (watcher->reads)
		assert_int_equal(read(watcher->descriptor, &byte, 1), 1);
	if (watcher->calls == watcher->stop_after) {
		loop_watch_stop(watcher->watch);
		watcher->watch = NULL;
	}
}

static void a_watch_calls_while_its_descriptor_is_ready(void **state)
{
	struct loop *loop = new_loop();
	struct watcher watcher = { .reads = true };
	struct error err;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	watcher.descriptor = ends[0];
	watcher.watch = loop_watch_descriptor(loop, ends[0], SOCKET_READ, watched, &watcher, &err);
	assert_non_null(watcher.watch);
	turn_for(loop, 5);
	assert_int_equal(watcher.calls, 0);
	assert_int_equal(write(ends[1], "abc", 3), 3);
	TURN_UNTIL(loop, watcher.calls == 3);
	turn_for(loop, 5);
	assert_int_equal(watcher.calls, 3);
	loop_watch_stop(watcher.watch);
	loop_watch_stop(NULL);
	close(ends[0]);
	close(ends[1]);
	loop_destroy(loop);
}

static void a_plain_file_is_always_ready_and_a_watch_may_stop_itself(void **state)
{
	char path[] = "/tmp/loop_test_XXXXXX";
	int descriptor = mkstemp(path);
	struct watcher watcher = { .stop_after = 3 };
	struct loop *loop = new_loop();
	struct error err;

	(void)state;
	assert_true(descriptor >= 0);
	watcher.watch = loop_watch_descriptor(loop, descriptor, SOCKET_WRITE, watched, &watcher, &err);
	assert_non_null(watcher.watch);
	TURN_UNTIL(loop, watcher.watch == NULL);
	turn_for(loop, 5);
	assert_int_equal(watcher.calls, 3);
	close(descriptor);
	unlink(path);
	loop_destroy(loop);
}

static void watching_a_closed_descriptor_is_an_error(void **state)
{
	struct loop *loop = new_loop();
	struct error err;

	(void)state;
	assert_null(loop_watch_descriptor(loop, 9999, SOCKET_READ, watched, NULL, &err));
	assert_string_equal(error_root(&err), "bad file descriptor");
	loop_destroy(loop);
}

/* Two that are ready in one wait: each stops the other. */
struct pair {
	struct watcher *other;
	struct watcher self;
};

static void stop_other(void *context)
{
	struct pair *pair = context;

	pair->self.calls++;
	if (pair->other->watch != NULL)
		loop_watch_stop(pair->other->watch);
	pair->other->watch = NULL;
}

static void what_is_stopped_is_not_told_what_was_ready_already(void **state)
{
	struct loop *loop = new_loop();
	struct pair pairs[2] = { 0 };
	struct error err;
	int ends[2][2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe(ends[i]), 0);
		assert_int_equal(write(ends[i][1], "x", 1), 1);
		pairs[i].other = &pairs[1 - i].self;
		pairs[i].self.watch = loop_watch_descriptor(loop, ends[i][0], SOCKET_READ, stop_other, &pairs[i], &err);
		assert_non_null(pairs[i].self.watch);
	}
	turn(loop);
	assert_int_equal(pairs[0].self.calls + pairs[1].self.calls, 1);
	for (int i = 0; i < 2; i++) {
		loop_watch_stop(pairs[i].self.watch);
		close(ends[i][0]);
		close(ends[i][1]);
	}
	loop_destroy(loop);
}

/* ---- chance and time ---- */

static void random_bytes_differ_and_large_requests_are_filled(void **state)
{
	enum { LENGTH = 1000 };
	struct loop *loop = new_loop();
	unsigned char a[LENGTH] = { 0 }, b[LENGTH] = { 0 };
	static const unsigned char ZEROS[32];

	(void)state;
	assert_true(loop_random(loop, a, LENGTH));
	assert_true(loop_random(loop, b, LENGTH));
	assert_memory_not_equal(a, b, LENGTH);
	assert_memory_not_equal(a + LENGTH - 32, ZEROS, 32);
	assert_true(rng_next(loop_rng(loop)) != rng_next(loop_rng(loop)));
	loop_destroy(loop);
}

static void the_wall_clock_is_of_this_century(void **state)
{
	struct loop *loop = new_loop();

	(void)state;
	assert_true(loop_wall_ns(loop) / NS_PER_S > 1600000000);
	loop_destroy(loop);
}

static void without_memory_there_is_no_loop_and_no_leak(void **state)
{
	size_t before = open_descriptors();
	struct error err;

	(void)state;
	memory_fail_at(1);
	assert_null(loop_epoll_create(&err));
	memory_fail_at(0);
	assert_int_equal(err.code, ERROR_NO_MEMORY);
	assert_int_equal(open_descriptors(), before);
	loop_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_run_in_the_order_of_their_time_and_not_early),
		cmocka_unit_test(a_timer_that_restarts_itself_runs_once_a_turn),
		cmocka_unit_test(a_timer_stopped_by_another_in_the_same_turn_does_not_run),
		cmocka_unit_test(starting_a_running_timer_moves_it),
		cmocka_unit_test(a_loop_that_did_not_turn_for_long_starts_timers_from_now),
		cmocka_unit_test(without_memory_timers_run_all_the_same),
		cmocka_unit_test(tasks_run_in_order_once_and_new_ones_in_the_next_turn),
		cmocka_unit_test(a_cancelled_task_does_not_run_and_the_rest_does),
		cmocka_unit_test(what_is_released_lives_until_the_end_of_the_turn),
		cmocka_unit_test(destroying_the_loop_ends_what_was_left_over),
		cmocka_unit_test(running_ends_with_stop_and_can_be_repeated),
		cmocka_unit_test(a_watch_calls_while_its_descriptor_is_ready),
		cmocka_unit_test(a_plain_file_is_always_ready_and_a_watch_may_stop_itself),
		cmocka_unit_test(watching_a_closed_descriptor_is_an_error),
		cmocka_unit_test(what_is_stopped_is_not_told_what_was_ready_already),
		cmocka_unit_test(random_bytes_differ_and_large_requests_are_filled),
		cmocka_unit_test(the_wall_clock_is_of_this_century),
		cmocka_unit_test(without_memory_there_is_no_loop_and_no_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
