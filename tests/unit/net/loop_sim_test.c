/*
 * The simulated loop by itself: time, order, what bytes do under faults, how peers end, and that a seed fixes it all.
 * (Above a stream, as everything in the product is.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/loop_sim.h"
#include "net/stream.h"

enum { PORT = 9100, RECEIVED_BYTES = 512 * 1024 };

/* A process that echoes, or keeps what it gets. */
struct side {
	struct loop *loop;
	struct stream_listener *listener;
	struct stream *stream;
	bool open, closed;
	struct error reason;
	uint64_t closed_ns;
	size_t received, reads;
	char data[RECEIVED_BYTES];
};

struct scene {
	struct sim_world *world;
	struct side client, server;
};

static struct address address_of(uint8_t last)
{
	return (struct address){ .bytes = { 10, 0, 0, last }, .port = PORT };
}

static void on_open(void *context)
{
	((struct side *)context)->open = true;
}

static void on_data(void *context, struct slice bytes)
{
	struct side *side = context;

	assert_true(side->received + bytes.length <= RECEIVED_BYTES);
	memcpy(side->data + side->received, bytes.data, bytes.length);
	side->received += bytes.length;
	side->reads++;
}

static void on_close(void *context, const struct error *err)
{
	struct side *side = context;

	side->stream = NULL;
	side->closed = true;
	side->reason = *err;
	side->closed_ns = loop_now_ns(side->loop);
}

static const struct stream_handler HANDLER = { .on_open = on_open, .on_data = on_data, .on_close = on_close };

static void on_accept(void *context, struct stream *stream)
{
	struct side *side = context;

	side->stream = stream;
	side->open = true;
	stream_set_handler(stream, &HANDLER, side);
}

static void begin(struct scene *scene, uint64_t seed, const struct sim_faults *faults)
{
	struct address server = address_of(2), client = address_of(1);
	struct stream_listener_options options = { .address = server };
	struct error err;

	scene->world = sim_world_create(seed, INT64_C(1700000000) * NS_PER_S, &err);
	assert_non_null(scene->world);
	sim_world_set_faults(scene->world, faults);
	scene->client.loop = loop_sim_create(scene->world, "client", &client, &err);
	scene->server.loop = loop_sim_create(scene->world, "server", &server, &err);
	assert_non_null(scene->client.loop);
	assert_non_null(scene->server.loop);
	scene->server.listener = stream_listen(scene->server.loop, &options, on_accept, &scene->server, &err);
	assert_non_null(scene->server.listener);
}

static void pass(struct scene *scene, uint64_t ms)
{
	uint64_t until_ns = sim_world_now_ns(scene->world) + ms * NS_PER_MS;
	struct error err;

	while (sim_world_step(scene->world, until_ns, &err))
		;
	assert_int_equal(err.code, ERROR_NONE);
	assert_true(sim_world_now_ns(scene->world) == until_ns);
}

static void dial(struct scene *scene)
{
	struct stream_connect_options options = { .host = "10.0.0.2", .port = PORT };
	struct error err;

	scene->client.stream = stream_connect(scene->client.loop, &options, &HANDLER, &scene->client, &err);
	assert_non_null(scene->client.stream);
}

static void end_side(struct side *side)
{
	if (side->stream != NULL)
		stream_close(side->stream);
	if (side->listener != NULL)
		stream_listener_close(side->listener);
	loop_destroy(side->loop);
}

static void end(struct scene *scene)
{
	end_side(&scene->client);
	end_side(&scene->server);
	assert_int_equal(sim_world_leaked_sockets(scene->world), 0);
	assert_int_equal(sim_world_leaked_timers(scene->world), 0);
	sim_world_destroy(scene->world);
}

