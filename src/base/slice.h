/*
 * A slice is a view of bytes that somebody else owns: a pointer and a length, not NUL-terminated.
 * The empty slice has length 0; its pointer may be NULL.
 */
#ifndef BALLAST_BASE_SLICE_H
#define BALLAST_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slice {
	const char *data;
	size_t length;
};

/* A slice of a string literal. */
#define SLICE(literal) ((struct slice){ .data = "" literal, .length = sizeof(literal) - 1 })

/* The same as an initializer of static data. */
#define SLICE_INIT(literal)                                       \
	{                                                         \
		.data = "" literal, .length = sizeof(literal) - 1 \
	}

/* For "%.*s". */
#define SLICE_ARGS(slice) (int)(slice).length, (slice).length > 0 ? (slice).data : ""

struct slice slice_of(const char *text); /* NULL gives the empty slice */
static inline struct slice slice_from(const void *data, size_t length)
{
	return (struct slice){ .data = (const char *)data, .length = length };
}

bool slice_equal(struct slice a, struct slice b);
bool slice_equal_text(struct slice a, const char *text);
/* Equal when ASCII letters match in either case. */
bool slice_equal_fold(struct slice a, struct slice b);
/* <0, 0, >0: bytewise, shorter first. */
int slice_compare(struct slice a, struct slice b);
bool slice_starts_with(struct slice text, struct slice prefix);
bool slice_contains(struct slice text, struct slice part);
/* Without leading and trailing space, \t, \r, \n. */
struct slice slice_trim(struct slice text);
/* From start (clamped) to the end. */
struct slice slice_from_offset(struct slice text, size_t start);
/* Cuts *text at the first separator: returns what stood before (without a separator, all), leaves the rest in *text. */
struct slice slice_take_until(struct slice *text, char separator);
/* Whole of text is a decimal number within uint64; no sign, no blanks. */
bool slice_to_u64(struct slice text, uint64_t *ret_value);
/* The same within int64, with or without a sign. */
bool slice_to_i64(struct slice text, int64_t *ret_value);
bool slice_is_utf8(struct slice text);
/* The bytes (1 … 4) of the well-formed UTF-8 sequence at the start, and its code point; 0 if there is none. */
size_t slice_utf8_next(struct slice text, uint32_t *ret_code_point);
/* For tables: the same within one build of the program; not for files or peers. */
uint64_t slice_hash(struct slice text);

#endif
