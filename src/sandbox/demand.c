/*
 * The formulas of spec agent-core 5, backwards, with the shipped fractions: load 0.9, memory used 0.75, cache to memory 0.75.
 * Each number is chosen a good part of a unit below the point where the next larger size would begin, so that neither
 * rounding nor the kilobytes of the pages matter.
 */
#include "sandbox/demand.h"

static const double MIB = 1024.0 * 1024.0;
static const double UNIT_MIB = 1024;

static const double LOAD_TARGET = 0.9;
static const double MEMORY_TARGET_MIB = 768; /* of one unit */
static const double KERNEL_MIB = 100;        /* what the agent adds to memory in use */
static const double USABLE_FRACTION = 0.9;   /* of the memory plugged; the kernel keeps the rest */
static const double CACHED_MIB = 100;
static const double LFC_PAGES_OF_UNIT = 0.75 * 131072; /* pages of 8 KiB in a unit, of which the cache gets 0.75 */
static const double IDLE_UNITS = 0.3;                  /* the load of a VM that needs its size for another reason */
static const double LOAD_MEMORY = 0.6; /* GiB of memory that a unit of load comes with: speaks for 0.8 units */

enum { WINDOWS = 60 };

static double load_of(double units)
{
	return units * WORKLOAD_UNIT_CPU_MILLI / 1000.0 * LOAD_TARGET;
}

static double at_most(double value, double limit)
{
	return value < limit ? value : limit;
}

/*
 * Anonymous memory with which the monitor lets `units` pass and denies one less (surroundings 2.4): its threshold is 0.85 of
 * all but 100 MiB, and it wants 100 MiB of room below it.
 */
static double memory_that_holds_mib(unsigned units)
{
	return 870.0 * units - 485;
}

/*
 * The same for a monitor of late 2023, whose threshold leaves room for the file cache, a quarter of the memory (but for
 * the smallest VM). It asks for more as long as the VM is smaller.
 */
static double memory_that_holds_2023_mib(unsigned units)
{
	return units > 1 ? 256.0 * units - 160 : 150;
}

struct guest_demand demand_of_phase(const struct workload_phase *phase, uint64_t plugged_bytes)
{
	double usable_mib = USABLE_FRACTION * (double)plugged_bytes / MIB;
	double loaded_units = phase->cause == WORKLOAD_CAUSE_LOAD ? phase->demand : 1;
	double used_mib = LOAD_MEMORY * UNIT_MIB * loaded_units - KERNEL_MIB;
	double load = load_of(phase->cause == WORKLOAD_CAUSE_LOAD ? phase->demand : IDLE_UNITS);
	struct guest_demand demand = { .memory_cached_bytes = (uint64_t)(CACHED_MIB * MIB) };

	if (phase->cause == WORKLOAD_CAUSE_MEMORY)
		used_mib = (phase->demand - 0.2) * MEMORY_TARGET_MIB - KERNEL_MIB;
	used_mib = at_most(used_mib, usable_mib);
	demand.load_average_1_min = load;
	demand.load_average_5_min = load;
	demand.memory_used_bytes = (uint64_t)(used_mib * MIB);
	demand.cgroup_used_bytes =
		phase->held != 0 ? (uint64_t)(memory_that_holds_mib(phase->held) * MIB) : demand.memory_used_bytes;
	if (phase->cause == WORKLOAD_CAUSE_LFC) {
		for (unsigned i = 0; i < WINDOWS; i++)
			demand.working_set_pages[i] = (uint64_t)((phase->demand - 0.3) * LFC_PAGES_OF_UNIT);
	}
	return demand;
}

/*
 * Memory counts in whole units, rounded down (generations 3, G4): so a VM whose memory is full doesn't look too small,
 * and it is the monitor that asks for more, unit by unit. Load leaves the monitor alone. The cache's page is there, for
 * nobody to read.
 */
struct guest_demand demand_of_phase_2023(const struct workload_phase *phase, uint64_t plugged_bytes)
{
	struct guest_demand demand = demand_of_phase(phase, plugged_bytes);
	double used_mib = (phase->demand + 0.3) * MEMORY_TARGET_MIB - KERNEL_MIB;

	demand.cgroup_used_bytes = (uint64_t)(memory_that_holds_2023_mib(1) * MIB);
	if (phase->cause == WORKLOAD_CAUSE_MEMORY) {
		used_mib = at_most(used_mib, USABLE_FRACTION * (double)plugged_bytes / MIB);
		demand.memory_used_bytes = (uint64_t)(used_mib * MIB);
		demand.cgroup_used_bytes = (uint64_t)(memory_that_holds_2023_mib(phase->demand) * MIB);
	}
	if (phase->held != 0)
		demand.cgroup_used_bytes = (uint64_t)(memory_that_holds_2023_mib(phase->held) * MIB);
	return demand;
}
