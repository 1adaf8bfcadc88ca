#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/runner.h"
#include "agent/runner_status.h"
#include "base/memory.h"
#include "tests/unit/agent/fake_node.h"

struct world {
	struct fake_node node;
	struct runner_status status;
	struct runner *runner;
	int failures;
};

static void on_failed(void *context)
{
	((struct world *)context)->failures++;
}

static struct runner_options options_of(struct world *world)
{
	return (struct runner_options){
		.environment = &world->node.environment,
		.status = &world->status,
		.pod_name = "vm-a-x7k2p",
		.pod_ip = "127.0.0.1",
		.on_failed = on_failed,
		.context = world,
	};
}

static void start(struct world *world)
{
	struct runner_options options = options_of(world);
	struct error err;

	world->runner = runner_start(&options, &err);
	assert_non_null(world->runner);
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct vm_info vm = fixture_vm();

	fake_node_begin(&world->node);
	runner_status_init(&world->status, &world->node.fixture.config, &world->node.fixture.clock,
	                   world->node.fixture.metrics, &vm, SLICE("ep-1"));
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	runner_destroy(world->runner);
	runner_status_destroy(&world->status);
	fake_node_end(&world->node);
	free(world);
	return 0;
}

static struct resources cu(uint16_t count)
{
	return resources_multiply((struct resources){ .cpu_milli = 250, .mem_bytes = UINT64_C(1) << 30 }, count);
}

static void it_scrapes_connects_and_asks_for_what_is_in_use(void **state)
{
	struct world *world = *state;

	start(world);
	fake_node_pass(&world->node, 1200); /* the first page within a second, the next about one after it */
	assert_int_equal(world->node.monitor.connections, 1);
	assert_in_range(world->node.scrapes, 1, 2);
	assert_int_equal(world->node.plugin_requests, 1);
	assert_true(resources_equal(world->node.plugin_wanted, cu(2)));
	assert_int_equal(world->node.patches, 0);
	assert_true(runner_monitor_connected(world->runner));
	assert_int_equal(runner_background_worker_count(world->runner), 13);
	assert_string_equal(runner_pod_ip(world->runner), "127.0.0.1");
	assert_logged(&world->node.fixture, "\"logger\":\"autoscaler-agent.runner\",");
	assert_logged(
		&world->node.fixture,
		"\"restarts\":0,\"virtualmachine\":{\"namespace\":\"apps\",\"name\":\"vm-a\"},\"pod\":{\"namespace\":"
		"\"apps\",\"name\":\"vm-a-x7k2p\"}");
	assert_int_equal(fixture_log_count(&world->node.fixture, "\"msg\":\"background worker started\""), 12);
}

static void load_makes_it_grow(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	start(world);
	fake_node_pass(node, 600);
	fake_monitor_forget(&node->monitor);
	node->load = 0.8; /* 4 CU */
	fake_node_pass(node, 1500);
	assert_true(resources_equal(node->plugin_wanted, cu(4)));
	assert_int_equal(node->patches, 1);
	assert_string_equal(node->last_patch_name, "apps/vm-a");
	assert_true(resources_equal(node->last_patch.target, cu(4)));
	assert_int_equal(node->last_patch.slot_bytes, 1 << 30);
	assert_int_equal(node->last_patch.target_revision.revision.value, 1);
	assert_true(node->last_patch.target_revision.updated_at_ns > INT64_C(1500000000) * NS_PER_S);
	assert_int_equal(node->actual_events, 1);
	assert_non_null(strstr(node->monitor.messages[0], "\"UpscaleNotification\""));
	assert_non_null(strstr(node->monitor.messages[0], "\"cpu\":1,\"mem\":4294967296"));
	assert_true(resources_equal(core_using(runner_core(world->runner)), cu(4)));
}

static void idleness_makes_it_shrink_once_the_monitor_agrees(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	start(world);
	fake_node_pass(node, 600);
	fake_monitor_forget(&node->monitor);
	node->load = 0.05;
	fake_node_pass(node, 1500);
	assert_non_null(strstr(node->monitor.messages[0], "\"DownscaleRequest\""));
	assert_int_equal(node->patches, 1);
	assert_true(resources_equal(node->last_patch.target, cu(1)));
	assert_true(resources_equal(node->plugin_wanted, cu(1)));
}

