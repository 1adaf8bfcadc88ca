/*
 * Scores of nodes: the fewer Volumes a node has, the better (spec extender 7).
 */
#ifndef BALLAST_EXTENDER_PRIORITIZE_H
#define BALLAST_EXTENDER_PRIORITIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "extender/request.h"
#include "extender/volume_counts.h"
#include "gen/extender.gen.h"

/* The scores of those of a request's nodes that have an id, in request order. */
struct priority_list {
	struct extender_host_priority *items;
	size_t count;
};

/*
 * S2, S3. With settings->normalize_scores (I12) scores are scaled so that the best of the request's nodes has 10, and
 * fractions are dropped. The list lies in the arena and the request. ERROR_NO_MEMORY.
 */
bool prioritize(const struct extender_settings *settings, const struct request *request,
                const struct volume_counts *counts, struct arena *arena, struct priority_list *ret_list,
                struct error *err);

#endif
