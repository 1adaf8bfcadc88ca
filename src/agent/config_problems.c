#include "agent/config_problems.h"

#include "agent/config_decoded.h"
#include "agent/core/scaling_config.h"
#include "agent/plugin_protocol.h"

const char CONFIG_PROBLEM_PROTOCOL_VERSION[] = "must be one of \"auto\", \"2.0\", \"2.1\", \"3.0\", \"4.0\", \"5.0\"";

/* An object of the file, by its path and by what the reference calls it. */
struct section {
	const char *path;
	const char *said;
};

static void add(struct config_problems *problems, const struct section *section, const char *key, const char *said_key,
                const char *text)
{
	if (problems->count == CONFIG_PROBLEMS_MAX)
		return; /* there are fewer checks than that */
	problems->items[problems->count++] = (struct config_problem){
		.section = section->path,
		.key = slice_of(key),
		.said_section = section->said,
		.said_key = said_key,
		.text = text,
	};
}

static void check_not_empty(struct config_problems *problems, const struct section *section, const char *key,
                            struct slice value)
{
	if (value.length == 0)
		add(problems, section, key, key, "cannot be empty");
}

static void check_not_zero(struct config_problems *problems, const struct section *section, const char *key,
                           uint64_t value)
{
	if (value == 0)
		add(problems, section, key, key, "cannot be zero");
}

static void check_fraction(struct config_problems *problems, const struct section *section, const char *key,
                           double value)
{
	if (value == 0)
		add(problems, section, key, key, "cannot be zero");
}

static void check_push(struct config_problems *problems, const struct section *section, uint64_t every_seconds,
                       uint64_t timeout_seconds, uint64_t max_batch_size)
{
	check_not_zero(problems, section, "pushEverySeconds", every_seconds);
	check_not_zero(problems, section, "pushRequestTimeoutSeconds", timeout_seconds);
	check_not_zero(problems, section, "maxBatchSize", max_batch_size);
}

static void check_azure(struct config_problems *problems, const struct section *section, const struct section *two_dots,
                        const struct agent_config_azure_blob_client *client)
{
	check_push(problems, section, client->push_every_seconds, client->push_request_timeout_seconds,
	           client->max_batch_size);
	check_not_empty(problems, two_dots, "endpoint", client->endpoint);
	check_not_empty(problems, section, "container", client->container);
}

static void check_s3(struct config_problems *problems, const struct section *no_dot, const struct section *two_dots,
                     const struct agent_config_s3_client *client)
{
	check_push(problems, no_dot, client->push_every_seconds, client->push_request_timeout_seconds,
	           client->max_batch_size);
	check_not_empty(problems, two_dots, "bucket", client->bucket);
	check_not_empty(problems, two_dots, "region", client->region);
}

static void check_billing(struct config_problems *problems, const struct agent_config_billing *billing)
{
	static const struct section section = { "billing", ".billing" };
	static const struct section azure = { "billing.clients.azureBlob", ".billing.clients.azureBlob" };
	static const struct section azure_two_dots = { "billing.clients.azureBlob", "..billing.clients.azureBlob" };
	static const struct section http = { "billing.clients.http", ".billing.clients.http" };
	static const struct section s3 = { "billing.clients.s3", "billing.clients.s3" };
	static const struct section s3_two_dots = { "billing.clients.s3", "..billing.clients.s3" };
	const struct agent_config_billing_clients *clients = &billing->clients;

	check_not_empty(problems, &section, "activeTimeMetricName", billing->active_time_metric_name);
	check_not_empty(problems, &section, "cpuMetricName", billing->cpu_metric_name);
	check_not_zero(problems, &section, "collectEverySeconds", billing->collect_every_seconds);
	check_not_zero(problems, &section, "accumulateEverySeconds", billing->accumulate_every_seconds);
	if (clients->has_azure_blob)
		check_azure(problems, &azure, &azure_two_dots, &clients->azure_blob);
	if (clients->has_http) {
		check_push(problems, &http, clients->http.push_every_seconds,
		           clients->http.push_request_timeout_seconds, clients->http.max_batch_size);
		check_not_empty(problems, &http, "url", clients->http.url);
	}
	if (clients->has_s3)
		check_s3(problems, &s3, &s3_two_dots, &clients->s3);
}

