/*
 * Everything around a runner, for tests: a VM with a metrics page and a vm-monitor, a scheduler plugin, and
 * VirtualMachine objects that can be patched. All of it answers by itself, the way the test says.
 */
#ifndef BALLAST_TESTS_FAKE_NODE_H
#define BALLAST_TESTS_FAKE_NODE_H

#include "agent/runner.h"
#include "base/arena.h"
#include "gen/plugin.gen.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "tests/unit/agent/agent_fixture.h"
#include "tests/unit/agent/fake_monitor.h"

struct fake_patch {
	struct fake_node *node;
	struct loop_task task;
	runner_patch_callback *callback;
	void *context;
};

struct fake_node {
	struct fixture fixture;
	struct http_client *http;
	struct metrics_text_parser parser;
	struct fake_monitor monitor;
	struct http_server *page_server, *plugin_server;
	struct runner_environment environment;
	struct plugin_versions plugin_versions;
	struct scaling_event_sink sink;
	double load;
	int scrapes;
	int plugin_requests;
	struct resources plugin_wanted; /* of the last request */
	struct resources plugin_limit;  /* grants no more */
	bool plugin_broken;
	bool plugin_hangs;      /* answers nothing; the test does, to the call it holds */
	struct http_call *held; /* NULL: none */
	bool no_scheduler;
	int patches;
	int cancelled_patches;
	struct runner_patch last_patch;
	char last_patch_name[256];
	bool patch_fails, patch_hangs;
	struct fake_patch patch;
	bool break_a_runner; /* the next scaling event can't be encoded */
	int actual_events;
};

static void fake_node_on_scrape(void *context, struct http_call *call)
{
	struct fake_node *node = context;
	char page[512];

	node->scrapes++;
	(void)snprintf(page, sizeof page,
	               "# TYPE host_load1 gauge\nhost_load1 %g\n# TYPE host_load5 gauge\nhost_load5 %g\n"
	               "# TYPE host_memory_total_bytes gauge\nhost_memory_total_bytes 2e9\n"
	               "# TYPE host_memory_available_bytes gauge\nhost_memory_available_bytes 2e9\n"
	               "# TYPE host_memory_cached_bytes gauge\nhost_memory_cached_bytes 0\n",
	               node->load, node->load);
	http_call_respond(call, 200, "text/plain", slice_of(page));
}

static void fake_node_on_plugin(void *context, struct http_call *call)
{
	struct fake_node *node = context;
	struct plugin_plugin_response response = { .has_permit = true };
	struct plugin_agent_request request;
	struct buffer body;
	struct arena arena;
	struct error err;

	node->plugin_requests++;
	if (node->plugin_hangs) {
		node->held = call;
		return;
	}
	if (node->plugin_broken) {
		http_call_respond(call, 500, "text/plain", SLICE("failed to patch VM object"));
		return;
	}
	arena_init(&arena, 65536);
	buffer_init(&body, 4096);
	if (!plugin_agent_request_from_json(http_call_body(call), &arena, &request, &err))
		fail_msg("bad request: %s", err.text);
	node->plugin_wanted.cpu_milli = request.resources.cpu_milli;
	node->plugin_wanted.mem_bytes = request.resources.mem_bytes;
	response.permit = request.resources;
	if (response.permit.cpu_milli > node->plugin_limit.cpu_milli)
		response.permit.cpu_milli = node->plugin_limit.cpu_milli;
	if (response.permit.mem_bytes > node->plugin_limit.mem_bytes)
		response.permit.mem_bytes = node->plugin_limit.mem_bytes;
	assert_true(plugin_plugin_response_to_json(&response, &body, &err));
	http_call_respond(call, 200, "application/json", buffer_slice(&body));
	buffer_destroy(&body);
	arena_destroy(&arena);
}

static const struct scheduler_peer *fake_node_scheduler(void *context)
{
	static const struct scheduler_peer PEER = { .uid = "uid-1", .name = "scheduler-1", .ip = "127.0.0.1" };
	const struct fake_node *node = context;

	return node->no_scheduler ? NULL : &PEER;
}

static void fake_node_end_patch(void *context)
{
	struct fake_patch *patch = context;
	struct error err;

	error_set(&err, ERROR_REFUSED, "error making VM patch request: no");
	patch->callback(patch->context, patch->node->patch_fails ? &err : NULL);
}