static int set_up(void **state)
{
	*state = calloc(1, sizeof(struct scene));
	return *state != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void send_bytes(struct side *side, size_t length)
{
	char *bytes = malloc(length);
	struct error err;

	for (size_t i = 0; i < length; i++)
		bytes[i] = (char)(i * 31 + i / 251);
	assert_true(stream_write(side->stream, slice_from(bytes, length), &err));
	free(bytes);
}

static void assert_received(const struct side *side, size_t length)
{
	assert_int_equal(side->received, length);
	for (size_t i = 0; i < length; i++)
		if (side->data[i] != (char)(i * 31 + i / 251))
			fail_msg("byte %zu differs", i);
}

static const struct sim_faults PERFECT = { .delay_low_ns = NS_PER_MS, .delay_high_ns = 2 * NS_PER_MS };

/* ---- time ---- */

struct tick {
	struct loop *loop;
	struct loop_timer timer;
	unsigned count;
};

static void on_tick(void *context)
{
	struct tick *tick = context;

	tick->count++;
	loop_timer_start(tick->loop, &tick->timer, NS_PER_S, on_tick, tick);
}

static void an_hour_passes_at_once_and_timers_are_due_in_it(void **state)
{
	struct scene *scene = *state;
	struct tick tick = { .count = 0 };
	int64_t wall_ns;

	begin(scene, 1, &PERFECT);
	tick.loop = scene->client.loop;
	wall_ns = loop_wall_ns(tick.loop);
	loop_timer_start(tick.loop, &tick.timer, NS_PER_S, on_tick, &tick);
	pass(scene, 3600 * 1000);
	assert_in_range(tick.count, 3599, 3600);
	assert_true(loop_now_ns(tick.loop) == UINT64_C(3600) * NS_PER_S);
	assert_true(loop_wall_ns(tick.loop) - wall_ns == INT64_C(3600) * NS_PER_S);
	loop_sim_step_clock(tick.loop, -INT64_C(7200) * NS_PER_S);
	assert_true(loop_wall_ns(tick.loop) - wall_ns == -INT64_C(3600) * NS_PER_S);
	assert_true(loop_now_ns(tick.loop) == UINT64_C(3600) * NS_PER_S);
	/* Only its own clock was set. */
	assert_true(loop_wall_ns(scene->server.loop) - wall_ns == INT64_C(3600) * NS_PER_S);
	loop_timer_stop(tick.loop, &tick.timer);
	end(scene);
}

static void a_frozen_process_does_nothing_until_its_time(void **state)
{
	struct scene *scene = *state;
	struct tick tick = { .count = 0 };

	begin(scene, 1, &PERFECT);
	tick.loop = scene->client.loop;
	loop_timer_start(tick.loop, &tick.timer, NS_PER_S, on_tick, &tick);
	loop_sim_freeze(tick.loop, UINT64_C(10) * NS_PER_S);
	pass(scene, 9999);
	assert_int_equal(tick.count, 0);
	pass(scene, 100);
	assert_int_equal(tick.count, 1);
	loop_timer_stop(tick.loop, &tick.timer);
	end(scene);
}

static void a_loop_runs_by_itself_too(void **state)
{
	struct scene *scene = *state;
	struct tick tick = { .count = 0 };
	struct error err;

	begin(scene, 1, &PERFECT);
	tick.loop = scene->client.loop;
	loop_timer_start(tick.loop, &tick.timer, NS_PER_S, on_tick, &tick);
	for (int i = 0; i < 3; i++)
		assert_true(loop_turn(tick.loop, &err));
	assert_int_equal(tick.count, 3);
	loop_timer_stop(tick.loop, &tick.timer);
	/* Nothing can ever happen now: an error, not an endless wait. */
	assert_false(loop_turn(tick.loop, &err));
	end(scene);
}

/* ---- bytes ---- */

static void bytes_arrive_after_a_delay(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1, &PERFECT);
	dial(scene);
	pass(scene, 1);
	assert_false(scene->client.open);
	pass(scene, 10);
	assert_true(scene->client.open);
	send_bytes(&scene->client, 300000);
	pass(scene, 100);
	assert_received(&scene->server, 300000);
	send_bytes(&scene->server, 1000);
	pass(scene, 10);
	assert_received(&scene->client, 1000);
	assert_true(loop_sim_bytes_sent(scene->client.loop) == 300000);
	end(scene);
}

