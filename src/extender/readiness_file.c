/*
 * A cursor goes through the text once. Block style is followed by indentation, flow style by brackets; whatever the style,
 * a scalar that stands at nodes[].KEY lands in the item under way, and finished items are judged one by one.
 */
#include "extender/readiness_file.h"

#include <string.h>

#include "extender/process_limits.h"

enum level { LEVEL_DOCUMENT, LEVEL_NODES, LEVEL_ITEM, LEVEL_ELSEWHERE };

struct scalar {
	char text[READINESS_SCALAR_BYTES];
	size_t length;
	bool quoted;
};

struct item {
	struct scalar node_name, kube_scheduler, restarted;
};

struct reader {
	struct slice text;
	size_t at;
	unsigned line;
	struct slice wanted;
	struct item item; /* under way */
	bool found;       /* an item of the wanted name was there; what the first of them says: */
	bool restarted;
	struct scalar kube_scheduler;
	struct error *err;
};

static bool wrong(struct reader *reader, const char *what)
{
	return error_set(reader->err, ERROR_SYNTAX, "yaml: line %u: %s", reader->line, what);
}

static char peek(const struct reader *reader)
{
	return reader->at < reader->text.length ? reader->text.data[reader->at] : '\0';
}

static bool at_end(const struct reader *reader)
{
	return reader->at >= reader->text.length;
}

static void advance(struct reader *reader)
{
	if (peek(reader) == '\n')
		reader->line++;
	reader->at++;
}

/* Over blanks and comments, and over line ends if asked. */
static void skip_blanks(struct reader *reader, bool lines)
{
	while (!at_end(reader)) {
		char c = peek(reader);

		if (c == '#' && (reader->at == 0 || strchr(" \t\n", reader->text.data[reader->at - 1]) != NULL)) {
			while (!at_end(reader) && peek(reader) != '\n')
				advance(reader);
		} else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
			advance(reader);
		} else {
			return;
		}
	}
}

/* To the start of the next line with content; its indentation, or -1 at the end. */
static int next_line(struct reader *reader)
{
	size_t start;

	skip_blanks(reader, true);
	for (start = reader->at; start > 0 && reader->text.data[start - 1] != '\n'; start--) {
	}
	return at_end(reader) ? -1 : (int)(reader->at - start);
}

/* ---- scalars ---- */

static bool put(struct reader *reader, struct scalar *scalar, char c)
{
	if (scalar->length == sizeof scalar->text)
		return wrong(reader, "a scalar is too long");
	scalar->text[scalar->length++] = c;
	return true;
}

static bool read_quoted(struct reader *reader, struct scalar *scalar)
{
	char quote = peek(reader);

	scalar->quoted = true;
	for (advance(reader); !at_end(reader) && peek(reader) != '\n'; advance(reader)) {
		char c = peek(reader);

		if (c == quote && quote == '\'' && reader->at + 1 < reader->text.length &&
		    reader->text.data[reader->at + 1] == '\'') {
			advance(reader);
		} else if (c == quote) {
			advance(reader);
			return true;
		} else if (c == '\\' && quote == '"') {
			advance(reader);
			c = peek(reader);
			if (c != '"' && c != '\\' && c != '/')
				return wrong(reader, "an escape that isn't understood");
		}
		if (!put(reader, scalar, c))
			return false;
	}
	return wrong(reader, "a quoted scalar doesn't end on its line");
}

static bool ends_plain(const struct reader *reader, bool flow)
{
	char c = peek(reader);
	char next = reader->at + 1 < reader->text.length ? reader->text.data[reader->at + 1] : '\n';

	if (c == '\n' || (flow && strchr(",[]{}", c) != NULL))
		return true;
	if (c == ':')
		return next == ' ' || next == '\n' || next == '\r' || (flow && strchr(",[]{}", next) != NULL);
	return c == '#' && strchr(" \t", reader->text.data[reader->at - 1]) != NULL;
}

static bool read_scalar(struct reader *reader, bool flow, struct scalar *scalar)
{
	memset(scalar, 0, sizeof *scalar);
	if (peek(reader) == '"' || peek(reader) == '\'')
		return read_quoted(reader, scalar);
	if (!at_end(reader) && strchr("&*!|>%@`", peek(reader)) != NULL)
		return wrong(reader, "anchors, tags and block scalars aren't understood");
	while (!at_end(reader) && !ends_plain(reader, flow)) {
		if (!put(reader, scalar, peek(reader)))
			return false;
		advance(reader);
	}
	while (scalar->length > 0 && strchr(" \t\r", scalar->text[scalar->length - 1]) != NULL)
		scalar->length--;
	return true;
}

static struct slice text_of(const struct scalar *scalar)
{
	return slice_from(scalar->text, scalar->length);
}

