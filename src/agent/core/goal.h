/*
 * How many compute units a VM should have, by its metrics alone (spec agent-core 5). Pure.
 */
#ifndef BALLAST_AGENT_CORE_GOAL_H
#define BALLAST_AGENT_CORE_GOAL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/resources.h"
#include "agent/core/scaling_config.h"
#include "agent/core/vm_metrics.h"
#include "base/error.h"

/* Wanted compute units by CPU load, by memory and by the file cache; a part is absent when its input is. */
struct goal_parts {
	bool has_cpu;
	bool has_mem;
	bool has_lfc;
	double cpu;
	double mem;
	double lfc;
};

/* What the estimate of the working set saw; for the log (N-9). */
struct goal_lfc_report {
	double estimate_wss_pages;
	double predicted_next_wss_pages;
	double required_cu;
};

struct goal {
	bool has_all_metrics; /* G-1 */
	bool has_lfc_report;
	uint32_t compute_units; /* G-3, before any bounds */
	struct goal_parts parts;
	struct goal_lfc_report lfc_report;
};

struct goal_input {
	const struct scaling_config *config; /* effective */
	struct resources compute_unit;
	bool whole_unit_parts;               /* the late-2023 way (generations, G3 … G5, G19) */
	const struct system_metrics *system; /* may be NULL, as may the next */
	const struct lfc_metrics *lfc;
	void (*warn)(void *context, const char *text); /* may be NULL; the texts are constants */
	void *warn_context;
};

/*
 * Fails with ERROR_INVARIANT when a needed field of the configuration is absent or the windows can't be worked with
 * (G-7).
 */
bool goal_calculate(const struct goal_input *input, struct goal *ret_goal, struct error *err);

#endif
