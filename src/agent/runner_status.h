/*
 * What is known about a pod's runner, whatever run it is in: since when, when its vm-monitor last answered, what failed
 * lately, whether that makes it stuck, and how earlier runs ended (spec agent-runtime 6.3 … 6.8).
 *
 * The status outlives a runner that failed and is restarted. Its state is what the gauge runners_current shows; every
 * function that changes something recomputes it and moves the gauge.
 */
#ifndef BALLAST_AGENT_RUNNER_STATUS_H
#define BALLAST_AGENT_RUNNER_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_clock.h"
#include "agent/agent_metrics.h"
#include "agent/config.h"
#include "agent/core/instant.h"
#include "agent/core/vm_info.h"
#include "agent/failure_counter.h"
#include "agent/limits.h"
#include "base/buffer.h"
#include "base/slice.h"

enum runner_exit { RUNNER_NOT_ENDED, RUNNER_PANICKED, RUNNER_CANCELED };

struct runner_end_state {
	enum runner_exit exit;
	int64_t at_ns; /* instant */
};

enum runner_failure { RUNNER_FAILURE_MONITOR, RUNNER_FAILURE_SCHEDULER, RUNNER_FAILURE_NEONVM };

struct runner_status {
	const struct agent_config *config;
	const struct agent_clock *clock;
	struct agent_metrics *metrics;
	int64_t started_at_ns; /* the current run, or the last */
	struct runner_end_state end;
	struct runner_end_state previous_ends[AGENT_END_STATES_REMEMBERED]; /* the latest ones, oldest first */
	size_t previous_end_count;                                          /* of those remembered */
	uint64_t restarts;
	struct optional_instant last_monitor_contact;
	struct failure_counter failures[RUNNER_FAILURE_NEONVM + 1];
	struct vm_info vm_info; /* the latest */
	char endpoint_id[AGENT_ENDPOINT_ID_BYTES];
	int64_t endpoint_assigned_at_ns;
	bool counted; /* in runners_current, under `label` */
	struct agent_runner_label label;
	int64_t label_updated_at_ns;
	bool told_stuck, told_monitor_lost; /* runner_events.h */
};

/* A status of a run that starts now. The struct must stay where it is. Too long an endpoint id is cut. */
void runner_status_init(struct runner_status *status, const struct agent_config *config,
                        const struct agent_clock *clock, struct agent_metrics *metrics, const struct vm_info *vm_info,
                        struct slice endpoint_id);
/* Takes the runner out of the gauge. */
void runner_status_destroy(struct runner_status *status);

void runner_status_vm_changed(struct runner_status *status, const struct vm_info *vm_info, struct slice endpoint_id);
void runner_status_monitor_contact(struct runner_status *status);
void runner_status_failed(struct runner_status *status, enum runner_failure failure);
void runner_status_ended(struct runner_status *status, enum runner_exit exit);
void runner_status_restarted(struct runner_status *status);
/* Time alone may change the state. */
void runner_status_refresh(struct runner_status *status);
/* After how long to refresh it next: as configured, or when it may become stuck, if that is to be noticed at once. */
uint64_t runner_status_refresh_wait_ns(const struct runner_status *status);

size_t runner_status_failure_count(struct runner_status *status, enum runner_failure failure);
/* Appends the reasons, joined by ','; nothing when it isn't stuck (6.6). */
bool runner_status_stuck(struct runner_status *status, struct buffer *reasons);
/* Most bytes that the reasons have together. */
enum { RUNNER_STATUS_REASONS_BYTES = 256 };

#endif
