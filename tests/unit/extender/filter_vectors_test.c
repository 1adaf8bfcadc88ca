/* The engine against the spec's vectors; each file once with whole bodies, once with bodies that come byte by byte. */
#include "vector_script.h"

static void run_file(void **state)
{
	const char *file = *state;
	size_t count = vectors_run(file, SIZE_MAX);

	assert_true(count > 0);
	assert_int_equal(vectors_run(file, 1), count);
}

static void storage_type_row(const struct vector_row *row)
{
	struct slice text = slice_of(row->fields[0]);

	assert_int_equal(row->count, 2);
	assert_true(slice_equal_text(storage_type_of(slice_from(text.data + 1, text.length - 2)), row->fields[1]));
}

static void storage_types_follow_the_table(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/extender/storage_types.txt", storage_type_row), 12);
}

static void storage_size_row(const struct vector_row *row)
{
	struct error err;
	int64_t bytes = 42;
	bool ok = storage_size_from_quantity(slice_of(row->fields[0]), &bytes, &err);

	if (strcmp(row->fields[1], "invalid") == 0) {
		if (ok)
			fail_msg("%s is no size", row->fields[0]);
		assert_int_equal(bytes, 42);
		return;
	}
	if (!ok || bytes != strtoll(row->fields[1], NULL, 10))
		fail_msg("%s: %lld instead of %s", row->fields[0], (long long)bytes, row->fields[1]);
}

static void sizes_of_claims_are_whole_bytes(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/extender/storage_sizes.txt", storage_size_row) > 30);
}

static void inline_size_row(const struct vector_row *row)
{
	struct slice text = slice_of(row->fields[0]);
	int64_t bytes = 42;
	bool ok = storage_size_from_inline(slice_from(text.data + 1, text.length - 2), &bytes);

	if (ok != (strcmp(row->fields[1], "invalid") != 0))
		fail_msg("%s: %s", row->fields[0], ok ? "is no size" : "is a size");
	if (ok && bytes != strtoll(row->fields[1], NULL, 10))
		fail_msg("%s: %lld instead of %s", row->fields[0], (long long)bytes, row->fields[1]);
	if (!ok)
		assert_int_equal(bytes, 42);
}

static void sizes_of_inline_volumes_have_their_own_units(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/extender/inline_sizes.txt", inline_size_row) > 30);
}

int main(void)
{
	static char http[] = "http.txt";
	static char capacity[] = "capacity.txt";
	static char reservations[] = "reservations.txt";
	static char node_ids[] = "node_ids.txt";
	static char prioritize_file[] = "prioritize.txt";
	static char inline_volumes[] = "inline.txt";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storage_types_follow_the_table),
		cmocka_unit_test(sizes_of_claims_are_whole_bytes),
		cmocka_unit_test(sizes_of_inline_volumes_have_their_own_units),
		{ "bodies", run_file, NULL, NULL, http },
		{ "capacity requests", run_file, NULL, NULL, capacity },
		{ "reservations", run_file, NULL, NULL, reservations },
		{ "node ids", run_file, NULL, NULL, node_ids },
		{ "scores", run_file, NULL, NULL, prioritize_file },
		{ "inline volumes", run_file, NULL, NULL, inline_volumes },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
