#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/supervisor.h"
#include "base/memory.h"
#include "tests/unit/agent/fake_node.h"

struct world {
	struct fake_node node;
	struct supervisor *supervisor;
	struct vm_info vm;
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error err;

	fake_node_begin(&world->node);
	world->vm = fixture_vm();
	world->supervisor = supervisor_create(&world->node.environment, &err);
	assert_non_null(world->supervisor);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	supervisor_destroy(world->supervisor);
	fake_node_end(&world->node);
	free(world);
	return 0;
}

static bool try_event(struct world *world, enum vm_event_kind kind, const char *pod_name, const char *endpoint_id)
{
	const struct vm_event event = {
		.kind = kind,
		.vm_info = &world->vm,
		.pod_name = slice_of(pod_name),
		.pod_ip = SLICE("127.0.0.1"),
		.endpoint_id = slice_of(endpoint_id),
	};

	return supervisor_handle_event(world->supervisor, &event);
}

static void send_event(struct world *world, enum vm_event_kind kind, const char *pod_name, const char *endpoint_id)
{
	assert_true(try_event(world, kind, pod_name, endpoint_id));
}

/* The dump as JSON; to be freed. */
static char *dump(struct world *world)
{
	struct state_dump_dump message;
	struct buffer text;
	struct arena arena;
	struct error err;
	char *copy;

	arena_init(&arena, 1024 * 1024);
	buffer_init(&text, 1024 * 1024);
	if (!supervisor_dump(world->supervisor, &arena, &message, &err) ||
	    !state_dump_dump_to_json(&message, &text, &err))
		fail_msg("no dump: %s", err.text);
	buffer_append_char(&text, '\0');
	copy = strdup(text.data);
	buffer_destroy(&text);
	arena_destroy(&arena);
	return copy;
}

#define assert_dumped(world, part)                                       \
	do {                                                             \
		char *text_ = dump(world);                               \
		if (strstr(text_, part) == NULL)                         \
			fail_msg("not dumped: %s\nin: %s", part, text_); \
		free(text_);                                             \
	} while (0)

/* Fails the only runner the next time it decides something. */
static void break_runner(struct world *world)
{
	double panics = fixture_metric(&world->node.fixture, "runner_thread_panics_total");

	world->node.break_a_runner = true;
	world->node.load = world->node.load > 0.5 ? 0.4 : 0.8;
	for (int i = 0; i < 40 && fixture_metric(&world->node.fixture, "runner_thread_panics_total") < panics + 1; i++)
		fake_node_pass(&world->node, 100);
	assert_metric(&world->node.fixture, "runner_thread_panics_total", panics + 1);
	fixture_turn(&world->node.fixture);
}

static void an_added_vm_gets_a_runner(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "ep-1");
	fake_node_pass(&world->node, 600);
	assert_metric(&world->node.fixture, "runner_starts", 1);
	assert_metric(&world->node.fixture, "runner_restarts", 0);
	assert_metric(&world->node.fixture, "runners_current{is_endpoint=\"true\",state=\"ok\"}", 1);
	assert_int_equal(world->node.monitor.connections, 1);
	assert_int_equal(world->node.plugin_requests, 1);
}

static void a_deleted_vm_loses_it(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "ep-1");
	fake_node_pass(&world->node, 600);
	send_event(world, VM_EVENT_DELETED, "vm-a-x7k2p", "ep-1");
	fake_monitor_wait_closed(&world->node.fixture, &world->node.monitor);
	assert_int_equal(world->node.monitor.close_code, 1000);
	assert_metric(&world->node.fixture, "runners_current{is_endpoint=\"true\",state=\"ok\"}", 0);
	assert_logged(&world->node.fixture, "\"msg\":\"Ended without error\"");
	assert_not_logged(&world->node.fixture, "no need to restart");
	world->node.scrapes = 0;
	fake_node_pass(&world->node, 20000);
	assert_int_equal(world->node.scrapes, 0);
	assert_int_equal(world->node.monitor.connections, 1);
	assert_dumped(world, "{\"stopped\":false,\"pods\":[]}");
}

