/*
 * Our own documents: the agent's configuration file (spec agent-runtime 2, vectors T9 … T14) and its state dump
 * (13, 13.3).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gen/agent_config.gen.h"
#include "gen/replay.gen.h"
#include "gen/state_dump.gen.h"

enum { MAX_BYTES = 4 * 1024 * 1024 };

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

static struct slice file(const char *name)
{
	char path[512];
	FILE *stream;
	char *room;

	snprintf(path, sizeof path, TESTS_DIR "/data/%s", name);
	stream = fopen(path, "rb");
	if (stream == NULL)
		fail_msg("%s is missing", path);
	buffer_clear(&buffer);
	room = buffer_reserve(&buffer, MAX_BYTES / 2);
	assert_non_null(room);
	buffer_advance(&buffer, fread(room, 1, MAX_BYTES / 2, stream));
	fclose(stream);
	return buffer_slice(&buffer);
}

/* The shipped configuration with one piece of its text replaced. */
static struct slice changed(const char *piece, const char *by)
{
	static char text[8192];
	struct slice shipped = file("objects/agent-config.json");
	const char *at;

	buffer_append_char(&buffer, '\0');
	shipped.data = buffer.data;
	at = strstr(shipped.data, piece);
	assert_non_null(at);
	snprintf(text, sizeof text, "%.*s%s%s", (int)(at - shipped.data), shipped.data, by, at + strlen(piece));
	return slice_of(text);
}

/* --- configuration --- */

static void the_shipped_configuration_is_read(void **state)
{
	struct agent_config_config config;

	(void)state;
	if (!agent_config_config_from_json(file("objects/agent-config.json"), &arena, &config, &err))
		fail_msg("%s", err.text);
	assert_int_equal(config.referesh_state_interval_seconds, 5);
	assert_int_equal(config.scaling.compute_unit.cpu_milli, 250);
	assert_true(config.scaling.compute_unit.mem_bytes == 1073741824);
	assert_true(config.scaling.default_config.has_lfc_use_largest_window);
	assert_true(config.scaling.default_config.load_average_fraction_target == 0.9);
	assert_true(slice_equal_text(config.billing.cpu_metric_name, "effective_compute_seconds"));
	assert_false(config.billing.clients.has_http);
	assert_true(config.scaling_events.cu_multiplier == 0.25);
	assert_int_equal(config.monitor.server_port, 10301);
	assert_int_equal(config.monitor.max_failed_request_rate.threshold, 2);
	assert_int_equal(config.metrics.lfc.port, 9499);
	assert_true(slice_equal_text(config.scheduler.scheduler_name, "autoscale-scheduler"));
	assert_int_equal(config.neonvm.request_timeout_seconds, 10);
	assert_true(config.has_dump_state);
	assert_int_equal(config.dump_state.port, 10300);
}

static void what_is_wrong_with_a_configuration_is_said_in_the_references_words(void **state)
{
	static const struct {
		const char *piece;
		const char *by;
		const char *words; /* part of them */
	} CASES[] = {
		{ "\"dumpState\"", "\"extra\":1,\"dumpState\"", "json: unknown field \"extra\"" }, /* T9 */
		{ "10301", "70000",
		  "json: cannot unmarshal number 70000 into Go struct field monitor.serverPort of type uint16" },
		{ "10301", "\"10301\"",
		  "json: cannot unmarshal string into Go struct field monitor.serverPort of type uint16" },
		{ "10301", "-1", "cannot unmarshal number -1" },
		{ "10301", "1e4", "cannot unmarshal number 1e4" },
		{ "10301", "10301.0", "cannot unmarshal number 10301.0" },
		{ "0.25", "\"1x\"",
		  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'" },
		{ "\"monitor\"", "\"MONITOR\"", "json: unknown field \"MONITOR\"" }, /* T14 */
		{ "\"dumpState\"", "\"monitor\":{},\"dumpState\"",
		  "field \"monitor\": the key stands here for the second time" },
		{ "\"regionName\"", "\"regionName\":\"x\",\"regionName\"",
		  "field \"scalingEvents.regionName\": the key stands here" },
	};
	struct agent_config_config config;

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct json_reader reader;
		char words[512];

		assert_false(json_reader_open(&reader, changed(CASES[i].piece, CASES[i].by), &arena, &err) &&
		             agent_config_config_decode(&reader, &config, &err));
		json_problem_reference_text(&reader.problem, true, words, sizeof words);
		if (strstr(words, CASES[i].words) == NULL)
			fail_msg("%s", words);
	}
}

