/*
 * Ids of requests and keys of objects (spec reporting section 7).
 */
#ifndef BALLAST_REPORT_OBJECT_KEY_H
#define BALLAST_REPORT_OBJECT_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "net/loop.h"

enum { REPORT_ID_BYTES = 24, REPORT_UUID_BYTES = 16 };

enum report_key_kind {
	REPORT_KEY_BILLING,        /* K2: local time, prefix with exactly one slash behind it */
	REPORT_KEY_SCALING_EVENTS, /* K3: UTC, prefix as it is */
};

/* How a client's keys look. */
struct report_key_layout {
	enum report_key_kind kind;
	struct slice prefix;
};

/* 16 bytes of a UUID in base 57 (K1), NUL-terminated. */
void report_id_from_uuid(const uint8_t uuid[REPORT_UUID_BYTES], char ret_id[REPORT_ID_BYTES]);
/* A new one, of random bits; false if the system has none. */
bool report_id_make(struct loop *loop, char ret_id[REPORT_ID_BYTES], struct error *err);
/* Random bits made into a version 4 UUID. */
bool report_uuid_make(struct loop *loop, uint8_t ret_uuid[REPORT_UUID_BYTES], struct error *err);

/* Appends the key of an object sent at wall_ns (K2, K3). */
void report_key_append(struct buffer *key, const struct report_key_layout *layout, int64_t wall_ns, const char *id);

#endif
