/*
 * What the agent counts about itself: the families of spec agent-runtime 15.1, the watches of 15.2, billing and scaling
 * events of 15.3, the usual process_… ones, and of our own the dropped events and lines of the log; one function per kind of
 * happening. Labels come from closed sets; where a parameter is a text, its caller keeps the set small and says so in
 * its header.
 *
 * Gauges of single VMs live elsewhere (vm_metrics.h).
 */
#ifndef BALLAST_AGENT_AGENT_METRICS_H
#define BALLAST_AGENT_AGENT_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/resources.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "kube/watch_store.h"

struct agent_metrics;

/* Series that 15.1 wants from the start are there. NULL with *err when memory is short. */
struct agent_metrics *agent_metrics_create(struct error *err);
/*
 * The families of the agent of late 2023 instead (spec generations 4.7): fewer, and some with other labels. What has no
 * family is counted nowhere. Those of billing are there only if it is configured.
 */
struct agent_metrics *agent_metrics_create_late_2023(bool has_billing, struct error *err);
void agent_metrics_destroy(struct agent_metrics *metrics); /* NULL is fine */
/* The page is to show how many lines this log has dropped. It must outlive the metrics. */
void agent_metrics_follow_log(struct agent_metrics *metrics, const struct log_sink *log_sink);
/* Appends the page of port 9100. */
bool agent_metrics_print(struct agent_metrics *metrics, struct buffer *page, struct error *err);

enum agent_direction { AGENT_DIRECTION_INC, AGENT_DIRECTION_DEC, AGENT_DIRECTION_BOTH, AGENT_DIRECTION_NONE };

/* A pair of counters, CPU (vCPUs) and memory (MiB), each by direction. */
enum agent_change {
	AGENT_CHANGE_SCHEDULER_REQUESTED,
	AGENT_CHANGE_SCHEDULER_ACCEPTED,
	AGENT_CHANGE_MONITOR_REQUESTED,
	AGENT_CHANGE_MONITOR_APPROVED,
	AGENT_CHANGE_NEONVM_REQUESTED,
};

/* Adds what differs between before and after, per resource, to the counters of its direction (10.8). */
void agent_metrics_count_change(struct agent_metrics *metrics, enum agent_change change, struct resources before,
                                struct resources after);

void agent_metrics_count_scheduler_request(struct agent_metrics *metrics, const char *code);
void agent_metrics_count_monitor_outbound(struct agent_metrics *metrics, const char *endpoint, const char *code);
void agent_metrics_count_monitor_inbound(struct agent_metrics *metrics, const char *endpoint, const char *code);
/* Makes the series visible, at 0 if it is new (11.4.3). */
void agent_metrics_touch_monitor_inbound(struct agent_metrics *metrics, const char *endpoint, const char *code);
/*
 * result quotes the API server; beyond AGENT_NEONVM_RESULTS different ones, new ones are counted as "[error: other]".
 */
void agent_metrics_count_neonvm_request(struct agent_metrics *metrics, const char *result);
void agent_metrics_count_full_denial(struct agent_metrics *metrics, enum agent_direction direction);
void agent_metrics_count_partial_approval(struct agent_metrics *metrics, enum agent_direction direction);

/* ERRORED is of late 2023, and no runner of ours comes to it. */
enum agent_runner_state { AGENT_RUNNER_OK, AGENT_RUNNER_STUCK, AGENT_RUNNER_PANICKED, AGENT_RUNNER_ERRORED };

struct agent_runner_label {
	bool is_endpoint;
	enum agent_runner_state state;
};

/*
 * Moves one runner from one series of runners_current to another; before is NULL for a new one, after for one that
 * goes.
 */
void agent_metrics_move_runner(struct agent_metrics *metrics, const struct agent_runner_label *before,
                               const struct agent_runner_label *after);

void agent_metrics_count_runner_start(struct agent_metrics *metrics);
void agent_metrics_count_runner_restart(struct agent_metrics *metrics);
void agent_metrics_count_runner_panic(struct agent_metrics *metrics);
void agent_metrics_count_next_actions(struct agent_metrics *metrics);

enum agent_latency { AGENT_LATENCY_SCALING, AGENT_LATENCY_PLUGIN, AGENT_LATENCY_MONITOR, AGENT_LATENCY_NEONVM };

/* May be negative: the clocks of two machines (agent-core, pitfall 30). */
void agent_metrics_observe_latency(struct agent_metrics *metrics, enum agent_latency latency,
                                   enum agent_direction direction, int64_t latency_ns);

enum agent_scaling_event { AGENT_SCALING_EVENT_ACTUAL, AGENT_SCALING_EVENT_HYPOTHETICAL };

void agent_metrics_count_scaling_event(struct agent_metrics *metrics, enum agent_scaling_event kind);

/* ---- billing and the senders of events (15.3) ---- */

/* Billing sees the VMs anew: those of the last time no longer count as current. */
void agent_metrics_reset_billed_vms(struct agent_metrics *metrics);
void agent_metrics_count_billed_vm(struct agent_metrics *metrics, bool is_endpoint, bool autoscaling_enabled,
                                   struct slice phase);

enum agent_sender { AGENT_SENDER_BILLING, AGENT_SENDER_SCALING_EVENTS };

/* client: "http", "azureblob", "s3". The families of late 2023 don't have it as a label: there is one client. */
void agent_metrics_set_queue_size(struct agent_metrics *metrics, enum agent_sender sender, const char *client,
                                  double events);
void agent_metrics_set_last_send_duration(struct agent_metrics *metrics, enum agent_sender sender, const char *client,
                                          double seconds);
void agent_metrics_count_send_error(struct agent_metrics *metrics, enum agent_sender sender, const char *client,
                                    const char *cause);
/* Of our own: events that were given up. 0 makes the series. */
void agent_metrics_count_dropped_events(struct agent_metrics *metrics, enum agent_sender sender, const char *client,
                                        double events);

/* Watches (15.2): label watcher_instance. Both gauges are for the failing flag and for 4.8. */
enum agent_watcher { AGENT_WATCHER_VIRTUAL_MACHINES, AGENT_WATCHER_SCHEDULER_POD };

void agent_metrics_count_watch_call(struct agent_metrics *metrics, enum agent_watcher watcher,
                                    enum watch_store_call call);
void agent_metrics_count_watch_event(struct agent_metrics *metrics, enum agent_watcher watcher,
                                     enum watch_store_event event);
void agent_metrics_count_watch_error(struct agent_metrics *metrics, enum agent_watcher watcher,
                                     enum watch_store_error error);
void agent_metrics_set_watch_alive(struct agent_metrics *metrics, enum agent_watcher watcher, bool alive);
void agent_metrics_set_watch_failing(struct agent_metrics *metrics, enum agent_watcher watcher, bool failing);

#endif
