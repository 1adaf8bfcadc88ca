/*
 * Creating, replacing, patching and deleting (spec surroundings 3.1, 5.5, 5.6). Every write works on a tree of the object; what may refuse it
 * comes in the order of 5.6.
 */
#include <inttypes.h>
#include <stdio.h>

#include "sandbox/api_server_internal.h"
#include "sandbox/json_patch.h"

enum { GENERATED_CHARACTERS = 5 };

#define PATCH_TYPES "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
#define OBJECT_TYPES "application/json, application/yaml, application/vnd.kubernetes.protobuf"

/* A write under way. Its steps return false when write->error says why it is refused. */
struct write {
	struct api_server *server;
	struct api_request *request;
	struct stored_object *current; /* held; NULL when creating */
	struct json_node *old;         /* its tree */
	struct json_node *root;        /* of what is to be stored */
	struct api_error error;
	bool denied; /* by the handler */
};

static bool refuse_bad_request(struct write *write, const char *text)
{
	api_error_bad_request(&write->error, &write->request->arena, text);
	return false;
}

/* A failure of ours, or an object that the store doesn't take. */
static bool refuse_failure(struct write *write, const struct error *err)
{
	if (err->code == ERROR_SYNTAX)
		api_error_unprocessable(&write->error);
	else if (err->code == ERROR_LIMIT)
		api_error_set(&write->error, 413, "RequestEntityTooLarge",
		              api_text(&write->request->arena, "%s", err->text));
	else
		api_error_set(&write->error, 500, "InternalError", api_text(&write->request->arena, "%s", err->text));
	return false;
}

static void end_write(struct write *write)
{
	stored_object_release(write->current);
}

/* ---- bodies and media types ---- */

static struct slice media_type(const struct write *write)
{
	struct slice type = http_fields_find(http_call_fields(write->request->call), "Content-Type");

	return slice_trim(slice_take_until(&type, ';'));
}

static bool check_object_type(struct write *write)
{
	struct slice type = media_type(write);

	if (type.length == 0 || slice_equal_fold(type, SLICE("application/json")))
		return true;
	api_error_media_type(&write->error, &write->request->arena, OBJECT_TYPES);
	return false;
}

static bool read_body(struct write *write)
{
	struct json_reader reader;
	struct error err;

	if (json_reader_open(&reader, http_call_body(write->request->call), &write->request->arena, &err) &&
	    json_tree_read(&reader, &write->root, &err) && json_reader_finish(&reader, &err)) {
		if (write->root->kind == JSON_KIND_OBJECT)
			return true;
		return refuse_bad_request(write, "couldn't get version/kind; json parse error: the body is no object");
	}
	if (err.code == ERROR_SYNTAX) {
		char text[512];

		json_problem_reference_text(&reader.problem, false, text, sizeof text);
		return refuse_bad_request(write, text);
	}
	return refuse_failure(write, &err);
}

/* ---- what body and path say of the object ---- */

static bool text_fits(const struct json_node *node, struct slice wanted)
{
	struct slice text = json_tree_text(node);

	return text.length == 0 || slice_equal(text, wanted);
}

static bool check_kind(struct write *write)
{
	const struct resource_kind *kind = write->request->kind;
	char api_version[RESOURCE_API_VERSION_BYTES];

	resource_kind_api_version(kind, api_version);
	if (text_fits(json_tree_find(write->root, "/kind"), slice_of(kind->kind)) &&
	    text_fits(json_tree_find(write->root, "/apiVersion"), slice_of(api_version)))
		return true;
	return refuse_bad_request(write,
	                          "the API version or kind in the data does not match the expected one of this path");
}

static bool check_name_space(struct write *write)
{
	struct json_node *metadata = json_tree_ensure(&write->request->arena, write->root, SLICE("metadata"));
	struct error err;

	if (!text_fits(json_tree_find(metadata, "/namespace"), write->request->name_space))
		return refuse_bad_request(
			write, "the namespace of the provided object does not match the namespace sent on the request");
	if (!write->request->kind->namespaced ||
	    json_tree_set_text(&write->request->arena, metadata, SLICE("namespace"), write->request->name_space))
		return true;
	error_set(&err, ERROR_NO_MEMORY, "no memory for an object");
	return refuse_failure(write, &err);
}

