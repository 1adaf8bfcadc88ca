/*
 * What the files of the simulated agent share: sim_agent.c has its life, sim_agent_checks.c its invariants.
 */
#ifndef BALLAST_TESTS_SIM_SIM_AGENT_INTERNAL_H
#define BALLAST_TESTS_SIM_SIM_AGENT_INTERNAL_H

#include "agent/agent_internal.h"
#include "sim_agent.h"

enum { SIM_AGENT_PATH_BYTES = AGENT_SETUP_PATH_BYTES + 64, SIM_AGENT_NAME_BYTES = 24 };

struct sim_agent {
	struct simulation *simulation;
	struct sim_agent_options options;
	char name[SIM_AGENT_NAME_BYTES];
	char node[SIM_AGENT_NAME_BYTES];
	char ip[ADDRESS_TEXT_BYTES], api_host[ADDRESS_TEXT_BYTES], api_port[8];
	char config_path[SIM_AGENT_PATH_BYTES], credentials_dir[SIM_AGENT_PATH_BYTES];
	int log_descriptor;
	struct agent_arguments arguments;

	/* The process, if there is one. */
	bool runs;
	bool ending; /* told to end in good order */
	uint64_t start_again_ns;
	unsigned patience; /* of those who kill processes */
	bool small_queue;  /* for events */
	int64_t clock_error_ns;
	uint64_t frozen_until_ns;
	struct loop *loop;
	struct log_sink *log_sink;
	struct agent agent;
	struct sim_life *life; /* of the process, for its bills; NULL: none */
	char life_name[SIM_LIFE_NAME_BYTES];
	uint64_t told_to_end_ns;

	/* What is counted as its own: while its code runs. */
	unsigned long blocks_before; /* of the process at large, when its code began to run */
	long blocks;
	unsigned long fail_allocation_in; /* 0: none is to fail */
	bool starved;                     /* an allocation failed in this process */
	uint64_t turns_this_second;
	uint64_t missing_since_ns; /* the runners aren't those that must be */
	bool is_missing;
	unsigned quiet_checks;
	unsigned long first_quiet_blocks;
	unsigned first_quiet_vms;
	struct sim_agent_counts *counts;
};

/* Once a second, when it must have heard of everything: whether it looks after the right VMs. */
void sim_agent_check_view(struct sim_agent *self);
/* After each of its turns: sim_agent_bills.c. */
void sim_agent_note_bills(struct sim_agent *self);

/* Of struct sim_actor; context: the agent. */
void sim_agent_check(void *context, struct simulation *simulation);
void sim_agent_check_second(void *context, struct simulation *simulation);
void sim_agent_check_settled(void *context, struct simulation *simulation);

#endif
