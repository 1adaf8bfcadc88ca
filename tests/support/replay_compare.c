/*
 * A value is a slice of text. Nothing is built: an object is searched for each key of the other one, which is quick
 * enough for lines of a few kilobytes.
 */
#include "tests/support/replay_compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"

struct comparison {
	char *difference;
	size_t size;
	bool is_dump;
	bool is_parse_metrics;
};

/* ---- walking through JSON text ---- */

static size_t length_until(struct slice rest, const char *stops)
{
	size_t length = 0;

	while (length < rest.length && strchr(stops, rest.data[length]) == NULL)
		length++;
	return length;
}

static void skip_blanks(struct slice *rest)
{
	while (rest->length > 0 && memchr(" \t\r\n", rest->data[0], 4) != NULL)
		*rest = slice_from_offset(*rest, 1);
}

static struct slice take(struct slice *rest, size_t length)
{
	assert_true(length > 0 && length <= rest->length);

	struct slice taken = slice_from(rest->data, length);

	*rest = slice_from_offset(*rest, length);
	skip_blanks(rest);
	return taken;
}

static size_t string_length(struct slice rest)
{
	size_t i = 1;

	assert_int_equal(rest.data[0], '"');
	while (i < rest.length && rest.data[i] != '"')
		i += rest.data[i] == '\\' ? 2 : 1;
	return i + 1;
}

static size_t container_length(struct slice rest)
{
	size_t depth = 0;
	size_t i = 0;

	while (i < rest.length) {
		char c = rest.data[i];

		if (c == '"') {
			i += string_length(slice_from_offset(rest, i));
			continue;
		}
		i++;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && --depth == 0)
			return i;
	}
	fail_msg("unbalanced: %.*s", SLICE_ARGS(rest));
	return 0;
}

static struct slice take_value(struct slice *rest)
{
	assert_true(rest->length > 0);
	switch (rest->data[0]) {
	case '"':
		return take(rest, string_length(*rest));
	case '{':
	case '[':
		return take(rest, container_length(*rest));
	default:
		return take(rest, length_until(*rest, ",]} \t\r\n"));
	}
}

/* Goes into an object or array: the rest then begins with the first member, or with the closing bracket. */
static struct slice enter(struct slice value)
{
	struct slice rest = value;

	take(&rest, 1);
	return rest;
}

/* The next member of an object, or item of an array (then without a key). False at the end. */
static bool next_member(struct slice *rest, bool is_object, struct slice *ret_key, struct slice *ret_value)
{
	if (rest->length > 0 && rest->data[0] == ',')
		take(rest, 1);
	if (rest->data[0] == '}' || rest->data[0] == ']')
		return false;
	if (is_object) {
		*ret_key = take_value(rest);
		assert_true(slice_equal_text(take(rest, 1), ":"));
	}
	*ret_value = take_value(rest);
	return true;
}

static struct slice find_member(struct slice object, struct slice key)
{
	struct slice rest = enter(object);
	struct slice found;
	struct slice value;

	while (next_member(&rest, true, &found, &value))
		if (slice_equal(found, key))
			return value;
	return (struct slice){ 0 };
}

struct slice replay_value_of(struct slice object, const char *key)
{
	char quoted[64];

	snprintf(quoted, sizeof quoted, "\"%s\"", key);
	return find_member(object, slice_of(quoted));
}

static size_t count_members(struct slice container)
{
	struct slice rest = enter(container);
	struct slice key;
	struct slice value;
	size_t count = 0;

	while (next_member(&rest, container.data[0] == '{', &key, &value))
		count++;
	return count;
}

/* ---- comparing ---- */

static bool differ(struct comparison *comparison, const char *path, struct slice actual, struct slice expected)
{
	snprintf(comparison->difference, comparison->size, "%s: %.*s is not %.*s", path, SLICE_ARGS(actual),
	         SLICE_ARGS(expected));
	return false;
}

/* Without quotes and escapes; those beyond ASCII don't occur. */
static void unquote(struct slice text, struct buffer *out)
{
	for (size_t i = 1; i + 1 < text.length; i++) {
		char c = text.data[i];

		if (c == '\\') {
			c = text.data[++i];
			if (c == 'u') {
				char digits[5] = { 0 };

				memcpy(digits, text.data + i + 1, 4);
				c = (char)strtol(digits, NULL, 16);
				i += 4;
			} else if (c == 'n') {
				c = '\n';
			}
		}
		buffer_append_char(out, c);
	}
}