static void check_scaling_events(struct config_problems *problems, const struct agent_config_scaling_events *events)
{
	static const struct section section = { "scalingEvents", ".scalingEvents" };
	static const struct section azure = { "scalingEvents.clients.azureBlob", ".scalingEvents.clients.azureBlob" };
	static const struct section azure_two_dots = { "scalingEvents.clients.azureBlob",
		                                       "..scalingEvents.clients.azureBlob" };
	static const struct section s3 = { "scalingEvents.clients.s3", "scalingEvents.clients.s3" };
	static const struct section s3_two_dots = { "scalingEvents.clients.s3", "..scalingEvents.clients.s3" };
	static const struct section s3_one_dot = { "scalingEvents.clients.s3", ".scalingEvents.clients.s3" };
	const struct agent_config_scaling_events_clients *clients = &events->clients;

	check_fraction(problems, &section, "cuMultiplier", events->cu_multiplier);
	check_fraction(problems, &section, "rereportThreshold", events->rereport_threshold);
	check_not_empty(problems, &section, "regionName", events->region_name);
	if (clients->has_azure_blob) {
		check_azure(problems, &azure, &azure_two_dots, &clients->azure_blob);
		check_not_empty(problems, &azure, "prefixInContainer", clients->azure_blob.prefix_in_container);
	}
	if (clients->has_s3) {
		check_s3(problems, &s3, &s3_two_dots, &clients->s3);
		check_not_empty(problems, &s3_one_dot, "prefixInBucket", clients->s3.prefix_in_bucket);
	}
}

static void check_dump_state(struct config_problems *problems, const struct agent_config_config *config)
{
	static const struct section section = { "dumpState", ".dumpState" };

	if (!config->has_dump_state)
		return;
	check_not_zero(problems, &section, "port", config->dump_state.port);
	check_not_zero(problems, &section, "timeoutSeconds", config->dump_state.timeout_seconds);
}

static void check_metrics_source(struct config_problems *problems, const struct section *section,
                                 const struct agent_config_metrics_source *source)
{
	check_not_zero(problems, section, "port", source->port);
	check_not_zero(problems, section, "requestTimeoutSeconds", source->request_timeout_seconds);
	check_not_zero(problems, section, "secondsBetweenRequests", source->seconds_between_requests);
}

static void check_metrics(struct config_problems *problems, const struct agent_config_metrics *metrics)
{
	static const struct section system = { "metrics.system", ".metrics.system" };
	static const struct section lfc = { "metrics.lfc", ".metrics.lfc" };

	check_metrics_source(problems, &system, &metrics->system);
	check_metrics_source(problems, &lfc, &metrics->lfc);
}

static void check_compute_unit(struct config_problems *problems, const struct agent_config_compute_unit *unit)
{
	static const struct section section = { "scaling.computeUnit", ".scaling.computeUnit" };

	check_not_zero(problems, &section, "vCPUs", unit->cpu_milli);
	check_not_zero(problems, &section, "mem", unit->mem_bytes);
}

static void check_neonvm(struct config_problems *problems, const struct agent_config_neon_vm *neonvm)
{
	/* The keys of this section were once in the one that the texts still name. */
	static const struct section said_scaling = { "neonvm", ".scaling" };
	static const struct section rate = { "neonvm.maxFailedRequestRate", ".neonvm.maxFailedRequestRate" };

	check_not_zero(problems, &said_scaling, "requestTimeoutSeconds", neonvm->request_timeout_seconds);
	check_not_zero(problems, &said_scaling, "retryFailedRequestSeconds", neonvm->retry_failed_request_seconds);
	check_not_zero(problems, &rate, "intervalSeconds", neonvm->max_failed_request_rate.interval_seconds);
}

static void check_monitor(struct config_problems *problems, const struct agent_config_monitor *monitor)
{
	static const struct section section = { "monitor", ".monitor" };
	static const struct section rate = { "monitor.maxFailedRequestRate", ".monitor.maxFailedRequestRate" };

	check_not_zero(problems, &section, "responseTimeoutSeconds", monitor->response_timeout_seconds);
	check_not_zero(problems, &section, "connectionTimeoutSeconds", monitor->connection_timeout_seconds);
	check_not_zero(problems, &section, "connectionRetryMinWaitSeconds", monitor->connection_retry_min_wait_seconds);
	check_not_zero(problems, &section, "serverPort", monitor->server_port);
	check_not_zero(problems, &section, "unhealthyAfterSilenceDurationSeconds",
	               monitor->unhealthy_after_silence_duration_seconds);
	check_not_zero(problems, &section, "unhealthyStartupGracePeriodSeconds",
	               monitor->unhealthy_startup_grace_period_seconds);
	check_not_zero(problems, &section, "maxHealthCheckSequentialFailuresSeconds",
	               monitor->max_health_check_sequential_failures_seconds);
	check_not_zero(problems, &section, "retryFailedRequestSeconds", monitor->retry_failed_request_seconds);
	check_not_zero(problems, &section, "retryDeniedDownscaleSeconds", monitor->retry_denied_downscale_seconds);
	check_not_zero(problems, &section, "requestedUpscaleValidSeconds", monitor->requested_upscale_valid_seconds);
	check_not_zero(problems, &rate, "intervalSeconds", monitor->max_failed_request_rate.interval_seconds);
}

