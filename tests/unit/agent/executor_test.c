#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/executor.h"
#include "tests/unit/agent/agent_fixture.h"

/* Peers that only remember what they were asked. */
struct peers {
	struct executor *executor;
	int plugin_starts, neonvm_starts, downscale_starts, upscale_starts, failures;
	int actual_events, hypothetical_events;
	struct core_plugin_request plugin;
	struct core_change_request neonvm, downscale, upscale;
	struct revision_with_time neonvm_revision;
	bool plugin_fails_at_once;
	bool refuse_events;
	struct error failure;
	char failed_task[64];
};

static void start_plugin(void *context, const struct core_plugin_request *request)
{
	struct peers *peers = context;
	struct error err;

	peers->plugin_starts++;
	peers->plugin = *request;
	if (!peers->plugin_fails_at_once)
		return;
	error_set(&err, ERROR_REFUSED, "nobody there");
	executor_plugin_done(peers->executor, (struct resources){ 0 }, (struct resources){ 0 }, SLICE(""), &err);
}

static void start_neonvm(void *context, const struct core_change_request *request, struct revision_with_time revision)
{
	struct peers *peers = context;

	peers->neonvm_starts++;
	peers->neonvm = *request;
	peers->neonvm_revision = revision;
}

static void start_downscale(void *context, const struct core_change_request *request)
{
	struct peers *peers = context;

	peers->downscale_starts++;
	peers->downscale = *request;
}

static void start_upscale(void *context, const struct core_change_request *request)
{
	struct peers *peers = context;

	peers->upscale_starts++;
	peers->upscale = *request;
}

static bool on_actual(void *context, uint32_t current_cu, uint32_t target_cu, struct error *err)
{
	struct peers *peers = context;

	(void)current_cu;
	(void)target_cu;
	(void)err;
	peers->actual_events++;
	return true;
}

static bool on_hypothetical(void *context, uint32_t current_cu, uint32_t goal_cu, const struct goal_parts *parts,
                            struct error *err)
{
	struct peers *peers = context;

	(void)current_cu;
	(void)goal_cu;
	(void)parts;
	peers->hypothetical_events++;
	return !peers->refuse_events || error_set(err, ERROR_INVARIANT, "can't encode NaN");
}

static void on_failed(void *context, const char *task_name, const struct error *err)
{
	struct peers *peers = context;

	peers->failures++;
	peers->failure = *err;
	(void)snprintf(peers->failed_task, sizeof peers->failed_task, "%s", task_name);
}

struct world {
	struct fixture fixture;
	struct executor executor;
	struct peers peers;
};

static struct executor_options options_of(struct world *world, const struct vm_info *vm)
{
	return (struct executor_options){
		.loop = world->fixture.loop,
		.clock = &world->fixture.clock,
		.metrics = world->fixture.metrics,
		.core = &world->fixture.config.core,
		.vm_info = vm,
		.handler = { .context = &world->peers,
		             .start_plugin = start_plugin,
		             .start_neonvm = start_neonvm,
		             .start_monitor_downscale = start_downscale,
		             .start_monitor_upscale = start_upscale,
		             .actual_scaling = on_actual,
		             .hypothetical_scaling = on_hypothetical,
		             .failed = on_failed },
		.log_sink = world->fixture.log_sink,
		.log_context = "",
	};
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct vm_info vm = fixture_vm();
	struct executor_options options;

	fixture_begin(&world->fixture);
	options = options_of(world, &vm);
	executor_init(&world->executor, &options);
	world->peers.executor = &world->executor;
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	executor_stop(&world->executor);
	fixture_end(&world->fixture);
	free(world);
	return 0;
}

static const struct resources ONE_CU = { .cpu_milli = 250, .mem_bytes = UINT64_C(1) << 30 };

static struct resources cu(uint16_t count)
{
	return resources_multiply(ONE_CU, count);
}

/* The load that gives a goal of so many compute units. */
static void measure(struct world *world, double goal_cu)
{
	const struct system_metrics metrics = {
		.load_average_1_min = goal_cu * 0.25 * 0.9,
		.load_average_5_min = goal_cu * 0.25 * 0.9,
		.memory_usage_bytes = 104857600,
	};
	struct core *core = executor_update(&world->executor);

	assert_non_null(core);
	core_update_system_metrics(core, &metrics);
}

static void settle(struct world *world)
{
	fixture_settle(&world->fixture);
}

