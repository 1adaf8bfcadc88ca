#include "sim_schedulers.h"

#include <stdio.h>
#include <string.h>

#include "sim_cluster_internal.h"

enum {
	RESTART_LOW_MS = 200,
	RESTART_HIGH_MS = 25000,
	READY_HIGH_MS = 15000,
	LEAVES_HIGH_MS = 40000,
	REQUESTS_MAX = 10, /* in one second, for each VM */
};

/* ---- what plugins say ---- */

static void on_answer(void *context, const struct scheduler_plugin_answer *answer)
{
	const struct sim_scheduler *scheduler = context;
	struct sim_cluster *cluster = scheduler->cluster;
	struct sim_vm *vm = sim_cluster_find_pod(cluster, answer->pod_name);

	if (vm == NULL)
		return;
	sim_history_add(&vm->permits, simulation_now_ns(cluster->simulation), answer->permit);
	sim_world_note(simulation_world(cluster->simulation), "%s: %s wants %um %lluMi, gets %um %lluMi",
	               scheduler->pod_name, vm->name, answer->wanted.cpu_milli,
	               (unsigned long long)(answer->wanted.mem_bytes >> 20), answer->permit.cpu_milli,
	               (unsigned long long)(answer->permit.mem_bytes >> 20));
	if (resources_has_less(answer->permit, answer->wanted))
		cluster->counts.short_permits++;
}

static bool add_pod(struct scheduler_plugin *plugin, const struct sim_vm *vm, struct resources use, struct error *err)
{
	char node[SIM_NODE_NAME_BYTES];
	struct scheduler_plugin_pod pod = {
		.name_space = SIM_NAME_SPACE, .name = vm->pod_name, .node = node, .is_vm = true, .use = use
	};

	sim_cluster_name_node(node, vm->node);
	return scheduler_plugin_add_pod(plugin, &pod, err);
}

/* Another plugin reads it, too. */
static void tell_others(const struct sim_scheduler *scheduler, const struct sim_vm *vm)
{
	struct sim_cluster *cluster = scheduler->cluster;
	struct resources use;
	struct error err;

	if (!scheduler_plugin_reserved(scheduler->plugin, SIM_NAME_SPACE, vm->pod_name, &use))
		return;
	for (int i = 0; i < SIM_SCHEDULERS; i++) {
		struct sim_scheduler *other = &cluster->schedulers[i];

		if (other == scheduler || other->plugin == NULL)
			continue;
		scheduler_plugin_remove_pod(other->plugin, SIM_NAME_SPACE, vm->pod_name);
		if (!add_pod(other->plugin, vm, use, &err))
			simulation_broken(cluster->simulation, "simulator", "%s: %s", vm->name, err.text);
	}
}

static void on_annotate(void *context, const char *pod_name, const char *key, struct slice json)
{
	const struct sim_scheduler *scheduler = context;
	const struct sim_vm *vm = sim_cluster_find_pod(scheduler->cluster, pod_name);
	struct error err;

	if (vm == NULL)
		return;
	(void)control_plane_annotate_vm(scheduler->cluster->api.plane, vm->name, slice_of(key), json, &err);
	tell_others(scheduler, vm);
}

/* ---- coming ---- */

static struct sim_scheduler *free_place(struct sim_cluster *cluster)
{
	for (int i = 0; i < SIM_SCHEDULERS; i++)
		if (cluster->schedulers[i].plugin == NULL)
			return &cluster->schedulers[i];
	return NULL;
}

static unsigned node_units(const struct sim_cluster *cluster, unsigned node)
{
	const struct workload *workload = cluster->workload;
	unsigned units = SIM_ROOMY_NODE_UNITS;

	if (workload->has_full_node && node == 1)
		return WORKLOAD_FULL_NODE_UNITS;
	for (unsigned i = 0; i < workload->options.vms; i++)
		units += workload->vms[i].max;
	return units;
}

static bool add_nodes(const struct sim_cluster *cluster, struct scheduler_plugin *plugin, struct error *err)
{
	unsigned nodes = cluster->workload->options.nodes;

	for (unsigned i = 0; i < (nodes > cluster->agent_count ? nodes : cluster->agent_count + 1); i++) {
		char name[SIM_NODE_NAME_BYTES];

		sim_cluster_name_node(name, i);
		if (!scheduler_plugin_add_node(plugin, name, sim_units(node_units(cluster, i)), err))
			return false;
	}
	return true;
}

/* What a new one finds in the annotations. */
static bool copy_pods(struct sim_cluster *cluster, struct sim_scheduler *to, const struct sim_scheduler *from,
                      struct error *err)
{
	for (unsigned i = 0; i < cluster->vm_count; i++) {
		const struct sim_vm *vm = &cluster->vms[i];
		struct resources use;

		if (scheduler_plugin_reserved(from->plugin, SIM_NAME_SPACE, vm->pod_name, &use) &&
		    !add_pod(to->plugin, vm, use, err))
			return false;
	}
	return true;
}

