/*
 * The families of a page by name: part of the text parser, kept apart because it is a hash table and not a grammar.
 */
#ifndef BALLAST_METRICS_TEXT_FAMILIES_H
#define BALLAST_METRICS_TEXT_FAMILIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "metrics/text_parser.h"

/* Forgets all families, keeps the memory. */
void text_families_clear(struct metrics_text_parser *parser);

/*
 * The family a name belongs to, made if there is none: the one of that name, else a summary or histogram that the name
 * is a part of, by its suffix (M-6). ERROR_LIMIT or ERROR_NO_MEMORY.
 */
bool text_families_find(struct metrics_text_parser *parser, struct slice name, uint32_t *ret_index, struct error *err);

/*
 * Where the name at cursor ends, if it is the one that was last looked up, as it is in most lines; else NULL. There
 * must be a newline at or behind cursor, within whole lines.
 */
const unsigned char *text_families_skip_last(const struct metrics_text_parser *parser, const unsigned char *cursor);

#endif