static void cut_merged_and_late_bytes_are_the_same_bytes(void **state)
{
	const struct sim_faults faults = { .delay_high_ns = 50 * NS_PER_MS,
		                           .split = 700000,
		                           .single_bytes = 200000,
		                           .unmerged = 500000,
		                           .short_writes = 700000,
		                           .lost = 100000,
		                           .stalled = 50000,
		                           .stall_ns = 2 * (uint64_t)NS_PER_S };
	static const enum sim_fault SEEN[] = { SIM_FAULT_SPLIT,       SIM_FAULT_SINGLE_BYTE, SIM_FAULT_UNMERGED,
		                               SIM_FAULT_SHORT_WRITE, SIM_FAULT_LOST,        SIM_FAULT_STALLED };
	struct scene *scene = *state;

	begin(scene, 7, &faults);
	dial(scene);
	pass(scene, 60000);
	send_bytes(&scene->client, 300000);
	pass(scene, 600000);
	assert_received(&scene->server, 300000);
	assert_true(scene->server.reads > 5);
	for (size_t i = 0; i < sizeof SEEN / sizeof SEEN[0]; i++)
		if (sim_world_fault_count(scene->world, SEEN[i]) == 0)
			fail_msg("no %s", sim_fault_name(SEEN[i]));
	end(scene);
}

static void a_reader_that_pauses_stops_the_writer(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1, &PERFECT);
	dial(scene);
	pass(scene, 10);
	stream_pause(scene->server.stream);
	send_bytes(&scene->client, 500000);
	pass(scene, 1000);
	assert_in_range(stream_pending_bytes(scene->client.stream), 1, 300000);
	stream_resume(scene->server.stream);
	pass(scene, 1000);
	assert_int_equal(stream_pending_bytes(scene->client.stream), 0);
	assert_received(&scene->server, 500000);
	end(scene);
}

/* ---- ends ---- */

static void an_orderly_end_comes_after_the_bytes(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1, &PERFECT);
	dial(scene);
	pass(scene, 10);
	send_bytes(&scene->client, 1000);
	stream_finish(scene->client.stream, NS_PER_S);
	scene->client.stream = NULL;
	pass(scene, 100);
	assert_received(&scene->server, 1000);
	assert_true(scene->server.closed);
	assert_int_equal(scene->server.reason.code, ERROR_ENDED);
	end(scene);
}

static void a_reset_is_found_as_one(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1, &PERFECT);
	dial(scene);
	pass(scene, 10);
	stream_abort(scene->client.stream);
	scene->client.stream = NULL;
	pass(scene, 100);
	assert_true(scene->server.closed);
	assert_string_equal(error_root(&scene->server.reason), "connection reset by peer");
	end(scene);
}

static void nobody_listens_and_the_connect_is_refused(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1, &PERFECT);
	stream_listener_close(scene->server.listener);
	scene->server.listener = NULL;
	dial(scene);
	pass(scene, 100);
	assert_true(scene->client.closed);
	assert_string_equal(error_root(&scene->client.reason), "connection refused");
	end(scene);
}

static void a_killed_process_ends_its_connections_and_nothing_of_it_gets_out(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1, &PERFECT);
	dial(scene);
	pass(scene, 10);
	loop_sim_crash(scene->client.loop, SIM_CRASH_END);
	send_bytes(&scene->client, 10);
	pass(scene, 100);
	assert_int_equal(scene->server.received, 0);
	assert_true(scene->server.closed);
	assert_false(scene->client.closed);
	end(scene);
}

