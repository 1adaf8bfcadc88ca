/*
 * What a request asks for: /api/v1/… and /apis/GROUP/VERSION/…, then [namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]], and its query.
 */
#include <string.h>

#include "net/http_message.h"
#include "sandbox/api_server_internal.h"

enum { PATH_PARTS = 9 };

static bool bad_request(struct api_request *request, struct api_error *ret_error, const char *text)
{
	if (request->no_memory)
		api_error_set(ret_error, 500, "InternalError", SLICE("no memory for a request"));
	else
		api_error_bad_request(ret_error, &request->arena, text);
	return false;
}

/* Decodes %xx into the arena. */
static bool unescape(struct api_request *request, struct slice text, bool plus_is_space, struct slice *ret_text)
{
	struct buffer decoded;
	bool ok;

	buffer_init(&decoded, text.length + 1);
	ok = http_unescape(text, plus_is_space, &decoded);
	if (decoded.failed || (ok && !arena_copy(&request->arena, buffer_slice(&decoded), ret_text))) {
		request->no_memory = true;
		ok = false;
	}
	buffer_destroy(&decoded);
	return ok;
}

/* ---- the path ---- */

/* Its parts without slashes; 0 if there are too many, an empty one or a bad escape. */
static size_t split_path(struct api_request *request, struct slice parts[PATH_PARTS])
{
	struct slice rest = slice_from_offset(request->path, 1);
	size_t count = 0;

	while (rest.length > 0) {
		struct slice part = slice_take_until(&rest, '/');

		if (count == PATH_PARTS || part.length == 0 || !unescape(request, part, false, &parts[count++]))
			return 0;
	}
	return count;
}

static bool is_namespace_part(struct slice part)
{
	return slice_equal_text(part, "status") || slice_equal_text(part, "finalize");
}

/* What follows the group and version. */
static void read_resource(struct api_request *request, const struct slice *parts, size_t count)
{
	struct slice none = { 0 };

	if (slice_equal_text(parts[0], "namespaces") && count >= 3 && !(count == 3 && is_namespace_part(parts[2]))) {
		request->name_space = parts[1];
		parts += 2;
		count -= 2;
	}
	if (count > 3)
		return;
	request->is_resource = true;
	request->plural = parts[0];
	request->name = count > 1 ? parts[1] : none;
	request->subresource = count > 2 ? parts[2] : none;
}

static void read_path(struct api_request *request)
{
	struct slice parts[PATH_PARTS];
	size_t count = split_path(request, parts);

	if (count >= 3 && slice_equal_text(parts[0], "api")) {
		request->version = parts[1];
		read_resource(request, parts + 2, count - 2);
	} else if (count >= 4 && slice_equal_text(parts[0], "apis")) {
		request->group = parts[1];
		request->version = parts[2];
		read_resource(request, parts + 3, count - 3);
	}
	if (request->is_resource)
		request->kind = resource_kind_find(request->group, request->version, request->plural);
}

/* ---- the query ---- */

/* Absent: the empty slice. */
static bool query_text(struct api_request *request, const char *key, struct slice *ret_text)
{
	struct slice raw = http_query_find(http_call_query(request->call), key);

	*ret_text = (struct slice){ 0 };
	return raw.length == 0 || unescape(request, raw, true, ret_text);
}

static bool query_flag(struct api_request *request, const char *key)
{
	struct slice text = http_query_find(http_call_query(request->call), key);

	return slice_equal_text(text, "true") || slice_equal_text(text, "1");
}

static bool query_number(struct api_request *request, const char *key, uint64_t *ret_value)
{
	struct slice text = http_query_find(http_call_query(request->call), key);

	*ret_value = 0;
	return text.length == 0 || slice_to_u64(text, ret_value);
}

