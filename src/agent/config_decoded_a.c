/*
 * Schema A in the terms of the newest agent's settings (spec generations 1.3). What the late-2023 agent doesn't have
 * gets the value that makes the machinery behave as if it weren't there.
 */
#include "agent/config_decoded.h"

#include "base/clock.h"

/* A runner is never stuck by the rate of its failures. */
static const struct agent_failure_rate NO_RATE = { .interval_ns = UINT64_C(120) * NS_PER_S, .threshold = UINT64_MAX };

static int64_t signed_nanoseconds(uint64_t seconds)
{
	return (int64_t)config_decoded_nanoseconds(seconds);
}

/* The file cache is off, so its settings are never read; with zones of no width, only the one-minute load counts. */
static struct scaling_config scaling_of(const struct agent_config_a_default_config *decoded)
{
	return (struct scaling_config){
		.has_load_average_fraction_target = true,
		.load_average_fraction_target = decoded->load_average_fraction_target,
		.has_memory_usage_fraction_target = true,
		.memory_usage_fraction_target = decoded->memory_usage_fraction_target,
		.has_memory_total_fraction_target = true,
		.memory_total_fraction_target = 0.9,
		.has_enable_lfc_metrics = true,
		.has_lfc_use_largest_window = true,
		.has_lfc_to_memory_ratio = true,
		.lfc_to_memory_ratio = 0.75,
		.has_lfc_min_wait_before_downscale_minutes = true,
		.lfc_min_wait_before_downscale_minutes = 5,
		.has_lfc_window_size_minutes = true,
		.lfc_window_size_minutes = 5,
		.has_cpu_stable_zone_ratio = true,
		.has_cpu_mixed_zone_ratio = true,
	};
}

static struct core_config core_of(const struct agent_config_a_config *decoded, enum plugin_protocol protocol)
{
	const struct agent_config_a_monitor *monitor = &decoded->monitor;
	const struct agent_config_a_scheduler *scheduler = &decoded->scheduler;

	return (struct core_config){
		.compute_unit = { .cpu_milli = decoded->scaling.compute_unit.cpu_milli,
		                  .mem_bytes = decoded->scaling.compute_unit.mem_bytes },
		.default_scaling_config = scaling_of(&decoded->scaling.default_config),
		.neonvm_retry_wait_ns = signed_nanoseconds(decoded->scaling.retry_failed_request_seconds),
		.plugin_request_tick_ns = signed_nanoseconds(scheduler->request_at_least_every_seconds),
		.plugin_retry_wait_ns = signed_nanoseconds(scheduler->retry_failed_request_seconds),
		.plugin_denied_retry_wait_ns = signed_nanoseconds(scheduler->retry_denied_upscale_seconds),
		.monitor_denied_downscale_cooldown_ns = signed_nanoseconds(monitor->retry_denied_downscale_seconds),
		.monitor_requested_upscale_valid_period_ns =
			signed_nanoseconds(monitor->requested_upscale_valid_seconds),
		.monitor_retry_wait_ns = signed_nanoseconds(monitor->retry_failed_request_seconds),
		.clamp_instead_of_fail = true,
		.compute_unit_from_plugin = !decoded->scaling.has_compute_unit,
		.whole_unit_parts = true,
		.no_metrics_keep = true,
		.downscale_at_once = true,
		.plugin_gate = true,
		.plugin_whole_slots = config_decoded_says_slots(protocol),
		.capital_texts = true,
		.monitor_downscale_follow_up_wait_ns =
			signed_nanoseconds(monitor->denied_downscale_follow_up_wait_seconds),
	};
}

static struct agent_monitor_config monitor_of(const struct agent_config_a_monitor *decoded)
{
	return (struct agent_monitor_config){
		.server_port = decoded->server_port,
		.response_timeout_ns = config_decoded_nanoseconds(decoded->response_timeout_seconds),
		.connection_timeout_ns = config_decoded_nanoseconds(decoded->connection_timeout_seconds),
		.connection_retry_min_wait_ns = config_decoded_nanoseconds(decoded->connection_retry_min_wait_seconds),
		.unhealthy_after_silence_ns =
			config_decoded_nanoseconds(decoded->unhealthy_after_silence_duration_seconds),
		.unhealthy_startup_grace_ns =
			config_decoded_nanoseconds(decoded->unhealthy_startup_grace_period_seconds),
		.max_health_check_failures_ns =
			config_decoded_nanoseconds(decoded->max_health_check_sequential_failures_seconds),
		.max_failed_requests = NO_RATE,
	};
}

