/*
 * A simulated extender process (sim_process.h). Somebody asks its ports all the time, in good manners and bad ones
 * (sim_prober.c).
 *
 * It is looked into: calls end, caches are as the store, memory, sockets and timers come back to what they were, and a
 * process that ends leaves nothing behind.
 */
#ifndef BALLAST_TESTS_SIM_SIM_EXTENDER_H
#define BALLAST_TESTS_SIM_SIM_EXTENDER_H

#include "sandbox/agent_setup.h"
#include "sim_pods.h"
#include "sim_process.h"

struct sim_extender_counts {
	struct sim_process_counts process;
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
