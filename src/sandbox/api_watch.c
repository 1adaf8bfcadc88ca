/*
 * Watches (spec surroundings 5.3). Each observes the store; events are appended to the answer as they happen and leave at the end of the turn,
 * cut at 2048 bytes: so an event of usual size is a chunk, a long one several, and of events of one turn a chunk may have the end of one and the
 * start of the next.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/api_server_internal.h"

struct api_watch {
	struct api_flow flow;      /* first */
	struct api_request wanted; /* kind, namespace, selectors; in an arena of its own */
	uint64_t version;          /* changes up to here aren't told */
	struct object_observer observer;
	struct loop_timer bookmark_timer, last_bookmark_timer, end_timer;
};

static struct loop *loop_of(const struct api_watch *watch)
{
	return watch->flow.pending.server->loop;
}

/* Nothing more is told: not even a bookmark, which would claim that what came since is known. */
static void stop_telling(struct api_watch *watch)
{
	object_store_ignore(&watch->observer);
	loop_timer_stop(loop_of(watch), &watch->bookmark_timer);
	loop_timer_stop(loop_of(watch), &watch->last_bookmark_timer);
	loop_timer_stop(loop_of(watch), &watch->end_timer);
}

static void release_watch(struct api_pending *pending)
{
	struct api_watch *watch = (struct api_watch *)(void *)pending;

	stop_telling(watch);
	api_flow_destroy(&watch->flow);
	arena_destroy(&watch->wanted.arena);
	memory_release(watch);
}

bool api_is_watch(const struct api_pending *pending)
{
	return pending->release == release_watch;
}

void api_watch_finish(struct api_pending *pending)
{
	struct api_watch *watch = (struct api_watch *)(void *)pending;

	stop_telling(watch);
	watch->flow.ending = true;
	api_flow_push(&watch->flow);
}

/* ---- events ---- */

static void append_event(struct buffer *buffer, const char *type, struct slice object)
{
	struct kube_watch_event event = { .type = slice_of(type), .object = object };
	struct error err;

	/* A buffer that is full remembers it; the flow looks. */
	(void)kube_watch_event_to_json(&event, buffer, &err);
	buffer_append_char(buffer, '\n');
}

/* An object that no longer matches is told with its old labels and the version of the change (5.3.3). */
static void append_departure(struct buffer *buffer, const struct object_change *change)
{
	struct object_edit edit;
	struct buffer text;
	struct error err;

	if (!object_edit_begin(&edit, change->before, &err)) {
		buffer->failed = true;
		return;
	}
	buffer_init(&text, (size_t)2 * OBJECT_STORE_OBJECT_BYTES);
	if (json_tree_set(json_tree_find(edit.root, "/metadata"), SLICE("resourceVersion"),
	                  json_tree_string(&edit.arena, api_text(&edit.arena, "%" PRIu64, change->after->version))) &&
	    json_tree_print(edit.root, &text, &err))
		append_event(buffer, "DELETED", buffer_slice(&text));
	else
		buffer->failed = true;
	buffer_destroy(&text);
	object_edit_end(&edit);
}

static void append_change(struct api_watch *watch, const struct object_change *change)
{
	struct buffer *buffer = &watch->flow.buffer;
	bool before = change->before != NULL && api_request_wants(&watch->wanted, change->before);
	bool after = change->type != OBJECT_DELETED && api_request_wants(&watch->wanted, change->after);

	if (change->type == OBJECT_DELETED && before)
		append_event(buffer, "DELETED", change->after->text);
	else if (before && !after)
		append_departure(buffer, change);
	else if (after)
		append_event(buffer, before ? "MODIFIED" : "ADDED", change->after->text);
}

static void on_change(void *context, const struct object_change *change)
{
	struct api_watch *watch = context;

	if (change->after->kind != watch->wanted.kind || change->after->version <= watch->version)
		return;
	append_change(watch, change);
	api_flow_push(&watch->flow);
}

/* ---- bookmarks ---- */

static void append_bookmark(struct api_watch *watch)
{
	const struct resource_kind *kind = watch->wanted.kind;
	uint64_t version = object_store_version(watch->flow.pending.server->store);
	char api_version[RESOURCE_API_VERSION_BYTES];
	struct buffer text;

	if (version < watch->version)
		return; /* nothing has come up to where this watch begins */
	resource_kind_api_version(kind, api_version);
	buffer_init(&text, 4096);
	if (kind->custom)
		buffer_append_format(
			&text,
			"{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\"}}",
			api_version, kind->kind, version);
	else
		buffer_append_format(
			&text,
			"{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%" PRIu64
			"\",\"creationTimestamp\":null}%s}",
			kind->kind, api_version, version, kind->empty);
	append_event(&watch->flow.buffer, "BOOKMARK", buffer_slice(&text));
	buffer_destroy(&text);
	api_flow_push(&watch->flow);
}

static void on_bookmark_timer(void *context)
{
	struct api_watch *watch = context;

	append_bookmark(watch);
	loop_timer_start(loop_of(watch), &watch->bookmark_timer, watch->flow.pending.server->bookmark_interval_ns,
	                 on_bookmark_timer, watch);
}

