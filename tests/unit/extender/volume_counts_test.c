#include "extender/volume_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/memory.h"

static void add(struct volume_counts *counts, struct slice id)
{
	struct error err;

	assert_true(volume_counts_add(counts, id, &err));
}

static void counts_by_id_and_knows_the_most(void **state)
{
	struct volume_counts counts;

	(void)state;
	volume_counts_init(&counts);
	assert_int_equal(volume_counts_most(&counts), 0);
	add(&counts, SLICE("a"));
	add(&counts, SLICE("a"));
	add(&counts, SLICE("b"));
	add(&counts, SLICE(""));
	assert_int_equal(volume_counts_of(&counts, SLICE("a")), 2);
	assert_int_equal(volume_counts_of(&counts, SLICE("")), 1);
	assert_int_equal(volume_counts_of(&counts, SLICE("c")), 0);
	assert_int_equal(volume_counts_most(&counts), 2);
	volume_counts_remove(&counts, SLICE("a"));
	assert_int_equal(volume_counts_most(&counts), 1);
	volume_counts_remove(&counts, SLICE("c"));
	volume_counts_remove(&counts, SLICE("a"));
	volume_counts_remove(&counts, SLICE("a"));
	assert_int_equal(volume_counts_of(&counts, SLICE("a")), 0);
	assert_int_equal(volume_counts_most(&counts), 1);
	volume_counts_clear(&counts);
	assert_int_equal(volume_counts_most(&counts), 0);
	assert_int_equal(volume_counts_of(&counts, SLICE("b")), 0);
	volume_counts_destroy(&counts);
}

/* Against plain counting. */
static void stays_right_over_many_changes(void **state)
{
	enum { IDS = 7, CHANGES = 20000 };
	size_t plain[IDS] = { 0 };
	struct volume_counts counts;
	uint32_t random = 12345;

	(void)state;
	volume_counts_init(&counts);
	for (int i = 0; i < CHANGES; i++) {
		char id[8];
		size_t most = 0;

		random = random * 1664525 + 1013904223;

		size_t which = (random >> 16) % IDS;

		snprintf(id, sizeof id, "id%zu", which);
		if ((random >> 8 & 1) != 0) {
			add(&counts, slice_of(id));
			plain[which]++;
		} else {
			volume_counts_remove(&counts, slice_of(id));
			plain[which] -= plain[which] > 0;
		}
		for (size_t j = 0; j < IDS; j++)
			most = plain[j] > most ? plain[j] : most;
		assert_int_equal(volume_counts_of(&counts, slice_of(id)), plain[which]);
		assert_int_equal(volume_counts_most(&counts), most);
	}
	volume_counts_destroy(&counts);
}

static void memory_that_is_short_changes_nothing(void **state)
{
	struct volume_counts counts;
	struct error err;
	unsigned long at = 1;

	(void)state;
	volume_counts_init(&counts);
	for (;; at++) {
		bool ok;

		memory_fail_at(at);
		ok = volume_counts_add(&counts, SLICE("a"), &err);
		memory_fail_at(0);
		if (ok)
			break;
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		assert_int_equal(volume_counts_of(&counts, SLICE("a")), 0);
		assert_int_equal(volume_counts_most(&counts), 0);
	}
	assert_true(at > 2);
	assert_int_equal(volume_counts_most(&counts), 1);
	volume_counts_destroy(&counts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_by_id_and_knows_the_most),
		cmocka_unit_test(stays_right_over_many_changes),
		cmocka_unit_test(memory_that_is_short_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