static bool strings_agree(const struct comparison *comparison, const char *key, struct slice actual,
                          struct slice expected)
{
	static const char PARSE_ERROR[] = "failed to parse content as prometheus text format: ";
	struct buffer left;
	struct buffer right;

	buffer_init(&left, 1 << 20);
	buffer_init(&right, 1 << 20);
	unquote(actual, &left);
	unquote(expected, &right);
	if (comparison->is_parse_metrics && strcmp(key, "error") == 0 &&
	    slice_starts_with(buffer_slice(&right), slice_of(PARSE_ERROR))) {
		buffer_append_char(&right, '\0');

		const char *colon = strchr(strstr(right.data, " in line "), ':');

		right.length = (size_t)(colon - right.data) + 1;
		if (left.length > right.length)
			left.length = right.length;
	}

	bool agree = slice_equal(buffer_slice(&left), buffer_slice(&right));

	buffer_destroy(&left);
	buffer_destroy(&right);
	return agree;
}

static bool is_whole(struct slice number)
{
	for (size_t i = 0; i < number.length; i++)
		if (strchr("-0123456789", number.data[i]) == NULL)
			return false;
	return true;
}

static double number_of(struct slice text)
{
	char copy[64];

	snprintf(copy, sizeof copy, "%.*s", SLICE_ARGS(text));
	return strtod(copy, NULL);
}

static bool scalars_agree(const char *key, struct slice actual, struct slice expected)
{
	if (slice_equal(actual, expected))
		return true;
	if (strchr("-0123456789", actual.data[0]) == NULL || strchr("-0123456789", expected.data[0]) == NULL)
		return false;

	double left = number_of(actual);
	double right = number_of(expected);

	if (is_whole(actual) && is_whole(expected))
		return left == 0 && right == 0;
	return strcmp(key, "loadAvg1M") == 0 ? (float)left == (float)right : left == right;
}

static bool values_agree(struct comparison *comparison, const char *path, const char *key, struct slice actual,
                         struct slice expected);

static bool containers_agree(struct comparison *comparison, const char *path, struct slice actual,
                             struct slice expected)
{
	bool is_object = expected.data[0] == '{';
	struct slice rest = enter(expected);
	struct slice actual_rest = enter(actual);
	struct slice key = { 0 };
	struct slice value;
	struct slice other;

	if (count_members(actual) != count_members(expected))
		return differ(comparison, path, actual, expected);
	while (next_member(&rest, is_object, &key, &value)) {
		char inner[256];
		char name[64] = "";

		if (is_object)
			other = find_member(actual, key);
		else
			next_member(&actual_rest, false, &key, &other);
		if (is_object)
			snprintf(name, sizeof name, "%.*s", (int)key.length - 2, key.data + 1);
		snprintf(inner, sizeof inner, "%s.%s", path, name);
		if (other.length == 0)
			return differ(comparison, inner, other, value);
		if (!values_agree(comparison, inner, name, other, value))
			return false;
	}
	return true;
}

static bool values_agree(struct comparison *comparison, const char *path, const char *key, struct slice actual,
                         struct slice expected)
{
	if (strcmp(key, "panic") == 0)
		return true;
	if (comparison->is_dump && strcmp(key, "error") == 0 && !slice_equal_text(expected, "null"))
		return !slice_equal_text(actual, "null") || differ(comparison, path, actual, expected);
	if (expected.data[0] == '{' || expected.data[0] == '[')
		return actual.data[0] == expected.data[0] ? containers_agree(comparison, path, actual, expected)
		                                          : differ(comparison, path, actual, expected);
	if (expected.data[0] == '"' && actual.data[0] == '"')
		return strings_agree(comparison, key, actual, expected) || differ(comparison, path, actual, expected);
	return scalars_agree(key, actual, expected) || differ(comparison, path, actual, expected);
}

bool replay_lines_agree(struct slice actual, struct slice expected, char *difference, size_t size)
{
	struct slice event = replay_value_of(expected, "event");
	struct comparison comparison = {
		.difference = difference,
		.size = size,
		.is_dump = slice_equal_text(event, "\"dump\""),
		.is_parse_metrics = slice_equal_text(event, "\"parseMetrics\""),
	};

	return values_agree(&comparison, "", "", actual, expected);
}
