/*
 * What the engine wants to know of the cluster; the caches of claims, classes and nodes implement it. Whatever a lookup
 * gives must stay as it is until the call into the engine returns: the engine copies what it keeps.
 */
#ifndef BALLAST_EXTENDER_STORAGE_VIEW_H
#define BALLAST_EXTENDER_STORAGE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "extender/node_id.h"

struct claim_view {
	bool has_class_name; /* spec.storageClassName is there and not null; it may be empty */
	struct slice class_name;
	struct slice phase;         /* status.phase */
	int64_t size_bytes;         /* storage_size_from_quantity of spec.resources.requests.storage */
	struct slice storage_group; /* the label STORAGE_GROUP_LABEL of capacity_requests.h, or empty */
};

struct class_view {
	struct slice provisioner;
	struct slice storage_type; /* parameters.storageType as it stands, or empty */
};

struct storage_view {
	void *context;
	/* False: not in the cache. namespace is taken as it is; an empty one has no claims. */
	bool (*find_claim)(void *context, struct slice namespace, struct slice name, struct claim_view *ret_claim);
	bool (*find_class)(void *context, struct slice name, struct class_view *ret_class);
	/*
	 * For requests by node name (spec I9): false if there is no such node; else its id, as node_id_of said when it
	 * came into the cache. NULL: there is no cache of nodes.
	 */
	bool (*find_node)(void *context, struct slice name, struct node_id *ret_id);
};

#endif
