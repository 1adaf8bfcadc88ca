/*
 * One walk through the document's tokens, with the open elements' names on a stack. `matched` counts how many of them,
 * from the root on, are those of the path; the element sought is open when all are matched and none stands above.
 */
#include "report/xml_text.h"

#include <string.h>

struct walk {
	struct slice rest;
	struct slice path; /* what isn't matched yet */
	struct slice names[XML_DEPTH];
	struct slice path_before[XML_DEPTH]; /* to go back when the element ends */
	size_t depth, matched;
	bool found; /* the element has been opened */
	bool rooted;
	struct buffer *out;
};

static bool malformed(struct error *err, const char *what)
{
	return error_set(err, ERROR_SYNTAX, "malformed XML: %s", what);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Cuts at the first `end`, which is dropped. False if there is none. */
static bool take_past(struct slice *rest, const char *end, struct slice *ret_before)
{
	const char *at = memmem(rest->data, rest->length, end, strlen(end));

	if (at == NULL)
		return false;
	*ret_before = slice_from(rest->data, (size_t)(at - rest->data));
	*rest = slice_from_offset(*rest, ret_before->length + strlen(end));
	return true;
}

static bool begins_with(struct slice text, const char *start)
{
	return slice_starts_with(text, slice_of(start));
}

static bool is_inside(const struct walk *walk)
{
	return walk->found && walk->matched == walk->depth;
}

/* ---- texts ---- */

static void append_utf8(struct buffer *out, uint32_t point)
{
	if (point < 0x80) {
		buffer_append_char(out, (char)point);
	} else if (point < 0x800) {
		buffer_append_char(out, (char)(0xc0 | point >> 6));
		buffer_append_char(out, (char)(0x80 | (point & 0x3f)));
	} else if (point < 0x10000) {
		buffer_append_char(out, (char)(0xe0 | point >> 12));
		buffer_append_char(out, (char)(0x80 | (point >> 6 & 0x3f)));
		buffer_append_char(out, (char)(0x80 | (point & 0x3f)));
	} else {
		buffer_append_char(out, (char)(0xf0 | point >> 18));
		buffer_append_char(out, (char)(0x80 | (point >> 12 & 0x3f)));
		buffer_append_char(out, (char)(0x80 | (point >> 6 & 0x3f)));
		buffer_append_char(out, (char)(0x80 | (point & 0x3f)));
	}
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* What stands between "&#" and ";". */
static bool read_number(struct slice digits, uint32_t *ret_point)
{
	const bool hex = digits.length > 0 && digits.data[0] == 'x';
	const uint32_t base = hex ? 16 : 10;
	uint32_t point = 0;

	digits = slice_from_offset(digits, hex ? 1 : 0);
	if (digits.length == 0 || digits.length > 8)
		return false;
	for (size_t i = 0; i < digits.length; i++) {
		int value = digit_value(digits.data[i]);

		if (value >= (int)base)
			return false;
		point = point * base + (uint32_t)value;
		if (point > 0x10ffff)
			return false;
	}
	*ret_point = point;
	return point != 0 && (point < 0xd800 || point > 0xdfff);
}

static bool append_reference(struct buffer *out, struct slice name)
{
	static const struct {
		struct slice name;
		char c;
	} NAMED[] = {
		{ SLICE_INIT("lt"), '<' },   { SLICE_INIT("gt"), '>' },    { SLICE_INIT("amp"), '&' },
		{ SLICE_INIT("quot"), '"' }, { SLICE_INIT("apos"), '\'' },
	};
	uint32_t point;

	if (name.length > 0 && name.data[0] == '#') {
		if (!read_number(slice_from_offset(name, 1), &point))
			return false;
		append_utf8(out, point);
		return true;
	}
	for (size_t i = 0; i < sizeof NAMED / sizeof NAMED[0]; i++) {
		if (slice_equal(name, NAMED[i].name)) {
			buffer_append_char(out, NAMED[i].c);
			return true;
		}
	}
	return false;
}

static bool append_text(struct buffer *out, struct slice text, struct error *err)
{
	while (text.length > 0) {
		const char *reference = memchr(text.data, '&', text.length);
		size_t plain = reference != NULL ? (size_t)(reference - text.data) : text.length;
		struct slice name;

		buffer_append(out, text.data, plain);
		text = slice_from_offset(text, plain);
		if (reference == NULL)
			break;
		text = slice_from_offset(text, 1);
		if (!take_past(&text, ";", &name) || !append_reference(out, name))
			return malformed(err, "a reference that isn't one");
	}
	return true;
}

static bool take_text(struct walk *walk, struct error *err)
{
	const char *tag = memchr(walk->rest.data, '<', walk->rest.length);
	struct slice text =
		slice_from(walk->rest.data, tag != NULL ? (size_t)(tag - walk->rest.data) : walk->rest.length);

	walk->rest = slice_from_offset(walk->rest, text.length);
	if (is_inside(walk))
		return append_text(walk->out, text, err);
	if (walk->depth == 0) {
		/* A byte order mark may stand at the start. */
		if (!walk->rooted && begins_with(text, "\xef\xbb\xbf"))
			text = slice_from_offset(text, 3);
		if (slice_trim(text).length > 0)
			return malformed(err, "text outside of the root element");
	}
	return true;
}

/* ---- elements ---- */

static struct slice without_prefix(struct slice name)
{
	const char *colon = name.length > 0 ? memchr(name.data, ':', name.length) : NULL;

	return colon != NULL ? slice_from_offset(name, (size_t)(colon - name.data) + 1) : name;
}

static struct slice take_name(struct slice *text)
{
	size_t length = 0;

	while (length < text->length && !is_blank(text->data[length]) && text->data[length] != '/' &&
	       text->data[length] != '>' && text->data[length] != '<' && text->data[length] != '=')
		length++;

	struct slice name = slice_from(text->data, length);

	*text = slice_from_offset(*text, length);
	return name;
}

/* Skips attributes to the end of the tag: a '>' may stand in their values. */
static bool skip_attributes(struct slice *rest, bool *ret_empty)
{
	char quote = '\0';

	for (size_t i = 0; i < rest->length; i++) {
		char c = rest->data[i];

		if (quote != '\0') {
			if (c == quote)
				quote = '\0';
		} else if (c == '"' || c == '\'') {
			quote = c;
		} else if (c == '<') {
			return false;
		} else if (c == '>') {
			*ret_empty = i > 0 && rest->data[i - 1] == '/';
			*rest = slice_from_offset(*rest, i + 1);
			return true;
		}
	}
	return false;
}

static void match(struct walk *walk, struct slice name)
{
	struct slice path = walk->path, step;

	walk->path_before[walk->depth] = walk->path;
	if (walk->found || walk->matched != walk->depth)
		return;
	step = slice_take_until(&path, '/');
	if (!slice_equal(step, without_prefix(name)))
		return;
	walk->path = path;
	walk->matched++;
	walk->found = path.length == 0;
}

/* The innermost element ends. Returns whether it is the one sought. */
static bool leave(struct walk *walk)
{
	const bool sought = is_inside(walk);

	walk->depth--;
	if (walk->matched > walk->depth) {
		walk->matched = walk->depth;
		walk->path = walk->path_before[walk->depth];
	}
	return sought;
}

static bool open_element(struct walk *walk, bool *ret_over, struct error *err)
{
	struct slice name;
	bool empty;

	if (walk->depth == 0 && walk->rooted)
		return malformed(err, "more than one root element");
	walk->rest = slice_from_offset(walk->rest, 1);
	name = take_name(&walk->rest);
	if (name.length == 0 || !skip_attributes(&walk->rest, &empty))
		return malformed(err, "a tag without an end");
	if (walk->depth == XML_DEPTH)
		return error_set(err, ERROR_LIMIT, "XML is nested deeper than %d", XML_DEPTH);
	match(walk, name);
	walk->names[walk->depth++] = name;
	walk->rooted = true;
	*ret_over = empty && leave(walk);
	return true;
}

static bool close_element(struct walk *walk, bool *ret_over, struct error *err)
{
	struct slice name;

	walk->rest = slice_from_offset(walk->rest, 2);
	if (!take_past(&walk->rest, ">", &name))
		return malformed(err, "a tag without an end");
	while (name.length > 0 && is_blank(name.data[name.length - 1]))
		name.length--;
	if (walk->depth == 0 || !slice_equal(name, walk->names[walk->depth - 1]))
		return malformed(err, "the end of an element that isn't open");
	*ret_over = leave(walk);
	return true;
}

/* <?…?>, <!--…-->, <![CDATA[…]]> */
static bool take_special(struct walk *walk, struct error *err)
{
	struct slice content;

	if (begins_with(walk->rest, "<?"))
		return take_past(&walk->rest, "?>", &content) || malformed(err, "an instruction without an end");
	if (begins_with(walk->rest, "<!--")) {
		walk->rest = slice_from_offset(walk->rest, 4);
		return take_past(&walk->rest, "-->", &content) || malformed(err, "a comment without an end");
	}
	if (!begins_with(walk->rest, "<![CDATA[") || walk->depth == 0)
		return malformed(err, "a declaration where none may be");
	walk->rest = slice_from_offset(walk->rest, 9);
	if (!take_past(&walk->rest, "]]>", &content))
		return malformed(err, "a CDATA section without an end");
	if (is_inside(walk))
		buffer_append_slice(walk->out, content);
	return true;
}

static bool take_token(struct walk *walk, bool *ret_over, struct error *err)
{
	*ret_over = false;
	if (walk->rest.data[0] != '<')
		return take_text(walk, err);
	if (begins_with(walk->rest, "<?") || begins_with(walk->rest, "<!"))
		return take_special(walk, err);
	if (begins_with(walk->rest, "</"))
		return close_element(walk, ret_over, err);
	return open_element(walk, ret_over, err);
}

bool xml_find_text(struct slice document, const char *path, struct buffer *out, struct error *err)
{
	struct walk walk = { .rest = document, .path = slice_of(path), .out = out };
	const size_t before = out->length;
	bool over = false;

	while (walk.rest.length > 0 && !over) {
		if (!take_token(&walk, &over, err))
			goto failed;
	}
	if (!over) {
		if (walk.depth > 0 || !walk.rooted)
			malformed(err, "it ends too early");
		else
			error_set(err, ERROR_SYNTAX, "XML has no %s", path);
		goto failed;
	}
	if (buffer_check(out, path, err))
		return true;
failed:
	out->length = before;
	return false;
}
