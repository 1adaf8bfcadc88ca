#include "sandbox/api_server.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/api_server_internal.h"

/* ---- who asks, and may they? ---- */

/* No token at all is the anonymous user (5.6). */
static bool authenticate(const struct api_server *server, struct http_call *call,
                         const struct api_identity **ret_identity)
{
	struct slice authorization = http_fields_find(http_call_fields(call), "Authorization");
	struct slice scheme = slice_take_until(&authorization, ' ');

	*ret_identity = NULL;
	if (!slice_equal_fold(scheme, SLICE("Bearer")))
		return true;
	*ret_identity = api_access_find(server->access, slice_trim(authorization));
	return *ret_identity != NULL;
}

static bool authorize(const struct api_identity *identity, struct api_request *request, struct api_error *ret_error)
{
	const char *user = identity != NULL ? identity->user : "system:anonymous";
	struct slice resource = request->plural;

	if (!request->is_resource) {
		if (identity != NULL)
			return true;
		api_error_forbidden_path(ret_error, &request->arena, user, request->method, request->path);
		return false;
	}
	if (request->subresource.length > 0)
		resource = api_text(&request->arena, "%.*s/%.*s", SLICE_ARGS(request->plural),
		                    SLICE_ARGS(request->subresource));
	if (api_identity_may(identity, api_verb_name(request->verb), request->group, resource, request->name_space))
		return true;
	api_error_forbidden(ret_error, &request->arena, user, api_verb_name(request->verb), request->group,
	                    request->plural, request->subresource, request->name_space, request->name);
	return false;
}

static bool is_health_path(struct slice path)
{
	return slice_equal_text(path, "/healthz") || slice_equal_text(path, "/livez") ||
	       slice_equal_text(path, "/readyz");
}

/* A status, as a server in trouble gives it. */
static void answer_with(int status, struct api_error *ret_error)
{
	switch (status) {
	case 409:
		api_error_set(
			ret_error, status, "Conflict",
			SLICE("Operation cannot be fulfilled: the object has been modified; please apply your changes "
		              "to the latest version and try again"));
		return;
	case 410:
		api_error_set(ret_error, status, "Expired", SLICE("The provided continue parameter is too old"));
		return;
	case 503:
		api_error_set(ret_error, status, "ServiceUnavailable", SLICE("apiserver is shutting down"));
		return;
	case 504:
		api_error_set(ret_error, status, "Timeout", SLICE("etcdserver: request timed out"));
		return;
	default:
		api_error_set(ret_error, status, "InternalError", SLICE("Internal error occurred: leader changed"));
		return;
	}
}

/* The order of checks is that of 5.6: 401, 429, 403; the rest is up to the verbs. */
static bool admit(struct api_server *server, struct api_request *request, struct api_error *ret_error)
{
	const struct api_identity *identity;

	if (!authenticate(server, request->call, &identity)) {
		api_error_unauthorized(ret_error);
		return false;
	}
	if (server->fail_next > 0) {
		server->fail_next--;
		answer_with(server->fail_status, ret_error);
		return false;
	}
	if (server->refuse_next > 0 && request->verb != API_WATCH) {
		server->refuse_next--;
		api_error_too_many(ret_error);
		return false;
	}
	if (!authorize(identity, request, ret_error))
		return false;
	if (request->kind == NULL) {
		api_error_no_such_path(ret_error);
		return false;
	}
	return true;
}

static void serve(struct api_server *server, struct api_request *request)
{
	struct api_error error;

	switch (request->verb) {
	case API_GET:
		api_get(server, request);
		return;
	case API_LIST:
		api_list(server, request);
		return;
	case API_WATCH:
		api_watch(server, request);
		return;
	case API_CREATE:
		api_create(server, request);
		return;
	case API_UPDATE:
		api_update(server, request);
		return;
	case API_PATCH:
		api_patch(server, request);
		return;
	case API_DELETE:
		api_delete(server, request);
		return;
	default:
		api_error_method(&error);
		api_answer_error(server, request->call, &error);
	}
}

static void serve_call(struct api_server *server, struct http_call *call)
{
	struct api_request request = { .call = call };
	struct api_error error;

	arena_init(&request.arena, API_SERVER_ARENA_BYTES);
	if (is_health_path(http_call_path(call)))
		http_call_respond(call, 200, "text/plain; charset=utf-8", SLICE("ok"));
	else if (!api_request_parse(&request, &error) || !admit(server, &request, &error))
		api_answer_error(server, call, &error);
	else
		serve(server, &request);
	arena_destroy(&request.arena);
}

