/*
 * What the files of the core share. Not for others.
 */
#ifndef BALLAST_AGENT_CORE_CORE_INTERNAL_H
#define BALLAST_AGENT_CORE_CORE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/core.h"

void core_warn(const struct core *core, const char *text);

/* Report a latency of their kind; the context is the core. */
revision_latency_callback core_report_plugin_latency;
revision_latency_callback core_report_monitor_latency;
revision_latency_callback core_report_neonvm_latency;
revision_latency_callback core_report_scaling_latency;

/* A wait that exists only if something asked for it; the shortest one asked for wins (N-1.7). */
struct core_wait {
	bool present;
	int64_t ns;
};

void core_wait_at_most(struct core_wait *wait, int64_t ns);

/* Where the decision stands: what the steps of N-1 hand on. */
struct core_plan {
	int64_t now_ns;
	struct resources using;
	struct core_desired desired;
	struct core_wait wait;
	struct core_actions actions;
};

/* Whether a failure at failed_at still forbids a retry; then the plan waits for its end. */
bool core_plan_backs_off(struct core_plan *plan, struct optional_instant failed_at, int64_t retry_wait_ns);

void core_plan_plugin(const struct core *core, struct core_plan *plan);                               /* 4.3 */
bool core_plan_neonvm(struct core *core, struct core_plan *plan, struct error *err);                  /* 4.4 */
bool core_plan_monitor_upscale(const struct core *core, struct core_plan *plan, struct error *err);   /* 4.5 */
bool core_plan_monitor_downscale(const struct core *core, struct core_plan *plan, struct error *err); /* 4.6 */

#endif
