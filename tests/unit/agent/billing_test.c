#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/billing.h"
#include "base/arena.h"
#include "gen/events.gen.h"
#include "tests/unit/agent/agent_fixture.h"

enum { VMS_MAX = 150, EVENTS_MAX = 640, TEXT_BYTES = 128, ARENA_BYTES = 256 * 1024 };

static const int64_t SECOND = NS_PER_S;

/* An event that was submitted. */
struct submitted {
	char key[TEXT_BYTES], metric[TEXT_BYTES], endpoint[TEXT_BYTES];
	int64_t start_ns, stop_ns;
	uint64_t value;
};

struct world {
	struct fixture fixture;
	struct agent_billing_config config;
	struct billing *billing;
	bool failing;
	struct vm_watch_vm vms[VMS_MAX];
	size_t vm_count;
	char uids[VMS_MAX][16];
	struct submitted events[EVENTS_MAX];
	size_t event_count;
};

static bool failing(void *context)
{
	return ((const struct world *)context)->failing;
}

static bool next(void *context, size_t *position, struct vm_watch_vm *ret_vm)
{
	const struct world *world = context;

	assert_false(world->failing);
	if (*position == world->vm_count)
		return false;
	*ret_vm = world->vms[(*position)++];
	return true;
}

static void copy(char text[TEXT_BYTES], struct slice value)
{
	assert_true(value.length < TEXT_BYTES);
	(void)snprintf(text, TEXT_BYTES, "%.*s", SLICE_ARGS(value));
}

static void submit(void *context, struct slice json)
{
	struct world *world = context;
	struct submitted *submitted = &world->events[world->event_count++];
	struct events_billing_event event;
	struct arena arena;
	struct error err;

	assert_true(world->event_count <= EVENTS_MAX);
	arena_init(&arena, ARENA_BYTES);
	assert_true(events_billing_event_from_json(json, &arena, &event, &err));
	assert_true(rfc3339_parse(event.start_time, &submitted->start_ns, &err));
	assert_true(rfc3339_parse(event.stop_time, &submitted->stop_ns, &err));
	copy(submitted->key, event.idempotency_key);
	copy(submitted->metric, event.metric);
	copy(submitted->endpoint, event.endpoint_id);
	submitted->value = event.value;
	arena_destroy(&arena);
}

static struct vm_watch_vm *add_vm(struct world *world, const char *uid, const char *endpoint, uint32_t cpu_milli)
{
	struct vm_watch_vm *vm = &world->vms[world->vm_count++];

	*vm = (struct vm_watch_vm){
		.uid = slice_of(uid),
		.phase = SLICE("Running"),
		.has_status_cpu = true,
		.status_cpu_milli = cpu_milli,
		.has_billing_endpoint_id = endpoint != NULL,
		.billing_endpoint_id = slice_of(endpoint),
	};
	return vm;
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	fixture_begin(&world->fixture);
	world->config = (struct agent_billing_config){
		.cpu_metric_name = SLICE("cpu"),
		.active_time_metric_name = SLICE("active"),
		.collect_every_ns = 4 * (uint64_t)SECOND,
		.accumulate_every_ns = 24 * (uint64_t)SECOND,
	};
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	billing_destroy(world->billing);
	fixture_end(&world->fixture);
	free(world);
	return 0;
}

static void begin(struct world *world)
{
	const struct billing_options options = {
		.loop = world->fixture.loop,
		.config = &world->config,
		.host_name = SLICE("agent-x7k2p"),
		.source = { .context = world, .failing = failing, .next = next },
		.metrics = world->fixture.metrics,
		.log_sink = world->fixture.log_sink,
		.submit = submit,
		.submit_context = world,
	};
	struct error err;

	fixture_turn(&world->fixture);
	world->billing = billing_start(&options, &err);
	assert_non_null(world->billing);
}

/* From T0, ten milliseconds past that time: whatever is due then has happened. */
static void until(struct world *world, uint64_t *passed_ms, double seconds)
{
	uint64_t target_ms = (uint64_t)(seconds * 1000) + 10;

	fixture_pass(&world->fixture, target_ms - *passed_ms);
	*passed_ms = target_ms;
}

static void assert_event(const struct world *world, size_t index, const char *endpoint, const char *metric,
                         uint64_t value)
{
	const struct submitted *event = &world->events[index];

	assert_true(index < world->event_count);
	assert_string_equal(event->endpoint, endpoint);
	assert_string_equal(event->metric, metric);
	assert_int_equal(event->value, value);
}

