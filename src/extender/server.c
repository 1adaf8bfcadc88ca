/*
 * A call goes from its head (which route, how long a body) over its body, which the request takes piece by piece, to its
 * answer, which leaves step by step. Calls stand in a list in the order they came: the first whose body is still being
 * read may go on whatever is held, the others wait while it is too much.
 */
#include "extender/server.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "extender/call_log.h"
#include "extender/metrics_page.h"
#include "extender/page_server.h"
#include "extender/process_limits.h"

enum route { ROUTE_FILTER, ROUTE_PRIORITIZE, ROUTE_BIND, ROUTE_METRICS, ROUTE_NOT_FOUND };

_Static_assert((int)EXTENDER_SMALL_BODIES_BYTES + (int)EXTENDER_READ_ANYWAY_BYTES <= 256 * 1024 * 1024,
               "more than design 5 allows");
_Static_assert((int)EXTENDER_BODY_BYTES < (int)EXTENDER_READ_ANYWAY_BYTES, "a body has room whatever is held");

struct extender_call {
	struct extender_server *server;
	struct extender_call *next, *previous; /* among all calls */
	struct http_call *http;
	enum route route;
	struct request request;
	size_t expected_bytes; /* 0: not known */
	size_t held_bytes;     /* as the server counts it */
	bool reading;          /* the body isn't complete */
	bool waiting;          /* paused: too much is held */
	bool expected;         /* the request was told how much comes */
	struct filter_call filter_call;
	bool filtering;         /* filter_call has begun */
	struct arena arena;     /* of a prioritize call */
	struct answer answer;   /* likewise, and of a bind call */
	struct answer *leaving; /* NULL: not answered yet */
	struct slice piece;     /* of it: not written yet */
};

struct extender_server {
	struct extender_server_options options;
	struct http_server *http;
	struct extender_call *first, *last;
	size_t held_bytes;
	struct extender_call *beyond; /* the one that is read whatever is held, until it ends; NULL: none */
	struct loop_task admission;
};

/* ---- what is held ---- */

static void count_held(struct extender_call *call, size_t bytes)
{
	call->server->held_bytes += bytes - call->held_bytes;
	call->held_bytes = bytes;
}

static bool is_first_reader(const struct extender_call *call)
{
	const struct extender_call *other = call->server->first;

	while (other != call && !other->reading)
		other = other->next;
	return other == call;
}

/* A call that is let beyond the limits stays the only one until it ends: its body is held while it is decided, too. */
static bool let_read(struct extender_call *call)
{
	struct extender_server *server = call->server;
	bool small = call->expected_bytes > 0 && call->expected_bytes <= EXTENDER_SMALL_BODY_BYTES;
	size_t limit = small ? EXTENDER_SMALL_BODIES_BYTES : EXTENDER_BODIES_BYTES;
	size_t more = call->expected ? 0 : call->expected_bytes;

	if (server->held_bytes + more <= limit)
		return true;
	if (server->beyond == NULL && is_first_reader(call))
		server->beyond = call;
	return server->beyond == call;
}

/* Others may be read now that one holds less. */
static void admit_soon(struct extender_server *server);

/* ---- the end of a call ---- */

static void free_call(struct extender_call *call)
{
	struct extender_server *server = call->server;

	if (call->filtering)
		filter_call_end(&call->filter_call);
	answer_destroy(&call->answer);
	arena_destroy(&call->arena);
	request_destroy(&call->request);
	count_held(call, 0);
	if (server->beyond == call)
		server->beyond = NULL;
	if (call->previous != NULL)
		call->previous->next = call->next;
	else
		server->first = call->next;
	if (call->next != NULL)
		call->next->previous = call->previous;
	else
		server->last = call->previous;
	admit_soon(server);
	memory_release(call);
}

/* For a request that isn't taken: the connection closes behind it. */
static void refuse(struct extender_call *call, int status, const char *text)
{
	struct http_call *http = call->http;

	free_call(call);
	http_call_respond(http, status, "text/plain; charset=utf-8", slice_of(text));
}

/* An error would let a pod pass unchecked where the extender is ignorable: "nothing yet" instead. */
static void refuse_for_memory(enum route route, struct http_call *http)
{
	if (route == ROUTE_FILTER)
		http_call_respond(http, 200, "application/json", answer_retry_text());
	else
		http_call_respond(http, 503, "text/plain; charset=utf-8", SLICE("no memory for the request\n"));
}

static void refuse_body(struct extender_call *call, enum request_feed_result result)
{
	struct http_call *http = call->http;
	enum route route = call->route;
	char text[96];

	if (result == REQUEST_NO_MEMORY) {
		free_call(call);
		refuse_for_memory(route, http);
		return;
	}
	(void)snprintf(text, sizeof text, "the body is over the limit of %d bytes\n",
	               call->route == ROUTE_BIND ? (int)EXTENDER_BINDING_BYTES : (int)EXTENDER_BODY_BYTES);
	refuse(call, 413, text);
}

/* ---- the answer ---- */

