#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sandbox/faults.h"

enum { DRAWS = 10000, TABLE_BYTES = 8192 };

static unsigned draw(struct faults *faults, enum fault_target target)
{
	unsigned count = 0;

	for (unsigned i = 0; i < DRAWS; i++)
		count += faults_draw(faults, target) != FAULT_NONE;
	return count;
}

static unsigned sum(const struct faults *faults)
{
	unsigned all = 0;

	for (size_t i = 0; i < FAULT_COUNT; i++)
		all += faults->counts[i];
	return all;
}

static void without_faults_nothing_goes_wrong(void **state)
{
	(void)state;
	struct faults faults;

	faults_init(&faults, FAULTS_NONE, 1);
	assert_int_equal(draw(&faults, FAULTS_OF_API_WRITES), 0);
	assert_int_equal(faults_next_ns(&faults, FAULT_MONITOR_CLOSED), 0);
	assert_false(faults_happen(&faults, FAULT_MONITOR_CLOSED));
	assert_int_equal(sum(&faults), 0);
}

static void heavy_comes_more_often_than_light_and_all_is_counted(void **state)
{
	(void)state;
	struct faults light, heavy;
	unsigned few, many;

	faults_init(&light, FAULTS_LIGHT, 1);
	faults_init(&heavy, FAULTS_HEAVY, 1);
	few = draw(&light, FAULTS_OF_API_READS);
	many = draw(&heavy, FAULTS_OF_API_READS);
	/* 4 and 22 of a hundred, by the table. */
	assert_in_range(few, DRAWS * 3 / 100, DRAWS * 5 / 100);
	assert_in_range(many, DRAWS * 20 / 100, DRAWS * 24 / 100);
	assert_int_equal(sum(&light), few);
	assert_int_equal(sum(&heavy), many);
}

static void who_draws_meets_its_own_faults(void **state)
{
	(void)state;
	struct faults faults;

	faults_init(&faults, FAULTS_HEAVY, 2);
	assert_true(draw(&faults, FAULTS_OF_API_READS) > 0);
	assert_int_equal(faults.counts[FAULT_API_CONFLICT], 0);
	assert_true(draw(&faults, FAULTS_OF_API_WRITES) > 0);
	assert_true(faults.counts[FAULT_API_CONFLICT] > 0);
	assert_int_equal(faults.counts[FAULT_PLUGIN_ERROR], 0);
	assert_int_equal(faults.counts[FAULT_SCHEDULER_GIVES_UP], 0);
	assert_true(draw(&faults, FAULTS_OF_SCHEDULER) > 0);
	assert_int_equal(draw(&faults, FAULTS_OF_TIME), 0);
	assert_int_equal(faults.counts[FAULT_MONITOR_SLOW], 0);
}

static void a_seed_gives_one_course_of_faults(void **state)
{
	(void)state;
	struct faults a, b;

	faults_init(&a, FAULTS_HEAVY, 7);
	faults_init(&b, FAULTS_HEAVY, 7);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(faults_draw(&a, FAULTS_OF_PLUGIN), faults_draw(&b, FAULTS_OF_PLUGIN));
}

static void while_it_is_quiet_nothing_comes(void **state)
{
	(void)state;
	struct faults faults;

	faults_init(&faults, FAULTS_HEAVY, 1);
	faults.suspended = true;
	assert_int_equal(draw(&faults, FAULTS_OF_PLUGIN), 0);
	assert_false(faults_happen(&faults, FAULT_MONITOR_CLOSED));
	faults.suspended = false;
	assert_true(faults_happen(&faults, FAULT_MONITOR_CLOSED));
	assert_int_equal(faults.counts[FAULT_MONITOR_CLOSED], 1);
}

static void faults_that_come_by_themselves_come_around_their_time(void **state)
{
	(void)state;
	struct faults faults;

	faults_init(&faults, FAULTS_HEAVY, 1);
	for (size_t i = 0; i < FAULT_COUNT; i++) {
		uint64_t next_ns = faults_next_ns(&faults, (enum fault_kind)i);

		assert_int_equal(next_ns > 0, faults_comes_by_itself((enum fault_kind)i));
	}
	for (unsigned i = 0; i < 100; i++)
		assert_in_range(faults_next_ns(&faults, FAULT_EXTENDER_KILLED), 5 * (uint64_t)NS_PER_S,
		                15 * (uint64_t)NS_PER_S + 1);
	faults_init(&faults, FAULTS_LIGHT, 1);
	assert_int_equal(faults_next_ns(&faults, FAULT_EXTENDER_KILLED), 0);
}

static void the_table_names_each_fault(void **state)
{
	(void)state;
	struct buffer table;

	buffer_init(&table, TABLE_BYTES);
	faults_print_table(&table);
	assert_false(table.failed);
	for (size_t i = 0; i < FAULT_COUNT; i++)
		assert_true(slice_contains(buffer_slice(&table), slice_of(fault_name((enum fault_kind)i))));
	buffer_destroy(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_faults_nothing_goes_wrong),
		cmocka_unit_test(heavy_comes_more_often_than_light_and_all_is_counted),
		cmocka_unit_test(who_draws_meets_its_own_faults),
		cmocka_unit_test(a_seed_gives_one_course_of_faults),
		cmocka_unit_test(while_it_is_quiet_nothing_comes),
		cmocka_unit_test(faults_that_come_by_themselves_come_around_their_time),
		cmocka_unit_test(the_table_names_each_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
