#include "sim_cluster_internal.h"

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

static void strike_api(struct sim_cluster *cluster, unsigned misfortune, struct rng *rng)
{
	static const int STATUSES[] = { 409, 410, 500, 503, 504 };
	struct sim_world *world = simulation_world(cluster->simulation);
	unsigned count = (unsigned)rng_between(rng, 1, REFUSALS_MAX);

	switch (misfortune) {
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

/* ---- guests ---- */

static void strike_guest(struct sim_cluster *cluster, unsigned misfortune, struct rng *rng)
{
	struct sim_vm *vm = &cluster->vms[rng_between(rng, 0, cluster->workload->options.vms)];
	struct sim_world *world = simulation_world(cluster->simulation);

	if (vm->is_deleted || vm->is_stopped)
		return;
	switch (misfortune) {
	case 0:
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

static void strike_loop(struct sim_cluster *cluster, unsigned misfortune, struct rng *rng)
{
	struct loop *loop = sim_cluster_loop(cluster, (unsigned)rng_between(rng, 0, sim_cluster_loop_count(cluster)));

	switch (misfortune) {
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

const char *const SIM_CLUSTER_MISFORTUNES[] = {
	"api-restart",    "api-429",         "api-error",       "api-error", "api-forgets", "api-ends-watches",
	"api-webhook",    "monitor-restart", "monitor-restart", "bad-page",  "ill-monitor", "peer-freeze",
	"peer-partition", "peer-clock",      "peer-cut",        NULL,
};

enum { FIRST_OF_GUESTS = 7, FIRST_OF_LOOPS = 11 };

void sim_cluster_strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng)
{
	struct sim_cluster *cluster = context;

	(void)simulation;
	if (misfortune >= FIRST_OF_LOOPS)
		strike_loop(cluster, misfortune - FIRST_OF_LOOPS, rng);
	else if (misfortune >= FIRST_OF_GUESTS)
		strike_guest(cluster, misfortune - FIRST_OF_GUESTS, rng);
	else if (!cluster->api_away)
		strike_api(cluster, misfortune, rng);
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
	if (cluster->api_away && now_ns >= cluster->api_back_ns) {
		cluster->api_away = false;
		control_plane_set_available(cluster->plane, true);
	}
	if (cluster->webhook_away && now_ns >= cluster->webhook_back_ns) {
		cluster->webhook_away = false;
		control_plane_set_webhook_available(cluster->plane, true);
	}
	sim_schedulers_restore(cluster, now_ns);
	for (unsigned i = 0; i < cluster->vm_count; i++)
		restore_guest(&cluster->vms[i], now_ns);
}

void sim_cluster_calm(void *context, struct simulation *simulation)
{
	struct sim_cluster *cluster = context;

	sim_world_heal(simulation_world(simulation));
	sim_cluster_restore(cluster, UINT64_MAX);
	for (unsigned i = 0; i < cluster->workload->options.vms; i++)
		cluster->vms[i].back_ns = 0;
	control_plane_refuse_next(cluster->plane, 0);
	control_plane_fail_next(cluster->plane, 0, 0);
}
