/*
 * How many Volumes each node id has, and the most that any has (spec extender S2, I1), kept up to date by the cache of
 * Volumes: each event costs one lookup.
 */
#ifndef BALLAST_EXTENDER_VOLUME_COUNTS_H
#define BALLAST_EXTENDER_VOLUME_COUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/table.h"

struct volume_counts {
	struct table by_id; /* id → its count's struct */
	size_t *ids_with;   /* [n]: how many ids have n Volumes */
	size_t ids_with_size;
	size_t most;
};

void volume_counts_init(struct volume_counts *counts); /* allocates nothing yet */
void volume_counts_destroy(struct volume_counts *counts);
/* One more Volume with this spec.NodeId; the empty id counts like any. On failure (memory) nothing changed. */
bool volume_counts_add(struct volume_counts *counts, struct slice id, struct error *err);
/* One fewer. Removing what was never added does nothing. */
void volume_counts_remove(struct volume_counts *counts, struct slice id);
void volume_counts_clear(struct volume_counts *counts);
size_t volume_counts_of(const struct volume_counts *counts, struct slice id);
size_t volume_counts_most(const struct volume_counts *counts); /* 0 without Volumes */

#endif