static void only_blanks_may_follow_a_configuration(void **state)
{
	struct agent_config_config config;

	(void)state;
	assert_false(agent_config_config_from_json(SLICE("{} garbage"), &arena, &config, &err)); /* T13 */
	assert_true(agent_config_config_from_json(SLICE("{} \n\t"), &arena, &config, &err));
}

static void optional_sections_may_be_absent_or_null(void **state)
{
	struct agent_config_config config;

	(void)state;
	assert_true(agent_config_config_from_json(
		SLICE("{\"dumpState\":null,\"billing\":{\"clients\":{\"http\":null,\"s3\":{}}}}"), &arena, &config,
		&err));
	assert_false(config.has_dump_state);
	assert_false(config.billing.clients.has_http);
	assert_true(config.billing.clients.has_s3);
	assert_false(config.billing.clients.has_azure_blob);
}

static void a_configuration_check_finds_every_problem(void **state)
{
	static const char TEXT[] = "{\"scaling\": {\n"
				   "  \"computeUnit\": {\"vCPUs\": \"1x\", \"mem\": \"1Gi\"}},\n"
				   " \"monitor\": {\"serverPort\": 70000, \"nope\": 1},\n"
				   " \"metrics\": {\"system\": {\"port\": \"9100\"}}}";
	struct json_problems problems;
	struct json_reader reader;
	struct agent_config_config config;

	(void)state;
	assert_true(json_reader_open_collecting(&reader, slice_of(TEXT), &arena, &problems, &err));
	assert_true(agent_config_config_decode(&reader, &config, &err));
	assert_false(json_reader_finish(&reader, &err));
	assert_int_equal(problems.count, 4);
	assert_string_equal(problems.items[0].path, "scaling.computeUnit.vCPUs");
	assert_int_equal(problems.items[0].line, 2);
	assert_string_equal(problems.items[1].path, "monitor.serverPort");
	assert_string_equal(problems.items[2].path, "monitor.nope");
	assert_string_equal(problems.items[3].path, "metrics.system.port");
	assert_int_equal(problems.items[3].line, 4);
	assert_true(config.scaling.compute_unit.mem_bytes == 1073741824);
}

static void a_configuration_is_written_back_whole(void **state)
{
	struct agent_config_config config;
	struct agent_config_config again;
	struct buffer out;

	(void)state;
	buffer_init(&out, MAX_BYTES);
	assert_true(agent_config_config_from_json(file("objects/agent-config.json"), &arena, &config, &err));
	assert_true(agent_config_config_to_json(&config, &out, &err));
	assert_true(agent_config_config_from_json(buffer_slice(&out), &arena, &again, &err));
	assert_int_equal(again.scheduler.request_at_least_every_seconds, 15);
	assert_true(slice_equal_text(again.scaling_events.region_name, "replaceme"));
	assert_true(slice_contains(buffer_slice(&out), SLICE("\"computeUnit\":{\"vCPUs\":\"250m\",\"mem\":\"1Gi\"}")));
	buffer_destroy(&out);
}

/* --- state dump --- */

