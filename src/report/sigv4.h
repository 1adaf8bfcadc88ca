/*
 * Signs requests to S3 with AWS Signature Version 4 (spec reporting 9.2).
 */
#ifndef BALLAST_REPORT_SIGV4_H
#define BALLAST_REPORT_SIGV4_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "net/http_message.h"
#include "report/digest.h"

enum { SIGV4_TIME_BYTES = 17, SIGV4_FIELDS = 16 };

struct sigv4_request {
	struct slice method;
	struct slice path;  /* as on the request line, escaped once (P5) */
	struct slice query; /* likewise, sorted; may be empty */
	/* Those to sign, names in lower case, in the order of their names; at most SIGV4_FIELDS. */
	struct http_fields fields;
	struct slice payload_hash;
};

struct sigv4_identity {
	struct slice key_id;
	struct slice secret;
	struct slice region;
};

/* "20250307T090504Z", NUL-terminated. */
void sigv4_time(int64_t wall_ns, char ret_time[SIGV4_TIME_BYTES]);
/* Appends the canonical request (P7). */
void sigv4_append_canonical(struct buffer *out, const struct sigv4_request *request);
/* k4 of P9 for a day, "20250307". */
bool sigv4_key(const struct sigv4_identity *identity, struct slice day, uint8_t ret_key[DIGEST_BYTES],
               struct error *err);
/* Appends the value of the Authorization field (P8, P9). time as from sigv4_time. */
bool sigv4_append_authorization(struct buffer *out, const struct sigv4_request *request,
                                const struct sigv4_identity *identity, const char *time, struct error *err);
/* Appends a path with everything but A-Z a-z 0-9 - . _ ~ and / percent-encoded (P5). */
void sigv4_append_path(struct buffer *out, struct slice path);

#endif
