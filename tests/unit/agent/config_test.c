#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/config.h"
#include "base/clock.h"
#include "base/memory.h"
#include "tests/unit/agent/config_file.h"

struct loaded {
	struct config_file *file;
	struct arena arena;
	struct agent_config config;
	struct slice error;
	struct error err;
	bool ok;
};

static void load(struct loaded *loaded, const char *edits)
{
	*loaded = (struct loaded){ .file = config_file_create(edits) };
	arena_init(&loaded->arena, AGENT_CONFIG_ARENA_BYTES);
	loaded->ok =
		agent_config_load(loaded->file->path, &loaded->arena, &loaded->config, &loaded->error, &loaded->err);
}

static void unload(struct loaded *loaded)
{
	arena_destroy(&loaded->arena);
	config_file_destroy(loaded->file);
}

static const uint64_t SECOND = NS_PER_S;

static void the_shipped_file_gives_the_shipped_values(void **state)
{
	struct loaded loaded;
	const struct agent_config *config = &loaded.config;

	(void)state;
	load(&loaded, "");
	assert_true(loaded.ok);
	assert_int_equal(config->refresh_state_interval_ns, 5 * SECOND);
	assert_int_equal(config->core.compute_unit.cpu_milli, 250);
	assert_int_equal(config->core.compute_unit.mem_bytes, 1073741824);
	assert_true(config->core.default_scaling_config.has_load_average_fraction_target);
	assert_true(config->core.default_scaling_config.load_average_fraction_target == 0.9);
	assert_true(config->core.default_scaling_config.memory_usage_fraction_target == 0.75);
	assert_int_equal(config->core.default_scaling_config.lfc_window_size_minutes, 5);
	assert_int_equal(config->core.neonvm_retry_wait_ns, 5 * SECOND);
	assert_int_equal(config->core.plugin_request_tick_ns, 15 * SECOND);
	assert_int_equal(config->core.plugin_retry_wait_ns, 3 * SECOND);
	assert_int_equal(config->core.plugin_denied_retry_wait_ns, 2 * SECOND);
	assert_int_equal(config->core.monitor_denied_downscale_cooldown_ns, 5 * SECOND);
	assert_int_equal(config->core.monitor_requested_upscale_valid_period_ns, 10 * SECOND);
	assert_int_equal(config->core.monitor_retry_wait_ns, 3 * SECOND);
	assert_true(config->core.clamp_instead_of_fail);
	assert_int_equal(config->monitor.server_port, 10301);
	assert_int_equal(config->monitor.response_timeout_ns, 5 * SECOND);
	assert_int_equal(config->monitor.connection_timeout_ns, 4 * SECOND);
	assert_int_equal(config->monitor.connection_retry_min_wait_ns, 5 * SECOND);
	assert_int_equal(config->monitor.unhealthy_after_silence_ns, 20 * SECOND);
	assert_int_equal(config->monitor.unhealthy_startup_grace_ns, 20 * SECOND);
	assert_int_equal(config->monitor.max_health_check_failures_ns, 30 * SECOND);
	assert_int_equal(config->monitor.max_failed_requests.interval_ns, 120 * SECOND);
	assert_int_equal(config->monitor.max_failed_requests.threshold, 2);
	assert_string_equal(config->scheduler.scheduler_name, "autoscale-scheduler");
	assert_int_equal(config->scheduler.request_port, 10299);
	assert_int_equal(config->scheduler.max_failed_requests.threshold, 5);
	assert_int_equal(config->neonvm.request_timeout_ns, 10 * SECOND);
	assert_int_equal(config->neonvm.max_failed_requests.threshold, 2);
	assert_int_equal(config->system_metrics.port, 9100);
	assert_int_equal(config->system_metrics.request_timeout_ns, 2 * SECOND);
	assert_int_equal(config->system_metrics.seconds_between_requests, 5);
	assert_int_equal(config->lfc_metrics.port, 9499);
	assert_int_equal(config->lfc_metrics.seconds_between_requests, 15);
	assert_true(config->dump.present);
	assert_int_equal(config->dump.port, 10300);
	assert_int_equal(config->dump.timeout_ns, 5 * SECOND);
	assert_true(config->scaling_events_cu_multiplier == 0.25);
	assert_true(slice_equal_text(config->scaling_events_region_name, "replaceme"));
	assert_int_equal(config->billing.collect_every_ns, 4 * SECOND);
	assert_int_equal(config->billing.accumulate_every_ns, 24 * SECOND);
	assert_true(slice_equal_text(config->billing.cpu_metric_name, "effective_compute_seconds"));
	assert_false(config->billing.http.present || config->billing.s3.present || config->billing.azure_blob.present);
	assert_false(config->scaling_events_azure_blob.present || config->scaling_events_s3.present);
	unload(&loaded);
}

