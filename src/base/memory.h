/*
 * Every heap allocation of the product goes through here, so that tests can make the n-th one fail. Of large blocks some
 * are kept for the next that asks: those belong to the main thread, and another one may have small blocks alone.
 */
#ifndef BALLAST_BASE_MEMORY_H
#define BALLAST_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum { MEMORY_LARGE_BLOCK_BYTES = 32 * 1024 }; /* by what the C library gives, which can be more than was asked */

/* Zeroed memory, or NULL when there is none. size 0 gives a unique pointer. */
void *memory_allocate(size_t size);

/* As realloc; what is added is not zeroed. On NULL the old block is untouched. */
void *memory_resize(void *block, size_t size);

/* As free; NULL is fine. To release a block twice ends the process. */
void memory_release(void *block);

/* A NUL-terminated copy of length bytes, or NULL. */
char *memory_copy_text(const char *text, size_t length);

/* Test hook: the count-th allocation from now on fails once (1 = the next). 0 switches it off. */
void memory_fail_at(unsigned long count);

/* Test hook: allocations made since the last memory_fail_at. */
unsigned long memory_allocation_count(void);

/*
 * Test hook: from now on an arena (arena.h) makes a block for each allocation, so that each of them can fail, and each has
 * bounds that a sanitizer knows.
 */
void memory_split_arenas(bool split);
bool memory_arenas_are_split(void);

/* Test hook: blocks that were allocated and not released yet. */
unsigned long memory_block_count(void);

#endif
