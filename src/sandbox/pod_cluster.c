#include "sandbox/pod_cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/capacity_watch.h"
#include "sandbox/pod_cluster_objects.h"

enum { EVENT_BYTES = 256, TIGHT_POLL_MS = 100, RETRY_MS = 100 };

struct cluster_pod {
	struct pod_cluster *cluster;
	unsigned index;
	struct loop_timer timer; /* to its (next) life */
	unsigned lives;
	bool bound;
};

struct pod_cluster {
	struct loop *loop;
	struct object_store *store;
	const struct pod_workload *workload;
	struct pod_cluster_handler handler;
	void *context;
	struct reservation_controller *controller;
	struct volume_provisioner *provisioner;
	struct kube_scheduler *scheduler;
	struct capacity_watch *watch;

	unsigned unplaced; /* pods that fit, have come, and aren't bound */
	uint64_t busy_since_ns, busy_ns;
	unsigned placed;
	struct cluster_pod pods[];
};

static const struct pod_plan *plan_of(const struct cluster_pod *pod)
{
	return &pod->cluster->workload->pods[pod->index];
}

/* In its first life the pod that comes again doesn't fit. */
static bool fits_now(const struct cluster_pod *pod)
{
	const struct pod_plan *plan = plan_of(pod);

	return plan->fits && (plan->kind != POD_REBORN || pod->lives > 1);
}

/* ---- how long there was something to place ---- */

static void count_unplaced(struct pod_cluster *cluster, int change)
{
	uint64_t now_ns = loop_now_ns(cluster->loop);

	if (cluster->unplaced > 0)
		cluster->busy_ns += now_ns - cluster->busy_since_ns;
	cluster->busy_since_ns = now_ns;
	cluster->unplaced = change > 0 ? cluster->unplaced + 1 : cluster->unplaced - 1;
}

/* ---- lives ---- */

static void tell(const struct cluster_pod *pod, const char *text)
{
	pod->cluster->handler.on_pod(pod->cluster->context, pod->index, text);
}

static void start_life(void *context);

static void start_later(struct cluster_pod *pod, uint64_t delay_ns)
{
	loop_timer_start(pod->cluster->loop, &pod->timer, delay_ns, start_life, pod);
}

static bool all_tight_are_bound(const struct pod_cluster *cluster)
{
	for (unsigned i = 0; i < cluster->workload->pod_count; i++) {
		if (cluster->workload->pods[i].kind == POD_TIGHT && !cluster->pods[i].bound)
			return false;
	}
	return true;
}

/* What fails for want of memory is tried again. */
static void start_life(void *context)
{
	struct cluster_pod *pod = context;
	struct pod_cluster *cluster = pod->cluster;
	const struct pod_plan *plan = plan_of(pod);
	bool first = pod->lives == 0;
	struct error err;

	if (plan->after_tight && !all_tight_are_bound(cluster)) {
		start_later(pod, (uint64_t)TIGHT_POLL_MS * NS_PER_MS);
		return;
	}
	if ((!first && !pod_objects_remove(cluster->store, plan, &err)) ||
	    !pod_objects_add(cluster->store, plan, first, &err)) {
		tell(pod, err.text);
		start_later(pod, (uint64_t)RETRY_MS * NS_PER_MS);
		return;
	}
	pod->lives++;
	if (fits_now(pod))
		count_unplaced(cluster, 1);
	tell(pod, first ? "created" : "deleted, and created again with a smaller claim");
	if (first && plan->again_ns > plan->start_ns)
		start_later(pod, plan->again_ns - plan->start_ns);
}

/* ---- what the parts tell ---- */

static struct cluster_pod *find(struct pod_cluster *cluster, struct slice name)
{
	for (unsigned i = 0; i < cluster->workload->pod_count; i++) {
		if (slice_equal_text(name, cluster->workload->pods[i].name))
			return &cluster->pods[i];
	}
	return NULL;
}

static void on_bound(void *context, struct slice name_space, struct slice name, const char *node)
{
	struct pod_cluster *cluster = context;
	struct cluster_pod *pod = find(cluster, name);
	char text[EVENT_BYTES];

	(void)name_space;
	if (pod == NULL)
		return;
	pod->bound = true;
	(void)snprintf(text, sizeof text, "bound to %s", node);
	tell(pod, text);
	if (fits_now(pod)) {
		cluster->placed++;
		count_unplaced(cluster, -1);
		return;
	}
	(void)snprintf(text, sizeof text, "pod %s was bound to %s, and can't fit anywhere", plan_of(pod)->name, node);
	cluster->handler.on_mismatch(cluster->context, text);
}

static void on_unschedulable(void *context, struct slice name_space, struct slice name, const char *why)
{
	const struct cluster_pod *pod = find(context, name);
	char text[EVENT_BYTES];

	(void)name_space;
	if (pod == NULL)
		return;
	(void)snprintf(text, sizeof text, "waits: %s", why);
	tell(pod, text);
}

/* ---- life ---- */