static void clients_are_taken_over(void **state)
{
	struct loaded loaded;
	const struct agent_config *config = &loaded.config;

	(void)state;
	load(&loaded,
	     "billing.clients = {\"http\":{\"url\":\"http://b/v1\",\"pushEverySeconds\":10,\"pushRequestTimeoutSeconds\":5,"
	     "\"maxBatchSize\":200},\"s3\":{\"bucket\":\"metrics\",\"region\":\"us-east-1\",\"endpoint\":\"http://minio\","
	     "\"prefixInBucket\":\"agent\",\"pushEverySeconds\":30,\"pushRequestTimeoutSeconds\":20,\"maxBatchSize\":500}};"
	     "scalingEvents.clients = {\"azureBlob\":{\"endpoint\":\"https://a\",\"container\":\"c\","
	     "\"prefixInContainer\":\"p\",\"pushEverySeconds\":1,\"pushRequestTimeoutSeconds\":2,\"maxBatchSize\":3}}");
	assert_true(loaded.ok);
	assert_true(config->billing.http.present);
	assert_true(slice_equal_text(config->billing.http.url, "http://b/v1"));
	assert_int_equal(config->billing.http.push.every_ns, 10 * SECOND);
	assert_int_equal(config->billing.http.push.request_timeout_ns, 5 * SECOND);
	assert_int_equal(config->billing.http.push.max_batch_size, 200);
	assert_true(config->billing.s3.present);
	assert_true(slice_equal_text(config->billing.s3.bucket, "metrics"));
	assert_true(slice_equal_text(config->billing.s3.region, "us-east-1"));
	assert_true(slice_equal_text(config->billing.s3.endpoint, "http://minio"));
	assert_true(slice_equal_text(config->billing.s3.prefix_in_bucket, "agent"));
	assert_int_equal(config->billing.s3.push.every_ns, 30 * SECOND);
	assert_false(config->billing.azure_blob.present);
	assert_true(config->scaling_events_azure_blob.present);
	assert_true(slice_equal_text(config->scaling_events_azure_blob.container, "c"));
	assert_true(slice_equal_text(config->scaling_events_azure_blob.endpoint, "https://a"));
	assert_true(slice_equal_text(config->scaling_events_azure_blob.prefix_in_container, "p"));
	assert_int_equal(config->scaling_events_azure_blob.push.max_batch_size, 3);
	unload(&loaded);
}

static void without_a_dump_section_there_is_no_dump_server(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "- dumpState");
	assert_true(loaded.ok);
	assert_false(loaded.config.dump.present);
	unload(&loaded);
}

static void an_absent_largest_window_setting_means_false(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "- scaling.defaultConfig.lfcUseLargestWindow");
	assert_true(loaded.ok);
	assert_true(loaded.config.core.default_scaling_config.has_lfc_use_largest_window);
	assert_false(loaded.config.core.default_scaling_config.lfc_use_largest_window);
	unload(&loaded);
}

static void the_longest_waits_are_a_century(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "monitor.responseTimeoutSeconds = 18446744073709551615;"
	              "scheduler.retryFailedRequestSeconds = 18446744073709551615;"
	              "metrics.system.secondsBetweenRequests = 18446744073709551615;"
	              "metrics.lfc.secondsBetweenRequests = 3000000000");
	assert_true(loaded.ok);
	assert_int_equal(loaded.config.monitor.response_timeout_ns, AGENT_CONFIG_SECONDS_MAX * NS_PER_S);
	assert_int_equal(loaded.config.system_metrics.seconds_between_requests, AGENT_CONFIG_SECONDS_MAX);
	/* That is still shorter, though over 31 bits. */
	assert_int_equal(loaded.config.lfc_metrics.seconds_between_requests, UINT64_C(3000000000));
	assert_true(loaded.config.core.plugin_retry_wait_ns == (int64_t)(AGENT_CONFIG_SECONDS_MAX * NS_PER_S));
	unload(&loaded);
}

