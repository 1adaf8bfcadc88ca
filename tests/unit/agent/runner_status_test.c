#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/runner_status.h"
#include "tests/unit/agent/agent_fixture.h"

struct world {
	struct fixture fixture;
	struct runner_status status;
	uint64_t started_ns;
};

static void begin(struct world *world, const char *endpoint_id)
{
	struct vm_info vm = fixture_vm();

	fixture_turn(&world->fixture); /* the loop's time is that of its turn */
	world->started_ns = loop_now_ns(world->fixture.loop);
	runner_status_init(&world->status, &world->fixture.config, &world->fixture.clock, world->fixture.metrics, &vm,
	                   slice_of(endpoint_id));
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	fixture_begin(&world->fixture);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	runner_status_destroy(&world->status);
	fixture_end(&world->fixture);
	free(world);
	return 0;
}

/* Until so long after the start, by the loop's clock. */
static void at(struct world *world, uint64_t ms)
{
	uint64_t until_ns = world->started_ns + ms * NS_PER_MS;
	uint64_t now_ns = clock_monotonic_ns();

	if (until_ns > now_ns)
		test_clock_skip(until_ns - now_ns);
	fixture_turn(&world->fixture);
	runner_status_refresh(&world->status);
}

static void check_reasons(struct world *world, const char *expected)
{
	struct buffer reasons;
	bool stuck;

	buffer_init(&reasons, RUNNER_STATUS_REASONS_BYTES);
	stuck = runner_status_stuck(&world->status, &reasons);
	assert_true(slice_equal_text(buffer_slice(&reasons), expected));
	assert_int_equal(stuck, expected[0] != '\0');
	assert_int_equal(world->status.label.state, stuck ? AGENT_RUNNER_STUCK : AGENT_RUNNER_OK);
	buffer_destroy(&reasons);
}

static void t27_a_monitor_that_never_answers_makes_it_stuck_after_the_grace_period(void **state)
{
	struct world *world = *state;

	begin(world, "");
	at(world, 19900);
	check_reasons(world, "");
	assert_metric(&world->fixture, "runners_current{is_endpoint=\"false\",state=\"ok\"}", 1);
	at(world, 20100);
	check_reasons(world, "monitor health check failed");
	assert_metric(&world->fixture, "runners_current{is_endpoint=\"false\",state=\"ok\"}", 0);
	assert_metric(&world->fixture, "runners_current{is_endpoint=\"false\",state=\"stuck\"}", 1);
}

static void t28_an_update_starts_the_grace_period_of_an_endpoint_again(void **state)
{
	struct world *world = *state;
	struct vm_info vm = fixture_vm();

	begin(world, "ep-1");
	at(world, 15000);
	runner_status_vm_changed(&world->status, &vm, SLICE("ep-1"));
	at(world, 34800);
	check_reasons(world, "");
	at(world, 35200);
	check_reasons(world, "monitor health check failed");
}

static void an_update_gives_no_grace_without_an_endpoint(void **state)
{
	struct world *world = *state;
	struct vm_info vm = fixture_vm();

	begin(world, "");
	at(world, 15000);
	runner_status_vm_changed(&world->status, &vm, SLICE(""));
	at(world, 20200);
	check_reasons(world, "monitor health check failed");
}

static void t29_silence_counts_from_the_last_contact(void **state)
{
	struct world *world = *state;

	begin(world, "");
	at(world, 5000);
	runner_status_monitor_contact(&world->status);
	at(world, 24800);
	check_reasons(world, "");
	at(world, 25200);
	check_reasons(world, "monitor health check failed");
	runner_status_monitor_contact(&world->status);
	check_reasons(world, "");
}

static void t30_the_sixth_denial_makes_it_stuck_until_they_age(void **state)
{
	struct world *world = *state;

	begin(world, "");
	for (unsigned i = 0; i < 6; i++) {
		at(world, 1000 + 2000 * i);
		runner_status_monitor_contact(&world->status);
		runner_status_failed(&world->status, RUNNER_FAILURE_SCHEDULER);
		check_reasons(world, i < 5 ? "" : "scheduler requests failed");
	}
	at(world, 120000);
	runner_status_monitor_contact(&world->status);
	check_reasons(world, "scheduler requests failed");
	at(world, 121500);
	check_reasons(world, "");
}

static void t31_three_failed_patches_make_it_stuck(void **state)
{
	struct world *world = *state;

	begin(world, "");
	at(world, 1000);
	runner_status_failed(&world->status, RUNNER_FAILURE_NEONVM);
	runner_status_failed(&world->status, RUNNER_FAILURE_NEONVM);
	check_reasons(world, "");
	runner_status_failed(&world->status, RUNNER_FAILURE_NEONVM);
	check_reasons(world, "neonvm requests failed");
	assert_int_equal(runner_status_failure_count(&world->status, RUNNER_FAILURE_NEONVM), 3);
}

