/*
 * Working-set size of a cache from a series of estimates over growing windows (spec agent-core G-8, G-9). Pure.
 */
#ifndef BALLAST_AGENT_CORE_WORKING_SET_H
#define BALLAST_AGENT_CORE_WORKING_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * The size where the series stops growing at an even pace: the first element, from initial_offset on, after which the
 * growth over window_size - 1 steps is more than max_increase_factor times the growth before it; else the last element.
 * ERROR_INVARIANT for window_size < 2, initial_offset < window_size - 1, or an empty series.
 */
bool working_set_estimate(const double *series, size_t count, double max_increase_factor, int64_t initial_offset,
                          int64_t window_size, double *ret_pages, struct error *err);

/*
 * The highest value reached when each growth step goes on for project_length more steps. ERROR_INVARIANT below 2
 * elements.
 */
bool working_set_project_next_highest(const double *series, size_t count, double project_length, double *ret_pages,
                                      struct error *err);

#endif
