/*
 * Reads a page in the Prometheus text format, sample by sample (spec agent-core M-6: the grammar of the reference's
 * parser, quirks included).
 *
 * The page is a whole body in memory and is never copied: names and label values are slices of it. The parser owns only
 * a table of the families seen so far, which is kept from page to page, so that reading a page normally allocates
 * nothing.
 *
 *	metrics_text_begin(&parser, page);
 *	while (metrics_text_next(&parser, &sample, &err))
 *		…
 *	if (!metrics_text_finished(&parser))
 *		return false; // err says what and in which line
 */
#ifndef BALLAST_METRICS_TEXT_PARSER_H
#define BALLAST_METRICS_TEXT_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

/* Beyond these a page is refused with ERROR_LIMIT. */
enum {
	METRICS_TEXT_PAGE_BYTES_MAX = 64 << 20,
	METRICS_TEXT_LINE_BYTES_MAX = 4 << 20,
	METRICS_TEXT_FAMILIES_MAX = 16384,
	METRICS_TEXT_LABELS_MAX = 128, /* of one sample */
};

enum metrics_text_type {
	METRICS_TEXT_UNKNOWN, /* no TYPE line and no sample yet */
	METRICS_TEXT_COUNTER,
	METRICS_TEXT_GAUGE,
	METRICS_TEXT_SUMMARY,
	METRICS_TEXT_UNTYPED,
	METRICS_TEXT_HISTOGRAM,
	METRICS_TEXT_GAUGE_HISTOGRAM,
};

struct metrics_text_family {
	struct slice name;
	enum metrics_text_type type;
	bool has_help;
	uint32_t hash;
};

struct metrics_text_label {
	struct slice name;
	struct slice raw_value; /* between the quotes, as written */
	bool has_escapes;
};

struct metrics_text_sample {
	struct slice name;     /* as written; of a summary or histogram it may end in _sum, _count or _bucket */
	struct slice family;   /* name of its family */
	uint32_t family_index; /* the same number for all samples of a family in a page */
	enum metrics_text_type type;
	bool has_timestamp;
	double value;
	int64_t timestamp_ms;
	size_t label_count;
	const struct metrics_text_label *labels; /* valid until the next call */
};

struct metrics_text_parser {
	struct metrics_text_family *families;
	uint32_t *slots; /* hash table of family index + 1 */
	uint32_t family_count;
	uint32_t family_capacity;
	uint32_t slot_count; /* a power of two, or 0 */
	uint64_t seed;
	struct slice last_name; /* consecutive lines mostly speak of one family */
	uint32_t last_family;
	bool finished;
	size_t line;
	const unsigned char *cursor;
	const unsigned char *whole_lines_end; /* behind the last newline */
	const unsigned char *end;
	size_t label_count; /* of the sample at hand */
	struct metrics_text_label labels[METRICS_TEXT_LABELS_MAX];
};

/* seed: a random number, so that a page can't be made to hit one slot of the table. Allocates nothing yet. */
void metrics_text_parser_init(struct metrics_text_parser *parser, uint64_t seed);
void metrics_text_parser_destroy(struct metrics_text_parser *parser); /* also fine on a zeroed or destroyed one */

/* Starts on a page, which must outlive the reading. */
void metrics_text_begin(struct metrics_text_parser *parser, struct slice page);
/*
 * The next sample; false at the end of the page or on an error (ERROR_SYNTAX, ERROR_LIMIT, ERROR_NO_MEMORY), with the
 * text "text format parsing error in line 12: …". err is touched only on an error.
 */
bool metrics_text_next(struct metrics_text_parser *parser, struct metrics_text_sample *ret_sample, struct error *err);
/* Whether the page was read to its end without an error. */
bool metrics_text_finished(const struct metrics_text_parser *parser);

/* The label, or NULL. */
const struct metrics_text_label *metrics_text_find_label(const struct metrics_text_sample *sample, struct slice name);
/* Appends the label's value with its escapes undone. */
void metrics_text_append_value(const struct metrics_text_label *label, struct buffer *out);

/* "COUNTER", … "GAUGE_HISTOGRAM"; "UNTYPED" also for METRICS_TEXT_UNKNOWN. */
const char *metrics_text_type_name(enum metrics_text_type type);

#endif