static void one_turn(struct world *world)
{
	struct loop_task task = { 0 };
	struct error err;

	loop_run_soon(world->fixture.loop, &task, fixture_do_nothing, NULL);
	assert_true(loop_turn(world->fixture.loop, &err));
	loop_task_cancel(world->fixture.loop, &task);
}

/* Steps of the test's clock are 100 ms. */
static void assert_near(int64_t actual_ns, int64_t expected_ns)
{
	assert_true(actual_ns >= expected_ns - SECOND / 5 && actual_ns <= expected_ns + SECOND / 5);
}

static void tv10_windows_and_what_is_in_them(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;
	int64_t start_ns = loop_wall_ns(world->fixture.loop);

	add_vm(world, "u", "ep", 250);
	begin(world);
	until(world, &passed_ms, 24.4);
	assert_int_equal(world->event_count, 0);
	until(world, &passed_ms, 24.5);
	assert_int_equal(world->event_count, 2);
	assert_event(world, 0, "ep", "cpu", 6);
	assert_event(world, 1, "ep", "active", 24);
	assert_near(world->events[0].start_ns, start_ns + SECOND / 2);
	assert_near(world->events[0].stop_ns, start_ns + 49 * SECOND / 2);
	assert_true(world->events[1].start_ns == world->events[0].start_ns);
	assert_true(world->events[1].stop_ns == world->events[0].stop_ns);
	until(world, &passed_ms, 48.5);
	assert_int_equal(world->event_count, 4);
	assert_event(world, 2, "ep", "cpu", 6);
	assert_event(world, 3, "ep", "active", 24);
	/* Without a gap. */
	assert_true(world->events[2].start_ns == world->events[0].stop_ns);
	until(world, &passed_ms, 72.5);
	until(world, &passed_ms, 73);
	world->vm_count = 0;
	until(world, &passed_ms, 97);
	assert_int_equal(world->event_count, 6);
}

static void tv10_a_vm_that_is_deleted(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;

	add_vm(world, "u", "ep", 250);
	begin(world);
	until(world, &passed_ms, 25);
	world->vm_count = 0;
	until(world, &passed_ms, 49);
	assert_int_equal(world->event_count, 2);
}

static void keys_number_the_events_of_a_drain(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;
	char end[32];

	add_vm(world, "u", "ep-a", 250);
	add_vm(world, "v", "ep-b", 1000);
	begin(world);
	until(world, &passed_ms, 48.5);
	assert_int_equal(world->event_count, 8);
	for (size_t i = 0; i < 8; i++) {
		(void)snprintf(end, sizeof end, "Z-agent-x7k2p-%zu/4", i % 4 + 1);
		assert_non_null(strstr(world->events[i].key, end));
	}
	assert_string_not_equal(world->events[0].key, world->events[4].key);
	assert_event(world, 2, "ep-b", "cpu", 24);
	assert_logged(&world->fixture,
	              "\"logger\":\"autoscaler-agent.billing.collect\",\"msg\":\"Adding event to batch\","
	              "\"IdempotencyKey\":\"");
	assert_logged(&world->fixture,
	              "-agent-x7k2p-3/4\",\"EndpointID\":\"ep-b\",\"MetricName\":\"cpu\",\"Value\":24}");
}

static void many_vms_are_drained_over_several_turns(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;
	size_t after_one_turn;

	for (int i = 0; i < VMS_MAX; i++) {
		(void)snprintf(world->uids[i], sizeof world->uids[i], "ep-%d", i);
		add_vm(world, world->uids[i], world->uids[i], 1000);
	}
	begin(world);
	until(world, &passed_ms, 24.3);
	assert_int_equal(world->event_count, 0);
	test_clock_skip(300 * NS_PER_MS);
	while (world->event_count == 0)
		one_turn(world);
	after_one_turn = world->event_count;
	assert_true(after_one_turn < 2 * VMS_MAX);
	fixture_turn(&world->fixture);
	assert_int_equal(world->event_count, 2 * VMS_MAX);
	/* All of one window, numbered through. */
	for (size_t i = 0; i < world->event_count; i++) {
		char end[32];

		(void)snprintf(end, sizeof end, "-%zu/%d", i + 1, 2 * VMS_MAX);
		assert_non_null(strstr(world->events[i].key, end));
		assert_true(world->events[i].stop_ns == world->events[0].stop_ns);
	}
	/* At the end nothing is left for later. */
	until(world, &passed_ms, 30);
	billing_finish(world->billing);
	assert_int_equal(world->event_count, 4 * VMS_MAX);
}

