/*
 * Pods come and go. Each has the sizes of one of the workload's variants in each life, so that what an earlier pod of its
 * name left behind mostly isn't what it needs. Whether a pod fits follows from the workload: each stock of disks has enough
 * for all of its pods at once, whatever their sizes.
 */
#include <stdio.h>
#include <string.h>

#include "sandbox/pod_cluster_objects.h"
#include "sandbox/storage_objects.h"
#include "sim_pods_internal.h"

enum {
	BUSY_S = 5,         /* of a calm in which pods are still deleted … */
	CREATED_S = 70,     /* … and in which they are created */
	MEAN_S = 6,         /* between two changes */
	FIRST_PERCENT = 80, /* of the pods that come in the first phase, at once */
	CHANGE_PERCENT = 25,
};

static struct rng *rng_of(const struct sim_pods *pods)
{
	return sim_world_rng(simulation_world(pods->simulation));
}

bool sim_pod_fits(const struct sim_pod *pod)
{
	return pod->plan->fits && !pod->too_large;
}

struct sim_pod *sim_pods_find(struct sim_pods *pods, struct slice name)
{
	for (unsigned i = 0; i < pods->pod_count; i++)
		if (slice_equal_text(name, pods->pods[i].plan->name))
			return &pods->pods[i];
	return NULL;
}

static bool is_bound(const struct sim_pods *pods, const struct pod_volume *volume)
{
	const struct stored_object *object = object_store_find(pods->store, resource_kind(RESOURCE_CLAIMS),
	                                                       SLICE(POD_NAME_SPACE), slice_of(volume->claim));
	struct storage_claim claim;
	struct arena arena;
	struct error err;
	bool bound;

	/* A generic ephemeral volume counts whether its claim is bound or not (G7). */
	if (volume->ephemeral || object == NULL)
		return false;
	arena_init(&arena, STORAGE_ARENA_BYTES);
	bound = storage_read_claim(object, &arena, &claim, &err) && slice_equal_text(claim.phase, "Bound");
	arena_destroy(&arena);
	return bound;
}

bool sim_pods_asked_of(void *context, struct slice name, struct sim_asked *ret_asked)
{
	struct sim_pods *pods = context;
	const struct sim_pod *pod = sim_pods_find(pods, name);

	if (pod == NULL || !pod->exists)
		return false;
	*ret_asked = (struct sim_asked){
		.plan = pod->plan,
		.too_large = pod->too_large,
		.bound = true,
		.ever_bound = pod->ever_bound,
		.since_ns = pod->created_ns,
		.known_ns = pod->known_ns,
	};
	for (unsigned i = 0; i < pod->plan->volume_count && ret_asked->bound; i++)
		ret_asked->bound = is_bound(pods, &pod->plan->volumes[i]);
	return true;
}

/* The moment for what goes wrong between a pod's first volume and its second. */
static void note_bound(struct sim_pods *pods, struct sim_pod *pod)
{
	pod->ever_bound = true;
	if (!simulation_in_storm(pods->simulation) || pod->plan->volume_count < 2)
		return;
	switch (rng_between(rng_of(pods), 0, 6)) {
	case 0:
		pods->hasty = pod;
		break;
	case 1:
	case 2:
		pods->curious = pod;
		break;
	default:
		break;
	}
}

void sim_pods_on_change(void *context, const struct object_change *change)
{
	struct sim_pods *pods = context;
	struct storage_claim claim;
	struct arena arena;
	struct error err;

	if (change->after->kind != resource_kind(RESOURCE_CLAIMS) || change->type != OBJECT_MODIFIED)
		return;
	arena_init(&arena, STORAGE_ARENA_BYTES);
	if (storage_read_claim(change->after, &arena, &claim, &err) && slice_equal_text(claim.phase, "Bound")) {
		for (unsigned i = 0; i < pods->pod_count; i++)
			for (unsigned j = 0; j < pods->pods[i].plan->volume_count; j++)
				if (slice_equal_text(claim.name, pods->pods[i].plan->volumes[j].claim))
					note_bound(pods, &pods->pods[i]);
	}
	arena_destroy(&arena);
}

/* ---- coming and going ---- */

static bool are_tight_bound(const struct sim_pods *pods)
{
	for (unsigned i = 0; i < pods->pod_count; i++)
		if (pods->pods[i].plan->kind == POD_TIGHT && !(pods->pods[i].exists && pods->pods[i].bound))
			return false;
	return true;
}

void sim_pods_delete(struct sim_pods *pods, struct sim_pod *pod)
{
	struct error err;

	/* Or they would fit. */
	for (unsigned i = 0; i < pods->pod_count && pod->plan->kind == POD_TIGHT; i++)
		if (pods->pods[i].plan->kind == POD_EXCESS && pods->pods[i].exists)
			sim_pods_delete(pods, &pods->pods[i]);
	sim_world_note(simulation_world(pods->simulation), "pod %s: deleted", pod->plan->name);
	if (!pod_objects_remove(pods->store, pod->plan, &err))
		simulation_broken(pods->simulation, "simulator", "%s: %s", pod->plan->name, err.text);
	pod->exists = false;
	pod->deleted_ns = pods->last_deletion_ns = pods->changed_ns = simulation_now_ns(pods->simulation);
	pods->counts.deleted++;
}

