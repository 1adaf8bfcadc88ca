#include "sandbox/cluster_size.h"

#include <stdio.h>

#include "sandbox/workload.h"

struct cluster_size cluster_units(unsigned units)
{
	return (struct cluster_size){ .cpu_milli = units * WORKLOAD_UNIT_CPU_MILLI, .slots = units };
}

bool cluster_size_equal(struct cluster_size a, struct cluster_size b)
{
	return a.cpu_milli == b.cpu_milli && a.slots == b.slots;
}

bool cluster_size_is_larger(struct cluster_size a, struct cluster_size b)
{
	return a.cpu_milli > b.cpu_milli || a.slots > b.slots;
}

void cluster_size_print(struct cluster_size size, char text[CLUSTER_SIZE_TEXT_BYTES])
{
	if (cluster_size_equal(size, cluster_units(size.slots)))
		(void)snprintf(text, CLUSTER_SIZE_TEXT_BYTES, "%u CU", size.slots);
	else
		(void)snprintf(text, CLUSTER_SIZE_TEXT_BYTES, "%um CPU and %u slots", size.cpu_milli, size.slots);
}
