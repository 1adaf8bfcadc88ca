/*
 * How csi-baremetal's controller answers a reservation: which nodes have capacity for all of a pod's volumes, and which capacities
 * it sets aside on each (spec extender 13, R2 … R6). Pure: from lists to a plan.
 */
#ifndef BALLAST_SANDBOX_RESERVATION_PLANNER_H
#define BALLAST_SANDBOX_RESERVATION_PLANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "sandbox/storage_type.h"

enum { RESERVATION_EXTENT_BYTES = 4 * 1024 * 1024 }; /* what logical volumes are made of */

/* An AvailableCapacity. */
struct planner_capacity {
	struct slice name, node, group; /* node: an ID */
	enum storage_type type;
	int64_t size_bytes;
	bool tainted;
};

/* One volume that is asked for; with what was set aside for it, once that is done. */
struct planner_request {
	struct slice name, group;
	enum storage_type type;
	int64_t size_bytes;
	struct slice *capacities; /* names */
	size_t capacity_count;
};

struct planner_input {
	const struct planner_capacity *capacities;
	size_t capacity_count;
	/* The requests of all reservations that are RESERVED, in the order of the reservations. */
	const struct planner_request *held;
	size_t held_count;
	/* What is to be planned. */
	const struct planner_request *requests;
	size_t request_count;
	const struct slice *nodes;
	size_t node_count;
};

struct planner_plan {
	size_t *nodes; /* those that fit, as indices of the input's nodes, in their order; none: rejected */
	size_t node_count;
	size_t *capacities; /* of request i on the j-th node of these: capacities[i * node_count + j] */
};

/*
 * In sequential mode a reservation with a logical volume waits as long as a RESERVED one has a request of the same type (R2).
 */
bool reservation_must_wait(const struct planner_input *input);
/* What the plan points to lies in the arena. Fails without memory only. */
bool reservation_plan(const struct planner_input *input, struct arena *arena, struct planner_plan *ret_plan,
                      struct error *err);

#endif
