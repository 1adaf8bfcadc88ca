/* A guest on its own address, asked over real sockets, with a clock that the test moves. */
#include "tests/unit/sandbox/scene.h"

#include "agent/core/metrics_input.h"
#include "net/websocket.h"
#include "sandbox/guest.h"

static const uint64_t GIB = 1 << 30, MIB = 1 << 20;
static const char HOST[] = "127.86.12.1";

enum { METRICS_PORT = 9100, LFC_PORT = 9499, MONITOR_PORT = 10301 };

struct scene {
	struct loop *loop;
	struct guest *guest;
	struct buffer events;
	struct websocket *agent;
	unsigned opened, messages, closed;
};

static void note_event(void *context, struct guest *guest, const char *text)
{
	struct scene *scene = context;

	buffer_append_format(&scene->events, "%s: %s\n", guest_host_name(guest), text);
}

static int set_up(void **state)
{
	static const struct guest_handler HANDLER = { .on_event = note_event };
	struct scene *scene = memory_allocate(sizeof *scene);
	struct guest_options options = {
		.host_name = "vm-pine-x7k2p",
		.metrics_port = METRICS_PORT,
		.lfc_port = LFC_PORT,
		.monitor_port = MONITOR_PORT,
		.cpu_milli = 1000,
		.memory_bytes = 4 * GIB,
		.page_padding_kb = 20,
	};
	struct error err;

	assert_non_null(scene);
	scene->loop = loop_epoll_create(&err);
	assert_non_null(scene->loop);
	buffer_init(&scene->events, 65536);
	assert_true(address_parse(slice_of(HOST), 0, &options.address));
	scene->guest = guest_start(scene->loop, &options, &HANDLER, scene, &err);
	if (scene->guest == NULL)
		fail_msg("%s", err.text);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	guest_destroy(scene->guest);
	if (scene->agent != NULL)
		websocket_abort(scene->agent);
	scene_advance(scene->loop, 2000);
	loop_destroy(scene->loop);
	buffer_destroy(&scene->events);
	memory_release(scene);
	return 0;
}

static struct guest_demand example(void)
{
	struct guest_demand demand = {
		.load_average_1_min = 0.42,
		.load_average_5_min = 0.35,
		.memory_used_bytes = 1158172000,
		.memory_cached_bytes = 1633420000,
		.cgroup_used_bytes = 742391808,
	};

	for (unsigned i = 0; i < 60; i++)
		demand.working_set_pages[i] = 20000 + 1713 * i;
	return demand;
}

static void get(struct scene *scene, struct raw_client *client, uint16_t port, const char *path)
{
	char request[128];

	snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n", path);
	raw_client_ask(client, scene->loop, HOST, port, slice_of(request));
}

static void the_agent_reads_what_was_demanded_off_the_pages(void **state)
{
	struct scene *scene = *state;
	struct guest_demand demand = example();
	struct metrics_text_parser parser;
	struct system_metrics system;
	struct lfc_metrics lfc;
	struct raw_client client;
	struct error err;

	guest_set_demand(scene->guest, &demand);
	metrics_text_parser_init(&parser, 1);
	get(scene, &client, METRICS_PORT, "/metrics?x=y");
	assert_int_equal(raw_client_status(&client), 200);
	assert_true(raw_client_head_has(&client, "Content-Type: text/plain; version=0.0.4"));
	assert_true(metrics_input_read_system(&parser, slice_of(raw_client_body(&client)),
	                                      METRICS_INPUT_REJECT_UNUSABLE, &system, &err));
	raw_client_end(&client);
	assert_true(system.load_average_1_min == (double)0.42F);
	assert_true(system.load_average_5_min == (double)0.35F);
	assert_int_equal((uint64_t)system.memory_usage_bytes - 100 * MIB,
	                 1158172000); /* the kernel's share of agent-core 6 */
	assert_int_equal((uint64_t)system.memory_cached_bytes, 1633420000);

	get(scene, &client, LFC_PORT, "/metrics");
	assert_int_equal(raw_client_status(&client), 200);
	assert_true(metrics_input_read_lfc(&parser, slice_of(raw_client_body(&client)), METRICS_INPUT_REJECT_UNUSABLE,
	                                   &lfc, &err));
	assert_non_null(strstr(raw_client_body(&client), "lfc_cache_size_limit 3.094347776e+09\n")); /* 2951 MiB */
	raw_client_end(&client);
	assert_int_equal(lfc.window_count, 60);
	assert_int_equal((uint64_t)lfc.window_pages[4], 20000 + 1713 * 4);
	metrics_text_parser_destroy(&parser);
	assert_int_equal(guest_counters(scene->guest).system_scrapes, 1);
	assert_int_equal(guest_counters(scene->guest).lfc_scrapes, 1);
}

