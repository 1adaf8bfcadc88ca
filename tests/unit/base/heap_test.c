#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/memory.h"
#include "base/rng.h"

enum { MANY = 1000 };

static void the_smallest_key_comes_first(void **state)
{
	(void)state;
	static struct heap_node nodes[MANY];
	struct heap heap;
	struct rng rng;
	uint64_t previous = 0;

	rng_seed(&rng, 3);
	heap_init(&heap);
	assert_null(heap_first(&heap));
	for (int i = 0; i < MANY; i++)
		assert_true(heap_insert(&heap, &nodes[i], rng_between(&rng, 0, UINT64_MAX)));
	for (int i = 0; i < MANY; i++) {
		struct heap_node *first = heap_first(&heap);

		assert_non_null(first);
		assert_true(first->key >= previous);
		previous = first->key;
		heap_remove(&heap, first);
		assert_int_equal(first->position, 0);
	}
	assert_null(heap_first(&heap));
	heap_destroy(&heap);
	heap_destroy(&heap);
}

static void among_equals_the_first_in_is_the_first_out(void **state)
{
	(void)state;
	struct heap_node nodes[50] = { 0 };
	struct heap heap;

	heap_init(&heap);
	for (size_t i = 0; i < 50; i++)
		assert_true(heap_insert(&heap, &nodes[i], i % 2));
	for (size_t i = 0; i < 50; i++) {
		struct heap_node *first = heap_first(&heap);

		assert_ptr_equal(first, &nodes[i < 25 ? 2 * i : 2 * (i - 25) + 1]);
		heap_remove(&heap, first);
	}
	heap_destroy(&heap);
}

static void removing_from_the_middle_keeps_the_order(void **state)
{
	(void)state;
	static struct heap_node nodes[MANY];
	struct heap heap;
	struct rng rng;

	rng_seed(&rng, 4);
	heap_init(&heap);
	for (int round = 0; round < 20; round++) {
		size_t left = MANY;
		uint64_t previous = 0;

		for (int i = 0; i < MANY; i++)
			assert_true(heap_insert(&heap, &nodes[i], rng_between(&rng, 0, 300)));
		for (int i = 0; i < MANY; i++) {
			if (rng_next(&rng) % 2 == 0) {
				heap_remove(&heap, &nodes[i]);
				left--;
			}
		}
		assert_int_equal(heap.count, left);
		while (heap.count > 0) {
			struct heap_node *first = heap_first(&heap);

			assert_true(first->key >= previous);
			previous = first->key;
			heap_remove(&heap, first);
		}
	}
	heap_destroy(&heap);
}

static void removing_what_is_not_in_changes_nothing(void **state)
{
	(void)state;
	struct heap_node in = { 0 }, out = { 0 };
	struct heap heap;

	heap_init(&heap);
	assert_true(heap_insert(&heap, &in, 1));
	heap_remove(&heap, &out);
	assert_ptr_equal(heap_first(&heap), &in);
	heap_remove(&heap, &in);
	heap_remove(&heap, &in);
	assert_int_equal(heap.count, 0);
	assert_true(heap_insert(&heap, &in, 2));
	assert_ptr_equal(heap_first(&heap), &in);
	heap_destroy(&heap);
}

static void short_memory_at_any_allocation_leaves_the_heap_as_it_was(void **state)
{
	(void)state;
	static struct heap_node nodes[MANY];
	unsigned long failing = 1;
	bool failed = true;

	for (; failed; failing++) {
		struct heap heap;

		failed = false;
		heap_init(&heap);
		memory_fail_at(failing);
		for (size_t i = 0; i < MANY; i++) {
			size_t count = heap.count;

			if (heap_insert(&heap, &nodes[i], i))
				continue;
			failed = true;
			assert_int_equal(heap.count, count);
			assert_true(heap_insert(&heap, &nodes[i], i)); /* it fails once only */
		}
		memory_fail_at(0);
		assert_int_equal(heap.count, MANY);
		assert_ptr_equal(heap_first(&heap), &nodes[0]);
		heap_destroy(&heap);
	}
	assert_true(failing > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_key_comes_first),
		cmocka_unit_test(among_equals_the_first_in_is_the_first_out),
		cmocka_unit_test(removing_from_the_middle_keeps_the_order),
		cmocka_unit_test(removing_what_is_not_in_changes_nothing),
		cmocka_unit_test(short_memory_at_any_allocation_leaves_the_heap_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
