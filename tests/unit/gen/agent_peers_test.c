/* Messages between agent, scheduler plugin and vm-monitor: the examples and vectors of spec protocols 4, 5 and 10. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gen/monitor.gen.h"
#include "gen/plugin.gen.h"

enum { MAX_BYTES = 1024 * 1024 };

static struct arena arena;
static struct buffer buffer;
static struct error err;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, MAX_BYTES);
	buffer_init(&buffer, MAX_BYTES);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_destroy(&arena);
	buffer_destroy(&buffer);
	return 0;
}

static void assert_buffer(const char *expected)
{
	buffer_append_char(&buffer, '\0');
	assert_string_equal(buffer.data, expected);
	buffer_clear(&buffer);
}

/* --- scheduler plugin --- */

static struct plugin_agent_request example_request(void)
{
	return (struct plugin_agent_request){
		.proto_version = 7,
		.pod = { .namespace = SLICE("apps"), .name = SLICE("compute-lively-oak-x7k2p") },
		.has_compute_unit = true,
		.compute_unit = { .cpu_milli = 250, .mem_bytes = (uint64_t)1 << 30 },
		.resources = { .cpu_milli = 1000, .mem_bytes = (uint64_t)4 << 30 },
		.last_permit_presence = JSON_VALUE,
		.last_permit = { .cpu_milli = 750, .mem_bytes = (uint64_t)3 << 30 },
		.metrics_presence = JSON_VALUE,
		.metrics = { .load_average_1_min = 0.37F },
	};
}

static const char EXAMPLE_REQUEST[] =
	"{\"protoVersion\":7,\"pod\":{\"namespace\":\"apps\",\"name\":\"compute-lively-oak-x7k2p\"},"
	"\"computeUnit\":{\"vCPUs\":\"250m\",\"mem\":\"1Gi\"},\"resources\":{\"vCPUs\":1,\"mem\":\"4Gi\"},"
	"\"lastPermit\":{\"vCPUs\":\"750m\",\"mem\":\"3Gi\"},\"metrics\":{\"loadAvg1M\":0.37}}";

static void a_request_is_written_as_in_the_spec(void **state)
{
	struct plugin_agent_request request = example_request();

	(void)state;
	assert_true(plugin_agent_request_to_json(&request, &buffer, &err));
	assert_buffer(EXAMPLE_REQUEST);
}

static void a_first_request_has_nulls(void **state)
{
	struct plugin_agent_request request = {
		/* P33 */
		.proto_version = 7,
		.pod = { .namespace = SLICE("apps"), .name = SLICE("p") },
		.has_compute_unit = true,
		.compute_unit = { .cpu_milli = 250, .mem_bytes = (uint64_t)1 << 30 },
		.resources = { .cpu_milli = 500, .mem_bytes = (uint64_t)2 << 30 },
		.last_permit_presence = JSON_NULL,
		.metrics_presence = JSON_NULL,
	};

	(void)state;
	assert_true(plugin_agent_request_to_json(&request, &buffer, &err));
	assert_buffer(
		"{\"protoVersion\":7,\"pod\":{\"namespace\":\"apps\",\"name\":\"p\"},"
		"\"computeUnit\":{\"vCPUs\":\"250m\",\"mem\":\"1Gi\"},\"resources\":{\"vCPUs\":\"500m\",\"mem\":\"2Gi\"},"
		"\"lastPermit\":null,\"metrics\":null}");
	request.last_permit_presence = JSON_ABSENT;
	request.metrics_presence = JSON_VALUE;
	request.metrics.load_average_1_min = 1e-7F; /* P34 */
	assert_true(plugin_agent_request_to_json(&request, &buffer, &err));
	assert_non_null(strstr(buffer.data, "\"2Gi\"},\"metrics\":{\"loadAvg1M\":1e-7}}"));
}

static void a_load_that_is_no_number_makes_no_request(void **state)
{
	struct plugin_agent_request request = example_request();

	(void)state;
	request.metrics.load_average_1_min = 0.0F / 0.0F; /* P35 */
	assert_false(plugin_agent_request_to_json(&request, &buffer, &err));
}