/* As a kernel with the keep-alive of limits.h finds it. */
static void assert_found_dead(const struct scene *scene, const struct side *side, uint64_t since_ns)
{
	(void)scene;
	assert_true(side->closed);
	assert_string_equal(error_root(&side->reason), "connection timed out");
	assert_in_range((side->closed_ns - since_ns) / NS_PER_MS, 20000, 30100);
}

static void a_machine_that_vanished_is_found_dead_within_30_s(void **state)
{
	struct scene *scene = *state;
	uint64_t since_ns;

	begin(scene, 1, &PERFECT);
	dial(scene);
	pass(scene, 10);
	since_ns = sim_world_now_ns(scene->world);
	loop_sim_crash(scene->client.loop, SIM_CRASH_SILENT);
	pass(scene, 31000);
	assert_found_dead(scene, &scene->server, since_ns);
	end(scene);
}

static void a_short_partition_delays_and_a_long_one_kills(void **state)
{
	struct scene *scene = *state;
	uint64_t since_ns;

	begin(scene, 1, &PERFECT);
	dial(scene);
	pass(scene, 10);
	loop_sim_partition(scene->client.loop, scene->server.loop,
	                   sim_world_now_ns(scene->world) + UINT64_C(15) * NS_PER_S);
	send_bytes(&scene->client, 1000);
	pass(scene, 14900);
	assert_int_equal(scene->server.received, 0);
	pass(scene, 500);
	assert_received(&scene->server, 1000);
	pass(scene, 40000);
	assert_false(scene->client.closed);
	since_ns = sim_world_now_ns(scene->world);
	loop_sim_partition(scene->client.loop, NULL, since_ns + UINT64_C(100) * NS_PER_S);
	pass(scene, 31000);
	assert_found_dead(scene, &scene->client, since_ns);
	end(scene);
}

static void a_partition_may_end_early(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1, &PERFECT);
	dial(scene);
	pass(scene, 10);
	loop_sim_partition(scene->client.loop, NULL, sim_world_now_ns(scene->world) + UINT64_C(1000) * NS_PER_S);
	send_bytes(&scene->client, 1000);
	pass(scene, 5000);
	sim_world_heal(scene->world);
	pass(scene, 500);
	assert_received(&scene->server, 1000);
	end(scene);
}

static void an_answer_is_cut_after_so_many_bytes(void **state)
{
	struct scene *scene = *state;

	begin(scene, 1, &PERFECT);
	dial(scene);
	pass(scene, 10);
	assert_true(loop_sim_cut_connection(scene->client.loop, 700, false));
	send_bytes(&scene->server, 1000);
	pass(scene, 100);
	assert_received(&scene->client, 700);
	assert_true(scene->client.closed);
	assert_string_equal(error_root(&scene->client.reason), "connection reset by peer");
	end(scene);
}

/* ---- calls that fail ---- */

static void each_socket_call_fails_once_and_nothing_is_left(void **state)
{
	unsigned long calls = 1;

	for (unsigned long n = 1; n <= calls; n++) {
		struct scene *scene = *state;
		struct stream_connect_options options = { .host = "10.0.0.2", .port = PORT };
		struct error err;
		unsigned long blocks = memory_block_count();

		memset(scene, 0, sizeof *scene);
		begin(scene, 1, &PERFECT);
		loop_sim_fail_call(scene->client.loop, n);
		scene->client.stream = stream_connect(scene->client.loop, &options, &HANDLER, &scene->client, &err);
		pass(scene, 10);
		if (scene->client.stream != NULL && stream_write(scene->client.stream, SLICE("hello"), &err))
			pass(scene, 10);
		if (scene->server.stream != NULL && stream_write(scene->server.stream, SLICE("hello"), &err))
			pass(scene, 10);
		if (loop_sim_call_count(scene->client.loop) >= n && n == calls)
			calls++;
		assert_true(n == calls || scene->client.closed || scene->client.received == 5);
		end(scene);
		assert_int_equal(memory_block_count(), blocks);
	}
	assert_in_range(calls, 5, 40);
}

