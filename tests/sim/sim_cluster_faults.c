#include "sim_cluster_internal.h"

static const char SCHEDULER_POD[] = "autoscale-scheduler-6f7d9c5b8-q2w3e";

enum {
	OUTAGE_LOW_MS = 200,
	OUTAGE_HIGH_MS = 25000,
	PARTITION_HIGH_MS = 70000,
	FREEZE_HIGH_MS = 15000,
	REFUSALS_MAX = 6
};

static uint64_t time_in(struct sim_cluster *cluster, struct rng *rng, uint64_t most_ms)
{
	return simulation_now_ns(cluster->simulation) + rng_between(rng, OUTAGE_LOW_MS, most_ms) * NS_PER_MS;
}

/* ---- the API server ---- */

static void disturb_api(struct sim_cluster *cluster, struct rng *rng)
{
	static const int STATUSES[] = { 409, 410, 500, 503, 504 };
	struct sim_world *world = simulation_world(cluster->simulation);
	unsigned count = (unsigned)rng_between(rng, 1, REFUSALS_MAX);

	switch (rng_between(rng, 0, 7)) {
	case 0:
		sim_world_note(world, "api: restarts");
		cluster->api_away = true;
		cluster->api_back_ns = time_in(cluster, rng, OUTAGE_HIGH_MS);
		cluster->counts.api_outages++;
		control_plane_set_available(cluster->plane, false);
		return;
	case 1:
		sim_world_note(world, "api: refuses %u requests with 429", count);
		cluster->counts.api_errors += count;
		control_plane_refuse_next(cluster->plane, count);
		return;
	case 2:
	case 3: {
		int status = STATUSES[rng_between(rng, 0, sizeof STATUSES / sizeof STATUSES[0])];

		sim_world_note(world, "api: answers %u requests with %d", count, status);
		cluster->counts.api_errors += count;
		control_plane_fail_next(cluster->plane, count, status);
		return;
	}
	case 4:
		sim_world_note(world, "api: forgets old versions");
		cluster->counts.compactions++;
		control_plane_set_expiry(cluster->plane, (enum api_expiry)rng_between(rng, 0, 3));
		control_plane_compact(cluster->plane);
		control_plane_end_watches(cluster->plane, rng_between(rng, 0, 2) == 0);
		return;
	case 5:
		sim_world_note(world, "api: ends watches");
		cluster->counts.ended_watches++;
		control_plane_end_watches(cluster->plane, rng_between(rng, 0, 2) == 0);
		return;
	default:
		sim_world_note(world, "api: the webhook is away");
		cluster->webhook_away = true;
		cluster->webhook_back_ns = time_in(cluster, rng, OUTAGE_HIGH_MS);
		cluster->counts.webhook_outages++;
		control_plane_set_webhook_available(cluster->plane, false);
		return;
	}
}

/* ---- the plugin ---- */

static void set_plugin_ready(struct sim_cluster *cluster, bool ready)
{
	struct error err;

	(void)control_plane_set_pod_ready(cluster->plane, "kube-system", SCHEDULER_POD, ready, &err);
}

/* Its pod may be seen not ready, or the agents may find out by themselves. */
static void disturb_plugin(struct sim_cluster *cluster, struct rng *rng)
{
	struct error err;

	sim_world_note(simulation_world(cluster->simulation), "plugin: restarts");
	cluster->plugin_away = true;
	cluster->plugin_back_ns = time_in(cluster, rng, OUTAGE_HIGH_MS);
	cluster->counts.plugin_outages++;
	if (rng_between(rng, 0, 2) == 0)
		set_plugin_ready(cluster, false);
	(void)scheduler_plugin_set_available(cluster->plugin, false, &err);
}

/* ---- guests ---- */

/* Its pod fails: a new one, with another name, takes its place. Not on the full node: the other VM may take its capacity. */
static void restart_vm(struct sim_vm *vm)
{
	struct sim_cluster *cluster = vm->cluster;
	struct error err;

	if (cluster->workload->has_full_node && vm->node == 1)
		return;
	sim_world_note(simulation_world(cluster->simulation), "vm %s: its pod fails", vm->name);
	if (!control_plane_restart_vm(cluster->plane, vm->name, &err))
		return; /* it has none at the moment */
	cluster->counts.vm_restarts++;
	vm->has_booted = false;
	vm->monitor_away = false; /* it comes back with the pod */
	guest_set_monitor_available(vm->guest, false);
}

