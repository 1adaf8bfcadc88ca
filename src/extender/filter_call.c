/*
 * filter_start decides from the caches; each further step follows from what the API server said. A call that waits for the
 * controller reads on after its answer ("pending") is made, and only a reservation that has a node replaces that answer.
 */
#include "extender/filter_call.h"

#include "base/clock.h"
#include "extender/process_limits.h"

enum { NODES_POLL_MS = 20, UNAUTHORIZED = 401, ALREADY_EXISTS = 409, CONFLICT = 409, NOT_FOUND = 404 };

static void carry_out(struct filter_call *call, enum filter_step step);

static uint64_t now_ns(const struct filter_call *call)
{
	return loop_now_ns(call->environment->loop);
}

/* ---- the answer ---- */

static void begin_log(struct filter_call *call, struct call_log *log)
{
	const struct filter_environment *environment = call->environment;

	call_log_begin(log, environment->loop, environment->log_sink, "FilterHandler", call->session, call->request);
}

/* Why there is neither a node nor an error in the answer; NULL if there is no need for one. */
static const char *wait_reason(const struct filter_call *call)
{
	if (call->wait_reason != NULL)
		return call->wait_reason;
	if (call->filter.failure.code != ERROR_NONE)
		return "the extender has reached a limit";
	if (call->counted)
		return reservation_reason_text(call->filter.decision.reason);
	return call->filter.plan.outcome == CAPACITY_RETRY ? "a claim or its class isn't known yet" : NULL;
}

static void log_answer(struct filter_call *call)
{
	const struct filter *filter = &call->filter;
	const char *reason = wait_reason(call);
	struct call_log log;

	/* A pod that has nothing to do with us, which is nearly every pod. */
	if (reason == NULL && filter->error.length == 0 && filter->plan.note_count == 0)
		return;
	begin_log(call, &log);
	call_log_volumes(&log, &filter->plan);
	if (filter->failure.code != ERROR_NONE)
		log_error(&log.logger, "The filter call can't be decided", log_error_field(&filter->failure));
	if (filter->error.length > 0)
		log_error(&log.logger, "The filter call fails", log_slice("error", filter->error));
	else if (filter->placed)
		log_info(&log.logger, "The pod has nodes to choose from", log_text("reservation", filter->name));
	else if (reason != NULL && filter->name[0] != '\0')
		log_info(&log.logger, "The pod has to wait", log_text("reservation", filter->name),
		         log_text("reason", reason));
	else if (reason != NULL)
		log_info(&log.logger, "The pod has to wait", log_text("reason", reason));
	call_log_end(&log);
}

static void finish(struct filter_call *call)
{
	const struct filter_environment *environment = call->environment;
	const struct extender_pod *pod = &call->request->args.pod;

	if (call->answered)
		return;
	call->answered = true;
	loop_timer_stop(environment->loop, &call->timer);
	log_answer(call);
	if (call->counted) {
		if (call->filter.placed)
			extender_metrics_note_placed(environment->metrics, pod->metadata.name, now_ns(call));
		event_lists_ask(environment->events, pod->metadata.namespace, pod->metadata.name,
		                now_ns(call) - call->started_ns);
	}
	call->on_answer(call->context);
}

/* ---- waiting for the controller ---- */

static void poll_again(struct filter_call *call);

/* Only nodes make a better answer than "pending", which is made already. */
static void look(struct filter_call *call, const struct csi_available_capacity_reservation *reservation)
{
	if (slice_equal_text(reservation->spec.status, "REQUESTED")) {
		poll_again(call);
		return;
	}
	/* Asking once more at once, for an answer that is milliseconds old, would be a loop. */
	if (filter_found(&call->filter, reservation) != FILTER_ANSWER)
		call->wait_reason = "the controller has just answered, without a node for it; the next call asks again";
	finish(call);
}

/* ---- what the API server says ---- */

/* 401 passes as well: a token is being replaced. */
static int status_for_decision(int status)
{
	return status == UNAUTHORIZED || status < 300 ? 0 : status;
}

/* What comes next after a call that failed. */
static enum filter_step after_failure(struct filter_call *call, int status, const struct error *err)
{
	struct call_log log;

	if (call->poll_until_ns != 0)
		return FILTER_ANSWER; /* which is there already */
	call->wait_reason = "a call to the API server failed";
	begin_log(call, &log);
	log_warn(&log.logger, "A call to the API server failed", log_text("reservation", call->filter.name),
	         log_int("status", status), log_error_field(err));
	call_log_end(&log);
	return filter_call_failed(&call->filter, status_for_decision(status), slice_of(error_root(err)));
}

static void fail(struct filter_call *call, int status, const struct error *err)
{
	carry_out(call, after_failure(call, status, err));
}

static void take_reservation(struct filter_call *call, struct slice json)
{
	struct csi_available_capacity_reservation reservation;
	struct arena arena;
	struct error err;

	arena_init(&arena, (size_t)12 * EXTENDER_RESERVATION_BYTES);
	if (!csi_available_capacity_reservation_from_json(json, &arena, &reservation, &err)) {
		error_wrap(&err, "reading the reservation");
		fail(call, 0, &err);
	} else if (call->poll_until_ns != 0) {
		look(call, &reservation);
	} else {
		carry_out(call, filter_found(&call->filter, &reservation));
	}
	arena_destroy(&arena);
}

