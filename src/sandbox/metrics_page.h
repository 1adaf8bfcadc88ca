/*
 * The system metrics page of a VM as its collector prints it (spec surroundings 4.1): every sample with the guest's
 * host name and a timestamp, loads as widened 32-bit floats, memory in the kernel's kB times 1000.
 */
#ifndef BALLAST_SANDBOX_METRICS_PAGE_H
#define BALLAST_SANDBOX_METRICS_PAGE_H

#include <stdint.h>

#include "base/buffer.h"

enum {
	METRICS_PAGE_BYTES_MAX = 4 * 1024 * 1024,
	METRICS_PAGE_PADDING_KB_MAX = 1024,
};

/* What a page is made of. */
struct metrics_page {
	const char *host_name;
	int64_t boot_wall_ns;
	int64_t wall_ns;       /* of the collection */
	uint64_t memory_bytes; /* plugged */
	/* Total − available on the page, rounded to 1000; no more than the total. */
	uint64_t memory_used_bytes;
	uint64_t memory_cached_bytes; /* likewise */
	uint64_t anonymous_bytes;     /* of the cgroup of Postgres */
	double load_average_1_min, load_average_5_min, load_average_15_min;
	double busy_cpu_s;  /* of all CPUs together, since boot */
	uint32_t cpu_milli; /* plugged; a part of a CPU shows as a whole one */
	const char *prefix; /* of the families' names; NULL: "host_" */
	/* About this much is added: more disks, then more mounts. Up to METRICS_PAGE_PADDING_KB_MAX. */
	unsigned padding_kb;
};

/* What the kernel of a VM with that much memory calls MemTotal, in its kB of 1024 bytes. */
uint64_t metrics_page_kernel_kb(uint64_t memory_bytes);
/* Appends the page. */
void metrics_page_append(const struct metrics_page *page, struct buffer *out);

#endif