/* As the watch shows it. */
static void set_size(struct world *world, uint16_t count)
{
	world->status.vm_info.cpu.use_milli = cu(count).cpu_milli;
	world->status.vm_info.mem.use_slots = count;
}

static void a_size_that_a_late_patch_left_is_mended(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	node->fixture.config.refresh_state_interval_ns = 100 * NS_PER_MS;
	start(world);
	fake_node_pass(node, 600);
	assert_int_equal(node->patches, 0);
	set_size(world, 5);
	runner_vm_changed(world->runner);
	fake_node_pass(node, 1500);
	assert_logged(&node->fixture,
	              "\"msg\":\"The VM has another size than the one last asked for; going on from that\"");
	assert_int_equal(node->patches, 1);
	assert_true(resources_equal(node->last_patch.current, cu(5)));
	assert_true(resources_equal(node->last_patch.target, cu(2)));
	assert_int_equal(world->failures, 0);
}

static void an_old_view_of_the_size_is_not_believed(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	node->fixture.config.refresh_state_interval_ns = 100 * NS_PER_MS;
	start(world);
	fake_node_pass(node, 600);
	runner_vm_changed(world->runner);
	node->load = 0.8; /* 4 CU */
	fake_node_pass(node, 2500);
	/* The watch still shows 2 CU; nothing came since the patch. */
	assert_int_equal(node->patches, 1);
	assert_true(resources_equal(core_using(runner_core(world->runner)), cu(4)));
	assert_not_logged(&node->fixture, "going on from that");
	/* Nor for a moment only: the event with the new size is on its way. */
	runner_vm_changed(world->runner);
	fake_node_pass(node, 150);
	set_size(world, 4);
	runner_vm_changed(world->runner);
	fake_node_pass(node, 600);
	assert_not_logged(&node->fixture, "going on from that");
}

static void a_monitor_that_wants_memory_gets_one_unit_more(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	start(world);
	fake_node_pass(node, 600);
	fake_monitor_send(&node->monitor, "{\"type\":\"UpscaleRequest\",\"id\":3}");
	fake_node_pass(node, 600);
	assert_logged(&node->fixture, "\"msg\":\"Updating requested upscale\"");
	assert_int_equal(node->patches, 1);
	assert_true(resources_equal(node->last_patch.target, cu(3)));
}

static void a_scheduler_that_denies_is_asked_again_and_counted(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	start(world);
	fake_node_pass(node, 600);
	node->plugin_limit = cu(2);
	node->load = 0.8;
	fake_node_pass(node, 7000);
	assert_int_equal(node->patches, 0);
	assert_in_range(node->plugin_requests, 4, 5); /* one to begin with, then every 2 s */
	assert_in_range(runner_status_failure_count(&world->status, RUNNER_FAILURE_SCHEDULER), 3, 4);
	node->plugin_limit = cu(3);
	fake_node_pass(node, 2300);
	assert_int_equal(node->patches, 1);
	assert_true(resources_equal(node->last_patch.target, cu(3)));
}

static void requests_fail_fast_without_a_scheduler_and_resume_with_one(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	start(world);
	fake_node_pass(node, 600);
	node->no_scheduler = true;
	node->load = 0.8;
	fake_node_pass(node, 7000);
	assert_int_equal(node->plugin_requests, 1);
	assert_in_range(runner_status_failure_count(&world->status, RUNNER_FAILURE_SCHEDULER), 2, 3); /* every 3 s */
	node->no_scheduler = false;
	fake_node_pass(node, 3500);
	assert_int_equal(node->plugin_requests, 2);
	assert_int_equal(node->patches, 1);
}