static bool read_query(struct api_request *request, struct api_error *ret_error)
{
	if (!query_text(request, "resourceVersion", &request->resource_version) ||
	    !query_text(request, "resourceVersionMatch", &request->version_match) ||
	    !query_text(request, "continue", &request->continue_token))
		return bad_request(request, ret_error, "invalid URL escape in the query");
	if (!query_number(request, "limit", &request->limit) ||
	    !query_number(request, "timeoutSeconds", &request->timeout_s))
		return bad_request(request, ret_error, "limit or timeoutSeconds: invalid syntax");
	request->bookmarks = query_flag(request, "allowWatchBookmarks");
	return true;
}

/* ---- all of it ---- */

static enum api_verb read_verb(struct api_request *request)
{
	bool named = request->name.length > 0;

	if (slice_equal_text(request->method, "GET")) {
		if (named)
			return API_GET;
		return query_flag(request, "watch") ? API_WATCH : API_LIST;
	}
	if (slice_equal_text(request->method, "POST") && !named)
		return API_CREATE;
	if (slice_equal_text(request->method, "PUT") && named)
		return API_UPDATE;
	if (slice_equal_text(request->method, "PATCH") && named)
		return API_PATCH;
	if (slice_equal_text(request->method, "DELETE") && named)
		return API_DELETE;
	return API_OTHER;
}

/* Whether the path is one that the kind has. */
static bool fits_kind(const struct api_request *request)
{
	const struct resource_kind *kind = request->kind;
	bool whole = request->verb == API_LIST || request->verb == API_WATCH || request->verb == API_OTHER;

	if (kind->namespaced ? request->name_space.length == 0 && !whole : request->name_space.length > 0)
		return false;
	return request->subresource.length == 0 ||
	       (kind->has_status && slice_equal_text(request->subresource, "status"));
}

bool api_request_parse(struct api_request *request, struct api_error *ret_error)
{
	request->method = http_call_method(request->call);
	request->path = http_call_path(request->call);
	read_path(request);
	request->verb = read_verb(request);
	if (request->kind != NULL && !fits_kind(request))
		request->kind = NULL;
	if (request->no_memory)
		return bad_request(request, ret_error, "");
	return read_query(request, ret_error);
}

bool api_request_parse_selectors(struct api_request *request, struct api_error *ret_error)
{
	struct slice labels;
	struct slice fields;
	struct error err;

	if (!query_text(request, "labelSelector", &labels) || !query_text(request, "fieldSelector", &fields))
		return bad_request(request, ret_error, "invalid URL escape in the query");
	if (selector_parse_labels(&request->selector, labels, &request->arena, &err) &&
	    selector_parse_fields(&request->selector, fields, request->kind, &request->arena, &err))
		return true;
	request->no_memory = err.code != ERROR_SYNTAX;
	return bad_request(request, ret_error, err.text);
}

const char *api_verb_name(enum api_verb verb)
{
	static const char *const NAMES[] = {
		[API_GET] = "get",       [API_LIST] = "list",
		[API_WATCH] = "watch",   [API_CREATE] = "create",
		[API_UPDATE] = "update", [API_PATCH] = "patch",
		[API_DELETE] = "delete", [API_OTHER] = "deletecollection",
	};

	return NAMES[verb];
}

bool api_request_wants(const struct api_request *request, const struct stored_object *object)
{
	return (request->name_space.length == 0 || slice_equal(request->name_space, object->name_space)) &&
	       selector_matches(&request->selector, object);
}

bool api_request_version(const struct api_request *request, uint64_t *ret_version, struct api_error *ret_error,
                         struct arena *arena)
{
	struct slice text = request->resource_version;

	*ret_version = 0;
	if (text.length == 0 || slice_to_u64(text, ret_version))
		return true;
	api_error_set(
		ret_error, 500, "",
		api_text(
			arena,
			"resourceVersion: Invalid value: \"%.*s\": strconv.ParseUint: parsing \"%.*s\": invalid syntax",
			SLICE_ARGS(text), SLICE_ARGS(text)));
	return false;
}
