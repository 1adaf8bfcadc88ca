#include "gen/kube.gen.h"
#include "kube/watch_store_internal.h"

/* ---- lists ---- */

bool watch_frames_read_element(void *context, struct slice json, struct error *err)
{
	struct watch_store *store = context;
	struct slice uid;
	struct slice name;
	void *object = store->type->decode(store->context, json, &uid, &name, err);

	if (object == NULL)
		return false;
	return object_set_list(&store->objects, object, uid, err);
}

static bool keep(struct buffer *buffer, struct slice text, const char *what, struct error *err)
{
	buffer_clear(buffer);
	buffer_append_slice(buffer, text);
	return buffer_check(buffer, what, err);
}

bool watch_frames_read_envelope(struct watch_store *store, struct slice json, struct error *err)
{
	struct kube_list list;

	arena_reset(&store->arena);
	if (!kube_list_from_json(json, &store->arena, &list, err))
		return false;
	if (list.metadata.resource_version.length == 0)
		return error_set(err, ERROR_SYNTAX, "the list has no resourceVersion");
	return keep(&store->resource_version, list.metadata.resource_version, "resourceVersion", err) &&
	       keep(&store->continue_token, list.metadata.continue_token, "continue", err);
}

/* ---- events ---- */

static void count(struct watch_store *store, enum watch_store_event event)
{
	if (store->handler.on_event != NULL)
		store->handler.on_event(store->context, event);
}

static void count_error(struct watch_store *store)
{
	count(store, WATCH_STORE_ERROR);
	if (store->handler.on_error != NULL)
		store->handler.on_error(store->context, WATCH_STORE_ERROR_EVENT);
}

void watch_frames_report_bad(struct watch_store *store, const struct error *err)
{
	count_error(store);
	log_error(&store->options.logger, "Received error event", log_error_field(err));
	store->relist_wanted = true;
}

static void report_status(struct watch_store *store, struct slice json)
{
	struct kube_status status;
	struct error err;

	if (!kube_status_from_json(json, &store->arena, &status, &err)) {
		watch_frames_report_bad(store, &err);
		return;
	}
	count_error(store);
	error_set(&err, ERROR_REFUSED, "%.*s", SLICE_ARGS(status.message));
	log_event(&store->options.logger, slice_equal_text(status.reason, "Expired") ? LOG_WARN : LOG_ERROR,
	          "Received error event", log_error_field(&err), log_slice("reason", status.reason),
	          log_int("code", status.code), LOG_END);
	store->relist_wanted = true;
}

static bool event_of(struct slice type, enum watch_store_event *ret_event, struct error *err)
{
	static const struct {
		const char *name;
		enum watch_store_event event;
	} names[] = {
		{ "ADDED", WATCH_STORE_ADDED },     { "MODIFIED", WATCH_STORE_MODIFIED },
		{ "DELETED", WATCH_STORE_DELETED }, { "BOOKMARK", WATCH_STORE_BOOKMARK },
		{ "ERROR", WATCH_STORE_ERROR },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (slice_equal_text(type, names[i].name)) {
			*ret_event = names[i].event;
			return true;
		}
	}
	return error_set(err, ERROR_SYNTAX, "unknown event type \"%.*s\"", SLICE_ARGS(type));
}

static bool read_version(struct watch_store *store, struct slice json, struct error *err)
{
	struct kube_bookmark object;

	if (!kube_bookmark_from_json(json, &store->arena, &object, err))
		return false;
	if (object.metadata.resource_version.length == 0)
		return error_set(err, ERROR_SYNTAX, "the event's object has no resourceVersion");
	return keep(&store->resource_version, object.metadata.resource_version, "resourceVersion", err);
}

static bool apply(struct watch_store *store, enum watch_store_event event, struct slice json, struct error *err)
{
	struct slice uid;
	struct slice name;
	struct error problem;
	void *object = store->type->decode(store->context, json, &uid, &name, err);

	if (object == NULL || !read_version(store, json, err)) {
		if (object != NULL)
			store->type->release(store->context, object);
		return false;
	}
	count(store, event);
	if (object_set_apply_event(&store->objects, event, object, uid, &problem)) {
		store->delivered = true;
		return true;
	}
	log_error(&store->options.logger, "failed to handle event", log_slice("UID", uid), log_slice("name", name),
	          log_error_field(&problem));
	store->type->release(store->context, object);
	store->relist_wanted = true;
	return true;
}

/* False: the frame isn't an event. Otherwise it was dealt with. */
static bool handle(struct watch_store *store, struct slice json, struct error *err)
{
	struct kube_watch_event frame;
	enum watch_store_event event;

	if (!kube_watch_event_from_json(json, &store->arena, &frame, err) || !event_of(frame.type, &event, err))
		return false;
	if (event == WATCH_STORE_ERROR) {
		report_status(store, frame.object);
		return true;
	}
	if (event != WATCH_STORE_BOOKMARK)
		return apply(store, event, frame.object, err);
	if (!read_version(store, frame.object, err))
		return false;
	count(store, event);
	store->delivered = true;
	return true;
}

bool watch_frames_read_event(void *context, struct slice json, struct error *err)
{
	struct watch_store *store = context;
	struct error problem;

	arena_reset(&store->arena);
	if (!handle(store, json, &problem))
		watch_frames_report_bad(store, &problem);
	if (store->relist_wanted || object_set_closed(&store->objects))
		return error_set(err, ERROR_CANCELLED, "nothing more of this watch is wanted");
	return true;
}