static bool find_current(struct write *write)
{
	const struct api_request *request = write->request;
	struct stored_object *object =
		object_store_find(write->server->store, request->kind, request->name_space, request->name);
	struct error err;

	if (object == NULL) {
		api_error_not_found(&write->error, &write->request->arena, request->kind, request->name);
		return false;
	}
	write->current = stored_object_hold(object);
	return json_tree_parse(object->text, &write->request->arena, &write->old, &err) || refuse_failure(write, &err);
}

/* ---- storing ---- */

static bool ask_handler(struct write *write)
{
	const struct api_server *server = write->server;

	if (server->handler.on_admit == NULL || write->request->subresource.length > 0)
		return true;
	write->denied = !server->handler.on_admit(server->context, write->request->kind, write->old, write->root,
	                                          &write->request->arena, &write->error);
	return !write->denied;
}

/* The main path leaves status alone, and the status path all but it (5.5.2). */
static bool keep_parts(struct write *write)
{
	struct arena *arena = &write->request->arena;
	const struct json_node *status = json_tree_find(write->root, "/status");
	bool ok = true;

	if (!write->request->kind->has_status)
		return true;
	if (write->request->subresource.length > 0)
		write->root = json_tree_copy(arena, write->old);
	else
		status = json_tree_find(write->old, "/status");
	if (status == NULL)
		json_tree_remove(write->root, SLICE("status"));
	else
		ok = json_tree_set(write->root, SLICE("status"), json_tree_copy(arena, status));
	if (!ok || write->root == NULL) {
		struct error err;

		error_set(&err, ERROR_NO_MEMORY, "no memory for an object");
		return refuse_failure(write, &err);
	}
	return true;
}

/* Answers, then tells the handler, who may do what he likes with the server: nothing of it is touched afterwards. */
static void finish(struct write *write, int status, struct stored_object *object)
{
	const struct api_server_handler handler = write->server->handler;
	void *context = write->server->context;
	bool changed = object != write->current;

	stored_object_hold(object);
	api_answer(write->server, write->request->call, status, object->text);
	if (changed && handler.on_written != NULL)
		handler.on_written(context, write->current, object);
	stored_object_release(object);
}

static void answer_refusal(struct write *write)
{
	const struct api_server_handler handler = write->server->handler;
	void *context = write->server->context;

	api_answer_error(write->server, write->request->call, &write->error);
	if (write->denied && handler.on_refused != NULL)
		handler.on_refused(context, write->request->kind, write->request->name_space, write->request->name);
}

static bool replace(struct write *write, struct stored_object **ret_object)
{
	struct error err;

	if (!keep_parts(write) || !ask_handler(write))
		return false;
	return object_store_replace(write->server->store, write->current, write->root, &write->request->arena,
	                            ret_object, &err) ||
	       refuse_failure(write, &err);
}

/* ---- create ---- */

static bool complete_name(struct write *write)
{
	static const char CHARACTERS[] = "bcdfghjklmnpqrstvwxz2456789"; /* as 3.2.3 */
	struct arena *arena = &write->request->arena;
	struct json_node *metadata = json_tree_find(write->root, "/metadata");
	struct slice prefix = json_tree_text(json_tree_find(metadata, "/generateName"));
	struct slice name = api_text(arena, "%.*s", SLICE_ARGS(json_tree_text(json_tree_find(metadata, "/name"))));
	char random[GENERATED_CHARACTERS + 1] = "";

	if (name.length == 0 && prefix.length > 0) {
		for (size_t i = 0; i < GENERATED_CHARACTERS; i++)
			random[i] = CHARACTERS[rng_between(loop_rng(write->server->loop), 0, sizeof CHARACTERS - 1)];
		name = api_text(arena, "%.*s%s", SLICE_ARGS(prefix), random);
		if (!json_tree_set_text(arena, metadata, SLICE("name"), name))
			name.length = 0;
	}
	write->request->name = name;
	if (name.length > 0)
		return true;
	api_error_invalid(&write->error, arena, write->request->kind, name);
	api_error_add_cause(&write->error, "FieldValueRequired",
	                    SLICE("Required value: name or generateName is required"), SLICE("metadata.name"));
	api_error_sum_up(&write->error, arena);
	return false;
}