static void a_request_lost_with_the_connection_is_made_again(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	start(world);
	fake_node_pass(node, 600);
	node->monitor.answer_scaling = false;
	node->load = 0.05;
	fake_node_pass(node, 1500);
	assert_int_equal(runner_monitor_waiting_calls(world->runner), 1);
	fake_monitor_drop(&node->monitor); /* the monitor restarts */
	node->monitor.answer_scaling = true;
	fake_node_pass(node, 6000);
	assert_int_equal(node->monitor.connections, 2);
	assert_int_equal(node->patches, 1);
	assert_true(resources_equal(node->last_patch.target, cu(1)));
	assert_int_equal(runner_status_failure_count(&world->status, RUNNER_FAILURE_MONITOR), 1);
}

static void failed_patches_are_counted_and_repeated(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	start(world);
	fake_node_pass(node, 600);
	node->patch_fails = true;
	node->load = 0.8;
	fake_node_pass(node, 12500); /* at 1, 6 and 11 s */
	assert_int_equal(node->patches, 3);
	assert_int_equal(runner_status_failure_count(&world->status, RUNNER_FAILURE_NEONVM), 3);
	assert_int_equal(world->status.label.state, AGENT_RUNNER_STUCK);
	fake_node_pass(node, 5000);
	assert_logged(&node->fixture, "\"msg\":\"Runner with endpoint is currently stuck\"");
	assert_logged(&node->fixture, "\"taskName\":\"podStatus updater\",\"endpointID\":\"ep-1\",\"reasons\":"
	                              "\"neonvm requests failed\"");
}

static void a_monitor_that_stays_away_makes_it_stuck(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	http_server_destroy(node->monitor.server);
	node->monitor.server = NULL;
	start(world);
	fake_node_pass(node, 19000);
	assert_not_logged(&node->fixture, "currently stuck");
	fake_node_pass(node, 7000);
	assert_logged(&node->fixture, "\"reasons\":\"monitor health check failed\"");
	/* Growing is possible all the same. */
	node->load = 0.8;
	fake_node_pass(node, 1500);
	assert_int_equal(node->patches, 1);
}

static void m10_in_late_2023_it_is_stuck_just_after_the_grace_period(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	http_server_destroy(node->monitor.server);
	node->monitor.server = NULL;
	node->fixture.config.refresh_adaptively = true;
	node->fixture.config.refresh_state_interval_ns = 10 * (uint64_t)NS_PER_S;
	start(world);
	fake_node_pass(node, 19500);
	assert_metric(&node->fixture, "runners_current{is_endpoint=\"true\",state=\"stuck\"}", 0);
	fake_node_pass(node, 1000);
	assert_metric(&node->fixture, "runners_current{is_endpoint=\"true\",state=\"stuck\"}", 1);
}

/* ---- a core that knows whether there is a scheduler ---- */

static void late_2023(struct fake_node *node)
{
	struct agent_config *config = &node->fixture.config;

	config->generation = AGENT_GENERATION_A;
	config->core.plugin_gate = true;
	config->scheduler.sticky = true;
	config->neonvm.no_revisions = true;
	config->no_lfc_metrics = true;
	config->plugin_tick_jitter_ms = 0;
}

static void without_a_scheduler_nothing_is_asked_and_nothing_fails(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	late_2023(node);
	node->no_scheduler = true;
	node->load = 0.8;
	start(world);
	assert_logged(&node->fixture, "\"msg\":\"No initial scheduler found\"");
	fake_node_pass(node, 7000);
	assert_int_equal(node->plugin_requests, 0);
	assert_int_equal(runner_status_failure_count(&world->status, RUNNER_FAILURE_SCHEDULER), 0);
	/* The first thing it is asked is what is in use, at once; what is wanted comes next. */
	node->no_scheduler = false;
	runner_scheduler_changed(world->runner);
	fixture_turn(&node->fixture);
	test_loop_spin(node->fixture.loop, 20);
	assert_true(node->plugin_requests >= 1);
	fake_node_pass(node, 1000);
	assert_true(resources_equal(node->plugin_wanted, cu(4)));
	assert_int_equal(node->patches, 1);
}

