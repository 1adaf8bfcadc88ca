/*
 * Gauges of single VMs, the page of port 9101: every VM of this node, autoscaled or not (spec agent-runtime 15.4).
 */
#ifndef BALLAST_AGENT_VM_METRICS_H
#define BALLAST_AGENT_VM_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/scaling_events.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

struct vm_metrics;

/* An amount that has a minimum, a maximum and a use. */
struct vm_gauge_range {
	double min, max, use;
};

/* What is to be shown of a VM. Values are in cores and bytes. */
struct vm_gauges {
	struct slice namespace;
	struct slice name;
	struct slice endpoint_id; /* both may be empty */
	struct slice project_id;
	struct vm_gauge_range spec_cpu;
	struct vm_gauge_range spec_mem;
	bool has_status_cpu;
	bool has_status_mem;
	bool has_autoscaling; /* the bounds annotation was readable; its `use` is never looked at */
	double status_cpu;
	double status_mem;
	struct vm_gauge_range autoscaling_cpu;
	struct vm_gauge_range autoscaling_mem;
	double restart_count;
	bool has_extra_ip;
};

/* NULL with *err when memory is short. */
struct vm_metrics *vm_metrics_create(struct error *err);
/* With the one family of late 2023, autoscaling_vm_resources, in place of all others (generations 4.7). */
struct vm_metrics *vm_metrics_create_late_2023(struct error *err);
void vm_metrics_destroy(struct vm_metrics *metrics); /* NULL is fine */

/* Shows a VM, or what has become of it; copies what it needs. Series that it no longer has go. */
void vm_metrics_show(struct vm_metrics *metrics, const struct vm_gauges *gauges);
/* All series of a VM go. */
void vm_metrics_forget(struct vm_metrics *metrics, struct slice namespace, struct slice name);
/* Does nothing for a VM that isn't shown. A part that is absent loses its series. */
void vm_metrics_set_desired_cu(struct vm_metrics *metrics, struct slice namespace, struct slice name,
                               const struct scaling_desired_cu *desired);

/* Appends the page of port 9101. */
bool vm_metrics_print(struct vm_metrics *metrics, struct buffer *page, struct error *err);

#endif
