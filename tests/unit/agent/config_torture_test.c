/*
 * Reading the configuration, while each allocation fails once: a clear error, and nothing is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/config.h"
#include "base/memory.h"
#include "tests/unit/agent/config_file.h"

enum { POINTS_MAX = 1000 };

static void each_failed_allocation_is_an_error_that_says_so(void **state)
{
	struct config_file *file = config_file_create("");
	unsigned long blocks = memory_block_count();
	bool loaded = false;
	unsigned failures = 0;

	(void)state;
	for (unsigned long point = 1; !loaded; point++) {
		struct agent_config config;
		struct slice text = { 0 };
		struct arena arena;
		struct error err = { .code = ERROR_NONE };

		assert_true(point < POINTS_MAX);
		arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
		memory_fail_at(point);
		loaded = agent_config_load(file->path, &arena, &config, &text, &err);
		memory_fail_at(0);
		if (!loaded) {
			failures++;
			assert_int_equal(err.code, ERROR_NO_MEMORY);
			assert_true(slice_contains(text, SLICE("memory")) ||
			            slice_contains(slice_of(err.text), SLICE("memory")));
		}
		arena_destroy(&arena);
		assert_int_equal(memory_block_count(), blocks);
	}
	assert_in_range(failures, 3, POINTS_MAX);
	config_file_destroy(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failed_allocation_is_an_error_that_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
