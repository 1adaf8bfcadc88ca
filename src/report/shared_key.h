/*
 * Signs requests to Azure Storage with an account's key (spec reporting 10.4).
 */
#ifndef BALLAST_REPORT_SHARED_KEY_H
#define BALLAST_REPORT_SHARED_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "net/http_message.h"

enum { SHARED_KEY_TIME_BYTES = 30 };

struct shared_key_request {
	struct slice method;
	size_t content_length;
	struct slice content_type;
	struct http_fields service_fields; /* x-ms-…: names in lower case, in their order */
	struct slice path;                 /* as on the request line; there is no query */
};

/* "Fri, 07 Mar 2025 09:05:04 GMT", NUL-terminated. */
void shared_key_time(int64_t wall_ns, char ret_time[SHARED_KEY_TIME_BYTES]);
/* Appends the string to sign (A12). */
void shared_key_append_string(struct buffer *out, const struct shared_key_request *request, struct slice account);
/* Appends the value of the Authorization field. key: decoded from its base64. */
bool shared_key_append_authorization(struct buffer *out, const struct shared_key_request *request, struct slice account,
                                     struct slice key, struct error *err);

#endif
