#include "agent/config_decoded.h"

#include "base/clock.h"

enum { PLUGIN_TICK_JITTER_MS = 100 }; /* agent-core 8, X-7 */

struct scaling_config config_decoded_scaling(const struct scaling_scaling_config *decoded)
{
	return (struct scaling_config){
		.has_load_average_fraction_target = decoded->has_load_average_fraction_target,
		.load_average_fraction_target = decoded->load_average_fraction_target,
		.has_memory_usage_fraction_target = decoded->has_memory_usage_fraction_target,
		.memory_usage_fraction_target = decoded->memory_usage_fraction_target,
		.has_memory_total_fraction_target = decoded->has_memory_total_fraction_target,
		.memory_total_fraction_target = decoded->memory_total_fraction_target,
		.has_enable_lfc_metrics = decoded->has_enable_lfc_metrics,
		.enable_lfc_metrics = decoded->enable_lfc_metrics,
		.has_lfc_use_largest_window = decoded->has_lfc_use_largest_window,
		.lfc_use_largest_window = decoded->lfc_use_largest_window,
		.has_lfc_to_memory_ratio = decoded->has_lfc_to_memory_ratio,
		.lfc_to_memory_ratio = decoded->lfc_to_memory_ratio,
		.has_lfc_min_wait_before_downscale_minutes = decoded->has_lfc_min_wait_before_downscale_minutes,
		.lfc_min_wait_before_downscale_minutes = decoded->lfc_min_wait_before_downscale_minutes,
		.has_lfc_window_size_minutes = decoded->has_lfc_window_size_minutes,
		.lfc_window_size_minutes = decoded->lfc_window_size_minutes,
		.has_cpu_stable_zone_ratio = decoded->has_cpu_stable_zone_ratio,
		.cpu_stable_zone_ratio = decoded->cpu_stable_zone_ratio,
		.has_cpu_mixed_zone_ratio = decoded->has_cpu_mixed_zone_ratio,
		.cpu_mixed_zone_ratio = decoded->cpu_mixed_zone_ratio,
	};
}

uint64_t config_decoded_nanoseconds(uint64_t seconds)
{
	return (seconds < AGENT_CONFIG_SECONDS_MAX ? seconds : AGENT_CONFIG_SECONDS_MAX) * NS_PER_S;
}

/* Fits: a century is 3.2e18 ns. */
static int64_t signed_nanoseconds(uint64_t seconds)
{
	return (int64_t)config_decoded_nanoseconds(seconds);
}

enum plugin_protocol config_decoded_protocol(bool present, struct slice text, enum plugin_protocol otherwise)
{
	enum plugin_protocol protocol;

	return present && plugin_protocol_read(text, &protocol) ? protocol : otherwise;
}

bool config_decoded_says_slots(enum plugin_protocol protocol)
{
	return protocol < PLUGIN_PROTOCOL_4_0; /* AUTO is below all: it may come to those */
}

static enum plugin_protocol protocol_of(const struct agent_config_scheduler *decoded)
{
	return config_decoded_protocol(decoded->has_protocol_version, decoded->protocol_version, PLUGIN_PROTOCOL_5_0);
}

static struct agent_failure_rate rate_of(const struct agent_config_max_failed_request_rate *decoded)
{
	return (struct agent_failure_rate){
		.interval_ns = config_decoded_nanoseconds(decoded->interval_seconds),
		.threshold = decoded->threshold,
	};
}

static struct core_config core_of(const struct agent_config_config *decoded)
{
	struct core_config core = {
		.compute_unit = { .cpu_milli = decoded->scaling.compute_unit.cpu_milli,
		                  .mem_bytes = decoded->scaling.compute_unit.mem_bytes },
		.default_scaling_config = config_decoded_scaling(&decoded->scaling.default_config),
		.neonvm_retry_wait_ns = signed_nanoseconds(decoded->neonvm.retry_failed_request_seconds),
		.plugin_request_tick_ns = signed_nanoseconds(decoded->scheduler.request_at_least_every_seconds),
		.plugin_retry_wait_ns = signed_nanoseconds(decoded->scheduler.retry_failed_request_seconds),
		.plugin_denied_retry_wait_ns = signed_nanoseconds(decoded->scheduler.retry_denied_upscale_seconds),
		.monitor_denied_downscale_cooldown_ns =
			signed_nanoseconds(decoded->monitor.retry_denied_downscale_seconds),
		.monitor_requested_upscale_valid_period_ns =
			signed_nanoseconds(decoded->monitor.requested_upscale_valid_seconds),
		.monitor_retry_wait_ns = signed_nanoseconds(decoded->monitor.retry_failed_request_seconds),
		.clamp_instead_of_fail = true,
		.plugin_whole_slots = config_decoded_says_slots(protocol_of(&decoded->scheduler)),
	};

	/* Not required by validation, yet needed once LFC metrics are on (README, decision 4). */
	core.default_scaling_config.has_lfc_use_largest_window = true;
	return core;
}

static struct agent_monitor_config monitor_of(const struct agent_config_monitor *decoded)
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
		.max_failed_requests = rate_of(&decoded->max_failed_request_rate),
	};
}

