/*
 * Where events go: makes the clients that the configuration asks for (spec reporting W6, W7), one sink for scaling
 * events and one for billing, and the billing collector; and sees to it that nothing is left behind at the end.
 *
 * Scaling events come before billing, since the start-up has other steps in between (agent-runtime 1.2).
 */
#ifndef BALLAST_AGENT_EVENT_REPORTING_H
#define BALLAST_AGENT_EVENT_REPORTING_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent_metrics.h"
#include "agent/billing.h"
#include "agent/config.h"
#include "agent/scaling_events.h"
#include "base/error.h"
#include "base/log.h"
#include "net/loop.h"
#include "report/report_sink.h"

struct event_reporting;

/* What it needs; all of it must outlive it. */
struct event_reporting_options {
	struct loop *loop;
	const struct agent_config *config;
	struct agent_metrics *metrics;
	struct log_sink *log_sink;
	const char *host_name; /* in the keys of billing events (B13); NULL or empty: the kernel's. Copied */
	uint64_t grace_ns;     /* how long the end may take */
	uint64_t queue_events; /* bounds of each client's queue; 0: the defaults */
	uint64_t queue_bytes;
};

/*
 * With the clients for scaling events. NULL with *err, a whole sentence for the log: "error creating scaling events
 * reporter: error creating S3 client: …".
 */
struct event_reporting *event_reporting_create(const struct event_reporting_options *options, struct error *err);
/* Queues a copy for each client; fits struct scaling_event_sink. context: the reporting. */
bool event_reporting_submit_scaling_event(void *context, const struct scaling_event *event, struct error *err);

/* How it goes with the events for one client; false if there is no such client, or billing hasn't begun. */
bool event_reporting_progress(const struct event_reporting *reporting, enum agent_sender kind, const char *client,
                              struct report_progress *ret_progress);

/*
 * Makes billing's clients and begins to collect; does nothing where billing isn't configured (generation A). Errors
 * begin with "error creating billing metrics collector: ".
 */
bool event_reporting_start_billing(struct event_reporting *reporting, const struct billing_source *source,
                                   struct error *err);

/*
 * Bills what was used up to now, and sends everything that waits. The source is asked from inside, and never again.
 * on_finished comes once, from the loop, when all is delivered or the grace period is over. Later calls are ignored.
 */
void event_reporting_finish(struct event_reporting *reporting, void (*on_finished)(void *context), void *context);
/* What is under way is cut off; what waits is gone. NULL is fine. */
void event_reporting_destroy(struct event_reporting *reporting);

#endif
