#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/scrape.h"
#include "metrics/text_parser.h"
#include "net/http_client.h"
#include "tests/unit/agent/agent_fixture.h"

static const char SYSTEM_PAGE[] = "# TYPE host_load1 gauge\n"
				  "host_load1 0.25\n"
				  "# TYPE host_load5 gauge\n"
				  "host_load5 1.5\n"
				  "# TYPE host_memory_total_bytes gauge\n"
				  "host_memory_total_bytes 2000000000\n"
				  "# TYPE host_memory_available_bytes gauge\n"
				  "host_memory_available_bytes 1.5e9\n"
				  "# TYPE host_memory_cached_bytes gauge\n"
				  "host_memory_cached_bytes 3e8\n";

static const char LFC_PAGE[] = "# TYPE lfc_hits gauge\n"
			       "lfc_hits 7\n"
			       "# TYPE lfc_misses gauge\n"
			       "lfc_misses 2\n"
			       "# TYPE lfc_writes gauge\n"
			       "lfc_writes 1\n"
			       "# TYPE lfc_approximate_working_set_size_windows gauge\n"
			       "lfc_approximate_working_set_size_windows{duration_seconds=\"60\"} 100\n"
			       "lfc_approximate_working_set_size_windows{duration_seconds=\"120\"} 150\n";

struct world {
	struct fixture fixture;
	struct http_client *http;
	struct metrics_text_parser parser;
	struct scripted_api *vm;
	struct agent_scrape_config config;
	struct scrape scrape;
	bool active;
	const char *lenient_prefix;
	int system_count, lfc_count;
	struct system_metrics system;
	struct lfc_metrics lfc;
};

static bool is_active(void *context)
{
	return ((struct world *)context)->active;
}

static void on_system(void *context, const struct system_metrics *metrics)
{
	struct world *world = context;

	world->system_count++;
	world->system = *metrics;
}

static void on_lfc(void *context, const struct lfc_metrics *metrics)
{
	struct world *world = context;

	world->lfc_count++;
	world->lfc = *metrics;
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error err;

	fixture_begin(&world->fixture);
	world->http = http_client_create(world->fixture.loop, &err);
	assert_non_null(world->http);
	metrics_text_parser_init(&world->parser, 1);
	world->vm = scripted_api_start(world->fixture.loop, NULL);
	world->config = (struct agent_scrape_config){
		.port = scripted_api_port(world->vm),
		.request_timeout_ns = 2 * (uint64_t)NS_PER_S,
		.seconds_between_requests = 1,
	};
	world->active = true;
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	scrape_stop(&world->scrape);
	http_client_destroy(world->http);
	scripted_api_destroy(world->vm);
	metrics_text_parser_destroy(&world->parser);
	test_loop_spin(world->fixture.loop, 10);
	fixture_end(&world->fixture);
	free(world);
	return 0;
}

static void start(struct world *world, enum scrape_kind kind)
{
	const struct scrape_options options = {
		.loop = world->fixture.loop,
		.http = world->http,
		.parser = &world->parser,
		.config = &world->config,
		.kind = kind,
		.pod_ip = "127.0.0.1",
		.lenient_prefix = world->lenient_prefix,
		.handler = { .context = world,
		             .is_active = kind == SCRAPE_LFC ? is_active : NULL,
		             .on_system = on_system,
		             .on_lfc = on_lfc },
		.logger = { .sink = world->fixture.log_sink, .name = "autoscaler-agent.runner", .context_json = "" },
	};

	scrape_start(&world->scrape, &options);
}

static void settle(struct world *world)
{
	test_loop_spin(world->fixture.loop, 20);
}

/* Starts, and lets the time pass until the first request. */
static void start_and_wait(struct world *world, enum scrape_kind kind)
{
	start(world, kind);
	fixture_pass(&world->fixture, world->config.seconds_between_requests * 1000 + 10);
}

/* Starts, lets the first request come, answers it and gives the answer time to be read. */
static void scrape_once(struct world *world, int status, const char *page)
{
	start_and_wait(world, SCRAPE_SYSTEM);
	scripted_reply(scripted_api_wait(world->vm, 1), status, "", page);
	settle(world);
}

