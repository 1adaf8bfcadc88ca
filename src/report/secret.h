/*
 * Texts that must not stay in memory: keys and tokens. They are wiped when they go.
 */
#ifndef BALLAST_REPORT_SECRET_H
#define BALLAST_REPORT_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

/* A zeroed one is empty. */
struct secret {
	char *text; /* NUL-terminated; NULL when empty */
	size_t length;
};

/* Replaces the text by a copy of `text`. False when memory is short: the old text stays. */
bool secret_set(struct secret *secret, struct slice text, struct error *err);
void secret_clear(struct secret *secret);
struct slice secret_slice(const struct secret *secret);

/*
 * Overwrites what a decoder made of a secret in `source`, unless it merely points into it: bytes of an arena, ours though a
 * slice shows them as constant.
 */
void secret_wipe_decoded(struct slice bytes, struct slice source);

/*
 * A buffer for a text with secrets in it, with room for limit_bytes from the start. False when memory is short; then,
 * too, it may be destroyed.
 */
bool secret_buffer_init(struct buffer *buffer, size_t limit_bytes, struct error *err);

#endif
