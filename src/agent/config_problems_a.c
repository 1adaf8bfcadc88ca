/*
 * Schema A's checks (spec generations 1.2): nearly all of them say that a field has to be there, so they are a table in
 * the order in which the reference joins its texts.
 */
#include "agent/config_problems.h"

#include <stddef.h>

#include "agent/core/scaling_config.h"
#include "agent/plugin_protocol.h"

enum value { NUMBER, PORT, TEXT };

struct requirement {
	const char *said_section; /* with the leading dot of the texts */
	const char *key;
	enum value value;
	size_t offset; /* in struct agent_config_a_config */
};

#define REQUIRE(section, key, value, field)                                        \
	{                                                                          \
		section, key, value, offsetof(struct agent_config_a_config, field) \
	}

static const struct requirement BILLING[] = {
	REQUIRE(".billing", "activeTimeMetricName", TEXT, billing.active_time_metric_name),
	REQUIRE(".billing", "cpuMetricName", TEXT, billing.cpu_metric_name),
	REQUIRE(".billing", "collectEverySeconds", NUMBER, billing.collect_every_seconds),
	REQUIRE(".billing", "accumulateEverySeconds", NUMBER, billing.accumulate_every_seconds),
	REQUIRE(".billing", "pushEverySeconds", NUMBER, billing.push_every_seconds),
	REQUIRE(".billing", "pushRequestTimeoutSeconds", NUMBER, billing.push_request_timeout_seconds),
	REQUIRE(".billing", "maxBatchSize", NUMBER, billing.max_batch_size),
	REQUIRE(".billing", "url", TEXT, billing.url),
};

static const struct requirement DUMP_STATE[] = {
	REQUIRE(".dumpState", "port", PORT, dump_state.port),
	REQUIRE(".dumpState", "timeoutSeconds", NUMBER, dump_state.timeout_seconds),
};

/* metrics.requestTimeoutSeconds may be zero: the reference doesn't check it. */
static const struct requirement BEFORE_DEFAULT_CONFIG[] = {
	REQUIRE(".metrics", "port", PORT, metrics.port),
	REQUIRE(".metrics", "loadMetricPrefix", TEXT, metrics.load_metric_prefix),
	REQUIRE(".metrics", "secondsBetweenRequests", NUMBER, metrics.seconds_between_requests),
	REQUIRE(".scaling", "requestTimeoutSeconds", NUMBER, scaling.request_timeout_seconds),
	REQUIRE(".scaling", "retryFailedRequestSeconds", NUMBER, scaling.retry_failed_request_seconds),
	REQUIRE(".monitor", "responseTimeoutSeconds", NUMBER, monitor.response_timeout_seconds),
	REQUIRE(".monitor", "connectionTimeoutSeconds", NUMBER, monitor.connection_timeout_seconds),
	REQUIRE(".monitor", "connectionRetryMinWaitSeconds", NUMBER, monitor.connection_retry_min_wait_seconds),
	REQUIRE(".monitor", "serverPort", PORT, monitor.server_port),
	REQUIRE(".monitor", "unhealthyAfterSilenceDurationSeconds", NUMBER,
	        monitor.unhealthy_after_silence_duration_seconds),
	REQUIRE(".monitor", "unhealthyStartupGracePeriodSeconds", NUMBER,
	        monitor.unhealthy_startup_grace_period_seconds),
	REQUIRE(".monitor", "maxHealthCheckSequentialFailuresSeconds", NUMBER,
	        monitor.max_health_check_sequential_failures_seconds),
	REQUIRE(".monitor", "retryFailedRequestSeconds", NUMBER, monitor.retry_failed_request_seconds),
	REQUIRE(".monitor", "retryDeniedDownscaleSeconds", NUMBER, monitor.retry_denied_downscale_seconds),
	REQUIRE(".monitor", "deniedDownscaleFollowUpWaitSeconds", NUMBER,
	        monitor.denied_downscale_follow_up_wait_seconds),
	REQUIRE(".monitor", "requestedUpscaleValidSeconds", NUMBER, monitor.requested_upscale_valid_seconds),
};

