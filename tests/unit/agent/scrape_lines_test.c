/*
 * Pages read line by line, by the specification's vectors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/scrape_lines.h"
#include "tests/support/vector_file.h"

static void check(const struct vector_block *block)
{
	const char *end = strchr(block->name, ' ');
	struct system_metrics metrics = { .load_average_1_min = -1 };
	double expected[3];
	char prefix[16];
	struct error err;

	assert_non_null(end);
	(void)snprintf(prefix, sizeof prefix, "%.*s", (int)(end - block->name), block->name);
	if (!scrape_lines_read(block->input, prefix, &metrics, &err)) {
		if (strcmp(err.text, block->expected) != 0)
			fail_msg("%s: %s", block->name, err.text);
		assert_number_equal(metrics.load_average_1_min, -1, "untouched");
		return;
	}
	if (vector_numbers(block->expected, expected, 3) != 3)
		fail_msg("%s was read", block->name);
	assert_number_equal(metrics.load_average_1_min, expected[0], block->name);
	assert_number_equal(metrics.load_average_5_min, expected[1], block->name);
	assert_number_equal(metrics.memory_usage_bytes, expected[2], block->name);
}

static void m1_to_m6_pages_are_read_as_the_vectors_say(void **state)
{
	(void)state;
	assert_true(vector_blocks_walk("vectors/generations/scrape_lines.txt", check) >= 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(m1_to_m6_pages_are_read_as_the_vectors_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
