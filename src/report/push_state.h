/*
 * What every client has to do for a push, besides its requests: remember whom to tell, end it from the loop only, and
 * keep its deadline.
 */
#ifndef BALLAST_REPORT_PUSH_STATE_H
#define BALLAST_REPORT_PUSH_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"
#include "report/report_client.h"

struct push_state {
	struct loop *loop;
	report_push_done *done; /* NULL: no push under way */
	void *context;
	uint64_t deadline_ns;
	struct loop_timer deadline;
	struct loop_task task;
	struct error err;
	const char *cause; /* NULL: success */
};

/* on_deadline (of the owner) must end the push. */
void push_state_begin(struct push_state *state, struct loop *loop, const struct report_push *push,
                      report_push_done *done, void *context, void (*on_deadline)(void *owner), void *owner);
uint64_t push_state_left_ns(const struct push_state *state); /* at least 1 */
/* The push is over; done is called from the loop. cause NULL: it succeeded. The cause must stay. */
void push_state_end(struct push_state *state, const char *cause, const struct error *err);
void push_state_cancel(struct push_state *state);

#endif
