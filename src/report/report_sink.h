/*
 * Takes events and sees to it that each of its clients gets them, in batches (spec reporting section 6): one queue and
 * one sender per client, none waiting for another. Generation A's sender (generations 4.10) is a policy.
 *
 * Queues are bounded (README of the specs, decision 13). An event that finds a queue full is dropped for that client,
 * counted and logged. Everything else waits until it was delivered, however long that takes; what fails is sent again
 * with the same bytes.
 *
 * All calls may be made from inside any callback of the sink, but report_sink_destroy only from on_finished.
 */
#ifndef BALLAST_REPORT_REPORT_SINK_H
#define BALLAST_REPORT_REPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "net/loop.h"
#include "report/limits.h"
#include "report/report_client.h"

struct report_sink;

enum report_sending {
	/*
	 * Generation B, section 6: a batch is complete when it has max_batch_events or when push_every passed without
	 * one; a completed batch keeps its bytes; nothing is retried before another batch completes (S4).
	 */
	REPORT_SEND_BATCHES,
	/*
	 * Generation A, generations 4.10: at each tick of push_every the queue is drained, in chunks of at most
	 * max_batch_events cut anew each time; the first failure ends it until the next tick. For REPORT_JSON_ARRAY only.
	 */
	REPORT_SEND_AT_TICKS,
};

/* Called from within report_sink_submit and from the loop. client: the client's name. None may be NULL. */
struct report_sink_metrics {
	void *context;
	/* Events that wait, those under way included; also once with 0 when the sink is made (section 11). */
	void (*queue_size)(void *context, const char *client, uint64_t events);
	/* M2: 0 the last pass failed, 1e-6 there was nothing to send, else seconds. Not under REPORT_SEND_AT_TICKS. */
	void (*last_send_duration)(void *context, const char *client, double seconds);
	void (*send_error)(void *context, const char *client, const char *cause);
	/* Events that were given up: the queue was full, memory was short, or the grace period was over. */
	void (*dropped)(void *context, const char *client, uint64_t events);
};

struct report_sink_client {
	struct report_client *client;
	uint64_t push_every_ns;
	uint64_t push_timeout_ns;
	uint64_t max_batch_events;
};

struct report_sink_options {
	enum report_sending sending;
	uint64_t queue_events; /* bounds for each client's queue; 0: REPORT_QUEUE_EVENTS, REPORT_QUEUE_BYTES */
	uint64_t queue_bytes;
	struct report_sink_metrics metrics;
	struct logger
		logger; /* "….billing"; the senders log as "….billing.send-s3". Its strings must outlive the sink. */
};

/*
 * Starts the senders: the heartbeats count from here (S1). Takes the clients, also when it fails; without any, events
 * are taken and forgotten (W7).
 */
struct report_sink *report_sink_create(struct loop *loop, const struct report_sink_options *options,
                                       const struct report_sink_client *clients, size_t count, struct error *err);

/* Hands an event, one JSON object, to each client's queue. Copies; never waits, never sends from inside. */
void report_sink_submit(struct report_sink *sink, struct slice json);

/* How it goes with the events for one client. */
struct report_progress {
	uint64_t submitted; /* ever; those dropped at once included */
	uint64_t waiting;   /* those under way included */
	uint64_t dropped;
	bool pushing; /* since push_began_ns, on the loop's clock */
	uint64_t push_began_ns, push_timeout_ns;
};

/* False if there is no client of that name. */
bool report_sink_progress(const struct report_sink *sink, const char *client, struct report_progress *ret_progress);

/* Events that wait for the client of that name; 0 if there is none. */
uint64_t report_sink_queue_size(const struct report_sink *sink, const char *client);

/*
 * Ends in good order (S9, decision 13): what waits is sent; a failed pass is tried again with growing waits while
 * grace_ns lasts. on_finished comes once, from the loop: when all is delivered, or when grace_ns has passed; requests
 * under way are cut off then, and what is left is counted as dropped and logged. Events may still be submitted until
 * then. Later calls are ignored.
 */
void report_sink_finish(struct report_sink *sink, uint64_t grace_ns, void (*on_finished)(void *context), void *context);

/* Cancels what is under way; what waits is gone. NULL is fine. */
void report_sink_destroy(struct report_sink *sink);

#endif
