#include "extender/prioritize.h"

enum { MAX_EXTENDER_PRIORITY = 10 }; /* of the scheduler's protocol */

/* The best gets 10; where all have 0 there is no best. */
static void normalize(struct priority_list *list)
{
	int64_t best = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].score > best)
			best = list->items[i].score;
	}
	for (size_t i = 0; best > 0 && i < list->count; i++)
		list->items[i].score = list->items[i].score * MAX_EXTENDER_PRIORITY / best;
}

bool prioritize(const struct extender_settings *settings, const struct request *request,
                const struct volume_counts *counts, struct arena *arena, struct priority_list *ret_list,
                struct error *err)
{
	struct priority_list list = { 0 };
	size_t most = volume_counts_most(counts);

	list.items = arena_allocate_array(arena, request->node_count, sizeof *list.items);
	if (list.items == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the scores of %zu nodes", request->node_count);
	for (size_t i = 0; i < request->node_count; i++) {
		const struct request_node *node = &request->nodes[i];

		if (node->id.outcome != NODE_ID_FOUND)
			continue;
		list.items[list.count++] = (struct extender_host_priority){
			.host = node->name,
			.score = (int64_t)(most - volume_counts_of(counts, node->id.id)),
		};
	}
	if (settings->normalize_scores)
		normalize(&list);
	*ret_list = list;
	return true;
}
