/*
 * The customary gauges of a process: CPU time, memory, open files, start. Read from /proc when a page is made; what
 * can't be read has no series.
 */
#ifndef BALLAST_AGENT_AGENT_METRICS_PROCESS_H
#define BALLAST_AGENT_AGENT_METRICS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "metrics/registry.h"

enum agent_process_family {
	AGENT_PROCESS_CPU,
	AGENT_PROCESS_RESIDENT,
	AGENT_PROCESS_VIRTUAL,
	AGENT_PROCESS_START,
	AGENT_PROCESS_OPEN_FDS,
	AGENT_PROCESS_MAX_FDS,
	AGENT_PROCESS_FAMILIES,
};

struct agent_metrics_process {
	struct metrics_family *families[AGENT_PROCESS_FAMILIES];
	bool has_boot_time;
	uint64_t boot_seconds; /* when the machine started, since 1970 */
};

bool agent_metrics_process_init(struct agent_metrics_process *ret_process, struct metrics_registry *registry,
                                struct error *err);
void agent_metrics_process_update(struct agent_metrics_process *process);

#endif
