/*
 * A set of byte strings of known size, for one call: it lies in the call's arena and copies no key.
 */
#ifndef BALLAST_EXTENDER_SLICE_SET_H
#define BALLAST_EXTENDER_SLICE_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/slice.h"

struct slice_set {
	const struct slice **slots; /* NULL: empty */
	size_t mask;                /* number of slots - 1 */
};

/* Room for count slices. False: no memory. */
bool slice_set_make(struct slice_set *set, struct arena *arena, size_t count);
/* *text must stay. False if it was there already. Adding more than there is room for isn't allowed. */
bool slice_set_add(struct slice_set *set, const struct slice *text);
bool slice_set_has(const struct slice_set *set, struct slice text);

#endif
