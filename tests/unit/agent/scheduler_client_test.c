#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/limits.h"
#include "agent/scheduler_client.h"
#include "net/http_client.h"
#include "tests/support/vector_file.h"
#include "tests/unit/agent/agent_fixture.h"

struct world {
	struct fixture fixture;
	struct http_client *http;
	struct scripted_api *plugin;
	struct scheduler_client client;
	struct plugin_versions versions;
	const struct scheduler_peer *scheduler;
	bool done;
	int ends;
	enum scheduler_outcome outcome;
	struct resources permit;
	char error[1100];
	char response[256];
};

static const struct scheduler_peer PEER = { .uid = "uid-1", .name = "scheduler-1", .ip = "127.0.0.1" };

static const struct scheduler_peer *current_scheduler(void *context)
{
	return ((struct world *)context)->scheduler;
}

static void on_done(void *context, const struct scheduler_result *result)
{
	struct world *world = context;

	world->done = true;
	world->ends++;
	world->outcome = result->outcome;
	world->permit = result->permit;
	assert_true((result->error != NULL) == (result->outcome == SCHEDULER_FAILED));
	(void)snprintf(world->error, sizeof world->error, "%s", result->error != NULL ? result->error->text : "");
	(void)snprintf(world->response, sizeof world->response, "%.*s", SLICE_ARGS(result->response));
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error err;

	fixture_begin(&world->fixture);
	world->http = http_client_create(world->fixture.loop, &err);
	assert_non_null(world->http);
	world->plugin = scripted_api_start(world->fixture.loop, NULL);
	world->fixture.config.scheduler.request_port = scripted_api_port(world->plugin);
	world->scheduler = &PEER;
	plugin_versions_init(&world->versions, PLUGIN_PROTOCOL_5_0, true);

	const struct scheduler_client settings = {
		.loop = world->fixture.loop,
		.http = world->http,
		.config = &world->fixture.config,
		.versions = &world->versions,
		.metrics = world->fixture.metrics,
		.namespace = "apps",
		.pod_name = "compute-lively-oak-x7k2p",
		.handler = { .context = world, .current_scheduler = current_scheduler, .on_done = on_done },
		.logger = { .sink = world->fixture.log_sink,
		            .name = "autoscaler-agent.runner.exec.plugin.client",
		            .context_json = "" },
	};

	scheduler_client_init(&world->client, &settings);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	scheduler_client_stop(&world->client);
	http_client_destroy(world->http);
	scripted_api_destroy(world->plugin);
	test_loop_spin(world->fixture.loop, 10);
	fixture_end(&world->fixture);
	free(world);
	return 0;
}

/* The situation of vectors T44 … T50: last permit 0.5/2Gi, target 1/4Gi. */
static void ask(struct world *world)
{
	const struct core_plugin_request request = {
		.last_permit = resources_some((struct resources){ .cpu_milli = 500, .mem_bytes = UINT64_C(2) << 30 }),
		.target = { .cpu_milli = 1000, .mem_bytes = UINT64_C(4) << 30 },
		.has_metrics = true,
		.load_average_1_min = 0.37f,
	};

	world->done = false;
	scheduler_client_request(&world->client, &request);
}

static void ask_and_answer(struct world *world, int status, const char *body)
{
	ask(world);
	scripted_reply(scripted_api_wait(world->plugin, 1), status, "content-type: application/json\r\n", body);
	test_loop_until(world->fixture.loop, &world->done);
}

static void the_request_on_the_wire(void **state)
{
	struct world *world = *state;
	struct scripted_request *request;

	ask(world);
	request = scripted_api_wait(world->plugin, 1);
	assert_true(slice_equal_text(request->method, "POST"));
	assert_true(slice_equal_text(request->target, "/"));
	assert_true(slice_equal_text(scripted_field(request, "content-type"), "application/json"));
	assert_true(slice_equal_text(
		request->body,
		"{\"protoVersion\":7,\"pod\":{\"namespace\":\"apps\",\"name\":\"compute-lively-oak-x7k2p\"},"
		"\"computeUnit\":{\"vCPUs\":\"250m\",\"mem\":\"1Gi\"},\"resources\":{\"vCPUs\":1,\"mem\":"
		"\"4Gi\"},\"lastPermit\":{\"vCPUs\":\"500m\",\"mem\":\"2Gi\"},\"metrics\":{\"loadAvg1M\":"
		"0.37}}"));
	/* Counted before the answer. */
	assert_metric(&world->fixture, "scheduler_plugin_requested_cpu_change_total{direction=\"inc\"}", 0.5);
	assert_metric(&world->fixture, "scheduler_plugin_requested_mem_change_total{direction=\"inc\"}", 2048);
}