static void events_that_do_not_fit_are_logged_and_ignored(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_UPDATED, "vm-a-x7k2p", "");
	send_event(world, VM_EVENT_DELETED, "vm-a-x7k2p", "");
	assert_int_equal(
		fixture_log_count(&world->node.fixture, "\"msg\":\"Received event for pod that isn't present\""), 2);
	assert_logged(&world->node.fixture, "\"logger\":\"autoscaler-agent.main-loop\"");
	assert_logged(&world->node.fixture,
	              "\"event\":{\"kind\":\"updated\",\"podName\":\"vm-a-x7k2p\",\"podIP\":\"127.0.0.1\","
	              "\"endpointID\":\"\",\"vmInfo\":{\"name\":\"vm-a\"");
	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
	assert_int_equal(fixture_log_count(&world->node.fixture,
	                                   "\"msg\":\"Received add event for pod that's already present\""),
	                 1);
	assert_metric(&world->node.fixture, "runner_starts", 1);
	/* The key is the pod's name, not the VM's. */
	send_event(world, VM_EVENT_UPDATED, "vm-a-other", "");
	assert_int_equal(
		fixture_log_count(&world->node.fixture, "\"msg\":\"Received event for pod that isn't present\""), 3);
}

static void an_update_reaches_the_runner_and_the_gauge(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
	fake_node_pass(&world->node, 600);
	world->vm.cpu.max_milli = 750;
	send_event(world, VM_EVENT_UPDATED, "vm-a-x7k2p", "ep-2");
	assert_metric(&world->node.fixture, "runners_current{is_endpoint=\"false\",state=\"ok\"}", 0);
	assert_metric(&world->node.fixture, "runners_current{is_endpoint=\"true\",state=\"ok\"}", 1);
	fixture_turn(&world->node.fixture);
	assert_logged(&world->node.fixture, "\"msg\":\"VmInfo updated\"");
	assert_dumped(world, "\"endpointID\":\"ep-2\"");
	assert_dumped(world, "\"cpu\":{\"min\":\"250m\",\"max\":\"750m\",\"use\":\"500m\"}");
}

static void t32_a_runner_that_broke_soon_restarts_after_five_to_nine_seconds(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
	fake_node_pass(&world->node, 1500);
	break_runner(world);
	assert_logged(&world->node.fixture, "\"msg\":\"Runner had abnormal exit kind; it will restart\"");
	assert_logged(&world->node.fixture, "\"msg\":\"Runner was not running for long, restarting after delay\"");
	assert_dumped(world, "\"endState\":{\"exitKind\":\"panicked\",\"error\":{},\"time\":\"");
	assert_dumped(world, "\"monitor\":null,\"backgroundWorkerCount\":0}");
	fake_node_pass(&world->node, 4300);
	assert_metric(&world->node.fixture, "runner_restarts", 0);
	fake_node_pass(&world->node, 5200);
	assert_metric(&world->node.fixture, "runner_restarts", 1);
	assert_metric(&world->node.fixture, "runner_starts", 1);
	assert_logged(&world->node.fixture, "\"msg\":\"Restarting runner\"");
	assert_logged(&world->node.fixture, "\"restarts\":1,\"virtualmachine\"");
	fake_node_pass(&world->node, 1500);
	assert_int_equal(world->node.monitor.connections, 2);
	assert_dumped(world, "\"endState\":null,\"previousEndStates\":[{\"exitKind\":\"panicked\",\"error\":{}");
	assert_dumped(world, "\"backgroundWorkerCount\":13}");
}

static void t32_a_runner_that_broke_late_restarts_at_once(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
	fake_node_pass(&world->node, 11000);
	break_runner(world);
	assert_metric(&world->node.fixture, "runner_restarts", 1);
	assert_logged(&world->node.fixture, "\"msg\":\"Runner was running for a long time, restarting immediately\"");
	fake_node_pass(&world->node, 600);
	assert_int_equal(world->node.monitor.connections, 2);
}

