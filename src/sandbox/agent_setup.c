#include "sandbox/agent_setup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/agent_config.gen.h"
#include "sandbox/agent_config_2023.h"
#include "sandbox/event_receiver.h"
#include "sandbox/workload.h"

enum { CONFIG_BYTES_MAX = 16384, URL_BYTES = 128 };

static const char ACCOUNT_FOLDER[] = "serviceaccount";
static const char EXTENDER_FOLDER[] = "extender";

/* ---- the configuration ---- */

uint64_t agent_setup_scaled_s(unsigned seconds, double speed)
{
	double fewer = ceil(seconds / speed);

	return fewer < 1 ? 1 : (uint64_t)fewer;
}

static uint64_t scaled(unsigned seconds, double speed)
{
	return agent_setup_scaled_s(seconds, speed);
}

static void fill_scaling(struct agent_config_config *config)
{
	config->scaling.compute_unit = (struct agent_config_compute_unit){ .cpu_milli = WORKLOAD_UNIT_CPU_MILLI,
		                                                           .mem_bytes = WORKLOAD_UNIT_BYTES };
	config->scaling.default_config = (struct scaling_scaling_config){
		.has_load_average_fraction_target = true,
		.load_average_fraction_target = 0.9,
		.has_memory_usage_fraction_target = true,
		.memory_usage_fraction_target = 0.75,
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

static void fill_monitor(struct agent_config_monitor *monitor, double speed)
{
	*monitor = (struct agent_config_monitor){
		.response_timeout_seconds = scaled(5, speed),
		.connection_timeout_seconds = scaled(4, speed),
		.connection_retry_min_wait_seconds = scaled(5, speed),
		.server_port = AGENT_SETUP_MONITOR_PORT,
		.unhealthy_after_silence_duration_seconds = scaled(20, speed),
		.unhealthy_startup_grace_period_seconds = scaled(20, speed),
		.max_health_check_sequential_failures_seconds = scaled(30, speed),
		.retry_denied_downscale_seconds = scaled(5, speed),
		.requested_upscale_valid_seconds = scaled(10, speed),
		.retry_failed_request_seconds = scaled(3, speed),
		.max_failed_request_rate = { .interval_seconds = scaled(120, speed), .threshold = 2 },
	};
}

static void fill_peers(struct agent_config_config *config, double speed)
{
	config->metrics.system = (struct agent_config_metrics_source){
		.port = AGENT_SETUP_SYSTEM_PORT,
		.request_timeout_seconds = scaled(2, speed),
		.seconds_between_requests = (uint32_t)scaled(5, speed),
	};
	config->metrics.lfc = (struct agent_config_metrics_source){
		.port = AGENT_SETUP_LFC_PORT,
		.request_timeout_seconds = scaled(5, speed),
		.seconds_between_requests = (uint32_t)scaled(15, speed),
	};
	config->scheduler = (struct agent_config_scheduler){
		.scheduler_name = SLICE(AGENT_SETUP_SCHEDULER_NAME),
		.request_port = AGENT_SETUP_PLUGIN_PORT,
		.request_timeout_seconds = scaled(2, speed),
		.request_at_least_every_seconds = scaled(15, speed),
		.retry_failed_request_seconds = scaled(3, speed),
		.retry_denied_upscale_seconds = scaled(2, speed),
		.max_failed_request_rate = { .interval_seconds = scaled(120, speed), .threshold = 5 },
	};
	config->neonvm = (struct agent_config_neon_vm){
		.request_timeout_seconds = scaled(10, speed),
		.retry_failed_request_seconds = scaled(5, speed),
		.max_failed_request_rate = { .interval_seconds = scaled(120, speed), .threshold = 2 },
	};
}

static void fill_event_clients(struct agent_config_config *config, double speed, struct slice billing_url,
                               struct slice store_url)
{
	config->billing.clients.has_http = true;
	config->billing.clients.http = (struct agent_config_http_client){
		.push_every_seconds = scaled(10, speed),
		.push_request_timeout_seconds = scaled(5, speed),
		.max_batch_size = 200,
		.url = billing_url,
	};
	config->scaling_events.clients.has_s3 = true;
	config->scaling_events.clients.s3 = (struct agent_config_s3_client){
		.push_every_seconds = scaled(60, speed),
		.push_request_timeout_seconds = scaled(20, speed),
		.max_batch_size = 1000,
		.bucket = SLICE(EVENT_RECEIVER_BUCKET),
		.region = SLICE("us-east-1"),
		.endpoint = store_url,
		.prefix_in_bucket = SLICE(EVENT_RECEIVER_PREFIX),
	};
}

bool agent_setup_write_config(double speed, bool negotiates, const char *receiver, struct buffer *out,
                              struct error *err)
{
	char billing_url[URL_BYTES], store_url[URL_BYTES];
	struct agent_config_config config = {
		.referesh_state_interval_seconds = scaled(5, speed),
		.billing = { .cpu_metric_name = SLICE(AGENT_SETUP_CPU_METRIC),
		             .active_time_metric_name = SLICE(AGENT_SETUP_ACTIVE_METRIC),
		             .collect_every_seconds = scaled(AGENT_SETUP_COLLECT_S, speed),
		             .accumulate_every_seconds = scaled(AGENT_SETUP_ACCUMULATE_S, speed) },
		.scaling_events = { .cu_multiplier = 0.25,
		                    .rereport_threshold = 0.25,
		                    .region_name = SLICE("replaceme") },
		.has_dump_state = true,
		.dump_state = { .port = AGENT_SETUP_DUMP_PORT, .timeout_seconds = scaled(5, speed) },
	};

	fill_scaling(&config);
	fill_monitor(&config.monitor, speed);
	fill_peers(&config, speed);
	config.scheduler.has_protocol_version = negotiates;
	config.scheduler.protocol_version = SLICE("auto");
	if (receiver != NULL) {
		(void)snprintf(store_url, sizeof store_url, "http://%s:%d", receiver, AGENT_SETUP_RECEIVER_PORT);
		(void)snprintf(billing_url, sizeof billing_url, "http://%s:%d" EVENT_RECEIVER_BILLING_PATH, receiver,
		               AGENT_SETUP_RECEIVER_PORT);
		fill_event_clients(&config, speed, slice_of(billing_url), slice_of(store_url));
	}
	return agent_config_config_to_json(&config, out, err);
}

/* ---- the folder ---- */

static bool write_file(const struct agent_setup *setup, const char *name, struct slice content, struct error *err)
{
	char path[AGENT_SETUP_PATH_BYTES + 64];
	FILE *file;
	bool written;

	(void)snprintf(path, sizeof path, "%s/%s", setup->folder, name);
	file = fopen(path, "we");
	if (file == NULL)
		return error_set_errno(err, errno, path);
	written = fwrite(content.data, 1, content.length, file) == content.length;
	if (fclose(file) != 0 || !written)
		return error_set_errno(err, errno, path);
	return true;
}

static bool write_config(double speed, const struct sandbox_generation *generation, const char *receiver,
                         struct buffer *out, struct error *err)
{
	return generation->late_2023 ? agent_config_2023_write(speed, generation, receiver, out, err)
	                             : agent_setup_write_config(speed, generation->negotiates, receiver, out, err);
}

static bool fill_folder(const struct agent_setup *setup, double speed, const struct sandbox_generation *generation,
                        const char *receiver, const char *token, struct slice ca_pem, struct error *err)
{
	char path[AGENT_SETUP_PATH_BYTES + 64];
	struct buffer config;
	bool written;

	(void)snprintf(path, sizeof path, "%s/%s", setup->folder, ACCOUNT_FOLDER);
	if (mkdir(path, 0700) != 0)
		return error_set_errno(err, errno, path);
	buffer_init(&config, CONFIG_BYTES_MAX);
	written = write_file(setup, "serviceaccount/token", slice_of(token), err) &&
	          write_file(setup, "serviceaccount/ca.crt", ca_pem, err) &&
	          write_file(setup, "serviceaccount/namespace", SLICE("kube-system"), err) &&
	          write_config(speed, generation, receiver, &config, err) &&
	          write_file(setup, "config.json", buffer_slice(&config), err);
	buffer_destroy(&config);
	return written;
}

bool agent_setup_create(struct agent_setup *ret_setup, double speed, const struct sandbox_generation *generation,
                        const char *receiver, const char *token, struct slice ca_pem, struct error *err)
{
	const char *parent = getenv("TMPDIR");
	struct agent_setup setup;
	int length;

	if (parent == NULL || parent[0] == '\0')
		parent = "/tmp";
	length = snprintf(setup.folder, sizeof setup.folder, "%s/ballast-sandbox-XXXXXX", parent);
	if (length < 0 || (size_t)length >= sizeof setup.folder)
		return error_set(err, ERROR_LIMIT, "the path in TMPDIR is too long");
	if (mkdtemp(setup.folder) == NULL) {
		error_set_errno(err, errno, setup.folder);
		return getenv("TMPDIR") == parent ? error_wrap(err, "a folder in $TMPDIR") : false;
	}
	if (!fill_folder(&setup, speed, generation, receiver, token, ca_pem, err)) {
		agent_setup_remove(&setup);
		return false;
	}
	*ret_setup = setup;
	return true;
}

bool agent_setup_add_extender(const struct agent_setup *setup, const char *token, struct slice ca_pem,
                              char ret_path[AGENT_SETUP_LOG_PATH_BYTES], struct error *err)
{
	(void)snprintf(ret_path, AGENT_SETUP_LOG_PATH_BYTES, "%s/%s", setup->folder, EXTENDER_FOLDER);
	if (mkdir(ret_path, 0700) != 0)
		return error_set_errno(err, errno, ret_path);
	return write_file(setup, "extender/token", slice_of(token), err) &&
	       write_file(setup, "extender/ca.crt", ca_pem, err) &&
	       write_file(setup, "extender/namespace", SLICE("kube-system"), err);
}

const char *agent_setup_log_path(const struct agent_setup *setup, const char *node, const char *log_path,
                                 char room[AGENT_SETUP_LOG_PATH_BYTES])
{
	if (log_path != NULL)
		return log_path;
	(void)snprintf(room, AGENT_SETUP_LOG_PATH_BYTES, "%s/%s.log", setup->folder, node);
	return room;
}

int agent_setup_open_log(const struct agent_setup *setup, const char *node, const char *log_path, struct error *err)
{
	char room[AGENT_SETUP_LOG_PATH_BYTES];
	const char *path = agent_setup_log_path(setup, node, log_path, room);
	int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (descriptor < 0)
		error_set_errno(err, errno, path);
	return descriptor;
}

void agent_setup_fill_environment(const struct agent_setup *setup, const struct agent_place *place,
                                  struct agent_environment *ret_environment)
{
	const char *values[][2] = {
		{ "K8S_NODE_NAME", place->node },
		{ "K8S_POD_IP", place->address },
		{ "KUBERNETES_SERVICE_HOST", place->api_address },
		/* For the store of scaling events, which asks no more of them than that they are there. */
		{ "AWS_ACCESS_KEY_ID", "ballast" },
		{ "AWS_SECRET_ACCESS_KEY", "sandbox" },
	};
	enum { VALUE_COUNT = sizeof values / sizeof values[0], TEXT_BYTES = sizeof ret_environment->texts[0] };
	size_t count = 0;

	for (; count < VALUE_COUNT; count++)
		(void)snprintf(ret_environment->texts[count], TEXT_BYTES, "%s=%s", values[count][0], values[count][1]);
	(void)snprintf(ret_environment->texts[count++], TEXT_BYTES, "KUBERNETES_SERVICE_PORT=%d", AGENT_SETUP_API_PORT);
	(void)snprintf(ret_environment->texts[count++], TEXT_BYTES, "CONFIG_PATH=%s/config.json", setup->folder);
	(void)snprintf(ret_environment->texts[count++], TEXT_BYTES, "BALLAST_SERVICEACCOUNT_DIR=%s/%s", setup->folder,
	               ACCOUNT_FOLDER);
	for (size_t i = 0; i < count; i++)
		ret_environment->variables[i] = ret_environment->texts[i];
	ret_environment->variables[count] = NULL;
}

/* Two levels are all there is: files, and a folder of files. */
static void remove_files(const char *folder)
{
	DIR *entries = opendir(folder);
	const struct dirent *entry;

	if (entries == NULL)
		return;
	/* One thread only. */
	/* cppcheck-suppress readdirCalled */
	while ((entry = readdir(entries)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(dirfd(entries), entry->d_name, 0);
	}
	closedir(entries);
	rmdir(folder);
}

void agent_setup_remove(struct agent_setup *setup)
{
	char path[AGENT_SETUP_PATH_BYTES + 64];

	if (setup->folder[0] == '\0')
		return;
	(void)snprintf(path, sizeof path, "%s/%s", setup->folder, ACCOUNT_FOLDER);
	remove_files(path);
	(void)snprintf(path, sizeof path, "%s/%s", setup->folder, EXTENDER_FOLDER);
	remove_files(path);
	remove_files(setup->folder);
	setup->folder[0] = '\0';
}