static bool check_new(struct write *write)
{
	struct slice version = json_tree_text(json_tree_find(write->root, "/metadata/resourceVersion"));

	if (version.length == 0)
		return true;
	api_error_set(&write->error, 500, "", SLICE("resourceVersion should not be set on objects to be created"));
	return false;
}

/* Others write the status of a new object; pods and claims begin as pending. */
static bool begin_status(struct write *write)
{
	struct arena *arena = &write->request->arena;
	const struct resource_kind *kind = write->request->kind;
	struct json_node *status;
	struct error err;

	if (!kind->has_status)
		return true;
	json_tree_remove(write->root, SLICE("status"));
	if (kind != resource_kind(RESOURCE_PODS) && kind != resource_kind(RESOURCE_CLAIMS))
		return true;
	status = json_tree_object(arena);
	if (json_tree_set(write->root, SLICE("status"), status) &&
	    json_tree_set_text(arena, status, SLICE("phase"), SLICE("Pending")))
		return true;
	error_set(&err, ERROR_NO_MEMORY, "no memory for an object");
	return refuse_failure(write, &err);
}

static bool add(struct write *write, struct stored_object **ret_object)
{
	struct error err;

	if (object_store_add(write->server->store, write->request->kind, write->root, &write->request->arena,
	                     ret_object, &err))
		return true;
	if (err.code != ERROR_REFUSED)
		return refuse_failure(write, &err);
	api_error_exists(&write->error, &write->request->arena, write->request->kind, write->request->name);
	return false;
}

void api_create(struct api_server *server, struct api_request *request)
{
	struct write write = { .server = server, .request = request };
	struct stored_object *object;

	if (check_object_type(&write) && read_body(&write) && check_kind(&write) && check_name_space(&write) &&
	    check_new(&write) && complete_name(&write) && begin_status(&write) && ask_handler(&write) &&
	    add(&write, &object))
		finish(&write, 201, object);
	else
		answer_refusal(&write);
	end_write(&write);
}

/* ---- update ---- */

static bool check_version(struct write *write, bool required)
{
	struct arena *arena = &write->request->arena;
	const struct api_request *request = write->request;
	struct slice version = json_tree_text(json_tree_find(write->root, "/metadata/resourceVersion"));
	struct slice uid = json_tree_text(json_tree_find(write->root, "/metadata/uid"));
	char current[24];

	snprintf(current, sizeof current, "%" PRIu64, write->current->version);
	if (version.length == 0 && required) {
		api_error_invalid(&write->error, arena, request->kind, request->name);
		api_error_add_cause(&write->error, "FieldValueInvalid",
		                    SLICE("Invalid value: 0x0: must be specified for an update"),
		                    SLICE("metadata.resourceVersion"));
		api_error_sum_up(&write->error, arena);
		return false;
	}
	if ((version.length == 0 || slice_equal_text(version, current)) &&
	    (uid.length == 0 || slice_equal(uid, json_tree_text(json_tree_find(write->old, "/metadata/uid")))))
		return true;
	api_error_conflict(&write->error, arena, request->kind, request->name);
	return false;
}

static bool check_name(struct write *write)
{
	struct slice name = json_tree_text(json_tree_find(write->root, "/metadata/name"));

	if (slice_equal(name, write->request->name))
		return true;
	return refuse_bad_request(write,
	                          api_text(&write->request->arena,
	                                   "the name of the object (%.*s) does not match the name on the URL (%.*s)",
	                                   SLICE_ARGS(name), SLICE_ARGS(write->request->name))
	                                  .data);
}

