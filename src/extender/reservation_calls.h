/*
 * Reading, creating and replacing one AvailableCapacityReservation (spec extender 6, 12): one call each, with the retries
 * of F26 inside, measured (M7), within the caller's deadline.
 */
#ifndef BALLAST_EXTENDER_RESERVATION_CALLS_H
#define BALLAST_EXTENDER_RESERVATION_CALLS_H

#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/token_bucket.h"
#include "extender/extender_metrics.h"
#include "kube/client.h"
#include "net/loop.h"

/* What all calls share. Everything pointed at must outlive them. */
struct reservation_calls {
	struct loop *loop;
	struct kube_client *client;
	struct token_bucket *limiter;
	struct extender_metrics *metrics;
};

struct reservation_call;

/*
 * err NULL: it succeeded, and body is the object as the server has it now, valid during the call. Otherwise status is the
 * refusal's, or 0 without any, and the text's root is the API server's message (F12).
 */
typedef void reservation_callback(void *context, int status, struct slice body, const struct error *err);

/*
 * Each starts a call; the callback comes once, never from inside, unless it is cancelled first. deadline_ns is monotonic.
 * NULL with *err when it can't even start. The body of the latter two is copied.
 */
struct reservation_call *reservation_read(const struct reservation_calls *calls, struct slice name,
                                          uint64_t deadline_ns, reservation_callback *callback, void *context,
                                          struct error *err);
struct reservation_call *reservation_create(const struct reservation_calls *calls, struct slice name, struct slice body,
                                            uint64_t deadline_ns, reservation_callback *callback, void *context,
                                            struct error *err);
struct reservation_call *reservation_replace(const struct reservation_calls *calls, struct slice name,
                                             struct slice body, uint64_t deadline_ns, reservation_callback *callback,
                                             void *context, struct error *err);
void reservation_call_cancel(struct reservation_call *call); /* NULL is fine */

#endif