static void *fake_node_patch(void *context, const struct runner_patch *request, runner_patch_callback *callback,
                             void *callback_context, struct error *err)
{
	struct fake_node *node = context;

	(void)err;
	node->patches++;
	node->last_patch = *request;
	(void)snprintf(node->last_patch_name, sizeof node->last_patch_name, "%.*s/%.*s", SLICE_ARGS(request->namespace),
	               SLICE_ARGS(request->vm_name));
	node->patch.node = node;
	node->patch.callback = callback;
	node->patch.context = callback_context;
	if (!node->patch_hangs)
		loop_run_soon(node->fixture.loop, &node->patch.task, fake_node_end_patch, &node->patch);
	return &node->patch;
}

static void fake_node_cancel_patch(void *context, void *patch)
{
	struct fake_node *node = context;

	assert_ptr_equal(patch, &node->patch);
	node->cancelled_patches++;
	loop_task_cancel(node->fixture.loop, &node->patch.task);
}

static bool fake_node_submit(void *context, const struct scaling_event *event, struct error *err)
{
	struct fake_node *node = context;

	if (node->break_a_runner) {
		node->break_a_runner = false;
		return error_set(err, ERROR_INVARIANT, "can't encode NaN");
	}
	node->actual_events += event->kind == AGENT_SCALING_EVENT_ACTUAL;
	return true;
}

static void fake_node_on_abort(void *context, struct http_call *call)
{
	struct fake_node *node = context;

	if (node->held == call)
		node->held = NULL;
}

static inline struct http_server *fake_node_serve(struct fake_node *node,
                                                  void (*on_request)(void *, struct http_call *), uint16_t *ret_port)
{
	const struct http_server_handler handler = { .on_request = on_request, .on_abort = fake_node_on_abort };
	struct http_server_options options = { .max_body_bytes = 4096 };
	struct http_server *server;
	struct address address;
	struct error err;

	assert_true(address_parse(SLICE("127.0.0.1"), 0, &options.address));
	server = http_server_start(node->fixture.loop, &options, &handler, node, &err);
	assert_non_null(server);
	assert_true(http_server_address(server, &address));
	*ret_port = address.port;
	return server;
}

static inline void fake_node_begin(struct fake_node *node)
{
	struct agent_config *config = &node->fixture.config;
	struct error err;

	memset(node, 0, sizeof *node);
	fixture_begin(&node->fixture);
	node->http = http_client_create(node->fixture.loop, &err);
	assert_non_null(node->http);
	metrics_text_parser_init(&node->parser, 1);
	fake_monitor_begin(&node->monitor, node->fixture.loop);
	node->monitor.answer_health = true;
	node->monitor.answer_scaling = true;
	node->load = 0.4; /* 2 CU, as in use */
	node->plugin_limit = (struct resources){ .cpu_milli = 100000, .mem_bytes = UINT64_C(1) << 50 };
	node->page_server = fake_node_serve(node, fake_node_on_scrape, &config->system_metrics.port);
	node->plugin_server = fake_node_serve(node, fake_node_on_plugin, &config->scheduler.request_port);
	config->monitor.server_port = fake_monitor_port(&node->monitor);
	config->system_metrics.seconds_between_requests = 1;
	plugin_versions_init(&node->plugin_versions, config->scheduler.protocol,
	                     config->scheduler.compute_unit_configured);
	node->sink = (struct scaling_event_sink){ .context = node, .submit = fake_node_submit };
	node->environment = (struct runner_environment){
		.loop = node->fixture.loop,
		.clock = &node->fixture.clock,
		.config = config,
		.metrics = node->fixture.metrics,
		.http = node->http,
		.parser = &node->parser,
		.plugin_versions = &node->plugin_versions,
		.scaling_events = &node->sink,
		.log_sink = node->fixture.log_sink,
		.peers = { .context = node,
		           .current_scheduler = fake_node_scheduler,
		           .patch_vm = fake_node_patch,
		           .cancel_patch = fake_node_cancel_patch },
	};
}

static inline void fake_node_end(struct fake_node *node)
{
	fake_monitor_end(&node->monitor);
	http_server_destroy(node->page_server);
	http_server_destroy(node->plugin_server);
	http_client_destroy(node->http);
	metrics_text_parser_destroy(&node->parser);
	test_loop_spin(node->fixture.loop, 10);
	fixture_end(&node->fixture);
}

/* Lets time pass like fixture_pass, but gives the bytes on loopback more time. */
static inline void fake_node_pass(struct fake_node *node, uint64_t ms)
{
	const uint64_t end_ns = clock_monotonic_ns() + ms * NS_PER_MS;

	for (uint64_t now_ns = clock_monotonic_ns(); now_ns < end_ns; now_ns = clock_monotonic_ns()) {
		fixture_pass(&node->fixture,
		             end_ns - now_ns < 200 * NS_PER_MS ? (end_ns - now_ns) / NS_PER_MS + 1 : 200);
		for (int i = 0; i < 6; i++)
			fixture_turn(&node->fixture);
	}
}

#endif