static void the_first_request_has_no_permit_and_no_metrics(void **state)
{
	struct world *world = *state;
	const struct core_plugin_request request = { .target = { .cpu_milli = 250, .mem_bytes = UINT64_C(1) << 30 } };
	struct scripted_request *seen;

	scheduler_client_request(&world->client, &request);
	seen = scripted_api_wait(world->plugin, 1);
	assert_true(slice_contains(seen->body, SLICE("\"lastPermit\":null,\"metrics\":null}")));
	scripted_reply(seen, 200, "", "{\"permit\":{\"vCPUs\":\"250m\",\"mem\":\"1Gi\"}}");
	test_loop_until(world->fixture.loop, &world->done);
	assert_int_equal(world->outcome, SCHEDULER_APPROVED);
	/* Changes count only against a last permit. */
	assert_metric(&world->fixture, "scheduler_plugin_requested_cpu_change_total{direction=\"inc\"}", 0);
	assert_metric(&world->fixture, "scheduler_plugin_accepted_cpu_change_total{direction=\"inc\"}", 0);
}

static const char *const OUTCOMES[] = { "approved", "partial", "denied", "failed" };

static void check_metric(const struct world *world, const char *row, const char *series, const char *expected)
{
	double value = fixture_metric(&world->fixture, series);

	if (value < atof(expected) || value > atof(expected))
		fail_msg("%s: %s is %g, not %s", row, series, value, expected);
}

/* One row of the vectors, in a world of its own. */
static void check_reply(const struct vector_row *row)
{
	char *const *field = row->fields;
	char series[128];
	void *state;
	struct world *world;

	assert_int_equal(row->count, 12);
	assert_int_equal(set_up(&state), 0);
	world = state;
	ask_and_answer(world, atoi(field[1]), field[2]);
	if (strcmp(OUTCOMES[world->outcome], field[3]) != 0)
		fail_msg("%s: %s", field[0], OUTCOMES[world->outcome]);
	if (strcmp(field[4], "-") != 0 && strstr(world->error, field[4]) != world->error)
		fail_msg("%s: %s", field[0], world->error);
	check_metric(world, field[0], "scheduler_plugin_accepted_cpu_change_total{direction=\"inc\"}", field[5]);
	check_metric(world, field[0], "scheduler_plugin_accepted_cpu_change_total{direction=\"dec\"}", field[6]);
	check_metric(world, field[0], "scheduler_plugin_accepted_mem_change_total{direction=\"inc\"}", field[7]);
	check_metric(world, field[0], "scheduler_plugin_accepted_mem_change_total{direction=\"dec\"}", field[8]);
	check_metric(world, field[0], "scaling_partial_approvals_total{direction=\"inc\"}", field[9]);
	check_metric(world, field[0], "scaling_full_denials_total{direction=\"inc\"}", field[10]);
	(void)snprintf(series, sizeof series, "scheduler_plugin_requests_total{code=\"%s\"}", field[11]);
	check_metric(world, field[0], series, "1");
	check_metric(world, field[0], "scheduler_plugin_requested_cpu_change_total{direction=\"inc\"}", "0.5");
	assert_true((fixture_log_count(&world->fixture, "\"msg\":\"Scheduler request failed\"") > 0) ==
	            (world->outcome == SCHEDULER_FAILED));
	assert_int_equal(tear_down(&state), 0);
}

static void t44_to_t49_replies_are_taken_as_the_vectors_say(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/agent/scheduler_replies.txt", check_reply) > 15);
}

