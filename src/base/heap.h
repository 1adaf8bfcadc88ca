/*
 * A binary min-heap of intrusive nodes ordered by a 64-bit key, first come first out among equals. Used for timers.
 */
#ifndef BALLAST_BASE_HEAP_H
#define BALLAST_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
	uint64_t key;
	uint64_t order;  /* set by heap_insert */
	size_t position; /* 1-based; 0 when not in a heap */
};

struct heap {
	struct heap_node **nodes;
	size_t count;
	size_t capacity;
	uint64_t next_order;
};

void heap_init(struct heap *heap);
void heap_destroy(struct heap *heap);
bool heap_insert(struct heap *heap, struct heap_node *node, uint64_t key); /* false when memory is short */
void heap_remove(struct heap *heap, struct heap_node *node);               /* no-op if it isn't in */
struct heap_node *heap_first(const struct heap *heap);                     /* NULL if empty */

#endif