static bool start(struct sim_cluster *cluster, struct sim_scheduler *scheduler, struct error *err)
{
	static const struct scheduler_plugin_handler HANDLER = { .on_answer = on_answer, .on_annotate = on_annotate };
	unsigned number = cluster->scheduler_number++;
	struct address address = sim_cluster_plugin_address(number);
	char ip[ADDRESS_TEXT_BYTES];

	*scheduler = (struct sim_scheduler){ .cluster = cluster, .leaves_ns = UINT64_MAX };
	(void)snprintf(scheduler->pod_name, sizeof scheduler->pod_name, "autoscale-scheduler-%u", number + 1);
	address_print_host(&address, false, ip);
	scheduler->loop = loop_sim_create(simulation_world(cluster->simulation), scheduler->pod_name, &address, err);
	if (scheduler->loop == NULL)
		return false;
	scheduler->plugin = scheduler_plugin_start(scheduler->loop, &address, 1, &HANDLER, scheduler, err);
	scheduler->created_s = loop_wall_ns(cluster->api_loop) / (int64_t)NS_PER_S;
	return scheduler->plugin != NULL && add_nodes(cluster, scheduler->plugin, err) &&
	       control_plane_add_scheduler_pod(cluster->api.plane, AGENT_SETUP_SCHEDULER_NAME, scheduler->pod_name, ip,
	                                       "node-a", err);
}

bool sim_schedulers_start(struct sim_cluster *cluster, struct error *err)
{
	return start(cluster, &cluster->schedulers[0], err);
}

/* ---- going ---- */

static void free_scheduler(struct sim_scheduler *scheduler)
{
	scheduler_plugin_destroy(scheduler->plugin);
	if (scheduler->loop != NULL)
		loop_destroy(scheduler->loop);
	scheduler->plugin = NULL;
	scheduler->loop = NULL;
}

void sim_schedulers_destroy(struct sim_cluster *cluster)
{
	for (int i = 0; i < SIM_SCHEDULERS; i++)
		free_scheduler(&cluster->schedulers[i]);
}

static void leave(struct sim_scheduler *scheduler, enum sim_crash how)
{
	struct sim_cluster *cluster = scheduler->cluster;
	struct error err;

	sim_world_note(simulation_world(cluster->simulation), "%s: goes", scheduler->pod_name);
	(void)control_plane_remove(cluster->api.plane, RESOURCE_PODS, "kube-system", scheduler->pod_name, &err);
	loop_sim_crash(scheduler->loop, how);
	free_scheduler(scheduler);
}

/* ---- for all of them ---- */

bool sim_schedulers_add_pod(struct sim_cluster *cluster, const struct sim_vm *vm, struct resources use,
                            struct error *err)
{
	for (int i = 0; i < SIM_SCHEDULERS; i++)
		if (cluster->schedulers[i].plugin != NULL && !add_pod(cluster->schedulers[i].plugin, vm, use, err))
			return false;
	return true;
}

void sim_schedulers_remove_pod(struct sim_cluster *cluster, const char *pod_name)
{
	for (int i = 0; i < SIM_SCHEDULERS; i++)
		if (cluster->schedulers[i].plugin != NULL)
			scheduler_plugin_remove_pod(cluster->schedulers[i].plugin, SIM_NAME_SPACE, pod_name);
}

/* Its place. */
static unsigned current_place(const struct sim_cluster *cluster)
{
	unsigned place = SIM_SCHEDULERS;

	for (unsigned i = 0; i < SIM_SCHEDULERS; i++) {
		const struct sim_scheduler *scheduler = &cluster->schedulers[i],
					   *best = &cluster->schedulers[place % SIM_SCHEDULERS];

		if (scheduler->plugin == NULL)
			continue;
		if (place == SIM_SCHEDULERS || (best->unready && !scheduler->unready) ||
		    (best->unready == scheduler->unready && scheduler->created_s > best->created_s))
			place = i;
	}
	return place;
}

const struct sim_scheduler *sim_schedulers_current(const struct sim_cluster *cluster)
{
	return &cluster->schedulers[current_place(cluster)];
}

bool sim_schedulers_may_ask(const struct sim_cluster *cluster, const char *pod_name)
{
	const struct sim_scheduler *current = sim_schedulers_current(cluster);

	for (unsigned i = 0; i < SIM_SCHEDULERS; i++) {
		const struct sim_scheduler *scheduler = &cluster->schedulers[i];

		if (scheduler->plugin != NULL && strcmp(scheduler->pod_name, pod_name) == 0)
			return scheduler->created_s == current->created_s;
	}
	return false;
}

