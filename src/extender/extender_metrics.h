/*
 * The extender's metrics (spec extender section 10): how often and how long pods are being scheduled, how long calls to
 * the API server take, and the customary ones of a process.
 *
 * Series of a pod go EXTENDER_METRICS_PLACED_S after it was placed (M6) or EXTENDER_METRICS_UNSEEN_S after its last call,
 * and the pod seen longest ago gives way to one more than EXTENDER_METRICS_PODS (I11). Times are the loop's monotonic ones.
 */
#ifndef BALLAST_EXTENDER_EXTENDER_METRICS_H
#define BALLAST_EXTENDER_EXTENDER_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"

struct extender_metrics;

struct extender_metrics *extender_metrics_create(struct error *err);
void extender_metrics_destroy(struct extender_metrics *metrics); /* NULL is fine */
/* The lines that the sink drops are counted from now on; it must outlive the metrics. */
void extender_metrics_follow_log(struct extender_metrics *metrics, const struct log_sink *log_sink);
bool extender_metrics_print(struct extender_metrics *metrics, struct buffer *page, struct error *err);

/* M2: a filter call for a pod with capacity requests. */
void extender_metrics_count_schedule(struct extender_metrics *metrics, struct slice pod_name, uint64_t now_ns);
/* M3: what its events tell. Without effect when the pod's series have gone meanwhile. */
void extender_metrics_set_schedule_times(struct extender_metrics *metrics, struct slice pod_name,
                                         double since_last_seconds, double total_seconds);
/* M6: the pod has nodes to choose from. */
void extender_metrics_note_placed(struct extender_metrics *metrics, struct slice pod_name, uint64_t now_ns);
/* To be called now and then: removes the series whose time has come. */
void extender_metrics_sweep(struct extender_metrics *metrics, uint64_t now_ns);

enum extender_kube_method { EXTENDER_KUBE_READ, EXTENDER_KUBE_CREATE, EXTENDER_KUBE_UPDATE };

/* M7: one logical call, retries included. */
void extender_metrics_observe_kube(struct extender_metrics *metrics, enum extender_kube_method method, double seconds);

/* A series of ours: whether the watch of a kind ("persistentvolumeclaims") fails at the moment. */
void extender_metrics_set_watch_failing(struct extender_metrics *metrics, const char *resource, bool failing);

#endif
