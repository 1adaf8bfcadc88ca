/*
 * The decisions of a /filter, /prioritize or /bind call, step by step and without a loop: each function takes what has
 * happened and says what comes next. Whoever carries the steps out has the time, the API calls and the servers.
 *
 *	filter_start → FILTER_READ: GET the reservation filter->name
 *	  filter_found, filter_not_found → FILTER_CREATE / FILTER_REPLACE: POST / PUT filter->object
 *	    filter_written, filter_conflicted → …
 *	  filter_call_failed → …
 *	FILTER_ANSWER: filter->answer is complete
 *
 * Where memory is short, or a limit of ours is reached, filter->failure says so, and the answer is "nothing yet": it
 * was made first of all. Only if even that failed, the answer has no bytes.
 */
#ifndef BALLAST_EXTENDER_FILTER_H
#define BALLAST_EXTENDER_FILTER_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "extender/answer.h"
#include "extender/capacity_requests.h"
#include "extender/limits.h"
#include "extender/request.h"
#include "extender/reservations.h"
#include "extender/volume_counts.h"

enum filter_step { FILTER_ANSWER, FILTER_READ, FILTER_CREATE, FILTER_REPLACE };

struct filter {
	const struct extender_settings *settings;
	struct request *request;
	struct arena arena;
	struct capacity_plan plan;                  /* for the log, from filter_start on */
	char name[EXTENDER_RESERVATION_NAME_BYTES]; /* of the reservation */
	struct reservation_decision decision;       /* for the log, from filter_found or filter_not_found on */
	struct buffer object;                       /* to be written */
	int conflicts;
	struct answer answer;
	struct slice error;   /* what the answer says in Error, for the log; empty: nothing */
	struct error failure; /* for the log: what we ran short of; code ERROR_NONE: nothing */
	bool placed; /* the answer is a success with at least one node of a reservation (F7; metrics, spec M6) */
};

/*
 * The request's body is complete. settings and request must outlive the filter. On
 * FILTER_READ the metrics of spec M2 count.
 */
enum filter_step filter_start(struct filter *filter, const struct extender_settings *settings,
                              const struct storage_view *view, struct request *request);
/* The answer to GET. The object isn't needed afterwards. */
enum filter_step filter_found(struct filter *filter, const struct csi_available_capacity_reservation *reservation);
enum filter_step filter_not_found(struct filter *filter);
/* POST or PUT succeeded, or POST was answered "already exists" (F17). */
enum filter_step filter_written(struct filter *filter);
/* PUT was answered 409, or 404, so that what was read is out of date: read again, a few times, then pending (I2). */
enum filter_step filter_conflicted(struct filter *filter);
/*
 * A call failed for good, after its retries. http_status 0: no answer, or our own deadline (I3). message: the API
 * server's, or the error's text (F12). What passes by itself is pending (I2), the rest Fail-B.
 */
enum filter_step filter_call_failed(struct filter *filter, int http_status, struct slice message);
void filter_destroy(struct filter *filter);

/*
 * The whole of /prioritize (spec 7, H9, H11, H12). The request's body is complete. Fills *answer, which was
 * initialized; what else the call needs lies in the arena. *ret_plan is for the log.
 */
void prioritize_answer(const struct extender_settings *settings, const struct storage_view *view,
                       const struct volume_counts *counts, struct request *request, struct arena *arena,
                       struct capacity_plan *ret_plan, struct answer *answer);
/* The whole of /bind (spec 8). */
void bind_answer(struct request *request, struct answer *answer);

#endif
