/*
 * A simulated cluster that lives through storms and calm times, all of it fixed by one seed.
 *
 * Time goes in cycles: the workload's next phase begins and, most times, a storm with it, in which the network misbehaves
 * and parts crash, restart, freeze and refuse; then comes a calm, long enough for everything to be as it should be again,
 * and at its end that is checked. What must hold at every moment is checked after every step.
 *
 * What lives in the cluster are actors: the agents, the stand-ins of their peers, and whatever is added later. An actor
 * has loops of its own (net/loop_sim.h), a share in each storm, and invariants; a broken one ends the run, and the seed
 * and the last events are printed.
 */
#ifndef BALLAST_TESTS_SIM_SIMULATION_H
#define BALLAST_TESTS_SIM_SIMULATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "net/loop_sim.h"
#include "sim_case.h"

struct simulation;
struct sim_torture;

/*
 * A part of the cluster. To add one: make its loops with loop_sim_create, put everything on them, fill this in, and call
 * simulation_add. All functions may be NULL.
 */
struct sim_actor {
	const char *name;
	void *context;
	/*
	 * What may befall it in a storm: names, up to a NULL. A name that is there twice comes twice as often. strike is
	 * called again and again, with the index of one of them.
	 */
	const char *const *misfortunes;
	void (*strike)(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng);
	/* The storm is over: whatever is still wrong by the actor's doing must be undone now. */
	void (*calm)(void *context, struct simulation *simulation);
	/* A phase of the workload begins. */
	void (*begin_phase)(void *context, struct simulation *simulation, unsigned phase);
	/* After every step: what must hold at any time. Reports with simulation_broken. */
	void (*check)(void *context, struct simulation *simulation);
	/* Once a simulated second: what must hold at any time and takes longer to find out. */
	void (*check_second)(void *context, struct simulation *simulation);
	/* At the end of a calm: what must hold when nothing has gone wrong for simulation_settle_ns. */
	void (*check_settled)(void *context, struct simulation *simulation);
	/* The end: frees everything. Comes in the opposite order of simulation_add. */
	void (*destroy)(void *context, struct simulation *simulation);
};

enum {
	SIM_ACTORS_MAX = 16,
	/*
	 * So long after the last fault everybody knows what is in the object stores: dead connections have been found, after
	 * 20 to 30 s, and watches opened anew, after a back-off of up to 30 s.
	 */
	SIM_KNOWN_S = 65,
};

struct sim_options {
	uint64_t seed;
	double hours;                /* simulated */
	unsigned vms, nodes;         /* vms 0: no agents, and nothing around them */
	unsigned pods;               /* with claims; 0: no extender, and nothing around it */
	enum sim_storm storm;        /* the worst there may be */
	bool tls;                    /* of the API servers */
	bool memory;                 /* storms make allocations and socket calls fail, too */
	const char *log_path;        /* of agents and extender; NULL: none is written */
	struct sim_case *record;     /* what happens is added to it; NULL: it isn't kept */
	const struct sim_case *play; /* what happens; NULL: whatever the seed makes up, for so many hours */
	struct sim_torture *torture; /* torture.h; NULL: none */
};

/* Whether the run of the simulation so far is without fault. */
bool simulation_is_whole(const struct simulation *simulation);
/* An invariant doesn't hold: name is its name in the README, the rest says how. The first one counts. */
void simulation_broken(struct simulation *simulation, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
const char *simulation_broken_name(const struct simulation *simulation);
const char *simulation_broken_text(const struct simulation *simulation);

struct simulation *simulation_create(const struct sim_options *options, struct error *err);
bool simulation_add(struct simulation *simulation, const struct sim_actor *actor);
/* True if every invariant held to the end. */
bool simulation_run(struct simulation *simulation);
/* With all actors; then looks whether they left anything behind. */
void simulation_end(struct simulation *simulation);
void simulation_destroy(struct simulation *simulation);

struct sim_world *simulation_world(struct simulation *simulation);
const struct sim_options *simulation_options(const struct simulation *simulation);
uint64_t simulation_now_ns(const struct simulation *simulation);
bool simulation_in_storm(const struct simulation *simulation);
/* Since when there has been no storm; UINT64_MAX while there is one. */
uint64_t simulation_calm_since_ns(const struct simulation *simulation);
/* Whether nothing had gone wrong for so long at that time, and nothing has since. */
bool simulation_was_calm(const struct simulation *simulation, uint64_t at_ns, unsigned seconds);
/* Likewise, now. */
bool simulation_is_calm(const struct simulation *simulation, unsigned seconds);
/* The longest that parts may need to find each other and do what is to be done, after the last fault. */
uint64_t simulation_settle_ns(const struct simulation *simulation);

struct sim_counts {
	uint64_t steps;
	unsigned cycles, storms;
};

struct sim_counts simulation_counts(const struct simulation *simulation);

#endif