/* ".cpuMixedZoneRatio is a required field": the key is the text's first word, without its dot. */
static struct slice key_of_text(const char *text)
{
	struct slice rest = slice_of(text + 1);

	return slice_take_until(&rest, ' ');
}

void config_problems_add_default_config(const struct scaling_config *config, bool require_all,
                                        struct config_problems *problems)
{
	struct scaling_config_problems found = scaling_config_find_problems(config, require_all);

	for (size_t i = found.count; i > 0 && problems->count < CONFIG_PROBLEMS_MAX; i--) {
		problems->items[problems->count++] = (struct config_problem){
			.section = "scaling.defaultConfig",
			.key = key_of_text(found.texts[i - 1]),
			.text = found.texts[i - 1],
		};
	}
}

static void check_default_config(struct config_problems *problems, const struct scaling_scaling_config *defaults)
{
	struct scaling_config config = config_decoded_scaling(defaults);

	config_problems_add_default_config(&config, true, problems);
}

static void check_scheduler(struct config_problems *problems, const struct agent_config_scheduler *scheduler)
{
	static const struct section section = { "scheduler", ".scheduler" };
	static const struct section said_monitor = { "scheduler.maxFailedRequestRate",
		                                     ".monitor.maxFailedRequestRate" };

	check_not_zero(problems, &section, "requestPort", scheduler->request_port);
	check_not_zero(problems, &section, "requestTimeoutSeconds", scheduler->request_timeout_seconds);
	check_not_zero(problems, &section, "requestAtLeastEverySeconds", scheduler->request_at_least_every_seconds);
	check_not_zero(problems, &section, "retryFailedRequestSeconds", scheduler->retry_failed_request_seconds);
	check_not_zero(problems, &section, "retryDeniedUpscaleSeconds", scheduler->retry_denied_upscale_seconds);
	check_not_empty(problems, &section, "schedulerName", scheduler->scheduler_name);
	check_not_zero(problems, &said_monitor, "intervalSeconds", scheduler->max_failed_request_rate.interval_seconds);
}

/* What the reference doesn't check (README, decision 4), and the key that it doesn't have (generations 2.7). */
static void check_ours(struct config_problems *problems, const struct agent_config_config *config)
{
	static const struct section top = { "", "" };
	static const struct section scheduler = { "scheduler", ".scheduler" };
	enum plugin_protocol ignored;

	check_not_zero(problems, &top, "refereshStateIntervalSeconds", config->referesh_state_interval_seconds);
	if (config->scheduler.has_protocol_version &&
	    !plugin_protocol_read(config->scheduler.protocol_version, &ignored))
		add(problems, &scheduler, "protocolVersion", "protocolVersion", CONFIG_PROBLEM_PROTOCOL_VERSION);
}

void config_problems_find(const struct agent_config_config *config, struct config_problems *ret_problems)
{
	ret_problems->count = 0;
	check_billing(ret_problems, &config->billing);
	check_scaling_events(ret_problems, &config->scaling_events);
	check_dump_state(ret_problems, config);
	check_metrics(ret_problems, &config->metrics);
	check_compute_unit(ret_problems, &config->scaling.compute_unit);
	check_neonvm(ret_problems, &config->neonvm);
	check_monitor(ret_problems, &config->monitor);
	check_default_config(ret_problems, &config->scaling.default_config);
	check_scheduler(ret_problems, &config->scheduler);
	check_ours(ret_problems, config);
}

/* ---- in words ---- */

void config_problem_append_text(const struct config_problem *problem, struct buffer *out)
{
	if (problem->said_section == NULL)
		buffer_append_text(out, problem->text);
	else
		buffer_append_format(out, "field \"%s.%s\" %s", problem->said_section, problem->said_key,
		                     problem->text);
}

void config_problem_append_path(const struct config_problem *problem, struct buffer *out)
{
	buffer_append_text(out, problem->section);
	if (problem->section[0] != '\0')
		buffer_append_char(out, '.');
	buffer_append_slice(out, problem->key);
}

void config_problem_append_what(const struct config_problem *problem, struct buffer *out)
{
	struct slice text = slice_of(problem->text);

	if (problem->said_section == NULL)
		(void)slice_take_until(&text, ' ');
	buffer_append_slice(out, slice_trim(text));
}
