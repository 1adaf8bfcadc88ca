/*
 * A client that finds out the version of its plugin's protocol, over real HTTP: several sends of one request.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/scheduler_client.h"
#include "net/http_client.h"
#include "tests/unit/agent/agent_fixture.h"

static const char LATE_2023[] = "Protocol version mismatch: Need v1.0 to v2.0 but got <unknown = v2.0 + 2>";

struct world {
	struct fixture fixture;
	struct http_client *http;
	struct scripted_api *plugin;
	struct scheduler_client client;
	struct plugin_versions versions;
	struct scheduler_peer peer;
	size_t seen;
	int ends;
	enum scheduler_outcome outcome;
	struct resources permit;
	struct resources compute_unit;
	char error[1100];
};

static const struct scheduler_peer *current_scheduler(void *context)
{
	return &((struct world *)context)->peer;
}

static void on_done(void *context, const struct scheduler_result *result)
{
	struct world *world = context;

	world->ends++;
	world->outcome = result->outcome;
	world->permit = result->permit;
	world->compute_unit = result->compute_unit;
	(void)snprintf(world->error, sizeof world->error, "%s", result->error != NULL ? result->error->text : "");
}

static void choose(struct world *world, enum plugin_protocol setting, bool compute_unit_configured)
{
	world->fixture.config.scheduler.protocol = setting;
	world->fixture.config.scheduler.compute_unit_configured = compute_unit_configured;
	plugin_versions_init(&world->versions, setting, compute_unit_configured);
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
	world->peer = (struct scheduler_peer){ .uid = "uid-1", .name = "scheduler-1", .ip = "127.0.0.1" };
	choose(world, PLUGIN_PROTOCOL_AUTO, true);

	const struct scheduler_client settings = {
		.loop = world->fixture.loop,
		.http = world->http,
		.config = &world->fixture.config,
		.versions = &world->versions,
		.metrics = world->fixture.metrics,
		.namespace = "apps",
		.pod_name = "vm-a-x7k2p",
		.slot_bytes = UINT64_C(1) << 30,
		.handler = { .context = world, .current_scheduler = current_scheduler, .on_done = on_done },
		.logger = { .sink = world->fixture.log_sink, .name = "client", .context_json = "" },
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

static void ask(struct world *world)
{
	const struct core_plugin_request request = {
		.last_permit = resources_some((struct resources){ .cpu_milli = 500, .mem_bytes = UINT64_C(2) << 30 }),
		.target = { .cpu_milli = 1000, .mem_bytes = UINT64_C(4) << 30 },
	};

	scheduler_client_request(&world->client, &request);
}

/* Expects the next send to be of that version (its number on the wire), and answers it. */
static void answer(struct world *world, int version, int status, const char *body)
{
	struct scripted_request *request = scripted_api_wait(world->plugin, ++world->seen);
	char expected[32];

	(void)snprintf(expected, sizeof expected, "{\"protoVersion\":%d,", version);
	if (!slice_starts_with(request->body, slice_of(expected)))
		fail_msg("%s expected, got %.*s", expected, SLICE_ARGS(request->body));
	scripted_reply(request, status, "", body);
	test_loop_spin(world->fixture.loop, 10);
}

static const char GOOD[] = "{\"permit\":{\"vCPUs\":1,\"mem\":4},\"resourceUnit\":{\"vCPUs\":\"250m\",\"mem\":1}}";

static void p1_one_request_is_sent_in_three_versions(void **state)
{
	struct world *world = *state;

	ask(world);
	answer(world, 7, 400, "bad JSON");
	answer(world, 5, 400, LATE_2023);
	assert_int_equal(world->ends, 0);
	answer(world, 3, 200, GOOD);
	assert_int_equal(world->ends, 1);
	assert_int_equal(world->outcome, SCHEDULER_APPROVED);
	assert_metric(&world->fixture, "scheduler_plugin_requests_total{code=\"400\"}", 2);
	assert_metric(&world->fixture, "scheduler_plugin_requests_total{code=\"200\"}", 1);
	/* Asked for once, whatever it took. */
	assert_metric(&world->fixture, "scheduler_plugin_requested_cpu_change_total{direction=\"inc\"}", 0.5);
	assert_not_logged(&world->fixture, "Scheduler request failed");
	assert_logged(&world->fixture, "\"msg\":\"Found out which version of the protocol the scheduler plugin takes\","
	                               "\"taskName\":\"executor: plugin\",\"version\":\"v2.0\"");
	ask(world);
	answer(world, 3, 200, GOOD);
	assert_int_equal(world->ends, 2);
	assert_int_equal(fixture_log_count(&world->fixture, "Found out which version"), 1);
}

