#include "sandbox/api_errors.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct slice api_text(struct arena *arena, const char *format, ...)
{
	char text[API_TEXT_BYTES];
	struct slice copy = { 0 };
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (length < 0)
		return copy;
	if ((size_t)length >= sizeof text)
		length = sizeof text - 1;
	(void)arena_copy(arena, slice_from(text, (size_t)length), &copy);
	return copy;
}

void api_error_set(struct api_error *error, int code, const char *reason, struct slice message)
{
	*error = (struct api_error){
		.status = { .kind = SLICE("Status"),
		            .api_version = SLICE("v1"),
		            .status = SLICE("Failure"),
		            .message = message,
		            .reason = slice_of(reason),
		            .code = code },
	};
}

static void set_plain(struct api_error *error, int code, struct slice text)
{
	*error = (struct api_error){ .status = { .code = code }, .plain = text };
}

/* "virtualmachines.vm.neon.tech", "pods". */
static struct slice qualified(struct arena *arena, struct slice group, struct slice plural)
{
	return group.length > 0 ? api_text(arena, "%.*s.%.*s", SLICE_ARGS(plural), SLICE_ARGS(group)) : plural;
}

static void set_details(struct api_error *error, struct slice name, struct slice group, struct slice kind)
{
	error->status.has_details = true;
	error->status.details = (struct kube_status_details){ .name = name, .group = group, .kind = kind };
}

void api_error_bad_request(struct api_error *error, struct arena *arena, const char *text)
{
	api_error_set(error, 400, "BadRequest", api_text(arena, "%s", text));
}

void api_error_unauthorized(struct api_error *error)
{
	api_error_set(error, 401, "Unauthorized", SLICE("Unauthorized"));
}

void api_error_forbidden(struct api_error *error, struct arena *arena, const char *user, const char *verb,
                         struct slice group, struct slice plural, struct slice subresource, struct slice name_space,
                         struct slice name)
{
	struct slice resource = qualified(arena, group, plural);
	struct slice what =
		name.length > 0 ? api_text(arena, "%.*s \"%.*s\"", SLICE_ARGS(resource), SLICE_ARGS(name)) : resource;
	struct slice where = name_space.length > 0
	                             ? api_text(arena, "in the namespace \"%.*s\"", SLICE_ARGS(name_space))
	                             : SLICE("at the cluster scope");
	struct slice path = subresource.length > 0
	                            ? api_text(arena, "%.*s/%.*s", SLICE_ARGS(plural), SLICE_ARGS(subresource))
	                            : plural;

	api_error_set(error, 403, "Forbidden",
	              api_text(arena,
	                       "%.*s is forbidden: User \"%s\" cannot %s resource \"%.*s\" in API group \"%.*s\" %.*s",
	                       SLICE_ARGS(what), user, verb, SLICE_ARGS(path), SLICE_ARGS(group), SLICE_ARGS(where)));
	set_details(error, name, group, plural);
}

void api_error_forbidden_path(struct api_error *error, struct arena *arena, const char *user, struct slice method,
                              struct slice path)
{
	char verb[16];
	size_t length = 0;

	for (; length < method.length && length + 1 < sizeof verb; length++)
		verb[length] = (char)(method.data[length] | 0x20);
	verb[length] = '\0';
	api_error_set(error, 403, "Forbidden",
	              api_text(arena, "forbidden: User \"%s\" cannot %s path \"%.*s\"", user, verb, SLICE_ARGS(path)));
	set_details(error, slice_from(NULL, 0), slice_from(NULL, 0), slice_from(NULL, 0));
}

void api_error_no_such_path(struct api_error *error)
{
	set_plain(error, 404, SLICE("404 page not found\n"));
}

void api_error_not_found(struct api_error *error, struct arena *arena, const struct resource_kind *kind,
                         struct slice name)
{
	struct slice resource = qualified(arena, slice_of(kind->group), slice_of(kind->plural));

	api_error_set(error, 404, "NotFound",
	              api_text(arena, "%.*s \"%.*s\" not found", SLICE_ARGS(resource), SLICE_ARGS(name)));
	set_details(error, name, slice_of(kind->group), slice_of(kind->plural));
}

void api_error_method(struct api_error *error)
{
	api_error_set(error, 405, "MethodNotAllowed",
	              SLICE("the server does not allow this method on the requested resource"));
	set_details(error, slice_from(NULL, 0), slice_from(NULL, 0), slice_from(NULL, 0));
}

void api_error_conflict(struct api_error *error, struct arena *arena, const struct resource_kind *kind,
                        struct slice name)
{
	struct slice resource = qualified(arena, slice_of(kind->group), slice_of(kind->plural));

	api_error_set(
		error, 409, "Conflict",
		api_text(
			arena,
			"Operation cannot be fulfilled on %.*s \"%.*s\": the object has been modified; please apply your changes to "
			"the latest version and try again",
			SLICE_ARGS(resource), SLICE_ARGS(name)));
	set_details(error, name, slice_of(kind->group), slice_of(kind->plural));
}

