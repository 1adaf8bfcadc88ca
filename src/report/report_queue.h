/*
 * One client's queue: an ongoing batch and those completed before it (spec reporting 6.1), or single events from which
 * batches are cut when they are sent (generations 4.10). Bounded in events and bytes.
 */
#ifndef BALLAST_REPORT_REPORT_QUEUE_H
#define BALLAST_REPORT_REPORT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "report/gzip_packer.h"
#include "report/report_client.h"

struct report_batch {
	struct report_batch *next;
	uint64_t event_count;
	struct buffer body;
};

struct report_event; /* a single one */

struct report_queue_settings {
	enum report_batch_format format;
	bool cut_late;             /* single events; needs REPORT_JSON_ARRAY */
	uint64_t max_batch_events; /* at least 1 */
	uint64_t limit_events;
	size_t limit_bytes;
};

struct report_queue {
	struct report_queue_settings settings;
	struct report_batch *first, *last; /* completed */
	struct report_batch *ongoing;      /* never without events */
	struct gzip_packer *packer;        /* of the ongoing one */
	struct report_event *first_event, *last_event;
	uint64_t event_count; /* all that wait */
	uint64_t batch_count; /* completed */
	size_t bytes;         /* memory that content takes */
};

void report_queue_init(struct report_queue *queue, const struct report_queue_settings *settings);
void report_queue_destroy(struct report_queue *queue);

/*
 * Adds one event. False, and the queue as before, when a bound is reached (ERROR_LIMIT) or memory is short.
 * *ret_completed: the ongoing batch was completed by it (Q1).
 */
bool report_queue_add(struct report_queue *queue, struct slice json, bool *ret_completed, struct error *err);
/* Completes the ongoing batch. False if there is none (Q3). */
bool report_queue_complete(struct report_queue *queue);
/*
 * The batch to send next; NULL with *err if it can't be made. There must be one: batch_count is over 0, or, for single
 * events, event_count is. It stays in the queue until one of the two below.
 */
const struct report_batch *report_queue_take(struct report_queue *queue, struct error *err);
/* The batch that was taken has arrived. */
void report_queue_remove_taken(struct report_queue *queue);
/* It hasn't: it stays, or its events do. */
void report_queue_return_taken(struct report_queue *queue);
/* Whether report_queue_take has something. */
bool report_queue_has_batch(const struct report_queue *queue);

#endif
