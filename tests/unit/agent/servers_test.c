#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/servers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "net/loop_epoll.h"
#include "tests/unit/agent/plain_http.h"

struct world {
	struct loop *loop;
	struct agent_metrics *metrics;
	struct vm_metrics *vm_metrics;
	struct supervisor *supervisor;
	struct runner_environment environment;
	struct servers *servers;
	struct servers_options options;
	bool drained;
	char answer[PLAIN_HTTP_ANSWER_BYTES];
};

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error err;

	world->loop = loop_epoll_create(&err);
	world->metrics = agent_metrics_create(&err);
	world->vm_metrics = vm_metrics_create(&err);
	world->environment = (struct runner_environment){ .loop = world->loop, .metrics = world->metrics };
	world->supervisor = supervisor_create(&world->environment, &err);
	world->options = (struct servers_options){
		.loop = world->loop,
		.listen_address = "127.0.0.1",
		.dump = { .present = true, .timeout_ns = NS_PER_S },
		.metrics = world->metrics,
		.vm_metrics = world->vm_metrics,
		.supervisor = world->supervisor,
	};
	world->servers = servers_start(&world->options, &err);
	if (world->servers == NULL)
		fail_msg("servers_start: %s", err.text);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	servers_destroy(world->servers);
	supervisor_destroy(world->supervisor);
	vm_metrics_destroy(world->vm_metrics);
	agent_metrics_destroy(world->metrics);
	loop_destroy(world->loop);
	free(world);
	return 0;
}

static struct address address_of(const struct world *world, enum server_kind kind)
{
	struct address address;

	assert_true(servers_address(world->servers, kind, &address));
	return address;
}

/* The answer's status; the whole of it is in world->answer. */
static int ask(struct world *world, enum server_kind kind, const char *head, const char *body)
{
	struct address address = address_of(world, kind);

	plain_http_ask(world->loop, &address, head, body, world->answer);
	return plain_http_status(world->answer);
}

static bool answer_has(const struct world *world, const char *text)
{
	return strstr(world->answer, text) != NULL;
}

static const char *answer_body(const struct world *world)
{
	return plain_http_body(world->answer);
}

#define METRICS_TYPE "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8; escaping=values\r\n"

static void the_agents_page_is_on_its_port(void **state)
{
	struct world *world = *state;

	agent_metrics_count_runner_start(world->metrics);
	assert_int_equal(ask(world, SERVER_METRICS, "GET /metrics HTTP/1.1\r\n", ""), 200);
	assert_true(answer_has(world, METRICS_TYPE));
	assert_true(answer_has(world, "\nautoscaling_agent_runner_starts 1\n"));
	assert_false(answer_has(world, "Content-Encoding"));
	/* The query doesn't matter. */
	assert_int_equal(ask(world, SERVER_METRICS, "GET /metrics?name[]=x HTTP/1.1\r\n", ""), 200);
}

static void the_page_of_vms_is_on_the_other(void **state)
{
	struct world *world = *state;
	const struct vm_gauges gauges = { .namespace = SLICE_INIT("apps"), .name = SLICE_INIT("vm-a") };

	vm_metrics_show(world->vm_metrics, &gauges);
	assert_int_equal(
		ask(world, SERVER_VM_METRICS, "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n", ""),
		200);
	assert_true(answer_has(world, METRICS_TYPE));
	assert_true(
		answer_has(world, "autoscaling_vm_restart_count{endpoint_id=\"\",project_id=\"\",vm_name=\"vm-a\","));
	assert_false(answer_has(world, "autoscaling_agent_"));
}

static void any_method_is_answered(void **state)
{
	struct world *world = *state;

	assert_int_equal(ask(world, SERVER_METRICS, "POST /metrics HTTP/1.1\r\n", "something"), 200);
	assert_true(answer_has(world, "autoscaling_agent_runner_starts 0\n"));
	assert_int_equal(ask(world, SERVER_VM_METRICS, "DELETE /metrics HTTP/1.1\r\n", ""), 200);
	assert_int_equal(ask(world, SERVER_METRICS, "HEAD /metrics HTTP/1.1\r\n", ""), 200);
	assert_string_equal(answer_body(world), "");
}

static void other_paths_are_not_found(void **state)
{
	static const char *const heads[] = { "GET / HTTP/1.1\r\n", "GET /metrics/ HTTP/1.1\r\n",
		                             "GET /Metrics HTTP/1.1\r\n", "PUT /metrics2 HTTP/1.1\r\n" };
	struct world *world = *state;

	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		assert_int_equal(ask(world, SERVER_METRICS, heads[i], ""), 404);
		assert_string_equal(answer_body(world), "404 page not found\n");
		assert_true(answer_has(world, "\r\nContent-Type: text/plain; charset=utf-8\r\n"));
		assert_int_equal(ask(world, SERVER_VM_METRICS, heads[i], ""), 404);
	}
	/* Probes go to the agent's port alone. */
	assert_int_equal(ask(world, SERVER_VM_METRICS, "GET /readyz HTTP/1.1\r\n", ""), 404);
	assert_int_equal(ask(world, SERVER_VM_METRICS, "GET /livez HTTP/1.1\r\n", ""), 404);
}

