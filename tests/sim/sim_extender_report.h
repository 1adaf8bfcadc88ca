/*
 * What a run found on the extender's side, for people.
 */
#ifndef BALLAST_TESTS_SIM_SIM_EXTENDER_REPORT_H
#define BALLAST_TESTS_SIM_SIM_EXTENDER_REPORT_H

#include "sim_answers.h"
#include "sim_extender.h"
#include "sim_pods.h"

struct sim_extender_outcome {
	struct sim_pods_counts pods;
	struct sim_answers_counts answers;
	struct sim_extender_counts extender;
};

/* One line. */
void sim_extender_print(const struct sim_extender_outcome *outcome);
/* The faults of several runs. */
void sim_extender_add(struct sim_extender_outcome *sum, const struct sim_extender_outcome *outcome);
void sim_extender_print_faults(const struct sim_extender_outcome *sum);

#endif