static void s9_an_answer_of_a_scheduler_that_was_left_is_counted_and_not_used(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	late_2023(node);
	node->plugin_hangs = true;
	start(world);
	fake_node_pass(node, 600);
	assert_int_equal(node->plugin_requests, 1);
	assert_non_null(node->held);
	/* Y takes the place of X; the request to X goes on, and nothing else is asked meanwhile. */
	node->plugin_hangs = false;
	runner_scheduler_changed(world->runner);
	fake_node_pass(node, 600);
	assert_int_equal(node->plugin_requests, 1);
	assert_false(runner_core(world->runner)->plugin.permit.present);
	http_call_respond(node->held, 200, "application/json",
	                  SLICE("{\"permit\":{\"vCPUs\":\"500m\",\"mem\":\"2Gi\"}}"));
	node->held = NULL;
	for (int i = 0; i < 50 && node->plugin_requests < 2; i++)
		test_loop_spin(node->fixture.loop, 1);
	assert_int_equal(node->plugin_requests, 2);
	assert_logged(&node->fixture, "because the scheduler changed");
	fake_node_pass(node, 200);
	assert_true(runner_core(world->runner)->plugin.permit.present);
	assert_metric(&node->fixture, "scheduler_plugin_requests_total{code=\"200\"}", 2);
}

static void there_is_no_lfc_scrape_in_late_2023(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	late_2023(node);
	node->fixture.config.lfc_metrics = node->fixture.config.system_metrics;
	world->status.vm_info.has_scaling_config = true;
	world->status.vm_info.scaling_config.has_enable_lfc_metrics = true;
	world->status.vm_info.scaling_config.enable_lfc_metrics = true;
	start(world);
	fake_node_pass(node, 3000);
	assert_not_logged(&node->fixture, "LFC metrics");
	assert_true(node->scrapes >= 2);
}

static void health_checks_keep_it_ok(void **state)
{
	struct world *world = *state;

	start(world);
	fake_node_pass(&world->node, 40000);
	assert_int_equal(world->status.label.state, AGENT_RUNNER_OK);
	assert_true(world->status.last_monitor_contact.present);
	assert_not_logged(&world->node.fixture, "currently stuck");
}

static void several_vm_changes_are_taken_as_one(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	start(world);
	fake_node_pass(node, 600);
	world->status.vm_info.cpu.max_milli = 750;
	runner_vm_changed(world->runner);
	world->status.vm_info.mem.max_slots = 3;
	runner_vm_changed(world->runner);
	fixture_turn(&node->fixture);
	assert_int_equal(fixture_log_count(&node->fixture, "\"msg\":\"VmInfo updated\""), 1);
	assert_logged(&node->fixture,
	              "\"vmInfo\":{\"name\":\"vm-a\",\"namespace\":\"apps\",\"cpu\":{\"min\":\"250m\",\"max\":"
	              "\"750m\",\"use\":\"500m\"}");
	node->load = 2;
	fake_node_pass(node, 1500);
	assert_true(resources_equal(node->last_patch.target, cu(3)));
}

static void lfc_pages_are_scraped_once_the_override_says_so(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	node->fixture.config.lfc_metrics = node->fixture.config.system_metrics;
	start(world);
	fake_node_pass(node, 3000);
	assert_not_logged(&node->fixture, "LFC metrics request");
	world->status.vm_info.has_scaling_config = true;
	world->status.vm_info.scaling_config.has_enable_lfc_metrics = true;
	world->status.vm_info.scaling_config.enable_lfc_metrics = true;
	fake_node_pass(node, 2000);
	assert_logged(&node->fixture, "VM is now active for LFC metrics requests");
	assert_logged(&node->fixture, "missing expected metric lfc_approximate_working_set_size_windows");
}

/* How often that is said of a task. */
static int ended_normally(struct fixture *fixture, const char *task)
{
	const char *at = fixture_log(fixture);
	char name[64];
	int count = 0;

	(void)snprintf(name, sizeof name, "\"taskName\":\"%s\"}\n", task);
	while ((at = strstr(at, "\"msg\":\"background worker ended normally\"")) != NULL) {
		const char *end = strchr(at, '\n') + 1;
		const char *found = strstr(at, name);

		count += found != NULL && found < end;
		at = end;
	}
	return count;
}

