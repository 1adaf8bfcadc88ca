/*
 * Any text as a schema file: read and resolved, or an error that says where.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "protogen/parser.h"

enum { MAX_BYTES = 64 * 1024, ARENA_BYTES = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct schema schema = { .arena = &arena };
	struct schema_file *file;
	struct error err;
	char *text;

	if (size > MAX_BYTES)
		return 0;
	text = memory_copy_text((const char *)data, size);
	require(text != NULL);
	arena_init(&arena, ARENA_BYTES);
	file = parser_read(&schema, "a.proto", slice_from(text, size), &err);
	if (file == NULL || !schema_resolve(&schema, file, &err))
		require(strstr(err.text, "a.proto:") != NULL || err.code == ERROR_LIMIT);
	arena_destroy(&arena);
	memory_release(text);
	return 0;
}
