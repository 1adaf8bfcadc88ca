/*
 * The library yields events; each is written as it comes. The only state is what the innermost container expects next:
 * a key or a value.
 */
#include "codec/yaml.h"

#include <ctype.h>
#include <string.h>
#include <yaml.h>

#include "codec/json_writer.h"

enum container { IN_DOCUMENT, IN_SEQUENCE, IN_MAPPING_KEY, IN_MAPPING_VALUE };

struct conversion {
	yaml_parser_t parser;
	struct slice text;
	struct json_writer writer;
	size_t line; /* of the JSON, from 0 */
	enum container stack[YAML_DEPTH + 1];
	unsigned depth;
	unsigned documents;
	bool done;
};

/* ---- scalars ---- */

static bool is_one_of(struct slice text, const char *const *words)
{
	for (; *words != NULL; words++)
		if (slice_equal_text(text, *words))
			return true;
	return false;
}

static bool is_null(struct slice text)
{
	static const char *const WORDS[] = { "", "~", "null", "Null", "NULL", NULL };

	return is_one_of(text, WORDS);
}

static bool is_true(struct slice text)
{
	static const char *const WORDS[] = { "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", NULL };

	return is_one_of(text, WORDS);
}

static bool is_false(struct slice text)
{
	static const char *const WORDS[] = { "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", NULL };

	return is_one_of(text, WORDS);
}

static size_t count_digits(struct slice text, size_t start)
{
	size_t end = start;

	while (end < text.length && isdigit((unsigned char)text.data[end]))
		end++;
	return end - start;
}

/* A number as JSON writes it; other notations (octal, hexadecimal, underscores) stay strings. */
static bool is_number(struct slice text)
{
	size_t at = text.length > 0 && text.data[0] == '-' ? 1 : 0;
	size_t digits = count_digits(text, at);

	if (digits == 0 || (digits > 1 && text.data[at] == '0'))
		return false;
	at += digits;
	if (at < text.length && text.data[at] == '.') {
		digits = count_digits(text, at + 1);
		if (digits == 0)
			return false;
		at += 1 + digits;
	}
	if (at < text.length && (text.data[at] == 'e' || text.data[at] == 'E')) {
		at++;
		if (at < text.length && (text.data[at] == '+' || text.data[at] == '-'))
			at++;
		digits = count_digits(text, at);
		if (digits == 0)
			return false;
		at += digits;
	}
	return at == text.length;
}

static void write_scalar(struct json_writer *writer, const yaml_event_t *event)
{
	struct slice text = slice_from(event->data.scalar.value, event->data.scalar.length);
	bool is_plain = event->data.scalar.plain_implicit != 0;

	if (is_plain && is_null(text))
		json_writer_null(writer);
	else if (is_plain && (is_true(text) || is_false(text)))
		json_writer_bool(writer, is_true(text));
	else if (is_plain && is_number(text))
		json_writer_raw(writer, text);
	else
		json_writer_string(writer, text);
}

/* ---- events ---- */

static bool refuse(const yaml_event_t *event, const char *what, struct error *err)
{
	return error_set(err, ERROR_SYNTAX, "line %zu: %s", event->start_mark.line + 1, what);
}

/* A value was written, or ended: the container is ready for what follows. */
static void value_is_complete(struct conversion *conversion)
{
	enum container *top = &conversion->stack[conversion->depth];

	if (*top == IN_MAPPING_VALUE)
		*top = IN_MAPPING_KEY;
}

static bool is_merge_key(const yaml_event_t *event)
{
	return event->data.scalar.plain_implicit != 0 &&
	       slice_equal_text(slice_from(event->data.scalar.value, event->data.scalar.length), "<<");
}

static bool take_scalar(struct conversion *conversion, const yaml_event_t *event, struct error *err)
{
	enum container *top = &conversion->stack[conversion->depth];

	if (*top == IN_MAPPING_KEY) {
		if (is_merge_key(event))
			return refuse(event, "a merge key (<<), which isn't supported", err);
		json_writer_key(&conversion->writer, slice_from(event->data.scalar.value, event->data.scalar.length));
		*top = IN_MAPPING_VALUE;
		return true;
	}
	write_scalar(&conversion->writer, event);
	value_is_complete(conversion);
	return true;
}

