/*
 * What is told of runs, for people.
 */
#ifndef BALLAST_TESTS_SIM_SIM_REPORT_H
#define BALLAST_TESTS_SIM_SIM_REPORT_H

#include "sim_run.h"

void sim_report_broken(const struct sim_options *options, const char *name, const char *text);
/* A line for each side. */
void sim_report_outcome(const struct sim_options *options, const struct sim_outcome *outcome);
/* Adds what sim_report_faults tells of several runs. */
void sim_report_add(struct sim_outcome *sum, const struct sim_outcome *outcome);
void sim_report_faults(const struct sim_options *options, const struct sim_outcome *sum);

#endif
