/*
 * The counters below are the only mutable state: they serve the tests alone and cost the product a comparison or two
 * per allocation.
 */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static unsigned long allocations; /* since the last memory_fail_at */
static unsigned long fail_at;     /* 0: never */
static unsigned long blocks;      /* allocated and not yet released */
static bool arenas_are_split;

static bool must_fail(void)
{
	allocations++;
	return fail_at != 0 && allocations == fail_at;
}

void *memory_allocate(size_t size)
{
	if (must_fail())
		return NULL;

	void *block = calloc(1, size > 0 ? size : 1);

	blocks += block != NULL ? 1 : 0;
	return block;
}

void *memory_resize(void *block, size_t size)
{
	if (must_fail())
		return NULL;

	bool is_new = block == NULL;
	void *resized = realloc(block, size > 0 ? size : 1);

	blocks += is_new && resized != NULL ? 1 : 0;
	return resized;
}

void memory_release(void *block)
{
	blocks -= block != NULL ? 1 : 0;
	free(block);
}

char *memory_copy_text(const char *text, size_t length)
{
	char *copy = length < SIZE_MAX ? memory_allocate(length + 1) : NULL;

	if (copy != NULL && length > 0)
		memcpy(copy, text, length);
	return copy;
}

void memory_fail_at(unsigned long count)
{
	allocations = 0;
	fail_at = count;
}

unsigned long memory_allocation_count(void)
{
	return allocations;
}

void memory_split_arenas(bool split)
{
	arenas_are_split = split;
}

bool memory_arenas_are_split(void)
{
	return arenas_are_split;
}

unsigned long memory_block_count(void)
{
	return blocks;
}
