/*
 * What standard output is, and how text from elsewhere gets there: what moves the cursor, recolours, or hides or reverses
 * other text never does as it is.
 */
#ifndef BALLAST_CLI_TERMINAL_H
#define BALLAST_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/slice.h"

/* Characters; 0: unknown. */
struct terminal_size {
	size_t rows, columns;
};

/* Whether it is a terminal that can move its cursor, so that what was shown can be replaced. */
bool terminal_can_redraw(void);
/* As it is now: windows are resized. */
struct terminal_size terminal_size(void);

/* Appends the text with a '?' for each control character, each mark that changes the direction of text or is invisible,
 * and each byte that isn't UTF-8. */
void terminal_append_clean(struct slice text, struct buffer *out);
/* The same to a stream. */
void terminal_print_clean(FILE *out, struct slice text);
/* Appends JSON with \u escapes in place of such characters, which must be within its strings. */
void terminal_append_clean_json(struct slice json, struct buffer *out);

#endif
