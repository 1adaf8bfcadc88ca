#include "base/heap.h"

#include "base/memory.h"

enum { FIRST_CAPACITY = 16 };

void heap_init(struct heap *heap)
{
	*heap = (struct heap){ 0 };
}

void heap_destroy(struct heap *heap)
{
	memory_release(heap->nodes);
	*heap = (struct heap){ 0 };
}

static bool before(const struct heap_node *a, const struct heap_node *b)
{
	return a->key != b->key ? a->key < b->key : a->order < b->order;
}

/* Positions are 1-based, so that those below position p are 2p and 2p + 1. */
static void put(struct heap *heap, struct heap_node *node, size_t position)
{
	heap->nodes[position - 1] = node;
	node->position = position;
}

static void sift_up(struct heap *heap, struct heap_node *node, size_t position)
{
	while (position > 1) {
		struct heap_node *above = heap->nodes[position / 2 - 1];

		if (!before(node, above))
			break;
		put(heap, above, position);
		position /= 2;
	}
	put(heap, node, position);
}

static void sift_down(struct heap *heap, struct heap_node *node, size_t position)
{
	for (;;) {
		size_t below = 2 * position;

		if (below > heap->count)
			break;
		if (below < heap->count && before(heap->nodes[below], heap->nodes[below - 1]))
			below++;
		if (!before(heap->nodes[below - 1], node))
			break;
		put(heap, heap->nodes[below - 1], position);
		position = below;
	}
	put(heap, node, position);
}

bool heap_insert(struct heap *heap, struct heap_node *node, uint64_t key)
{
	if (heap->count == heap->capacity) {
		size_t capacity = heap->capacity > 0 ? 2 * heap->capacity : FIRST_CAPACITY;
		struct heap_node **nodes = memory_resize(heap->nodes, capacity * sizeof(struct heap_node *));

		if (nodes == NULL)
			return false;
		heap->nodes = nodes;
		heap->capacity = capacity;
	}
	node->key = key;
	node->order = heap->next_order++;
	heap->count++;
	sift_up(heap, node, heap->count);
	return true;
}

/* The last node takes the place that got free and moves from there, up or down. */
void heap_remove(struct heap *heap, struct heap_node *node)
{
	size_t position = node->position;

	if (position == 0)
		return;

	struct heap_node *last = heap->nodes[heap->count - 1];

	heap->count--;
	node->position = 0;
	if (last == node)
		return;
	if (before(last, node))
		sift_up(heap, last, position);
	else
		sift_down(heap, last, position);
}

struct heap_node *heap_first(const struct heap *heap)
{
	return heap->count > 0 ? heap->nodes[0] : NULL;
}