static void k10_an_idle_vm_of_4_gib(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;

	get(scene, &client, METRICS_PORT, "/");
	assert_int_equal(raw_client_status(&client), 404);
	assert_string_equal(raw_client_body(&client), "");
	raw_client_end(&client);
	get(scene, &client, METRICS_PORT, "/metrics");
	assert_non_null(
		strstr(raw_client_body(&client),
	               "\nhost_memory_total_bytes{collector=\"memory\",host=\"vm-pine-x7k2p\"} 4030112000 17726"));
	assert_non_null(
		strstr(raw_client_body(&client), "\nhost_load1{collector=\"load\",host=\"vm-pine-x7k2p\"} 0 17726"));
	assert_in_range(client.received.length, 25000, 35000);
	raw_client_end(&client);
	raw_client_ask(&client, scene->loop, HOST, METRICS_PORT,
	               SLICE("POST /metrics HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
	assert_int_equal(raw_client_status(&client), 404);
	raw_client_end(&client);
	assert_int_equal(guest_counters(scene->guest).system_scrapes, 1);
}

static void k11_without_postgres_there_is_no_lfc_page(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;

	get(scene, &client, LFC_PORT, "/metrics");
	assert_int_equal(raw_client_status(&client), 500);
	assert_true(raw_client_head_has(&client, "Content-Type: text/plain; charset=utf-8"));
	assert_true(slice_starts_with(slice_of(raw_client_body(&client)), SLICE("No metrics gathered, ")));
	raw_client_end(&client);
}

static void a_new_size_shows_on_the_page(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;

	guest_set_size(scene->guest, 2500, 8 * GIB);
	get(scene, &client, METRICS_PORT, "/metrics");
	assert_non_null(
		strstr(raw_client_body(&client), "host_logical_cpus{collector=\"cpu\",host=\"vm-pine-x7k2p\"} 3 "));
	assert_non_null(strstr(raw_client_body(&client),
	                       "\nhost_memory_total_bytes{collector=\"memory\",host=\"vm-pine-x7k2p\"} 8158880000 "));
	raw_client_end(&client);
}

static double cpu_seconds(struct scene *scene)
{
	struct raw_client client;
	const char *found;
	double seconds = -1;

	get(scene, &client, METRICS_PORT, "/metrics");
	found = strstr(
		raw_client_body(&client),
		"host_cgroup_cpu_usage_seconds_total{cgroup=\"/\",collector=\"cgroups\",host=\"vm-pine-x7k2p\"} ");
	assert_non_null(found);
	assert_int_equal(sscanf(strchr(found, ' '), " %lf", &seconds), 1);
	raw_client_end(&client);
	return seconds;
}

static void counters_follow_the_load_up_to_the_cpus(void **state)
{
	struct scene *scene = *state;
	struct guest_demand demand = example();
	double seconds = cpu_seconds(scene);

	guest_set_demand(scene->guest, &demand);
	scene_advance(scene->loop, 1000);
	assert_in_range((unsigned)((cpu_seconds(scene) - seconds) * 1000), 419, 421);
	seconds = cpu_seconds(scene);
	demand.load_average_1_min = 20;
	guest_set_demand(scene->guest, &demand);
	scene_advance(scene->loop, 1000);
	assert_in_range((unsigned)((cpu_seconds(scene) - seconds) * 1000), 999, 1001);
}

static void pages_go_wrong_as_they_are_told_to(void **state)
{
	struct scene *scene = *state;
	struct guest_demand demand = example();
	struct raw_client client;

	guest_set_demand(scene->guest, &demand);
	guest_set_page_fault(scene->guest, GUEST_PAGE_EMPTY);
	get(scene, &client, METRICS_PORT, "/metrics");
	assert_int_equal(raw_client_status(&client), 200);
	assert_string_equal(raw_client_body(&client), "");
	raw_client_end(&client);

	guest_set_page_fault(scene->guest, GUEST_PAGE_ERROR);
	get(scene, &client, LFC_PORT, "/metrics");
	assert_int_equal(raw_client_status(&client), 500);
	raw_client_end(&client);

	guest_set_page_fault(scene->guest, GUEST_PAGE_CUT);
	get(scene, &client, LFC_PORT, "/metrics");
	assert_int_equal(raw_client_status(&client), 200);
	assert_true(strlen(raw_client_body(&client)) > 1000);
	assert_null(strstr(raw_client_body(&client), "lfc_writes"));
	raw_client_end(&client);

	guest_set_page_fault(scene->guest, GUEST_PAGE_HANGS);
	raw_client_begin(&client, scene->loop, HOST, METRICS_PORT);
	raw_client_send(&client, SLICE("GET /metrics HTTP/1.1\r\nHost: g\r\n\r\n"));
	scene_advance(scene->loop, 3000);
	assert_int_equal(client.closed, 0);
	assert_int_equal(client.received.length, 0);
	raw_client_end(&client);

	guest_set_page_fault(scene->guest, GUEST_PAGE_GOOD);
	get(scene, &client, LFC_PORT, "/metrics");
	assert_non_null(strstr(raw_client_body(&client), "lfc_writes"));
	raw_client_end(&client);
}

/* ---- the monitor ---- */

static void on_open(void *context)
{
	((struct scene *)context)->opened++;
}

static void on_message(void *context, struct slice message, bool is_text)
{
	(void)message;
	(void)is_text;
	((struct scene *)context)->messages++;
}

static void on_close(void *context, int code, struct slice reason, const struct error *err)
{
	struct scene *scene = context;

	(void)code;
	(void)reason;
	(void)err;
	scene->agent = NULL;
	scene->closed++;
}

static void say(struct scene *scene, const char *text)
{
	struct error err;
	unsigned before = scene->messages;

	assert_non_null(scene->agent);
	assert_true(websocket_send(scene->agent, slice_of(text), true, &err));
	scene_until(scene->loop, scene->messages, before + 1);
}

static void connect_agent(struct scene *scene)
{
	static const struct websocket_handler WEBSOCKET_HANDLER = { .on_open = on_open,
		                                                    .on_message = on_message,
		                                                    .on_close = on_close };
	struct websocket_connect_options options = { .stream = { .host = HOST, .port = MONITOR_PORT },
		                                     .path = "/monitor",
		                                     .max_message_bytes = 32768 };
	struct error err;

	scene->agent = websocket_connect(scene->loop, &options, &WEBSOCKET_HANDLER, scene, &err);
	assert_non_null(scene->agent);
	scene_until(scene->loop, scene->opened, 1);
	say(scene, "{\"min\":1,\"max\":1}");
	scene_advance(scene->loop, 110);
}

static void the_monitor_follows_demand_and_size(void **state)
{
	struct scene *scene = *state;
	struct guest_demand demand = example();
	struct guest_counters counters;
	struct raw_client client;

	guest_set_demand(scene->guest, &demand);
	assert_int_equal(guest_monitor_state(scene->guest), GUEST_MONITOR_WAITING);
	connect_agent(scene);
	assert_int_equal(guest_monitor_state(scene->guest), GUEST_MONITOR_CONNECTED);
	assert_int_equal(guest_monitor_believes_bytes(scene->guest), 0);

	say(scene,
	    "{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":1073741824}},\"type\":\"DownscaleRequest\",\"id\":2}");
	say(scene,
	    "{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":2147483648}},\"type\":\"DownscaleRequest\",\"id\":4}");
	assert_int_equal(guest_monitor_believes_bytes(scene->guest), 2 * GIB);
	assert_true(guest_monitor_believes_cpus(scene->guest) == 0.5);
	say(scene, "{\"content\":{},\"type\":\"HealthCheck\",\"id\":6}");
	/* The cache's page shows what the monitor set. */
	get(scene, &client, LFC_PORT, "/metrics");
	assert_non_null(strstr(raw_client_body(&client), "lfc_cache_size_limit 1.531969536e+09\n")); /* 1461 MiB */
	raw_client_end(&client);

	demand.cgroup_used_bytes = 1700 * MIB;
	guest_set_demand(scene->guest, &demand);
	scene_advance(scene->loop, 600);
	assert_int_equal(guest_counters(scene->guest).upscale_requests, 1);
	say(scene,
	    "{\"content\":{\"granted\":{\"cpu\":0.5,\"mem\":4294967296}},\"type\":\"UpscaleNotification\",\"id\":8}");
	assert_int_equal(guest_monitor_believes_bytes(scene->guest), 4 * GIB);

	counters = guest_counters(scene->guest);
	assert_int_equal(counters.connections, 1);
	assert_int_equal(counters.downscales_denied, 1);
	assert_int_equal(counters.downscales_approved, 1);
	assert_int_equal(counters.upscales, 1);
	assert_int_equal(counters.health_checks, 1);
	assert_int_equal(counters.bad_messages, 0);
	assert_true(slice_contains(buffer_slice(&scene->events),
	                           SLICE("vm-pine-x7k2p: monitor denied downscale to 1024 MiB: calculated ")));
}