static void p6_another_scheduler_is_asked_anew(void **state)
{
	struct world *world = *state;

	ask(world);
	answer(world, 7, 400, "bad JSON");
	answer(world, 5, 400, LATE_2023);
	answer(world, 3, 200, GOOD);
	world->peer.uid = "uid-2";
	ask(world);
	answer(world, 7, 200, "{\"permit\":{\"vCPUs\":1,\"mem\":\"4Gi\"}}");
	assert_int_equal(world->outcome, SCHEDULER_APPROVED);
}

static void p7_without_a_compute_unit_the_log_says_what_is_missing(void **state)
{
	struct world *world = *state;

	choose(world, PLUGIN_PROTOCOL_AUTO, false);
	ask(world);
	answer(world, 3, 400, "protocol version mismatch: need v5.0 but got v2.0");
	assert_int_equal(world->outcome, SCHEDULER_FAILED);
	assert_logged(&world->fixture, "\"msg\":\"The scheduler plugin wants another version of the protocol\"");
	assert_logged(&world->fixture,
	              "\"wants\":\"v5.0\",\"sent\":\"v2.0\",\"configurationKey\":\"scaling.computeUnit\"");
}

static void p8_with_a_fixed_version_the_log_says_which_key_to_change(void **state)
{
	struct world *world = *state;

	choose(world, PLUGIN_PROTOCOL_2_0, true);
	for (int i = 1; i <= 2; i++) {
		ask(world);
		answer(world, 3, 400, "protocol version mismatch: need v5.0 but got v2.0");
		assert_int_equal(world->ends, i);
		assert_int_equal(world->outcome, SCHEDULER_FAILED);
	}
	assert_string_equal(world->error,
	                    "received response status 400 body \"protocol version mismatch: need v5.0 but got v2.0\"");
	assert_logged(&world->fixture, "\"configurationKey\":\"scheduler.protocolVersion\"");
}

static void all_sends_have_the_time_of_one_request(void **state)
{
	struct world *world = *state;
	struct scripted_request *request;

	ask(world);
	fixture_pass(&world->fixture, 6000);
	request = scripted_api_wait(world->plugin, 1);
	scripted_reply(request, 400, "", "bad JSON");
	(void)scripted_api_wait(world->plugin, 2);
	fixture_pass(&world->fixture, 3500);
	assert_int_equal(world->ends, 0);
	fixture_pass(&world->fixture, 1000);
	assert_int_equal(world->ends, 1);
	assert_metric(&world->fixture,
	              "scheduler_plugin_requests_total{code=\"[error doing request: context deadline exceeded]\"}", 1);
}

/* Of a refusal the beginning is enough, however much follows. */
static void a_huge_refusal_is_read_by_its_beginning(void **state)
{
	struct world *world = *state;
	const size_t size = 4 * (size_t)AGENT_SCHEDULER_REPLY_BYTES;
	char *body = malloc(size + 1);

	assert_non_null(body);
	memset(body, ' ', size);
	body[size] = '\0';
	memcpy(body, LATE_2023, sizeof LATE_2023 - 1);
	ask(world);
	answer(world, 7, 400, body);
	assert_int_equal(world->ends, 0);
	answer(world, 3, 200, GOOD);
	assert_int_equal(world->outcome, SCHEDULER_APPROVED);
	assert_metric(&world->fixture, "scheduler_plugin_requests_total{code=\"400\"}", 1);
	/* As much of something else is a refusal like any other. */
	memset(body, 'x', size);
	ask(world);
	answer(world, 3, 400, body);
	assert_int_equal(world->ends, 2);
	assert_int_equal(world->outcome, SCHEDULER_FAILED);
	free(body);
}

/* What a pod refuses says nothing about the one that took its place meanwhile. */
static void another_scheduler_in_mid_request_is_not_judged_by_the_first_one_s_answers(void **state)
{
	struct world *world = *state;

	ask(world);
	world->peer.uid = "uid-2";
	answer(world, 7, 400, "bad JSON");
	answer(world, 5, 400, LATE_2023);
	answer(world, 3, 200, GOOD);
	assert_int_equal(plugin_versions_current(&world->versions, "uid-1"), PLUGIN_PROTOCOL_2_0);
	ask(world);
	answer(world, 7, 200, "{\"permit\":{\"vCPUs\":1,\"mem\":\"4Gi\"}}");
	assert_int_equal(world->ends, 2);
	assert_int_equal(world->outcome, SCHEDULER_APPROVED);
}

