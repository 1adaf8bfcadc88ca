/*
 * The billing collector (spec reporting 3): looks at the node's VMs every collect period, and turns what they used into
 * events every accumulate period.
 *
 * It sees all VMs of the node, scaled or not, and hears nothing from their runners. At its end it collects and drains
 * once more (README of the specs, decision 13).
 */
#ifndef BALLAST_AGENT_BILLING_H
#define BALLAST_AGENT_BILLING_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/agent_metrics.h"
#include "agent/config.h"
#include "agent/vm_watch.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "net/loop.h"

struct billing;

/* Where VMs come from; see vm_watch.h for both. */
struct billing_source {
	void *context;
	bool (*failing)(void *context);
	bool (*next)(void *context, size_t *position, struct vm_watch_vm *ret_vm);
};

struct billing_options {
	struct loop *loop;
	const struct agent_billing_config *config;
	struct slice host_name; /* for the events' keys */
	struct billing_source source;
	struct agent_metrics *metrics;
	struct log_sink *log_sink;
	/* Takes an event; must copy it. */
	void (*submit)(void *context, struct slice json);
	void *submit_context;
};

/* Starts both periods. The options are copied; what they point at must outlive it. */
struct billing *billing_start(const struct billing_options *options, struct error *err);
/* Collects once more, submits what there is, and does nothing from then on. The source must still be there. */
void billing_finish(struct billing *billing);
void billing_destroy(struct billing *billing); /* NULL is fine */

#endif
