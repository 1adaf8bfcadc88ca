/*
 * A growing array of bytes that must state its maximum. Appending past the maximum, or when memory is short, sets
 * `failed` and drops everything appended from then on, so a caller may append many things and ask once at the end.
 */
#ifndef BALLAST_BASE_BUFFER_H
#define BALLAST_BASE_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"

struct buffer {
	char *data;
	size_t length;
	size_t capacity;
	size_t limit_bytes;
	bool failed;
	bool no_memory; /* why it failed: memory was short, else the limit was reached */
	bool secret;    /* see buffer_init_secret */
};

/* Allocates nothing yet. */
void buffer_init(struct buffer *buffer, size_t limit_bytes);
/* For keys and tokens: what it held is overwritten wherever it leaves memory behind, also when it grows. */
void buffer_init_secret(struct buffer *buffer, size_t limit_bytes);
void buffer_destroy(struct buffer *buffer); /* also fine on a zeroed or destroyed one */
void buffer_append(struct buffer *buffer, const void *data, size_t length);
void buffer_append_slice(struct buffer *buffer, struct slice text);
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_append_char(struct buffer *buffer, char c);
void buffer_append_format(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* If the part has failed, what is made of it is cut as well: the buffer has failed, too, and for the same reason. */
void buffer_share_failure(struct buffer *buffer, const struct buffer *part);
/* Room for length more bytes at the end, or NULL (and failed is set). buffer_advance then counts what was written. */
char *buffer_reserve(struct buffer *buffer, size_t length);
void buffer_advance(struct buffer *buffer, size_t length);
/* Drops bytes from the front. */
void buffer_consume(struct buffer *buffer, size_t length);
/* Forgets content and failure; keeps the memory. */
void buffer_clear(struct buffer *buffer);
/* Forgets content and failure and gives the memory back. */
void buffer_release(struct buffer *buffer);
/* The content; valid until the next append. */
struct slice buffer_slice(const struct buffer *buffer);
/* False, with ERROR_LIMIT or ERROR_NO_MEMORY naming `what`, if anything was dropped. */
bool buffer_check(const struct buffer *buffer, const char *what, struct error *err);

#endif
