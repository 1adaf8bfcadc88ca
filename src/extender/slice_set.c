/* Open addressing over at least twice as many slots as slices. */
#include "extender/slice_set.h"

#include <stdint.h>

bool slice_set_make(struct slice_set *set, struct arena *arena, size_t count)
{
	size_t slots = 4;

	while (slots < 2 * count && slots < SIZE_MAX / 4)
		slots *= 2;
	set->mask = slots - 1;
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is what it is to be */
	set->slots = arena_allocate_array(arena, slots, sizeof *set->slots);
	return set->slots != NULL;
}

/* Where the slice is, or would be. */
static size_t find(const struct slice_set *set, struct slice text)
{
	size_t at = (size_t)slice_hash(text) & set->mask;

	while (set->slots[at] != NULL && !slice_equal(*set->slots[at], text))
		at = (at + 1) & set->mask;
	return at;
}

bool slice_set_add(struct slice_set *set, const struct slice *text)
{
	size_t at = find(set, *text);

	if (set->slots[at] != NULL)
		return false;
	set->slots[at] = text;
	return true;
}

bool slice_set_has(const struct slice_set *set, struct slice text)
{
	return set->slots[find(set, text)] != NULL;
}