static void disturb_guest(struct sim_cluster *cluster, struct rng *rng)
{
	struct sim_vm *vm = &cluster->vms[rng_between(rng, 0, cluster->workload->options.vms)];
	struct sim_world *world = simulation_world(cluster->simulation);

	switch (rng_between(rng, 0, 4)) {
	case 0:
		restart_vm(vm);
		return;
	case 1:
		sim_world_note(world, "vm %s: the monitor restarts", vm->name);
		vm->monitor_away = true;
		vm->monitor_back_ns = time_in(cluster, rng, OUTAGE_HIGH_MS);
		cluster->counts.monitor_outages++;
		guest_set_monitor_available(vm->guest, false);
		return;
	case 2: {
		enum guest_page_fault fault =
			(enum guest_page_fault)rng_between(rng, GUEST_PAGE_EMPTY, (uint64_t)GUEST_PAGE_CUT + 1);

		sim_world_note(world, "vm %s: fault %d of its pages", vm->name, (int)fault);
		vm->pages_bad = true;
		vm->pages_good_ns = time_in(cluster, rng, OUTAGE_HIGH_MS);
		cluster->counts.page_faults++;
		guest_set_page_fault(vm->guest, fault);
		return;
	}
	default: {
		struct guest_monitor_faults faults = {
			.postgres_down = rng_between(rng, 0, 3) == 0,
			.sampling_stalls = rng_between(rng, 0, 3) == 0,
			.work_ms = (uint32_t)rng_between(rng, 0, 7000),
		};

		sim_world_note(world, "vm %s: its monitor is ill (%d %d %u ms)", vm->name, faults.postgres_down,
		               faults.sampling_stalls, faults.work_ms);
		vm->monitor_bad = true;
		vm->monitor_good_ns = time_in(cluster, rng, OUTAGE_HIGH_MS);
		cluster->counts.monitor_faults++;
		guest_set_monitor_faults(vm->guest, &faults);
		return;
	}
	}
}

/* ---- any of them ---- */

static void disturb_loop(struct sim_cluster *cluster, struct rng *rng)
{
	struct loop *loop = sim_cluster_loop(cluster, (unsigned)rng_between(rng, 0, sim_cluster_loop_count(cluster)));

	switch (rng_between(rng, 0, 4)) {
	case 0:
		loop_sim_freeze(loop, time_in(cluster, rng, FREEZE_HIGH_MS));
		return;
	case 1:
		loop_sim_partition(loop, NULL, time_in(cluster, rng, PARTITION_HIGH_MS));
		return;
	case 2:
		loop_sim_step_clock(loop, (int64_t)(rng_between(rng, 0, 7200) * NS_PER_S) - INT64_C(3600) * NS_PER_S);
		return;
	default:
		(void)loop_sim_cut_connection(loop, rng_between(rng, 0, 5000), rng_between(rng, 0, 2) == 0);
		return;
	}
}

void sim_cluster_disturb(void *context, struct simulation *simulation, struct rng *rng)
{
	struct sim_cluster *cluster = context;

	(void)simulation;
	switch (rng_between(rng, 0, 5)) {
	case 0:
	case 1:
		if (!cluster->api_away)
			disturb_api(cluster, rng);
		return;
	case 2:
		if (!cluster->plugin_away)
			disturb_plugin(cluster, rng);
		return;
	case 3:
		disturb_guest(cluster, rng);
		return;
	default:
		disturb_loop(cluster, rng);
		return;
	}
}

/* ---- back to normal ---- */

static void restore_guest(struct sim_vm *vm, uint64_t now_ns)
{
	const struct guest_monitor_faults none = { 0 };

	if (vm->monitor_away && now_ns >= vm->monitor_back_ns) {
		vm->monitor_away = false;
		guest_set_monitor_available(vm->guest, true);
	}
	if (vm->pages_bad && now_ns >= vm->pages_good_ns) {
		vm->pages_bad = false;
		guest_set_page_fault(vm->guest, GUEST_PAGE_GOOD);
	}
	if (vm->monitor_bad && now_ns >= vm->monitor_good_ns) {
		vm->monitor_bad = false;
		guest_set_monitor_faults(vm->guest, &none);
	}
}

void sim_cluster_restore(struct sim_cluster *cluster, uint64_t now_ns)
{
	struct error err;

	if (cluster->api_away && now_ns >= cluster->api_back_ns) {
		cluster->api_away = false;
		control_plane_set_available(cluster->plane, true);
	}
	if (cluster->webhook_away && now_ns >= cluster->webhook_back_ns) {
		cluster->webhook_away = false;
		control_plane_set_webhook_available(cluster->plane, true);
	}
	if (cluster->plugin_away && now_ns >= cluster->plugin_back_ns) {
		cluster->plugin_away = !scheduler_plugin_set_available(cluster->plugin, true, &err);
		set_plugin_ready(cluster, !cluster->plugin_away);
	}
	for (unsigned i = 0; i < cluster->vm_count; i++)
		restore_guest(&cluster->vms[i], now_ns);
}

void sim_cluster_calm(void *context, struct simulation *simulation)
{
	struct sim_cluster *cluster = context;

	sim_world_heal(simulation_world(simulation));
	sim_cluster_restore(cluster, UINT64_MAX);
	control_plane_refuse_next(cluster->plane, 0);
	control_plane_fail_next(cluster->plane, 0, 0);
}
