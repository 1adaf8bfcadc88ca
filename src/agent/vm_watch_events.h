/*
 * What changes of VirtualMachines mean to this node: gauges follow every one of its VMs, and events tell the main loop
 * of those that are ours (spec agent-runtime 5.3 … 5.5).
 *
 * Unlike the reference, a VM whose annotations can't be read at first is announced as added once they can, and one
 * whose annotations broke in the meantime still leaves with a deleted event, as it was last read (5.5 allows both).
 */
#ifndef BALLAST_AGENT_VM_WATCH_EVENTS_H
#define BALLAST_AGENT_VM_WATCH_EVENTS_H

#include <stdbool.h>

#include "agent/vm_event.h"
#include "agent/vm_metrics.h"
#include "agent/vm_watch_object.h"
#include "base/log.h"

struct vm_watch_events {
	bool delivering; /* false: VMs are kept in mind, and no event is made */
	struct vm_metrics *vm_metrics;
	bool (*deliver)(void *context, const struct vm_event *event); /* as vm_watch_handler.on_event */
	void *context;
	bool refused;         /* some VM's added event was: it waits to be announced again */
	struct logger logger; /* ".vm-watch" */
};

void vm_watch_events_add(struct vm_watch_events *events, struct watched_vm *vm);
/* May move what before knew to after. */
void vm_watch_events_update(struct vm_watch_events *events, struct watched_vm *before, struct watched_vm *after);
void vm_watch_events_delete(struct vm_watch_events *events, struct watched_vm *vm);
/* Announces a VM that came while nothing was delivered. */
void vm_watch_events_announce(struct vm_watch_events *events, struct watched_vm *vm);

#endif
