#include "sandbox/agent_config_2023.h"

#include <stdio.h>

#include "gen/agent_config_a.gen.h"
#include "sandbox/agent_setup.h"
#include "sandbox/event_receiver.h"

enum { URL_BYTES = 128 };

static uint64_t scaled(unsigned seconds, double speed)
{
	return agent_setup_scaled_s(seconds, speed);
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

static struct agent_config_a_billing billing_config(double speed, struct slice url)
{
	return (struct agent_config_a_billing){
		.url = url,
		.cpu_metric_name = SLICE(AGENT_SETUP_CPU_METRIC),
		.active_time_metric_name = SLICE(AGENT_SETUP_ACTIVE_METRIC),
		.collect_every_seconds = scaled(AGENT_SETUP_COLLECT_S, speed),
		.accumulate_every_seconds = scaled(AGENT_SETUP_ACCUMULATE_S, speed),
		.push_every_seconds = scaled(10, speed),
		.push_request_timeout_seconds = scaled(5, speed),
		.max_batch_size = 200,
	};
}

bool agent_config_2023_write(double speed, const struct sandbox_generation *generation, const char *receiver,
                             struct buffer *out, struct error *err)
{
	char billing_url[URL_BYTES];
	struct agent_config_a_config config = {
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

	if (receiver != NULL) {
		(void)snprintf(billing_url, sizeof billing_url, "http://%s:%d" EVENT_RECEIVER_BILLING_PATH, receiver,
		               AGENT_SETUP_RECEIVER_PORT);
		config.has_billing = true;
		config.billing = billing_config(speed, slice_of(billing_url));
	}
	return agent_config_a_config_to_json(&config, out, err);
}
