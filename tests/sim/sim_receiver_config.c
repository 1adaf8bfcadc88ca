#include <stdio.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/file.h"
#include "gen/agent_config.gen.h"
#include "sim_receiver.h"

enum { CONFIG_BYTES_MAX = 64 * 1024 };

/* Of sim_receiver.c. */
#define URL "http://10.4.0.1:8080"

static void fill_clients(struct agent_config_config *config)
{
	const struct slice url = SLICE(URL);
	const struct agent_config_http_client http = { .push_every_seconds = SIM_PUSH_S,
		                                       .push_request_timeout_seconds = 5,
		                                       .max_batch_size = 5,
		                                       .url = SLICE(URL "/v1") };
	static const struct agent_config_s3_client S3 = { .push_every_seconds = SIM_PUSH_S,
		                                          .push_request_timeout_seconds = 20,
		                                          .max_batch_size = 100,
		                                          .region = SLICE_INIT("us-east-1") };
	static const struct agent_config_azure_blob_client AZURE = { .push_every_seconds = SIM_PUSH_S,
		                                                     .push_request_timeout_seconds = 20,
		                                                     .max_batch_size = 7 };

	config->billing.collect_every_seconds = SIM_COLLECT_S;
	config->billing.accumulate_every_seconds = SIM_ACCUMULATE_S;
	config->billing.clients.has_http = true;
	config->billing.clients.http = http;
	config->billing.clients.has_s3 = config->billing.clients.has_azure_blob = true;
	config->billing.clients.s3 = config->scaling_events.clients.s3 = S3;
	config->billing.clients.azure_blob = config->scaling_events.clients.azure_blob = AZURE;
	config->scaling_events.clients.has_s3 = config->scaling_events.clients.has_azure_blob = true;
	config->billing.clients.s3.endpoint = config->scaling_events.clients.s3.endpoint = url;
	config->billing.clients.azure_blob.endpoint = config->scaling_events.clients.azure_blob.endpoint = url;
	config->billing.clients.s3.bucket = SLICE(SIM_BILLING_BUCKET);
	config->billing.clients.s3.prefix_in_bucket = SLICE("b");
	config->scaling_events.clients.s3.bucket = SLICE(SIM_SCALING_BUCKET);
	config->scaling_events.clients.s3.prefix_in_bucket = SLICE("s");
	config->billing.clients.azure_blob.container = SLICE(SIM_BILLING_CONTAINER);
	config->billing.clients.azure_blob.prefix_in_container = SLICE("b");
	config->scaling_events.clients.azure_blob.container = SLICE(SIM_SCALING_CONTAINER);
	config->scaling_events.clients.azure_blob.prefix_in_container = SLICE("s");
}

static bool write_file(const char *path, struct slice content, struct error *err)
{
	FILE *file = fopen(path, "we");
	bool ok;

	if (file == NULL)
		return error_set(err, ERROR_SYSTEM, "%s can't be written", path);
	ok = fwrite(content.data, 1, content.length, file) == content.length;
	return (fclose(file) == 0 && ok) || error_set(err, ERROR_SYSTEM, "%s can't be written", path);
}

bool sim_receiver_write_config(const struct agent_setup *setup, const char *life, const char *path, struct error *err)
{
	char base_path[AGENT_SETUP_PATH_BYTES + 64];
	struct agent_config_config config;
	struct buffer base, text;
	struct arena arena;
	bool ok;

	(void)snprintf(base_path, sizeof base_path, "%s/config.json", setup->folder);
	buffer_init(&base, CONFIG_BYTES_MAX);
	buffer_init(&text, CONFIG_BYTES_MAX);
	arena_init(&arena, CONFIG_BYTES_MAX);
	ok = file_read(base_path, &base, err) &&
	     agent_config_config_from_json(buffer_slice(&base), &arena, &config, err);
	if (ok) {
		fill_clients(&config);
		config.scaling_events.region_name = slice_of(life);
		ok = agent_config_config_to_json(&config, &text, err) && write_file(path, buffer_slice(&text), err);
	}
	arena_destroy(&arena);
	buffer_destroy(&base);
	buffer_destroy(&text);
	return ok;
}