static bool open_container(struct conversion *conversion, const yaml_event_t *event, enum container container,
                           struct error *err)
{
	if (conversion->stack[conversion->depth] == IN_MAPPING_KEY)
		return refuse(event, "a key that isn't a scalar", err);
	if (conversion->depth == YAML_DEPTH)
		return refuse(event, "nested too deeply", err);
	conversion->stack[++conversion->depth] = container;
	if (container == IN_SEQUENCE)
		json_writer_array_begin(&conversion->writer);
	else
		json_writer_object_begin(&conversion->writer);
	return true;
}

static bool close_container(struct conversion *conversion)
{
	if (conversion->stack[conversion->depth] == IN_SEQUENCE)
		json_writer_array_end(&conversion->writer);
	else
		json_writer_object_end(&conversion->writer);
	conversion->depth--;
	value_is_complete(conversion);
	return true;
}

/* What is written next is to stand on the event's line. */
static void go_to_line(struct conversion *conversion, const yaml_event_t *event)
{
	for (; conversion->line < event->start_mark.line; conversion->line++)
		buffer_append_char(conversion->writer.buffer, '\n');
}

static bool take(struct conversion *conversion, const yaml_event_t *event, struct error *err)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (conversion->documents++ > 0)
			return refuse(event, "a second document", err);
		return true;
	case YAML_ALIAS_EVENT:
		return refuse(event, "an alias (*name), which isn't supported", err);
	case YAML_SCALAR_EVENT:
		return take_scalar(conversion, event, err);
	case YAML_SEQUENCE_START_EVENT:
		return open_container(conversion, event, IN_SEQUENCE, err);
	case YAML_MAPPING_START_EVENT:
		return open_container(conversion, event, IN_MAPPING_KEY, err);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return close_container(conversion);
	case YAML_STREAM_END_EVENT:
		conversion->done = true;
		return true;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		break;
	}
	return true;
}

static size_t line_of_byte(struct slice text, size_t offset)
{
	size_t line = 1;

	for (size_t i = 0; i < offset && i < text.length; i++)
		line += text.data[i] == '\n';
	return line;
}

/* The library says of a tab only that it can't begin anything. */
static bool is_indented_by_tab(struct slice text, size_t line)
{
	struct slice found = SLICE("");

	for (size_t i = 0; i <= line && text.length > 0; i++)
		found = slice_take_until(&text, '\n');
	while (found.length > 0 && found.data[0] == ' ')
		found = slice_from_offset(found, 1);
	return found.length > 0 && found.data[0] == '\t';
}

static bool library_error(const struct conversion *conversion, struct error *err)
{
	const yaml_parser_t *parser = &conversion->parser;

	if (parser->error == YAML_MEMORY_ERROR)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a YAML text");
	if (parser->error == YAML_READER_ERROR)
		return error_set(err, ERROR_SYNTAX, "line %zu: byte %zu: %s",
		                 line_of_byte(conversion->text, parser->problem_offset), parser->problem_offset,
		                 parser->problem);
	if (parser->error == YAML_SCANNER_ERROR && is_indented_by_tab(conversion->text, parser->problem_mark.line))
		return error_set(err, ERROR_SYNTAX, "line %zu: a tab, where only blanks may stand",
		                 parser->problem_mark.line + 1);
	return error_set(err, ERROR_SYNTAX, "line %zu: %s", parser->problem_mark.line + 1, parser->problem);
}

static bool convert(struct conversion *conversion, struct error *err)
{
	for (unsigned events = 0; !conversion->done; events++) {
		yaml_event_t event;
		bool ok;

		if (events == YAML_EVENTS)
			return error_set(err, ERROR_LIMIT, "the text has over %d items", YAML_EVENTS);
		if (!yaml_parser_parse(&conversion->parser, &event))
			return library_error(conversion, err);
		if (!conversion->writer.buffer->failed)
			go_to_line(conversion, &event);
		ok = take(conversion, &event, err);
		yaml_event_delete(&event);
		if (!ok)
			return false;
	}
	if (conversion->documents == 0)
		json_writer_null(&conversion->writer);
	return json_writer_check(&conversion->writer, "the text as JSON", err);
}

bool yaml_to_json(struct slice text, struct buffer *json, struct error *err)
{
	struct conversion conversion = { .text = text, .stack = { IN_DOCUMENT } };
	bool ok;

	if (!yaml_parser_initialize(&conversion.parser))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a YAML text");
	yaml_parser_set_input_string(&conversion.parser, (const unsigned char *)(text.data != NULL ? text.data : ""),
	                             text.length);
	json_writer_init(&conversion.writer, json);
	conversion.writer.escape_html = false;
	ok = convert(&conversion, err);
	yaml_parser_delete(&conversion.parser);
	return ok;
}
