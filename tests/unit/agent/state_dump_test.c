#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/state_dump.h"
#include "tests/unit/agent/fake_node.h"
#include "tests/unit/agent/plain_http.h"

enum { DUMP_ARENA_BYTES = 4 << 20, TIMEOUT_MS = 300 };

struct world {
	struct fake_node node;
	struct supervisor *supervisor;
	struct state_dump_server *server;
	struct address address;
	char answer[PLAIN_HTTP_ANSWER_BYTES];
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct state_dump_server_options options = { .timeout_ns = (uint64_t)TIMEOUT_MS * NS_PER_MS };
	struct error err;

	fake_node_begin(&world->node);
	world->supervisor = supervisor_create(&world->node.environment, &err);
	options.loop = world->node.fixture.loop;
	options.supervisor = world->supervisor;
	options.log_sink = world->node.fixture.log_sink;
	assert_true(address_parse(SLICE("127.0.0.1"), 0, &options.address));
	world->server = state_dump_server_start(&options, &err);
	if (world->server == NULL)
		fail_msg("state_dump_server_start: %s", err.text);
	assert_true(state_dump_server_address(world->server, &world->address));
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	state_dump_server_stop(world->server);
	supervisor_destroy(world->supervisor);
	fake_node_end(&world->node);
	free(world);
	return 0;
}

static void assert_answer(struct world *world, const char *head, const char *body, int status, const char *expected)
{
	plain_http_ask(world->node.fixture.loop, &world->address, head, body, world->answer);
	assert_int_equal(plain_http_status(world->answer), status);
	assert_non_null(strstr(world->answer, "\r\nContent-Type: text/plain; charset=utf-8\r\n"));
	assert_string_equal(plain_http_body(world->answer), expected);
}

#define GET "GET / HTTP/1.1\r\n"
#define NO_VMS "{\"stopped\":false,\"pods\":[]}"

static void t51_a_body_that_is_no_object_is_bad(void **state)
{
	struct world *world = *state;

	assert_answer(world, GET, "", 400, "bad JSON");
	assert_answer(world, GET, "[]", 400, "bad JSON");
	assert_answer(world, GET, "\"{}\"", 400, "bad JSON");
	assert_answer(world, GET, "7", 400, "bad JSON");
	assert_answer(world, GET, "true", 400, "bad JSON");
	assert_answer(world, GET, "{", 400, "bad JSON");
	assert_answer(world, GET, "}", 400, "bad JSON");
	assert_answer(world, GET, "nul", 400, "bad JSON");
}

static void t52_only_get_will_do(void **state)
{
	struct world *world = *state;

	assert_answer(world, "POST / HTTP/1.1\r\n", "{}", 405, "request method must be GET");
	assert_answer(world, "PUT / HTTP/1.1\r\n", "", 405, "request method must be GET");
}

static void t53_any_path_will_do(void **state)
{
	struct world *world = *state;

	assert_answer(world, "GET /any/path?q HTTP/1.1\r\n", "{}", 200, NO_VMS);
}

static void t54_without_vms_there_are_no_pods(void **state)
{
	struct world *world = *state;

	assert_answer(world, GET, "{}", 200, NO_VMS);
	assert_answer(world, GET, "null", 200, NO_VMS);
	assert_answer(world, GET, " {\"what\":[1,{}],\"what\":2} and more", 200, NO_VMS);
}

static void generation_a_has_a_shape_of_its_own(void **state)
{
	struct world *world = *state;
	struct state_dump_server_options options = {
		.loop = world->node.fixture.loop,
		.timeout_ns = (uint64_t)TIMEOUT_MS * NS_PER_MS,
		.supervisor = world->supervisor,
		.generation = AGENT_GENERATION_A,
		.log_sink = world->node.fixture.log_sink,
	};
	struct error err;

	state_dump_server_stop(world->server);
	assert_true(address_parse(SLICE("127.0.0.1"), 0, &options.address));
	world->server = state_dump_server_start(&options, &err);
	assert_non_null(world->server);
	assert_true(state_dump_server_address(world->server, &world->address));
	assert_answer(world, GET, "{}", 200,
	              "{\"stopped\":false,\"buildInfo\":{\"gitInfo\":\"ballast " BALLAST_VERSION
	              "\",\"goVersion\":\"\\u003cunknown\\u003e\"},\"pods\":[]}");
	assert_answer(world, GET, "", 400, "bad JSON"); /* M8 */
	assert_answer(world, "POST / HTTP/1.1\r\n", "{}", 405, "request method must be GET");
}

static void requests_are_logged(void **state)
{
	struct world *world = *state;

	assert_answer(world, GET, "{}", 200, NO_VMS);
	assert_logged(&world->node.fixture,
	              "\"logger\":\"autoscaler-agent.dump-state.http\",\"msg\":\"Received request\","
	              "\"client\":\"127.0.0.1:");
	assert_logged(&world->node.fixture, "\",\"request\":{}}");
	assert_logged(&world->node.fixture, "\"msg\":\"Responding to request\",\"status\":200}");
}

