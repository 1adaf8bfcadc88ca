/*
 * An Event of core/v1 about a VirtualMachine, as the API server takes it (proto/kube_event.proto).
 */
#ifndef BALLAST_AGENT_KUBE_EVENT_BODY_H
#define BALLAST_AGENT_KUBE_EVENT_BODY_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/kube_event.h"
#include "base/buffer.h"
#include "base/error.h"

struct kube_event_facts {
	const struct kube_event *event;
	struct slice uid; /* the VM's; empty: unknown */
	struct slice node_name;
	uint32_t count;       /* how often it has happened … */
	int64_t first_ns;     /* … from then (wall clock) … */
	int64_t last_ns;      /* … till then */
	uint64_t name_suffix; /* together with the VM's name it makes the Event's; no two may be the same */
};

/* "Scaled", "ScalingFailed", … */
const char *kube_event_reason_name(enum kube_event_reason reason);

/* Appends the JSON. The message is cut after 1024 bytes, the VM's name within the Event's so that it fits. */
bool kube_event_append_body(const struct kube_event_facts *facts, struct buffer *body, struct error *err);

#endif