static void on_last_bookmark_timer(void *context)
{
	append_bookmark(context);
}

static void on_end_timer(void *context)
{
	struct api_watch *watch = context;

	api_watch_finish(&watch->flow.pending);
}

static void start_timers(struct api_watch *watch, const struct api_request *request)
{
	struct loop *loop = loop_of(watch);
	uint64_t life_s = request->timeout_s > 0
	                          ? request->timeout_s
	                          : rng_between(loop_rng(loop), API_SERVER_WATCH_MIN_S, API_SERVER_WATCH_MAX_S);

	if (life_s > UINT32_MAX)
		life_s = UINT32_MAX;
	loop_timer_start(loop, &watch->end_timer, life_s * NS_PER_S, on_end_timer, watch);
	if (!request->bookmarks)
		return;
	loop_timer_start(loop, &watch->bookmark_timer, watch->flow.pending.server->bookmark_interval_ns,
	                 on_bookmark_timer, watch);
	if (life_s > API_SERVER_LAST_BOOKMARK_S)
		loop_timer_start(loop, &watch->last_bookmark_timer, (life_s - API_SERVER_LAST_BOOKMARK_S) * NS_PER_S,
		                 on_last_bookmark_timer, watch);
}

/* ---- opening ---- */

static struct api_watch *create_watch(struct api_server *server, const struct api_request *request)
{
	struct api_watch *watch = memory_allocate(sizeof *watch);
	struct arena *arena;
	struct api_request *wanted;

	if (watch == NULL)
		return NULL;
	wanted = &watch->wanted;
	arena = &wanted->arena;
	arena_init(arena, API_SERVER_ARENA_BYTES);
	wanted->kind = request->kind;
	wanted->call = request->call; /* whose query the selectors are read from once more */
	if (arena_copy(arena, request->name_space, &wanted->name_space)) {
		struct api_error error;

		if (api_request_parse_selectors(wanted, &error)) {
			api_flow_begin(&watch->flow, server, request->call, API_SERVER_WATCH_CHUNK_BYTES,
			               API_SERVER_WATCH_BYTES, release_watch);
			wanted->call = NULL;
			return watch;
		}
	}
	arena_destroy(arena);
	memory_release(watch);
	return NULL;
}

/* First an ADDED for each object there is. */
static void append_all(struct api_watch *watch, const struct object_store *store)
{
	for (size_t i = 0; i < object_store_count(store, watch->wanted.kind); i++) {
		const struct stored_object *object = object_store_at(store, watch->wanted.kind, i);

		if (api_request_wants(&watch->wanted, object))
			append_event(&watch->flow.buffer, "ADDED", object->text);
	}
}

static void append_since(struct api_watch *watch, const struct object_store *store, uint64_t version)
{
	const struct object_change *change;

	for (size_t i = 0; (change = object_store_change(store, watch->wanted.kind, i)) != NULL; i++)
		if (change->after->version > version)
			append_change(watch, change);
}

static void end_expired(struct api_watch *watch, const struct api_error *error)
{
	struct buffer status;
	struct error err;

	buffer_init(&status, (size_t)4 * API_TEXT_BYTES);
	if (api_error_print(error, &status, &err))
		append_event(&watch->flow.buffer, "ERROR", buffer_slice(&status));
	buffer_destroy(&status);
	watch->flow.ending = true;
	api_flow_push(&watch->flow);
}

static void set_expired(struct api_server *server, struct api_request *request, uint64_t version,
                        struct api_error *ret_error)
{
	uint64_t floor = object_store_floor(server->store, request->kind);

	api_error_expired(ret_error,
	                  server->expiry == API_EXPIRY_CACHE
	                          ? api_text(&request->arena, "too old resource version: %" PRIu64 " (%" PRIu64 ")",
	                                     version, floor)
	                          : SLICE("The resourceVersion for the provided watch is too old."));
}

void api_watch(struct api_server *server, struct api_request *request)
{
	struct api_watch *watch;
	struct api_error error;
	struct error err;
	uint64_t version;
	bool expired;

	if (!api_request_parse_selectors(request, &error) ||
	    !api_request_version(request, &version, &error, &request->arena)) {
		api_answer_error(server, request->call, &error);
		return;
	}
	expired = version > 0 && version < object_store_floor(server->store, request->kind);
	if (expired)
		set_expired(server, request, version, &error);
	if (expired && server->expiry == API_EXPIRY_HTTP) {
		api_answer_error(server, request->call, &error);
		return;
	}
	watch = create_watch(server, request);
	if (watch == NULL) {
		error_set(&err, ERROR_NO_MEMORY, "no memory for a watch");
		api_answer_failure(server, request->call, &err);
		return;
	}
	if (expired) {
		end_expired(watch, &error);
		return;
	}
	server->counters.watches++;
	watch->version = version;
	start_timers(watch, request);
	if (version == 0)
		append_all(watch, server->store);
	else
		append_since(watch, server->store, version);
	watch->observer = (struct object_observer){ .on_change = on_change, .context = watch };
	object_store_observe(server->store, &watch->observer);
	api_flow_push(&watch->flow);
}
