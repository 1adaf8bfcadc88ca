/*
 * One run of the agent's work for one VM: the core with its executor, the two scrape loops, the connection to the
 * vm-monitor, requests to the scheduler and patches of the VirtualMachine (spec agent-runtime 7).
 *
 * A run ends when it is cancelled or when something in it breaks an invariant; then it stops and tells its owner, who
 * may start another. What outlives a run is in struct runner_status.
 */
#ifndef BALLAST_AGENT_RUNNER_H
#define BALLAST_AGENT_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_clock.h"
#include "agent/agent_metrics.h"
#include "agent/config.h"
#include "agent/core/core.h"
#include "agent/kube_event.h"
#include "agent/plugin_versions.h"
#include "agent/runner_status.h"
#include "agent/scaling_events.h"
#include "agent/scheduler_peer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "metrics/text_parser.h"
#include "net/http_client.h"
#include "net/loop.h"

/* What is to be written to the VirtualMachine (12.1). */
struct runner_patch {
	struct slice namespace;
	struct slice vm_name;
	struct resources current; /* for counting what is asked for */
	struct resources target;
	uint64_t slot_bytes;
	struct revision_with_time target_revision;
};

/* err NULL: it was written. */
typedef void runner_patch_callback(void *context, const struct error *err);

/* Peers that runners reach through the rest of the agent. */
struct runner_peers {
	void *context;
	/* The scheduler to ask now; NULL if none is ready. Valid until the next turn of the loop. */
	const struct scheduler_peer *(*current_scheduler)(void *context);
	/*
	 * Starts a patch and counts it (12.4); NULL with *err if it can't. The callback comes later, once, unless
	 * cancelled.
	 */
	void *(*patch_vm)(void *context, const struct runner_patch *patch, runner_patch_callback *callback,
	                  void *callback_context, struct error *err);
	/* No callback any more. Counted as "context canceled". */
	void (*cancel_patch)(void *context, void *patch);
};

/* What all runners share; all of it must outlive them. */
struct runner_environment {
	struct loop *loop;
	const struct agent_clock *clock;
	const struct agent_config *config;
	struct agent_metrics *metrics;
	struct http_client *http;
	struct metrics_text_parser *parser;
	struct plugin_versions *plugin_versions;
	const struct scaling_event_sink *scaling_events;
	const struct kube_event_sink *kube_events; /* NULL: nobody wants them */
	struct log_sink *log_sink;
	struct runner_peers peers;
};

struct runner;

struct runner_options {
	const struct runner_environment *environment; /* must outlive the runner, as must status */
	struct runner_status *status;
	const char *pod_name;
	const char *pod_ip;
	/* It broke: everything in it has stopped but the handle; runner_destroy is allowed within. */
	void (*on_failed)(void *context);
	void *context;
};

/* Starts with status->vm_info. NULL, with *err, only when memory is short. */
struct runner *runner_start(const struct runner_options *options, struct error *err);
/* Another scheduler is current, or none; for agents that keep to one (generations 4.1). */
void runner_scheduler_changed(struct runner *runner);
/* status->vm_info has changed. */
void runner_vm_changed(struct runner *runner);
/*
 * Stops everything; the vm-monitor gets a close frame. No callback comes any more. What is known of the run can still
 * be read.
 */
void runner_stop(struct runner *runner);
void runner_destroy(struct runner *runner); /* stops first; NULL is fine */

const char *runner_pod_ip(const struct runner *runner);
const struct core *runner_core(const struct runner *runner);
bool runner_monitor_connected(const struct runner *runner);
/* Calls to the monitor that wait for a reply. */
size_t runner_monitor_waiting_calls(const struct runner *runner);
/* As the reference counts its tasks: 11, and two more while the monitor is connected (13.5); 0 once it has stopped. */
size_t runner_background_worker_count(const struct runner *runner);

#endif
