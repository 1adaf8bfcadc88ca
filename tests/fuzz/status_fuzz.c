/*
 * Any bytes as a state dump: what is read can be printed, as a table without control characters and as JSON; what isn't has
 * an explanation.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "cli/status_read.h"
#include "cli/status_table.h"

enum { ARENA_BYTES = 16 << 20, OUTPUT_BYTES = 64 << 20 };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void print(const struct status *status)
{
	struct buffer out;
	struct error err;

	buffer_init(&out, OUTPUT_BYTES);
	status_table_append(status, INT64_MAX, &out);
	require(!out.failed && out.length > 0);
	for (size_t i = 0; i < out.length; i++)
		require(out.data[i] == '\n' || (unsigned char)out.data[i] >= ' ');
	for (size_t i = 0; i < status->vm_count; i++) {
		buffer_clear(&out);
		require(status_line_vm_to_json(&status->vms[i], &out, &err));
	}
	buffer_destroy(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct status status;
	struct error err = { .code = ERROR_NONE };

	arena_init(&arena, ARENA_BYTES);
	if (status_read(slice_from(data, size), &arena, &status, &err))
		print(&status);
	else
		require(err.text[0] != '\0');
	arena_destroy(&arena);
	return 0;
}