/* Connected, with a permit for what is in use: 2 CU. */
static void boot(struct world *world)
{
	executor_monitor_connected(&world->executor);
	measure(world, 2);
	settle(world);
	assert_int_equal(world->peers.plugin_starts, 1);
	executor_plugin_done(&world->executor, cu(2), (struct resources){ 0 }, SLICE("{}"), NULL);
	settle(world);
	world->peers.plugin_starts = 0;
	fixture_log_forget(&world->fixture);
}

static void nothing_is_evaluated_before_the_first_update(void **state)
{
	struct world *world = *state;

	fixture_pass(&world->fixture, 60000);
	assert_metric(&world->fixture, "runner_next_actions_total", 0);
	assert_int_equal(world->peers.plugin_starts, 0);
	measure(world, 2);
	settle(world);
	assert_metric(&world->fixture, "runner_next_actions_total", 2); /* the second after the request's start */
	assert_int_equal(world->peers.plugin_starts, 1);
}

static void several_updates_make_one_evaluation(void **state)
{
	struct world *world = *state;
	double before;

	boot(world);
	before = fixture_metric(&world->fixture, "runner_next_actions_total");
	measure(world, 2);
	measure(world, 2);
	measure(world, 2);
	settle(world);
	assert_metric(&world->fixture, "runner_next_actions_total", before + 1);
}

static void a_worker_has_one_request_in_flight(void **state)
{
	struct world *world = *state;

	boot(world);
	measure(world, 4);
	settle(world);
	assert_int_equal(world->peers.plugin_starts, 1);
	measure(world, 6);
	settle(world);
	measure(world, 3);
	settle(world);
	assert_int_equal(world->peers.plugin_starts, 1);
	assert_logged(&world->fixture, "there's already an ongoing request for different resources");
	executor_plugin_done(&world->executor, cu(4), (struct resources){ 0 }, SLICE("{}"), NULL);
	settle(world);
	assert_int_equal(world->peers.plugin_starts, 2);
	assert_int_equal(world->peers.plugin.target.cpu_milli, 750);
}

static void an_upscale_goes_from_plugin_to_neonvm_to_monitor(void **state)
{
	struct world *world = *state;
	struct peers *peers = &world->peers;

	boot(world);
	measure(world, 4);
	settle(world);
	assert_int_equal(peers->plugin_starts, 1);
	assert_true(resources_equal(peers->plugin.target, cu(4)));
	assert_true(peers->plugin.last_permit.present);
	assert_int_equal(peers->neonvm_starts, 0);
	executor_plugin_done(&world->executor, cu(4), (struct resources){ 0 }, SLICE("{\"permit\":1}"), NULL);
	settle(world);
	assert_int_equal(peers->neonvm_starts, 1);
	assert_true(resources_equal(peers->neonvm.target, cu(4)));
	assert_int_equal(peers->actual_events, 1);
	assert_int_equal(peers->neonvm_revision.revision.value, 1);
	assert_int_equal(peers->neonvm_revision.revision.flags, REVISION_UPSCALE);
	executor_neonvm_done(&world->executor, NULL);
	settle(world);
	assert_int_equal(peers->upscale_starts, 1);
	assert_true(resources_equal(peers->upscale.target, cu(4)));
	executor_monitor_upscale_done(&world->executor, NULL);
	settle(world);
	assert_int_equal(peers->downscale_starts, 0);
	assert_logged(&world->fixture, "\"msg\":\"Recalculating ActionSet\",\"now\":\"");
	assert_logged(&world->fixture, "\"msg\":\"New ActionSet\",\"now\":\"");
	assert_logged(&world->fixture, "\"logger\":\"autoscaler-agent.runner.exec.plugin\"");
	assert_logged(
		&world->fixture,
		"\"msg\":\"Starting plugin request\",\"taskName\":\"executor: plugin\",\"action\":{\"lastPermit\":"
		"{\"vCPU\":\"0.5\",\"mem\":\"2Gi\"},\"target\":{\"vCPU\":\"1\",\"mem\":\"4Gi\"},"
		"\"metrics\":{\"loadAvg1M\":0.9}}");
	assert_logged(&world->fixture, "\"response\":{\"permit\":1}");
	assert_logged(&world->fixture, "Starting NeonVM request");
	assert_logged(&world->fixture, "vm-monitor upscale request successful");
	assert_logged(&world->fixture, "\"unchanged\":true");
}

