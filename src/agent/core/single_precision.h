/*
 * The measurements as the agent of late 2023 works them out: in 32 bits (spec generations 3, G6).
 */
#ifndef BALLAST_AGENT_CORE_SINGLE_PRECISION_H
#define BALLAST_AGENT_CORE_SINGLE_PRECISION_H

#include "agent/core/vm_metrics.h"

/*
 * From the four values of a page, each read straight to 32 bits: memory in use is total minus available plus 100 MiB,
 * rounded to 32 bits after each step. Memory of the file cache is 0. What isn't finite stays so.
 */
struct system_metrics system_metrics_from_single(float load_average_1_min, float load_average_5_min,
                                                 float memory_total_bytes, float memory_available_bytes);

#endif
