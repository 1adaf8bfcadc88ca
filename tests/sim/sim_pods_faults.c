#include <stdio.h>

#include "sandbox/storage_objects.h"
#include "sim_pods_internal.h"

enum {
	MEDDLE_HIGH_MS = 6000,
	MEDDLE_EVERY_MS = 20,
};

#define MEDDLED "sim.ballast/seen"

static uint64_t time_in(const struct sim_pods *pods, struct rng *rng, uint64_t most_ms)
{
	return sim_peer_until_ns(pods->simulation, rng, most_ms);
}

/* ---- the scheduler, the controller ---- */

static void disturb_scheduler(struct sim_pods *pods, struct rng *rng)
{
	if (pods->scheduler == NULL)
		return;
	sim_world_note(simulation_world(pods->simulation), "scheduler: restarts");
	pods->counts.scheduler_restarts++;
	pods->scheduler_back_ns = time_in(pods, rng, SIM_PEER_OUTAGE_HIGH_MS);
	sim_pods_stop_scheduler(pods, (enum sim_crash)rng_between(rng, 0, 3));
}

static void disturb_controller(struct sim_pods *pods, struct rng *rng)
{
	struct sim_world *world = simulation_world(pods->simulation);
	struct error err;

	if (pods->controller == NULL)
		return;
	if (rng_between(rng, 0, 2) == 0) {
		sim_world_note(world, "controller: restarts");
		pods->counts.controller_restarts++;
		pods->controller_back_ns = time_in(pods, rng, SIM_PEER_OUTAGE_HIGH_MS);
		sim_pods_stop_controller(pods);
		return;
	}
	sim_world_note(world, "controller: is slow");
	pods->counts.slow_controllers++;
	sim_pods_stop_controller(pods);
	if (!sim_pods_start_controller(pods, 1.0 / (double)rng_between(rng, 2, 40), &err))
		simulation_broken(pods->simulation, "simulator", "controller: %s", err.text);
}

/* ---- reservations ---- */

/* Somebody's label: what was read is out of date, whoever read it. */
static void meddle(struct sim_pods *pods)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_RESERVATIONS);

	for (size_t i = 0; i < object_store_count(pods->store, kind); i++) {
		struct json_node *labels;
		struct object_edit edit;
		char text[24];
		struct error err;

		if (!object_edit_begin(&edit, object_store_at(pods->store, kind, i), &err))
			continue;
		(void)snprintf(text, sizeof text, "%llu", (unsigned long long)simulation_now_ns(pods->simulation));
		labels = json_tree_ensure(&edit.arena, json_tree_find(edit.root, "/metadata"), SLICE("labels"));
		if (json_tree_set_text(&edit.arena, labels, SLICE(MEDDLED), slice_of(text)))
			(void)object_edit_commit(&edit, pods->store, &err);
		object_edit_end(&edit);
	}
}

/* A pod's second volume finds no reservation. */
static void lose_hasty(struct sim_pods *pods)
{
	struct stored_object *object;
	char name[96];
	struct error err;
	bool gone;

	(void)snprintf(name, sizeof name, POD_NAME_SPACE "-%s", pods->hasty->plan->name);
	pods->hasty = NULL;
	object = object_store_find(pods->store, resource_kind(RESOURCE_RESERVATIONS), slice_from(NULL, 0),
	                           slice_of(name));
	if (object == NULL)
		return;
	sim_world_note(simulation_world(pods->simulation), "reservation %s: somebody deletes it", name);
	pods->counts.lost_reservations++;
	(void)object_store_delete(pods->store, object, &object, &gone, &err);
}

static void lose_reservation(struct sim_pods *pods, struct rng *rng)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_RESERVATIONS);
	size_t count = object_store_count(pods->store, kind);
	struct stored_object *object;
	struct error err;
	bool gone;

	if (count == 0)
		return;
	object = object_store_at(pods->store, kind, rng_between(rng, 0, count));
	sim_world_note(simulation_world(pods->simulation), "reservation %.*s: somebody deletes it",
	               SLICE_ARGS(object->name));
	pods->counts.lost_reservations++;
	(void)object_store_delete(pods->store, object, &object, &gone, &err);
}

static void disturb_storage(struct sim_pods *pods, struct rng *rng)
{
	switch (rng_between(rng, 0, 5)) {
	case 0:
		sim_world_note(simulation_world(pods->simulation), "somebody labels all reservations again and again");
		pods->counts.meddlings++;
		pods->meddle_until_ns = time_in(pods, rng, MEDDLE_HIGH_MS);
		return;
	case 1:
		lose_reservation(pods, rng);
		return;
	case 2:
		sim_pods_taint(pods, rng);
		return;
	default:
		sim_pods_take_drive(pods, rng);
		return;
	}
}

/* ---- any of them ---- */

static void disturb_loop(struct sim_pods *pods, struct rng *rng)
{
	struct loop *loop = sim_pods_loop(pods, (unsigned)rng_between(rng, 0, SIM_PODS_LOOPS));

	if (loop != NULL)
		sim_peer_strike(pods->simulation, loop,
		                (enum sim_peer_misfortune)rng_between(rng, 0, SIM_PEER_MISFORTUNES), rng);
}

const char *const SIM_PODS_MISFORTUNES[] = { "api",     "api",     "scheduler", "controller", "storage",
	                                     "storage", "process", "process",   NULL };

void sim_pods_strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng)
{
	struct sim_pods *pods = context;

	(void)simulation;
	pods->faults.suspended = false;
	switch (misfortune) {
	case 0:
	case 1:
		sim_api_strike(&pods->api, SIM_API_ANY, rng);
		return;
	case 2:
		disturb_scheduler(pods, rng);
		return;
	case 3:
		disturb_controller(pods, rng);
		return;
	case 4:
	case 5:
		disturb_storage(pods, rng);
		return;
	default:
		disturb_loop(pods, rng);
		return;
	}
}

/* ---- back to normal ---- */

static void restore(struct sim_pods *pods, uint64_t now_ns)
{
	struct error err;

	sim_api_restore(&pods->api, now_ns);
	if (pods->scheduler == NULL && now_ns >= pods->scheduler_back_ns && !sim_pods_start_scheduler(pods, &err))
		simulation_broken(pods->simulation, "simulator", "scheduler: %s", err.text);
	if (pods->controller == NULL && now_ns >= pods->controller_back_ns && !sim_pods_start_controller(pods, 1, &err))
		simulation_broken(pods->simulation, "simulator", "controller: %s", err.text);
}

void sim_pods_go_on(struct sim_pods *pods)
{
	uint64_t now_ns = simulation_now_ns(pods->simulation);

	restore(pods, now_ns);
	if (pods->hasty != NULL)
		lose_hasty(pods);
	if (now_ns < pods->meddle_until_ns && now_ns >= pods->meddled_ns + (uint64_t)MEDDLE_EVERY_MS * NS_PER_MS) {
		pods->meddled_ns = now_ns;
		meddle(pods);
	}
}

void sim_pods_calm(void *context, struct simulation *simulation)
{
	struct sim_pods *pods = context;
	struct error err;

	sim_world_heal(simulation_world(simulation));
	pods->faults.suspended = true;
	pods->meddle_until_ns = 0;
	sim_api_calm(&pods->api);
	restore(pods, UINT64_MAX);
	if (pods->controller_speed != 1) {
		sim_pods_stop_controller(pods);
		if (!sim_pods_start_controller(pods, 1, &err))
			simulation_broken(simulation, "simulator", "controller: %s", err.text);
	}
	sim_pods_bring_drives_back(pods);
	sim_pods_untaint(pods);
}
