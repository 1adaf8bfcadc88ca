/*
 * A simulated agent process (sim_process.h), as one of the cluster's nodes has it. It is killed by its own fatal failures
 * as the real one.
 *
 * It is looked into: no request may stay under way for ever, no run may end by a broken invariant of the core, memory,
 * sockets and timers must come back to what they were, and a process that ends must leave nothing behind.
 */
#ifndef BALLAST_TESTS_SIM_SIM_AGENT_H
#define BALLAST_TESTS_SIM_SIM_AGENT_H

#include "sandbox/agent_setup.h"
#include "sim_cluster.h"
#include "sim_process.h"
#include "sim_receiver.h"

struct sim_agent_options {
	unsigned node; /* 0: node-a */
	const struct agent_setup *setup;
	struct sim_cluster *cluster;
	struct sim_receiver *receiver;
	struct sim_process_counts *counts; /* zero; complete when the simulation has ended */
};

/* Adds itself to the simulation as an actor, which frees it. What the options point at must outlive it. */
bool sim_agent_create(struct simulation *simulation, const struct sim_agent_options *options, struct error *err);

#endif
