/*
 * Blocks double in size up to BLOCK_MOST_BYTES; what is big gets a block of its own behind the newest one, whose free
 * room stays in use. A block isn't zeroed as a whole: each allocation zeroes its own bytes.
 */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"

enum { BLOCK_LEAST_BYTES = 1024, BLOCK_MOST_BYTES = 65536, OWN_BLOCK_BYTES = BLOCK_MOST_BYTES / 4 };

struct arena_block {
	struct arena_block *older;
	size_t size; /* of data */
	size_t used;
	_Alignas(max_align_t) unsigned char data[];
};

void arena_init(struct arena *arena, size_t limit_bytes)
{
	*arena = (struct arena){ .limit_bytes = limit_bytes };
}

void arena_init_secret(struct arena *arena, size_t limit_bytes)
{
	arena_init(arena, limit_bytes);
	arena->secret = true;
}

static struct arena_block *add_block(struct arena *arena, size_t needed)
{
	struct arena_block *newest = arena->newest;
	size_t room = arena->limit_bytes - arena->used_bytes;

	if (room < sizeof *newest || needed > room - sizeof *newest)
		return NULL;

	bool split = memory_arenas_are_split();
	bool own = !split && needed >= OWN_BLOCK_BYTES;
	size_t total = newest == NULL ? BLOCK_LEAST_BYTES : 2 * (sizeof *newest + newest->size);

	if (total > BLOCK_MOST_BYTES)
		total = BLOCK_MOST_BYTES;
	if (total > room)
		total = room;
	if (own || split || total < sizeof *newest + needed)
		total = sizeof *newest + needed;

	struct arena_block *block = memory_resize(NULL, total);

	if (block == NULL)
		return NULL;
	block->size = total - sizeof *block;
	block->used = 0;
	if (own && newest != NULL) {
		block->older = newest->older;
		newest->older = block;
	} else {
		block->older = newest;
		arena->newest = block;
	}
	arena->used_bytes += total;
	return block;
}

/* Where the next allocation would start in the block; may lie past its end. */
static size_t next_start(const struct arena_block *block, size_t alignment)
{
	return (block->used + alignment - 1) & ~(alignment - 1);
}

/* Bytes with whatever they hold. alignment is a power of two. */
static void *take(struct arena *arena, size_t size, size_t alignment)
{
	struct arena_block *block = arena->newest;
	size_t start = block != NULL ? next_start(block, alignment) : 0;

	if (block == NULL || start > block->size || size > block->size - start) {
		block = add_block(arena, size);
		start = 0;
	}
	if (block == NULL)
		return NULL;
	block->used = start + size;
	return block->data + start;
}

void *arena_allocate(struct arena *arena, size_t size)
{
	void *data = take(arena, size, _Alignof(max_align_t));

	if (data != NULL)
		memset(data, 0, size);
	return data;
}

void *arena_allocate_array(struct arena *arena, size_t count, size_t size)
{
	size_t product;

	return __builtin_mul_overflow(count, size, &product) ? NULL : arena_allocate(arena, product);
}

void *arena_allocate_raw(struct arena *arena, size_t count, size_t size)
{
	size_t product;

	return __builtin_mul_overflow(count, size, &product) ? NULL : take(arena, product, _Alignof(max_align_t));
}

bool arena_copy(struct arena *arena, struct slice text, struct slice *ret_copy)
{
	char *data = text.length < SIZE_MAX ? take(arena, text.length + 1, 1) : NULL;

	if (data == NULL)
		return false;
	if (text.length > 0)
		memcpy(data, text.data, text.length);
	data[text.length] = '\0';
	*ret_copy = slice_from(data, text.length);
	return true;
}

static void wipe(const struct arena *arena, struct arena_block *block)
{
	if (arena->secret)
		explicit_bzero(block->data, block->used);
}

static void release_from(const struct arena *arena, struct arena_block *block)
{
	while (block != NULL) {
		struct arena_block *older = block->older;

		wipe(arena, block);
		memory_release(block);
		block = older;
	}
}

/* The newest block is the largest ordinary one; an outsize one isn't kept. */
void arena_reset(struct arena *arena)
{
	struct arena_block *kept = arena->newest;

	if (kept == NULL)
		return;
	if (sizeof *kept + kept->size > BLOCK_MOST_BYTES || memory_arenas_are_split()) {
		arena_destroy(arena);
		return;
	}
	release_from(arena, kept->older);
	wipe(arena, kept);
	kept->older = NULL;
	kept->used = 0;
	arena->used_bytes = sizeof *kept + kept->size;
}

/* Keeps limit_bytes, so that the arena can be used again. */
void arena_destroy(struct arena *arena)
{
	release_from(arena, arena->newest);
	arena->newest = NULL;
	arena->used_bytes = 0;
}
