/* All families in one table, in the order of enum family. */
#include "agent/agent_metrics_families.h"

#include <stddef.h>

#define A "autoscaling_agent_"

/* Upper bounds of all latency histograms, in seconds. */
static const double LATENCY_BOUNDS[] = {
	.005, .01, .025, .05, .1,  .15, .2,  .25, .3, .35, .4, .45, .5, .6, .7, .8, .9, 1,  1.25, 1.5,
	1.75, 2,   2.5,  3,   3.5, 4,   4.5, 5,   6,  7,   8,  9,   10, 15, 20, 25, 30, 40, 50,   60,
};

enum { LATENCY_BOUND_COUNT = sizeof LATENCY_BOUNDS / sizeof LATENCY_BOUNDS[0] };

#define COUNTER(tail, text, ...)                                        \
	{                                                               \
		METRICS_COUNTER, A tail, text, { __VA_ARGS__ }, NULL, 0 \
	}
#define GAUGE(tail, text, ...)                                        \
	{                                                             \
		METRICS_GAUGE, A tail, text, { __VA_ARGS__ }, NULL, 0 \
	}
#define HISTOGRAM(tail, text, ...)                                                                    \
	{                                                                                             \
		METRICS_HISTOGRAM, A tail, text, { __VA_ARGS__ }, LATENCY_BOUNDS, LATENCY_BOUND_COUNT \
	}

static const struct metrics_family_options FAMILIES[FAMILY_COUNT] = {
	[SCHEDULER_REQUESTED_CPU] = COUNTER("scheduler_plugin_requested_cpu_change_total",
	                                    "Change of vCPUs asked of the scheduler plugin.", "direction"),
	[SCHEDULER_REQUESTED_MEM] = COUNTER("scheduler_plugin_requested_mem_change_total",
	                                    "Change of memory (MiB) asked of the scheduler plugin.", "direction"),
	[SCHEDULER_ACCEPTED_CPU] = COUNTER("scheduler_plugin_accepted_cpu_change_total",
	                                   "Change of vCPUs that the scheduler plugin permitted.", "direction"),
	[SCHEDULER_ACCEPTED_MEM] = COUNTER("scheduler_plugin_accepted_mem_change_total",
	                                   "Change of memory (MiB) that the scheduler plugin permitted.", "direction"),
	[MONITOR_REQUESTED_CPU] =
		COUNTER("monitor_requested_cpu_change_total", "Change of vCPUs told to vm-monitors.", "direction"),
	[MONITOR_REQUESTED_MEM] = COUNTER("monitor_requested_mem_change_total",
	                                  "Change of memory (MiB) told to vm-monitors.", "direction"),
	[MONITOR_APPROVED_CPU] = COUNTER("monitor_approved_cpu_change_total",
	                                 "Change of vCPUs that vm-monitors agreed to.", "direction"),
	[MONITOR_APPROVED_MEM] = COUNTER("monitor_approved_mem_change_total",
	                                 "Change of memory (MiB) that vm-monitors agreed to.", "direction"),
	[NEONVM_REQUESTED_CPU] = COUNTER("neonvm_requested_cpu_change_total",
	                                 "Change of vCPUs asked for by patches of VirtualMachines.", "direction"),
	/* Named unlike its siblings in the reference, too. */
	[NEONVM_REQUESTED_MEM] =
		COUNTER("neonvm_requested_mem_changed_total",
	                "Change of memory (MiB) asked for by patches of VirtualMachines.", "direction"),
	[SCHEDULER_REQUESTS] = COUNTER("scheduler_plugin_requests_total",
	                               "Requests to the scheduler plugin, by HTTP status or error.", "code"),
	[FULL_DENIALS] = COUNTER("scaling_full_denials_total", "Changes of size that were denied.", "direction"),
	[PARTIAL_APPROVALS] =
		COUNTER("scaling_partial_approvals_total", "Changes of size that were granted in part.", "direction"),
	[MONITOR_OUTBOUND] = COUNTER("monitor_outbound_requests_total", "Requests to vm-monitors, by type and outcome.",
	                             "code", "endpoint"),
	[MONITOR_INBOUND] = COUNTER("monitor_inbound_requests_total", "Requests of vm-monitors, by type and outcome.",
	                            "code", "endpoint"),
	[NEONVM_OUTBOUND] =
		COUNTER("neonvm_outbound_requests_total", "Patches of VirtualMachines, by outcome.", "result"),
	[RUNNERS] = GAUGE("runners_current", "VMs that are looked after, by state.", "is_endpoint", "state"),
	[RUNNER_PANICS] = COUNTER("runner_thread_panics_total", "Internal failures of runners.", NULL),
	[RUNNER_STARTS] = COUNTER("runner_starts", "Runners started, restarts not counted.", NULL),
	[RUNNER_RESTARTS] = COUNTER("runner_restarts", "Runners restarted after a failure.", NULL),
	[NEXT_ACTIONS] = COUNTER("runner_next_actions_total", "Times that next actions were worked out.", NULL),
	[SCALING_LATENCY] = HISTOGRAM("scaling_latency_seconds",
	                              "From the decision for a size to the VM having it, by direction.", "direction"),
	[PLUGIN_LATENCY] = HISTOGRAM("plugin_latency_seconds",
	                             "From the decision for a size to the scheduler plugin's answer.", "direction"),
	[MONITOR_LATENCY] = HISTOGRAM("monitor_latency_seconds",
	                              "From the decision for a size to the vm-monitor's answer.", "direction"),
	[NEONVM_LATENCY] = HISTOGRAM("neonvm_latency_seconds",
	                             "From the patch of a VirtualMachine to its being carried out.", "direction"),
	[PAGE_ERRORS] = { METRICS_COUNTER,
	                  "promhttp_metric_handler_errors_total",
	                  "Internal errors while this page was made.",
	                  { "cause" },
	                  NULL,
	                  0 },
	[WATCH_CALLS] =
		COUNTER("watchers_client_calls_total", "Lists and watches asked for.", "method", "watcher_instance"),
	[WATCH_RELISTS] =
		COUNTER("watchers_relist_requests_total", "Lists asked for from within the agent.", "watcher_instance"),
	[WATCH_EVENTS] = COUNTER("watchers_events_total", "Events of watches.", "type", "watcher_instance"),
	[WATCH_ERRORS] = COUNTER("watchers_errors_total", "Failed lists and watches, and error events.", "source",
	                         "watcher_instance"),
	[WATCH_ALIVE] = GAUGE("watchers_alive_current", "1 while a watcher runs.", "watcher_instance"),
	[WATCH_FAILING] =
		GAUGE("watchers_failing_current", "1 while a watcher waits after a failed call.", "watcher_instance"),
	[BILLING_VMS_PROCESSED] =
		COUNTER("billing_vms_processed_total",
	                "Total number of times the autoscaler-agent's billing subsystem processes any VM",
	                "autoscaling_enabled", "is_endpoint", "phase"),
	[BILLING_VMS_CURRENT] = GAUGE("billing_vms_current",
	                              "Total current VMs visible to the autoscaler-agent's billing subsystem, labeled "
	                              "by some bits of metadata",
	                              "autoscaling_enabled", "is_endpoint", "phase"),
	[SCALING_EVENTS] = GAUGE("scaling_events_total", "Total number of scaling events generated", "kind"),
	/* That scaling events speak of billing is the reference's way, too. */
	[BILLING_QUEUE] =
		GAUGE("billing_queue_size", "Size of the billing subsystem's queue of unsent events", "client"),
	[SCALING_EVENTS_QUEUE] =
		GAUGE("scalingevents_queue_size", "Size of the billing subsystem's queue of unsent events", "client"),
	[BILLING_SEND_DURATION] =
		GAUGE("billing_last_send_duration_seconds",
	              "Duration, in seconds, that it took to send the latest set of billing events (or "
	              "current time if ongoing)",
	              "client"),
	[SCALING_EVENTS_SEND_DURATION] = GAUGE("scalingevents_last_send_duration_seconds",
	                                       "Duration, in seconds, that it took to send the latest set of billing "
	                                       "events (or current time if ongoing)",
	                                       "client"),
	[BILLING_SEND_ERRORS] = COUNTER("billing_send_errors_total",
	                                "Total errors from attempting to send billing events", "cause", "client"),
	[SCALING_EVENTS_SEND_ERRORS] =
		COUNTER("scalingevents_send_errors_total", "Total errors from attempting to send billing events",
	                "cause", "client"),
	/* The reference has neither: its queues grow, and it waits for the reader of its log. */
	[EVENTS_DROPPED] = { METRICS_COUNTER,
	                     "ballast_events_dropped_total",
	                     "Events given up, because the queue was full or the process ended.",
	                     { "client", "subsystem" },
	                     NULL,
	                     0 },
	[LOG_LINES_DROPPED] = { METRICS_COUNTER,
	                        "ballast_log_lines_dropped_total",
	                        "Lines of the log dropped because nobody took them in time, or memory was short.",
	                        { NULL },
	                        NULL,
	                        0 },
	[FATAL_ERRORS] = COUNTER("runner_fatal_errors_total", "Runners that ended with an error.", NULL),
};