static void write_more(struct extender_call *call)
{
	struct http_call *http = call->http;

	while (http_call_pending_bytes(http) < EXTENDER_ANSWER_STEP_BYTES) {
		struct slice part;

		if (call->piece.length == 0 && !answer_next(call->leaving, &call->piece)) {
			free_call(call);
			http_call_end(http);
			return;
		}
		part = call->piece;
		if (part.length > EXTENDER_ANSWER_STEP_BYTES)
			part.length = EXTENDER_ANSWER_STEP_BYTES;
		if (!http_call_write(http, part)) {
			free_call(call);
			http_call_abort(http, true);
			return;
		}
		call->piece = slice_from_offset(call->piece, part.length);
	}
}

static void begin_answer(struct extender_call *call, struct answer *answer)
{
	char length[24];
	struct http_field fields[] = {
		{ SLICE_INIT("Content-Type"), SLICE_INIT("application/json") },
		{ SLICE_INIT("Content-Length"), { 0 } },
	};

	(void)snprintf(length, sizeof length, "%zu", answer_length(answer));
	fields[1].value = slice_of(length);
	call->leaving = answer;
	http_call_begin(call->http, 200, (struct http_fields){ fields, sizeof fields / sizeof fields[0] });
	write_more(call);
}

/* ---- the decision ---- */

static void on_filtered(void *context)
{
	struct extender_call *call = context;

	begin_answer(call, &call->filter_call.filter.answer);
}

static void prioritize_call(struct extender_call *call)
{
	const struct filter_environment *environment = call->server->options.environment;
	const struct volume_counts *counts;
	struct capacity_plan plan = { 0 };
	char session[CALL_SESSION_BYTES] = "";
	struct call_log log;
	struct error err;

	counts = caches_volume_counts(environment->caches, &err);
	if (counts != NULL)
		prioritize_answer(environment->settings, caches_view(environment->caches), counts, &call->request,
		                  &call->arena, &plan, &call->answer);
	else
		answer_empty(&call->answer); /* S5 */
	if (counts == NULL || plan.note_count > 0) {
		call_log_begin(&log, environment->loop, environment->log_sink, "PrioritizeHandler", session,
		               &call->request);
		if (counts == NULL)
			log_error(&log.logger, "Volumes can't be counted", log_error_field(&err));
		else
			log_debug(&log.logger, "Prioritized", log_uint("bytes", answer_length(&call->answer)));
		call_log_end(&log);
	}
	begin_answer(call, &call->answer);
}

static void on_request(void *context, struct http_call *http)
{
	struct extender_server *server = context;
	struct extender_call *call = http_call_context(http);
	const struct filter_environment *environment = server->options.environment;
	struct logger logger = { .sink = environment->log_sink, .name = "extender", .context_json = "" };

	call->reading = false;
	admit_soon(server);
	switch (call->route) {
	case ROUTE_FILTER:
		call->filtering = true;
		filter_call_begin(&call->filter_call, environment, &call->request, on_filtered, call);
		break;
	case ROUTE_PRIORITIZE:
		prioritize_call(call);
		break;
	case ROUTE_BIND:
		bind_answer(&call->request, &call->answer);
		begin_answer(call, &call->answer);
		break;
	case ROUTE_METRICS:
		free_call(call);
		metrics_page_answer(environment->metrics, &logger, http);
		break;
	case ROUTE_NOT_FOUND:
		free_call(call);
		page_server_answer_not_found(http);
		break;
	}
}

/* ---- the body ---- */

static bool has_body(const struct extender_call *call)
{
	return call->route != ROUTE_METRICS && call->route != ROUTE_NOT_FOUND;
}

/* Makes room for a body that may be read now. False: the call was refused. */
static bool expect(struct extender_call *call)
{
	enum request_feed_result result;

	if (call->expected || call->expected_bytes == 0)
		return true;
	call->expected = true;
	result = request_expect(&call->request, call->expected_bytes);
	if (result != REQUEST_FED) {
		refuse_body(call, result);
		return false;
	}
	count_held(call, request_held_bytes(&call->request));
	return true;
}

/* Reads the body, or lets it wait. False: the call was refused. */
static bool read_or_wait(struct extender_call *call)
{
	if (let_read(call))
		return expect(call);
	call->waiting = true;
	http_call_pause_body(call->http);
	return true;
}

static void admit(void *context)
{
	struct extender_server *server = context;
	struct extender_call *next;

	for (struct extender_call *call = server->first; call != NULL; call = next) {
		next = call->next;
		if (!call->waiting || !let_read(call))
			continue;
		call->waiting = false;
		if (expect(call))
			http_call_resume_body(call->http);
	}
}

static void admit_soon(struct extender_server *server)
{
	loop_run_soon(server->options.environment->loop, &server->admission, admit, server);
}

static void on_body(void *context, struct http_call *http, struct slice bytes)
{
	struct extender_call *call = http_call_context(http);
	enum request_feed_result result;

	(void)context;
	if (!has_body(call)) {
		call->expected_bytes += bytes.length;
		if (call->expected_bytes > EXTENDER_PAGE_REQUEST_BYTES)
			refuse(call, 413, "the body is too long\n");
		return;
	}
	result = request_feed(&call->request, bytes);
	if (result != REQUEST_FED) {
		refuse_body(call, result);
		return;
	}
	count_held(call, request_held_bytes(&call->request));
	(void)read_or_wait(call);
}

