#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/failure_counter.h"
#include "agent/limits.h"
#include "base/clock.h"
#include "base/memory.h"

static const int64_t SECOND = NS_PER_S;

static void only_failures_within_the_interval_count(void **state)
{
	(void)state;
	struct failure_counter counter;

	failure_counter_init(&counter, UINT64_C(120) * NS_PER_S, 2);
	assert_int_equal(failure_counter_count(&counter, 0), 0);
	failure_counter_add(&counter, 10 * SECOND);
	failure_counter_add(&counter, 20 * SECOND);
	assert_int_equal(failure_counter_count(&counter, 129 * SECOND), 2);
	/* Strictly newer than now - interval. */
	assert_int_equal(failure_counter_count(&counter, 130 * SECOND), 1);
	assert_int_equal(failure_counter_count(&counter, 140 * SECOND), 0);
	failure_counter_destroy(&counter);
}

static void many_failures_are_counted_up_to_the_limit(void **state)
{
	(void)state;
	struct failure_counter counter;

	failure_counter_init(&counter, 3600 * UINT64_C(1000000000), 2);
	for (int i = 0; i < AGENT_FAILURES_REMEMBERED + 100; i++)
		failure_counter_add(&counter, i * SECOND);
	assert_int_equal(failure_counter_count(&counter, 1200 * SECOND), AGENT_FAILURES_REMEMBERED);
	failure_counter_destroy(&counter);
}

static void a_high_threshold_can_still_be_exceeded(void **state)
{
	(void)state;
	struct failure_counter counter;

	failure_counter_init(&counter, 3600 * UINT64_C(1000000000), 2000);
	for (int i = 0; i < 2500; i++)
		failure_counter_add(&counter, i);
	assert_int_equal(failure_counter_count(&counter, 2500), 2001);
	failure_counter_destroy(&counter);
}

static void without_memory_the_newest_failures_stay(void **state)
{
	(void)state;
	struct failure_counter counter;

	failure_counter_init(&counter, UINT64_C(100) * NS_PER_S, 2);
	for (int i = 0; i < FAILURE_COUNTER_INLINE; i++)
		failure_counter_add(&counter, i * SECOND);
	memory_fail_at(1);
	failure_counter_add(&counter, 50 * SECOND);
	memory_fail_at(0);
	assert_int_equal(failure_counter_count(&counter, 50 * SECOND), FAILURE_COUNTER_INLINE);
	/* What is gone is the oldest: at 101.5 s the second (from 1 s) has just left, three remain. */
	assert_int_equal(failure_counter_count(&counter, 101 * SECOND), FAILURE_COUNTER_INLINE - 1);
	failure_counter_destroy(&counter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_failures_within_the_interval_count),
		cmocka_unit_test(many_failures_are_counted_up_to_the_limit),
		cmocka_unit_test(a_high_threshold_can_still_be_exceeded),
		cmocka_unit_test(without_memory_the_newest_failures_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
