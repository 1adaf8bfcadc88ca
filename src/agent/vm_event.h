/*
 * What the VM watch tells the supervisor: a virtual machine of ours has come, has changed, or is ours no longer (spec
 * agent-runtime 5.3, 5.4).
 */
#ifndef BALLAST_AGENT_VM_EVENT_H
#define BALLAST_AGENT_VM_EVENT_H

#include "agent/core/vm_info.h"
#include "base/slice.h"

enum vm_event_kind { VM_EVENT_ADDED, VM_EVENT_UPDATED, VM_EVENT_DELETED };

/* Valid during the call that gets it; who needs more copies. */
struct vm_event {
	enum vm_event_kind kind;
	const struct vm_info *vm_info;
	struct slice pod_name;    /* status.podName; its namespace is the VM's */
	struct slice pod_ip;      /* status.podIP */
	struct slice endpoint_id; /* label neon/endpoint-id, or empty */
};

/* "added", "updated", "deleted". */
const char *vm_event_kind_name(enum vm_event_kind kind);

#endif