static void a_downscale_goes_from_monitor_to_neonvm_to_plugin(void **state)
{
	struct world *world = *state;
	struct peers *peers = &world->peers;

	boot(world);
	measure(world, 1);
	settle(world);
	assert_int_equal(peers->downscale_starts, 1);
	assert_true(resources_equal(peers->downscale.target, cu(1)));
	assert_int_equal(peers->neonvm_starts, 0);
	executor_monitor_downscale_done(&world->executor, true, SLICE("{\"Ok\":true}"), NULL);
	settle(world);
	assert_int_equal(peers->neonvm_starts, 1);
	executor_neonvm_done(&world->executor, NULL);
	settle(world);
	assert_int_equal(peers->plugin_starts, 1);
	assert_true(resources_equal(peers->plugin.target, cu(1)));
	assert_logged(&world->fixture, "vm-monitor approved downscale");
	assert_metric(&world->fixture, "monitor_latency_seconds_count{direction=\"dec\"}", 1);
}

static void a_denied_downscale_waits_for_its_cooldown(void **state)
{
	struct world *world = *state;
	struct peers *peers = &world->peers;

	boot(world);
	measure(world, 1);
	settle(world);
	executor_monitor_downscale_done(&world->executor, false, SLICE("{}"), NULL);
	settle(world);
	assert_logged(&world->fixture, "\"level\":\"warn\"");
	assert_logged(&world->fixture, "vm-monitor denied downscale");
	fixture_pass(&world->fixture, 4800);
	assert_int_equal(peers->downscale_starts, 1);
	/* Nobody but the sleeper knows that the time has come. */
	fixture_pass(&world->fixture, 400);
	assert_int_equal(peers->downscale_starts, 2);
}

static void workers_start_out_of_one_set(void **state)
{
	struct world *world = *state;
	struct peers *peers = &world->peers;
	double before;

	boot(world);
	/* A permit for 3 CU while 4 are wanted: the next set asks the plugin for more and NeonVM for 3. */
	measure(world, 4);
	settle(world);
	executor_plugin_done(&world->executor, cu(3), (struct resources){ 0 }, SLICE("{}"), NULL);
	settle(world);
	assert_int_equal(peers->neonvm_starts, 1);
	assert_int_equal(peers->plugin_starts, 1);
	before = fixture_metric(&world->fixture, "runner_next_actions_total");
	executor_neonvm_done(&world->executor, NULL);
	fixture_pass(&world->fixture, 2100); /* the denial's wait */
	assert_int_equal(peers->plugin_starts, 2);
	assert_int_equal(peers->upscale_starts, 1);
	assert_true(fixture_metric(&world->fixture, "runner_next_actions_total") > before);
}

static void the_neonvm_back_off_counts_from_sending(void **state)
{
	struct world *world = *state;
	struct peers *peers = &world->peers;
	struct error err;

	boot(world);
	measure(world, 4);
	settle(world);
	executor_plugin_done(&world->executor, cu(4), (struct resources){ 0 }, SLICE("{}"), NULL);
	settle(world);
	assert_int_equal(peers->neonvm_starts, 1);
	fixture_pass(&world->fixture, 4000); /* of the back-off's 5 s, spent waiting for the failure */
	error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	executor_neonvm_done(&world->executor, &err);
	settle(world);
	assert_int_equal(peers->neonvm_starts, 1);
	assert_logged(&world->fixture, "\"msg\":\"NeonVM request failed\"");
	assert_logged(&world->fixture, "\"duration\":0,\"error\":\"context deadline exceeded\"");
	fixture_pass(&world->fixture, 1200);
	assert_int_equal(peers->neonvm_starts, 2);
}

static void a_result_over_a_gone_connection_is_not_applied(void **state)
{
	struct world *world = *state;
	struct peers *peers = &world->peers;
	struct error err;

	boot(world);
	measure(world, 1);
	settle(world);
	assert_int_equal(peers->downscale_starts, 1);
	executor_monitor_disconnected(&world->executor);
	executor_monitor_connected(&world->executor);
	error_set(&err, ERROR_TIMEOUT, "timed out waiting 5s for monitor response");
	executor_monitor_downscale_done(&world->executor, false, SLICE(""), &err);
	assert_logged(&world->fixture, "vm-monitor downscale request failed");
	assert_logged(&world->fixture, "\"unchanged\":false");
	assert_logged(&world->fixture,
	              "Skipping state update after vm-monitor downscale request because MonitorHandle changed");
	assert_false(world->executor.core.monitor.downscale_failure_at.present);
	/* So the request goes out again at once. */
	settle(world);
	assert_int_equal(peers->downscale_starts, 2);
	executor_monitor_downscale_done(&world->executor, true, SLICE("{}"), NULL);
	settle(world);
	assert_int_equal(peers->neonvm_starts, 1);
}

static void a_disconnect_alone_forgets_what_was_approved(void **state)
{
	struct world *world = *state;

	boot(world);
	assert_true(world->executor.core.monitor.approved.present);
	assert_int_equal(world->executor.generation, 1);
	executor_monitor_disconnected(&world->executor);
	assert_false(world->executor.core.monitor.approved.present);
	assert_int_equal(world->executor.generation, 2);
}

