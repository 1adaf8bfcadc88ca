/*
 * What the agent keeps of a VirtualMachine: of those of other nodes a uid, of its own node's what gauges, billing and
 * events need.
 */
#ifndef BALLAST_AGENT_VM_WATCH_OBJECT_H
#define BALLAST_AGENT_VM_WATCH_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/vm_info_extract.h"
#include "agent/vm_metrics.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* What an event tells of a VM (agent-runtime 5.4), as of when it could last be read. */
struct vm_snapshot {
	struct vm_info info;
	enum vm_info_oddity oddity;
	struct slice pod_name, pod_ip, endpoint_id;
};

/* A VM whose status.node is this node. The slices point into the same block. */
struct node_vm {
	struct slice namespace, name, phase, pod_name;
	struct slice endpoint_id, project_id; /* labels, or empty */
	struct slice billing_endpoint_id;     /* annotation */
	bool has_billing_endpoint_id;
	bool autoscaling_enabled;
	bool has_status_cpu;
	uint32_t status_cpu_milli;
	struct vm_gauges gauges;
	bool ours; /* 5.2 */
	struct vm_snapshot
		*snapshot;     /* NULL: it can't be read (yet); stands for an older state if problem isn't NULL */
	struct error *problem; /* why it can't be read, else NULL */
	bool waiting;          /* to be announced by vm_watch_deliver, when its turn comes */
	bool announced;        /* the main loop was told that it is there, and not yet that it went */
};

struct watched_vm {
	struct slice uid;
	struct node_vm *here; /* NULL: on another node, or on none */
};

/* Which VMs are this node's, and which of those are ours. */
struct vm_watch_filter {
	struct slice node_name;
	struct slice scheduler_name;
	enum agent_generation generation; /* how VMs are read (generations 4.11) */
};

/*
 * Reads one object; NULL with *err if it isn't a VirtualMachine, has no uid, or memory is short. Annotations that can't
 * be used are no error here. The arena is for working in and is reset; *ret_name may lie in it, or in the text.
 */
struct watched_vm *watched_vm_decode(struct slice json, const struct vm_watch_filter *filter, struct arena *arena,
                                     struct slice *ret_name, struct error *err);
void watched_vm_release(struct watched_vm *vm); /* NULL is fine */

#endif
