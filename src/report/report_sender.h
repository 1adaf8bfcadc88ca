/*
 * Sends what waits in one client's queue (spec reporting 6.2, generations 4.10): the inside of a sink.
 */
#ifndef BALLAST_REPORT_REPORT_SENDER_H
#define BALLAST_REPORT_REPORT_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "net/loop.h"
#include "report/object_key.h"
#include "report/report_queue.h"
#include "report/report_sink.h"

struct report_sender {
	struct loop *loop;
	enum report_sending sending;
	struct report_sink_client client;
	struct report_sink_metrics metrics;
	struct report_queue queue;
	struct logger logger;
	char logger_name[REPORT_LOGGER_NAME_BYTES];
	struct loop_timer timer; /* heartbeat or tick; once finishing: the next pass */
	uint64_t next_tick_ns;   /* REPORT_SEND_AT_TICKS */
	struct loop_task look_task;
	bool awake;       /* the wake flag of Q2 */
	bool timer_due;   /* it rang during a pass */
	bool turned_away; /* an event, since the last pass began: the queue had no room */
	/* the pass under way */
	bool sending_now;
	bool pushing; /* the client has a batch */
	uint64_t pass_began_ns, push_began_ns;
	uint64_t pass_events, pass_batches;
	uint64_t push_events;
	char id[REPORT_ID_BYTES];
	uint64_t submitted;
	/* dropped events */
	uint64_t dropped, dropped_logged;
	bool drop_was_logged;
	uint64_t drop_logged_ns;
	/* the end */
	bool finishing, final_pass_made;
	unsigned failed_passes;
	struct loop_timer grace_timer;
	void (*on_finished)(void *context);
	void *finished_context;
};

/* The sender takes the client. Where it lies must not change. */
void report_sender_start(struct report_sender *sender, struct loop *loop, const struct report_sink_options *options,
                         const struct report_sink_client *client);
void report_sender_submit(struct report_sender *sender, struct slice json);
/* on_finished comes once, never from inside. */
void report_sender_finish(struct report_sender *sender, uint64_t grace_ns, void (*on_finished)(void *context),
                          void *context);
void report_sender_destroy(struct report_sender *sender);

#endif
