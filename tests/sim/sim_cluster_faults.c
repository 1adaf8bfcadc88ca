#include "sim_cluster_internal.h"

/* How long anything is away or ill. */
static uint64_t time_in(const struct sim_cluster *cluster, struct rng *rng)
{
	return sim_peer_until_ns(cluster->simulation, rng, SIM_PEER_OUTAGE_HIGH_MS);
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
		vm->monitor_back_ns = time_in(cluster, rng);
		cluster->counts.monitor_outages++;
		guest_set_monitor_available(vm->guest, false);
		return;
	case 2: {
		enum guest_page_fault fault =
			(enum guest_page_fault)rng_between(rng, GUEST_PAGE_EMPTY, (uint64_t)GUEST_PAGE_CUT + 1);

		sim_world_note(world, "vm %s: fault %d of its pages", vm->name, (int)fault);
		vm->pages_bad = true;
		vm->pages_good_ns = time_in(cluster, rng);
		cluster->counts.page_faults++;
		guest_set_page_fault(vm->guest, fault);
		return;
	}
	default: {
		struct guest_monitor_faults faults = { .postgres_down = rng_between(rng, 0, 3) == 0 };

		faults.sampling_stalls = rng_between(rng, 0, 3) == 0;
		faults.work_ms = (uint32_t)rng_between(rng, 0, 7000);
		sim_world_note(world, "vm %s: its monitor is ill (%d %d %u ms)", vm->name, faults.postgres_down,
		               faults.sampling_stalls, faults.work_ms);
		vm->monitor_bad = true;
		vm->monitor_good_ns = time_in(cluster, rng);
		cluster->counts.monitor_faults++;
		guest_set_monitor_faults(vm->guest, &faults);
		return;
	}
	}
}

/* ---- any of them ---- */

static void strike_loop(struct sim_cluster *cluster, enum sim_peer_misfortune misfortune, struct rng *rng)
{
	unsigned index = (unsigned)rng_between(rng, 0, sim_cluster_loop_count(cluster));

	sim_peer_strike(cluster->simulation, sim_cluster_loop(cluster, index), misfortune, rng);
}

/* First those of an API server, last those of any peer. */
const char *const SIM_CLUSTER_MISFORTUNES[] = {
	[SIM_API_RESTART] = "api-restart",
	[SIM_API_REFUSE] = "api-429",
	[SIM_API_FAIL] = "api-error",
	[SIM_API_FAIL_AGAIN] = "api-error",
	[SIM_API_FORGET] = "api-forgets",
	[SIM_API_END_WATCHES] = "api-ends-watches",
	[SIM_API_WEBHOOK] = "api-webhook",
	"monitor-restart",
	"monitor-restart",
	"bad-page",
	"ill-monitor",
	"peer-freeze",
	"peer-partition",
	"peer-clock",
	"peer-cut",
	NULL,
};

enum { FIRST_OF_GUESTS = SIM_API_MISFORTUNES, FIRST_OF_LOOPS = FIRST_OF_GUESTS + 4 };

void sim_cluster_strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng)
{
	struct sim_cluster *cluster = context;

	(void)simulation;
	if (misfortune >= FIRST_OF_LOOPS)
		strike_loop(cluster, (enum sim_peer_misfortune)(misfortune - FIRST_OF_LOOPS), rng);
	else if (misfortune >= FIRST_OF_GUESTS)
		strike_guest(cluster, misfortune - FIRST_OF_GUESTS, rng);
	else
		sim_api_strike(&cluster->api, (enum sim_api_misfortune)misfortune, rng);
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
	sim_api_restore(&cluster->api, now_ns);
	sim_schedulers_restore(cluster, now_ns);
	for (unsigned i = 0; i < cluster->vm_count; i++)
		restore_guest(&cluster->vms[i], now_ns);
}

void sim_cluster_calm(void *context, struct simulation *simulation)
{
	struct sim_cluster *cluster = context;

	sim_world_heal(simulation_world(simulation));
	sim_api_calm(&cluster->api);
	sim_cluster_restore(cluster, UINT64_MAX);
	for (unsigned i = 0; i < cluster->workload->options.vms; i++)
		cluster->vms[i].back_ns = 0;
}
