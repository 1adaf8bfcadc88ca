/*
 * One pass that knows the whole grammar of RFC 8259. What is open (objects and arrays) fits one bit per level of depth,
 * and the pointer goes from function to function by value, so that it stays in a register: this pass and jsmn's are
 * most of the time that decoding takes.
 */
#include <stdio.h>
#include <string.h>

#include "codec/json_internal.h"

_Static_assert(JSON_MAX_DEPTH <= 64, "one bit per level");

struct scanner {
	struct json_scan *scan;
	const char *start;
	const char *end;
	uint64_t objects; /* bit d: what is open at depth d is an object, not an array */
	int depth;
};

/* Fails at a character, or for want of one. */
static const char *fail(struct scanner *scanner, const char *at, const char *where)
{
	struct json_scan *scan = scanner->scan;
	char character[8];

	scan->problem_offset = (size_t)(at - scanner->start);
	if (at == scanner->end) {
		scan->problem = JSON_PROBLEM_END;
		snprintf(scan->problem_text, sizeof scan->problem_text, "unexpected end of JSON input");
		return NULL;
	}
	scan->problem = JSON_PROBLEM_SYNTAX;
	if (*at == '\'' || *at == '\\')
		snprintf(character, sizeof character, "\\%c", *at);
	else if (*at >= ' ' && *at <= '~')
		snprintf(character, sizeof character, "%c", *at);
	else
		snprintf(character, sizeof character, "\\x%02x", (unsigned char)*at);
	snprintf(scan->problem_text, sizeof scan->problem_text, "invalid character '%s' %s", character, where);
	return NULL;
}

static void note_bad_text(struct scanner *scanner, const char *at)
{
	size_t offset = (size_t)(at - scanner->start);

	if (offset < scanner->scan->bad_text_offset)
		scanner->scan->bad_text_offset = offset;
}

/* A string, or several of which the first begins and the last ends here. */
static void note_strings(struct scanner *scanner, const char *start, const char *end, bool several)
{
	struct json_scan *scan = scanner->scan;

	if (end - start < JSON_STRETCH_BYTES || scan->stretch_count == JSON_STRETCHES)
		return;
	scan->stretches[scan->stretch_count++] = (struct json_stretch){
		.start = (int)(start - scanner->start),
		.end = (int)(end - scanner->start),
		.several = several,
	};
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits behind "\u"; *ret_unit stays as it is if they aren't complete. */
static const char *scan_hex(struct scanner *scanner, const char *at, unsigned *ret_unit)
{
	unsigned unit = 0;

	for (int i = 0; i < 4; i++, at++) {
		int digit = at < scanner->end ? hex_digit(*at) : -1;

		if (digit < 0)
			return fail(scanner, at, "in \\u hexadecimal character escape");
		unit = unit * 16 + (unsigned)digit;
	}
	*ret_unit = unit;
	return at;
}

static bool is_escape_name(char c)
{
	switch (c) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
	case 'u':
		return true;
	default:
		return false;
	}
}

/* at: behind the backslash */
static const char *scan_escape(struct scanner *scanner, const char *at)
{
	const char *start = at - 1;
	unsigned unit = 0;
	unsigned second = 0;

	scanner->scan->any_escape = true;
	if (at == scanner->end || !is_escape_name(*at))
		return fail(scanner, at, "in string escape code");
	if (*at != 'u')
		return at + 1;
	at = scan_hex(scanner, at + 1, &unit);
	if (at == NULL || unit < 0xd800 || unit > 0xdfff)
		return at;
	if (unit > 0xdbff || scanner->end - at < 2 || at[0] != '\\' || at[1] != 'u') {
		note_bad_text(scanner, start);
		return at;
	}

	const char *behind = scan_hex(scanner, at + 2, &second);

	if (behind == NULL)
		return NULL;
	if (second >= 0xdc00 && second <= 0xdfff)
		return behind;
	note_bad_text(scanner, start);
	return at; /* the second one may begin a pair of its own */
}

/* at: behind the opening quote. Returns what is behind the closing one. */
static const char *scan_string(struct scanner *scanner, const char *at)
{
	const char *end = scanner->end;

	scanner->scan->token_count++;
	for (;;) {
		at = plain_text_skip(at, end);
		if (at == end)
			return fail(scanner, at, "");
		if (*at == '"')
			return at + 1;
		if (*at == '\\') {
			at = scan_escape(scanner, at + 1);
			if (at == NULL)
				return NULL;
		} else if ((unsigned char)*at < ' ') {
			return fail(scanner, at, "in string literal");
		} else {
			size_t length = json_utf8_length(at, end);

			if (length == 0)
				note_bad_text(scanner, at);
			at += length > 0 ? length : 1;
		}
	}
}

static const char *scan_digits(struct scanner *scanner, const char *at, const char *where)
{
	if (at == scanner->end || !is_digit(*at))
		return fail(scanner, at, where);
	while (at < scanner->end && is_digit(*at))
		at++;
	return at;
}

static const char *scan_number(struct scanner *scanner, const char *at)
{
	const char *end = scanner->end;

	scanner->scan->token_count++;
	if (*at == '-')
		at++;
	if (at < end && *at == '0')
		at++;
	else
		at = scan_digits(scanner, at, "in numeric literal");
	if (at != NULL && at < end && *at == '.')
		at = scan_digits(scanner, at + 1, "after decimal point in numeric literal");
	if (at == NULL || at == end || (*at != 'e' && *at != 'E'))
		return at;
	at++;
	if (at < end && (*at == '+' || *at == '-'))
		at++;
	return scan_digits(scanner, at, "in exponent of numeric literal");
}