static void requests_that_are_refused_are_logged_too(void **state)
{
	struct world *world = *state;
	static const struct {
		const char *head;
		int status;
		const char *answer;
	} CASES[] = {
		{ GET, 400, "bad JSON" },
		{ "POST / HTTP/1.1\r\n", 405, "request method must be GET" },
	};

	for (size_t i = 0; i < 2; i++) {
		const char *received, *responding;
		char expected[64];

		fixture_log_forget(&world->node.fixture);
		assert_answer(world, CASES[i].head, "", CASES[i].status, CASES[i].answer);
		(void)snprintf(expected, sizeof expected, "\"msg\":\"Responding to request\",\"status\":%d}",
		               CASES[i].status);
		assert_int_equal(fixture_log_count(&world->node.fixture, "\"msg\":\"Received request\""), 1);
		assert_int_equal(fixture_log_count(&world->node.fixture, "\"msg\":\"Responding to request\""), 1);
		received = strstr(fixture_log(&world->node.fixture),
		                  "\"msg\":\"Received request\",\"client\":\"127.0.0.1:");
		assert_non_null(received);
		responding = strstr(received, expected);
		assert_non_null(responding);
		assert_in_range(strstr(received, "\",\"request\":null}") - received, 1, responding - received);
	}
}

static void add_vm(struct world *world, const char *namespace, const char *pod_name)
{
	struct vm_info vm = fixture_vm();
	struct vm_event event = {
		.kind = VM_EVENT_ADDED,
		.vm_info = &vm,
		.pod_name = slice_of(pod_name),
		.pod_ip = SLICE("127.0.0.1"),
		.endpoint_id = SLICE("ep-1"),
	};
	struct error err;

	assert_true(vm_info_set_name(&vm, slice_of(namespace), SLICE("vm-a"), &err));
	supervisor_handle_event(world->supervisor, &event);
}

static void pods_are_dumped_in_order(void **state)
{
	struct world *world = *state;
	struct arena arena;
	struct state_dump_dump dump;
	struct error err;

	add_vm(world, "b", "p1");
	add_vm(world, "a", "p2");
	add_vm(world, "a", "p1");
	fake_node_pass(&world->node, 100);
	plain_http_ask(world->node.fixture.loop, &world->address, GET, "{}", world->answer);
	arena_init(&arena, DUMP_ARENA_BYTES);
	if (!state_dump_dump_from_json(slice_of(plain_http_body(world->answer)), &arena, &dump, &err))
		fail_msg("%s: %s", err.text, world->answer);
	assert_false(dump.stopped);
	assert_int_equal(dump.pods_count, 3);
	assert_true(slice_equal_text(dump.pods[0].pod_name.namespace, "a"));
	assert_true(slice_equal_text(dump.pods[0].pod_name.name, "p1"));
	assert_true(slice_equal_text(dump.pods[1].pod_name.name, "p2"));
	assert_true(slice_equal_text(dump.pods[2].pod_name.namespace, "b"));
	assert_true(dump.pods[0].has_runner);
	assert_true(slice_equal_text(dump.pods[0].runner.pod_ip, "127.0.0.1"));
	assert_true(slice_equal_text(dump.pods[0].status.endpoint_id, "ep-1"));
	assert_true(slice_equal_text(dump.pods[0].status.state, "ok"));
	assert_int_equal(dump.pods[0].status.vm_info.cpu.use_milli, 500);
	assert_non_null(strstr(world->answer,
	                       "{\"stopped\":false,\"pods\":[{\"podName\":{\"namespace\":\"a\",\"name\":\"p1\"},"
	                       "\"status\":{\"startTime\":\"20"));
	arena_destroy(&arena);
}

static void after_the_stop_it_says_so(void **state)
{
	struct world *world = *state;

	add_vm(world, "a", "p1");
	fake_node_pass(&world->node, 20);
	supervisor_stop(world->supervisor);
	plain_http_ask(world->node.fixture.loop, &world->address, GET, "{}", world->answer);
	assert_non_null(strstr(world->answer, "\r\n\r\n{\"stopped\":true,\"pods\":[{\"podName\":{\"namespace\":\"a\""));
	assert_non_null(strstr(world->answer, "\"endState\":{\"exitKind\":\"canceled\",\"error\":null,\"time\":\"20"));
}

static void a_request_that_never_ends_is_cut_off(void **state)
{
	struct world *world = *state;
	const char *request = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{";
	int open = plain_http_connect(&world->address);

	assert_int_equal(send(open, request, strlen(request), 0), (ssize_t)strlen(request));
	fake_node_pass(&world->node, 2 * TIMEOUT_MS);
	plain_http_receive(world->node.fixture.loop, open, world->answer);
	assert_null(strstr(world->answer, "stopped"));
}

static void too_large_a_body_is_refused(void **state)
{
	struct world *world = *state;
	const char *request = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n{";
	int open = plain_http_connect(&world->address);

	assert_int_equal(send(open, request, strlen(request), 0), (ssize_t)strlen(request));
	plain_http_receive(world->node.fixture.loop, open, world->answer);
	assert_int_equal(plain_http_status(world->answer), 413);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(t51_a_body_that_is_no_object_is_bad),
		TEST(t52_only_get_will_do),
		TEST(t53_any_path_will_do),
		TEST(t54_without_vms_there_are_no_pods),
		TEST(generation_a_has_a_shape_of_its_own),
		TEST(requests_are_logged),
		TEST(requests_that_are_refused_are_logged_too),
		TEST(pods_are_dumped_in_order),
		TEST(after_the_stop_it_says_so),
		TEST(a_request_that_never_ends_is_cut_off),
		TEST(too_large_a_body_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