static void the_plugin_reads_what_the_agent_wrote(void **state)
{
	struct plugin_agent_request request;

	(void)state;
	assert_true(plugin_agent_request_from_json(slice_of(EXAMPLE_REQUEST), &arena, &request, &err));
	assert_int_equal(request.proto_version, 7);
	assert_true(slice_equal_text(request.pod.name, "compute-lively-oak-x7k2p"));
	assert_int_equal(request.last_permit_presence, JSON_VALUE);
	assert_int_equal(request.last_permit.cpu_milli, 750);
	assert_true(plugin_agent_request_to_json(&request, &buffer, &err));
	assert_buffer(EXAMPLE_REQUEST);
	assert_false(plugin_agent_request_from_json(SLICE("{\"protoVersion\":-1}"), &arena, &request, &err));
	assert_false(plugin_agent_request_from_json(SLICE("{\"protoVersion\":7.0}"), &arena, &request, &err));
}

static void resources_are_read_loosely(void **state)
{
	static const struct {
		const char *text;
		uint32_t cpu_milli;
		uint64_t mem_bytes;
	} CASES[] = {
		{ "{\"vCPUs\":0.25,\"mem\":\"1Gi\"}", 250, 1073741824 }, /* P22 */
		{ "{\"VCPUS\":\"2\",\"MEM\":\"4Gi\"}", 2000, 4294967296 },
		{ "{\"vCPUs\":1e1,\"mem\":1E3}", 10000, 1000 },
		{ "{\"vCPUs\":\"0.0001\",\"mem\":\"0.5\"}", 1, 1 },
		{ "{\"vCPUs\":null}", 0, 0 }, /* P26 */
		{ "null", 0, 0 },
		{ "{\"mem\":1,\"mem\":2,\"x\":[]}", 0, 2 },
	};
	struct plugin_resources resources;

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		assert_true(plugin_resources_from_json(slice_of(CASES[i].text), &arena, &resources, &err));
		assert_true(resources.cpu_milli == CASES[i].cpu_milli);
		assert_true(resources.mem_bytes == CASES[i].mem_bytes);
	}
	assert_false(plugin_resources_from_json(SLICE("{\"vCPUs\":{},\"mem\":1}"), &arena, &resources, &err)); /* P27 */
}

static void a_reply_may_lack_its_permit_and_have_more(void **state)
{
	struct plugin_plugin_response response;

	(void)state;
	assert_true(plugin_plugin_response_from_json(
		SLICE("{\"permit\":{\"vCPUs\":\"500m\",\"mem\":\"2Gi\"},\"migrate\":{}}"), &arena, &response, &err));
	assert_true(response.has_permit);
	assert_int_equal(response.permit.cpu_milli, 500);
	assert_true(plugin_plugin_response_from_json(SLICE("{}"), &arena, &response, &err));
	assert_false(response.has_permit);
	assert_int_equal(response.permit.mem_bytes, 0);
	assert_true(plugin_plugin_response_from_json(SLICE("{\"permit\":null}"), &arena, &response, &err));
	assert_false(response.has_permit);
}

static void a_failure_leaves_what_was_there(void **state)
{
	struct plugin_plugin_response response = { .has_permit = true, .permit = { .cpu_milli = 7 } };

	(void)state;
	assert_false(plugin_plugin_response_from_json(SLICE("{\"permit\":{\"vCPUs\":1}} x"), &arena, &response, &err));
	assert_int_equal(response.permit.cpu_milli, 7);
	assert_false(plugin_plugin_response_from_json(SLICE("{\"permit\":{\"vCPUs\":1,\"mem\":[]}}"), &arena, &response,
	                                              &err));
	assert_int_equal(response.permit.cpu_milli, 7);
}

/* --- vm-monitor, as the agent sees it --- */