static void tv6_only_some_phases_are_billed(void **state)
{
	static const char *const PHASES[] = { "Running", "PreMigrating", "Migrating", "Scaling",
		                              "",        "Pending",      "Failed",    "Succeeded" };
	struct world *world = *state;
	struct vm_watch_vm *vm = add_vm(world, "u", "ep", 1000);

	for (size_t i = 0; i < sizeof PHASES / sizeof PHASES[0]; i++) {
		uint64_t passed_ms = 0;

		vm->phase = slice_of(PHASES[i]);
		world->event_count = 0;
		begin(world);
		until(world, &passed_ms, 24.5);
		assert_int_equal(world->event_count, i < 4 ? 2 : 0);
		billing_destroy(world->billing);
		world->billing = NULL;
	}
}

static void a_phase_between_costs_both_intervals(void **state)
{
	struct world *world = *state;
	struct vm_watch_vm *vm = add_vm(world, "u", "ep", 1000);
	uint64_t passed_ms = 0;

	begin(world);
	until(world, &passed_ms, 8.2);
	vm->phase = SLICE("Pending");
	until(world, &passed_ms, 12.2);
	vm->phase = SLICE("Running");
	until(world, &passed_ms, 24.5);
	/* 0.5 to 8, and 16 to 24. */
	assert_event(world, 0, "ep", "cpu", 16);
}

static void a_vm_without_a_known_size_isnt_billed(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;

	add_vm(world, "u", "ep", 1000)->has_status_cpu = false;
	begin(world);
	until(world, &passed_ms, 24.5);
	assert_int_equal(world->event_count, 0);
	assert_metric(&world->fixture,
	              "billing_vms_current{is_endpoint=\"true\",autoscaling_enabled=\"false\",phase=\"Running\"}", 1);
}

static void tv7_a_failing_watch(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;

	add_vm(world, "u", "ep", 2000);
	begin(world);
	until(world, &passed_ms, 10);
	world->failing = true;
	until(world, &passed_ms, 12.2);
	assert_logged(&world->fixture, "\"level\":\"error\"");
	assert_logged(&world->fixture, "\"msg\":\"VM store is currently stopped. No events will be recorded\"");
	assert_false(agent_metrics_recorder_has(
		world->fixture.metrics,
		"billing_vms_current{is_endpoint=\"true\",autoscaling_enabled=\"false\",phase=\"Running\"}"));
	world->failing = false;
	until(world, &passed_ms, 24.5);
	/* 0.5 to 8, and 16 to 24. */
	assert_event(world, 0, "ep", "cpu", 31);
	assert_event(world, 1, "ep", "active", 16);
}

static void tv11_who_is_an_endpoint(void **state)
{
	static const char SERIES[] =
		"billing_vms_current{autoscaling_enabled=\"false\",is_endpoint=\"false\",phase=\"Running\"}";
	static const char TOTAL[] =
		"billing_vms_processed_total{autoscaling_enabled=\"false\",is_endpoint=\"false\",phase=\"Running\"}";
	struct world *world = *state;
	uint64_t passed_ms = 0;

	add_vm(world, "u", NULL, 1000);
	add_vm(world, "v", "", 1000)->autoscaling_enabled = true;
	begin(world);
	until(world, &passed_ms, 24.5);
	assert_int_equal(world->event_count, 2);
	assert_event(world, 0, "", "cpu", 24);
	assert_metric(&world->fixture, SERIES, 1);
	assert_metric(&world->fixture, TOTAL, 7); /* at 0.5, 4, … 24 */
	assert_metric(&world->fixture,
	              "billing_vms_current{autoscaling_enabled=\"true\",is_endpoint=\"true\",phase=\"Running\"}", 1);
}

static void tv18_the_end_bills_up_to_now(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;

	/* Other than in the reference (README, decision 13). */
	add_vm(world, "u", "ep", 1000);
	begin(world);
	until(world, &passed_ms, 30.5);
	assert_int_equal(world->event_count, 2);
	billing_finish(world->billing);
	assert_int_equal(world->event_count, 4);
	assert_event(world, 2, "ep", "cpu", 6); /* 24 to 30.5; half a second too much was billed before */
	assert_true(world->events[2].start_ns == world->events[0].stop_ns);
	billing_finish(world->billing);
	until(world, &passed_ms, 60);
	assert_int_equal(world->event_count, 4);
}

