/*
 * What ballast-sim is asked to do.
 */
#ifndef BALLAST_TESTS_SIM_SIM_COMMAND_LINE_H
#define BALLAST_TESTS_SIM_SIM_COMMAND_LINE_H

#include "simulation.h"

struct sim_command {
	struct sim_options sim;
	unsigned long seeds;
	unsigned long points, from;
	const char *torture, *victim; /* torture NULL: none */
	const char *record_path, *play_path;
	bool trace;
	bool stop;  /* at the first seed that is broken */
	bool quiet; /* nothing of broken ones */
	bool help;  /* and nothing else */
};

/* False, when that was said on standard error, for wrong usage. */
bool sim_command_line_read(int argc, char **argv, struct sim_command *ret_command);
void sim_command_line_help(void);

#endif
