/*
 * What a runner and its supervisor tell Kubernetes of, when, and in which words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/kube_event_body.h"
#include "agent/runner_events.h"
#include "agent/supervisor.h"
#include "base/memory.h"
#include "tests/unit/agent/fake_node.h"

#define GIB (UINT64_C(1) << 30)

/* "Scaled apps/vm-a: Scaled from …\n…" */
struct record {
	char text[8192];
};

static void record_event(void *context, const struct kube_event *event)
{
	struct record *record = context;
	size_t length = strlen(record->text);

	(void)snprintf(record->text + length, sizeof record->text - length, "%s %.*s/%.*s: %.*s\n",
	               kube_event_reason_name(event->reason), SLICE_ARGS(event->namespace), SLICE_ARGS(event->name),
	               SLICE_ARGS(event->message));
}

struct world {
	struct fake_node node;
	struct record record;
	struct kube_event_sink sink;
	struct supervisor *supervisor;
	struct vm_info vm;
	struct runner_status status;
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error err;

	fake_node_begin(&world->node);
	world->vm = fixture_vm();
	world->sink = (struct kube_event_sink){ .context = &world->record, .submit = record_event };
	world->node.environment.kube_events = &world->sink;
	world->supervisor = supervisor_create(&world->node.environment, &err);
	assert_non_null(world->supervisor);
	runner_status_init(&world->status, &world->node.fixture.config, &world->node.fixture.clock,
	                   world->node.fixture.metrics, &world->vm, SLICE(""));
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	runner_status_destroy(&world->status);
	supervisor_destroy(world->supervisor);
	fake_node_end(&world->node);
	free(world);
	return 0;
}

static void expect_told(struct world *world, const char *text)
{
	assert_string_equal(world->record.text, text);
	world->record.text[0] = '\0';
}

static void expect_among_told(const struct world *world, const char *text)
{
	if (strstr(world->record.text, text) == NULL)
		fail_msg("no %s among what was told: %s", text, world->record.text);
}

static void send_event(struct world *world, enum vm_event_kind kind)
{
	const struct vm_event event = {
		.kind = kind,
		.vm_info = &world->vm,
		.pod_name = SLICE("vm-a-x7k2p"),
		.pod_ip = SLICE("127.0.0.1"),
		.endpoint_id = SLICE(""),
	};

	assert_true(supervisor_handle_event(world->supervisor, &event));
}

/* ---- words ---- */

static void a_patch_is_told_with_both_sizes_and_a_failed_one_with_its_reason(void **state)
{
	const struct core_change_request request = { .current = { 250, GIB }, .target = { 1500, 6 * GIB } };
	struct world *world = *state;
	struct error err;

	runner_events_tell_patch(&world->node.environment, &world->vm, &request, NULL);
	expect_told(world, "Scaled apps/vm-a: Scaled from 0.25 CPU and 1Gi of memory to 1.5 CPU and 6Gi of memory\n");
	(void)error_set(&err, ERROR_REFUSED, "no such VM");
	(void)error_wrap(&err, "error making VM patch request");
	runner_events_tell_patch(&world->node.environment, &world->vm, &request, &err);
	expect_told(world, "ScalingFailed apps/vm-a: Can't scale from 0.25 CPU and 1Gi of memory to 1.5 CPU and 6Gi of "
	                   "memory: no such VM\n");
}

static void only_a_permit_for_less_is_told(void **state)
{
	const struct core_plugin_request request = { .target = { 1000, 4 * GIB } };
	struct world *world = *state;

	runner_events_tell_permit(&world->node.environment, &world->vm, &request, (struct resources){ 1000, 4 * GIB });
	expect_told(world, "");
	runner_events_tell_permit(&world->node.environment, &world->vm, &request, (struct resources){ 1000, 3 * GIB });
	expect_told(world,
	            "UpscaleDenied apps/vm-a: The scheduler permits 1 CPU and 3Gi of memory of the 1 CPU and 4Gi "
	            "of memory that it was asked for\n");
	runner_events_tell_permit(&world->node.environment, &world->vm, &request, (struct resources){ 750, 4 * GIB });
	expect_among_told(world, "permits 0.75 CPU and 4Gi");
}