void api_update(struct api_server *server, struct api_request *request)
{
	struct write write = { .server = server, .request = request };
	struct stored_object *object;

	if (check_object_type(&write) && read_body(&write) && check_kind(&write) && check_name(&write) &&
	    check_name_space(&write) && find_current(&write) && check_version(&write, request->kind->custom) &&
	    replace(&write, &object))
		finish(&write, 200, object);
	else
		answer_refusal(&write);
	end_write(&write);
}

/* ---- patch ---- */

static bool apply_patch(struct write *write)
{
	struct arena *arena = &write->request->arena;
	struct slice body = http_call_body(write->request->call);
	bool merge = slice_equal_fold(media_type(write), SLICE("application/merge-patch+json"));
	enum json_patch_outcome outcome = JSON_PATCH_RESOURCE;
	struct error err;

	error_set(&err, ERROR_NO_MEMORY, "no memory for a patch");
	write->root = json_tree_copy(arena, write->old);
	if (write->root != NULL)
		outcome = merge ? json_merge_patch_apply(body, write->root, arena, &err)
		                : json_patch_apply(body, write->root, arena, &err);
	switch (outcome) {
	case JSON_PATCH_DONE:
		return true;
	case JSON_PATCH_MALFORMED:
		if (!merge)
			return refuse_bad_request(write, err.text);
		api_error_set(&write->error, 500, "", SLICE("Invalid JSON Patch"));
		return false;
	case JSON_PATCH_FAILED:
		api_error_unprocessable(&write->error);
		return false;
	case JSON_PATCH_TOO_LONG:
		api_error_set(&write->error, 413, "RequestEntityTooLarge", api_text(arena, "%s", err.text));
		return false;
	default:
		return refuse_failure(write, &err);
	}
}

static bool check_patch_type(struct write *write)
{
	struct slice type = media_type(write);

	if (slice_equal_fold(type, SLICE("application/json-patch+json")) ||
	    slice_equal_fold(type, SLICE("application/merge-patch+json")))
		return true;
	api_error_media_type(&write->error, &write->request->arena, PATCH_TYPES);
	return false;
}

static bool check_patched(struct write *write)
{
	const struct json_node *metadata = json_tree_find(write->root, "/metadata");

	if (metadata != NULL && metadata->kind == JSON_KIND_OBJECT)
		return check_version(write, false);
	api_error_unprocessable(&write->error);
	return false;
}

void api_patch(struct api_server *server, struct api_request *request)
{
	struct write write = { .server = server, .request = request };
	struct stored_object *object;

	if (check_patch_type(&write) && find_current(&write) && apply_patch(&write) && check_patched(&write) &&
	    replace(&write, &object)) {
		server->counters.patches++;
		finish(&write, 200, object);
	} else {
		answer_refusal(&write);
	}
	end_write(&write);
}

/* ---- delete ---- */

static void answer_deleted(struct api_server *server, struct api_request *request)
{
	const struct resource_kind *kind = request->kind;
	struct kube_status status = {
		.kind = SLICE("Status"),
		.api_version = SLICE("v1"),
		.status = SLICE("Success"),
		.has_details = true,
		.details = { .name = request->name, .group = slice_of(kind->group), .kind = slice_of(kind->plural) },
	};
	struct buffer body;
	struct error err;

	buffer_init(&body, API_TEXT_BYTES);
	if (kube_status_to_json(&status, &body, &err))
		api_answer(server, request->call, 200, buffer_slice(&body));
	else
		api_answer_failure(server, request->call, &err);
	buffer_destroy(&body);
}

void api_delete(struct api_server *server, struct api_request *request)
{
	struct stored_object *object =
		object_store_find(server->store, request->kind, request->name_space, request->name);
	struct api_error error;
	struct error err;
	bool gone;

	if (object == NULL) {
		api_error_not_found(&error, &request->arena, request->kind, request->name);
		api_answer_error(server, request->call, &error);
	} else if (request->subresource.length > 0) {
		api_error_method(&error);
		api_answer_error(server, request->call, &error);
	} else if (!object_store_delete(server->store, object, &object, &gone, &err)) {
		api_answer_failure(server, request->call, &err);
	} else if (gone && request->kind->custom) {
		answer_deleted(server, request);
	} else {
		api_answer(server, request->call, 200, object->text);
	}
}
