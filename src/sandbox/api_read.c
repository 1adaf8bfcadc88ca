/*
 * GET of one object, and lists (spec surroundings 5.2). A list of an older version, which the pages after the first are too, is the newest
 * state with the changes since then undone.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "sandbox/api_server_internal.h"
#include "sandbox/continue_token.h"

/* True if it refused: the version is in the future. */
static bool refuse_future(struct api_server *server, struct api_request *request, uint64_t version)
{
	uint64_t now = object_store_version(server->store);
	struct api_error error;

	if (version <= now)
		return false;
	api_error_version_too_large(&error, &request->arena, version, now);
	api_answer_error_later(server, request->call, &error,
	                       api_server_scaled(server, (uint64_t)API_SERVER_TOO_LARGE_MS * NS_PER_MS));
	return true;
}

void api_get(struct api_server *server, struct api_request *request)
{
	struct stored_object *object =
		object_store_find(server->store, request->kind, request->name_space, request->name);
	struct api_error error;
	uint64_t version;

	if (!api_request_version(request, &version, &error, &request->arena)) {
		api_answer_error(server, request->call, &error);
	} else if (refuse_future(server, request, version)) {
		return;
	} else if (object == NULL) {
		api_error_not_found(&error, &request->arena, request->kind, request->name);
		api_answer_error(server, request->call, &error);
	} else {
		api_answer(server, request->call, 200, object->text);
	}
}

/* ---- lists ---- */

struct listing {
	uint64_t version; /* that is listed */
	struct continue_token from;
	bool continued;
	uint64_t limit;
	struct slice *items;
	size_t count;
	struct kube_list_meta meta;
};

/* A fresh token goes on from the same object in the newest state. */
static void refuse_old_continue(struct api_request *request, const struct continue_token *token,
                                struct api_error *ret_error)
{
	struct continue_token fresh = *token;

	fresh.version = -1;
	api_error_expired(
		ret_error,
		SLICE("The provided continue parameter is too old to display a consistent list result. You can start a new "
	              "list without the continue parameter, or use the continue token in this response to retrieve the "
	              "remainder of the results. Continuing with the provided token results in an inconsistent list - "
	              "objects that were created, modified, or deleted between the time the first chunk was returned "
	              "and now may show up in the list."));
	ret_error->status.metadata.continue_token = continue_token_print(&fresh, &request->arena);
}

static bool plan_continued(struct api_server *server, struct api_request *request, struct listing *listing,
                           struct api_error *ret_error)
{
	struct error err;

	if (!continue_token_parse(request->continue_token, &request->arena, &listing->from, &err)) {
		api_error_bad_request(ret_error, &request->arena, err.text);
		return false;
	}
	if (request->resource_version.length > 0 && !slice_equal_text(request->resource_version, "0")) {
		api_error_bad_request(ret_error, &request->arena,
		                      "specifying resource version is not allowed when using continue");
		return false;
	}
	listing->continued = true;
	listing->version = object_store_version(server->store);
	if (listing->from.version < 0)
		return true;
	if ((uint64_t)listing->from.version < object_store_floor(server->store, request->kind)) {
		refuse_old_continue(request, &listing->from, ret_error);
		return false;
	}
	if ((uint64_t)listing->from.version < listing->version)
		listing->version = (uint64_t)listing->from.version;
	return true;
}

/* Which version to list, and from where on. False if refused, at once or later (*ret_later). */
static bool plan(struct api_server *server, struct api_request *request, struct listing *listing, bool *ret_later,
                 struct api_error *ret_error)
{
	uint64_t version;

	*ret_later = false;
	listing->limit = request->limit;
	if (request->continue_token.length > 0)
		return plan_continued(server, request, listing, ret_error);
	if (!api_request_version(request, &version, ret_error, &request->arena))
		return false;
	if (refuse_future(server, request, version)) {
		*ret_later = true;
		return false;
	}
	listing->version = object_store_version(server->store);
	if (slice_equal_text(request->resource_version, "0"))
		listing->limit = 0; /* the original's cache has everything at hand */
	if (slice_equal_text(request->version_match, "Exact")) {
		if (version < object_store_floor(server->store, request->kind)) {
			api_error_expired(ret_error, SLICE("The resourceVersion for the provided list is too old."));
			return false;
		}
		listing->version = version;
	}
	return true;
}

/* An object as an item of a list: built-in kinds go without the kind and apiVersion that they begin with (5.2.1). */
static struct slice item_text(const struct stored_object *object, size_t prefix)
{
	return slice_from_offset(object->text, prefix);
}

static size_t prefix_length(const struct resource_kind *kind)
{
	char api_version[RESOURCE_API_VERSION_BYTES];
	int length;

	if (kind->custom)
		return 0;
	resource_kind_api_version(kind, api_version);
	length = snprintf(NULL, 0, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",", kind->kind, api_version);
	return length > 0 ? (size_t)length : 0;
}

