/*
 * RFC 3339 instants as nanoseconds since 1970-01-01T00:00:00Z.
 */
#ifndef BALLAST_CODEC_RFC3339_H
#define BALLAST_CODEC_RFC3339_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

/* The zero instant of the reference (0001-01-01T00:00:00Z), which prints as null where a schema says so. */
#define RFC3339_ZERO INT64_MIN

/* Any zone and up to nine digits of fraction (more are cut off). Years 1678 … 2261 fit; others are refused. */
bool rfc3339_parse(struct slice text, int64_t *ret_ns, struct error *err);
/* "2025-03-04T05:06:07Z", fraction cut off. */
void rfc3339_print_seconds(int64_t ns, struct buffer *out);
/* "2025-03-04T05:06:07.5Z": up to nine digits, trailing zeros removed. */
void rfc3339_print_nanoseconds(int64_t ns, struct buffer *out);
/*
 * The same in a zone that is so far ahead of UTC: "2025-03-07T00:30:00.5+01:00", and "Z" for 0. Of the offset whole
 * minutes are printed, less than a day.
 */
void rfc3339_print_nanoseconds_at(int64_t ns, int32_t offset_s, struct buffer *out);

#endif
