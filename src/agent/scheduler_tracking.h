/*
 * Which scheduler pod to ask: a watch over the scheduler's pods, and one of those that are active, that is ready and with
 * an address (spec agent-runtime 9, generations 4.1). Either always the newest one, or always the same as long as it is
 * active.
 */
#ifndef BALLAST_AGENT_SCHEDULER_TRACKING_H
#define BALLAST_AGENT_SCHEDULER_TRACKING_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/agent_metrics.h"
#include "agent/scheduler_peer.h"
#include "base/error.h"
#include "base/log.h"
#include "base/token_bucket.h"
#include "kube/client.h"
#include "net/loop.h"

struct scheduler_tracking;

struct scheduler_tracking_options {
	struct loop *loop;
	struct kube_client *client;
	struct token_bucket *limiter; /* of the pod client (protocols 9.3.1); NULL: not limited */
	const char *scheduler_name;   /* copied */
	/*
	 * Keep a pod while it is active. When it is lost, the next is the one that has been active longest, but not
	 * before 5 s have passed since the last one was chosen. At the start, and otherwise always: the newest.
	 */
	bool sticky;
	struct agent_metrics *metrics; /* NULL: none */
	struct log_sink *log_sink;
};

struct scheduler_tracking_handler {
	/* The pods are known and watched. */
	void (*on_started)(void *context);
	/* They can't be: nothing more will happen ("initial list failed: …", "initial watch failed: …"). */
	void (*on_start_failed)(void *context, const struct error *err);
	/* Another pod is current, or none. Not before on_started. May be NULL. */
	void (*on_changed)(void *context);
};

/* No callback comes from inside. The handler is copied. */
struct scheduler_tracking *scheduler_tracking_start(const struct scheduler_tracking_options *options,
                                                    const struct scheduler_tracking_handler *handler, void *context,
                                                    struct error *err);
/* The scheduler to ask now (ip: status.podIP), or NULL if there is none. Valid until the next turn of the loop. */
const struct scheduler_peer *scheduler_tracking_current(const struct scheduler_tracking *tracking);
/* How many scheduler pods are ready. */
size_t scheduler_tracking_count(const struct scheduler_tracking *tracking);
/* Allowed inside the handlers. NULL is fine. */
void scheduler_tracking_stop(struct scheduler_tracking *tracking);

#endif
