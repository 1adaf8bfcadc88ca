#include "tests/support/vector_file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/memory.h"

enum { FILE_BYTES_MAX = 16 << 20 };

char *vector_read_file(const char *file, size_t *ret_length)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", TESTS_DIR, file);

	FILE *stream = fopen(path, "rb");

	if (stream == NULL)
		fail_msg("can't open %s", path);

	struct buffer content;

	buffer_init(&content, FILE_BYTES_MAX);
	for (;;) {
		char part[4096];
		size_t length = fread(part, 1, sizeof part, stream);

		if (length == 0)
			break;
		buffer_append(&content, part, length);
	}
	buffer_append_char(&content, '\0');
	assert_false(content.failed);
	assert_int_equal(fclose(stream), 0);
	*ret_length = content.length - 1;
	return content.data;
}

static char *trim(char *text)
{
	size_t length = strlen(text);

	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		text[--length] = '\0';
	while (*text == ' ' || *text == '\t')
		text++;
	return text;
}

static void split_row(char *line, struct vector_row *row)
{
	row->count = 0;
	while (line != NULL) {
		char *bar = strstr(line, " | ");

		if (bar != NULL)
			*bar = '\0';
		assert_true(row->count < VECTOR_FIELDS_MAX);
		row->fields[row->count++] = trim(line);
		line = bar != NULL ? bar + 3 : NULL;
	}
}

size_t vector_table_walk(const char *file, void (*use)(const struct vector_row *row))
{
	size_t length;
	char *content = vector_read_file(file, &length);
	struct vector_row row = { 0 };
	size_t rows = 0;

	for (char *line = content, *next; line != NULL; line = next) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		row.line++;
		if (*trim(line) == '\0' || *line == '#')
			continue;
		split_row(line, &row);
		use(&row);
		rows++;
	}
	memory_release(content);
	return rows;
}

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *found = c != '\0' ? strchr(digits, c) : NULL;

	if (found == NULL)
		fail_msg("'%c' is not a hexadecimal digit", c);
	return (int)(found - digits);
}

static void append_unescaped(struct buffer *out, const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		if (*p != '\\') {
			buffer_append_char(out, *p);
			continue;
		}
		switch (*++p) {
		case 'n':
			buffer_append_char(out, '\n');
			break;
		case 'r':
			buffer_append_char(out, '\r');
			break;
		case 't':
			buffer_append_char(out, '\t');
			break;
		case 'x':
			buffer_append_char(out, (char)(hex_digit(p[1]) * 16 + hex_digit(p[2])));
			p += 2;
			break;
		case '\\':
			buffer_append_char(out, '\\');
			break;
		default:
			fail_msg("unknown escape \\%c", *p);
		}
	}
}

struct block_parts {
	char name[160];
	struct buffer input;
	struct buffer expected;
};

static size_t use_block(struct block_parts *parts, void (*use)(const struct vector_block *block))
{
	if (parts->name[0] == '\0')
		return 0;
	buffer_append_char(&parts->expected, '\0');
	assert_false(parts->input.failed || parts->expected.failed);
	use(&(struct vector_block){
		.name = parts->name,
		.input = buffer_slice(&parts->input),
		.expected = parts->expected.data,
	});
	buffer_clear(&parts->input);
	buffer_clear(&parts->expected);
	return 1;
}

size_t vector_blocks_walk(const char *file, void (*use)(const struct vector_block *block))
{
	size_t length;
	char *content = vector_read_file(file, &length);
	struct block_parts parts = { .name = "" };
	size_t blocks = 0;

	buffer_init(&parts.input, FILE_BYTES_MAX);
	buffer_init(&parts.expected, FILE_BYTES_MAX);
	for (char *line = content, *next; line != NULL; line = next) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		if (line[0] == '=' && line[1] == ' ') {
			blocks += use_block(&parts, use);
			snprintf(parts.name, sizeof parts.name, "%s", line + 2);
		} else if (line[0] == '<' && line[1] == ' ') {
			append_unescaped(&parts.input, line + 2);
		} else if (line[0] == '>') {
			if (parts.expected.length > 0)
				buffer_append_char(&parts.expected, '\n');
			buffer_append_text(&parts.expected, line[1] == ' ' ? line + 2 : line + 1);
		} else if (line[0] != '\0' && line[0] != '#') {
			fail_msg("%s: what is \"%s\"?", file, line);
		}
	}
	blocks += use_block(&parts, use);
	buffer_destroy(&parts.input);
	buffer_destroy(&parts.expected);
	memory_release(content);
	return blocks;
}

double vector_number(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0')
		fail_msg("\"%s\" is not a number", text);
	return value;
}

size_t vector_numbers(const char *text, double *numbers, size_t limit)
{
	size_t count = 0;
	char *end;

	for (const char *p = text + strspn(text, " ["); *p != '\0' && *p != ']'; p = end + strspn(end, " ")) {
		assert_true(count < limit);
		numbers[count++] = strtod(p, &end);
		assert_true(end > p);
	}

	const char *times = strstr(text, "]*");

	if (times != NULL) {
		size_t repetitions = strtoul(times + 2, NULL, 10);

		assert_true(count == 1 && repetitions <= limit);
		for (; count < repetitions; count++)
			numbers[count] = numbers[0];
	}
	return count;
}

void vector_check_number(double actual, double expected, const char *name, const char *file, int line)
{
	if (actual == expected || (isnan(actual) && isnan(expected)))
		return;
	print_error("%s: %.17g is not %.17g\n", name, actual, expected);
	_fail(file, line);
}