/* Half of the shorter of the two periods after which a silent monitor makes a runner stuck, whole seconds (4.6). */
static uint64_t longest_refresh_ns(const struct agent_config_a_monitor *decoded)
{
	uint64_t grace = decoded->unhealthy_startup_grace_period_seconds;
	uint64_t silence = decoded->unhealthy_after_silence_duration_seconds;
	uint64_t half = (grace < silence ? grace : silence) / 2;

	return config_decoded_nanoseconds(half > 0 ? half : 1);
}

static struct agent_scrape_config scrape_of(const struct agent_config_a_metrics *decoded)
{
	uint64_t between = decoded->seconds_between_requests;

	return (struct agent_scrape_config){
		.port = decoded->port,
		.request_timeout_ns = config_decoded_nanoseconds(decoded->request_timeout_seconds),
		.seconds_between_requests = between < AGENT_CONFIG_SECONDS_MAX ? between : AGENT_CONFIG_SECONDS_MAX,
		.first_at_once = true,
	};
}

static struct agent_billing_config billing_of(bool present, const struct agent_config_a_billing *decoded)
{
	if (!present)
		return (struct agent_billing_config){ .present = false };
	return (struct agent_billing_config){
		.present = true,
		.cpu_metric_name = decoded->cpu_metric_name,
		.active_time_metric_name = decoded->active_time_metric_name,
		.collect_every_ns = config_decoded_nanoseconds(decoded->collect_every_seconds),
		.accumulate_every_ns = config_decoded_nanoseconds(decoded->accumulate_every_seconds),
		.http = { .present = true,
		          .push = { .every_ns = config_decoded_nanoseconds(decoded->push_every_seconds),
		                    .request_timeout_ns =
		                            config_decoded_nanoseconds(decoded->push_request_timeout_seconds),
		                    .max_batch_size = decoded->max_batch_size },
		          .url = decoded->url },
	};
}

bool config_decoded_convert_a(const struct agent_config_a_config *decoded, struct arena *arena,
                              struct agent_config *ret_config, struct error *err)
{
	const struct agent_config_a_scheduler *scheduler = &decoded->scheduler;
	enum plugin_protocol protocol = config_decoded_protocol(scheduler->has_protocol_version,
	                                                        scheduler->protocol_version, PLUGIN_PROTOCOL_2_0);
	struct slice scheduler_name;
	struct slice prefix;

	if (!arena_copy(arena, scheduler->scheduler_name, &scheduler_name) ||
	    !arena_copy(arena, decoded->metrics.load_metric_prefix, &prefix))
		return error_set(err, ERROR_NO_MEMORY, "no memory for the configuration");
	*ret_config = (struct agent_config){
		.generation = AGENT_GENERATION_A,
		.refresh_state_interval_ns = longest_refresh_ns(&decoded->monitor),
		.refresh_adaptively = true,
		.core = core_of(decoded, protocol),
		.monitor = monitor_of(&decoded->monitor),
		.scheduler = { .scheduler_name = scheduler_name.data,
		               .request_port = scheduler->request_port,
		               .protocol = protocol,
		               .compute_unit_configured = decoded->scaling.has_compute_unit,
		               .sticky = true,
		               .max_failed_requests = NO_RATE },
		.neonvm = { .request_timeout_ns = config_decoded_nanoseconds(decoded->scaling.request_timeout_seconds),
		            .max_failed_requests = NO_RATE,
		            .no_revisions = true },
		.system_metrics = scrape_of(&decoded->metrics),
		.lenient_metrics = true,
		.metrics_prefix = prefix.data,
		.no_lfc_metrics = true,
		.dump = { .present = decoded->has_dump_state,
		          .port = decoded->dump_state.port,
		          .timeout_ns = config_decoded_nanoseconds(decoded->dump_state.timeout_seconds),
		          .generation = AGENT_GENERATION_A },
		.scaling_events_cu_multiplier = 0.25, /* scales a gauge alone: there are no events */
		.scaling_events_region_name = SLICE(""),
		.billing = billing_of(decoded->has_billing, &decoded->billing),
	};
	return true;
}
