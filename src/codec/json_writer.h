/*
 * Writes compact JSON into a buffer. Commas are the writer's business; the caller opens, names, writes and closes.
 *
 * Like the buffer, the writer remembers that something went wrong (no room, a NaN) and is asked once at the end.
 * Generated encoders are its main users; elsewhere it is used only where a schema can't help (a log field).
 */
#ifndef BALLAST_CODEC_JSON_WRITER_H
#define BALLAST_CODEC_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

struct json_pair;
struct json_member;

struct json_writer {
	struct buffer *buffer;
	bool need_comma;
	bool escape_html;  /* spec protocols 1.2.2; on by default */
	bool not_a_number; /* a NaN or an infinity was to be written */
};

/* Appends to what the buffer already holds. */
void json_writer_init(struct json_writer *writer, struct buffer *buffer);
void json_writer_object_begin(struct json_writer *writer);
void json_writer_object_end(struct json_writer *writer);
void json_writer_array_begin(struct json_writer *writer);
void json_writer_array_end(struct json_writer *writer);
void json_writer_key(struct json_writer *writer, struct slice key);
void json_writer_null(struct json_writer *writer);
void json_writer_bool(struct json_writer *writer, bool value);
void json_writer_int(struct json_writer *writer, int64_t value);
void json_writer_uint(struct json_writer *writer, uint64_t value);
void json_writer_double(struct json_writer *writer, double value); /* NaN, Inf: the whole encoding fails */
void json_writer_float(struct json_writer *writer, float value);
void json_writer_string(struct json_writer *writer, struct slice text);
void json_writer_raw(struct json_writer *writer, struct slice json); /* one complete JSON value; null if empty */

/* As json_writer_double and _float, but NaN and infinities become the strings "NaN", "Inf", "-Inf" (spec replay 2). */
void json_writer_double_or_name(struct json_writer *writer, double value);
void json_writer_float_or_name(struct json_writer *writer, float value);
/* Bytes and milli-CPU, as numbers where protocols 3 says so; the _string forms are always strings. */
void json_writer_quantity(struct json_writer *writer, uint64_t bytes);
void json_writer_quantity_string(struct json_writer *writer, uint64_t bytes);
void json_writer_milli_cpu(struct json_writer *writer, uint32_t milli);
void json_writer_milli_cpu_string(struct json_writer *writer, uint32_t milli);
/* RFC 3339 in whole seconds, or with up to nine digits of fraction; RFC3339_ZERO becomes null. */
void json_writer_instant(struct json_writer *writer, int64_t ns);
void json_writer_instant_nanoseconds(struct json_writer *writer, int64_t ns);
void json_writer_string_map(struct json_writer *writer, const struct json_pair *pairs, size_t count);
/* Keys of an object under way, with raw values: what a decoder kept of a peer's unknown keys. */
void json_writer_members(struct json_writer *writer, const struct json_member *members, size_t count);

/* False if anything was dropped or couldn't be written; err names `what`. */
bool json_writer_check(const struct json_writer *writer, const char *what, struct error *err);

#endif