static void the_config_is_encoded_again_in_full(void **state)
{
	struct loaded loaded;
	char text[4096];

	(void)state;
	load(&loaded, "scalingEvents.regionName = \"<eu&1>\"; - dumpState;"
	              "- scaling.defaultConfig.lfcUseLargestWindow");
	assert_true(loaded.ok);
	snprintf(text, sizeof text, "%.*s", SLICE_ARGS(loaded.config.json));
	assert_string_equal(
		text,
		"{\"refereshStateIntervalSeconds\":5,"
		"\"scaling\":{\"computeUnit\":{\"vCPUs\":\"250m\",\"mem\":\"1Gi\"},\"defaultConfig\":{"
		"\"loadAverageFractionTarget\":0.9,\"memoryUsageFractionTarget\":0.75,\"memoryTotalFractionTarget\":0.9,"
		"\"enableLFCMetrics\":false,\"lfcToMemoryRatio\":0.75,\"lfcMinWaitBeforeDownscaleMinutes\":5,"
		"\"lfcWindowSizeMinutes\":5,\"cpuStableZoneRatio\":0,\"cpuMixedZoneRatio\":0}},"
		"\"billing\":{\"cpuMetricName\":\"effective_compute_seconds\",\"activeTimeMetricName\":\"active_time_seconds\","
		"\"collectEverySeconds\":4,\"accumulateEverySeconds\":24,\"clients\":{\"http\":null,\"azureBlob\":null,"
		"\"s3\":null}},"
		"\"scalingEvents\":{\"cuMultiplier\":0.25,\"rereportThreshold\":0.25,\"regionName\":\"<eu&1>\","
		"\"clients\":{\"azureBlob\":null,\"s3\":null}},"
		"\"monitor\":{\"responseTimeoutSeconds\":5,\"connectionTimeoutSeconds\":4,\"connectionRetryMinWaitSeconds\":5,"
		"\"serverPort\":10301,\"unhealthyAfterSilenceDurationSeconds\":20,\"unhealthyStartupGracePeriodSeconds\":20,"
		"\"maxHealthCheckSequentialFailuresSeconds\":30,\"retryDeniedDownscaleSeconds\":5,"
		"\"requestedUpscaleValidSeconds\":10,\"retryFailedRequestSeconds\":3,"
		"\"maxFailedRequestRate\":{\"intervalSeconds\":120,\"threshold\":2}},"
		"\"metrics\":{\"system\":{\"port\":9100,\"requestTimeoutSeconds\":2,\"secondsBetweenRequests\":5},"
		"\"lfc\":{\"port\":9499,\"requestTimeoutSeconds\":5,\"secondsBetweenRequests\":15}},"
		"\"scheduler\":{\"schedulerName\":\"autoscale-scheduler\",\"requestPort\":10299,\"requestTimeoutSeconds\":2,"
		"\"requestAtLeastEverySeconds\":15,\"retryFailedRequestSeconds\":3,\"retryDeniedUpscaleSeconds\":2,"
		"\"maxFailedRequestRate\":{\"intervalSeconds\":120,\"threshold\":5}},"
		"\"neonvm\":{\"requestTimeoutSeconds\":10,\"retryFailedRequestSeconds\":5,"
		"\"maxFailedRequestRate\":{\"intervalSeconds\":120,\"threshold\":2}},"
		"\"dumpState\":null}");
	unload(&loaded);
}

static void an_error_text_longer_than_an_error_holds_is_given_whole(void **state)
{
	struct loaded loaded;
	const struct slice last = SLICE(": field \".refereshStateIntervalSeconds\" cannot be zero");

	(void)state;
	load(&loaded, "!{}");
	assert_false(loaded.ok);
	assert_true(loaded.error.length > sizeof loaded.err.text);
	assert_true(slice_starts_with(loaded.error, SLICE("invalid config: field \".billing.activeTimeMetricName\"")));
	assert_true(slice_equal(slice_from_offset(loaded.error, loaded.error.length - last.length), last));
	unload(&loaded);
}