static void a_page_is_asked_for_and_read(void **state)
{
	struct world *world = *state;
	struct scripted_request *request;

	start_and_wait(world, SCRAPE_SYSTEM);
	request = scripted_api_wait(world->vm, 1);
	assert_true(slice_equal_text(request->method, "GET"));
	assert_true(slice_equal_text(request->target, "/metrics"));
	assert_int_equal(request->body.length, 0);
	scripted_reply(request, 200, "", SYSTEM_PAGE);
	settle(world);
	assert_int_equal(world->system_count, 1);
	assert_true(world->system.load_average_1_min > 0.24 && world->system.load_average_1_min < 0.26);
	assert_true(world->system.memory_usage_bytes > 604857599 && world->system.memory_usage_bytes < 604857601);
	assert_logged(&world->fixture,
	              "\"msg\":\"Sleeping for random delay before making first system metrics request\"");
	assert_logged(
		&world->fixture,
		"\"msg\":\"Updated metrics\",\"taskName\":\"get system metrics\",\"metrics\":{\"LoadAverage1Min\":0.25,"
		"\"LoadAverage5Min\":1.5,\"MemoryUsageBytes\":604857600,\"MemoryCachedBytes\":300000000}");
}

static void the_pause_counts_from_the_end_of_a_request(void **state)
{
	struct world *world = *state;
	struct scripted_request *request;

	world->config.request_timeout_ns = 20 * (uint64_t)NS_PER_S;
	world->config.seconds_between_requests = 5;
	start_and_wait(world, SCRAPE_SYSTEM);
	request = scripted_api_wait(world->vm, 1);
	fixture_pass(&world->fixture, 4000);
	scripted_reply(request, 200, "", SYSTEM_PAGE);
	settle(world);
	fixture_pass(&world->fixture, 4500);
	assert_int_equal(scripted_api_request_count(world->vm), 1);
	fixture_pass(&world->fixture, 700);
	(void)scripted_api_wait(world->vm, 2);
}

/* The seconds that the only line about it names. */
static double logged_delay(struct world *world)
{
	const char *field = strstr(fixture_log(&world->fixture), "\"delay\":");

	assert_non_null(field);
	return strtod(field + sizeof "\"delay\":" - 1, NULL);
}

static void first_requests_are_spread_over_the_interval(void **state)
{
	struct world *world = *state;
	enum { STARTS = 500, PARTS = 50 };
	int in_part[PARTS] = { 0 };

	world->config.seconds_between_requests = 5;
	for (int i = 0; i < STARTS; i++) {
		double delay_s;

		fixture_log_forget(&world->fixture);
		start(world, SCRAPE_SYSTEM);
		scrape_stop(&world->scrape);
		delay_s = logged_delay(world);
		assert_true(delay_s >= 0 && delay_s < 5);
		in_part[(int)(delay_s / 5 * PARTS)]++;
	}
	/* 10 are to be expected in each tenth of a second; that it is 40 or more is one chance in 10^12. */
	for (int i = 0; i < PARTS; i++)
		assert_in_range(in_part[i], 0, 40);
}

/* The milliseconds that pass until the next request comes, by the clock of the test. */
static int64_t wait_for_request(struct world *world, size_t number)
{
	uint64_t start_ns = clock_monotonic_ns();

	for (int i = 0; i < 10000 && scripted_api_request_count(world->vm) < number; i++) {
		test_clock_skip(NS_PER_MS);
		fixture_turn(&world->fixture);
	}
	assert_int_equal(scripted_api_request_count(world->vm), number);
	return (int64_t)((clock_monotonic_ns() - start_ns) / NS_PER_MS);
}

static void pauses_differ_by_a_little_so_that_loops_drift_apart(void **state)
{
	struct world *world = *state;
	int64_t least_ms = INT64_MAX, most_ms = 0;

	world->config.seconds_between_requests = 5;
	start(world, SCRAPE_SYSTEM);
	(void)wait_for_request(world, 1);
	for (size_t i = 1; i <= 20; i++) {
		int64_t pause_ms;

		scripted_reply(scripted_api_request(world->vm, i - 1), 200, "", SYSTEM_PAGE);
		while (world->system_count < (int)i)
			settle(world);
		pause_ms = wait_for_request(world, i + 1);
		least_ms = pause_ms < least_ms ? pause_ms : least_ms;
		most_ms = pause_ms > most_ms ? pause_ms : most_ms;
	}
	/* 5 s give or take 2 %; a part of the pause goes by while the answer is read, and a request takes its time. */
	assert_in_range(least_ms, 4750, 5000);
	assert_in_range(most_ms, 4900, 5250);
	assert_true(most_ms - least_ms >= 20);
}

static void another_status_than_200_is_a_failure(void **state)
{
	struct world *world = *state;

	scrape_once(world, 204, "");
	assert_int_equal(world->system_count, 0);
	assert_logged(&world->fixture, "\"msg\":\"Error making metrics request\",\"taskName\":\"get system metrics\","
	                               "\"error\":\"unsuccessful response status 204\"");
	/* And no reason to stop. */
	fixture_pass(&world->fixture, 1200);
	(void)scripted_api_wait(world->vm, 2);
}

/* ---- as in late 2023 ---- */