static void an_end_before_the_first_window_bills_nothing(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;

	add_vm(world, "u", "ep", 1000);
	begin(world);
	until(world, &passed_ms, 0.2);
	billing_finish(world->billing);
	until(world, &passed_ms, 30);
	assert_int_equal(world->event_count, 0);
}

static void the_end_while_the_watch_fails_bills_what_is_known(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;

	add_vm(world, "u", "ep", 1000);
	begin(world);
	until(world, &passed_ms, 13);
	world->failing = true;
	billing_finish(world->billing);
	assert_int_equal(world->event_count, 2);
	assert_event(world, 0, "ep", "cpu", 12); /* 0.5 to 12 */
}

static void ticks_that_are_missed_are_left_out(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;

	add_vm(world, "u", "ep", 1000);
	begin(world);
	until(world, &passed_ms, 5);
	/* The process stands still for a minute: one collection, one drain, and then on the old grid. */
	test_clock_skip(60 * (uint64_t)SECOND);
	passed_ms += 60000;
	fixture_turn(&world->fixture);
	assert_int_equal(world->event_count, 2);
	until(world, &passed_ms, 72.4);
	assert_int_equal(world->event_count, 2);
	until(world, &passed_ms, 72.6);
	assert_int_equal(world->event_count, 4);
	assert_int_equal(world->events[0].value + world->events[2].value, 72);
	assert_int_equal(fixture_log_count(&world->fixture, "\"msg\":\"Creating billing batch\""), 2);
}

static void a_wall_clock_set_back_neither_turns_windows_round_nor_repeats_keys(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;

	add_vm(world, "u", "ep", 1000);
	begin(world);
	until(world, &passed_ms, 24.5);
	test_clock_step_wall(-60 * SECOND);
	until(world, &passed_ms, 48.5);
	until(world, &passed_ms, 72.5);
	assert_int_equal(world->event_count, 6);
	for (size_t i = 2; i < 6; i += 2) {
		assert_true(world->events[i].start_ns == world->events[i - 2].stop_ns);
		assert_near(world->events[i].stop_ns, world->events[i].start_ns + 12 * SECOND);
		assert_int_equal(world->events[i].value, 24);
	}
	/* Once it has caught up, stamps are those of the wall clock again. */
	for (double seconds = 96.5; seconds < 200; seconds += 24)
		until(world, &passed_ms, seconds);
	assert_int_equal(world->event_count, 16);
	assert_near(world->events[14].stop_ns, loop_wall_ns(world->fixture.loop));
	assert_near(world->events[14].start_ns, world->events[14].stop_ns - 24 * SECOND);
	test_clock_step_wall(60 * SECOND);
}

static void a_wall_clock_set_forward_changes_no_amount(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;

	add_vm(world, "u", "ep", 1000);
	begin(world);
	until(world, &passed_ms, 30);
	test_clock_step_wall(3600 * SECOND);
	until(world, &passed_ms, 48.5);
	assert_event(world, 2, "ep", "cpu", 24);
	assert_near(world->events[2].stop_ns - world->events[2].start_ns, 3624 * SECOND);
	test_clock_step_wall(-3600 * SECOND);
}

static void the_log_tells_of_collections_but_the_first(void **state)
{
	struct world *world = *state;
	uint64_t passed_ms = 0;

	begin(world);
	until(world, &passed_ms, 3.9);
	assert_not_logged(&world->fixture, "Collecting billing state");
	until(world, &passed_ms, 8.1);
	assert_int_equal(fixture_log_count(&world->fixture, "\"msg\":\"Collecting billing state\""), 2);
	assert_not_logged(&world->fixture, "Creating billing batch");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tv10_windows_and_what_is_in_them),
		TEST(tv10_a_vm_that_is_deleted),
		TEST(keys_number_the_events_of_a_drain),
		TEST(many_vms_are_drained_over_several_turns),
		TEST(tv6_only_some_phases_are_billed),
		TEST(a_phase_between_costs_both_intervals),
		TEST(a_vm_without_a_known_size_isnt_billed),
		TEST(tv7_a_failing_watch),
		TEST(tv11_who_is_an_endpoint),
		TEST(tv18_the_end_bills_up_to_now),
		TEST(an_end_before_the_first_window_bills_nothing),
		TEST(the_end_while_the_watch_fails_bills_what_is_known),
		TEST(ticks_that_are_missed_are_left_out),
		TEST(a_wall_clock_set_back_neither_turns_windows_round_nor_repeats_keys),
		TEST(a_wall_clock_set_forward_changes_no_amount),
		TEST(the_log_tells_of_collections_but_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
