/*
 * What a guest's pages and its vm-monitor see in a phase of the workload: the numbers from which an agent that follows the
 * shipped configuration must come to the size that the workload states.
 */
#ifndef BALLAST_SANDBOX_DEMAND_H
#define BALLAST_SANDBOX_DEMAND_H

#include <stdint.h>

#include "sandbox/guest.h"
#include "sandbox/workload.h"

/* Depends on the memory the guest has: it can't use more than that. To be asked again whenever that changes. */
struct guest_demand demand_of_phase(const struct workload_phase *phase, uint64_t plugged_bytes);
/* The same for an agent and a vm-monitor of late 2023, which come to other sizes from the same pages. */
struct guest_demand demand_of_phase_2023(const struct workload_phase *phase, uint64_t plugged_bytes);

#endif
