#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/agent_clock.h"
#include "net/loop_internal.h"

/* A loop that is nothing but two clocks, each to be set. */
struct clocks {
	struct loop loop; /* must be first */
	int64_t wall_ns;
};

static uint64_t monotonic_ns(const struct loop *loop)
{
	return loop->now_ns;
}

static int64_t wall_ns(const struct loop *loop)
{
	return ((const struct clocks *)loop)->wall_ns;
}

static const struct loop_operations OPERATIONS = { .monotonic_ns = monotonic_ns, .wall_ns = wall_ns };

static void an_instant_is_wall_time_at_the_start_plus_what_has_passed(void **state)
{
	(void)state;
	struct clocks clocks = { .loop = { .operations = &OPERATIONS, .now_ns = 500 }, .wall_ns = 1700000000000000000 };
	struct agent_clock clock = agent_clock_start(&clocks.loop);

	assert_true(agent_clock_now(&clock) == 1700000000000000000);
	clocks.loop.now_ns += 42;
	assert_true(agent_clock_now(&clock) == 1700000000000000042);
}

static void a_step_of_the_wall_clock_moves_no_instant(void **state)
{
	(void)state;
	struct clocks clocks = { .loop = { .operations = &OPERATIONS, .now_ns = 500 }, .wall_ns = 1700000000000000000 };
	struct agent_clock clock = agent_clock_start(&clocks.loop);

	clocks.wall_ns -= 3600000000000;
	clocks.loop.now_ns += 7;
	assert_true(agent_clock_now(&clock) == 1700000000000000007);
	clocks.wall_ns += 7200000000000;
	assert_true(agent_clock_now(&clock) == 1700000000000000007);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_instant_is_wall_time_at_the_start_plus_what_has_passed),
		cmocka_unit_test(a_step_of_the_wall_clock_moves_no_instant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
