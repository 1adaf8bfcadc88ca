#include <stdio.h>
#include <string.h>

#include "sandbox/pod_cluster_objects.h"
#include "sandbox/storage_objects.h"
#include "sim_pods_internal.h"

enum { ASKED_S = 30, NEW_S = 5, UID_BYTES = 64 };

void sim_pods_check(void *context, struct simulation *simulation)
{
	struct sim_pods *pods = context;

	sim_pods_go_on(pods);
	if (capacity_watch_promised_twice(pods->watch) > 0)
		simulation_broken(simulation, "promised-once", "%s", capacity_watch_first(pods->watch));
}

void sim_pods_check_second(void *context, struct simulation *simulation)
{
	struct sim_pods *pods = context;

	(void)simulation;
	sim_pods_live(pods);
	sim_pods_release_volumes(pods);
}

/* ---- whether a pod that isn't bound could be ---- */

struct want {
	struct planner_request requests[POD_VOLUMES_MAX];
	size_t count;
	bool partly;       /* some of its claims are bound */
	struct slice node; /* where they are */
};

static bool read_want(const struct sim_pods *pods, const struct sim_pod *pod, struct arena *arena, struct want *want)
{
	*want = (struct want){ .count = 0 };
	for (unsigned i = 0; i < pod->plan->volume_count; i++) {
		const struct pod_volume *volume = &pod->plan->volumes[i];
		const struct stored_object *object = object_store_find(pods->store, resource_kind(RESOURCE_CLAIMS),
		                                                       SLICE(POD_NAME_SPACE), slice_of(volume->claim));
		const struct stored_object *made;
		struct storage_claim claim;
		struct json_node *root;
		struct error err;

		if (object == NULL || !storage_read_claim(object, arena, &claim, &err))
			return false;
		/* An ephemeral volume counts even when it has been made (spec extender G7). */
		if (!slice_equal_text(claim.phase, "Bound") || volume->ephemeral)
			want->requests[want->count++] = (struct planner_request){ .name = claim.name,
				                                                  .group = claim.group,
				                                                  .type = volume->type,
				                                                  .size_bytes = claim.size_bytes };
		if (!slice_equal_text(claim.phase, "Bound"))
			continue;
		want->partly = true;
		made = object_store_find(pods->store, resource_kind(RESOURCE_VOLUMES), SLICE(POD_NAME_SPACE),
		                         claim.volume_name);
		if (made == NULL || !storage_parse(made, arena, &root, &err))
			return false;
		want->node = storage_text(root, "/spec/NodeId");
	}
	return true;
}

/* As the controller would plan it now, on the node where the pod's other volumes are. */
static bool has_room(const struct sim_pods *pods, const struct sim_pod *pod, const struct want *want,
                     struct arena *arena)
{
	struct planner_input input = {
		.requests = want->requests, .request_count = want->count, .nodes = &want->node, .node_count = 1
	};
	struct planner_capacity *capacities;
	struct planner_request *held;
	struct planner_plan plan;
	char name[96];
	struct error err;

	(void)snprintf(name, sizeof name, POD_NAME_SPACE "-%s", pod->plan->name);
	if (!storage_read_capacities(pods->store, arena, &capacities, &input.capacity_count, &err) ||
	    !storage_read_held(pods->store, slice_of(name), arena, &held, &input.held_count, &err))
		return false;
	input.capacities = capacities;
	input.held = held;
	return reservation_plan(&input, arena, &plan, &err) && plan.node_count > 0;
}

static void check_unbound(struct sim_pods *pods, struct sim_pod *pod)
{
	struct want want;
	struct arena arena;
	bool partly;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	partly = read_want(pods, pod, &arena, &want) && want.partly;
	/*
	 * A volume was made, and its pod's reservation got lost before the next: another pod may have taken the room on the
	 * only node that would do. Or the volume is an ephemeral one, and the scheduler ended before it bound the pod: the
	 * node must have room for another one like it. Nobody can help that pod.
	 */
	if (partly && want.count > 0 && !has_room(pods, pod, &want, &arena)) {
		pods->counts.stuck++;
		sim_pods_delete(pods, pod);
	} else {
		simulation_broken(pods->simulation, "placed", "pod %s fits, and isn't bound after %.0f s",
		                  pod->plan->name,
		                  (double)(simulation_now_ns(pods->simulation) - pod->created_ns) / (double)NS_PER_S);
	}
	arena_destroy(&arena);
}

/* ---- when all is quiet ---- */

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Since when nothing has been in the way of a pod. */
static uint64_t free_since_ns(const struct sim_pods *pods, const struct sim_pod *pod)
{
	uint64_t since_ns = simulation_calm_since_ns(pods->simulation) + (uint64_t)SIM_PODS_RECOVER_S * NS_PER_S;

	if (pods->last_deletion_ns > 0)
		since_ns = later_of(since_ns, pods->last_deletion_ns + (uint64_t)SIM_PODS_SWEEP_S * NS_PER_S);
	return later_of(since_ns, pod->created_ns);
}

static void check_pod(struct sim_pods *pods, struct sim_pod *pod)
{
	uint64_t now_ns = simulation_now_ns(pods->simulation);
	struct error err;

	if (!pod->exists)
		return;
	if (pod->bound) {
		if (!pod->unchecked && sim_pods_is_known(pods, pod->created_ns) &&
		    !pod_objects_check(pods->store, pod->plan, pod->node, &err))
			simulation_broken(pods->simulation, "volumes", "pod %s: %s", pod->plan->name, err.text);
		return;
	}
	/* It is asked for again and again, and its owner is told. */
	if (now_ns > pod->waited_ns + (uint64_t)ASKED_S * NS_PER_S)
		simulation_broken(pods->simulation, "waits", "nothing is heard of pod %s for %d s", pod->plan->name,
		                  ASKED_S);
	if (sim_pod_fits(pod) && now_ns >= free_since_ns(pods, pod) + pods->variants[0]->settle_ns)
		check_unbound(pods, pod);
}

/* The operator finds a reservation's pod by its name (D6), so none stays behind. */
static void check_reservations(struct sim_pods *pods)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_RESERVATIONS);
	uint64_t now_ns = simulation_now_ns(pods->simulation), most_ns = (uint64_t)SIM_PODS_SWEEP_S * NS_PER_S;

	for (size_t i = 0; i < object_store_count(pods->store, kind); i++) {
		struct slice name = object_store_at(pods->store, kind, i)->name;
		const struct sim_pod *pod = NULL;

		if (slice_starts_with(name, SLICE(POD_NAME_SPACE "-")))
			pod = sim_pods_find(pods, slice_from_offset(name, strlen(POD_NAME_SPACE "-")));
		if (pod == NULL)
			simulation_broken(pods->simulation, "no-leftovers", "reservation %.*s belongs to no pod",
			                  SLICE_ARGS(name));
		else if ((!pod->exists && now_ns > pod->deleted_ns + most_ns) ||
		         (pod->exists && pod->bound && now_ns > pod->bound_ns + most_ns))
			simulation_broken(pods->simulation, "no-leftovers", "reservation %.*s is there, and its pod %s",
			                  SLICE_ARGS(name), pod->exists ? "runs" : "is gone");
	}
}

void sim_pods_check_settled(void *context, struct simulation *simulation)
{
	struct sim_pods *pods = context;

	(void)simulation;
	pods->counts.settled_checks++;
	sim_api_check_settled(&pods->api);
	check_reservations(pods);
	for (unsigned i = 0; i < pods->pod_count; i++)
		check_pod(pods, &pods->pods[i]);
}