static bool is_null(const struct scalar *scalar)
{
	struct slice text = text_of(scalar);

	return !scalar->quoted && (text.length == 0 || slice_equal_text(text, "~") || slice_equal_text(text, "null"));
}

/* "yes", "Yes" and "YES", but not "yEs". */
static bool is_word(struct slice text, const char *word)
{
	bool first = text.length > 0 && text.data[0] >= 'A' && text.data[0] <= 'Z';
	bool second = text.length > 1 && text.data[1] >= 'A' && text.data[1] <= 'Z';

	if (!slice_equal_fold(text, slice_of(word)) || (second && !first))
		return false;
	for (size_t i = 2; i < text.length; i++) {
		if ((text.data[i] >= 'A' && text.data[i] <= 'Z') != second)
			return false;
	}
	return true;
}

static bool read_bool(struct reader *reader, const struct scalar *scalar, bool *ret_value)
{
	static const char *const WORDS[][2] = { { "false", "true" }, { "no", "yes" }, { "off", "on" } };

	*ret_value = false;
	if (is_null(scalar))
		return true;
	for (size_t i = 0; !scalar->quoted && i < sizeof WORDS / sizeof WORDS[0]; i++) {
		*ret_value = is_word(text_of(scalar), WORDS[i][1]);
		if (*ret_value || is_word(text_of(scalar), WORDS[i][0]))
			return true;
	}
	return wrong(reader, "restarted is not a boolean");
}

/* ---- items ---- */

static void set_member(struct reader *reader, struct slice key, const struct scalar *value)
{
	if (slice_equal_text(key, "node_name"))
		reader->item.node_name = *value;
	else if (slice_equal_text(key, "kube_scheduler"))
		reader->item.kube_scheduler = *value;
	else if (slice_equal_text(key, "restarted"))
		reader->item.restarted = *value;
}

static bool end_item(struct reader *reader)
{
	bool restarted;

	if (!read_bool(reader, &reader->item.restarted, &restarted))
		return false;
	if (!reader->found && slice_equal(text_of(&reader->item.node_name), reader->wanted)) {
		reader->found = true;
		reader->restarted = restarted;
		reader->kube_scheduler = reader->item.kube_scheduler;
	}
	memset(&reader->item, 0, sizeof reader->item);
	return true;
}

/* ---- flow style ---- */

/* NOLINTBEGIN(misc-no-recursion): as deep as the text, which is at most READINESS_DEPTH */

static bool read_flow(struct reader *reader, enum level level, int depth, struct scalar *ret_scalar);

static enum level level_below(enum level level, struct slice key)
{
	return level == LEVEL_DOCUMENT && slice_equal_text(key, "nodes") ? LEVEL_NODES : LEVEL_ELSEWHERE;
}

static bool read_flow_pair(struct reader *reader, enum level level, int depth)
{
	struct scalar key, value;

	if (!read_scalar(reader, true, &key))
		return false;
	skip_blanks(reader, true);
	if (peek(reader) != ':')
		return wrong(reader, "a key without a colon");
	advance(reader);
	skip_blanks(reader, true);
	if (!read_flow(reader, level_below(level, text_of(&key)), depth + 1, &value))
		return false;
	if (level == LEVEL_ITEM)
		set_member(reader, text_of(&key), &value);
	return true;
}

static bool read_flow_list(struct reader *reader, enum level level, int depth, char end)
{
	struct scalar element;

	for (advance(reader), skip_blanks(reader, true); peek(reader) != end; skip_blanks(reader, true)) {
		if (end == '}' ? !read_flow_pair(reader, level, depth)
		               : !read_flow(reader, level == LEVEL_NODES ? LEVEL_ITEM : LEVEL_ELSEWHERE, depth + 1,
		                            &element))
			return false;
		skip_blanks(reader, true);
		if (peek(reader) == ',')
			advance(reader);
		else if (peek(reader) != end)
			return wrong(reader, "a list that doesn't end");
	}
	advance(reader);
	return level != LEVEL_ITEM || end_item(reader);
}

/* A list or a scalar. The scalar says what stood there; "[" for a list, which is no scalar's value. */
static bool read_flow(struct reader *reader, enum level level, int depth, struct scalar *ret_scalar)
{
	char c = peek(reader);
	bool wanted_list = level == LEVEL_NODES;
	bool wanted_map = level == LEVEL_ITEM || level == LEVEL_DOCUMENT;

	memset(ret_scalar, 0, sizeof *ret_scalar);
	if (depth > READINESS_DEPTH)
		return wrong(reader, "nested too deep");
	if (c != '[' && c != '{') {
		if (!read_scalar(reader, true, ret_scalar))
			return false;
		return (!wanted_list && !wanted_map) || is_null(ret_scalar) || wrong(reader, "a list is expected");
	}
	if ((wanted_list && c == '{') || (wanted_map && c == '['))
		return wrong(reader, "another kind of value is expected");
	ret_scalar->text[ret_scalar->length++] = c;
	return read_flow_list(reader, level, depth, c == '[' ? ']' : '}');
}

