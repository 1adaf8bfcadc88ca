#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/memory.h"

enum { MANY = 2000 };

static void memory_is_zeroed_and_aligned_also_after_a_reset(void **state)
{
	(void)state;
	struct arena arena;

	arena_init(&arena, 1 << 20);
	for (int round = 0; round < 3; round++) {
		for (size_t size = 0; size < 300; size++) {
			unsigned char *block = arena_allocate(&arena, size);

			assert_non_null(block);
			assert_int_equal((uintptr_t)block % _Alignof(max_align_t), 0);
			for (size_t i = 0; i < size; i++)
				assert_int_equal(block[i], 0);
			memset(block, 0xaa, size);
		}
		arena_reset(&arena);
	}
	arena_destroy(&arena);
	arena_destroy(&arena);
}

static void what_was_allocated_stays_as_it_is(void **state)
{
	(void)state;
	struct arena arena;
	size_t *numbers[MANY];

	arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < MANY; i++) {
		/* Of all sizes, some with blocks of their own. */
		numbers[i] = arena_allocate_array(&arena, i % 500 == 7 ? 5000 : 1 + i % 7, sizeof(size_t));
		assert_non_null(numbers[i]);
		numbers[i][i % 7] = i;
	}
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(numbers[i][i % 7], i);
	assert_true(arena.used_bytes <= arena.limit_bytes);
	arena_destroy(&arena);
}

static void no_more_than_the_limit_is_held(void **state)
{
	(void)state;
	struct arena arena;
	size_t given = 0;

	arena_init(&arena, 10000);
	assert_null(arena_allocate(&arena, 10001));
	assert_null(arena_allocate(&arena, SIZE_MAX));
	assert_null(arena_allocate_array(&arena, SIZE_MAX / 8, 16));
	while (arena_allocate(&arena, 16) != NULL)
		given += 16;
	assert_in_range(given, 9000, 10000);
	assert_true(arena.used_bytes <= 10000);

	arena_reset(&arena);
	assert_non_null(arena_allocate(&arena, 1000));
	arena_destroy(&arena);
}

static void copies_end_in_nul(void **state)
{
	(void)state;
	struct arena arena;
	struct slice a, b, empty;

	arena_init(&arena, 10000);
	assert_true(arena_copy(&arena, SLICE("abc"), &a));
	assert_true(arena_copy(&arena, slice_of(NULL), &empty));
	assert_true(arena_copy(&arena, SLICE("de"), &b));
	assert_string_equal(a.data, "abc");
	assert_int_equal(a.length, 3);
	assert_string_equal(empty.data, "");
	assert_int_equal(empty.length, 0);
	assert_string_equal(b.data, "de");
	assert_int_equal((uintptr_t)arena_allocate(&arena, 8) % _Alignof(max_align_t), 0);
	arena_destroy(&arena);
}

static void a_copy_that_does_not_fit_leaves_the_output_alone(void **state)
{
	(void)state;
	struct arena arena;
	struct slice copy = SLICE("before");

	arena_init(&arena, 100);
	assert_false(arena_copy(&arena, slice_from("", 100), &copy));
	assert_true(slice_equal_text(copy, "before"));
	arena_destroy(&arena);
}

static void a_reset_keeps_one_ordinary_block(void **state)
{
	(void)state;
	struct arena arena;

	arena_init(&arena, 1 << 24);
	for (int i = 0; i < 1000; i++)
		assert_non_null(arena_allocate(&arena, 500));
	assert_true(arena.used_bytes > 500000);
	arena_reset(&arena);
	assert_in_range(arena.used_bytes, 1, 65536);

	memory_fail_at(1);
	assert_non_null(arena_allocate(&arena, 10000)); /* needs no new block */
	memory_fail_at(0);
	arena_destroy(&arena);

	assert_non_null(arena_allocate(&arena, 1 << 20));
	arena_reset(&arena);
	assert_int_equal(arena.used_bytes, 0); /* an outsize block isn't kept */
	arena_destroy(&arena);
}

static void short_memory_at_any_allocation_gives_null(void **state)
{
	(void)state;
	unsigned long failing = 1;
	bool failed = true;

	for (; failed; failing++) {
		struct arena arena;

		failed = false;
		arena_init(&arena, 1 << 20);
		memory_fail_at(failing);
		for (size_t i = 0; i < 1000; i++)
			failed = arena_allocate(&arena, i == 500 ? 30000 : 100) == NULL || failed;
		memory_fail_at(0);
		arena_destroy(&arena);
	}
	assert_true(failing > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_and_aligned_also_after_a_reset),
		cmocka_unit_test(what_was_allocated_stays_as_it_is),
		cmocka_unit_test(no_more_than_the_limit_is_held),
		cmocka_unit_test(copies_end_in_nul),
		cmocka_unit_test(a_copy_that_does_not_fit_leaves_the_output_alone),
		cmocka_unit_test(a_reset_keeps_one_ordinary_block),
		cmocka_unit_test(short_memory_at_any_allocation_gives_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
