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
	bool small_queue; /* for events */
	struct agent_arguments arguments;
	struct sim_process process;

	/* Of the process, if there is one. */
	struct agent agent;
	struct sim_life *life; /* for its bills; NULL: none */
	char life_name[SIM_LIFE_NAME_BYTES];
	bool starved; /* an allocation failed in it */
	unsigned first_quiet_vms;
};

/* Once a second, when it must have heard of everything: whether it looks after the right VMs. */
void sim_agent_check_view(struct sim_agent *self);
/* After each of its turns: sim_agent_bills.c. */
void sim_agent_note_bills(struct sim_agent *self);

/* Of struct sim_actor; context: the agent. */
void sim_agent_check_second(void *context, struct simulation *simulation);
void sim_agent_check_settled(void *context, struct simulation *simulation);

#endif