static void less_than_asked_for_is_a_warning_in_the_log(void **state)
{
	struct world *world = *state;

	ask_and_answer(world, 200, "{\"permit\":{\"vCPUs\":1,\"mem\":\"4Gi\"}}");
	assert_logged(&world->fixture, "{\"level\":\"debug\"");
	assert_not_logged(&world->fixture, "{\"level\":\"warn\"");
	assert_string_equal(world->response, "{\"permit\":{\"vCPUs\":1,\"mem\":\"4Gi\"}}");
	ask(world);
	scripted_reply(scripted_api_wait(world->plugin, 2), 200, "", "{\"permit\":{\"vCPUs\":1,\"mem\":\"3Gi\"}}");
	test_loop_until(world->fixture.loop, &world->done);
	assert_logged(&world->fixture, "{\"level\":\"warn\"");
	assert_int_equal(fixture_log_count(&world->fixture, "\"msg\":\"Received response from scheduler\""), 2);
}

static void t50_nobody_listens(void **state)
{
	struct world *world = *state;

	scripted_api_stop_listening(world->plugin);
	ask(world);
	test_loop_until(world->fixture.loop, &world->done);
	assert_int_equal(world->outcome, SCHEDULER_FAILED);
	assert_non_null(strstr(world->error, "error doing request: Post \"http://127.0.0.1:"));
	assert_non_null(strstr(world->error, "connection refused"));
	assert_metric(&world->fixture,
	              "scheduler_plugin_requests_total{code=\"[error doing request: connection refused]\"}", 1);
}

static void without_a_scheduler_it_fails_without_the_network(void **state)
{
	struct world *world = *state;

	world->scheduler = NULL;
	ask(world);
	assert_true(world->done);
	assert_string_equal(world->error, "no known ready scheduler to send request to");
	assert_metric(
		&world->fixture,
		"scheduler_plugin_requests_total{code=\"[error doing request: no known ready scheduler to send request to]\"}",
		1);
	assert_metric(&world->fixture, "scheduler_plugin_requested_cpu_change_total{direction=\"inc\"}", 0.5);
}

static void a_silent_scheduler_times_out_by_the_neonvm_setting(void **state)
{
	struct world *world = *state;

	ask(world);
	(void)scripted_api_wait(world->plugin, 1);
	fixture_pass(&world->fixture, 9700);
	assert_false(world->done);
	fixture_pass(&world->fixture, 500);
	assert_true(world->done);
	assert_metric(&world->fixture,
	              "scheduler_plugin_requests_total{code=\"[error doing request: context deadline exceeded]\"}", 1);
}

static void a_connection_closed_before_the_reply(void **state)
{
	struct world *world = *state;

	ask(world);
	scripted_close(scripted_api_wait(world->plugin, 1));
	test_loop_until(world->fixture.loop, &world->done);
	assert_metric(&world->fixture, "scheduler_plugin_requests_total{code=\"[error doing request: EOF]\"}", 1);
}

static void a_body_cut_short_has_its_status_counted(void **state)
{
	struct world *world = *state;
	struct scripted_request *request;

	ask(world);
	request = scripted_api_wait(world->plugin, 1);
	scripted_raw(request, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"permit\""));
	scripted_close(request);
	test_loop_until(world->fixture.loop, &world->done);
	assert_non_null(strstr(world->error, "error reading body for response: "));
	assert_metric(&world->fixture, "scheduler_plugin_requests_total{code=\"200\"}", 1);
}

/* So many bytes of JSON that says nothing, NUL-terminated; to be freed. */
static char *long_text(size_t length)
{
	char *text = malloc(length + 1);

	assert_non_null(text);
	memset(text, ' ', length);
	memcpy(text, "{} too long", strlen("{} too long"));
	text[length] = '\0';
	return text;
}

/* Answers with more than the limit, in one of both framings. */
static void answer_too_long(struct world *world, int status, bool chunked)
{
	char *body = long_text(AGENT_SCHEDULER_REPLY_BYTES + 1);
	struct scripted_request *request;

	ask(world);
	request = scripted_api_wait(world->plugin, 1);
	if (chunked) {
		scripted_begin(request, status, "");
		scripted_chunk_text(request, body);
	} else {
		scripted_reply(request, status, "", body);
	}
	test_loop_until(world->fixture.loop, &world->done);
	test_loop_spin(world->fixture.loop, 20);
	assert_true(request->gone);
	free(body);
}

