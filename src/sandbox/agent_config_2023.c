#include "sandbox/agent_config_2023.h"

#include <math.h>

#include "gen/agent_config_a.gen.h"
#include "sandbox/agent_setup.h"

static uint64_t scaled(unsigned seconds, double speed)
{
	double fewer = ceil(seconds / speed);

	return fewer < 1 ? 1 : (uint64_t)fewer;
}

static struct agent_config_a_monitor monitor_config(double speed)
{
	return (struct agent_config_a_monitor){
		.server_port = AGENT_SETUP_MONITOR_PORT,
		.response_timeout_seconds = scaled(5, speed),
		.connection_timeout_seconds = scaled(4, speed),
		.connection_retry_min_wait_seconds = scaled(5, speed),
		.unhealthy_after_silence_duration_seconds = scaled(20, speed),
		.unhealthy_startup_grace_period_seconds = scaled(20, speed),
		.max_health_check_sequential_failures_seconds = scaled(30, speed),
		.retry_failed_request_seconds = scaled(3, speed),
		.retry_denied_downscale_seconds = scaled(5, speed),
		.denied_downscale_follow_up_wait_seconds = scaled(1, speed),
		.requested_upscale_valid_seconds = scaled(10, speed),
	};
}

static struct agent_config_a_scheduler scheduler_config(double speed, bool negotiates)
{
	return (struct agent_config_a_scheduler){
		.scheduler_name = SLICE(AGENT_SETUP_SCHEDULER_NAME),
		.request_port = AGENT_SETUP_PLUGIN_PORT,
		.request_timeout_seconds = scaled(2, speed),
		.request_at_least_every_seconds = scaled(5, speed),
		.retry_failed_request_seconds = scaled(3, speed),
		.retry_denied_upscale_seconds = scaled(2, speed),
		.has_protocol_version = negotiates,
		.protocol_version = SLICE("auto"),
	};
}

bool agent_config_2023_write(double speed, const struct sandbox_generation *generation, struct buffer *out,
                             struct error *err)
{
	const struct agent_config_a_config config = {
		.scaling = { .request_timeout_seconds = scaled(10, speed),
		             .retry_failed_request_seconds = scaled(5, speed),
		             .default_config = { .has_load_average_fraction_target = true,
		                                 .load_average_fraction_target = 0.9,
		                                 .has_memory_usage_fraction_target = true,
		                                 .memory_usage_fraction_target = 0.75 } },
		.monitor = monitor_config(speed),
		.metrics = { .port = AGENT_SETUP_SYSTEM_PORT,
		             .load_metric_prefix = slice_of(sandbox_generation_prefix(generation)),
		             .request_timeout_seconds = scaled(2, speed),
		             .seconds_between_requests = scaled(5, speed) },
		.scheduler = scheduler_config(speed, generation->negotiates),
		.has_dump_state = true,
		.dump_state = { .port = AGENT_SETUP_DUMP_PORT, .timeout_seconds = scaled(5, speed) },
	};

	return agent_config_a_config_to_json(&config, out, err);
}
