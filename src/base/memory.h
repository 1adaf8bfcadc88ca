/*
 * Every heap allocation of the product goes through here, so that tests can make the n-th one fail.
 */
#ifndef BALLAST_BASE_MEMORY_H
#define BALLAST_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory, or NULL when there is none. size 0 gives a unique pointer. */
void *memory_allocate(size_t size);

/* As realloc; what is added is not zeroed. On NULL the old block is untouched. */
void *memory_resize(void *block, size_t size);

/* As free; NULL is fine. */
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