static const char *scan_literal(struct scanner *scanner, const char *at, const char *literal)
{
	char where[48];

	scanner->scan->token_count++;
	for (const char *expected = literal; *expected != '\0'; expected++, at++) {
		if (at < scanner->end && *at == *expected)
			continue;
		snprintf(where, sizeof where, "in literal %s (expecting '%c')", literal, *expected);
		return fail(scanner, at, where);
	}
	return at;
}

/* A key and its colon; at: on the key's quote, if all is well. */
static const char *scan_key(struct scanner *scanner, const char *at)
{
	at = skip_blanks(at, scanner->end);
	if (at == scanner->end || *at != '"')
		return fail(scanner, at, "looking for beginning of object key string");
	at = scan_string(scanner, at + 1);
	if (at == NULL)
		return NULL;
	at = skip_blanks(at, scanner->end);
	if (at == scanner->end || *at != ':')
		return fail(scanner, at, "after object key");
	return at + 1;
}

/* Opens an object or array. Returns where its first value is, or its closing bracket if it is empty. */
static const char *scan_open(struct scanner *scanner, const char *at, bool *ret_empty)
{
	struct json_scan *scan = scanner->scan;
	bool object = *at == '{';
	uint64_t bit;

	if (scanner->depth == JSON_MAX_DEPTH) {
		scan->problem = JSON_PROBLEM_RESOURCE;
		scan->problem_offset = (size_t)(at - scanner->start);
		snprintf(scan->problem_text, sizeof scan->problem_text, "nested deeper than %d", JSON_MAX_DEPTH);
		return NULL;
	}
	scan->token_count++;
	bit = (uint64_t)1 << scanner->depth++;
	scanner->objects = object ? scanner->objects | bit : scanner->objects & ~bit;
	at = skip_blanks(at + 1, scanner->end);
	*ret_empty = at < scanner->end && *at == (object ? '}' : ']');
	return object && !*ret_empty ? scan_key(scanner, at) : at;
}

static bool in_object(const struct scanner *scanner)
{
	return (scanner->objects >> (scanner->depth - 1) & 1) != 0;
}

/* Behind a value: closes what ends here, up to the next value. At the end of all, depth is 0. */
static const char *scan_behind_value(struct scanner *scanner, const char *at)
{
	while (scanner->depth > 0) {
		bool object = in_object(scanner);

		at = skip_blanks(at, scanner->end);
		if (at == scanner->end)
			return fail(scanner, at, "");
		if (*at == ',')
			return object ? scan_key(scanner, at + 1) : at + 1;
		if (*at != (object ? '}' : ']'))
			return fail(scanner, at, object ? "after object key:value pair" : "after array element");
		scanner->depth--;
		at++;
	}
	return at;
}

/* A string that is a value, and in an array those right behind it; at: on the opening quote. */
static const char *scan_strings(struct scanner *scanner, const char *at)
{
	const char *start = at;
	bool array = scanner->depth > 0 && !in_object(scanner);
	bool several = false;

	at = scan_string(scanner, at + 1);
	while (array && at != NULL && scanner->end - at >= 2 && at[0] == ',' && at[1] == '"') {
		at = scan_string(scanner, at + 2);
		several = true;
	}
	if (at != NULL)
		note_strings(scanner, start, at, several);
	return at;
}

/* One value, or the opening of one. *ret_opened: what is behind is within it. */
static const char *scan_value(struct scanner *scanner, const char *at, bool *ret_opened)
{
	bool empty = false;

	*ret_opened = false;
	at = skip_blanks(at, scanner->end);
	if (at == scanner->end)
		return fail(scanner, at, "");
	switch (*at) {
	case '"':
		return scan_strings(scanner, at);
	case '{':
	case '[':
		at = scan_open(scanner, at, &empty);
		*ret_opened = at != NULL && !empty; /* scan_behind_value closes the empty ones */
		return at;
	case 't':
		return scan_literal(scanner, at, "true");
	case 'f':
		return scan_literal(scanner, at, "false");
	case 'n':
		return scan_literal(scanner, at, "null");
	default:
		if (*at != '-' && !is_digit(*at))
			return fail(scanner, at, "looking for beginning of value");
		return scan_number(scanner, at);
	}
}

void json_scan(struct slice text, struct json_scan *ret_scan)
{
	/* A value that is absent has no bytes to point at, but pointers are counted from there. */
	const char *start = text.data != NULL ? text.data : "";
	struct scanner scanner = { .scan = ret_scan, .start = start, .end = start + text.length };
	const char *at;
	bool opened;

	ret_scan->problem = JSON_PROBLEM_NONE;
	ret_scan->value_end = 0;
	ret_scan->token_count = 0;
	ret_scan->any_escape = false;
	ret_scan->bad_text_offset = SIZE_MAX;
	ret_scan->stretch_count = 0;
	if (text.length > JSON_MAX_TEXT_BYTES) {
		ret_scan->problem = JSON_PROBLEM_RESOURCE;
		snprintf(ret_scan->problem_text, sizeof ret_scan->problem_text, "longer than %d bytes",
		         JSON_MAX_TEXT_BYTES);
		return;
	}
	at = text.length > 0 ? skip_blanks(start, scanner.end) : start;
	ret_scan->value_start = (size_t)(at - start);
	if (at == scanner.end) {
		fail(&scanner, at, "");
		ret_scan->problem = JSON_PROBLEM_EMPTY;
		return;
	}
	do {
		do
			at = scan_value(&scanner, at, &opened);
		while (opened);
		if (at != NULL)
			at = scan_behind_value(&scanner, at);
	} while (at != NULL && scanner.depth > 0);
	if (at != NULL)
		ret_scan->value_end = (size_t)(at - start);
}