/* The first request comes at once. */
static void scrape_leniently(struct world *world, int status, const char *page)
{
	world->lenient_prefix = "node_";
	world->config.first_at_once = true;
	start(world, SCRAPE_SYSTEM);
	fixture_pass(&world->fixture, 10);
	scripted_reply(scripted_api_wait(world->vm, 1), status, "", page);
	settle(world);
}

static void in_late_2023_lines_are_read_and_the_first_at_once(void **state)
{
	struct world *world = *state;

	scrape_leniently(
		world, 200,
		"node_load1 0.1\nnode_load5 2\nnode_memory_total_bytes 2e9\nnode_memory_available_bytes 2e9\n");
	assert_int_equal(world->system_count, 1);
	assert_true(world->system.load_average_1_min > 0.1); /* 0.1 in 32 bits is a little more */
	assert_not_logged(&world->fixture, "Sleeping for random delay");
}

static void in_late_2023_failures_have_other_words(void **state)
{
	struct world *world = *state;

	scrape_leniently(world, 503, "busy \"now\"\n");
	assert_logged(&world->fixture, "\"error\":\"Unsuccessful response status 503: \\\"busy ");
	fixture_pass(&world->fixture, 1200);
	scripted_reply(scripted_api_wait(world->vm, 2), 200, "", "host_load1 1\n");
	settle(world);
	assert_logged(&world->fixture,
	              "\"error\":\"Error reading metrics from prometheus output: No line in metrics output "
	              "starting with \\\"node_load1\\\"\"");
	assert_int_equal(world->system_count, 0);
}

static void without_any_time_every_scrape_times_out(void **state)
{
	struct world *world = *state;

	world->config.request_timeout_ns = 0;
	start_and_wait(world, SCRAPE_SYSTEM);
	fixture_pass(&world->fixture, 1200);
	assert_int_equal(scripted_api_connection_count(world->vm), 0);
	assert_in_range(fixture_log_count(&world->fixture, "context deadline exceeded"), 2, 3);
}

static void a_redirect_is_not_followed(void **state)
{
	struct world *world = *state;
	char location[128];

	start_and_wait(world, SCRAPE_SYSTEM);
	(void)snprintf(location, sizeof location, "Location: http://127.0.0.1:%d/metrics\r\n", world->config.port);
	scripted_reply(scripted_api_wait(world->vm, 1), 302, location, "");
	settle(world);
	assert_int_equal(scripted_api_request_count(world->vm), 1);
	assert_logged(&world->fixture, "unsuccessful response status 302");
}

static void nobody_listens(void **state)
{
	struct world *world = *state;

	scripted_api_stop_listening(world->vm);
	start_and_wait(world, SCRAPE_SYSTEM);
	settle(world);
	assert_logged(&world->fixture, "\"error\":\"error making request to \\\"http://127.0.0.1:");
	assert_logged(&world->fixture, "connection refused");
}

static void a_silent_vm_times_out(void **state)
{
	struct world *world = *state;

	start_and_wait(world, SCRAPE_SYSTEM);
	(void)scripted_api_wait(world->vm, 1);
	/* Up to a second of the time is gone: the request came when its moment did. */
	fixture_pass(&world->fixture, 900);
	assert_not_logged(&world->fixture, "Error making metrics request");
	fixture_pass(&world->fixture, 1300);
	assert_logged(&world->fixture, "context deadline exceeded");
	fixture_pass(&world->fixture, 1200);
	(void)scripted_api_wait(world->vm, 2);
}

static void a_dripping_vm_times_out_too(void **state)
{
	struct world *world = *state;
	struct scripted_request *request;

	start_and_wait(world, SCRAPE_SYSTEM);
	request = scripted_api_wait(world->vm, 1);
	scripted_begin(request, 200, "");
	for (int i = 0; i < 20 && request->on != NULL; i++) {
		scripted_chunk_text(request, "# x\n");
		fixture_pass(&world->fixture, 200);
	}
	assert_logged(&world->fixture, "context deadline exceeded");
	assert_int_equal(world->system_count, 0);
}

static void a_page_over_the_limit_is_refused(void **state)
{
	struct world *world = *state;
	char *page = malloc(AGENT_SCRAPE_PAGE_BYTES + 2);

	memset(page, '\n', AGENT_SCRAPE_PAGE_BYTES + 1);
	page[AGENT_SCRAPE_PAGE_BYTES + 1] = '\0';
	start_and_wait(world, SCRAPE_SYSTEM);
	scripted_reply(scripted_api_wait(world->vm, 1), 200, "", page);
	for (int i = 0; i < 50; i++)
		settle(world);
	assert_logged(&world->fixture, "\"msg\":\"Error making metrics request\"");
	assert_int_equal(world->system_count, 0);
	free(page);
}

