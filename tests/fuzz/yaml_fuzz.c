/*
 * Any text as YAML: what is read becomes JSON that our reader accepts, within the limits. And any text as a kubeconfig, which
 * is taken, or refused with a sentence that names the file first.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "codec/json_reader.h"
#include "codec/yaml.h"
#include "gen/kubeconfig.gen.h"
#include "kube/kubeconfig.h"

enum { MAX_BYTES = 65536, OUT_BYTES = 1024 * 1024, ARENA_BYTES = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load(const uint8_t *data, size_t size)
{
	struct kubeconfig config;
	struct error err = { 0 };
	char path[64];
	int file = memfd_create("kubeconfig", MFD_CLOEXEC);

	if (file < 0 || write(file, data, size) != (ssize_t)size)
		abort();
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	if (!kubeconfig_load(path, &config, &err)) {
		const char *context = strstr(err.text, "context \"");

		if (strncmp(err.text, path, strlen(path)) != 0 && context != err.text)
			abort();
	} else {
		if (config.host[0] == '\0' || config.port == 0)
			abort();
		kubeconfig_destroy(&config);
	}
	(void)close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kubeconfig_config config;
	struct buffer json;
	struct arena arena;
	struct error err;

	if (size > MAX_BYTES)
		return 0;
	load(data, size);
	buffer_init(&json, OUT_BYTES);
	arena_init(&arena, ARENA_BYTES);
	if (yaml_to_json(slice_from(data, size), &json, &err)) {
		/* A kubeconfig it needn't be, JSON it must. */
		if (!kubeconfig_config_from_json(buffer_slice(&json), &arena, &config, &err)) {
			struct json_reader reader;
			struct slice value;

			arena_reset(&arena);
			if (!json_reader_open(&reader, buffer_slice(&json), &arena, &err) ||
			    !json_reader_raw(&reader, &value, &err) || !json_reader_finish(&reader, &err))
				abort();
		}
	} else if (err.code == ERROR_NONE) {
		abort();
	}
	arena_destroy(&arena);
	buffer_destroy(&json);
	return 0;
}
