/*
 * Stands in for who takes the agents' events: the billing service (spec reporting section 8) and an S3 store for
 * scaling events (section 9), on one port.
 *
 * It looks at every request as the real ones would, and harder: anything that isn't as the reference sends it is a
 * problem that its handler hears of. Signatures aren't verified.
 */
#ifndef BALLAST_SANDBOX_EVENT_RECEIVER_H
#define BALLAST_SANDBOX_EVENT_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "gen/events.gen.h"
#include "net/address.h"
#include "net/loop.h"

/* Below the receiver's address: what an agent's configuration says. */
#define EVENT_RECEIVER_BILLING_PATH "/v1"
#define EVENT_RECEIVER_BUCKET "events"
#define EVENT_RECEIVER_PREFIX "scaling"

struct event_receiver;

struct event_receiver_handler {
	/* An event that came for the first time. Stamps are since 1970. */
	void (*on_billing_event)(void *context, const struct events_billing_event *event, int64_t start_wall_ns,
	                         int64_t stop_wall_ns);
	/* The same event, which counts no more. */
	void (*on_duplicate)(void *context, struct slice key);
	void (*on_scaling_event)(void *context, const struct events_scaling_event *event);
	/* A request, or something in it, isn't as it must be. */
	void (*on_problem)(void *context, const struct error *err);
	/* May be NULL; see http_server.h. */
	void (*on_accept_error)(void *context, const struct error *err);
};

struct event_receiver_counters {
	unsigned billing_pushes, scaling_pushes; /* taken */
	unsigned billing_events, scaling_events;
	unsigned duplicates;
	unsigned refused; /* requests */
};

/* port 0: a free one. */
struct event_receiver *event_receiver_start(struct loop *loop, const struct address *address,
                                            const struct event_receiver_handler *handler, void *context,
                                            struct error *err);
bool event_receiver_address(const struct event_receiver *receiver, struct address *ret_address);
struct event_receiver_counters event_receiver_counters(const struct event_receiver *receiver);
/* Billing events that never came although others of their drain speak of them. */
size_t event_receiver_missing(const struct event_receiver *receiver);
/* An outage: connections are cut and refused until it is available again, on the same port. */
bool event_receiver_set_available(struct event_receiver *receiver, bool available, struct error *err);
void event_receiver_destroy(struct event_receiver *receiver); /* NULL is fine */

#endif