static void the_agents_messages_are_enveloped(void **state)
{
	struct monitor_upscale_notification upscale = {
		.content = { .granted = { .cpu = 1.25, .mem_bytes = 5368709120 } },
		.type = SLICE("UpscaleNotification"),
		.id = 6,
	};
	struct monitor_downscale_request downscale = {
		/* T42 */
		.content = { .target = { .cpu = 700 * 0.001, .mem_bytes = 2147483648 } },
		.type = SLICE("DownscaleRequest"),
		.id = 4,
	};
	struct monitor_health_check check = { .type = SLICE("HealthCheck"), .id = 2 };
	struct monitor_error_message invalid = {
		.content = { .error = SLICE("Received message of unknown type: \"Foo\"") },
		.type = SLICE("InvalidMessage"),
		.id = 3,
	};
	struct monitor_protocol_range range = { .min = 1, .max = 1 };

	(void)state;
	assert_true(monitor_upscale_notification_to_json(&upscale, &buffer, &err));
	assert_buffer(
		"{\"content\":{\"granted\":{\"cpu\":1.25,\"mem\":5368709120}},\"type\":\"UpscaleNotification\",\"id\":6}");
	assert_true(monitor_downscale_request_to_json(&downscale, &buffer, &err));
	assert_buffer(
		"{\"content\":{\"target\":{\"cpu\":0.7000000000000001,\"mem\":2147483648}},\"type\":\"DownscaleRequest\",\"id\":4}");
	assert_true(monitor_health_check_to_json(&check, &buffer, &err));
	assert_buffer("{\"content\":{},\"type\":\"HealthCheck\",\"id\":2}");
	assert_true(monitor_error_message_to_json(&invalid, &buffer, &err));
	assert_buffer(
		"{\"content\":{\"error\":\"Received message of unknown type: \\\"Foo\\\"\"},\"type\":\"InvalidMessage\",\"id\":3}");
	assert_true(monitor_protocol_range_to_json(&range, &buffer, &err));
	assert_buffer("{\"min\":1,\"max\":1}");
}

static void a_protocol_answer_tells_null_from_empty(void **state)
{
	struct monitor_protocol_response response;

	(void)state;
	assert_true(monitor_protocol_response_from_json(SLICE("{\"version\":9}"), &arena, &response, &err)); /* T35 */
	assert_int_equal(response.version, 9);
	assert_false(response.has_error);
	assert_true(monitor_protocol_response_from_json(SLICE("{\"error\":null}"), &arena, &response, &err));
	assert_false(response.has_error);
	assert_true(monitor_protocol_response_from_json(SLICE("{\"error\":\"\"}"), &arena, &response, &err));
	assert_true(response.has_error);
	assert_true(monitor_protocol_response_from_json(SLICE("{}"), &arena, &response, &err));
	assert_int_equal(response.version, 0);
}

/* Each row of agent-runtime 11.4.3 that depends on the form of a message. */
static void the_faults_of_an_inbound_message_are_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum json_kind type;
		enum json_kind id;
	} CASES[] = {
		{ "{\"type\":\"HealthCheck\",\"id\":2}", JSON_KIND_STRING, JSON_KIND_NUMBER },
		{ "{\"id\":3}", JSON_KIND_NONE, JSON_KIND_NUMBER },
		{ "{\"type\":null,\"id\":3}", JSON_KIND_NULL, JSON_KIND_NUMBER },
		{ "{\"type\":7}", JSON_KIND_NUMBER, JSON_KIND_NONE },
		{ "{\"type\":\"x\",\"id\":\"3\"}", JSON_KIND_STRING, JSON_KIND_STRING },
		{ "{\"Type\":\"x\",\"ID\":3}", JSON_KIND_NONE, JSON_KIND_NONE }, /* these two names are exact */
		{ "null", JSON_KIND_NONE, JSON_KIND_NONE },
	};
	struct monitor_from_monitor_keys keys;

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		assert_true(monitor_from_monitor_keys_from_json(slice_of(CASES[i].text), &arena, &keys, &err));
		assert_int_equal(json_kind_of(keys.type), CASES[i].type);
		assert_int_equal(json_kind_of(keys.id), CASES[i].id);
	}
	assert_false(monitor_from_monitor_keys_from_json(SLICE("[1]"), &arena, &keys, &err));
	assert_false(monitor_from_monitor_keys_from_json(SLICE("{"), &arena, &keys, &err));
}

static void an_id_is_any_number_truncated(void **state)
{
	struct monitor_from_monitor_head head;

	(void)state;
	assert_true(monitor_from_monitor_head_from_json(SLICE("{\"type\":\"UpscaleRequest\",\"id\":7.9}"), &arena,
	                                                &head, &err));
	assert_true(head.id == 7);
	assert_true(slice_equal_text(head.type, "UpscaleRequest"));
}