static void a_monitor_is_back_only_after_it_was_lost(void **state)
{
	struct world *world = *state;

	runner_events_tell_monitor(&world->node.environment, &world->status, true);
	expect_told(world, "");
	runner_events_tell_monitor(&world->node.environment, &world->status, false);
	runner_events_tell_monitor(&world->node.environment, &world->status, false);
	expect_told(world, "MonitorLost apps/vm-a: The connection to the vm-monitor is lost\n");
	runner_events_tell_monitor(&world->node.environment, &world->status, true);
	runner_events_tell_monitor(&world->node.environment, &world->status, true);
	expect_told(world, "MonitorBack apps/vm-a: The vm-monitor is connected again\n");
}

static void only_a_change_of_the_state_is_told(void **state)
{
	struct world *world = *state;

	runner_events_tell_state(&world->node.environment, &world->status);
	expect_told(world, "");
	for (int i = 0; i < 3; i++)
		runner_status_failed(&world->status, RUNNER_FAILURE_NEONVM);
	assert_int_equal(world->status.label.state, AGENT_RUNNER_STUCK);
	runner_events_tell_state(&world->node.environment, &world->status);
	runner_events_tell_state(&world->node.environment, &world->status);
	expect_told(world, "Stuck apps/vm-a: Scaling doesn't work as it should: neonvm requests failed\n");
	/* A run that has broken isn't one that works again. */
	world->status.label.state = AGENT_RUNNER_PANICKED;
	runner_events_tell_state(&world->node.environment, &world->status);
	expect_told(world, "");
	world->status.label.state = AGENT_RUNNER_OK;
	runner_events_tell_state(&world->node.environment, &world->status);
	runner_events_tell_state(&world->node.environment, &world->status);
	expect_told(world, "Recovered apps/vm-a: Scaling works again\n");
	world->status.label.state = AGENT_RUNNER_STUCK; /* for the gauge that is counted down at the end */
}

static void without_memory_for_the_words_it_is_told_all_the_same(void **state)
{
	const struct core_change_request request = { .current = { 1000, 4 * GIB }, .target = { 750, 3 * GIB } };
	struct world *world = *state;

	memory_fail_at(1);
	runner_events_tell_downscale_denied(&world->node.environment, &world->vm, &request);
	memory_fail_at(0);
	expect_told(world, "DownscaleDenied apps/vm-a: \n");
	runner_events_tell_downscale_denied(&world->node.environment, &world->vm, &request);
	expect_told(world, "DownscaleDenied apps/vm-a: The vm-monitor denied to scale from 1 CPU and 4Gi of memory to "
	                   "0.75 CPU and 3Gi of memory\n");
}

/* ---- when ---- */

static void a_vm_that_grows_and_goes_has_one_event(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED);
	fake_node_pass(&world->node, 1500);
	expect_told(world, "");
	world->node.load = 0.8;
	fake_node_pass(&world->node, 3000);
	expect_told(world, "Scaled apps/vm-a: Scaled from 0.5 CPU and 2Gi of memory to 1 CPU and 4Gi of memory\n");
	/* That its runner lets go of the monitor is nothing to tell. */
	send_event(world, VM_EVENT_DELETED);
	fake_node_pass(&world->node, 1000);
	expect_told(world, "");
}

static void a_runner_that_is_restarted_is_told_of(void **state)
{
	struct world *world = *state;

	send_event(world, VM_EVENT_ADDED);
	fake_node_pass(&world->node, 11000);
	world->node.break_a_runner = true;
	world->node.load = 0.8;
	for (int i = 0; i < 40 && world->record.text[0] == '\0'; i++)
		fake_node_pass(&world->node, 100);
	expect_among_told(world,
	                  "RunnerRestarted apps/vm-a: The VM's runner failed and is restarted; the agent's log says "
	                  "why (restarts: 1)\n");
	assert_null(strstr(world->record.text, "Monitor"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_patch_is_told_with_both_sizes_and_a_failed_one_with_its_reason),
		TEST(only_a_permit_for_less_is_told),
		TEST(a_monitor_is_back_only_after_it_was_lost),
		TEST(only_a_change_of_the_state_is_told),
		TEST(without_memory_for_the_words_it_is_told_all_the_same),
		TEST(a_vm_that_grows_and_goes_has_one_event),
		TEST(a_runner_that_is_restarted_is_told_of),
	};

	return cmocka_run_group_tests_name("runner_events", tests, NULL, NULL);
}
