/*
 * Reads line by line. Everything up to the last newline of the page consists of whole lines, and no token crosses a
 * newline, so the scanners below need no other mark of the end; what follows the last newline may only be blanks (M-6).
 *
 * Comments, a good half of most pages, are left by a search for the newline. Scanners decide what stands at the cursor;
 * names and values stay where they are.
 */
#include "metrics/text_parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/plain_text.h"
#include "codec/go_quote.h"
#include "metrics/text_families.h"
#include "metrics/text_float.h"

/*!re2c
	re2c:define:YYCTYPE = "unsigned char";
	re2c:define:YYCURSOR = cursor;
	re2c:define:YYMARKER = marker;
	re2c:yyfill:enable = 0;
	re2c:flags:bit-vectors = 1; // runs of a class: one look into a table for each character
	re2c:sentinel = 10; // the newline: no rule goes beyond one

	blank = [ \t];
	metric_name = [A-Za-z_:][A-Za-z0-9_:]*;
	label_name = [A-Za-z_][A-Za-z0-9_]*;
	ascii_plain = [\x00-\x7F] \ [\\\n];
	plain = [\u0000-\uD7FF\uE000-\U0010FFFF] \ ["\\\n];
*/

static const char *const TYPE_NAMES[] = {
	[METRICS_TEXT_UNKNOWN] = "UNTYPED",     [METRICS_TEXT_COUNTER] = "COUNTER",
	[METRICS_TEXT_GAUGE] = "GAUGE",         [METRICS_TEXT_SUMMARY] = "SUMMARY",
	[METRICS_TEXT_UNTYPED] = "UNTYPED",     [METRICS_TEXT_HISTOGRAM] = "HISTOGRAM",
	[METRICS_TEXT_GAUGE_HISTOGRAM] = "GAUGE_HISTOGRAM",
};

const char *metrics_text_type_name(enum metrics_text_type type)
{
	return TYPE_NAMES[type];
}

/* ---- errors ---- */

