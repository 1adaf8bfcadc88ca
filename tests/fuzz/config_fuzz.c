/*
 * Any bytes as a configuration file, checked as `check-config` does: a verdict, and if it is bad, problems that point
 * into the text.
 */
#include <stdint.h>
#include <stdlib.h>

#include "agent/config.h"

enum { MAX_BYTES = 64 * 1024, ARENA_BYTES = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent_config_report report;
	struct arena arena;
	struct error err;
	size_t lines = 1;

	if (size > MAX_BYTES)
		return 0;
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	arena_init(&arena, ARENA_BYTES);
	if (agent_config_check_text(slice_from(data, size), &arena, &report, &err))
		for (size_t i = 0; i < report.count; i++)
			require(report.findings[i].line <= lines && report.findings[i].text.length > 0);
	else
		require(err.code == ERROR_LIMIT);
	arena_destroy(&arena);
	return 0;
}