static void a_page_that_does_not_parse_is_a_failure(void **state)
{
	struct world *world = *state;

	scrape_once(world, 200, "host_load1\n");
	assert_logged(&world->fixture,
	              "error parsing metrics from prometheus output: failed to parse content as prometheus "
	              "text format: text format parsing error in line 1: ");
}

static void a_page_without_what_is_needed_is_a_failure(void **state)
{
	struct world *world = *state;

	scrape_once(world, 200, "# TYPE host_load1 gauge\nhost_load1 1\n");
	assert_logged(&world->fixture,
	              "error parsing metrics from prometheus output: failed to extract metrics: missing "
	              "expected metric host_load5");
}

static void a_value_no_machine_can_have_is_a_failure_that_names_the_series(void **state)
{
	struct world *world = *state;
	char page[sizeof SYSTEM_PAGE + 16];

	(void)snprintf(page, sizeof page, "# TYPE host_load1 gauge\nhost_load1 NaN\n%s",
	               strstr(SYSTEM_PAGE, "# TYPE host_load5"));
	scrape_once(world, 200, page);
	assert_int_equal(world->system_count, 0);
	assert_logged(&world->fixture, "host_load1");
	assert_logged(&world->fixture, "Error making metrics request");
}

static void each_request_has_its_own_connection(void **state)
{
	struct world *world = *state;

	scrape_once(world, 200, SYSTEM_PAGE);
	fixture_pass(&world->fixture, 1200);
	scripted_reply(scripted_api_wait(world->vm, 2), 200, "", SYSTEM_PAGE);
	settle(world);
	assert_int_equal(world->system_count, 2);
	assert_int_equal(scripted_api_connection_count(world->vm), 2);
}

static void the_lfc_page_is_read(void **state)
{
	struct world *world = *state;

	start_and_wait(world, SCRAPE_LFC);
	scripted_reply(scripted_api_wait(world->vm, 1), 200, "", LFC_PAGE);
	settle(world);
	assert_int_equal(world->lfc_count, 1);
	assert_int_equal(world->lfc.window_count, 2);
	assert_logged(&world->fixture,
	              "\"metrics\":{\"CacheHitsTotal\":7,\"CacheMissesTotal\":2,\"CacheWritesTotal\":1,"
	              "\"ApproximateworkingSetSizeBuckets\":[100,150]}");
}

static void an_inactive_loop_asks_nothing_until_it_is_active(void **state)
{
	struct world *world = *state;

	world->active = false;
	start(world, SCRAPE_LFC);
	fixture_pass(&world->fixture, 5000);
	assert_int_equal(scripted_api_request_count(world->vm), 0);
	assert_not_logged(&world->fixture, "Sleeping for random delay");
	world->active = true;
	fixture_pass(&world->fixture, 1200);
	(void)scripted_api_wait(world->vm, 1);
	assert_logged(&world->fixture, "\"msg\":\"VM is now active for LFC metrics requests\"");
	scripted_reply(scripted_api_request(world->vm, 0), 200, "", LFC_PAGE);
	settle(world);
	world->active = false;
	fixture_pass(&world->fixture, 3000);
	assert_int_equal(scripted_api_request_count(world->vm), 1);
	assert_int_equal(
		fixture_log_count(&world->fixture, "\"msg\":\"VM is no longer active for LFC metrics requests\""), 1);
}

static void a_stop_cancels_the_request(void **state)
{
	struct world *world = *state;
	struct scripted_request *request;

	start_and_wait(world, SCRAPE_SYSTEM);
	request = scripted_api_wait(world->vm, 1);
	scrape_stop(&world->scrape);
	settle(world);
	assert_true(request->gone);
	fixture_pass(&world->fixture, 5000);
	assert_int_equal(scripted_api_request_count(world->vm), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_page_is_asked_for_and_read),
		TEST(the_pause_counts_from_the_end_of_a_request),
		TEST(first_requests_are_spread_over_the_interval),
		TEST(pauses_differ_by_a_little_so_that_loops_drift_apart),
		TEST(another_status_than_200_is_a_failure),
		TEST(in_late_2023_lines_are_read_and_the_first_at_once),
		TEST(in_late_2023_failures_have_other_words),
		TEST(without_any_time_every_scrape_times_out),
		TEST(a_redirect_is_not_followed),
		TEST(nobody_listens),
		TEST(a_silent_vm_times_out),
		TEST(a_dripping_vm_times_out_too),
		TEST(a_page_over_the_limit_is_refused),
		TEST(a_page_that_does_not_parse_is_a_failure),
		TEST(a_page_without_what_is_needed_is_a_failure),
		TEST(a_value_no_machine_can_have_is_a_failure_that_names_the_series),
		TEST(each_request_has_its_own_connection),
		TEST(the_lfc_page_is_read),
		TEST(an_inactive_loop_asks_nothing_until_it_is_active),
		TEST(a_stop_cancels_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