static void a_downscale_result_is_read_in_any_letter_case(void **state)
{
	struct monitor_from_monitor_downscale_result result;

	(void)state;
	assert_true(monitor_from_monitor_downscale_result_from_json(
		SLICE("{\"type\":\"DownscaleResult\",\"id\":4,\"OK\":true}"), &arena, &result, &err)); /* P52 */
	assert_true(result.ok);
	assert_int_equal(result.status.length, 0);
	assert_true(monitor_from_monitor_downscale_result_from_json(
		SLICE("{\"type\":\"DownscaleResult\",\"Ok\":true,\"Status\":\"reduced cache\",\"id\":4}"), &arena,
		&result, &err));
	assert_true(slice_equal_text(result.status, "reduced cache"));
	assert_true(monitor_from_monitor_downscale_result_from_json(
		SLICE("{\"type\":\"DownscaleResult\",\"id\":4,\"content\":{\"ok\":true}}"), &arena, &result,
		&err)); /* P53 */
	assert_false(result.ok);
	assert_false(monitor_from_monitor_downscale_result_from_json(SLICE("{\"id\":4,\"ok\":\"yes\"}"), &arena,
	                                                             &result, &err)); /* P54 */
}

/* --- vm-monitor, as the sandbox plays it --- */

static void the_monitor_reads_strictly(void **state)
{
	static const char *const REFUSED[] = {
		"{\"type\":\"HealthCheck\",\"id\":12}", /* M12 */
		"{",
		"{\"content\":{},\"type\":\"HealthCheck\"}",
		"{\"content\":{},\"type\":\"HealthCheck\",\"id\":1.0}",
		"{\"content\":{},\"type\":\"HealthCheck\",\"id\":-1}",
		"{\"content\":{},\"Type\":\"HealthCheck\",\"id\":1}",
	};
	struct monitor_agent_envelope envelope;
	struct monitor_downscale_request downscale;

	(void)state;
	for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++)
		assert_false(monitor_agent_envelope_from_json(slice_of(REFUSED[i]), &arena, &envelope, &err));
	assert_true(monitor_agent_envelope_from_json(
		SLICE("{\"id\":2,\"x\":1,\"content\":{},\"type\":\"HealthCheck\"}"), &arena, &envelope, &err));
	assert_true(envelope.id == 2);
	assert_true(monitor_downscale_request_from_json(
		SLICE("{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":2147483648}},\"type\":\"DownscaleRequest\",\"id\":4}"),
		&arena, &downscale, &err));
	assert_true(downscale.content.target.mem_bytes == 2147483648);
	assert_false(monitor_downscale_request_from_json(
		SLICE("{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":1.5}},\"type\":\"DownscaleRequest\",\"id\":4}"),
		&arena, &downscale, &err));
	assert_false(monitor_downscale_request_from_json(
		SLICE("{\"content\":{\"target\":{\"cpu\":0.5,\"mem\":-1}},\"type\":\"DownscaleRequest\",\"id\":4}"),
		&arena, &downscale, &err));
}

static void the_monitor_answers_with_capitals(void **state)
{
	struct monitor_monitor_downscale_result result = {
		.type = SLICE("DownscaleResult"), .ok = true, .status = SLICE("reduced cache"), .id = 4
	};
	struct monitor_monitor_message message = { .type = SLICE("UpscaleConfirmation"), .id = 8 };

	(void)state;
	assert_true(monitor_monitor_downscale_result_to_json(&result, &buffer, &err));
	assert_buffer("{\"type\":\"DownscaleResult\",\"Ok\":true,\"Status\":\"reduced cache\",\"id\":4}");
	assert_true(monitor_monitor_message_to_json(&message, &buffer, &err));
	assert_buffer("{\"type\":\"UpscaleConfirmation\",\"id\":8}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_is_written_as_in_the_spec),
		TEST(a_first_request_has_nulls),
		TEST(a_load_that_is_no_number_makes_no_request),
		TEST(the_plugin_reads_what_the_agent_wrote),
		TEST(resources_are_read_loosely),
		TEST(a_reply_may_lack_its_permit_and_have_more),
		TEST(a_failure_leaves_what_was_there),
		TEST(the_agents_messages_are_enveloped),
		TEST(a_protocol_answer_tells_null_from_empty),
		TEST(the_faults_of_an_inbound_message_are_told_apart),
		TEST(an_id_is_any_number_truncated),
		TEST(a_downscale_result_is_read_in_any_letter_case),
		TEST(the_monitor_reads_strictly),
		TEST(the_monitor_answers_with_capitals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