static void a_permit_that_is_no_use_is_a_failed_request(void **state)
{
	struct world *world = *state;

	boot(world);
	measure(world, 4);
	settle(world);
	executor_plugin_done(&world->executor, cu(8), (struct resources){ 0 }, SLICE("{}"), NULL);
	settle(world);
	assert_logged(&world->fixture, "Plugin request successful");
	assert_logged(&world->fixture,
	              "\"msg\":\"Plugin response validation failed\",\"taskName\":\"executor: plugin\","
	              "\"error\":\"permit has resources greater than request ({VCPU:2 Mem:8Gi} vs. "
	              "{VCPU:1 Mem:4Gi})\"");
	assert_int_equal(world->peers.plugin_starts, 1);
	assert_int_equal(world->peers.failures, 0);
	fixture_pass(&world->fixture, 3100);
	assert_int_equal(world->peers.plugin_starts, 2);
}

static void a_request_that_fails_at_once_is_repeated_after_its_wait_only(void **state)
{
	struct world *world = *state;

	boot(world);
	world->peers.plugin_fails_at_once = true;
	measure(world, 4);
	settle(world);
	assert_int_equal(world->peers.plugin_starts, 1);
	assert_logged(&world->fixture, "\"msg\":\"Plugin request failed\"");
	assert_logged(&world->fixture, "\"error\":\"nobody there\"");
	fixture_pass(&world->fixture, 2800);
	assert_int_equal(world->peers.plugin_starts, 1);
	fixture_pass(&world->fixture, 400);
	assert_int_equal(world->peers.plugin_starts, 2);
}

static void the_tick_asks_the_plugin_without_any_change(void **state)
{
	struct world *world = *state;

	boot(world);
	fixture_pass(&world->fixture, 14700);
	assert_int_equal(world->peers.plugin_starts, 0);
	fixture_pass(&world->fixture, 500);
	assert_int_equal(world->peers.plugin_starts, 1);
	assert_true(resources_equal(world->peers.plugin.target, cu(2)));
}

static void the_sleeper_does_not_busy_loop(void **state)
{
	struct world *world = *state;
	double before;

	boot(world);
	before = fixture_metric(&world->fixture, "runner_next_actions_total");
	fixture_pass(&world->fixture, 14000);
	assert_true(fixture_metric(&world->fixture, "runner_next_actions_total") <= before + 2);
}

/* ---- schedulers (generations 3, G14 … G16) ---- */

static void set_up_gated(struct world *world)
{
	struct vm_info vm = fixture_vm();
	struct executor_options options;

	executor_stop(&world->executor);
	world->fixture.config.core.plugin_gate = true;
	options = options_of(world, &vm);
	executor_init(&world->executor, &options);
}

static void without_a_scheduler_nobody_is_asked(void **state)
{
	struct world *world = *state;

	set_up_gated(world);
	measure(world, 4);
	fixture_pass(&world->fixture, 30000);
	assert_int_equal(world->peers.plugin_starts, 0);
	executor_scheduler_changed(&world->executor, true);
	settle(world);
	assert_int_equal(world->peers.plugin_starts, 1);
	executor_scheduler_changed(&world->executor, false);
	executor_plugin_done(&world->executor, cu(2), (struct resources){ 0 }, SLICE("{}"), NULL);
	fixture_pass(&world->fixture, 30000);
	assert_int_equal(world->peers.plugin_starts, 1);
}

static void s9_an_answer_of_an_earlier_scheduler_is_dropped(void **state)
{
	struct world *world = *state;

	set_up_gated(world);
	executor_scheduler_changed(&world->executor, true);
	settle(world);
	assert_int_equal(world->peers.plugin_starts, 1);
	executor_scheduler_changed(&world->executor, false);
	executor_scheduler_changed(&world->executor, true);
	settle(world);
	/* The one under way isn't cut off; the next follows its end. */
	assert_int_equal(world->peers.plugin_starts, 1);
	fixture_log_forget(&world->fixture);
	executor_plugin_done(&world->executor, cu(2), (struct resources){ 0 }, SLICE("{}"), NULL);
	assert_false(world->executor.core.plugin.permit.present);
	assert_logged(&world->fixture, "Skipping state update after plugin request because the scheduler changed");
	settle(world);
	assert_int_equal(world->peers.plugin_starts, 2);
	executor_plugin_done(&world->executor, cu(2), (struct resources){ 0 }, SLICE("{}"), NULL);
	assert_true(world->executor.core.plugin.permit.present);
}