static void a_restarted_runner_starts_from_the_latest_vm_and_keeps_its_failures(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
	fake_node_pass(&world->node, 600);
	world->node.plugin_broken = true;
	world->node.load = 0.8;
	fake_node_pass(&world->node, 1500);
	assert_dumped(world, "\"failedSchedulerRequestCounter\":1");
	break_runner(world);
	world->node.plugin_broken = false;
	world->vm.cpu.use_milli = 750;
	world->vm.mem.use_slots = 6;
	world->vm.mem.slot_bytes = 1 << 29;
	send_event(world, VM_EVENT_UPDATED, "vm-a-x7k2p", "");
	world->node.load = 0.8;
	fake_node_pass(&world->node, 10500);
	assert_metric(&world->node.fixture, "runner_restarts", 1);
	assert_dumped(world, "\"failedSchedulerRequestCounter\":1");
	/* The new core took the VM's use, and patches count in its slots. */
	assert_int_equal(world->node.last_patch.slot_bytes, 1 << 29);
	assert_int_equal(world->node.last_patch.current.cpu_milli, 750);
}

static void a_vm_deleted_during_the_restart_wait_does_not_come_back(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
	fake_node_pass(&world->node, 1500);
	break_runner(world);
	send_event(world, VM_EVENT_DELETED, "vm-a-x7k2p", "");
	assert_logged(&world->node.fixture, "\"msg\":\"Canceling restart of Runner\"");
	fake_node_pass(&world->node, 12000);
	assert_metric(&world->node.fixture, "runner_restarts", 0);
	assert_int_equal(world->node.monitor.connections, 1);
}

static void one_runner_breaking_leaves_the_others_alone(void **state)
{
	struct world *world = *state;
	struct error err;

	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
	fake_node_pass(&world->node, 1500);
	break_runner(world);
	assert_true(vm_info_set_name(&world->vm, SLICE("apps"), SLICE("vm-b"), &err));
	send_event(world, VM_EVENT_ADDED, "vm-b-abcde", "");
	world->node.scrapes = 0;
	fake_node_pass(&world->node, 3000);
	assert_true(world->node.scrapes >= 2);
	assert_metric(&world->node.fixture, "runner_starts", 2);
	assert_metric(&world->node.fixture, "runner_thread_panics_total", 1);
}

static void a_stop_cancels_everything_and_the_dump_stays(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
	fake_node_pass(&world->node, 600);
	supervisor_stop(world->supervisor);
	fake_monitor_wait_closed(&world->node.fixture, &world->node.monitor);
	assert_int_equal(world->node.monitor.close_code, 1000);
	assert_logged(&world->node.fixture, "\"msg\":\"Ended without error\"");
	assert_logged(&world->node.fixture, "\"msg\":\"Runner's context was canceled; no need to restart\"");
	assert_dumped(world,
	              "{\"stopped\":true,\"pods\":[{\"podName\":{\"namespace\":\"apps\",\"name\":\"vm-a-x7k2p\"}");
	assert_dumped(world, "\"endState\":{\"exitKind\":\"canceled\",\"error\":null,");
	assert_dumped(world, "\"monitor\":null,\"backgroundWorkerCount\":0}");
	send_event(world, VM_EVENT_ADDED, "vm-b-abcde", "");
	assert_metric(&world->node.fixture, "runner_starts", 1);
}

