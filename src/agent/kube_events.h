/*
 * Writes Kubernetes Events (core/v1) about what was decided for VMs: `--kube-events`, off by default.
 *
 * A convenience that must not disturb scaling, nor flood the API server: at most one a second with bursts of 25, for
 * each VM and reason at most one a minute, few under way at a time, everything bounded. What happens more often is
 * counted and told with the next Event of that VM and reason, as is what didn't arrive. Failures are logged once a
 * minute at most. After a 403 nothing is tried for 10 minutes, and the log says which rule is missing.
 */
#ifndef BALLAST_AGENT_KUBE_EVENTS_H
#define BALLAST_AGENT_KUBE_EVENTS_H

#include "agent/kube_event.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "kube/client.h"
#include "net/loop.h"

struct kube_events;

/* All of it must outlive the events. */
struct kube_events_options {
	struct loop *loop;
	struct kube_client *client;
	const char *node_name;
	/*
	 * The VM's uid, or the empty slice: `kubectl describe` finds only Events with it, and counts start anew with another
	 * one. Valid until the next turn.
	 */
	struct slice (*uid_of)(void *context, struct slice namespace, struct slice name);
	void *context;
	struct logger logger;
};

struct kube_events *kube_events_create(const struct kube_events_options *options, struct error *err);
/* What isn't written yet is lost. NULL is fine. */
void kube_events_destroy(struct kube_events *events);
/* Valid as long as the events. */
const struct kube_event_sink *kube_events_sink(const struct kube_events *events);

#endif