static struct agent_scrape_config scrape_of(const struct agent_config_metrics_source *decoded)
{
	uint64_t between = decoded->seconds_between_requests;

	return (struct agent_scrape_config){
		.port = decoded->port,
		.request_timeout_ns = config_decoded_nanoseconds(decoded->request_timeout_seconds),
		.seconds_between_requests = between < AGENT_CONFIG_SECONDS_MAX ? between : AGENT_CONFIG_SECONDS_MAX,
	};
}

static bool scheduler_of(const struct agent_config_scheduler *decoded, struct arena *arena,
                         struct agent_scheduler_config *ret_scheduler, struct error *err)
{
	struct slice name;

	if (!arena_copy(arena, decoded->scheduler_name, &name))
		return error_set(err, ERROR_NO_MEMORY, "no memory for the configuration");
	*ret_scheduler = (struct agent_scheduler_config){
		.scheduler_name = name.data,
		.request_port = decoded->request_port,
		.protocol = protocol_of(decoded),
		.compute_unit_configured = true,
		.max_failed_requests = rate_of(&decoded->max_failed_request_rate),
	};
	return true;
}

static struct agent_push_config push_of(uint64_t every_seconds, uint64_t timeout_seconds, uint64_t max_batch_size)
{
	return (struct agent_push_config){
		.every_ns = config_decoded_nanoseconds(every_seconds),
		.request_timeout_ns = config_decoded_nanoseconds(timeout_seconds),
		.max_batch_size = max_batch_size,
	};
}

static struct agent_http_push_config http_of(bool present, const struct agent_config_http_client *decoded)
{
	return (struct agent_http_push_config){
		.present = present,
		.push = push_of(decoded->push_every_seconds, decoded->push_request_timeout_seconds,
		                decoded->max_batch_size),
		.url = decoded->url,
	};
}

static struct agent_azure_push_config azure_of(bool present, const struct agent_config_azure_blob_client *decoded)
{
	return (struct agent_azure_push_config){
		.present = present,
		.push = push_of(decoded->push_every_seconds, decoded->push_request_timeout_seconds,
		                decoded->max_batch_size),
		.container = decoded->container,
		.endpoint = decoded->endpoint,
		.prefix_in_container = decoded->prefix_in_container,
	};
}

static struct agent_s3_push_config s3_of(bool present, const struct agent_config_s3_client *decoded)
{
	return (struct agent_s3_push_config){
		.present = present,
		.push = push_of(decoded->push_every_seconds, decoded->push_request_timeout_seconds,
		                decoded->max_batch_size),
		.bucket = decoded->bucket,
		.region = decoded->region,
		.endpoint = decoded->endpoint,
		.prefix_in_bucket = decoded->prefix_in_bucket,
	};
}

static struct agent_billing_config billing_of(const struct agent_config_billing *decoded)
{
	const struct agent_config_billing_clients *clients = &decoded->clients;

	return (struct agent_billing_config){
		.present = true,
		.cpu_metric_name = decoded->cpu_metric_name,
		.active_time_metric_name = decoded->active_time_metric_name,
		.collect_every_ns = config_decoded_nanoseconds(decoded->collect_every_seconds),
		.accumulate_every_ns = config_decoded_nanoseconds(decoded->accumulate_every_seconds),
		.http = http_of(clients->has_http, &clients->http),
		.azure_blob = azure_of(clients->has_azure_blob, &clients->azure_blob),
		.s3 = s3_of(clients->has_s3, &clients->s3),
	};
}

bool config_decoded_convert(const struct agent_config_config *decoded, struct arena *arena,
                            struct agent_config *ret_config, struct error *err)
{
	const struct agent_config_scaling_events *events = &decoded->scaling_events;
	struct agent_scheduler_config scheduler;

	if (!scheduler_of(&decoded->scheduler, arena, &scheduler, err))
		return false;
	*ret_config = (struct agent_config){
		.generation = AGENT_GENERATION_B,
		.refresh_state_interval_ns = config_decoded_nanoseconds(decoded->referesh_state_interval_seconds),
		.core = core_of(decoded),
		.plugin_tick_jitter_ms = PLUGIN_TICK_JITTER_MS,
		.monitor = monitor_of(&decoded->monitor),
		.scheduler = scheduler,
		.neonvm = { .request_timeout_ns = config_decoded_nanoseconds(decoded->neonvm.request_timeout_seconds),
		            .max_failed_requests = rate_of(&decoded->neonvm.max_failed_request_rate) },
		.system_metrics = scrape_of(&decoded->metrics.system),
		.lfc_metrics = scrape_of(&decoded->metrics.lfc),
		.dump = { .present = decoded->has_dump_state,
		          .port = decoded->dump_state.port,
		          .timeout_ns = config_decoded_nanoseconds(decoded->dump_state.timeout_seconds) },
		.scaling_events_cu_multiplier = events->cu_multiplier,
		.scaling_events_region_name = events->region_name,
		.scaling_events_azure_blob = azure_of(events->clients.has_azure_blob, &events->clients.azure_blob),
		.scaling_events_s3 = s3_of(events->clients.has_s3, &events->clients.s3),
		.billing = billing_of(&decoded->billing),
	};
	return true;
}
