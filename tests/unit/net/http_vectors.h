/*
 * Cases for HTTP parsing, read from text files under tests/vectors:
 *
 *	# remark
 *	= what the case is about
 *	< bytes, with \r \n \t \0 \\ \xNN and {text*count} for repetition; several lines are joined
 *	eof                     (optional: the peer ends its side after these bytes)
 *	> what must come of it  (several lines are joined by newlines)
 */
#ifndef BALLAST_TESTS_UNIT_NET_HTTP_VECTORS_H
#define BALLAST_TESTS_UNIT_NET_HTTP_VECTORS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"

enum { HTTP_VECTOR_INPUT_BYTES = 1024 * 1024, HTTP_VECTOR_LINE_BYTES = 4096 };

struct http_vector {
	char name[160];
	struct buffer input;
	bool eof;
	char expected[1024];
};

/* One byte at *at, which may be written as an escape. */
static inline char vector_take_byte(const char **at)
{
	char c = *(*at)++;

	if (c != '\\')
		return c;
	c = *(*at)++;
	switch (c) {
	case 'r':
		return '\r';
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case '0':
		return '\0';
	case 'x': {
		char digits[3] = { (*at)[0], (*at)[1], '\0' };

		*at += 2;
		return (char)strtol(digits, NULL, 16);
	}
	default:
		return c;
	}
}

static inline void vector_append_bytes(struct buffer *input, const char *text)
{
	while (*text != '\0') {
		if (*text != '{') {
			buffer_append_char(input, vector_take_byte(&text));
			continue;
		}
		char part[HTTP_VECTOR_LINE_BYTES];
		size_t length = 0;

		text++;
		while (*text != '*')
			part[length++] = vector_take_byte(&text);

		char *end;
		long count = strtol(text + 1, &end, 10);

		assert_int_equal(*end, '}');
		for (long i = 0; i < count; i++)
			buffer_append(input, part, length);
		text = end + 1;
	}
	assert_false(input->failed);
}

static inline void vector_finish(struct http_vector *vector, void (*use)(const struct http_vector *vector), int *count)
{
	if (vector->name[0] == '\0')
		return;
	use(vector);
	(*count)++;
	buffer_clear(&vector->input);
	vector->eof = false;
	vector->expected[0] = '\0';
	vector->name[0] = '\0';
}

/*
 * Calls use for each case of tests/vectors/FILE; returns how many there were. Fails the test if the file can't be read.
 */
static inline int http_vectors_walk(const char *file, void (*use)(const struct http_vector *vector))
{
	char path[512];
	char line[HTTP_VECTOR_LINE_BYTES];
	struct http_vector vector = { 0 };
	int count = 0;

	snprintf(path, sizeof path, "%s/vectors/%s", TESTS_DIR, file);

	FILE *stream = fopen(path, "r");

	assert_non_null(stream);
	buffer_init(&vector.input, HTTP_VECTOR_INPUT_BYTES);
	while (fgets(line, sizeof line, stream) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '=') {
			vector_finish(&vector, use, &count);
			snprintf(vector.name, sizeof vector.name, "%.*s", (int)sizeof vector.name - 1, line + 2);
		} else if (line[0] == '<') {
			vector_append_bytes(&vector.input, line + 2);
		} else if (line[0] == '>') {
			size_t length = strlen(vector.expected);

			snprintf(vector.expected + length, sizeof vector.expected - length, "%s%s",
			         length > 0 ? "\n" : "", line + 2);
		} else if (strcmp(line, "eof") == 0) {
			vector.eof = true;
		} else {
			assert_true(line[0] == '\0' || line[0] == '#');
		}
	}
	vector_finish(&vector, use, &count);
	buffer_destroy(&vector.input);
	fclose(stream);
	return count;
}

#endif