static const struct requirement SCHEDULER[] = {
	REQUIRE(".scheduler", "requestPort", PORT, scheduler.request_port),
	REQUIRE(".scheduler", "requestTimeoutSeconds", NUMBER, scheduler.request_timeout_seconds),
	REQUIRE(".scheduler", "requestAtLeastEverySeconds", NUMBER, scheduler.request_at_least_every_seconds),
	REQUIRE(".scheduler", "retryFailedRequestSeconds", NUMBER, scheduler.retry_failed_request_seconds),
	REQUIRE(".scheduler", "retryDeniedUpscaleSeconds", NUMBER, scheduler.retry_denied_upscale_seconds),
	REQUIRE(".scheduler", "schedulerName", TEXT, scheduler.scheduler_name),
};

static bool is_there(const struct agent_config_a_config *config, const struct requirement *requirement)
{
	const void *value = (const char *)config + requirement->offset;

	switch (requirement->value) {
	case NUMBER:
		return *(const uint64_t *)value != 0;
	case PORT:
		return *(const uint16_t *)value != 0;
	case TEXT:
		break;
	}
	return ((const struct slice *)value)->length > 0;
}

static void add(struct config_problems *problems, struct config_problem problem)
{
	if (problems->count < CONFIG_PROBLEMS_MAX)
		problems->items[problems->count++] = problem;
}

static void add_field(struct config_problems *problems, const char *said_section, const char *key, const char *text)
{
	add(problems, (struct config_problem){
			      .section = said_section + 1,
			      .key = slice_of(key),
			      .said_section = said_section,
			      .said_key = key,
			      .text = text,
		      });
}

static void check(const struct agent_config_a_config *config, const struct requirement *requirements, size_t count,
                  struct config_problems *problems)
{
	for (size_t i = 0; i < count; i++) {
		const struct requirement *requirement = &requirements[i];

		if (!is_there(config, requirement))
			add_field(problems, requirement->said_section, requirement->key,
			          requirement->value == TEXT ? "cannot be empty" : "cannot be zero");
	}
}

#define CHECK(config, requirements, problems) \
	check(config, requirements, sizeof(requirements) / sizeof(requirements)[0], problems)

static void check_default_config(const struct agent_config_a_default_config *defaults, struct config_problems *problems)
{
	const struct scaling_config config = {
		.has_load_average_fraction_target = true,
		.load_average_fraction_target = defaults->load_average_fraction_target,
		.has_memory_usage_fraction_target = true,
		.memory_usage_fraction_target = defaults->memory_usage_fraction_target,
	};

	config_problems_add_default_config(&config, false, problems);
}

/* Our two keys: the unit may be left out where the plugin tells it, in its versions 2.0 and 2.1 (2.7). */
static void check_extensions(const struct agent_config_a_config *config, struct config_problems *problems)
{
	enum plugin_protocol protocol = PLUGIN_PROTOCOL_2_0;
	const char *required = NULL;

	if (config->scheduler.has_protocol_version &&
	    !plugin_protocol_read(config->scheduler.protocol_version, &protocol))
		add_field(problems, ".scheduler", "protocolVersion", CONFIG_PROBLEM_PROTOCOL_VERSION);
	if (config->scaling.has_compute_unit) {
		if (config->scaling.compute_unit.cpu_milli == 0)
			add_field(problems, ".scaling.computeUnit", "vCPUs", "cannot be zero");
		if (config->scaling.compute_unit.mem_bytes == 0)
			add_field(problems, ".scaling.computeUnit", "mem", "cannot be zero");
		return;
	}
	if (protocol == PLUGIN_PROTOCOL_3_0)
		required = "is required for scheduler.protocolVersion \"3.0\"";
	else if (protocol == PLUGIN_PROTOCOL_4_0)
		required = "is required for scheduler.protocolVersion \"4.0\"";
	else if (protocol == PLUGIN_PROTOCOL_5_0)
		required = "is required for scheduler.protocolVersion \"5.0\"";
	if (required != NULL)
		add(problems, (struct config_problem){
				      .section = "scaling",
				      .key = SLICE("computeUnit"),
				      .said_section = ".scaling",
				      .said_key = "computeUnit",
				      .text = required,
				      .about_absence = true,
			      });
}

void config_problems_find_a(const struct agent_config_a_config *config, struct config_problems *ret_problems)
{
	ret_problems->count = 0;
	if (config->has_billing)
		CHECK(config, BILLING, ret_problems);
	if (config->has_dump_state)
		CHECK(config, DUMP_STATE, ret_problems);
	CHECK(config, BEFORE_DEFAULT_CONFIG, ret_problems);
	check_default_config(&config->scaling.default_config, ret_problems);
	CHECK(config, SCHEDULER, ret_problems);
	check_extensions(config, ret_problems);
}
