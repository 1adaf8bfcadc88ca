/*
 * A simulated extender process: the unchanged extender on a loop of its own. It crashes and is started again, is told to
 * end, freezes, loses its network, runs out of memory, and has its clock set. Somebody asks its ports all the time, in good
 * manners and bad ones (sim_prober.c).
 *
 * It is looked into: calls end, caches are as the store, memory, sockets and timers come back to what they were, and a
 * process that ends leaves nothing behind.
 */
#ifndef BALLAST_TESTS_SIM_SIM_EXTENDER_H
#define BALLAST_TESTS_SIM_SIM_EXTENDER_H

#include "sandbox/agent_setup.h"
#include "sim_pods.h"
#include "simulation.h"

struct sim_extender_counts {
	unsigned starts, crashes, fatal_exits, orderly_ends;
	unsigned failed_allocations, failed_calls;
	uint64_t turns;
	uint64_t most_turns_per_second;
	/* The most that was seen when all was quiet. */
	unsigned long quiet_blocks;
	size_t quiet_sockets, quiet_timers;
	/* Of whoever asks. */
	unsigned probes, junk, hangups, readiness_flips;
};

struct sim_extender_options {
	const struct agent_setup *setup; /* a folder, for the extender's files */
	struct sim_pods *pods;
	struct sim_extender_counts *counts; /* zero; complete when the simulation has ended */
};

/* Adds itself to the simulation as an actor, which frees it. What the options point at must outlive it. */
bool sim_extender_create(struct simulation *simulation, const struct sim_extender_options *options, struct error *err);

#endif
