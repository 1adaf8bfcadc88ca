/*
 * Generation A's state dump of runners at work (spec generations 4.8). What the core has in it: core_dump_a_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/supervisor.h"
#include "agent/supervisor_dump_a.h"
#include "agent/supervisor_internal.h"
#include "base/memory.h"
#include "tests/unit/agent/fake_node.h"

struct world {
	struct fake_node node;
	struct supervisor *supervisor;
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error err;

	fake_node_begin(&world->node);
	world->node.fixture.config.core.plugin_gate = true;
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

static void add_vm(struct world *world, const char *pod_name)
{
	struct vm_info vm = fixture_vm();
	const struct vm_event event = {
		.kind = VM_EVENT_ADDED,
		.vm_info = &vm,
		.pod_name = slice_of(pod_name),
		.pod_ip = SLICE("127.0.0.1"),
		.endpoint_id = SLICE("ep-1"),
	};

	supervisor_handle_event(world->supervisor, &event);
}

/* As JSON; to be freed. */
static char *dump(struct world *world)
{
	struct state_dump_a_dump message;
	struct buffer text;
	struct arena arena;
	struct error err;
	char *copy;

	arena_init(&arena, 1024 * 1024);
	buffer_init(&text, 1024 * 1024);
	if (!supervisor_dump_a(world->supervisor, &arena, &message, &err) ||
	    !state_dump_a_dump_to_json(&message, &text, &err))
		fail_msg("no dump: %s", err.text);
	buffer_append_char(&text, '\0');
	copy = strdup(text.data);
	buffer_destroy(&text);
	arena_destroy(&arena);
	return copy;
}

static void assert_part(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("not dumped: %s\nin: %s", part, text);
}

static void without_vms_there_are_no_pods(void **state)
{
	char *text = dump(*state);

	assert_string_equal(text, "{\"stopped\":false,\"buildInfo\":{\"gitInfo\":\"ballast " BALLAST_VERSION
	                          "\",\"goVersion\":\"\\u003cunknown\\u003e\"},\"pods\":[]}");
	free(text);
}

static void a_runner_shows_its_scheduler_and_its_monitor(void **state)
{
	struct world *world = *state;
	char *text;

	add_vm(world, "vm-a-x7k2p");
	fake_node_pass(&world->node, 600);
	text = dump(world);
	assert_part(
		text,
		"\"pods\":[{\"podName\":{\"namespace\":\"apps\",\"name\":\"vm-a-x7k2p\"},\"status\":{\"startTime\":\"");
	assert_part(text, "\",\"endState\":null,\"previousEndStates\":[],\"lastSuccessfulMonitorComm\":");
	assert_part(text, ",\"vmInfo\":{\"name\":\"vm-a\",\"namespace\":\"apps\",\"cpu\":{\"min\":");
	assert_part(text, "},\"endpointID\":\"ep-1\",\"endpointAssignedAt\":\"");
	assert_part(text, "\",\"state\":\"ok\",\"stateUpdatedAt\":\"");
	assert_part(text,
	            "},\"runner\":{\"podIP\":\"127.0.0.1\",\"executorState\":{\"config\":{\"DefaultScalingConfig\":{");
	assert_part(text, "\"plugin\":{\"alive\":true,");
	assert_part(text,
	            ",\"scheduler\":{\"info\":{\"PodName\":{\"namespace\":\"kube-system\",\"name\":\"scheduler-1\"},"
	            "\"UID\":\"uid-1\",\"IP\":\"127.0.0.1\"}},\"monitor\":{\"waitersSize\":");
	assert_part(text, "},\"backgroundWorkerCount\":13}}]}");
	/* What only the newest agent has. */
	assert_null(strstr(text, "failedMonitorRequestCounter"));
	assert_null(strstr(text, "evision"));
	free(text);
}

static void without_a_scheduler_there_is_null(void **state)
{
	struct world *world = *state;
	char *text;

	world->node.no_scheduler = true;
	add_vm(world, "vm-a-x7k2p");
	fake_node_pass(&world->node, 600);
	text = dump(world);
	assert_part(text, "\"plugin\":{\"alive\":false,");
	assert_part(text, ",\"scheduler\":null,\"monitor\":{");
	free(text);
}

/* Generations 4.8: the reference would crash. */
static void a_pod_without_a_runner_says_so(void **state)
{
	struct world *world = *state;
	struct runner *runner;
	struct pod *pod;
	char *text;

	add_vm(world, "vm-a-x7k2p");
	pod = table_next(&world->supervisor->pods, NULL)->value;
	runner = pod->runner;
	pod->runner = NULL; /* it couldn't be started again, for want of memory */
	text = dump(world);
	pod->runner = runner;
	assert_part(text, "\",\"state\":\"ok\",\"stateUpdatedAt\":\"");
	assert_part(text, "Z\"},\"collectionError\":{}}]}");
	assert_null(strstr(text, "\"runner\""));
	free(text);
}

static void a_run_that_broke_is_shown_with_its_end(void **state)
{
	struct world *world = *state;
	char *text;

	add_vm(world, "vm-a-x7k2p");
	fake_node_pass(&world->node, 1500);
	world->node.break_a_runner = true;
	world->node.load = 0.8;
	fake_node_pass(&world->node, 1500);
	assert_metric(&world->node.fixture, "runner_thread_panics_total", 1);
	text = dump(world);
	assert_part(text, "\"endState\":{\"exitKind\":\"panicked\",\"error\":{},\"time\":\"");
	assert_part(text, ",\"monitor\":null,\"backgroundWorkerCount\":0}}]}");
	free(text);
}

static void pods_are_sorted_by_name(void **state)
{
	struct world *world = *state;
	char *text;

	add_vm(world, "vm-b");
	add_vm(world, "vm-c");
	add_vm(world, "vm-a");
	text = dump(world);
	assert_true(strstr(text, "\"name\":\"vm-a\"},\"status\"") < strstr(text, "\"name\":\"vm-b\"},\"status\""));
	assert_true(strstr(text, "\"name\":\"vm-b\"},\"status\"") < strstr(text, "\"name\":\"vm-c\"},\"status\""));
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_vms_there_are_no_pods),          TEST(a_runner_shows_its_scheduler_and_its_monitor),
		TEST(without_a_scheduler_there_is_null),      TEST(a_pod_without_a_runner_says_so),
		TEST(a_run_that_broke_is_shown_with_its_end), TEST(pods_are_sorted_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