static void on_read(void *context, int status, struct slice body, const struct error *err)
{
	struct filter_call *call = context;

	call->api_call = NULL;
	call->wait_reason = NULL;
	if (err == NULL)
		take_reservation(call, body);
	else if (status == NOT_FOUND && call->poll_until_ns == 0)
		carry_out(call, filter_not_found(&call->filter));
	else
		fail(call, status, err);
}

/* Created or replaced; the controller may answer soon. */
static void on_asked(struct filter_call *call)
{
	enum filter_step step = filter_written(&call->filter);

	if (step != FILTER_ANSWER || call->environment->wait_ns == 0) {
		carry_out(call, step);
		return;
	}
	call->poll_until_ns = now_ns(call) + call->environment->wait_ns;
	if (call->poll_until_ns > call->deadline_ns)
		call->poll_until_ns = call->deadline_ns;
	poll_again(call);
}

static void on_created(void *context, int status, struct slice body, const struct error *err)
{
	struct filter_call *call = context;

	(void)body;
	call->api_call = NULL;
	if (err == NULL || status == ALREADY_EXISTS)
		on_asked(call);
	else
		fail(call, status, err);
}

static void on_replaced(void *context, int status, struct slice body, const struct error *err)
{
	struct filter_call *call = context;

	(void)body;
	call->api_call = NULL;
	if (err == NULL) {
		on_asked(call);
	} else if (status == CONFLICT || status == NOT_FOUND) {
		call->wait_reason = "the reservation was changed meanwhile, again and again";
		carry_out(call, filter_conflicted(&call->filter));
	} else {
		fail(call, status, err);
	}
}

/* ---- steps ---- */

static bool begin_api_call(struct filter_call *call, enum filter_step step, struct error *err)
{
	const struct reservation_calls *calls = &call->environment->reservations;
	struct slice name = slice_of(call->filter.name);
	struct slice object = buffer_slice(&call->filter.object);

	switch (step) {
	case FILTER_READ:
		call->api_call = reservation_read(calls, name, call->deadline_ns, on_read, call, err);
		break;
	case FILTER_CREATE:
		call->api_call = reservation_create(calls, name, object, call->deadline_ns, on_created, call, err);
		break;
	case FILTER_REPLACE:
		call->api_call = reservation_replace(calls, name, object, call->deadline_ns, on_replaced, call, err);
		break;
	case FILTER_ANSWER:
		return error_set(err, ERROR_INVARIANT, "an answer is no call");
	}
	return call->api_call != NULL;
}

static void carry_out(struct filter_call *call, enum filter_step step)
{
	struct error err;

	while (step != FILTER_ANSWER) {
		if (begin_api_call(call, step, &err))
			return;
		step = after_failure(call, 0, &err);
	}
	finish(call);
}

static void read_for_poll(void *context)
{
	carry_out(context, FILTER_READ);
}

static void poll_again(struct filter_call *call)
{
	uint64_t pause_ns = (uint64_t)EXTENDER_WAIT_POLL_MS * NS_PER_MS;

	if (now_ns(call) + pause_ns >= call->poll_until_ns)
		finish(call);
	else
		loop_timer_start(call->environment->loop, &call->timer, pause_ns, read_for_poll, call);
}

/* ---- node names ---- */

/* The scheduler sent names, and which nodes they are isn't known. */
static bool lacks_nodes(const struct filter_call *call)
{
	const struct filter *filter = &call->filter;

	return filter->plan.outcome == CAPACITY_KNOWN && filter->plan.request_count > 0 &&
	       request_nodes_form(call->request) == REQUEST_NODES_BY_NAME &&
	       caches_view(call->environment->caches)->find_node == NULL;
}

static void decide(void *context)
{
	struct filter_call *call = context;
	const struct filter_environment *environment = call->environment;
	const struct storage_view *view = caches_view(environment->caches);
	enum filter_step step = filter_start(&call->filter, environment->settings, view, call->request);
	struct error ignored;

	if (step == FILTER_ANSWER && lacks_nodes(call) && caches_nodes(environment->caches) == CACHES_NODES_LOADING) {
		/* The first request with names starts the cache of nodes; that takes a moment, if the API server is well. */
		if (now_ns(call) < call->deadline_ns && caches_nodes_may_come(environment->caches, call->deadline_ns)) {
			filter_destroy(&call->filter);
			loop_timer_start(environment->loop, &call->timer, (uint64_t)NODES_POLL_MS * NS_PER_MS, decide,
			                 call);
			return;
		}
		call->filter.error = (struct slice){ 0 };
		call->wait_reason = "the nodes aren't known yet";
		(void)answer_pending(&call->filter.answer, call->request, call->filter.error, &ignored);
	}
	if (step == FILTER_READ) {
		call->counted = true;
		extender_metrics_count_schedule(environment->metrics, call->request->args.pod.metadata.name,
		                                now_ns(call));
	}
	carry_out(call, step);
}

/* ---- life ---- */

void filter_call_begin(struct filter_call *call, const struct filter_environment *environment, struct request *request,
                       filter_call_callback *on_answer, void *context)
{
	*call = (struct filter_call){
		.environment = environment,
		.request = request,
		.on_answer = on_answer,
		.context = context,
		.started_ns = loop_now_ns(environment->loop),
	};
	call->deadline_ns = call->started_ns + environment->budget_ns;
	decide(call);
}

void filter_call_end(struct filter_call *call)
{
	loop_timer_stop(call->environment->loop, &call->timer);
	reservation_call_cancel(call->api_call);
	call->api_call = NULL;
	filter_destroy(&call->filter);
}
