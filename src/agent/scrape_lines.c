#include "agent/scrape_lines.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/single_precision.h"
#include "agent/quoted.h"

enum { LOAD_1, LOAD_5, AVAILABLE, TOTAL, VALUES };

enum { NAME_BYTES = 256, NUMBER_BYTES = 128 };

static const struct {
	const char *tail;
	const char *other; /* a name that begins alike and isn't meant; NULL: none */
} NAMES[VALUES] = {
	[LOAD_1] = { "load1", "load15" },
	[LOAD_5] = { "load5", NULL },
	[AVAILABLE] = { "memory_available_bytes", NULL },
	[TOTAL] = { "memory_total_bytes", NULL },
};

static bool begins_with(struct slice line, const char *prefix, const char *tail)
{
	size_t prefix_length = strlen(prefix), tail_length = strlen(tail);

	return line.length >= prefix_length + tail_length && memcmp(line.data, prefix, prefix_length) == 0 &&
	       memcmp(line.data + prefix_length, tail, tail_length) == 0;
}

static struct slice take_line(struct slice *rest)
{
	const char *end = memchr(rest->data, '\n', rest->length);
	struct slice line = *rest;

	if (end == NULL) {
		rest->length = 0;
		return line;
	}
	line.length = (size_t)(end - rest->data);
	*rest = slice_from_offset(*rest, line.length + 1);
	return line;
}

static bool find_line(struct slice page, const char *prefix, int value, struct slice *ret_line)
{
	while (page.length > 0) {
		struct slice line = take_line(&page);

		if (!begins_with(line, prefix, NAMES[value].tail))
			continue;
		if (NAMES[value].other != NULL && begins_with(line, prefix, NAMES[value].other))
			continue;
		*ret_line = line;
		return true;
	}
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct slice take_word(struct slice *rest)
{
	struct slice word;

	while (rest->length > 0 && is_blank(rest->data[0]))
		*rest = slice_from_offset(*rest, 1);
	word = slice_from(rest->data, 0);
	while (word.length < rest->length && !is_blank(rest->data[word.length]))
		word.length++;
	*rest = slice_from_offset(*rest, word.length);
	return word;
}

/* Straight to 32 bits: by way of a double it would be rounded twice (generations, pitfall 5). */
static bool read_number(struct slice word, float *ret_number, const char **ret_problem)
{
	char text[NUMBER_BYTES];
	char *end;

	*ret_problem = "invalid syntax";
	if (word.length >= sizeof text)
		return false;
	memcpy(text, word.data, word.length);
	text[word.length] = '\0';
	errno = 0;
	*ret_number = strtof(text, &end);
	if (end == text || end != text + word.length)
		return false;
	*ret_problem = "value out of range";
	return errno != ERANGE || fabsf(*ret_number) < 1;
}

static bool number_error(const char *name, struct slice word, const char *problem, struct error *err)
{
	struct buffer quoted;

	quoted_init(&quoted, word);
	error_set(err, ERROR_SYNTAX,
	          "Error parsing %.*s as float for line starting with \"%s\": strconv.ParseFloat: parsing %.*s: %s",
	          SLICE_ARGS(buffer_slice(&quoted)), name, SLICE_ARGS(buffer_slice(&quoted)), problem);
	buffer_destroy(&quoted);
	return false;
}

static bool read_value(struct slice page, const char *prefix, int value, float *ret_number, struct error *err)
{
	char name[NAME_BYTES];
	struct slice line, word;
	const char *problem;

	(void)snprintf(name, sizeof name, "%s%s", prefix, NAMES[value].tail);
	if (!find_line(page, prefix, value, &line))
		return error_set(err, ERROR_SYNTAX, "No line in metrics output starting with \"%s\"", name);
	(void)take_word(&line);
	word = take_word(&line);
	if (word.length == 0)
		return error_set(err, ERROR_SYNTAX, "Expected >= 2 fields in metrics output for \"%s\". Got 1", name);
	if (!read_number(word, ret_number, &problem))
		return number_error(name, word, problem, err);
	if (!isfinite(*ret_number) || *ret_number < 0)
		return error_set(err, ERROR_SYNTAX, "%s: the value is negative or not finite", name);
	return true;
}

bool scrape_lines_read(struct slice page, const char *prefix, struct system_metrics *ret_metrics, struct error *err)
{
	struct system_metrics metrics;
	float numbers[VALUES];

	for (int i = 0; i < VALUES; i++) {
		if (!read_value(page, prefix, i, &numbers[i], err))
			return false;
	}
	metrics = system_metrics_from_single(numbers[LOAD_1], numbers[LOAD_5], numbers[TOTAL], numbers[AVAILABLE]);
	if (!isfinite(metrics.memory_usage_bytes) || metrics.memory_usage_bytes < 0)
		return error_set(err, ERROR_SYNTAX, "%smemory_available_bytes: more than there is", prefix);
	*ret_metrics = metrics;
	return true;
}