static void reasons_come_in_a_fixed_order(void **state)
{
	struct world *world = *state;

	begin(world, "");
	for (int i = 0; i < 6; i++) {
		runner_status_failed(&world->status, RUNNER_FAILURE_NEONVM);
		runner_status_failed(&world->status, RUNNER_FAILURE_SCHEDULER);
		runner_status_failed(&world->status, RUNNER_FAILURE_MONITOR);
	}
	at(world, 21000);
	check_reasons(
		world,
		"monitor health check failed,monitor requests failed,scheduler requests failed,neonvm requests failed");
}

static void a_threshold_of_zero_allows_no_failure(void **state)
{
	struct world *world = *state;

	world->fixture.config.monitor.max_failed_requests.threshold = 0;
	begin(world, "");
	check_reasons(world, "");
	runner_status_failed(&world->status, RUNNER_FAILURE_MONITOR);
	check_reasons(world, "monitor requests failed");
}

static void the_gauge_follows_the_endpoint_label(void **state)
{
	struct world *world = *state;
	struct vm_info vm = fixture_vm();

	begin(world, "");
	runner_status_vm_changed(&world->status, &vm, SLICE("ep-1"));
	assert_metric(&world->fixture, "runners_current{is_endpoint=\"false\",state=\"ok\"}", 0);
	assert_metric(&world->fixture, "runners_current{is_endpoint=\"true\",state=\"ok\"}", 1);
	runner_status_destroy(&world->status);
	assert_metric(&world->fixture, "runners_current{is_endpoint=\"true\",state=\"ok\"}", 0);
}

static void panicked_shows_only_between_the_restart_and_the_next_look(void **state)
{
	struct world *world = *state;

	begin(world, "");
	runner_status_ended(&world->status, RUNNER_PANICKED);
	assert_int_equal(world->status.label.state, AGENT_RUNNER_OK);
	runner_status_restarted(&world->status);
	assert_int_equal(world->status.label.state, AGENT_RUNNER_PANICKED);
	assert_metric(&world->fixture, "runners_current{is_endpoint=\"false\",state=\"panicked\"}", 1);
	runner_status_refresh(&world->status);
	assert_int_equal(world->status.label.state, AGENT_RUNNER_OK);
	assert_int_equal(world->status.restarts, 1);
}

static void a_failure_reported_during_the_restart_wait_shows_panicked(void **state)
{
	struct world *world = *state;
	struct vm_info vm = fixture_vm();

	begin(world, "");
	runner_status_ended(&world->status, RUNNER_PANICKED);
	runner_status_vm_changed(&world->status, &vm, SLICE(""));
	assert_int_equal(world->status.label.state, AGENT_RUNNER_PANICKED);
}

static void a_restart_keeps_failures_and_the_last_contact(void **state)
{
	struct world *world = *state;

	begin(world, "");
	runner_status_monitor_contact(&world->status);
	runner_status_failed(&world->status, RUNNER_FAILURE_SCHEDULER);
	at(world, 4000);
	runner_status_ended(&world->status, RUNNER_PANICKED);
	runner_status_restarted(&world->status);
	assert_true(world->status.last_monitor_contact.present);
	assert_int_equal(runner_status_failure_count(&world->status, RUNNER_FAILURE_SCHEDULER), 1);
	assert_int_equal(world->status.previous_end_count, 1);
	assert_int_equal(world->status.previous_ends[0].exit, RUNNER_PANICKED);
	assert_true(world->status.started_at_ns > world->status.endpoint_assigned_at_ns);
}

static void of_many_end_states_the_latest_are_kept(void **state)
{
	struct world *world = *state;

	begin(world, "");
	for (unsigned i = 1; i <= AGENT_END_STATES_REMEMBERED + 3; i++) {
		at(world, 1000 * i);
		runner_status_ended(&world->status, RUNNER_PANICKED);
		runner_status_restarted(&world->status);
	}
	assert_int_equal(world->status.previous_end_count, AGENT_END_STATES_REMEMBERED);
	assert_int_equal(world->status.restarts, AGENT_END_STATES_REMEMBERED + 3);
	assert_true(world->status.previous_ends[0].at_ns < world->status.previous_ends[1].at_ns);
	assert_true(world->status.previous_ends[AGENT_END_STATES_REMEMBERED - 1].at_ns <= world->status.started_at_ns);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(t27_a_monitor_that_never_answers_makes_it_stuck_after_the_grace_period),
		TEST(t28_an_update_starts_the_grace_period_of_an_endpoint_again),
		TEST(an_update_gives_no_grace_without_an_endpoint),
		TEST(t29_silence_counts_from_the_last_contact),
		TEST(t30_the_sixth_denial_makes_it_stuck_until_they_age),
		TEST(t31_three_failed_patches_make_it_stuck),
		TEST(reasons_come_in_a_fixed_order),
		TEST(a_threshold_of_zero_allows_no_failure),
		TEST(the_gauge_follows_the_endpoint_label),
		TEST(panicked_shows_only_between_the_restart_and_the_next_look),
		TEST(a_failure_reported_during_the_restart_wait_shows_panicked),
		TEST(a_restart_keeps_failures_and_the_last_contact),
		TEST(of_many_end_states_the_latest_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
