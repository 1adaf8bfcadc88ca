#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/instant.h"
#include "agent/core/revision.h"
#include "tests/support/vector_file.h"

/* What the rows before left behind. */
static struct revision_source source;
static struct revision slot;

static int64_t seconds(const char *text)
{
	return (int64_t)(vector_number(text) * 1e9);
}

static void note_latency(void *context, int64_t latency_ns, uint64_t flags)
{
	char *text = context;

	assert_string_equal(text, "-");
	snprintf(text, 64, "%.9g %llu", (double)latency_ns / 1e9, (unsigned long long)flags);
}

static void check_observe(char *const *arguments)
{
	struct revision revision = { .value = atoll(arguments[1]), .flags = strtoull(arguments[2], NULL, 10) };
	char reported[64] = "-";
	struct error err;

	if (!revision_source_observe(&source, seconds(arguments[0]), revision, note_latency, reported, &err)) {
		assert_string_equal(err.text, "revision is in the future");
		assert_string_equal(arguments[3], "future");
		return;
	}
	assert_string_equal(reported, arguments[3]);
}

static void check_propagate(char *const *arguments)
{
	struct revision_with_time target = {
		.revision = { .value = atoll(arguments[1]), .flags = strtoull(arguments[2], NULL, 10) },
		.updated_at_ns = seconds(arguments[3]),
	};
	char reported[64] = "-";
	char left[64];

	revision_propagate(seconds(arguments[0]), target, &slot, note_latency, reported);
	assert_string_equal(reported, arguments[4]);
	snprintf(left, sizeof left, "%lld %llu", (long long)slot.value, (unsigned long long)slot.flags);
	assert_string_equal(left, arguments[5]);
}

static void check_next(int64_t now_ns, uint64_t flags, int64_t expected)
{
	struct revision next = revision_source_next(&source, now_ns, flags);

	assert_int_equal(next.value, expected);
	assert_int_equal(next.flags, flags);
}

static void check_row(const struct vector_row *row)
{
	const char *what = row->fields[1];
	char *const *arguments = row->fields + 2;

	if (strcmp(what, "source") == 0) {
		revision_source_init(&source, atoll(arguments[0]));
	} else if (strcmp(what, "next") == 0) {
		check_next(seconds(arguments[0]), strtoull(arguments[1], NULL, 10), atoll(arguments[2]));
	} else if (strcmp(what, "next many") == 0) {
		for (int i = atoi(arguments[0]); i <= atoi(arguments[1]); i++)
			check_next(i * INT64_C(1000000000), 0, atoll(arguments[2]) + i - atoi(arguments[0]));
	} else if (strcmp(what, "observe") == 0) {
		check_observe(arguments);
	} else if (strcmp(what, "slot") == 0) {
		slot = (struct revision){ .value = atoll(arguments[0]) };
	} else {
		assert_string_equal(what, "propagate");
		check_propagate(arguments);
	}
}

static void revisions_behave_as_the_vectors_say(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/core/revisions.txt", check_row), 21);
}

static void many_rounds_of_the_ring_keep_their_times(void **state)
{
	(void)state;
	struct error err;

	revision_source_init(&source, 0);
	for (int64_t i = 1; i <= 1000; i++) {
		char reported[64] = "-";
		char expected[64];

		check_next(i * 1000000000, 1, i);
		if (i % 3 != 0)
			continue;
		assert_true(revision_source_observe(&source, (i + 1) * 1000000000, (struct revision){ i - 1, 2 },
		                                    note_latency, reported, &err));
		snprintf(expected, sizeof expected, "2 2");
		assert_string_equal(reported, expected);
	}
}

static void a_source_without_listeners_forgets_all_the_same(void **state)
{
	(void)state;
	struct revision revision = { .value = 1 };
	struct error err;

	revision_source_init(&source, 0);
	check_next(1, 0, 1);
	assert_true(revision_source_observe(&source, 2, revision, NULL, NULL, &err));
	assert_int_equal(source.count, 0);
	assert_int_equal(source.offset, 2);
}

static void a_silent_source_gives_and_sees_nothing(void **state)
{
	(void)state;
	struct revision_source silent = { .silent = true };
	char reported[64] = "-";
	struct error err;

	assert_int_equal(revision_source_next(&silent, 5, 3).value, 0);
	assert_int_equal(revision_source_next(&silent, 5, 3).flags, 0);
	assert_true(revision_source_observe(&silent, 5, (struct revision){ 99, 1 }, note_latency, reported, &err));
	assert_string_equal(reported, "-");
}

static void numbers_at_the_edge_of_their_range_do_no_harm(void **state)
{
	(void)state;
	struct error err;

	revision_source_init(&source, INT64_MAX);
	check_next(1, 0, INT64_MIN);
	assert_false(revision_source_observe(&source, 1, (struct revision){ INT64_MAX, 0 }, NULL, NULL, &err));
	assert_true(revision_source_observe(&source, 1, (struct revision){ INT64_MIN, 0 }, NULL, NULL, &err));
}

static void differences_saturate(void **state)
{
	(void)state;
	assert_true(instant_difference(7, 5) == 2);
	assert_true(instant_difference(5, RFC3339_ZERO) == INT64_MAX);
	assert_true(instant_difference(-5, RFC3339_ZERO) == INT64_MAX);
	assert_true(instant_difference(RFC3339_ZERO, -5) == -INT64_MAX);
	assert_true(instant_difference(RFC3339_ZERO, RFC3339_ZERO) == 0);
	assert_true(instant_difference(INT64_MAX, -1) == INT64_MAX);
	assert_true(instant_difference(-2, INT64_MAX) == -INT64_MAX);
	assert_true(instant_remaining(10, 5, 12) == 3);
	assert_true(instant_remaining(10, 5, 15) == 0);
	assert_true(instant_remaining(INT64_MAX, INT64_MAX, 0) == INT64_MAX);
	assert_true(instant_remaining(INT64_MAX, 5, INT64_MAX) == 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(revisions_behave_as_the_vectors_say),
		cmocka_unit_test(many_rounds_of_the_ring_keep_their_times),
		cmocka_unit_test(a_source_without_listeners_forgets_all_the_same),
		cmocka_unit_test(a_silent_source_gives_and_sees_nothing),
		cmocka_unit_test(numbers_at_the_edge_of_their_range_do_no_harm),
		cmocka_unit_test(differences_saturate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
