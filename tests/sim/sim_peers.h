/*
 * What befalls the stand-ins around agents and extender alike: an API server, and any process.
 */
#ifndef BALLAST_TESTS_SIM_SIM_PEERS_H
#define BALLAST_TESTS_SIM_SIM_PEERS_H

#include <stdbool.h>

#include "sandbox/control_plane.h"
#include "simulation.h"

enum { SIM_PEER_OUTAGE_HIGH_MS = 25000 };

/* The end of something that begins now and takes most_ms at most. */
uint64_t sim_peer_until_ns(const struct simulation *simulation, struct rng *rng, uint64_t most_ms);

enum sim_peer_misfortune {
	SIM_PEER_FREEZE,
	SIM_PEER_PARTITION, /* from everybody */
	SIM_PEER_CLOCK,
	SIM_PEER_CUT,
	SIM_PEER_MISFORTUNES,
};

void sim_peer_strike(const struct simulation *simulation, struct loop *loop, enum sim_peer_misfortune misfortune,
                     struct rng *rng);

/* ---- API servers ---- */

enum sim_api_misfortune {
	SIM_API_RESTART,
	SIM_API_REFUSE, /* with 429 */
	SIM_API_FAIL,
	SIM_API_FAIL_AGAIN, /* twice as often as the others */
	SIM_API_FORGET,
	SIM_API_END_WATCHES,
	SIM_API_WEBHOOK, /* only the agents' has one */
	SIM_API_MISFORTUNES,
	SIM_API_ANY = SIM_API_MISFORTUNES /* one of those before the webhook */
};

/* Nothing but counts. */
struct sim_api_counts {
	unsigned outages, errors, compactions, ended_watches, webhook_outages;
};

/* Zero but for the first three. */
struct sim_api {
	struct simulation *simulation;
	struct control_plane *plane;
	const char *name; /* for the trace */
	bool away;        /* until back_ns */
	bool webhook_away;
	uint64_t back_ns, webhook_back_ns;
	struct sim_api_counts counts;
};

/* Nothing more befalls one that is away. */
void sim_api_strike(struct sim_api *api, enum sim_api_misfortune misfortune, struct rng *rng);
/* Brings back what has been away for its time; UINT64_MAX: now. */
void sim_api_restore(struct sim_api *api, uint64_t now_ns);
/* It answers as it should. */
void sim_api_calm(struct sim_api *api);
/* At the end of a calm: nobody asked for what it may not. */
void sim_api_check_settled(const struct sim_api *api);

#endif
