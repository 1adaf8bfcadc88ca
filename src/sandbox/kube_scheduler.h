/*
 * A stand-in for kube-scheduler with one HTTP extender (spec extender 15): takes pods without a node from the store, one at a time, asks the
 * extender which nodes do (filter) and which are best (prioritize), has volumes made on the chosen node, and binds the pod. Volumes are waited for
 * beside the next pods' attempts (U11). A pod without a node waits: 1 s, doubling to 10 s (U7).
 *
 * Those times are divided by speed; the extender's time limit isn't.
 */
#ifndef BALLAST_SANDBOX_KUBE_SCHEDULER_H
#define BALLAST_SANDBOX_KUBE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/address.h"
#include "net/loop.h"
#include "sandbox/faults.h"
#include "sandbox/object_store.h"

enum {
	KUBE_SCHEDULER_BACKOFF_MS = 1000,
	KUBE_SCHEDULER_BACKOFF_MAX_MS = 10000,
	KUBE_SCHEDULER_BIND_MS = 600000,   /* for all claims to be bound */
	KUBE_SCHEDULER_TIMEOUT_MS = 15000, /* httpTimeout, as shipped (D4) */
	KUBE_SCHEDULER_ANSWER_BYTES = 64 * 1024 * 1024,
	KUBE_SCHEDULER_NAME_BYTES = 254,
	KUBE_SCHEDULER_WHY_BYTES = 256,
};

#define KUBE_SCHEDULER_NAME "default-scheduler" /* spec.schedulerName of the pods it takes */

struct kube_scheduler;

struct kube_scheduler_options {
	struct object_store *store; /* must outlive it */
	struct address extender;
	double speed;
	bool node_names;       /* nodeCacheCapable: sends names, not objects */
	bool strict;           /* not `ignorable`: a failed filter call fails the attempt */
	struct faults *faults; /* NULL: none */
};

struct http_response;
struct node_choice;

/* A call to the extender that is over, and what was sent with it. Valid during the callback. */
struct kube_scheduler_call {
	const char *target; /* "/filter", "/prioritize" */
	struct slice name_space, name, pod_text;
	bool node_names;                 /* names were sent, not objects */
	const struct node_choice *nodes; /* kube_scheduler_internal.h */
	size_t node_count;
	uint64_t started_ns;
	const struct http_response *response;
	const struct error *failure; /* NULL: the response is complete, of whatever status */
};

/* Texts are valid during the call. Each may be NULL. */
struct kube_scheduler_handler {
	/* Before the answer is looked at. */
	void (*on_called)(void *context, const struct kube_scheduler_call *call);
	void (*on_bound)(void *context, struct slice name_space, struct slice name, const char *node);
	/* An attempt ended without a node; why is for people. */
	void (*on_unschedulable)(void *context, struct slice name_space, struct slice name, const char *why);
};

/* What is true of a pod. */
struct kube_scheduler_pod {
	unsigned filter_calls; /* that were answered or not */
	bool bound;
	bool unchecked; /* it has its node from an attempt whose filter call failed (U4) */
	char node[KUBE_SCHEDULER_NAME_BYTES];
	uint64_t created_ns, bound_ns; /* of the loop's clock */
};

struct kube_scheduler_counters {
	unsigned bound;
	unsigned filter_calls, failed_filter_calls;
	unsigned prioritize_calls;
};

struct kube_scheduler *kube_scheduler_create(struct loop *loop, const struct kube_scheduler_options *options,
                                             const struct kube_scheduler_handler *handler, void *context,
                                             struct error *err);
/* Nothing is placed any more, not even what is under way; what it has counted and seen stays. */
void kube_scheduler_stop(struct kube_scheduler *scheduler);
void kube_scheduler_destroy(struct kube_scheduler *scheduler); /* NULL is fine */
/* False if there is no such pod, or it isn't for this scheduler. */
bool kube_scheduler_find(const struct kube_scheduler *scheduler, struct slice name_space, struct slice name,
                         struct kube_scheduler_pod *ret_pod);
struct kube_scheduler_counters kube_scheduler_counters(const struct kube_scheduler *scheduler);

#endif
