#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"

static void the_wall_clock_counts_from_1970(void **state)
{
	(void)state;
	time_t before = time(NULL);
	int64_t now_ns = clock_wall_ns();

	/* time() may read a coarser clock that lags behind. */
	assert_in_range(now_ns / NS_PER_S, (uint64_t)before, (uint64_t)time(NULL) + 1);
}

static void the_monotonic_clock_goes_on_at_the_pace_of_time(void **state)
{
	(void)state;
	const struct timespec PAUSE = { .tv_nsec = 20 * NS_PER_MS };
	uint64_t before_ns = clock_monotonic_ns();

	assert_int_equal(nanosleep(&PAUSE, NULL), 0);
	assert_true(clock_monotonic_ns() - before_ns >= (uint64_t)PAUSE.tv_nsec);
	assert_true(clock_monotonic_ns() - before_ns < (uint64_t)60 * NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wall_clock_counts_from_1970),
		cmocka_unit_test(the_monotonic_clock_goes_on_at_the_pace_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
