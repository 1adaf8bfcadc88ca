/*
 * Configuration files of both generations: vectors C1 … C13 of spec generations 6, and more like them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/config.h"
#include "base/clock.h"
#include "tests/support/vector_file.h"
#include "tests/unit/agent/config_file.h"

static const uint64_t SECOND = NS_PER_S;

static void describe_unit(const struct agent_config *config, char *text, size_t size)
{
	if (config->core.compute_unit_from_plugin) {
		assert_false(config->scheduler.compute_unit_configured);
		snprintf(text, size, "unit from the plugin");
	} else {
		assert_true(config->scheduler.compute_unit_configured);
		snprintf(text, size, "unit %u %llu", config->core.compute_unit.cpu_milli,
		         (unsigned long long)config->core.compute_unit.mem_bytes);
	}
}

static void describe_rest(const struct agent_config *config, char *text, size_t size)
{
	const struct scaling_config *fractions = &config->core.default_scaling_config;
	char billing[128] = "no billing";
	char dump[32] = "no dump";

	if (config->billing.http.present)
		snprintf(billing, sizeof billing, "billing to %.*s", SLICE_ARGS(config->billing.http.url));
	else if (config->billing.present)
		snprintf(billing, sizeof billing, "billing");
	if (config->dump.present)
		snprintf(dump, sizeof dump, "dump at %u", config->dump.port);
	assert_true(fractions->has_load_average_fraction_target && fractions->has_memory_usage_fraction_target);
	snprintf(text, size, "%s, %s, fractions %g %g", billing, dump, fractions->load_average_fraction_target,
	         fractions->memory_usage_fraction_target);
}

static void describe(const struct agent_config *config, char *text, size_t size)
{
	char unit[64];
	char rest[256];

	describe_unit(config, unit, sizeof unit);
	describe_rest(config, rest, sizeof rest);
	snprintf(text, size, "ok %s %s, %s, %s", agent_generation_name(config->generation),
	         plugin_protocol_name(config->scheduler.protocol), unit, rest);
}

static void put_path(char *text, const char *path)
{
	char *place = strstr(text, path);
	char tail[8192];

	if (place == NULL)
		return;
	strcpy(tail, place + strlen(path));
	strcpy(place, "PATH");
	strcat(text, tail);
}

static void check(const struct vector_row *row)
{
	char sample[64];
	char actual[8192];
	struct config_file *file;
	struct arena arena;
	struct agent_config config;
	struct slice error = SLICE("(none)");
	struct error err;

	assert_int_equal(row->count, 4);
	snprintf(sample, sizeof sample, "data/agent/config-%s.json", row->fields[1]);
	file = config_file_create_from(sample, row->fields[2]);
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	if (agent_config_load(file->path, &arena, &config, &error, &err))
		describe(&config, actual, sizeof actual);
	else
		snprintf(actual, sizeof actual, "%.*s", SLICE_ARGS(error));
	put_path(actual, file->path);
	if (row->fields[3][0] == '~' ? strstr(actual, row->fields[3] + 1) == NULL : strcmp(actual, row->fields[3]) != 0)
		fail_msg("%s (line %zu):\n  expected %s\n  found    %s", row->fields[0], row->line, row->fields[3],
		         actual);
	arena_destroy(&arena);
	config_file_destroy(file);
}

static void files_are_read_by_the_schema_they_follow(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/generations/config.txt", check) >= 40);
}

/* C13, and the rest of 1.3. */
static void c13_schema_a_becomes_the_settings_that_make_the_newest_agent_behave_so(void **state)
{
	struct config_file *file = config_file_create_from("data/agent/config-a.json", "");
	struct arena arena;
	struct agent_config config;
	struct slice error;
	struct error err;

	(void)state;
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	if (!agent_config_load(file->path, &arena, &config, &error, &err))
		fail_msg("%s", err.text);
	assert_int_equal(config.neonvm.request_timeout_ns, 10 * SECOND); /* also a plugin request's; not 2 s */
	assert_int_equal(config.core.neonvm_retry_wait_ns, 5 * SECOND);
	assert_true(config.neonvm.no_revisions);
	assert_true(config.refresh_adaptively);
	assert_int_equal(config.refresh_state_interval_ns, 10 * SECOND);
	assert_true(config.no_lfc_metrics);
	assert_false(config.core.default_scaling_config.enable_lfc_metrics);
	assert_true(config.lenient_metrics);
	assert_string_equal(config.metrics_prefix, "host_");
	assert_int_equal(config.system_metrics.port, 9100);
	assert_int_equal(config.system_metrics.request_timeout_ns, 2 * SECOND);
	assert_int_equal(config.system_metrics.seconds_between_requests, 5);
	assert_true(config.system_metrics.first_at_once);
	assert_int_equal(config.plugin_tick_jitter_ms, 0);
	assert_true(config.scheduler.sticky);
	assert_string_equal(config.scheduler.scheduler_name, "autoscale-scheduler");
	assert_int_equal(config.scheduler.request_port, 10299);
	assert_int_equal(config.core.plugin_request_tick_ns, 5 * SECOND);
	assert_int_equal(config.core.plugin_retry_wait_ns, 3 * SECOND);
	assert_int_equal(config.core.plugin_denied_retry_wait_ns, 2 * SECOND);
	assert_int_equal(config.core.monitor_denied_downscale_cooldown_ns, 5 * SECOND);
	assert_int_equal(config.core.monitor_downscale_follow_up_wait_ns, 1 * SECOND);
	assert_int_equal(config.core.monitor_requested_upscale_valid_period_ns, 10 * SECOND);
	assert_int_equal(config.core.monitor_retry_wait_ns, 3 * SECOND);
	assert_true(config.core.clamp_instead_of_fail && config.core.whole_unit_parts && config.core.no_metrics_keep);
	assert_true(config.core.downscale_at_once && config.core.plugin_gate && config.core.plugin_whole_slots);
	assert_true(config.core.capital_texts);
	assert_int_equal(config.monitor.server_port, 10301);
	assert_int_equal(config.monitor.connection_timeout_ns, 4 * SECOND);
	assert_int_equal(config.monitor.max_health_check_failures_ns, 30 * SECOND);
	assert_true(config.monitor.max_failed_requests.threshold == UINT64_MAX);
	assert_true(config.scheduler.max_failed_requests.threshold == UINT64_MAX);
	assert_true(config.neonvm.max_failed_requests.threshold == UINT64_MAX);
	assert_true(config.scaling_events_cu_multiplier == 0.25);
	assert_false(config.scaling_events_azure_blob.present || config.scaling_events_s3.present);
	assert_int_equal(config.dump.generation, AGENT_GENERATION_A);
	assert_true(slice_starts_with(config.json, SLICE("{\"scaling\":{\"requestTimeoutSeconds\":10,")));
	arena_destroy(&arena);
	config_file_destroy(file);
}

