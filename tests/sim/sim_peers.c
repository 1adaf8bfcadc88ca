#include "sim_peers.h"

enum {
	OUTAGE_LOW_MS = 200,
	PARTITION_HIGH_MS = 70000,
	FREEZE_HIGH_MS = 15000,
	CLOCK_STEP_S = 3600, /* at most, in either direction */
	CUT_BYTES = 5000,
	REFUSALS_MAX = 6,
};

uint64_t sim_peer_until_ns(const struct simulation *simulation, struct rng *rng, uint64_t most_ms)
{
	return simulation_now_ns(simulation) + rng_between(rng, OUTAGE_LOW_MS, most_ms) * NS_PER_MS;
}

void sim_peer_strike(const struct simulation *simulation, struct loop *loop, enum sim_peer_misfortune misfortune,
                     struct rng *rng)
{
	bool silent;

	switch (misfortune) {
	case SIM_PEER_FREEZE:
		loop_sim_freeze(loop, sim_peer_until_ns(simulation, rng, FREEZE_HIGH_MS));
		return;
	case SIM_PEER_PARTITION:
		loop_sim_partition(loop, NULL, sim_peer_until_ns(simulation, rng, PARTITION_HIGH_MS));
		return;
	case SIM_PEER_CLOCK:
		loop_sim_step_clock(loop, (int64_t)(rng_between(rng, 0, 2 * CLOCK_STEP_S) * NS_PER_S) -
		                                  (int64_t)CLOCK_STEP_S * NS_PER_S);
		return;
	default:
		silent = rng_between(rng, 0, 2) == 0;
		(void)loop_sim_cut_connection(loop, rng_between(rng, 0, CUT_BYTES), silent);
		return;
	}
}

/* ---- API servers ---- */

static void end_watches(struct sim_api *api, struct rng *rng)
{
	control_plane_end_watches(api->plane, rng_between(rng, 0, 2) == 0);
}

static void fail(struct sim_api *api, unsigned count, struct rng *rng)
{
	static const int STATUSES[] = { 409, 410, 500, 503, 504 };
	int status = STATUSES[rng_between(rng, 0, sizeof STATUSES / sizeof STATUSES[0])];

	sim_world_note(simulation_world(api->simulation), "%s: answers %u requests with %d", api->name, count, status);
	api->counts.errors += count;
	control_plane_fail_next(api->plane, count, status);
}

void sim_api_strike(struct sim_api *api, enum sim_api_misfortune misfortune, struct rng *rng)
{
	struct sim_world *world = simulation_world(api->simulation);
	unsigned count;

	if (api->away)
		return;
	count = (unsigned)rng_between(rng, 1, REFUSALS_MAX);
	if (misfortune == SIM_API_ANY)
		misfortune = (enum sim_api_misfortune)rng_between(rng, 0, SIM_API_WEBHOOK);
	switch (misfortune) {
	case SIM_API_RESTART:
		sim_world_note(world, "%s: restarts", api->name);
		api->away = true;
		api->back_ns = sim_peer_until_ns(api->simulation, rng, SIM_PEER_OUTAGE_HIGH_MS);
		api->counts.outages++;
		control_plane_set_available(api->plane, false);
		return;
	case SIM_API_REFUSE:
		sim_world_note(world, "%s: refuses %u requests with 429", api->name, count);
		api->counts.errors += count;
		control_plane_refuse_next(api->plane, count);
		return;
	case SIM_API_FAIL:
	case SIM_API_FAIL_AGAIN:
		fail(api, count, rng);
		return;
	case SIM_API_FORGET:
		sim_world_note(world, "%s: forgets old versions", api->name);
		api->counts.compactions++;
		control_plane_set_expiry(api->plane, (enum api_expiry)rng_between(rng, 0, 3));
		control_plane_compact(api->plane);
		end_watches(api, rng);
		return;
	case SIM_API_WEBHOOK:
		sim_world_note(world, "%s: the webhook is away", api->name);
		api->webhook_away = true;
		api->webhook_back_ns = sim_peer_until_ns(api->simulation, rng, SIM_PEER_OUTAGE_HIGH_MS);
		api->counts.webhook_outages++;
		control_plane_set_webhook_available(api->plane, false);
		return;
	default:
		sim_world_note(world, "%s: ends watches", api->name);
		api->counts.ended_watches++;
		end_watches(api, rng);
		return;
	}
}

void sim_api_restore(struct sim_api *api, uint64_t now_ns)
{
	if (api->away && now_ns >= api->back_ns) {
		api->away = false;
		control_plane_set_available(api->plane, true);
	}
	if (api->webhook_away && now_ns >= api->webhook_back_ns) {
		api->webhook_away = false;
		control_plane_set_webhook_available(api->plane, true);
	}
}

void sim_api_calm(struct sim_api *api)
{
	sim_api_restore(api, UINT64_MAX);
	control_plane_refuse_next(api->plane, 0);
	control_plane_fail_next(api->plane, 0, 0);
}

void sim_api_check_settled(const struct sim_api *api)
{
	if (control_plane_counters(api->plane).unauthorized != 0)
		simulation_broken(api->simulation, "authorized",
		                  "%s: requests came without a valid token, or without the right", api->name);
}
