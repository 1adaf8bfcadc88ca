/*
 * What HTTP client and server have in common: header fields.
 */
#ifndef BALLAST_NET_HTTP_MESSAGE_H
#define BALLAST_NET_HTTP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

struct http_field {
	struct slice name;
	struct slice value; /* without blanks around */
};

struct http_fields {
	const struct http_field *items;
	size_t count;
};

/* The first field of that name (any letter case), or the empty slice with data NULL. */
struct slice http_fields_find(struct http_fields fields, const char *name);
/*
 * Whether a comma-separated field has the token, in any letter case, in any of its lines ("Connection: keep-alive,
 * Upgrade").
 */
bool http_fields_have_token(struct http_fields fields, const char *name, const char *token);
const char *http_status_text(int status); /* "Not Found"; "Unknown" for others */
/* Whether text may stand as a method or a field's name (RFC 9110 5.6.2); never true of an empty text. */
bool http_is_token(struct slice text);
/* Whether text may be sent as a field's value: no CR, LF, NUL or other control character but tab. */
bool http_is_field_value(struct slice text);
/* Whether text may be sent as a request's target: "*" or '/' and visible ASCII without '#'. */
bool http_is_target(struct slice text);
/* Whether text may be a host, a name or a literal address without brackets: visible ASCII without what ends a host in a URL. */
bool http_is_host(const char *text);
/* Refuses fields that would break out of their line, with a sentence that names the field. */
bool http_fields_check(struct http_fields fields, struct error *err);
/* Appends "Name: value\r\n" for each field. */
void http_append_fields(struct buffer *buffer, struct http_fields fields);
/* Appends text with everything but unreserved characters (RFC 3986) percent-encoded. */
void http_append_escaped(struct buffer *buffer, struct slice text);
/* Decodes %xx (and '+' as space if asked) into out; false on a bad escape. */
bool http_unescape(struct slice text, bool plus_is_space, struct buffer *out);
/* Finds key in a query string "a=b&c=d" and returns its raw (still escaped) value; data NULL if absent. */
struct slice http_query_find(struct slice query, const char *key);

#endif