static void generation_b_has_none_of_the_knobs_of_a(void **state)
{
	struct config_file *file = config_file_create("");
	struct arena arena;
	struct agent_config config;
	struct slice error;
	struct error err;

	(void)state;
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	if (!agent_config_load(file->path, &arena, &config, &error, &err))
		fail_msg("%s", err.text);
	assert_false(config.core.compute_unit_from_plugin || config.core.whole_unit_parts ||
	             config.core.no_metrics_keep || config.core.downscale_at_once || config.core.plugin_gate ||
	             config.core.plugin_whole_slots || config.core.capital_texts);
	assert_int_equal(config.core.monitor_downscale_follow_up_wait_ns, 0);
	assert_int_equal(config.plugin_tick_jitter_ms, 100);
	assert_false(config.refresh_adaptively || config.lenient_metrics || config.no_lfc_metrics ||
	             config.scheduler.sticky || config.neonvm.no_revisions || config.system_metrics.first_at_once);
	assert_int_equal(config.dump.generation, AGENT_GENERATION_B);
	arena_destroy(&arena);
	config_file_destroy(file);
}

static void a_busy_refresh_takes_a_second_at_least(void **state)
{
	struct config_file *file =
		config_file_create_from("data/agent/config-a.json", "monitor.unhealthyStartupGracePeriodSeconds = 1");
	struct arena arena;
	struct agent_config config;
	struct slice error;
	struct error err;

	(void)state;
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	assert_true(agent_config_load(file->path, &arena, &config, &error, &err));
	assert_int_equal(config.refresh_state_interval_ns, SECOND);
	arena_destroy(&arena);
	config_file_destroy(file);
}

/* What a mixture's report says: as which generation it was read, and by which keys it is both. */
static void a_report_says_what_makes_a_mixture(void **state)
{
	struct config_file *file = config_file_create_from("data/agent/config-a.json", "metrics + system = {}");
	struct arena arena;
	struct agent_config_report report;
	struct error err;
	bool named = false;

	(void)state;
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	assert_true(agent_config_check(file->path, &arena, &report, &err));
	assert_string_equal(report.generation, "B");
	assert_string_equal(report.key_of_a, "scaling.requestTimeoutSeconds");
	assert_string_equal(report.key_of_b, "metrics.system");
	for (size_t i = 0; i < report.count; i++)
		named = named || slice_equal_text(report.findings[i].path, "metrics.loadMetricPrefix");
	assert_true(named);
	arena_destroy(&arena);
	config_file_destroy(file);
}

static void a_report_says_that_a_missing_unit_is_required(void **state)
{
	struct config_file *file =
		config_file_create_from("data/agent/config-a.json", "scheduler + protocolVersion = \"5.0\"");
	struct arena arena;
	struct agent_config_report report;
	struct error err;

	(void)state;
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	assert_true(agent_config_check(file->path, &arena, &report, &err));
	assert_string_equal(report.generation, "A");
	assert_null(report.key_of_b);
	assert_int_equal(report.count, 1);
	assert_int_equal(report.findings[0].line, 2);
	assert_true(slice_equal_text(report.findings[0].path, "scaling.computeUnit"));
	assert_true(slice_equal_text(report.findings[0].text, "is required for scheduler.protocolVersion \"5.0\""));
	arena_destroy(&arena);
	config_file_destroy(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_read_by_the_schema_they_follow),
		cmocka_unit_test(c13_schema_a_becomes_the_settings_that_make_the_newest_agent_behave_so),
		cmocka_unit_test(generation_b_has_none_of_the_knobs_of_a),
		cmocka_unit_test(a_busy_refresh_takes_a_second_at_least),
		cmocka_unit_test(a_report_says_what_makes_a_mixture),
		cmocka_unit_test(a_report_says_that_a_missing_unit_is_required),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
