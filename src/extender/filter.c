/*
 * The first answer is "nothing yet" (Retry), which needs no memory: a call that then runs out of it still has an answer
 * that makes the scheduler try again. An error would let the pod pass unchecked where the extender is ignorable.
 */
#include "extender/filter.h"

/* Whatever went wrong with making an answer, the one made before stays. */
static enum filter_step answered(struct filter *filter, bool ok, const struct error *err)
{
	if (!ok)
		filter->failure = *err;
	return FILTER_ANSWER;
}

/* Fail-A */
static enum filter_step refuse(struct filter *filter, const struct error *cause)
{
	struct error err;

	if (cause->code == ERROR_NO_MEMORY) {
		filter->failure = *cause;
		return FILTER_ANSWER;
	}
	if (!arena_copy(&filter->arena, slice_of(cause->text), &filter->error))
		return answered(filter, error_set(&err, ERROR_NO_MEMORY, "no memory for an answer"), &err);
	return answered(filter, answer_refusal(&filter->answer, filter->error, &err), &err);
}

/* Pending, or with an error Fail-B. */
static enum filter_step pend(struct filter *filter, struct slice error)
{
	struct error err;

	if (!arena_copy(&filter->arena, error, &filter->error))
		return answered(filter, error_set(&err, ERROR_NO_MEMORY, "no memory for an answer"), &err);
	return answered(filter, answer_pending(&filter->answer, filter->request, filter->error, &err), &err);
}

static enum filter_step pend_quietly(struct filter *filter)
{
	return pend(filter, slice_from(NULL, 0));
}

/* Something in the way that isn't the request's fault. */
static enum filter_step pend_for_failure(struct filter *filter, const struct error *cause)
{
	filter->failure = *cause;
	return pend_quietly(filter);
}

enum filter_step filter_start(struct filter *filter, const struct extender_settings *settings,
                              const struct storage_view *view, struct request *request)
{
	struct error err;

	*filter = (struct filter){ .settings = settings, .request = request };
	arena_init(&filter->arena, EXTENDER_CALL_ARENA_BYTES);
	buffer_init(&filter->object, EXTENDER_RESERVATION_BYTES);
	answer_init(&filter->answer);
	answer_retry(&filter->answer);
	if (!request_finish(request, &err) ||
	    !capacity_plan_make(settings, view, &request->args.pod, &filter->arena, &filter->plan, &err))
		return refuse(filter, &err);
	if (filter->plan.outcome == CAPACITY_RETRY)
		return FILTER_ANSWER;

	enum request_nodes_form form = request_nodes_form(request);

	if (form == REQUEST_NODES_ABSENT) {
		error_set(&err, ERROR_SYNTAX, "the request has neither Nodes nor NodeNames");
		return refuse(filter, &err);
	}
	if (filter->plan.request_count == 0)
		return answered(filter, answer_all_nodes(&filter->answer, request, &err), &err);
	if ((form == REQUEST_NODES_BY_NAME && !request_resolve_names(request, view, &err)) ||
	    !reservation_name(&request->args.pod, filter->name, sizeof filter->name, &err))
		return refuse(filter, &err);
	return FILTER_READ;
}

/* reservation NULL: a new one */
static enum filter_step write_object(struct filter *filter,
                                     const struct csi_available_capacity_reservation *reservation)
{
	struct error err;
	bool ok;

	buffer_clear(&filter->object);
	if (reservation == NULL)
		ok = reservation_print_new(filter->request, &filter->plan, filter->name, &filter->arena,
		                           &filter->object, &err);
	else
		ok = reservation_print_again(filter->request, &filter->plan, filter->decision.reason, reservation,
		                             &filter->arena, &filter->object, &err);
	if (!ok)
		return pend_for_failure(filter, &err);
	return reservation == NULL ? FILTER_CREATE : FILTER_REPLACE;
}

static enum filter_step refuse_status(struct filter *filter)
{
	struct error text;

	error_set(&text, ERROR_REFUSED, "unsupported reservation status: %.*s", SLICE_ARGS(filter->decision.status));
	filter->decision.status = slice_from(NULL, 0); /* the reservation goes, the decision stays */
	return pend(filter, slice_of(text.text));
}

static enum filter_step place(struct filter *filter)
{
	struct error err;

	if (!answer_matched_nodes(&filter->answer, filter->request, filter->decision.matched, &filter->arena, &err))
		return answered(filter, false, &err);
	filter->placed = true;
	return FILTER_ANSWER;
}

/* reservation NULL: there is none */
static enum filter_step decide(struct filter *filter, const struct csi_available_capacity_reservation *reservation)
{
	struct error err;

	if (!reservation_decide(filter->request, &filter->plan, reservation, &filter->arena, &filter->decision, &err))
		return pend_for_failure(filter, &err);
	switch (filter->decision.action) {
	case RESERVATION_CREATE:
	case RESERVATION_REPLACE:
		return write_object(filter, reservation);
	case RESERVATION_PLACE:
		return place(filter);
	case RESERVATION_REFUSE:
		return refuse_status(filter);
	case RESERVATION_PENDING:
		break;
	}
	return pend_quietly(filter);
}

enum filter_step filter_found(struct filter *filter, const struct csi_available_capacity_reservation *reservation)
{
	return decide(filter, reservation);
}

enum filter_step filter_not_found(struct filter *filter)
{
	return decide(filter, NULL);
}

enum filter_step filter_written(struct filter *filter)
{
	return pend_quietly(filter);
}

enum filter_step filter_conflicted(struct filter *filter)
{
	if (++filter->conflicts <= EXTENDER_CONFLICT_TRIES)
		return FILTER_READ;
	return pend_quietly(filter);
}

enum filter_step filter_call_failed(struct filter *filter, int http_status, struct slice message)
{
	if (reservation_failure_passes(http_status))
		return pend_quietly(filter);
	return pend(filter, message.length > 0 ? message : SLICE("the API server refused the reservation"));
}

void filter_destroy(struct filter *filter)
{
	arena_destroy(&filter->arena);
	buffer_destroy(&filter->object);
	answer_destroy(&filter->answer);
}

/* --- the other routes --- */

void prioritize_answer(const struct extender_settings *settings, const struct storage_view *view,
                       const struct volume_counts *counts, struct request *request, struct arena *arena,
                       struct capacity_plan *ret_plan, struct answer *answer)
{
	struct capacity_plan plan = { 0 };
	struct priority_list list;
	struct error err;

	*ret_plan = plan;
	answer_empty(answer);
	if (!request_finish(request, &err))
		return;
	if (!capacity_plan_make(settings, view, &request->args.pod, arena, &plan, &err)) {
		answer_null(answer, &err);
		return;
	}
	*ret_plan = plan;
	if (plan.outcome == CAPACITY_RETRY || plan.request_count == 0) {
		answer_null(answer, &err);
		return;
	}
	switch (request_nodes_form(request)) {
	case REQUEST_NODES_ABSENT:
		return;
	case REQUEST_NODES_BY_NAME:
		if (!request_resolve_names(request, view, &err))
			return;
		break;
	case REQUEST_NODES_FULL:
		break;
	}
	if (prioritize(settings, request, counts, arena, &list, &err))
		answer_scores(answer, &list, &err);
}

void bind_answer(struct request *request, struct answer *answer)
{
	struct error err;
	struct error ignored;

	answer_empty(answer);
	if (!request_finish(request, &err))
		answer_binding(answer, slice_of(err.text), &ignored);
	else
		answer_binding(answer, SLICE("don't know how to use bind API"), &ignored);
}
