#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"

static void allocated_memory_is_zeroed(void **state)
{
	(void)state;
	unsigned char *block = memory_allocate(1000);

	assert_non_null(block);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(block[i], 0);
	memory_release(block);
}

static void size_zero_gives_a_pointer_of_its_own(void **state)
{
	(void)state;
	void *a = memory_allocate(0);
	void *b = memory_allocate(0);
	void *c = memory_resize(NULL, 0);

	assert_non_null(a);
	assert_non_null(c);
	assert_ptr_not_equal(a, b);
	memory_release(a);
	memory_release(b);
	memory_release(c);
	memory_release(NULL);
}

static void a_copied_text_ends_in_nul(void **state)
{
	(void)state;
	char *copy = memory_copy_text("abcdef", 3);
	char *empty = memory_copy_text(NULL, 0);

	assert_string_equal(copy, "abc");
	assert_string_equal(empty, "");
	assert_null(memory_copy_text("", SIZE_MAX));
	memory_release(copy);
	memory_release(empty);
}

static void blocks_are_counted_until_they_are_released(void **state)
{
	(void)state;
	unsigned long before = memory_block_count();
	void *a = memory_allocate(10);
	void *b = memory_resize(NULL, 10);

	assert_int_equal(memory_block_count() - before, 2);
	b = memory_resize(b, 1000);
	assert_int_equal(memory_block_count() - before, 2);
	memory_fail_at(1);
	assert_null(memory_allocate(10));
	memory_fail_at(0);
	memory_release(NULL);
	assert_int_equal(memory_block_count() - before, 2);
	memory_release(a);
	memory_release(b);
	assert_int_equal(memory_block_count(), before);
}

static void the_chosen_allocation_fails_once(void **state)
{
	(void)state;
	char *kept = memory_copy_text("kept", 4);

	memory_fail_at(3);

	void *first = memory_allocate(1);
	char *second = memory_copy_text("x", 1);

	assert_non_null(first);
	assert_non_null(second);
	assert_null(memory_resize(kept, 100));
	assert_string_equal(kept, "kept");
	assert_int_equal(memory_allocation_count(), 3);
	kept = memory_resize(kept, 100);
	assert_non_null(kept);
	assert_string_equal(kept, "kept");
	assert_int_equal(memory_allocation_count(), 4);

	memory_fail_at(0);
	assert_int_equal(memory_allocation_count(), 0);
	memory_release(first);
	memory_release(second);
	memory_release(kept);
}

/* The library may have given the block back, or kept it for the next: nobody sees which. */
static void large_blocks_that_come_again_are_zeroed_and_counted(void **state)
{
	enum { BLOCKS = 40, ROUNDS = 3, SMALLEST = 20000, STEP = 17000 };
	unsigned long before = memory_block_count();
	unsigned char *blocks[BLOCKS];

	(void)state;
	for (size_t round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < BLOCKS; i++) {
			size_t size = SMALLEST + STEP * ((i + round) % BLOCKS);

			blocks[i] = i % 2 == round % 2 ? memory_allocate(size) : memory_resize(NULL, size);
			assert_non_null(blocks[i]);
			for (size_t at = 0; i % 2 == round % 2 && at < size; at++)
				assert_int_equal(blocks[i][at], 0);
			memset(blocks[i], 0xee, size);
		}
		for (size_t i = 0; i < BLOCKS; i++) {
			for (size_t k = i + 1; k < BLOCKS; k++)
				assert_ptr_not_equal(blocks[i], blocks[k]);
		}
		assert_int_equal(memory_block_count() - before, BLOCKS);
		for (size_t i = 0; i < BLOCKS; i++)
			memory_release(blocks[i]);
		assert_int_equal(memory_block_count(), before);
	}
}

static void a_large_block_that_comes_again_grows_with_what_it_holds(void **state)
{
	enum { FIRST = 70000, THEN = 300000 };
	unsigned char *block;

	(void)state;
	memory_release(memory_allocate(FIRST + 5000));
	block = memory_resize(NULL, FIRST);
	assert_non_null(block);
	memset(block, 7, FIRST);
	block = memory_resize(block, THEN);
	assert_non_null(block);
	for (size_t at = 0; at < FIRST; at++)
		assert_int_equal(block[at], 7);
	memory_release(block);
}

#ifndef __SANITIZE_ADDRESS__ /* which sees every block come and go */
static void a_large_block_is_the_next_one_of_its_size(void **state)
{
	enum { SIZE = 100000 };
	void *block = memory_resize(NULL, SIZE);
	void *other;

	(void)state;
	memory_release(block);
	other = memory_resize(NULL, SIZE / 3); /* far too large for that */
	assert_ptr_not_equal(other, block);
	assert_ptr_equal(memory_resize(NULL, SIZE - 100), block);
	memory_release(other);
	memory_release(block);
}

/* Two owners of one block would be worse than an end. */
static void a_large_block_released_twice_ends_the_process(void **state)
{
	enum { SIZE = 100000 };
	int status;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		void *block = memory_resize(NULL, SIZE);

		(void)signal(SIGABRT, SIG_DFL); /* the test framework's own would report it as a failure */
		memory_release(block);
		memory_release(block);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocated_memory_is_zeroed),
		cmocka_unit_test(size_zero_gives_a_pointer_of_its_own),
		cmocka_unit_test(a_copied_text_ends_in_nul),
		cmocka_unit_test(blocks_are_counted_until_they_are_released),
		cmocka_unit_test(the_chosen_allocation_fails_once),
		cmocka_unit_test(large_blocks_that_come_again_are_zeroed_and_counted),
		cmocka_unit_test(a_large_block_that_comes_again_grows_with_what_it_holds),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(a_large_block_is_the_next_one_of_its_size),
		cmocka_unit_test(a_large_block_released_twice_ends_the_process),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