static void the_monitor_can_be_away_and_come_back(void **state)
{
	struct scene *scene = *state;

	connect_agent(scene);
	guest_set_monitor_available(scene->guest, false);
	scene_until(scene->loop, scene->closed, 1);
	assert_int_equal(guest_monitor_state(scene->guest), GUEST_MONITOR_DOWN);
	guest_set_monitor_available(scene->guest, true);
	scene_advance(scene->loop, 100);
	assert_int_equal(guest_monitor_state(scene->guest), GUEST_MONITOR_WAITING);
	scene->opened = 0;
	guest_set_monitor_faults(scene->guest, &(struct guest_monitor_faults){ .postgres_down = true });
	connect_agent(scene);
	assert_int_equal(scene->closed, 2);
	scene->opened = 0;
	guest_set_monitor_faults(scene->guest, &(struct guest_monitor_faults){ 0 });
	connect_agent(scene);
	assert_int_equal(scene->closed, 2);
	assert_int_equal(guest_counters(scene->guest).connections, 3);
}

static void a_port_in_use_is_an_error_that_names_the_guest(void **state)
{
	struct scene *scene = *state;
	struct guest_options options = { .host_name = "twin", .metrics_port = METRICS_PORT };
	struct guest_handler handler = { 0 };
	struct error err;

	assert_true(address_parse(slice_of(HOST), 0, &options.address));
	assert_null(guest_start(scene->loop, &options, &handler, NULL, &err));
	assert_true(slice_starts_with(slice_of(err.text), SLICE("guest twin: ")));
	assert_string_equal(error_root(&err), "address already in use");
}

#define scene_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(the_agent_reads_what_was_demanded_off_the_pages),
		scene_test(k10_an_idle_vm_of_4_gib),
		scene_test(k11_without_postgres_there_is_no_lfc_page),
		scene_test(a_new_size_shows_on_the_page),
		scene_test(counters_follow_the_load_up_to_the_cpus),
		scene_test(pages_go_wrong_as_they_are_told_to),
		scene_test(the_monitor_follows_demand_and_size),
		scene_test(the_monitor_can_be_away_and_come_back),
		scene_test(a_port_in_use_is_an_error_that_names_the_guest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
