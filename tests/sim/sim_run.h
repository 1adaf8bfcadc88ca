/*
 * One run of a simulated cluster, from its making to its end.
 */
#ifndef BALLAST_TESTS_SIM_SIM_RUN_H
#define BALLAST_TESTS_SIM_SIM_RUN_H

#include "sim_agent.h"
#include "sim_cluster.h"
#include "sim_command_line.h"
#include "sim_extender_report.h"
#include "sim_receiver.h"

/* What a run found, once everything of it is gone. */
struct sim_outcome {
	bool whole;
	char broken[64]; /* the invariant */
	uint64_t hash, events;
	struct sim_counts counts;
	struct sim_cluster_counts cluster;
	struct sim_receiver_counts receiver;
	struct sim_bills_counts bills;
	struct sim_process_counts agents[SIM_CLUSTER_AGENTS];
	struct sim_extender_outcome storage;
	uint64_t faults[SIM_FAULTS];
	uint64_t simulated_ns;
};

/* False when it couldn't begin. A broken invariant is told on standard output, unless the command says quiet. */
bool sim_run(const struct sim_command *command, struct sim_outcome *ret_outcome, struct error *err);

#endif