static void the_dump_of_the_spec_is_read_and_written_byte_for_byte(void **state)
{
	struct state_dump_dump dump;
	struct buffer out;
	struct slice text = slice_trim(file("objects/state-dump.json"));

	(void)state;
	buffer_init(&out, MAX_BYTES);
	if (!state_dump_dump_from_json(text, &arena, &dump, &err))
		fail_msg("%s", err.text);
	assert_int_equal(dump.pods_count, 1);
	assert_true(dump.pods[0].has_runner);
	assert_true(dump.pods[0].runner.executor_state.plugin.has_permit);
	assert_false(dump.pods[0].runner.executor_state.monitor.has_denied_downscale);
	assert_true(dump.pods[0].runner.executor_state.plugin.last_failure_at_ns == RFC3339_ZERO);
	assert_true(state_dump_dump_to_json(&dump, &out, &err));
	buffer_append_char(&out, '\0');
	buffer_append_char(&buffer, '\0');
	assert_int_equal(strncmp(out.data, text.data, text.length), 0);
	assert_int_equal(out.length, text.length + 1);
	buffer_destroy(&out);
}

static void an_empty_dump_has_an_empty_list(void **state)
{
	struct state_dump_dump dump = { .stopped = false };

	(void)state;
	assert_true(state_dump_dump_to_json(&dump, &buffer, &err)); /* T54 */
	buffer_append_char(&buffer, '\0');
	assert_string_equal(buffer.data, "{\"stopped\":false,\"pods\":[]}");
}

static void a_metric_that_is_no_number_fails_the_dump(void **state)
{
	struct state_dump_state core = { .has_metrics = true, .metrics = { .load_average_1_min = NAN } };

	(void)state;
	assert_false(state_dump_state_to_json(&core, &buffer, &err));
}

static void a_dump_request_is_an_object_or_null(void **state)
{
	struct state_dump_dump_request request;
	struct json_reader reader;

	(void)state;
	assert_true(state_dump_dump_request_from_json(SLICE("{}"), &arena, &request, &err));
	assert_true(state_dump_dump_request_from_json(SLICE("null"), &arena, &request, &err));
	assert_true(state_dump_dump_request_from_json(SLICE("{\"x\":[1]}"), &arena, &request, &err));
	assert_false(state_dump_dump_request_from_json(SLICE(""), &arena, &request, &err));
	assert_false(state_dump_dump_request_from_json(SLICE("[]"), &arena, &request, &err));
	assert_false(state_dump_dump_request_from_json(SLICE("1"), &arena, &request, &err));
	/* What follows the value is allowed here: whoever doesn't finish doesn't look at it. */
	assert_true(json_reader_open(&reader, SLICE("{} x"), &arena, &err) &&
	            state_dump_dump_request_decode(&reader, &request, &err));
}

/* --- replay --- */

static void every_recorded_line_is_read(void **state)
{
	struct slice text = file("replay/worked.in.jsonl");
	size_t count = 0;

	(void)state;
	while (text.length > 0) {
		struct slice line = slice_take_until(&text, '\n');
		struct replay_event event;
		struct replay_init init;

		if (slice_trim(line).length == 0)
			continue;
		if (!replay_event_from_json(line, &arena, &event, &err))
			fail_msg("%s", err.text);
		if (slice_equal_text(event.event, "init") && !replay_init_from_json(line, &arena, &init, &err))
			fail_msg("%s", err.text);
		count++;
	}
	assert_int_equal(count, 23);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_shipped_configuration_is_read),
		TEST(what_is_wrong_with_a_configuration_is_said_in_the_references_words),
		TEST(only_blanks_may_follow_a_configuration),
		TEST(optional_sections_may_be_absent_or_null),
		TEST(a_configuration_check_finds_every_problem),
		TEST(a_configuration_is_written_back_whole),
		TEST(the_dump_of_the_spec_is_read_and_written_byte_for_byte),
		TEST(an_empty_dump_has_an_empty_list),
		TEST(a_metric_that_is_no_number_fails_the_dump),
		TEST(a_dump_request_is_an_object_or_null),
		TEST(every_recorded_line_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
