/*
 * The size of a VM as the sandbox counts it: CPU, and slots of memory.
 */
#ifndef BALLAST_SANDBOX_CLUSTER_SIZE_H
#define BALLAST_SANDBOX_CLUSTER_SIZE_H

#include <stdbool.h>
#include <stdint.h>

enum { CLUSTER_SIZE_TEXT_BYTES = 48 };

struct cluster_size {
	uint32_t cpu_milli;
	unsigned slots;
};

/* So many compute units of the workload. */
struct cluster_size cluster_units(unsigned units);
bool cluster_size_equal(struct cluster_size a, struct cluster_size b);
/* a is larger in CPU or in memory. */
bool cluster_size_is_larger(struct cluster_size a, struct cluster_size b);
/* "3 CU", or "750m CPU and 4 slots" if that isn't the same in both. */
void cluster_size_print(struct cluster_size size, char text[CLUSTER_SIZE_TEXT_BYTES]);

#endif
