/*
 * Mutable state is of two kinds. The counters serve the tests alone and cost the product a comparison or two per
 * allocation.
 *
 * The reserve keeps some of the large blocks that are released. The C library maps each of those anew and unmaps it when
 * it is freed, and touching a fresh page for the first time costs about as much as filling it ten times: bodies,
 * tokens and answers come and go with each request, so most of their time went there. The reserve belongs to the main
 * thread; the helper for name lookups releases one small block. With the address sanitizer, which is to see every use
 * of a block that was released, there is none.
 */
#include "base/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static unsigned long allocations; /* since the last memory_fail_at */
static unsigned long fail_at;     /* 0: never */
static unsigned long blocks;      /* allocated and not yet released */
static bool arenas_are_split;

#if defined(__SANITIZE_ADDRESS__)
#define RESERVE_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RESERVE_BLOCKS 0
#endif
#endif
#ifndef RESERVE_BLOCKS
#define RESERVE_BLOCKS 24
#endif

enum {
	RESERVE_BLOCK_LEAST_BYTES = MEMORY_LARGE_BLOCK_BYTES, /* smaller ones the C library doesn't map one by one */
	RESERVE_BLOCK_MOST_BYTES = 512 * 1024,
	RESERVE_BYTES = 1536 * 1024, /* in all; of a process that needs no large block any more, too */
};

struct reserved_block {
	void *block;
	size_t size;
};

static struct reserved_block reserve[RESERVE_BLOCKS + 1]; /* in the order they came */
static size_t reserve_count;
static size_t reserve_bytes;

static void *reserve_remove(size_t at)
{
	void *block = reserve[at].block;

	reserve_bytes -= reserve[at].size;
	reserve_count--;
	memmove(&reserve[at], &reserve[at + 1], (reserve_count - at) * sizeof reserve[0]);
	reserve[reserve_count] = (struct reserved_block){ NULL, 0 };
	return block;
}

/*
 * Whether the block stays in the reserve instead of being freed. The oldest ones make way: nobody wanted them. A block
 * that is here already would be handed out twice, so that ends the process, as it does in the C library.
 */
static bool reserve_put(void *block)
{
	size_t size = malloc_usable_size(block);

	if (size < RESERVE_BLOCK_LEAST_BYTES || size > RESERVE_BLOCK_MOST_BYTES || RESERVE_BLOCKS == 0)
		return false;
	for (size_t i = 0; i < reserve_count; i++) {
		if (reserve[i].block == block)
			abort();
	}
	while (reserve_count == RESERVE_BLOCKS || size > RESERVE_BYTES - reserve_bytes)
		free(reserve_remove(0));
	reserve[reserve_count++] = (struct reserved_block){ block, size };
	reserve_bytes += size;
	return true;
}

/* The smallest block of at least so many bytes, if it isn't far too large; else NULL. It holds whatever it held. */
static void *reserve_take(size_t size)
{
	size_t best = SIZE_MAX;

	if (size < RESERVE_BLOCK_LEAST_BYTES / 2)
		return NULL;
	for (size_t i = 0; i < reserve_count; i++) {
		if (reserve[i].size >= size && reserve[i].size / 2 <= size &&
		    (best == SIZE_MAX || reserve[i].size < reserve[best].size))
			best = i;
	}
	return best != SIZE_MAX ? reserve_remove(best) : NULL;
}

static bool must_fail(void)
{
	allocations++;
	return fail_at != 0 && allocations == fail_at;
}

void *memory_allocate(size_t size)
{
	if (must_fail())
		return NULL;

	void *block = reserve_take(size);

	if (block != NULL)
		memset(block, 0, size);
	else
		block = calloc(1, size > 0 ? size : 1);
	blocks += block != NULL ? 1 : 0;
	return block;
}

void *memory_resize(void *block, size_t size)
{
	if (must_fail())
		return NULL;

	bool is_new = block == NULL;
	void *resized = is_new ? reserve_take(size) : NULL;

	if (resized == NULL)
		resized = realloc(block, size > 0 ? size : 1);
	blocks += is_new && resized != NULL ? 1 : 0;
	return resized;
}

void memory_release(void *block)
{
	if (block == NULL)
		return;
	blocks--;
	if (!reserve_put(block))
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