static void check_too_long(int status, bool chunked)
{
	static const char READING[] = "error reading body for response: Post \"http://127.0.0.1:";
	char series[128];
	void *state;
	struct world *world;

	assert_int_equal(set_up(&state), 0);
	world = state;
	answer_too_long(world, status, chunked);
	assert_int_equal(world->ends, 1);
	assert_int_equal(world->outcome, SCHEDULER_FAILED);
	(void)snprintf(series, sizeof series, "scheduler_plugin_requests_total{code=\"%d\"}", status);
	assert_metric(&world->fixture, series, 1);
	assert_metric(&world->fixture, "scheduler_plugin_requests_total{code=\"[error doing request: other]\"}", 0);
	if (status == 200) {
		assert_memory_equal(world->error, READING, strlen(READING));
		assert_non_null(strstr(world->error, ": response body is over 65536 bytes"));
	} else {
		assert_memory_equal(world->error, "received response status 500 body \"{} too long   ", 49);
	}
	/* What is there of it isn't in the way of the next reply. */
	ask(world);
	scripted_reply(scripted_api_wait(world->plugin, 2), 200, "", "{\"permit\":{\"vCPUs\":1,\"mem\":\"4Gi\"}}");
	test_loop_until(world->fixture.loop, &world->done);
	assert_int_equal(world->outcome, SCHEDULER_APPROVED);
	assert_int_equal(tear_down(&state), 0);
}

static void a_reply_over_64_kib_has_its_status_counted(void **state)
{
	(void)state;
	check_too_long(500, false);
	check_too_long(500, true);
	check_too_long(200, false);
	check_too_long(200, true);
}

static void a_reply_of_64_kib_is_read(void **state)
{
	static const char REPLY[] = "{\"permit\":{\"vCPUs\":1,\"mem\":\"4Gi\"}}";
	struct world *world = *state;
	char *body = long_text(AGENT_SCHEDULER_REPLY_BYTES);

	memcpy(body, REPLY, sizeof REPLY - 1);
	ask_and_answer(world, 200, body);
	assert_int_equal(world->outcome, SCHEDULER_APPROVED);
	free(body);
}

static void a_refusal_cut_short_could_not_be_read(void **state)
{
	struct world *world = *state;
	struct scripted_request *request;

	ask(world);
	request = scripted_api_wait(world->plugin, 1);
	scripted_raw(request, SLICE("HTTP/1.1 503 No\r\nContent-Length: 50\r\n\r\nsorry"));
	scripted_close(request);
	test_loop_until(world->fixture.loop, &world->done);
	assert_non_null(strstr(world->error, "error reading body for response: "));
	assert_metric(&world->fixture, "scheduler_plugin_requests_total{code=\"503\"}", 1);
}

static void a_load_that_is_no_number_is_not_sent(void **state)
{
	struct world *world = *state;
	const struct core_plugin_request request = {
		.target = { .cpu_milli = 1000, .mem_bytes = UINT64_C(4) << 30 },
		.has_metrics = true,
		.load_average_1_min = __builtin_nanf(""),
	};

	scheduler_client_request(&world->client, &request);
	assert_true(world->done);
	assert_non_null(strstr(world->error, "error encoding request JSON: "));
	assert_int_equal(scripted_api_connection_count(world->plugin), 0);
}

static void a_stop_ends_the_request_as_cancelled(void **state)
{
	struct world *world = *state;

	ask(world);
	(void)scripted_api_wait(world->plugin, 1);
	scheduler_client_stop(&world->client);
	assert_int_equal(world->ends, 1);
	assert_int_equal(world->outcome, SCHEDULER_FAILED);
	assert_metric(&world->fixture,
	              "scheduler_plugin_requests_total{code=\"[error doing request: context canceled]\"}", 1);
	scheduler_client_stop(&world->client);
	assert_int_equal(world->ends, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_request_on_the_wire),
		TEST(the_first_request_has_no_permit_and_no_metrics),
		cmocka_unit_test(t44_to_t49_replies_are_taken_as_the_vectors_say),
		TEST(less_than_asked_for_is_a_warning_in_the_log),
		TEST(t50_nobody_listens),
		TEST(without_a_scheduler_it_fails_without_the_network),
		TEST(a_silent_scheduler_times_out_by_the_neonvm_setting),
		TEST(a_connection_closed_before_the_reply),
		TEST(a_body_cut_short_has_its_status_counted),
		cmocka_unit_test(a_reply_over_64_kib_has_its_status_counted),
		TEST(a_reply_of_64_kib_is_read),
		TEST(a_refusal_cut_short_could_not_be_read),
		TEST(a_load_that_is_no_number_is_not_sent),
		TEST(a_stop_ends_the_request_as_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