static bool fail(const struct metrics_text_parser *parser, struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static bool fail(const struct metrics_text_parser *parser, struct error *err, const char *format, ...)
{
	char text[sizeof err->text];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	error_set(err, ERROR_SYNTAX, "%s", text);
	return error_wrap(err, "text format parsing error in line %zu", parser->line);
}

/* "before "quoted"after", with at most as much of what is quoted as an error holds. */
static bool fail_quoting(const struct metrics_text_parser *parser, struct error *err, const char *before,
                         struct slice quoted, const char *after)
{
	enum { QUOTED_BYTES_MAX = 512, QUOTE_BYTES_MAX = 16 * QUOTED_BYTES_MAX };
	struct buffer text;

	if (quoted.length > QUOTED_BYTES_MAX)
		quoted.length = QUOTED_BYTES_MAX;
	buffer_init(&text, QUOTE_BYTES_MAX);
	go_quote_append(&text, quoted);
	fail(parser, err, "%s%.*s%s", before, SLICE_ARGS(buffer_slice(&text)), after);
	buffer_destroy(&text);
	return false;
}

static struct slice between(const unsigned char *start, const unsigned char *end)
{
	return slice_from(start, (size_t)(end - start));
}

/* ---- comments ---- */

static bool is_blank(unsigned char c)
{
	return c == ' ' || c == '\t';
}

static const unsigned char *skip_blanks(const unsigned char *cursor)
{
	while (is_blank(*cursor))
		cursor++;
	return cursor;
}

/* There is a newline in every line that gets here. */
static const unsigned char *find_newline(const struct metrics_text_parser *parser, const unsigned char *cursor)
{
	return memchr(cursor, '\n', (size_t)(parser->whole_lines_end - cursor));
}

static bool find_family(struct metrics_text_parser *parser, struct slice name, uint32_t *ret_index, struct error *err)
{
	if (text_families_find(parser, name, ret_index, err))
		return true;
	return error_wrap(err, "text format parsing error in line %zu", parser->line);
}

static bool read_help(struct metrics_text_parser *parser, uint32_t family_index, const unsigned char *cursor,
                      struct error *err)
{
	struct metrics_text_family *family = &parser->families[family_index];

	if (family->has_help)
		return fail_quoting(parser, err, "second HELP line for metric name ", family->name, "");
	for (;;) {
		/*!re2c
			ascii_plain+          { continue; }
			"\\" [\\n]            { continue; }
			"\\"                  { return fail(parser, err, "invalid escape sequence in docstring"); }
			"\n"                  { break; }
			*                     { continue; }
		*/
	}
	family->has_help = true;
	parser->cursor = cursor;
	return true;
}

static enum metrics_text_type type_of_name(struct slice name)
{
	static const struct {
		struct slice name;
		enum metrics_text_type type;
	} types[] = {
		{ SLICE_INIT("gauge"), METRICS_TEXT_GAUGE },
		{ SLICE_INIT("counter"), METRICS_TEXT_COUNTER },
		{ SLICE_INIT("untyped"), METRICS_TEXT_UNTYPED },
		{ SLICE_INIT("summary"), METRICS_TEXT_SUMMARY },
		{ SLICE_INIT("histogram"), METRICS_TEXT_HISTOGRAM },
		{ SLICE_INIT("gauge_histogram"), METRICS_TEXT_GAUGE_HISTOGRAM },
	};

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (slice_equal_fold(name, types[i].name))
			return types[i].type;
	return METRICS_TEXT_UNKNOWN;
}

static bool read_type(struct metrics_text_parser *parser, uint32_t family_index, const unsigned char *cursor,
                      struct error *err)
{
	enum { TYPE_BYTES_MAX = 64 };
	struct metrics_text_family *family = &parser->families[family_index];
	const unsigned char *newline = find_newline(parser, cursor);
	char name[TYPE_BYTES_MAX];
	size_t length = 0;

	if (family->type != METRICS_TEXT_UNKNOWN)
		return fail_quoting(parser, err, "second TYPE line for metric name ", family->name,
		                    ", or TYPE reported after samples");
	/* Backslashes vanish here: a quirk of the reference. */
	for (const unsigned char *p = cursor; p < newline && length < sizeof name; p++)
		if (*p != '\\')
			name[length++] = (char)*p;
	family->type = type_of_name(slice_from(name, length));
	if (family->type == METRICS_TEXT_UNKNOWN)
		return fail_quoting(parser, err, "unknown metric type ", slice_from(name, length), "");
	parser->cursor = newline + 1;
	return true;
}

/* A family was named; its description follows, if anything does. */
static bool read_description_of(struct metrics_text_parser *parser, uint32_t family, const unsigned char *cursor,
                                bool is_help, struct error *err)
{
	cursor = skip_blanks(cursor);
	if (*cursor == '\n') {
		parser->cursor = cursor + 1;
		return true;
	}
	return is_help ? read_help(parser, family, cursor, err) : read_type(parser, family, cursor, err);
}

/* cursor stands behind "HELP" or "TYPE" and its blanks. */
static bool read_description(struct metrics_text_parser *parser, const unsigned char *cursor, bool is_help,
                             struct error *err)
{
	const unsigned char *name = cursor;
	const unsigned char *end = text_families_skip_last(parser, cursor);
	const unsigned char *marker;
	uint32_t family;

	if (end != NULL && is_blank(*end))
		return read_description_of(parser, parser->last_family, end, is_help, err);
	/*!re2c
		metric_name? "\n"          { parser->cursor = cursor; return true; }
		metric_name / [ \t]        { goto named; }
		*                          { return fail(parser, err, "invalid metric name in comment"); }
	*/
named:
	if (!find_family(parser, between(name, cursor), &family, err))
		return false;
	return read_description_of(parser, family, cursor, is_help, err);
}

/* cursor stands behind the #. */
static bool read_comment(struct metrics_text_parser *parser, const unsigned char *cursor, struct error *err)
{
	const unsigned char *start = cursor;
	const unsigned char *marker;

	/*!re2c
		blank* "HELP" blank+       { return read_description(parser, cursor, true, err); }
		blank* "TYPE" blank+       { return read_description(parser, cursor, false, err); }
		*                          { parser->cursor = find_newline(parser, start) + 1; return true; }
	*/
}

/* ---- samples ---- */

/* cursor stands behind the opening quote; *ret_end is where the closing one stands. */
static bool read_label_value(const struct metrics_text_parser *parser, const unsigned char *cursor,
                             const unsigned char **ret_end, bool *ret_has_escapes, struct error *err)
{
	const unsigned char *marker;
	bool has_escapes = false;

	for (;;) {
		cursor = (const unsigned char *)plain_text_skip((const char *)cursor,
		                                                (const char *)parser->whole_lines_end);
		/*!re2c
			plain+             { continue; }
			"\\" [\\"n]        { has_escapes = true; continue; }
			["]                { break; }
			"\\"               { return fail(parser, err, "invalid escape sequence in label value"); }
			"\n"               { return fail(parser, err, "label value contains unescaped new-line"); }
			*                  { return fail(parser, err, "label value is not valid UTF-8"); }
		*/
	}
	*ret_end = cursor - 1;
	*ret_has_escapes = has_escapes;
	return true;
}

/* The label that says which quantile or bucket a sample is, and so is no label of the series. */
static bool is_position_label(enum metrics_text_type type, struct slice name)
{
	if (type == METRICS_TEXT_SUMMARY)
		return slice_equal(name, SLICE("quantile"));
	return type == METRICS_TEXT_HISTOGRAM && slice_equal(name, SLICE("le"));
}

static bool check_position(const struct metrics_text_parser *parser, const struct metrics_text_label *label,
                           struct error *err)
{
	const unsigned char *start = (const unsigned char *)label->raw_value.data;
	const unsigned char *end;
	double value;

	if (!metrics_text_float_read(start, &end, &value) || end != start + label->raw_value.length)
		return fail(parser, err, "expected float as value for '%.*s' label", SLICE_ARGS(label->name));
	return true;
}

static bool is_repeated(const struct metrics_text_parser *parser, struct slice name)
{
	for (size_t i = 0; i < parser->label_count; i++)
		if (slice_equal(parser->labels[i].name, name))
			return true;
	return false;
}

/* name="value" at *cursor; moves *cursor behind it and the blanks that follow. */
static bool read_label(struct metrics_text_parser *parser, const struct metrics_text_family *family, struct slice name,
                       const unsigned char **cursor, struct error *err)
{
	const unsigned char *p = skip_blanks(*cursor);
	const unsigned char *value_end = NULL;
	bool is_position = is_position_label(family->type, name);

	if (slice_equal(name, SLICE("__name__")))
		return fail(parser, err, "label name \"__name__\" is reserved");
	if (*p != '=')
		return fail(parser, err, "expected '=' after label name");
	if (!is_position && is_repeated(parser, name))
		return fail_quoting(parser, err, "duplicate label names for metric ", family->name, "");
	if (parser->label_count == METRICS_TEXT_LABELS_MAX) {
		error_set(err, ERROR_LIMIT, "more than %d labels", METRICS_TEXT_LABELS_MAX);
		return error_wrap(err, "text format parsing error in line %zu", parser->line);
	}
	p = skip_blanks(p + 1);
	if (*p != '"')
		return fail(parser, err, "expected '\"' at start of label value");
	p++;

	struct metrics_text_label *label = &parser->labels[parser->label_count];

	label->name = name;
	if (!read_label_value(parser, p, &value_end, &label->has_escapes, err))
		return false;
	label->raw_value = between(p, value_end);
	if (is_position && !check_position(parser, label, err))
		return false;
	parser->label_count++;
	*cursor = skip_blanks(value_end + 1);
	return true;
}

/* *cursor stands behind the opening brace, then behind the closing one. */
static bool read_labels(struct metrics_text_parser *parser, const struct metrics_text_family *family,
                        const unsigned char **cursor_at, struct error *err)
{
	const unsigned char *cursor = *cursor_at;

	for (;;) {
		const unsigned char *name = cursor = skip_blanks(cursor);

		/*!re2c
			"}"                { break; }
			label_name         { goto named; }
			*                  { goto invalid; }
		*/
named:
		if (!read_label(parser, family, between(name, cursor), &cursor, err))
			return false;
		if (*cursor == '}') {
			cursor++;
			break;
		}
		if (*cursor != ',')
			return fail(parser, err, "unexpected end of label value");
		cursor++;
	}
	*cursor_at = cursor;
	return true;
invalid:
	return fail_quoting(parser, err, "invalid label name for metric ", family->name, "");
}

static const unsigned char *find_blank_or_newline(const unsigned char *cursor)
{
	while (*cursor > ' ' || (!is_blank(*cursor) && *cursor != '\n'))
		cursor++;
	return cursor;
}

static bool read_timestamp(struct metrics_text_parser *parser, const unsigned char *cursor,
                           struct metrics_text_sample *sample, struct error *err)
{
	const unsigned char *start = skip_blanks(cursor);
	const unsigned char *end = find_blank_or_newline(start);

	if (!slice_to_i64(between(start, end), &sample->timestamp_ms))
		return fail_quoting(parser, err, "expected integer as timestamp, got ", between(start, end), "");
	if (*end != '\n')
		return fail_quoting(parser, err, "spurious string after timestamp: ",
		                    between(end, find_newline(parser, end)), "");
	sample->has_timestamp = true;
	parser->cursor = end + 1;
	return true;
}

static bool read_value(struct metrics_text_parser *parser, const unsigned char *cursor,
                       struct metrics_text_sample *sample, struct error *err)
{
	const unsigned char *end;

	if (!metrics_text_float_read(cursor, &end, &sample->value) || (!is_blank(*end) && *end != '\n'))
		return fail_quoting(parser, err, "expected float as value, got ",
		                    between(cursor, find_blank_or_newline(cursor)), "");
	if (*end != '\n')
		return read_timestamp(parser, end, sample, err);
	parser->cursor = end + 1;
	return true;
}

/* name stands at the beginning of the line, cursor behind it. */
static bool read_sample(struct metrics_text_parser *parser, struct slice name, uint32_t family_index,
                        const unsigned char *cursor, struct metrics_text_sample *sample, struct error *err)
{
	struct metrics_text_family *family = &parser->families[family_index];

	if (family->type == METRICS_TEXT_UNKNOWN)
		family->type = METRICS_TEXT_UNTYPED;
	sample->name = name;
	sample->family = family->name;
	sample->family_index = family_index;
	sample->type = family->type;
	sample->has_timestamp = false;
	parser->label_count = 0;
	cursor = skip_blanks(cursor);
	if (*cursor == '{') {
		cursor++;
		if (!read_labels(parser, family, &cursor, err))
			return false;
		cursor = skip_blanks(cursor);
	}
	sample->labels = parser->labels;
	sample->label_count = parser->label_count;
	return read_value(parser, cursor, sample, err);
}

/* ---- the page ---- */

void metrics_text_parser_init(struct metrics_text_parser *parser, uint64_t seed)
{
	*parser = (struct metrics_text_parser){ .seed = seed };
}

void metrics_text_parser_destroy(struct metrics_text_parser *parser)
{
	memory_release(parser->families);
	memory_release(parser->slots);
	*parser = (struct metrics_text_parser){ .seed = parser->seed };
}

void metrics_text_begin(struct metrics_text_parser *parser, struct slice page)
{
	const unsigned char *start = (const unsigned char *)(page.length > 0 ? page.data : "");
	const unsigned char *newline = memrchr(start, '\n', page.length);

	text_families_clear(parser);
	parser->finished = false;
	parser->line = 0;
	parser->cursor = start;
	parser->whole_lines_end = newline != NULL ? newline + 1 : start;
	parser->end = start + page.length;
}

/* What follows the last newline is either nothing but blanks or a line that was cut off. */
static void read_tail(struct metrics_text_parser *parser, struct error *err)
{
	const unsigned char *p = parser->cursor;

	parser->line++;
	while (p < parser->end && is_blank(*p))
		p++;
	if (p < parser->end)
		fail(parser, err, "unexpected end of input stream");
	else
		parser->finished = true;
}

/* Reads a line: *ret_is_sample tells whether it was one. */
static bool read_line(struct metrics_text_parser *parser, struct metrics_text_sample *sample, bool *ret_is_sample,
                      struct error *err)
{
	const unsigned char *cursor = skip_blanks(parser->cursor);
	const unsigned char *name = cursor;
	const unsigned char *end = text_families_skip_last(parser, cursor);
	uint32_t family;

	*ret_is_sample = end != NULL;
	if (end != NULL)
		return read_sample(parser, parser->last_name, parser->last_family, end, sample, err);
	/*!re2c
		"\n"                       { parser->cursor = cursor; return true; }
		"#"                        { return read_comment(parser, cursor, err); }
		metric_name                { goto named; }
		*                          { return fail(parser, err, "invalid metric name"); }
	*/
named:
	*ret_is_sample = true;
	return find_family(parser, between(name, cursor), &family, err) &&
	       read_sample(parser, between(name, cursor), family, cursor, sample, err);
}

bool metrics_text_next(struct metrics_text_parser *parser, struct metrics_text_sample *ret_sample, struct error *err)
{
	if ((size_t)(parser->end - parser->cursor) > METRICS_TEXT_PAGE_BYTES_MAX) {
		error_set(err, ERROR_LIMIT, "the page is longer than %d bytes", METRICS_TEXT_PAGE_BYTES_MAX);
		return false;
	}
	while (parser->cursor < parser->whole_lines_end) {
		const unsigned char *line = parser->cursor;
		struct metrics_text_sample sample;
		bool is_sample;

		parser->line++;
		if (!read_line(parser, &sample, &is_sample, err))
			return false;
		if (parser->cursor - line > METRICS_TEXT_LINE_BYTES_MAX) {
			error_set(err, ERROR_LIMIT, "longer than %d bytes", METRICS_TEXT_LINE_BYTES_MAX);
			return error_wrap(err, "text format parsing error in line %zu", parser->line);
		}
		if (is_sample) {
			*ret_sample = sample;
			return true;
		}
	}
	if (!parser->finished)
		read_tail(parser, err);
	return false;
}

bool metrics_text_finished(const struct metrics_text_parser *parser)
{
	return parser->finished;
}

const struct metrics_text_label *metrics_text_find_label(const struct metrics_text_sample *sample, struct slice name)
{
	for (size_t i = 0; i < sample->label_count; i++)
		if (slice_equal(sample->labels[i].name, name))
			return &sample->labels[i];
	return NULL;
}

void metrics_text_append_value(const struct metrics_text_label *label, struct buffer *out)
{
	struct slice rest = label->raw_value;

	for (;;) {
		const char *escape = memchr(rest.data, '\\', rest.length);

		if (escape == NULL)
			break;
		buffer_append(out, rest.data, (size_t)(escape - rest.data));
		buffer_append_char(out, escape[1] == 'n' ? '\n' : escape[1]);
		rest = slice_from_offset(rest, (size_t)(escape - rest.data) + 2);
	}
	buffer_append_slice(out, rest);
}
