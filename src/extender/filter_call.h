/*
 * One /filter call as it runs: carries out what the decisions of filter.h ask for, within the time the scheduler gives us
 * (spec extender 6, I2, I3), and writes the log.
 *
 * With wait_ns (--wait-for-reservation) a call that created a reservation, or asked anew, looks at it again and again for
 * that long, so that a controller that answers at once saves the scheduler an attempt.
 */
#ifndef BALLAST_EXTENDER_FILTER_CALL_H
#define BALLAST_EXTENDER_FILTER_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/log.h"
#include "extender/caches.h"
#include "extender/call_log.h"
#include "extender/event_lists.h"
#include "extender/extender_metrics.h"
#include "extender/filter.h"
#include "extender/reservation_calls.h"
#include "net/loop.h"

/* What all calls share. Everything pointed at must outlive them. */
struct filter_environment {
	struct loop *loop;
	const struct extender_settings *settings;
	struct caches *caches;
	struct reservation_calls reservations;
	struct event_lists *events;
	struct extender_metrics *metrics;
	struct log_sink *log_sink;
	uint64_t budget_ns; /* EXTENDER_CALL_BUDGET_MS */
	uint64_t wait_ns;
};

/* The answer is in call->filter.answer and stays there. */
typedef void filter_call_callback(void *context);

struct filter_call {
	const struct filter_environment *environment;
	struct request *request;
	struct filter filter;
	filter_call_callback *on_answer;
	void *context;
	uint64_t started_ns, deadline_ns;
	struct reservation_call *api_call;
	struct loop_timer timer;
	uint64_t poll_until_ns; /* while waiting for the controller; 0: not */
	bool counted;           /* it has capacity requests (M2) */
	bool answered;
	const char
		*wait_reason; /* for the log: why the pod has to wait, if it isn't the decision's reason; else NULL */
	char session[CALL_SESSION_BYTES]; /* for the log */
};

/* The request's body is complete. on_answer comes once, maybe from inside. A call mustn't move in memory. */
void filter_call_begin(struct filter_call *call, const struct filter_environment *environment, struct request *request,
                       filter_call_callback *on_answer, void *context);
/* Cancels what is under way and frees what the call holds. */
void filter_call_end(struct filter_call *call);

#endif
