/*
 * Who has how much of which node: the arithmetic of the scheduler plugin (spec surroundings 1.3, 1.4.2), without any
 * network.
 */
#ifndef BALLAST_SANDBOX_SCHEDULER_CAPACITY_H
#define BALLAST_SANDBOX_SCHEDULER_CAPACITY_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/resources.h"
#include "base/slice.h"

enum { SCHEDULER_NAME_BYTES = 256, SCHEDULER_NORMAL_OVERCOMMIT_MILLI = 1000 };

struct scheduler_node {
	char name[SCHEDULER_NAME_BYTES];
	struct resources total;
};

struct scheduler_pod {
	char name_space[SCHEDULER_NAME_BYTES];
	char name[SCHEDULER_NAME_BYTES];
	char node[SCHEDULER_NAME_BYTES]; /* "" while it isn't bound */
	bool is_vm;
	struct resources reserved;
	struct resources requested;
	struct resources unit; /* of the last request; zero before it */
	uint32_t overcommit_cpu_milli;
	uint32_t overcommit_memory_milli;
	struct resources maximum; /* that it may ever have; zero: not known */
	uint64_t slot_bytes;      /* of a VM's memory */
};

struct scheduler_capacity {
	struct scheduler_node *nodes;
	size_t node_count;
	struct scheduler_pod **pods;
	size_t pod_count;
};

/* Zero-initialised is empty. Adding copies; false when memory is short. */
bool scheduler_capacity_add_node(struct scheduler_capacity *capacity, const struct scheduler_node *node);
bool scheduler_capacity_add_pod(struct scheduler_capacity *capacity, const struct scheduler_pod *pod);
void scheduler_capacity_remove_pod(struct scheduler_capacity *capacity, struct slice name_space, struct slice name);
void scheduler_capacity_destroy(struct scheduler_capacity *capacity);

/* NULL if there is none. Valid until the pod is removed. */
struct scheduler_pod *scheduler_capacity_find(const struct scheduler_capacity *capacity, struct slice name_space,
                                              struct slice name);

/* What pods don't hold of the pod's node; never negative. Nothing, if the node isn't known. */
struct resources scheduler_capacity_free(const struct scheduler_capacity *capacity, const struct scheduler_pod *pod);

/*
 * Brings a pod's reserved amount towards what it requested: a decrease always and at once; of an increase, whole units
 * as far as the node has room. CPU and memory are independent.
 */
void scheduler_capacity_grant(const struct scheduler_capacity *capacity, struct scheduler_pod *pod);

#endif
