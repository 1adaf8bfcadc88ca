/*
 * An arena holds what one message needs; everything in it goes at once.
 */
#ifndef BALLAST_BASE_ARENA_H
#define BALLAST_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct arena_block;

struct arena {
	struct arena_block *newest;
	size_t used_bytes; /* in all blocks */
	size_t limit_bytes;
	bool secret; /* see arena_init_secret */
};

/* Allocates nothing yet; at most limit_bytes will ever be held. */
void arena_init(struct arena *arena, size_t limit_bytes);
/* For what has keys or tokens in it: overwritten when it goes. */
void arena_init_secret(struct arena *arena, size_t limit_bytes);
/* Zeroed memory aligned for any type, or NULL past the limit or when memory is short. */
void *arena_allocate(struct arena *arena, size_t size);
/* Zeroed array, or NULL, also when the product overflows. */
void *arena_allocate_array(struct arena *arena, size_t count, size_t size);
/* The same with whatever the memory held, for what is written as a whole at once. */
void *arena_allocate_raw(struct arena *arena, size_t count, size_t size);
/* A copy; *ret_copy is also NUL-terminated. */
bool arena_copy(struct arena *arena, struct slice text, struct slice *ret_copy);
/* Forgets everything but keeps one block for the next message. */
void arena_reset(struct arena *arena);
void arena_destroy(struct arena *arena); /* also fine on a zeroed or destroyed one */

#endif
