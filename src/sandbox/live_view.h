/*
 * What a sandbox run shows while it runs: a table that is drawn anew on a terminal, or one line per event.
 *
 * Neither ever waits for a slow reader: what isn't taken waits in a bounded buffer, and beyond that it is dropped and counted.
 */
#ifndef BALLAST_SANDBOX_LIVE_VIEW_H
#define BALLAST_SANDBOX_LIVE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/cluster.h"
#include "sandbox/pod_cluster.h"
#include "sandbox/workload.h"

struct live_view;

enum {
	LIVE_VIEW_ACTION_BYTES = 160,
	LIVE_VIEW_EVENT_BYTES = 1024,
	LIVE_VIEW_OUTAGES_BYTES = 256,
	LIVE_VIEW_URL_BYTES = 64,
	LIVE_VIEW_REDRAWS_PER_S = 4
};

/* table: on standard output, which must be a terminal; else lines on standard error. */
struct live_view *live_view_create(struct loop *loop, const struct workload *workload, bool table, struct error *err);
/* Leaves the terminal as it was; waits a moment for a slow reader. NULL is fine. */
void live_view_destroy(struct live_view *view);

/* Times in lines count from this moment on. The table is drawn from now on, of that cluster. */
void live_view_start(struct live_view *view, const struct cluster *cluster);
/* The process is about to be stopped: the terminal is as it was until live_view_resume. */
void live_view_suspend(struct live_view *view);
void live_view_resume(struct live_view *view);
void live_view_set_phase(struct live_view *view, unsigned phase);

/* Which peers are away, by their names; "": none. Copied, and cut if it is long. */
void live_view_set_outages(struct live_view *view, const char *peers);

/* Where an agent's state is served. While nothing is away, the table says how to look there, at the first agent that has one. */
void live_view_set_state_url(struct live_view *view, const char *url);

/* Pods are shown too; pods must outlive the view's use. */
bool live_view_show_pods(struct live_view *view, const struct pod_cluster *pods, struct error *err);
/* Something happened to a pod. */
void live_view_pod_event(struct live_view *view, unsigned pod, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Something happened to a VM of the cluster … */
void live_view_vm_event(struct live_view *view, unsigned vm, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* … or to the whole. */
void live_view_event(struct live_view *view, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