/* ---- names ---- */

static void on_lookup(void *context, const struct address *addresses, size_t count, const struct error *err)
{
	struct side *side = context;

	side->closed = true;
	if (count == 0)
		side->reason = *err;
	else
		side->received = addresses[0].bytes[3];
}

static void names_are_those_of_the_world(void **state)
{
	struct scene *scene = *state;
	struct address address = address_of(2);
	struct error err;

	begin(scene, 1, &PERFECT);
	assert_true(sim_world_add_name(scene->world, "api", &address));
	assert_non_null(loop_lookup(scene->client.loop, "api", 1, NS_PER_S, on_lookup, &scene->client, &err));
	assert_non_null(loop_lookup(scene->server.loop, "apo", 1, NS_PER_S, on_lookup, &scene->server, &err));
	pass(scene, 1000);
	assert_int_equal(scene->client.received, 2);
	assert_true(scene->server.closed);
	assert_string_equal(scene->server.reason.text, "no such host");
	end(scene);
}

/* ---- the seed ---- */

static uint64_t hash_of(struct scene *scene, uint64_t seed)
{
	const struct sim_faults faults = { .delay_high_ns = 50 * NS_PER_MS,
		                           .split = 300000,
		                           .single_bytes = 100000,
		                           .short_writes = 300000,
		                           .lost = 100000,
		                           .reset = 20000 };
	uint64_t hash;

	memset(scene, 0, sizeof *scene);
	begin(scene, seed, &faults);
	dial(scene);
	pass(scene, 10000);
	if (scene->client.stream != NULL)
		send_bytes(&scene->client, 100000);
	pass(scene, 100000);
	hash = sim_world_hash(scene->world);
	assert_true(sim_world_event_count(scene->world) > 1);
	end(scene);
	return hash;
}

static void a_seed_fixes_everything(void **state)
{
	struct scene *scene = *state;
	uint64_t first = hash_of(scene, 5);

	assert_true(hash_of(scene, 5) == first);
	assert_true(hash_of(scene, 6) != first);
}

static void count_line(void *context, const char *text)
{
	unsigned *count = context;

	assert_true(strlen(text) > 13);
	++*count;
}

static void the_last_events_are_kept(void **state)
{
	struct scene *scene = *state;
	unsigned kept = 0, followed = 0;

	begin(scene, 1, &PERFECT);
	sim_world_follow(scene->world, count_line, &followed);
	for (int i = 0; i < 2 * SIM_TRACE_KEPT; i++)
		sim_world_note(scene->world, "note %d", i);
	sim_world_last_events(scene->world, count_line, &kept);
	assert_int_equal(kept, SIM_TRACE_KEPT);
	assert_int_equal(followed, 2 * SIM_TRACE_KEPT);
	end(scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_hour_passes_at_once_and_timers_are_due_in_it),
		TEST(a_frozen_process_does_nothing_until_its_time),
		TEST(a_loop_runs_by_itself_too),
		TEST(bytes_arrive_after_a_delay),
		TEST(cut_merged_and_late_bytes_are_the_same_bytes),
		TEST(a_reader_that_pauses_stops_the_writer),
		TEST(an_orderly_end_comes_after_the_bytes),
		TEST(a_reset_is_found_as_one),
		TEST(nobody_listens_and_the_connect_is_refused),
		TEST(a_killed_process_ends_its_connections_and_nothing_of_it_gets_out),
		TEST(a_machine_that_vanished_is_found_dead_within_30_s),
		TEST(a_short_partition_delays_and_a_long_one_kills),
		TEST(a_partition_may_end_early),
		TEST(an_answer_is_cut_after_so_many_bytes),
		TEST(each_socket_call_fails_once_and_nothing_is_left),
		TEST(names_are_those_of_the_world),
		TEST(a_seed_fixes_everything),
		TEST(the_last_events_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