void api_error_exists(struct api_error *error, struct arena *arena, const struct resource_kind *kind, struct slice name)
{
	struct slice resource = qualified(arena, slice_of(kind->group), slice_of(kind->plural));

	api_error_set(error, 409, "AlreadyExists",
	              api_text(arena, "%.*s \"%.*s\" already exists", SLICE_ARGS(resource), SLICE_ARGS(name)));
	set_details(error, name, slice_of(kind->group), slice_of(kind->plural));
}

void api_error_media_type(struct api_error *error, struct arena *arena, const char *accepted)
{
	api_error_set(error, 415, "UnsupportedMediaType",
	              api_text(arena,
	                       "the body of the request was in an unknown format - accepted media types include: %s",
	                       accepted));
}

void api_error_too_many(struct api_error *error)
{
	set_plain(error, 429, SLICE("Too many requests, please try again later.\n"));
	error->retry_after = true;
}

void api_error_expired(struct api_error *error, struct slice message)
{
	api_error_set(error, 410, "Expired", message);
}

void api_error_version_too_large(struct api_error *error, struct arena *arena, uint64_t wanted, uint64_t current)
{
	api_error_set(error, 504, "Timeout",
	              api_text(arena, "Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64, wanted,
	                       current));
	set_details(error, slice_from(NULL, 0), slice_from(NULL, 0), slice_from(NULL, 0));
	api_error_add_cause(error, "ResourceVersionTooLarge", SLICE("Too large resource version"), slice_from(NULL, 0));
	error->status.details.retry_after_seconds = 1;
	error->retry_after = true;
}

void api_error_unprocessable(struct api_error *error)
{
	api_error_set(error, 422, "Invalid", SLICE("the server rejected our request due to an error in our request"));
	set_details(error, slice_from(NULL, 0), slice_from(NULL, 0), slice_from(NULL, 0));
}

/* ---- causes ---- */

void api_error_invalid(struct api_error *error, struct arena *arena, const struct resource_kind *kind,
                       struct slice name)
{
	api_error_set(
		error, 422, "Invalid",
		kind->group[0] != '\0'
			? api_text(arena, "%s.%s \"%.*s\" is invalid: ", kind->kind, kind->group, SLICE_ARGS(name))
			: api_text(arena, "%s \"%.*s\" is invalid: ", kind->kind, SLICE_ARGS(name)));
	set_details(error, name, slice_of(kind->group), slice_of(kind->kind));
}

void api_error_add_cause(struct api_error *error, const char *reason, struct slice message, struct slice field)
{
	struct kube_status_details *details = &error->status.details;

	if (details->causes_count == API_CAUSES)
		return; /* enough to act upon */
	error->causes[details->causes_count++] =
		(struct kube_status_cause){ .reason = slice_of(reason), .message = message, .field = field };
}

void api_error_sum_up(struct api_error *error, struct arena *arena)
{
	size_t count = error->status.details.causes_count;
	struct slice text =
		count > 1 ? api_text(arena, "%.*s[", SLICE_ARGS(error->status.message)) : error->status.message;

	for (size_t i = 0; i < count; i++)
		text = api_text(arena, "%.*s%s%.*s: %.*s", SLICE_ARGS(text), i > 0 ? ", " : "",
		                SLICE_ARGS(error->causes[i].field), SLICE_ARGS(error->causes[i].message));
	error->status.message = count > 1 ? api_text(arena, "%.*s]", SLICE_ARGS(text)) : text;
}

/* ---- webhooks ---- */

void api_error_denied(struct api_error *error, struct arena *arena, const char *webhook, const char *text)
{
	api_error_set(error, 403, "Forbidden",
	              api_text(arena, "admission webhook \"%s\" denied the request: %s", webhook, text));
}

void api_error_webhook(struct api_error *error, struct arena *arena, const char *webhook, const char *text)
{
	struct slice cause = api_text(arena, "failed calling webhook \"%s\": %s", webhook, text);

	api_error_set(error, 500, "InternalError", api_text(arena, "Internal error occurred: %.*s", SLICE_ARGS(cause)));
	set_details(error, slice_from(NULL, 0), slice_from(NULL, 0), slice_from(NULL, 0));
	api_error_add_cause(error, "", cause, slice_from(NULL, 0));
}

/* ---- printing ---- */

bool api_error_print(const struct api_error *error, struct buffer *body, struct error *err)
{
	struct api_error copy = *error;

	if (error->plain.length > 0) {
		buffer_append_slice(body, error->plain);
		return buffer_check(body, "an error", err);
	}
	/* The causes are where the error is, wherever it was filled. */
	copy.status.details.causes = copy.causes;
	return kube_status_to_json(&copy.status, body, err);
}
