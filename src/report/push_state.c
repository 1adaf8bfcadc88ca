#include "report/push_state.h"

#include <stddef.h>

void push_state_begin(struct push_state *state, struct loop *loop, const struct report_push *push,
                      report_push_done *done, void *context, void (*on_deadline)(void *owner), void *owner)
{
	*state = (struct push_state){
		.loop = loop,
		.done = done,
		.context = context,
		.deadline_ns = loop_now_ns(loop) + push->timeout_ns,
	};
	loop_timer_start(loop, &state->deadline, push->timeout_ns, on_deadline, owner);
}

uint64_t push_state_left_ns(const struct push_state *state)
{
	const uint64_t now_ns = loop_now_ns(state->loop);

	return state->deadline_ns > now_ns ? state->deadline_ns - now_ns : 1;
}

static void tell(void *context)
{
	struct push_state *state = context;
	report_push_done *done = state->done;
	struct error err = state->err; /* the next push may begin inside */

	state->done = NULL;
	done(state->context,
	     state->cause != NULL ? &(struct report_failure){ .err = &err, .cause = state->cause } : NULL);
}

void push_state_end(struct push_state *state, const char *cause, const struct error *err)
{
	loop_timer_stop(state->loop, &state->deadline);
	state->cause = cause;
	if (cause != NULL)
		state->err = *err;
	loop_run_soon(state->loop, &state->task, tell, state);
}

void push_state_cancel(struct push_state *state)
{
	if (state->done == NULL)
		return;
	loop_timer_stop(state->loop, &state->deadline);
	loop_task_cancel(state->loop, &state->task);
	state->done = NULL;
}