static bool start_parts(struct pod_cluster *cluster, const struct pod_cluster_options *options, struct error *err)
{
	static const struct kube_scheduler_handler SCHEDULER = { .on_bound = on_bound,
		                                                 .on_unschedulable = on_unschedulable };
	static const struct provisioner_handler PROVISIONER = { .on_refused = NULL };
	double speed = options->workload->options.speed;

	cluster->watch = capacity_watch_create(options->store, err);
	if (cluster->watch == NULL || !pod_objects_plant(options->store, options->workload, err))
		return false;
	cluster->controller = reservation_controller_create(
		cluster->loop, &(struct reservation_controller_options){ .store = options->store, .speed = speed },
		err);
	if (cluster->controller == NULL)
		return false;
	cluster->provisioner =
		volume_provisioner_create(cluster->loop, options->store, speed, &PROVISIONER, cluster, err);
	if (cluster->provisioner == NULL)
		return false;
	cluster->scheduler = kube_scheduler_create(cluster->loop,
	                                           &(struct kube_scheduler_options){ .store = options->store,
	                                                                             .extender = options->extender,
	                                                                             .speed = speed,
	                                                                             .node_names = options->node_names,
	                                                                             .faults = options->faults },
	                                           &SCHEDULER, cluster, err);
	return cluster->scheduler != NULL;
}

struct pod_cluster *pod_cluster_create(struct loop *loop, const struct pod_cluster_options *options,
                                       const struct pod_cluster_handler *handler, void *context, struct error *err)
{
	unsigned count = options->workload->pod_count;
	struct pod_cluster *cluster = memory_allocate(sizeof *cluster + count * sizeof cluster->pods[0]);

	if (cluster == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory for pods");
		return NULL;
	}
	cluster->loop = loop;
	cluster->store = options->store;
	cluster->workload = options->workload;
	cluster->handler = *handler;
	cluster->context = context;
	for (unsigned i = 0; i < count; i++) {
		cluster->pods[i].cluster = cluster;
		cluster->pods[i].index = i;
	}
	if (!start_parts(cluster, options, err)) {
		pod_cluster_destroy(cluster);
		return NULL;
	}
	return cluster;
}

void pod_cluster_begin(struct pod_cluster *cluster)
{
	for (unsigned i = 0; i < cluster->workload->pod_count; i++)
		start_later(&cluster->pods[i], cluster->workload->pods[i].start_ns);
}

void pod_cluster_end(struct pod_cluster *cluster)
{
	if (cluster->scheduler != NULL)
		kube_scheduler_stop(cluster->scheduler);
}

void pod_cluster_destroy(struct pod_cluster *cluster)
{
	if (cluster == NULL)
		return;
	for (unsigned i = 0; i < cluster->workload->pod_count; i++)
		loop_timer_stop(cluster->loop, &cluster->pods[i].timer);
	kube_scheduler_destroy(cluster->scheduler);
	volume_provisioner_destroy(cluster->provisioner);
	reservation_controller_destroy(cluster->controller);
	capacity_watch_destroy(cluster->watch);
	memory_release(cluster);
}

/* ---- questions ---- */

const struct pod_workload *pod_cluster_workload(const struct pod_cluster *cluster)
{
	return cluster->workload;
}

struct pod_cluster_state pod_cluster_state(const struct pod_cluster *cluster, unsigned index)
{
	const struct cluster_pod *pod = &cluster->pods[index];
	const struct pod_plan *plan = plan_of(pod);
	struct pod_cluster_state state = { .created = pod->lives > 0,
		                           .first = plan->kind == POD_REBORN && pod->lives < 2 };
	struct kube_scheduler_pod seen;

	if (!kube_scheduler_find(cluster->scheduler, SLICE(POD_NAME_SPACE), slice_of(plan->name), &seen))
		return state;
	state.age_ns = loop_now_ns(cluster->loop) - seen.created_ns;
	state.filter_calls = seen.filter_calls;
	state.bound = seen.bound;
	state.unchecked = seen.unchecked;
	if (seen.bound) {
		state.seconds_to_bind = (double)(seen.bound_ns - seen.created_ns) / NS_PER_S;
		memcpy(state.node, seen.node, sizeof state.node);
	}
	return state;
}

struct pod_cluster_counters pod_cluster_counters(const struct pod_cluster *cluster)
{
	uint64_t busy_ns = cluster->busy_ns;

	if (cluster->unplaced > 0)
		busy_ns += loop_now_ns(cluster->loop) - cluster->busy_since_ns;
	return (struct pod_cluster_counters){
		.reservations = reservation_controller_counters(cluster->controller),
		.volumes = volume_provisioner_counters(cluster->provisioner),
		.scheduler = kube_scheduler_counters(cluster->scheduler),
		.promised_twice = capacity_watch_promised_twice(cluster->watch),
		.busy_seconds = (double)busy_ns / NS_PER_S,
		.placed = cluster->placed,
	};
}

const char *pod_cluster_promised_twice(const struct pod_cluster *cluster)
{
	return capacity_watch_first(cluster->watch);
}

bool pod_cluster_check_volumes(const struct pod_cluster *cluster, unsigned pod, struct error *err)
{
	struct pod_cluster_state state = pod_cluster_state(cluster, pod);

	if (state.unchecked && cluster->workload->pods[pod].kind == POD_LEFTOVER)
		return true;
	return !state.bound || pod_objects_check(cluster->store, &cluster->workload->pods[pod], state.node, err);
}
