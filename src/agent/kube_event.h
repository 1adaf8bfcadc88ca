/*
 * What happened to a VM that its owner may want to find with `kubectl describe`, and who is told of it: with
 * --kube-events, kube_events.h. What happens to a VM and isn't decided here (its load, its phase) is nothing of that.
 */
#ifndef BALLAST_AGENT_KUBE_EVENT_H
#define BALLAST_AGENT_KUBE_EVENT_H

#include "base/slice.h"

enum kube_event_reason {
	KUBE_EVENT_SCALED,           /* NeonVM took another size for the VM */
	KUBE_EVENT_SCALING_FAILED,   /* it didn't */
	KUBE_EVENT_UPSCALE_DENIED,   /* the scheduler plugin permits less than it was asked for */
	KUBE_EVENT_DOWNSCALE_DENIED, /* by the vm-monitor */
	KUBE_EVENT_MONITOR_LOST,     /* a connection to the vm-monitor that had stood ended … */
	KUBE_EVENT_MONITOR_BACK,     /* … and stands again */
	KUBE_EVENT_RUNNER_RESTARTED, /* an internal failure */
	KUBE_EVENT_STUCK,            /* scaling doesn't work as it should (spec agent-runtime 6.6) … */
	KUBE_EVENT_RECOVERED,        /* … and does again */
	KUBE_EVENT_REASONS,
};

/* Valid during the call that gets it; who needs more copies. */
struct kube_event {
	enum kube_event_reason reason;
	struct slice namespace; /* of the VM */
	struct slice name;
	struct slice message; /* a sentence, in which nothing comes from a guest */
};

/* Can't fail: whatever becomes of the event is the receiver's business. */
struct kube_event_sink {
	void *context;
	void (*submit)(void *context, const struct kube_event *event);
};

#endif