static void a_file_that_is_not_there_is_named(void **state)
{
	struct arena arena;
	struct agent_config config;
	struct slice text;
	struct error err;

	(void)state;
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	assert_false(agent_config_load("/nowhere/at all/config.json", &arena, &config, &text, &err));
	assert_string_equal(err.text, "error opening config file \"/nowhere/at all/config.json\": open /nowhere/at "
	                              "all/config.json: no such file or directory");
	assert_true(slice_equal_text(text, err.text));
	assert_false(agent_config_load("/tmp", &arena, &config, &text, &err));
	assert_string_equal(err.text, "error decoding JSON config in \"/tmp\": read /tmp: is a directory");
	arena_destroy(&arena);
}

static void a_file_beyond_the_limit_is_refused(void **state)
{
	struct arena arena;
	struct agent_config config;
	struct slice text;
	struct error err;
	char path[] = "/tmp/ballast-config-XXXXXX";
	int descriptor = mkstemp(path);

	(void)state;
	assert_true(descriptor >= 0);
	assert_int_equal(ftruncate(descriptor, 8 * AGENT_CONFIG_FILE_BYTES), 0);
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	assert_false(agent_config_load(path, &arena, &config, &text, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_non_null(strstr(err.text, "error decoding JSON config in \"/tmp/ballast-config-"));
	arena_destroy(&arena);
	close(descriptor);
	unlink(path);
}

static void the_deployed_file_is_the_shipped_one(void **state)
{
	struct config_file *shipped = config_file_create("");
	char deployed[CONFIG_FILE_BYTES] = "";
	FILE *file = fopen(TESTS_DIR "/../deploy/agent/config.json", "r");

	(void)state;
	assert_non_null(file);
	assert_true(fread(deployed, 1, sizeof deployed - 1, file) > 0);
	fclose(file);
	assert_string_equal(deployed, shipped->text);
	config_file_destroy(shipped);
}

/* ---- checking ---- */

struct checked {
	struct config_file *file;
	struct arena arena;
	struct agent_config_report report;
};

static void check(struct checked *checked, const char *edits)
{
	struct error err;

	*checked = (struct checked){ .file = config_file_create(edits) };
	arena_init(&checked->arena, AGENT_CONFIG_ARENA_BYTES);
	assert_true(agent_config_check(checked->file->path, &checked->arena, &checked->report, &err));
	assert_string_equal(checked->report.generation, "B");
}

static void uncheck(struct checked *checked)
{
	arena_destroy(&checked->arena);
	config_file_destroy(checked->file);
}

static void assert_finding(const struct checked *checked, size_t index, unsigned line, const char *path,
                           const char *text)
{
	const struct agent_config_finding *finding = &checked->report.findings[index];

	assert_true(index < checked->report.count);
	assert_int_equal(finding->line, line);
	assert_string_equal(finding->path.data, path);
	assert_string_equal(finding->text.data, text);
}

static void a_valid_file_has_no_findings(void **state)
{
	struct checked checked;

	(void)state;
	check(&checked, "");
	assert_int_equal(checked.report.count, 0);
	assert_int_equal(checked.report.left_out, 0);
	uncheck(&checked);
}

static void five_mistakes_of_five_kinds_are_all_found_where_they_are(void **state)
{
	struct checked checked;

	(void)state;
	check(&checked, "scaling.computeUnit.mem = \"1Kii\"; monitor > Monitr; scheduler.requestPort = \"10299\";"
	                "neonvm.requestTimeoutSeconds = 0; - dumpState.timeoutSeconds");
	/* Eleven of these are what the misspelt section lacks, at the line of the document. */
	assert_int_equal(checked.report.count, 5 + 11);
	assert_finding(&checked, 0, 1, "monitor.connectionRetryMinWaitSeconds", "is missing");
	assert_finding(&checked, 10, 1, "monitor.unhealthyStartupGracePeriodSeconds", "is missing");
	assert_finding(&checked, 11, 4, "scaling.computeUnit.mem", "unable to parse quantity's suffix");
	assert_finding(&checked, 12, 31, "Monitr", "unknown key");
	assert_finding(&checked, 13, 50, "scheduler.requestPort", "expected uint16, found string");
	assert_finding(&checked, 14, 58, "neonvm.requestTimeoutSeconds", "cannot be zero");
	assert_finding(&checked, 15, 62, "dumpState.timeoutSeconds", "is missing");
	uncheck(&checked);
}

static void what_could_not_be_read_is_not_also_zero(void **state)
{
	struct checked checked;

	(void)state;
	check(&checked, "monitor = 5; scaling.computeUnit.vCPUs = []");
	assert_int_equal(checked.report.count, 2);
	assert_finding(&checked, 0, 4, "scaling.computeUnit.vCPUs",
	               "quantities must match the regular expression "
	               "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
	assert_finding(&checked, 1, 31, "monitor", "expected object, found number");
	uncheck(&checked);
}

static void findings_name_the_real_keys(void **state)
{
	struct checked checked;

	(void)state;
	check(&checked, "scheduler.maxFailedRequestRate.intervalSeconds = 0; - scaling.defaultConfig.cpuMixedZoneRatio;"
	                "scaling.defaultConfig.memoryUsageFractionTarget = 1; refereshStateIntervalSeconds = null;"
	                "scalingEvents.clients = {\"s3\":{\"bucket\":\"\"}}");
	assert_finding(&checked, 0, 2, "refereshStateIntervalSeconds", "cannot be zero");
	assert_finding(&checked, 1, 5, "scaling.defaultConfig.cpuMixedZoneRatio", "is missing");
	assert_finding(&checked, 2, 7, "scaling.defaultConfig.memoryUsageFractionTarget", "must be set to value < 1");
	assert_finding(&checked, 3, 28, "scalingEvents.clients.s3.bucket", "cannot be empty");
	assert_finding(&checked, 4, 28, "scalingEvents.clients.s3.maxBatchSize", "is missing");
	assert_finding(&checked, 9, 54, "scheduler.maxFailedRequestRate.intervalSeconds", "cannot be zero");
	assert_int_equal(checked.report.count, 10);
	uncheck(&checked);
}

static void every_mistake_of_the_event_sections_is_found(void **state)
{
	static const char *const PATHS[] = {
		"billing.accumulateEverySeconds",
		"billing.activeTimeMetricName",
		"billing.clients.azureBlob.container",
		"billing.clients.azureBlob.endpoint",
		"billing.clients.azureBlob.maxBatchSize",
		"billing.clients.azureBlob.pushEverySeconds",
		"billing.clients.azureBlob.pushRequestTimeoutSeconds",
		"billing.clients.http.maxBatchSize",
		"billing.clients.http.pushEverySeconds",
		"billing.clients.http.pushRequestTimeoutSeconds",
		"billing.clients.http.url",
		"billing.clients.s3.bucket",
		"billing.clients.s3.maxBatchSize",
		"billing.clients.s3.pushEverySeconds",
		"billing.clients.s3.pushRequestTimeoutSeconds",
		"billing.clients.s3.region",
		"billing.collectEverySeconds",
		"billing.cpuMetricName",
		"scalingEvents.clients.azureBlob.container",
		"scalingEvents.clients.azureBlob.endpoint",
		"scalingEvents.clients.azureBlob.maxBatchSize",
		"scalingEvents.clients.azureBlob.prefixInContainer",
		"scalingEvents.clients.azureBlob.pushEverySeconds",
		"scalingEvents.clients.azureBlob.pushRequestTimeoutSeconds",
		"scalingEvents.clients.s3.bucket",
		"scalingEvents.clients.s3.maxBatchSize",
		"scalingEvents.clients.s3.prefixInBucket",
		"scalingEvents.clients.s3.pushEverySeconds",
		"scalingEvents.clients.s3.pushRequestTimeoutSeconds",
		"scalingEvents.clients.s3.region",
		"scalingEvents.cuMultiplier",
		"scalingEvents.regionName",
		"scalingEvents.rereportThreshold",
	};
	struct checked checked;

	(void)state;
	check(&checked, "billing = {\"clients\":{\"azureBlob\":{},\"http\":{},\"s3\":{}}};"
	                "scalingEvents = {\"clients\":{\"azureBlob\":{},\"s3\":{}}}");
	assert_int_equal(checked.report.count, sizeof PATHS / sizeof PATHS[0]);
	for (size_t i = 0; i < checked.report.count; i++) {
		assert_string_equal(checked.report.findings[i].path.data, PATHS[i]);
		assert_string_equal(checked.report.findings[i].text.data, "is missing");
	}
	uncheck(&checked);
}

static void a_syntax_error_is_the_only_finding(void **state)
{
	struct checked checked;

	(void)state;
	check(&checked, "!{\"monitor\":\n{\"serverPort\":1,}}");
	assert_int_equal(checked.report.count, 1);
	assert_int_equal(checked.report.findings[0].line, 2);
	assert_string_equal(checked.report.findings[0].path.data, "");
	uncheck(&checked);
}

static void a_second_key_and_text_behind_the_value_are_found(void **state)
{
	struct checked checked;

	(void)state;
	check(&checked, "monitor + serverPort = 1; >> x");
	assert_int_equal(checked.report.count, 2);
	assert_string_equal(checked.report.findings[0].path.data, "monitor.serverPort");
	assert_int_equal(checked.report.findings[0].line, 32);
	assert_string_equal(checked.report.findings[1].text.data, "something follows the value");
	uncheck(&checked);
}

static void many_mistakes_are_counted(void **state)
{
	struct checked checked;
	char text[4096] = "!{";

	(void)state;
	for (int i = 0; i < 100; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s\"unknown%d\":1", i > 0 ? "," : "", i);
	strcat(text, "}");
	check(&checked, text);
	assert_int_equal(checked.report.left_out, 36);
	assert_true(checked.report.count > 64);
	uncheck(&checked);
}

/* ---- memory ---- */

static void running_out_of_memory_is_an_error_at_every_step(void **state)
{
	struct config_file *file = config_file_create("monitor.serverPort = 0");
	unsigned long step = 0;
	bool ok = false;

	(void)state;
	while (!ok) {
		struct arena arena;
		struct agent_config config;
		struct agent_config_report report;
		struct slice text = { 0 };
		struct error err = { 0 };

		arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
		memory_fail_at(++step);
		if (!agent_config_load(file->path, &arena, &config, &text, &err))
			assert_true(text.length > 0 && err.code != ERROR_NONE);
		ok = memory_allocation_count() < step;
		memory_fail_at(step);
		if (!agent_config_check(file->path, &arena, &report, &err))
			assert_int_equal(err.code, ERROR_NO_MEMORY);
		memory_fail_at(0);
		arena_destroy(&arena);
		assert_true(step < 1000);
	}
	assert_true(step > 2);
	config_file_destroy(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shipped_file_gives_the_shipped_values),
		cmocka_unit_test(clients_are_taken_over),
		cmocka_unit_test(without_a_dump_section_there_is_no_dump_server),
		cmocka_unit_test(an_absent_largest_window_setting_means_false),
		cmocka_unit_test(the_longest_waits_are_a_century),
		cmocka_unit_test(the_config_is_encoded_again_in_full),
		cmocka_unit_test(an_error_text_longer_than_an_error_holds_is_given_whole),
		cmocka_unit_test(a_file_that_is_not_there_is_named),
		cmocka_unit_test(a_file_beyond_the_limit_is_refused),
		cmocka_unit_test(the_deployed_file_is_the_shipped_one),
		cmocka_unit_test(a_valid_file_has_no_findings),
		cmocka_unit_test(five_mistakes_of_five_kinds_are_all_found_where_they_are),
		cmocka_unit_test(what_could_not_be_read_is_not_also_zero),
		cmocka_unit_test(findings_name_the_real_keys),
		cmocka_unit_test(every_mistake_of_the_event_sections_is_found),
		cmocka_unit_test(a_syntax_error_is_the_only_finding),
		cmocka_unit_test(a_second_key_and_text_behind_the_value_are_found),
		cmocka_unit_test(many_mistakes_are_counted),
		cmocka_unit_test(running_out_of_memory_is_an_error_at_every_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