static void on_request(void *context, struct http_call *call)
{
	struct api_server *server = context;

	http_call_set_context(call, NULL);
	if (!api_meet_fault(server, call, serve_call))
		serve_call(server, call);
}

static void on_abort(void *context, struct http_call *call)
{
	struct api_pending *pending = http_call_context(call);

	(void)context;
	if (pending != NULL)
		api_pending_drop(pending);
}

/* ---- start and end ---- */

static struct tls_settings *give_tls(void *context)
{
	struct api_server *server = context;

	return server->tls;
}

static bool listen_now(struct api_server *server, struct error *err)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request, .on_abort = on_abort };
	struct http_server_options options = { .address = server->address,
		                               .tls = server->tls != NULL ? give_tls : NULL,
		                               .max_body_bytes = API_SERVER_BODY_BYTES };

	server->http = http_server_start(server->loop, &options, &HANDLER, server, err);
	return server->http != NULL && http_server_address(server->http, &server->address);
}

struct api_server *api_server_start(struct loop *loop, const struct api_server_options *options,
                                    const struct api_server_handler *handler, void *context, struct error *err)
{
	struct api_server *server = memory_allocate(sizeof *server);

	if (server == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an API server");
		return NULL;
	}
	server->loop = loop;
	server->address = options->address;
	server->store = options->store;
	server->access = options->access;
	if (options->tls != NULL)
		server->tls = tls_settings_hold(options->tls);
	server->handler = *handler;
	server->context = context;
	server->speed = options->speed > 0 ? options->speed : 1;
	server->bookmark_interval_ns = options->bookmark_interval_ns;
	server->pending.next = server->pending.previous = &server->pending;
	if (!listen_now(server, err)) {
		api_server_destroy(server);
		return NULL;
	}
	return server;
}

static void cut_everything(struct api_server *server)
{
	while (server->pending.next != &server->pending) {
		struct http_call *call = server->pending.next->call;

		api_pending_drop(server->pending.next);
		http_call_abort(call, true);
	}
	if (server->http != NULL)
		http_server_destroy(server->http);
	server->http = NULL;
}

void api_server_destroy(struct api_server *server)
{
	if (server == NULL)
		return;
	cut_everything(server);
	loop_timer_stop(server->loop, &server->reopen_timer);
	tls_settings_release(server->tls);
	memory_release(server);
}

bool api_server_address(const struct api_server *server, struct address *ret_address)
{
	*ret_address = server->address;
	return true;
}

struct api_server_counters api_server_counters(const struct api_server *server)
{
	return server->counters;
}

uint64_t api_server_scaled(const struct api_server *server, uint64_t ns)
{
	return (uint64_t)((double)ns / server->speed);
}

/* ---- faults ---- */

/* Somebody may have taken the port, or memory may be short: then again a little later. */
static void reopen(void *context)
{
	struct api_server *server = context;
	struct error err;

	if (server->http == NULL && !listen_now(server, &err))
		loop_timer_start(server->loop, &server->reopen_timer, (uint64_t)API_SERVER_REOPEN_MS * NS_PER_MS,
		                 reopen, server);
}

void api_server_set_available(struct api_server *server, bool available)
{
	loop_timer_stop(server->loop, &server->reopen_timer);
	if (available)
		reopen(server);
	else
		cut_everything(server);
}

void api_server_set_expiry(struct api_server *server, enum api_expiry expiry)
{
	server->expiry = expiry;
}

void api_server_refuse_next(struct api_server *server, unsigned count)
{
	server->refuse_next = count;
}

void api_server_fail_next(struct api_server *server, unsigned count, int status)
{
	server->fail_next = count;
	server->fail_status = status;
}

void api_server_set_faults(struct api_server *server, struct faults *faults)
{
	server->faults = faults;
}

void api_server_end_watches(struct api_server *server, bool cleanly)
{
	struct api_pending *next;

	for (struct api_pending *pending = server->pending.next; pending != &server->pending; pending = next) {
		struct http_call *call = pending->call;

		next = pending->next;
		if (!api_is_watch(pending))
			continue;
		if (cleanly) {
			api_watch_finish(pending);
		} else {
			api_pending_drop(pending);
			http_call_abort(call, true);
		}
	}
}