/* ---- misfortunes ---- */

static uint64_t time_in(const struct sim_cluster *cluster, struct rng *rng, uint64_t most_ms)
{
	return simulation_now_ns(cluster->simulation) + rng_between(rng, RESTART_LOW_MS, most_ms) * NS_PER_MS;
}

static void set_ready(const struct sim_scheduler *scheduler, bool ready)
{
	struct error err;

	(void)control_plane_set_pod_ready(scheduler->cluster->api.plane, "kube-system", scheduler->pod_name, ready,
	                                  &err);
}

/* Its pod may be seen not ready, or the agents may find out by themselves. */
static void restart(struct sim_scheduler *scheduler, struct rng *rng)
{
	struct sim_cluster *cluster = scheduler->cluster;
	struct error err;

	if (scheduler->away)
		return;
	sim_world_note(simulation_world(cluster->simulation), "%s: restarts", scheduler->pod_name);
	scheduler->away = true;
	scheduler->back_ns = time_in(cluster, rng, RESTART_HIGH_MS);
	cluster->counts.plugin_outages++;
	if (rng_between(rng, 0, 2) == 0)
		set_ready(scheduler, false);
	(void)scheduler_plugin_set_available(scheduler->plugin, false, &err);
}

/* A new one comes, ready at once or later; the old one goes a little later, or stays. */
static void replace(struct sim_cluster *cluster, struct rng *rng)
{
	struct sim_scheduler *old = &cluster->schedulers[current_place(cluster)], *place = free_place(cluster);
	struct error err;

	if (place == NULL) {
		place = old == &cluster->schedulers[0] ? &cluster->schedulers[1] : &cluster->schedulers[0];
		leave(place, (enum sim_crash)rng_between(rng, 0, 3));
	}
	if (!start(cluster, place, &err) || !copy_pods(cluster, place, old, &err)) {
		simulation_broken(cluster->simulation, "simulator", "another scheduler: %s", err.text);
		return;
	}
	sim_world_note(simulation_world(cluster->simulation), "%s: comes beside %s", place->pod_name, old->pod_name);
	cluster->counts.scheduler_changes++;
	place->unready = rng_between(rng, 0, 2) == 0;
	place->ready_ns = time_in(cluster, rng, READY_HIGH_MS);
	if (place->unready)
		set_ready(place, false);
	old->leaves_ns = rng_between(rng, 0, 3) == 0 ? UINT64_MAX : time_in(cluster, rng, LEAVES_HIGH_MS);
}

const char *const SIM_SCHEDULER_MISFORTUNES[] = { "restart", "restart", "replace", NULL };

void sim_schedulers_strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng)
{
	struct sim_cluster *cluster = context;

	(void)simulation;
	if (misfortune == 2)
		replace(cluster, rng);
	else
		restart(&cluster->schedulers[current_place(cluster)], rng);
}

static void restore(struct sim_scheduler *scheduler, uint64_t now_ns)
{
	struct error err;

	if (scheduler->away && now_ns >= scheduler->back_ns) {
		scheduler->away = !scheduler_plugin_set_available(scheduler->plugin, true, &err);
		set_ready(scheduler, !scheduler->away && !scheduler->unready);
	}
	if (scheduler->unready && now_ns >= scheduler->ready_ns) {
		scheduler->unready = false;
		set_ready(scheduler, true);
	}
	if (scheduler->leaves_ns != UINT64_MAX && now_ns >= scheduler->leaves_ns)
		leave(scheduler, SIM_CRASH_END);
}

void sim_schedulers_restore(struct sim_cluster *cluster, uint64_t now_ns)
{
	for (int i = 0; i < SIM_SCHEDULERS; i++)
		if (cluster->schedulers[i].plugin != NULL)
			restore(&cluster->schedulers[i], now_ns);
}

void sim_schedulers_check_rates(struct sim_cluster *cluster)
{
	for (int i = 0; i < SIM_SCHEDULERS; i++) {
		struct sim_scheduler *scheduler = &cluster->schedulers[i];
		struct scheduler_plugin_counters counters;

		if (scheduler->plugin == NULL)
			continue;
		counters = scheduler_plugin_counters(scheduler->plugin);
		if (counters.requests - scheduler->requests > REQUESTS_MAX * cluster->workload->options.vms)
			simulation_broken(cluster->simulation, "no-busy-loop", "%s got %u requests in one second",
			                  scheduler->pod_name, counters.requests - scheduler->requests);
		/* Not those of a pod that has just gone: of that an agent may not know. */
		if (counters.malformed != 0)
			simulation_broken(cluster->simulation, "well-formed", "%s got a bad request",
			                  scheduler->pod_name);
		scheduler->requests = counters.requests;
	}
}