/* ---- the head ---- */

static enum route find_route(const struct extender_server *server, struct slice path)
{
	if (slice_equal_text(path, "/filter"))
		return ROUTE_FILTER;
	if (slice_equal_text(path, "/prioritize"))
		return ROUTE_PRIORITIZE;
	if (slice_equal_text(path, "/bind"))
		return ROUTE_BIND;
	if (server->options.metrics_path[0] != '\0' && slice_equal_text(path, server->options.metrics_path))
		return ROUTE_METRICS;
	return ROUTE_NOT_FOUND;
}

static struct extender_call *make_call(struct extender_server *server, struct http_call *http)
{
	struct extender_call *call = memory_allocate(sizeof *call);

	if (call == NULL)
		return NULL;
	call->server = server;
	call->http = http;
	call->route = find_route(server, http_call_path(http));
	call->reading = true;
	request_init(&call->request, call->route == ROUTE_BIND ? REQUEST_BINDING : REQUEST_ARGS,
	             server->options.environment->settings);
	answer_init(&call->answer);
	arena_init(&call->arena, EXTENDER_CALL_ARENA_BYTES);
	call->previous = server->last;
	if (server->last != NULL)
		server->last->next = call;
	else
		server->first = call;
	server->last = call;
	http_call_set_context(http, call);
	return call;
}

static bool on_head(void *context, struct http_call *http)
{
	struct extender_call *call = make_call(context, http);
	struct slice text = http_fields_find(http_call_fields(http), "Content-Length");
	uint64_t length = 0;

	if (call == NULL) {
		refuse_for_memory(find_route(context, http_call_path(http)), http);
		return false;
	}
	if (!has_body(call))
		return true;
	if (slice_to_u64(text, &length) && length > EXTENDER_BODY_BYTES) {
		refuse_body(call, REQUEST_TOO_LARGE);
		return false;
	}
	call->expected_bytes = (size_t)length;
	return read_or_wait(call);
}

static void on_abort(void *context, struct http_call *http)
{
	struct extender_call *call = http_call_context(http);

	(void)context;
	if (call != NULL)
		free_call(call);
}

static void on_written(void *context, struct http_call *http)
{
	struct extender_call *call = http_call_context(http);

	(void)context;
	if (call->leaving != NULL)
		write_more(call);
}

/* ---- life ---- */

static struct tls_settings *current_tls(void *context)
{
	const struct extender_server *server = context;

	return tls_files_settings(server->options.tls);
}

static void on_error(void *context, const struct error *err)
{
	const struct extender_server *server = context;
	struct logger logger = { .sink = server->options.environment->log_sink,
		                 .name = "extender",
		                 .context_json = "\"component\":\"Extender\"" };

	log_warn(&logger, "Failed to accept a connection", log_error_field(err));
}

struct extender_server *extender_server_start(const struct extender_server_options *options, struct error *err)
{
	static const struct http_server_handler HANDLER = {
		.on_head = on_head,
		.on_body = on_body,
		.on_request = on_request,
		.on_abort = on_abort,
		.on_drained = on_written,
	};
	const struct http_server_options settings = {
		.address = options->address,
		.tls = options->tls != NULL ? current_tls : NULL,
		.max_connections = EXTENDER_CONNECTIONS,
		.max_body_bytes = SIZE_MAX, /* the limits of the routes differ, and their refusals say which */
		.idle_timeout_ns = (uint64_t)EXTENDER_IDLE_S * NS_PER_S,
		.on_error = on_error,
	};
	struct extender_server *server = memory_allocate(sizeof *server);

	if (server == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the extender's port");
		return NULL;
	}
	server->options = *options;
	server->http = http_server_start(options->environment->loop, &settings, &HANDLER, server, err);
	if (server->http == NULL) {
		memory_release(server);
		return NULL;
	}
	return server;
}

bool extender_server_address(const struct extender_server *server, struct address *ret_address)
{
	return http_server_address(server->http, ret_address);
}

size_t extender_server_held_bytes(const struct extender_server *server)
{
	return server->held_bytes;
}

uint64_t extender_server_oldest_call_ns(const struct extender_server *server)
{
	uint64_t oldest_ns = UINT64_MAX;

	for (const struct extender_call *call = server->first; call != NULL; call = call->next)
		if (call->filtering && call->leaving == NULL && call->filter_call.started_ns < oldest_ns)
			oldest_ns = call->filter_call.started_ns;
	return oldest_ns;
}

void extender_server_drain(struct extender_server *server, uint64_t timeout_ns, void (*on_drained)(void *context),
                           void *context)
{
	http_server_drain(server->http, timeout_ns, on_drained, context);
}

void extender_server_destroy(struct extender_server *server)
{
	if (server == NULL)
		return;
	http_server_destroy(server->http);
	while (server->first != NULL)
		free_call(server->first);
	loop_task_cancel(server->options.environment->loop, &server->admission);
	memory_release(server);
}
