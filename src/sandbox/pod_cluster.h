/*
 * The storage side of a sandbox's cluster: nodes with disks, storage classes, the reservation controller, the volume provisioner, the stand-in
 * scheduler, and the workload's pods, which come and go as it states.
 *
 * It answers what is true of each pod. Pods are numbered as in the workload.
 */
#ifndef BALLAST_SANDBOX_POD_CLUSTER_H
#define BALLAST_SANDBOX_POD_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/address.h"
#include "net/loop.h"
#include "sandbox/faults.h"
#include "sandbox/kube_scheduler.h"
#include "sandbox/object_store.h"
#include "sandbox/pod_workload.h"
#include "sandbox/reservation_controller.h"
#include "sandbox/volume_provisioner.h"

struct pod_cluster;

struct pod_cluster_options {
	struct object_store *store;          /* must outlive it, as must … */
	const struct pod_workload *workload; /* … this */
	struct address extender;
	struct faults *faults; /* NULL: none */
	bool node_names;       /* the scheduler sends names (nodeCacheCapable) */
};

struct pod_cluster_handler {
	/* Something happened to a pod; text is for people. */
	void (*on_pod)(void *context, unsigned pod, const char *text);
	/* A pod got a node although it can't have one. */
	void (*on_mismatch)(void *context, const char *text);
};

/* What is true of a pod now, in its newest life. */
struct pod_cluster_state {
	bool created; /* it has come */
	bool first;   /* POD_REBORN: it hasn't been made again yet */
	uint64_t age_ns;
	unsigned filter_calls;
	bool bound;
	bool unchecked; /* without the extender's consent, since its call failed */
	double seconds_to_bind;
	char node[KUBE_SCHEDULER_NAME_BYTES];
};

struct pod_cluster_counters {
	struct reservation_counters reservations;
	struct provisioner_counters volumes;
	struct kube_scheduler_counters scheduler;
	unsigned promised_twice;
	double busy_seconds; /* while there were pods that fit to be placed */
	unsigned placed;     /* pods that fit and were bound */
};

/* Puts nodes, disks and classes into the store. Pods come from pod_cluster_begin on, which is time 0 of the workload. */
struct pod_cluster *pod_cluster_create(struct loop *loop, const struct pod_cluster_options *options,
                                       const struct pod_cluster_handler *handler, void *context, struct error *err);
void pod_cluster_begin(struct pod_cluster *cluster);
/* The run is over: nobody places pods any more. */
void pod_cluster_end(struct pod_cluster *cluster);
void pod_cluster_destroy(struct pod_cluster *cluster); /* NULL is fine */

const struct pod_workload *pod_cluster_workload(const struct pod_cluster *cluster);
struct pod_cluster_state pod_cluster_state(const struct pod_cluster *cluster, unsigned index);
struct pod_cluster_counters pod_cluster_counters(const struct pod_cluster *cluster);
/* What was promised twice at first; "" if nothing was. */
const char *pod_cluster_promised_twice(const struct pod_cluster *cluster);
/*
 * Whether a bound pod's volumes are all on its node, on disks as its claims ask for. False with a sentence. A leftover reservation serves whoever
 * is bound without the extender's consent, so that isn't looked at.
 */
bool pod_cluster_check_volumes(const struct pod_cluster *cluster, unsigned pod, struct error *err);

#endif