/* NOLINTEND(misc-no-recursion) */

/* ---- block style ---- */

/* The rest of a line behind a value. */
static bool end_line(struct reader *reader)
{
	skip_blanks(reader, false);
	return at_end(reader) || peek(reader) == '\n' || wrong(reader, "something follows the value");
}

static bool read_key(struct reader *reader, struct scalar *key)
{
	if (!read_scalar(reader, false, key))
		return false;
	if (peek(reader) != ':')
		return wrong(reader, "a key is expected");
	advance(reader);
	skip_blanks(reader, false);
	return true;
}

/* What lies deeper than `indent`, of no interest. A list may lie as deep as its key. */
static void skip_deeper(struct reader *reader, int indent, bool lists)
{
	for (int found = next_line(reader); found > indent || (lists && found == indent && peek(reader) == '-');
	     found = next_line(reader)) {
		while (!at_end(reader) && peek(reader) != '\n')
			advance(reader);
	}
}

/* "key: value" and what belongs to it, of an item or of the document. */
static bool read_block_member(struct reader *reader, int indent, bool of_item)
{
	struct scalar key, value;

	if (!read_key(reader, &key))
		return false;
	if (!at_end(reader) && peek(reader) != '\n') {
		bool flow = peek(reader) == '[' || peek(reader) == '{';

		if (flow ? !read_flow(reader, LEVEL_ELSEWHERE, 0, &value) : !read_scalar(reader, false, &value))
			return false;
		if (of_item)
			set_member(reader, text_of(&key), &value);
		return end_line(reader);
	}
	skip_deeper(reader, indent, true);
	return true;
}

static bool read_block_item(struct reader *reader, int list_indent)
{
	int indent;
	struct scalar ignored;

	advance(reader); /* the dash */
	skip_blanks(reader, false);
	if (peek(reader) == '{')
		return read_flow(reader, LEVEL_ITEM, 0, &ignored) && end_line(reader);
	indent = next_line(reader);
	if (indent <= list_indent)
		return end_item(reader);
	for (int found = indent; found == indent; found = next_line(reader)) {
		if (!read_block_member(reader, indent, true))
			return false;
	}
	return end_item(reader);
}

static bool read_block_nodes(struct reader *reader)
{
	struct scalar scalar;
	int indent;

	if (peek(reader) == '[' || (!at_end(reader) && peek(reader) != '\n'))
		return read_flow(reader, LEVEL_NODES, 0, &scalar) && end_line(reader);
	indent = next_line(reader);
	while (indent >= 0 && peek(reader) == '-') {
		int found;

		if (!read_block_item(reader, indent))
			return false;
		found = next_line(reader);
		if (found > indent || (found > 0 && found < indent))
			return wrong(reader, "the indentation doesn't fit");
		if (found < indent)
			break;
	}
	return indent <= 0 || at_end(reader) || next_line(reader) == 0 || wrong(reader, "a list is expected");
}

static bool read_document(struct reader *reader)
{
	struct scalar ignored;
	int indent;

	if (slice_starts_with(reader->text, SLICE("---\n")))
		reader->at = 3;
	indent = next_line(reader);
	if (peek(reader) == '{') {
		if (!read_flow(reader, LEVEL_DOCUMENT, 0, &ignored))
			return false;
		skip_blanks(reader, true);
		return at_end(reader) || wrong(reader, "something follows the value");
	}
	for (; indent >= 0; indent = next_line(reader)) {
		struct slice rest = slice_from_offset(reader->text, reader->at);

		if (indent > 0)
			return wrong(reader, "the indentation doesn't fit");
		if (slice_starts_with(rest, SLICE("nodes:"))) {
			reader->at += sizeof "nodes:" - 1;
			skip_blanks(reader, false);
			if (!read_block_nodes(reader))
				return false;
		} else if (!read_block_member(reader, 0, false)) {
			return false;
		}
	}
	return true;
}

bool readiness_file_check(struct slice text, struct slice node_name, struct error *err)
{
	struct reader reader = { .line = 1, .wanted = node_name, .err = err };

	reader.text = text.data != NULL ? text : SLICE("");
	if (memchr(reader.text.data, '\0', reader.text.length) != NULL || !slice_is_utf8(text))
		return error_set(err, ERROR_SYNTAX, "yaml: it isn't text");
	if (!read_document(&reader))
		return false;
	if (!reader.found)
		return error_set(err, ERROR_REFUSED, "node %.*s is not found in extenders status list",
		                 SLICE_ARGS(node_name));
	if (!reader.restarted)
		return error_set(err, ERROR_REFUSED, "kube-scheduler %.*s is not restarted after patching",
		                 SLICE_ARGS(text_of(&reader.kube_scheduler)));
	return true;
}
