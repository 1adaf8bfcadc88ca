/*
 * Test vectors in text files under tests/vectors, in two forms.
 *
 * Tables: a row per line, fields separated by " | ", empty lines and lines that begin with # left out.
 *
 * Blocks, for input of several lines:
 *
 *	= name of the case
 *	< a line of input, with \n \r \t \\ \xNN; lines are joined as they are, so a newline is written \n
 *	> a line of what must come of it; lines are joined by newlines
 */
#ifndef BALLAST_TESTS_VECTOR_FILE_H
#define BALLAST_TESTS_VECTOR_FILE_H

#include <stddef.h>

#include "base/slice.h"

enum { VECTOR_FIELDS_MAX = 16 };

struct vector_row {
	size_t line;
	size_t count;
	char *fields[VECTOR_FIELDS_MAX]; /* trimmed */
};

struct vector_block {
	const char *name;
	struct slice input;
	const char *expected;
};

/* Each calls use for every case and returns how many there were; the test fails if the file can't be read. */
size_t vector_table_walk(const char *file, void (*use)(const struct vector_row *row));
size_t vector_blocks_walk(const char *file, void (*use)(const struct vector_block *block));

/* "0.5", "NaN", "Inf", "-Inf"; anything else fails the test. */
double vector_number(const char *text);
/* "1 2 3", "[1 2 3]" or "[1]*3" into numbers; returns how many. */
size_t vector_numbers(const char *text, double *numbers, size_t limit);

/* Fails unless equal; NaN equals NaN. */
#define assert_number_equal(actual, expected, name) vector_check_number(actual, expected, name, __FILE__, __LINE__)
void vector_check_number(double actual, double expected, const char *name, const char *file, int line);

/* The whole file under tests/, NUL-terminated; to be released with memory_release. */
char *vector_read_file(const char *file, size_t *ret_length);

#endif
