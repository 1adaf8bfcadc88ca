/*
 * The customary gauges of a process: CPU time, memory, open files, start. Read from /proc when a page is made; what
 * can't be read has no series.
 */
#ifndef BALLAST_METRICS_PROCESS_METRICS_H
#define BALLAST_METRICS_PROCESS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "metrics/registry.h"

enum process_metrics_family {
	PROCESS_METRICS_CPU,
	PROCESS_METRICS_RESIDENT,
	PROCESS_METRICS_VIRTUAL,
	PROCESS_METRICS_START,
	PROCESS_METRICS_OPEN_FDS,
	PROCESS_METRICS_MAX_FDS,
	PROCESS_METRICS_FAMILIES,
};

struct process_metrics {
	struct metrics_family *families[PROCESS_METRICS_FAMILIES];
	bool has_boot_time;
	uint64_t boot_seconds; /* when the machine started, since 1970 */
};

bool process_metrics_init(struct process_metrics *ret_process, struct metrics_registry *registry, struct error *err);
void process_metrics_update(struct process_metrics *process);

#endif