static void the_dump_shows_what_the_specification_shows(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "ep-1");
	fake_node_pass(&world->node, 5500);
	assert_dumped(world, "\"status\":{\"startTime\":\"");
	assert_dumped(world, "\"endState\":null,\"previousEndStates\":[],\"lastSuccessfulMonitorComm\":\"");
	assert_dumped(world,
	              "\"failedMonitorRequestCounter\":0,\"failedNeonVMRequestCounter\":0,"
	              "\"failedSchedulerRequestCounter\":0,\"vmInfo\":{\"name\":\"vm-a\",\"namespace\":\"apps\"");
	assert_dumped(world,
	              "\"config\":{\"autoMigrationEnabled\":false,\"alwaysMigrate\":false,\"scalingEnabled\":true}}");
	assert_dumped(world, "\"state\":\"ok\",\"stateUpdatedAt\":\"");
	assert_dumped(world,
	              "\"runner\":{\"podIP\":\"127.0.0.1\",\"executorState\":{\"Config\":{\"ComputeUnit\":{\"vCPUs\":"
	              "\"250m\",\"mem\":\"1Gi\"}");
	assert_dumped(world, "\"Permit\":{\"vCPUs\":\"500m\",\"mem\":\"2Gi\"}");
	assert_dumped(world, "\"Approved\":{\"vCPUs\":\"500m\",\"mem\":\"2Gi\"}");
	assert_dumped(world, "\"monitor\":{\"waitersSize\":0},\"backgroundWorkerCount\":13}}]}");
}

static void the_dump_is_sorted_by_namespace_then_name(void **state)
{
	struct world *world = *state;
	struct error err;
	char *text;

	send_event(world, VM_EVENT_ADDED, "b", "");
	send_event(world, VM_EVENT_ADDED, "a", "");
	assert_true(vm_info_set_name(&world->vm, SLICE("aaa"), SLICE("vm-z"), &err));
	send_event(world, VM_EVENT_ADDED, "z", "");
	text = dump(world);
	assert_true(strstr(text, "\"name\":\"z\"") < strstr(text, "\"name\":\"a\""));
	assert_true(strstr(text, "\"name\":\"a\"") < strstr(text, "\"name\":\"b\""));
	free(text);
}

static void without_memory_an_added_vm_is_logged_and_can_be_added_again(void **state)
{
	struct world *world = *state;
	unsigned refusals = 0;

	for (unsigned long i = 1; i < 40; i++) {
		double runners;
		bool added;

		memory_fail_at(i);
		added = try_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
		memory_fail_at(0);
		/* Either it has its runner, or the event is to come again. */
		runners = fixture_metric(&world->node.fixture, "runners_current{is_endpoint=\"false\",state=\"ok\"}");
		assert_true(added ? runners > 0.5 : runners < 0.5);
		refusals += added ? 0 : 1;
		send_event(world, VM_EVENT_DELETED, "vm-a-x7k2p", "");
	}
	assert_in_range(refusals, 4, 30);
	send_event(world, VM_EVENT_ADDED, "vm-a-x7k2p", "");
	fake_node_pass(&world->node, 1200);
	assert_true(world->node.scrapes >= 1);
	assert_metric(&world->node.fixture, "runners_current{is_endpoint=\"false\",state=\"ok\"}", 1);
}

static void too_long_names_are_refused(void **state)
{
	struct world *world = *state;
	char name[400];

	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	send_event(world, VM_EVENT_ADDED, name, "");
	assert_metric(&world->node.fixture, "runner_starts", 0);
	assert_logged(&world->node.fixture, "the pod's name is over 253 bytes");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_added_vm_gets_a_runner),
		TEST(a_deleted_vm_loses_it),
		TEST(events_that_do_not_fit_are_logged_and_ignored),
		TEST(an_update_reaches_the_runner_and_the_gauge),
		TEST(t32_a_runner_that_broke_soon_restarts_after_five_to_nine_seconds),
		TEST(t32_a_runner_that_broke_late_restarts_at_once),
		TEST(a_restarted_runner_starts_from_the_latest_vm_and_keeps_its_failures),
		TEST(a_vm_deleted_during_the_restart_wait_does_not_come_back),
		TEST(one_runner_breaking_leaves_the_others_alone),
		TEST(a_stop_cancels_everything_and_the_dump_stays),
		TEST(the_dump_shows_what_the_specification_shows),
		TEST(the_dump_is_sorted_by_namespace_then_name),
		TEST(without_memory_an_added_vm_is_logged_and_can_be_added_again),
		TEST(too_long_names_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