static void on_drained(void *context)
{
	((struct world *)context)->drained = true;
}

static void it_is_ready_until_it_drains(void **state)
{
	static const char request[] = "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n";
	struct world *world = *state;
	struct address address = address_of(world, SERVER_METRICS);
	int open = plain_http_connect(&address);

	assert_int_equal(ask(world, SERVER_METRICS, "GET /livez HTTP/1.1\r\n", ""), 200);
	assert_int_equal(ask(world, SERVER_METRICS, "GET /readyz HTTP/1.1\r\n", ""), 200);
	/* A request that has begun when the agent begins to drain. */
	assert_int_equal(send(open, request, 10, 0), 10);
	for (int i = 0; i < 20; i++)
		plain_http_turn(world->loop);
	servers_drain(world->servers, (uint64_t)5 * NS_PER_S, on_drained, world);
	plain_http_turn(world->loop);
	assert_false(world->drained);
	assert_int_equal(send(open, request + 10, sizeof request - 11, 0), (int)sizeof request - 11);
	plain_http_receive(world->loop, open, world->answer);
	assert_int_equal(plain_http_status(world->answer), 503);
	for (int i = 0; i < 1000 && !world->drained; i++)
		plain_http_turn(world->loop);
	assert_true(world->drained);
	assert_int_equal(plain_http_connect(&address), -1);
}

static void the_dump_goes_on_while_the_others_drain(void **state)
{
	struct world *world = *state;

	servers_drain(world->servers, NS_PER_S, on_drained, world);
	for (int i = 0; i < 1000 && !world->drained; i++)
		plain_http_turn(world->loop);
	assert_true(world->drained);
	supervisor_stop(world->supervisor);
	assert_int_equal(ask(world, SERVER_DUMP, "GET / HTTP/1.1\r\n", "{}"), 200);
	assert_string_equal(answer_body(world), "{\"stopped\":true,\"pods\":[]}");
}

static void a_taken_port_is_named(void **state)
{
	struct world *world = *state;
	struct servers_options options = world->options;
	char expected[256];
	struct error err;

	options.metrics_port = address_of(world, SERVER_METRICS).port;
	assert_null(servers_start(&options, &err));
	snprintf(expected, sizeof expected,
	         "error starting prometheus metrics server: error listening on TCP port %u: ", options.metrics_port);
	assert_true(slice_starts_with(slice_of(err.text), slice_of(expected)));
	assert_string_equal(error_root(&err), "address already in use");
	options.metrics_port = 0;
	options.dump.port = address_of(world, SERVER_DUMP).port;
	assert_null(servers_start(&options, &err));
	snprintf(expected, sizeof expected,
	         "error starting dump state server: error binding to 127.0.0.1:%u: ", options.dump.port);
	assert_true(slice_starts_with(slice_of(err.text), slice_of(expected)));
	options.listen_address = "localhost";
	assert_null(servers_start(&options, &err));
	assert_non_null(strstr(err.text, "error listening on TCP port 0: \"localhost\" is no literal IP address"));
}

/* T2. */
static void without_a_dump_section_nothing_listens_there(void **state)
{
	struct world *world = *state;
	struct servers_options options = world->options;
	struct address address;
	struct error err;
	struct servers *servers;

	options.dump.present = false;
	servers = servers_start(&options, &err);
	assert_non_null(servers);
	assert_true(servers_address(servers, SERVER_METRICS, &address));
	assert_false(servers_address(servers, SERVER_DUMP, &address));
	servers_destroy(servers);
}

static void starting_fails_cleanly_when_memory_is_short(void **state)
{
	struct world *world = *state;
	struct servers *servers = NULL;
	unsigned long step = 0;

	while (servers == NULL) {
		struct error err = { 0 };

		memory_fail_at(++step);
		servers = servers_start(&world->options, &err);
		memory_fail_at(0);
		if (servers == NULL)
			assert_int_equal(err.code, ERROR_NO_MEMORY);
		assert_true(step < 100);
	}
	assert_true(step > 3);
	servers_destroy(servers);
}

static void a_page_that_finds_no_memory_is_an_error(void **state)
{
	struct world *world = *state;
	struct buffer page;
	struct error err;

	buffer_init(&page, 100); /* as little as could happen */
	assert_false(agent_metrics_print(world->metrics, &page, &err));
	assert_int_equal(ask(world, SERVER_METRICS, "GET /metrics HTTP/1.1\r\n", ""), 200);
	assert_true(answer_has(world, "\npromhttp_metric_handler_errors_total{cause=\"encoding\"} 1\n"));
	buffer_destroy(&page);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_agents_page_is_on_its_port),
		TEST(the_page_of_vms_is_on_the_other),
		TEST(any_method_is_answered),
		TEST(other_paths_are_not_found),
		TEST(it_is_ready_until_it_drains),
		TEST(the_dump_goes_on_while_the_others_drain),
		TEST(a_taken_port_is_named),
		TEST(without_a_dump_section_nothing_listens_there),
		TEST(starting_fails_cleanly_when_memory_is_short),
		TEST(a_page_that_finds_no_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
