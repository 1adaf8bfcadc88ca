/*
 * What to do about a pod's reservation (spec extender 6; AvailableCapacityReservation, "ACR"), and the objects to
 * write.
 *
 * Beyond the reference: an ACR of another namespace is left alone (I6), one that lacks a request of the pod's is asked
 * anew (decision 9 of the spec's README), and one that is asked again is asked for what the pod needs now (I7).
 */
#ifndef BALLAST_EXTENDER_RESERVATIONS_H
#define BALLAST_EXTENDER_RESERVATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "extender/capacity_requests.h"
#include "extender/request.h"
#include "gen/csi.gen.h"

enum reservation_action {
	RESERVATION_PENDING, /* no node yet, nothing to write */
	RESERVATION_CREATE,
	RESERVATION_REPLACE, /* ask again, by PUT of the object with its resourceVersion */
	RESERVATION_PLACE,   /* some of the request's nodes are reserved */
	RESERVATION_REFUSE,  /* its status is none we know (F10) */
};

/* Why, for the log. */
enum reservation_reason {
	RESERVATION_IS_NEW,
	RESERVATION_NO_NODE_IDS,      /* none of the request's nodes has an id: nothing to ask for (F15, F22) */
	RESERVATION_WAITS,            /* REQUESTED: the controller hasn't answered */
	RESERVATION_FOREIGN,          /* belongs to a pod of another namespace whose name makes the same (I6) */
	RESERVATION_LACKS_REQUEST,    /* decision 9 */
	RESERVATION_NO_NODE_RESERVED, /* RESERVED, but none of the request's nodes (F8) */
	RESERVATION_REJECTED,         /* F9 */
	RESERVATION_MATCHES,          /* F7 */
	RESERVATION_STATUS_UNKNOWN,   /* F10 */
};

struct reservation_decision {
	enum reservation_action action;
	enum reservation_reason reason;
	bool *matched;       /* RESERVATION_PLACE: one for each of the request's nodes */
	struct slice status; /* RESERVATION_REFUSE: the reservation's; stays as long as that */
};

/* F13; false if the name is too long for an object's, or no text. */
bool reservation_name(const struct extender_pod *pod, char *name, size_t size, struct error *err);
/*
 * reservation: what the API server gave just now, or NULL if there is none. The decision's list lies in the arena.
 * ERROR_NO_MEMORY.
 */
bool reservation_decide(const struct request *request, const struct capacity_plan *plan,
                        const struct csi_available_capacity_reservation *reservation, struct arena *arena,
                        struct reservation_decision *ret_decision, struct error *err);
/* Appends the object to POST (F16). */
bool reservation_print_new(const struct request *request, const struct capacity_plan *plan, const char *name,
                           struct arena *arena, struct buffer *out, struct error *err);
/*
 * Appends the object to PUT (F23): what was read, with the status, the nodes and, for RESERVATION_LACKS_REQUEST or when
 * the pod doesn't need all of them any more (I7), the requests of now; members that we don't know are kept.
 */
bool reservation_print_again(const struct request *request, const struct capacity_plan *plan,
                             enum reservation_reason reason,
                             const struct csi_available_capacity_reservation *reservation, struct arena *arena,
                             struct buffer *out, struct error *err);
/* A word for the log. */
const char *reservation_reason_text(enum reservation_reason reason);
/*
 * Whether a failed call will pass by itself, so that the answer is "pending" rather than an error (I2): no answer at
 * all (http_status 0), 408, 409, 410 (of a version, not of the object), 429, 5xx.
 */
bool reservation_failure_passes(int http_status);

#endif