static void a_failure_of_an_earlier_scheduler_is_dropped(void **state)
{
	struct world *world = *state;
	struct error err;

	set_up_gated(world);
	executor_scheduler_changed(&world->executor, true);
	settle(world);
	executor_scheduler_changed(&world->executor, true);
	error_set(&err, ERROR_REFUSED, "gone");
	executor_plugin_done(&world->executor, cu(0), (struct resources){ 0 }, SLICE(""), &err);
	settle(world);
	assert_int_equal(world->peers.plugin_starts, 2); /* no back-off */
}

static void the_newest_agent_takes_answers_of_any_scheduler(void **state)
{
	struct world *world = *state;

	measure(world, 2);
	settle(world);
	executor_scheduler_changed(&world->executor, true);
	executor_plugin_done(&world->executor, cu(2), (struct resources){ 0 }, SLICE("{}"), NULL);
	assert_true(world->executor.core.plugin.permit.present);
}

static void a_broken_invariant_stops_the_executor_and_is_told_once(void **state)
{
	struct world *world = *state;

	boot(world);
	world->peers.refuse_events = true;
	measure(world, 4);
	settle(world);
	assert_int_equal(world->peers.failures, 1);
	assert_string_equal(world->peers.failure.text, "can't encode NaN");
	assert_string_equal(world->peers.failed_task, "executor: sleeper");
	assert_null(executor_update(&world->executor));
	executor_plugin_done(&world->executor, cu(2), (struct resources){ 0 }, SLICE("{}"), NULL);
	executor_monitor_connected(&world->executor);
	fixture_pass(&world->fixture, 30000);
	assert_int_equal(world->peers.failures, 1);
	assert_int_equal(world->peers.plugin_starts, 0);
}

static void a_result_the_core_cannot_take_breaks_it(void **state)
{
	struct world *world = *state;

	boot(world);
	/* An end without a start: the core finds no ongoing request. */
	executor_monitor_upscale_done(&world->executor, NULL);
	assert_int_equal(world->peers.failures, 0); /* no request of this connection: not applied */
	executor_neonvm_done(&world->executor, NULL);
	assert_int_equal(world->peers.failures, 1);
	assert_string_equal(world->peers.failed_task, "executor: neonvm");
	assert_int_equal(world->peers.failure.code, ERROR_INVARIANT);
}

static void warnings_and_calculations_are_logged_by_the_core(void **state)
{
	struct world *world = *state;

	measure(world, 2);
	settle(world);
	assert_logged(&world->fixture, "\"logger\":\"autoscaler-agent.runner.exec.core\"");
	assert_logged(&world->fixture,
	              "\"msg\":\"Calculated desired resources\",\"current\":{\"vCPU\":\"0.5\",\"mem\":\"2Gi\"},"
	              "\"target\":{\"vCPU\":\"0.5\",\"mem\":\"2Gi\"},\"targetRevision\":{\"value\":0,\"flags\":0}}");
	fixture_log_forget(&world->fixture);
	/* No vm-monitor, so shrinking is impossible. */
	measure(world, 1);
	settle(world);
	assert_logged(&world->fixture, "\"level\":\"warn\"");
	assert_logged(&world->fixture, "Wanted to send vm-monitor downscale request, but there's no active connection");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_evaluated_before_the_first_update),
		TEST(several_updates_make_one_evaluation),
		TEST(a_worker_has_one_request_in_flight),
		TEST(an_upscale_goes_from_plugin_to_neonvm_to_monitor),
		TEST(a_downscale_goes_from_monitor_to_neonvm_to_plugin),
		TEST(a_denied_downscale_waits_for_its_cooldown),
		TEST(workers_start_out_of_one_set),
		TEST(without_a_scheduler_nobody_is_asked),
		TEST(s9_an_answer_of_an_earlier_scheduler_is_dropped),
		TEST(a_failure_of_an_earlier_scheduler_is_dropped),
		TEST(the_newest_agent_takes_answers_of_any_scheduler),
		TEST(the_neonvm_back_off_counts_from_sending),
		TEST(a_result_over_a_gone_connection_is_not_applied),
		TEST(a_disconnect_alone_forgets_what_was_approved),
		TEST(a_permit_that_is_no_use_is_a_failed_request),
		TEST(a_request_that_fails_at_once_is_repeated_after_its_wait_only),
		TEST(the_tick_asks_the_plugin_without_any_change),
		TEST(the_sleeper_does_not_busy_loop),
		TEST(a_broken_invariant_stops_the_executor_and_is_told_once),
		TEST(a_result_the_core_cannot_take_breaks_it),
		TEST(warnings_and_calculations_are_logged_by_the_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
