/*
 * The watch over all VirtualMachines of the cluster (spec agent-runtime 5): it keeps what concerns this node, keeps the
 * gauges of its VMs, and tells the main loop when VMs that are ours come, change and go.
 */
#ifndef BALLAST_AGENT_VM_WATCH_H
#define BALLAST_AGENT_VM_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_metrics.h"
#include "agent/config.h"
#include "agent/vm_event.h"
#include "agent/vm_metrics.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "base/token_bucket.h"
#include "kube/client.h"
#include "net/loop.h"

struct vm_watch;

/* What it needs; all of it must outlive the watch. */
struct vm_watch_options {
	struct loop *loop;
	struct kube_client *client;
	const char *node_name;      /* K8S_NODE_NAME */
	const char *scheduler_name; /* only VMs with this scheduler are ours */
	enum agent_generation generation;
	struct token_bucket *limiter; /* of lists; shared with the patches */
	struct agent_metrics *metrics;
	struct vm_metrics *vm_metrics;
	struct log_sink *log_sink;
};

struct vm_watch_handler {
	/*
	 * The event is valid during the call. The watch must not be stopped within: what the event is about still has
	 * to be looked after. False, for an added event only: memory is short; it is told again in a second, unless the
	 * VM has gone by then.
	 */
	bool (*on_event)(void *context, const struct vm_event *event);
	/* The first list is there and the first watch open. */
	void (*on_started)(void *context);
	/*
	 * The first list or watch failed, and nothing more will come: "initial list failed: …", "initial watch failed:
	 * …".
	 */
	void (*on_start_failed)(void *context, const struct error *err);
};

/* Starts; no callback comes from inside. No event comes before vm_watch_deliver. */
struct vm_watch *vm_watch_start(const struct vm_watch_options *options, const struct vm_watch_handler *handler,
                                void *context, struct error *err);
/*
 * From now on events are delivered: an added event for each VM of ours that is there now, in order of arrival, and what
 * happens from here on. So what came and went before is never told.
 *
 * No event comes from inside. Those for the VMs that are there come a few at a time, each lot in a turn of the loop of
 * its own, since starting a VM's runner takes time; a VM that changes meanwhile is told of at once, as it is then.
 * Stopping the watch between two lots is fine.
 */
void vm_watch_deliver(struct vm_watch *watch);
/* The last list or watch failed, and the next try is waited for: what is known may be old (14.1). */
bool vm_watch_failing(const struct vm_watch *watch);
/* Ends everything without callbacks. Allowed inside on_started and on_start_failed. NULL is fine. */
void vm_watch_stop(struct vm_watch *watch);

/* ---- for billing, and for who needs a uid: the VMs whose status.node is this node, ours or not ---- */

struct vm_watch_vm {
	struct slice uid;
	struct slice namespace;
	struct slice name;
	struct slice phase; /* as it is; may be empty */
	bool autoscaling_enabled;
	bool has_status_cpu;
	uint32_t status_cpu_milli;
	bool has_billing_endpoint_id; /* the annotation is there, perhaps empty */
	struct slice billing_endpoint_id;
};

/*
 * Walks them in order of arrival: *position 0 starts; false at the end. Slices are valid until the next turn of the
 * loop.
 */
bool vm_watch_next(const struct vm_watch *watch, size_t *position, struct vm_watch_vm *ret_vm);

#endif
