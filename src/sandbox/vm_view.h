/*
 * What of a VirtualMachine matters to the stand-in webhook and controller, read from its tree.
 */
#ifndef BALLAST_SANDBOX_VM_VIEW_H
#define BALLAST_SANDBOX_VM_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "codec/json_tree.h"

struct vm_revision {
	bool there;
	int64_t value;
	int64_t flags;
};

/* Texts are slices of the tree. What isn't there, or can't be read, is zero. */
struct vm_view {
	struct slice name_space, name;
	uint32_t cpu_min_milli, cpu_max_milli, cpu_use_milli;
	int64_t slots_min, slots_max, slots_use;
	uint64_t slot_bytes;
	struct slice scaling_mode, restart_policy;
	struct vm_revision target;
	bool deleting, has_finalizer;
	/* status */
	struct slice phase, pod_name, pod_ip, node;
	bool has_cpus, has_memory;
	uint32_t status_cpu_milli;
	uint64_t status_memory_bytes;
	struct vm_revision current;
	int64_t restart_count;
};

#define VM_FINALIZER "vm.neon.tech/finalizer"

struct vm_view vm_view_read(const struct json_node *root);
/* A CPU as a number or a quantity; false if it is neither. */
bool vm_view_milli_cpu(const struct json_node *node, uint32_t *ret_milli);
bool vm_view_bytes(const struct json_node *node, uint64_t *ret_bytes);

#endif
