/*
 * How the stand-in API server says no (spec surroundings 5.6), word for word.
 *
 * An error is filled by one of the functions below and then sent. Its texts lie in the request's arena or are literals; without memory a text is
 * left out.
 */
#ifndef BALLAST_SANDBOX_API_ERRORS_H
#define BALLAST_SANDBOX_API_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/slice.h"
#include "gen/kube.gen.h"
#include "sandbox/resource_kinds.h"

enum {
	API_TEXT_BYTES = 4096, /* of one message */
	API_CAUSES = 16,       /* of one error */
};

struct api_error {
	struct kube_status status; /* .code is the HTTP status */
	struct slice plain;        /* not empty: this text is the body, and there is no Status */
	bool retry_after;          /* Retry-After: 1 */
	struct kube_status_cause causes[API_CAUSES];
};

struct slice api_text(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

void api_error_set(struct api_error *error, int code, const char *reason, struct slice message);
/* 400; text is err's. */
void api_error_bad_request(struct api_error *error, struct arena *arena, const char *text);
void api_error_unauthorized(struct api_error *error);
/* resource with its subresource; name and name_space may be empty. */
void api_error_forbidden(struct api_error *error, struct arena *arena, const char *user, const char *verb,
                         struct slice group, struct slice plural, struct slice subresource, struct slice name_space,
                         struct slice name);
void api_error_forbidden_path(struct api_error *error, struct arena *arena, const char *user, struct slice method,
                              struct slice path);
void api_error_no_such_path(struct api_error *error);
void api_error_not_found(struct api_error *error, struct arena *arena, const struct resource_kind *kind,
                         struct slice name);
void api_error_method(struct api_error *error);
void api_error_conflict(struct api_error *error, struct arena *arena, const struct resource_kind *kind,
                        struct slice name);
void api_error_exists(struct api_error *error, struct arena *arena, const struct resource_kind *kind,
                      struct slice name);
/* accepted: "application/json-patch+json, …". */
void api_error_media_type(struct api_error *error, struct arena *arena, const char *accepted);
void api_error_too_many(struct api_error *error);
void api_error_expired(struct api_error *error, struct slice message);
void api_error_version_too_large(struct api_error *error, struct arena *arena, uint64_t wanted, uint64_t current);
/* 422 without a word of explanation: a patch that can't be applied. */
void api_error_unprocessable(struct api_error *error);

/* 422 with causes: begin, add each, and finish with the message that sums them up. */
void api_error_invalid(struct api_error *error, struct arena *arena, const struct resource_kind *kind,
                       struct slice name);
void api_error_add_cause(struct api_error *error, const char *reason, struct slice message, struct slice field);
void api_error_sum_up(struct api_error *error, struct arena *arena);

/* 403 of an admission webhook, and 500 of one that can't be reached. */
void api_error_denied(struct api_error *error, struct arena *arena, const char *webhook, const char *text);
void api_error_webhook(struct api_error *error, struct arena *arena, const char *webhook, const char *text);

/* Appends the body: plain, or a Status without the newline at the end. */
bool api_error_print(const struct api_error *error, struct buffer *body, struct error *err);

#endif