/* Of late 2023 instead: one client, which isn't named. */
static const struct metrics_family_options BILLING_QUEUE_2023 =
	GAUGE("billing_queue_size", "Size of the billing subsystem's queue of unsent events", NULL);
static const struct metrics_family_options BILLING_SEND_ERRORS_2023 =
	COUNTER("billing_send_errors_total", "Total errors from attempting to send billing events", "cause");

static bool has_family(enum family family, bool late_2023, bool has_billing)
{
	switch (family) {
	case FATAL_ERRORS:
		return late_2023;
	case FULL_DENIALS:
	case PARTIAL_APPROVALS:
	case SCALING_LATENCY:
	case PLUGIN_LATENCY:
	case MONITOR_LATENCY:
	case NEONVM_LATENCY:
	case SCALING_EVENTS:
	case SCALING_EVENTS_QUEUE:
	case SCALING_EVENTS_SEND_DURATION:
	case SCALING_EVENTS_SEND_ERRORS:
	case BILLING_SEND_DURATION:
		return !late_2023;
	case BILLING_VMS_PROCESSED:
	case BILLING_VMS_CURRENT:
	case BILLING_QUEUE:
	case BILLING_SEND_ERRORS:
		return has_billing;
	default:
		return true;
	}
}

const struct metrics_family_options *agent_metrics_family_options(enum family family, bool late_2023, bool has_billing)
{
	if (!has_family(family, late_2023, has_billing))
		return NULL;
	if (late_2023 && family == BILLING_QUEUE)
		return &BILLING_QUEUE_2023;
	if (late_2023 && family == BILLING_SEND_ERRORS)
		return &BILLING_SEND_ERRORS_2023;
	return &FAMILIES[family];
}