/* A plugin that was replaced within its pod names what it takes; of two that deny each other, a request tries each once. */
static void a_version_that_comes_and_goes_is_followed_within_bounds(void **state)
{
	struct world *world = *state;

	ask(world);
	answer(world, 7, 200, "{\"permit\":{\"vCPUs\":1,\"mem\":\"4Gi\"}}");
	ask(world);
	answer(world, 7, 400, "Protocol version mismatch: Need v1.0 to v2.1 but got <unknown = v2.1 + 3>");
	answer(world, 4, 200, GOOD);
	ask(world);
	answer(world, 4, 400, "protocol version mismatch: need v5.0 but got v2.1");
	answer(world, 7, 200, "{\"permit\":{\"vCPUs\":1,\"mem\":\"4Gi\"}}");
	assert_int_equal(world->ends, 3);
	ask(world);
	answer(world, 7, 400, "protocol version mismatch: need v4.0 but got v5.0");
	answer(world, 6, 400, "protocol version mismatch: need v5.0 but got v4.0");
	assert_int_equal(world->ends, 4);
	assert_int_equal(world->outcome, SCHEDULER_FAILED);
}

static void more_slots_than_a_request_can_say_is_a_failed_request(void **state)
{
	struct world *world = *state;

	choose(world, PLUGIN_PROTOCOL_2_0, false);
	world->client.slot_bytes = 1024;
	ask(world);
	assert_int_equal(world->ends, 1);
	assert_int_equal(world->outcome, SCHEDULER_FAILED);
	assert_string_equal(world->error, "error encoding request JSON: more than 65535 memory slots");
	world->client.slot_bytes = UINT64_C(1) << 30;
	ask(world);
	answer(world, 3, 200, GOOD);
	assert_int_equal(world->outcome, SCHEDULER_APPROVED);
}

static void a_refusal_that_is_not_about_versions_is_final(void **state)
{
	struct world *world = *state;

	ask(world);
	answer(world, 7, 404, "pod not found");
	assert_int_equal(world->ends, 1);
	assert_int_equal(world->outcome, SCHEDULER_FAILED);
	assert_not_logged(&world->fixture, "wants another version");
}

static void the_compute_unit_is_learned_only_if_none_is_configured(void **state)
{
	struct world *world = *state;
	const struct resources unit = { .cpu_milli = 500, .mem_bytes = UINT64_C(2) << 30 };
	static const char OTHER_UNIT[] =
		"{\"permit\":{\"vCPUs\":1,\"mem\":4},\"resourceUnit\":{\"vCPUs\":0.5,\"mem\":2}}";

	choose(world, PLUGIN_PROTOCOL_2_0, false);
	ask(world);
	answer(world, 3, 200, OTHER_UNIT);
	assert_true(resources_equal(world->compute_unit, unit));
	assert_not_logged(&world->fixture, "compute unit isn't the configured one");

	choose(world, PLUGIN_PROTOCOL_2_0, true);
	for (int i = 0; i < 2; i++) {
		ask(world);
		answer(world, 3, 200, OTHER_UNIT);
		assert_int_equal(world->compute_unit.cpu_milli, 0);
	}
	assert_int_equal(fixture_log_count(&world->fixture,
	                                   "\"msg\":\"The scheduler plugin's compute unit isn't the configured one\""),
	                 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(p1_one_request_is_sent_in_three_versions),
		TEST(p6_another_scheduler_is_asked_anew),
		TEST(p7_without_a_compute_unit_the_log_says_what_is_missing),
		TEST(p8_with_a_fixed_version_the_log_says_which_key_to_change),
		TEST(all_sends_have_the_time_of_one_request),
		TEST(a_huge_refusal_is_read_by_its_beginning),
		TEST(another_scheduler_in_mid_request_is_not_judged_by_the_first_one_s_answers),
		TEST(a_version_that_comes_and_goes_is_followed_within_bounds),
		TEST(more_slots_than_a_request_can_say_is_a_failed_request),
		TEST(a_refusal_that_is_not_about_versions_is_final),
		TEST(the_compute_unit_is_learned_only_if_none_is_configured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
