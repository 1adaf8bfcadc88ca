/*
 * What the process of the simulator needs before the first run, so that every run finds the same.
 */
#ifndef BALLAST_TESTS_SIM_SIM_PREPARE_H
#define BALLAST_TESTS_SIM_SIM_PREPARE_H

#include <stdbool.h>

#include "base/error.h"

bool sim_prepare(struct error *err);

#endif