static bool is_before(const struct stored_object *object, const struct listing *listing,
                      const struct api_request *request)
{
	int order;

	if (!listing->continued)
		return false;
	order = request->name_space.length > 0 ? 0 : slice_compare(object->name_space, listing->from.name_space);
	if (order == 0)
		order = slice_compare(object->name, listing->from.name);
	return order <= 0;
}

static void set_continue(struct listing *listing, struct api_request *request, const struct stored_object *last,
                         size_t remaining)
{
	struct continue_token token = { .version = (int64_t)listing->version, .name = last->name };

	if (request->name_space.length == 0)
		token.name_space = last->name_space;
	listing->meta.continue_token = continue_token_print(&token, &request->arena);
	if (selector_is_empty(&request->selector))
		listing->meta.remaining_item_count = (int64_t)remaining;
}

static bool collect(struct listing *listing, struct api_request *request, const struct object_snapshot *snapshot,
                    struct error *err)
{
	const struct stored_object *last = NULL;
	size_t prefix = prefix_length(request->kind);
	size_t remaining = 0;

	listing->items = arena_allocate_array(&request->arena, snapshot->count + 1, sizeof *listing->items);
	if (listing->items == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a list");
	for (size_t i = 0; i < snapshot->count; i++) {
		const struct stored_object *object = snapshot->objects[i];

		if (is_before(object, listing, request) || !api_request_wants(request, object))
			continue;
		if (listing->limit > 0 && listing->count == listing->limit) {
			remaining++;
			continue;
		}
		last = object;
		listing->items[listing->count++] = item_text(object, prefix);
	}
	if (remaining > 0 && last != NULL)
		set_continue(listing, request, last, remaining);
	return true;
}

/* {"kind":"PodList","apiVersion":"v1","metadata":{…},"items":[…]} */
static void write_built_in(struct json_writer *writer, const struct listing *listing, struct slice kind,
                           struct slice api_version)
{
	json_writer_object_begin(writer);
	json_writer_key(writer, SLICE("kind"));
	json_writer_string(writer, kind);
	json_writer_key(writer, SLICE("apiVersion"));
	json_writer_string(writer, api_version);
	json_writer_key(writer, SLICE("metadata"));
	json_writer_object_begin(writer);
	json_writer_key(writer, SLICE("resourceVersion"));
	json_writer_string(writer, listing->meta.resource_version);
	if (listing->meta.continue_token.length > 0) {
		json_writer_key(writer, SLICE("continue"));
		json_writer_string(writer, listing->meta.continue_token);
	}
	if (listing->meta.remaining_item_count > 0) {
		json_writer_key(writer, SLICE("remainingItemCount"));
		json_writer_int(writer, listing->meta.remaining_item_count);
	}
	json_writer_object_end(writer);
	json_writer_key(writer, SLICE("items"));
	json_writer_array_begin(writer);
	for (size_t i = 0; i < listing->count; i++) {
		/* What was cut off began with the brace. */
		json_writer_object_begin(writer);
		writer->need_comma = false;
		buffer_append_slice(writer->buffer, listing->items[i]);
		writer->need_comma = true;
	}
	json_writer_array_end(writer);
	json_writer_object_end(writer);
}

static bool print_list(struct listing *listing, const struct resource_kind *kind, struct arena *arena,
                       struct buffer *body, struct error *err)
{
	char api_version[RESOURCE_API_VERSION_BYTES];
	struct slice list_kind = api_text(arena, "%sList", kind->kind);
	struct json_writer writer;

	resource_kind_api_version(kind, api_version);
	listing->meta.resource_version = api_text(arena, "%" PRIu64, listing->version);
	json_writer_init(&writer, body);
	if (kind->custom)
		kube_list_encode(&writer, &(struct kube_list){ .api_version = slice_of(api_version),
		                                               .items = listing->items,
		                                               .items_count = listing->count,
		                                               .kind = list_kind,
		                                               .metadata = listing->meta });
	else
		write_built_in(&writer, listing, list_kind, slice_of(api_version));
	buffer_append_char(body, '\n');
	return json_writer_check(&writer, "a list", err);
}

void api_list(struct api_server *server, struct api_request *request)
{
	struct object_snapshot snapshot = { 0 };
	struct listing listing = { 0 };
	struct api_error error;
	struct buffer body;
	struct error err;
	bool later;

	if (!api_request_parse_selectors(request, &error)) {
		api_answer_error(server, request->call, &error);
		return;
	}
	if (!plan(server, request, &listing, &later, &error)) {
		if (!later)
			api_answer_error(server, request->call, &error);
		return;
	}
	buffer_init(&body, API_SERVER_LIST_BYTES);
	if (object_store_snapshot(server->store, request->kind, listing.version, &snapshot, &err) &&
	    collect(&listing, request, &snapshot, &err) &&
	    print_list(&listing, request->kind, &request->arena, &body, &err)) {
		server->counters.lists++;
		if (body.length <= API_SERVER_WHOLE_BYTES)
			api_answer(server, request->call, 200, slice_from(body.data, body.length - 1));
		else
			api_answer_large(server, request->call, &body);
	} else {
		api_answer_failure(server, request->call, &err);
	}
	buffer_destroy(&body);
	object_snapshot_release(&snapshot);
}