static void a_broken_invariant_ends_the_run(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	start(world);
	fake_node_pass(node, 600);
	node->break_a_runner = true;
	node->load = 0.8;
	fake_node_pass(node, 1500);
	assert_int_equal(world->failures, 1);
	assert_metric(&node->fixture, "runner_thread_panics_total", 1);
	assert_logged(&node->fixture, "\"msg\":\"background worker panicked\"");
	assert_logged(&node->fixture, "\"taskName\":\"executor: sleeper\",\"error\":\"can't encode NaN\"");
	fake_monitor_wait_closed(&node->fixture, &node->monitor);
	assert_int_equal(node->monitor.close_code, 1000);
	assert_string_equal(node->monitor.close_reason, "normal exit");
	/* It is over, but for what can be read of it. */
	node->scrapes = 0;
	fake_node_pass(node, 5000);
	assert_int_equal(node->scrapes, 0);
	assert_int_equal(world->failures, 1);
	assert_int_equal(runner_background_worker_count(world->runner), 0);
	/* Of twelve tasks, two of them the connection's, one has broken, and that is its last word. */
	assert_int_equal(fixture_log_count(&node->fixture, "\"msg\":\"background worker ended normally\""), 11);
	assert_int_equal(fixture_log_count(&node->fixture, "\"msg\":\"background worker panicked\""), 1);
	assert_int_equal(ended_normally(&node->fixture, "executor: plugin"), 1);
	assert_int_equal(ended_normally(&node->fixture, "executor: sleeper"), 0);
	assert_true(runner_core(world->runner)->has_metrics);
}

static void a_stop_cancels_what_is_under_way(void **state)
{
	struct world *world = *state;
	struct fake_node *node = &world->node;

	start(world);
	fake_node_pass(node, 600);
	node->patch_hangs = true;
	node->load = 0.8;
	fake_node_pass(node, 1500);
	assert_int_equal(node->patches, 1);
	fixture_log_forget(&node->fixture);
	runner_stop(world->runner);
	assert_int_equal(node->cancelled_patches, 1);
	assert_int_equal(fixture_log_count(&node->fixture, "\"msg\":\"background worker ended normally\""), 12);
	fake_monitor_wait_closed(&node->fixture, &node->monitor);
	assert_int_equal(node->monitor.close_code, 1000);
	assert_int_equal(world->failures, 0);
}

static void without_memory_no_runner_starts_and_nothing_leaks(void **state)
{
	struct world *world = *state;
	struct runner_options options = options_of(world);
	struct error err;

	for (unsigned long i = 1; i <= 3; i++) {
		struct runner *runner;

		memory_fail_at(i);
		runner = runner_start(&options, &err);
		memory_fail_at(0);
		assert_null(runner);
		assert_int_equal(err.code, ERROR_NO_MEMORY);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_scrapes_connects_and_asks_for_what_is_in_use),
		TEST(load_makes_it_grow),
		TEST(idleness_makes_it_shrink_once_the_monitor_agrees),
		TEST(a_size_that_a_late_patch_left_is_mended),
		TEST(an_old_view_of_the_size_is_not_believed),
		TEST(a_monitor_that_wants_memory_gets_one_unit_more),
		TEST(a_scheduler_that_denies_is_asked_again_and_counted),
		TEST(requests_fail_fast_without_a_scheduler_and_resume_with_one),
		TEST(a_request_lost_with_the_connection_is_made_again),
		TEST(failed_patches_are_counted_and_repeated),
		TEST(a_monitor_that_stays_away_makes_it_stuck),
		TEST(m10_in_late_2023_it_is_stuck_just_after_the_grace_period),
		TEST(without_a_scheduler_nothing_is_asked_and_nothing_fails),
		TEST(s9_an_answer_of_a_scheduler_that_was_left_is_counted_and_not_used),
		TEST(there_is_no_lfc_scrape_in_late_2023),
		TEST(health_checks_keep_it_ok),
		TEST(several_vm_changes_are_taken_as_one),
		TEST(lfc_pages_are_scraped_once_the_override_says_so),
		TEST(a_broken_invariant_ends_the_run),
		TEST(a_stop_cancels_what_is_under_way),
		TEST(without_memory_no_runner_starts_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
