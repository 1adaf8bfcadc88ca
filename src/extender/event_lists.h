/*
 * How long a pod has been waiting for a node, from its events (spec extender M3 to M5). Off the critical path: a pod is
 * looked at after its filter call was answered, one after the other and at a limited rate; when too many wait, the newest
 * isn't looked at (I4).
 */
#ifndef BALLAST_EXTENDER_EVENT_LISTS_H
#define BALLAST_EXTENDER_EVENT_LISTS_H

#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "extender/extender_metrics.h"
#include "kube/client.h"
#include "net/loop.h"

struct event_lists;

/* Everything pointed at must outlive it. */
struct event_lists_options {
	struct loop *loop;
	struct kube_client *client;
	struct extender_metrics *metrics;
	struct logger logger;
};

struct event_lists *event_lists_create(const struct event_lists_options *options, struct error *err);
/* A filter call for the pod took took_ns. Texts are copied. namespace may be empty: all namespaces (M5). */
void event_lists_ask(struct event_lists *lists, struct slice namespace, struct slice pod_name, uint64_t took_ns);
void event_lists_destroy(struct event_lists *lists); /* NULL is fine */

/* M4, over the body of one list. now_ns: wall clock. */
struct schedule_times {
	double since_last_seconds;
	double first_seconds;
};
bool event_lists_read(struct slice body, int64_t now_ns, struct schedule_times *ret_times, struct error *err);

#endif