static void create(struct sim_pods *pods, struct sim_pod *pod)
{
	struct rng *rng = rng_of(pods);
	size_t index = (size_t)(pod - pods->pods);
	struct error err;

	if (pod->plan->kind == POD_EXCESS && !are_tight_bound(pods))
		return;
	pod->plan = &pods->variants[rng_between(rng, 0, SIM_VARIANTS)]->pods[index];
	pod->too_large = pod->plan->kind == POD_REBORN && rng_between(rng, 0, 2) == 0;
	pod->exists = true;
	pod->bound = pod->unchecked = false;
	pod->known_ns = 0;
	pod->created_ns = pod->waited_ns = pods->changed_ns = simulation_now_ns(pods->simulation);
	sim_world_note(simulation_world(pods->simulation), "pod %s: created%s", pod->plan->name,
	               pod->too_large ? ", too large" : "");
	if (!pod_objects_add(pods->store, pod->plan, pod->too_large, &err))
		simulation_broken(pods->simulation, "simulator", "%s: %s", pod->plan->name, err.text);
	pods->counts.created++;
}

static void change(struct sim_pods *pods, struct sim_pod *pod)
{
	if (!pod->exists) {
		create(pods, pod);
		return;
	}
	sim_pods_delete(pods, pod);
	if (rng_between(rng_of(pods), 0, 2) == 0)
		create(pods, pod);
}

void sim_pods_begin_phase(void *context, struct simulation *simulation, unsigned phase)
{
	struct sim_pods *pods = context;
	struct rng *rng = rng_of(pods);

	(void)simulation;
	for (unsigned i = 0; i < pods->pod_count; i++)
		if (rng_between(rng, 0, 100) < (phase == 0 ? FIRST_PERCENT : CHANGE_PERCENT))
			change(pods, &pods->pods[i]);
}

void sim_pods_live(struct sim_pods *pods)
{
	struct rng *rng = rng_of(pods);
	uint64_t calm_ns = simulation_calm_since_ns(pods->simulation), now_ns = simulation_now_ns(pods->simulation);
	struct sim_pod *pod;

	if ((calm_ns != UINT64_MAX && now_ns > calm_ns + (uint64_t)CREATED_S * NS_PER_S) ||
	    rng_between(rng, 0, MEAN_S) != 0)
		return;
	pod = &pods->pods[rng_between(rng, 0, pods->pod_count)];
	if (!pod->exists)
		create(pods, pod);
	else if (calm_ns == UINT64_MAX || now_ns <= calm_ns + (uint64_t)BUSY_S * NS_PER_S)
		change(pods, pod);
}

static bool are_claims_known(const struct sim_pods *pods, const struct sim_pod *pod,
                             bool (*is_known)(void *context, const struct stored_object *claim), void *context)
{
	for (unsigned i = 0; i < pod->plan->volume_count; i++) {
		const struct stored_object *claim =
			object_store_find(pods->store, resource_kind(RESOURCE_CLAIMS), SLICE(POD_NAME_SPACE),
		                          slice_of(pod->plan->volumes[i].claim));

		if (claim == NULL || !is_known(context, claim))
			return false;
	}
	return true;
}

void sim_pods_note_known(struct sim_pods *pods, bool (*is_known)(void *context, const struct stored_object *claim),
                         void *context)
{
	for (unsigned i = 0; i < pods->pod_count; i++) {
		struct sim_pod *pod = &pods->pods[i];

		if (pod->exists && pod->known_ns == 0 && are_claims_known(pods, pod, is_known, context))
			pod->known_ns = simulation_now_ns(pods->simulation);
	}
}

/* ---- what the scheduler tells ---- */

void sim_pods_on_bound(void *context, struct slice name_space, struct slice name, const char *node)
{
	struct sim_pods *pods = context;
	struct sim_pod *pod = sim_pods_find(pods, name);
	struct kube_scheduler_pod seen = { .unchecked = false };

	(void)kube_scheduler_find(pods->scheduler, name_space, name, &seen);
	if (pod == NULL || !pod->exists) {
		simulation_broken(pods->simulation, "fits", "pod %.*s was bound and isn't there", SLICE_ARGS(name));
		return;
	}
	sim_world_note(simulation_world(pods->simulation), "pod %s: bound to %s%s", pod->plan->name, node,
	               seen.unchecked ? ", unchecked" : "");
	pod->bound = true;
	pod->unchecked = seen.unchecked;
	pod->bound_ns = simulation_now_ns(pods->simulation);
	(void)snprintf(pod->node, sizeof pod->node, "%s", node);
	pods->counts.bound++;
	/*
	 * What an earlier pod of its name left behind serves whoever isn't checked, or whose claims the extender doesn't know
	 * yet. That can't be helped.
	 */
	if (!sim_pod_fits(pod) && !pod->unchecked && sim_pods_is_known(pods, pod->created_ns))
		simulation_broken(pods->simulation, "fits", "pod %s was bound to %s, and can't fit anywhere",
		                  pod->plan->name, node);
}

void sim_pods_on_unschedulable(void *context, struct slice name_space, struct slice name, const char *why)
{
	struct sim_pods *pods = context;
	struct sim_pod *pod = sim_pods_find(pods, name);

	(void)name_space;
	if (pod != NULL && why[0] != '\0')
		pod->waited_ns = simulation_now_ns(pods->simulation);
	sim_world_note(simulation_world(pods->simulation), "pod %.*s waits: %s", SLICE_ARGS(name), why);
}
