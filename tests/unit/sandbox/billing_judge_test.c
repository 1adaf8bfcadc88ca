#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "sandbox/billing_judge.h"

static const int64_t SECOND = NS_PER_S;
static const int64_t WALL_NS = INT64_C(1741338304) * NS_PER_S;

/* Two VMs with 1 and 2 CPUs; one more that nobody bills. Collected every second, drained every six. */
struct scene {
	struct billing_judge judge;
	int64_t windows_end_s; /* of those taken so far */
};

static uint64_t at(int64_t seconds)
{
	return (uint64_t)(1000 + seconds) * NS_PER_S;
}

static void open(struct scene *scene)
{
	struct error err;

	scene->windows_end_s = 0;
	assert_true(billing_judge_init(&scene->judge, 3, 1, 6, &err));
	billing_judge_add_vm(&scene->judge, 0, 1000);
	billing_judge_add_vm(&scene->judge, 1, 2000);
	billing_judge_start(&scene->judge, at(0), WALL_NS);
}

static bool take_metric(struct scene *scene, size_t vm, enum billing_metric metric, int64_t start_s, int64_t stop_s,
                        uint64_t seconds, struct error *err)
{
	const struct billing_judge_event event = { .metric = metric,
		                                   .seconds = seconds,
		                                   .start_wall_ns = WALL_NS + start_s * SECOND,
		                                   .stop_wall_ns = WALL_NS + stop_s * SECOND };

	return billing_judge_take(&scene->judge, vm, &event, err);
}

/* Both events of a window. */
static void take(struct scene *scene, size_t vm, int64_t start_s, int64_t stop_s, uint64_t cpu_s, uint64_t active_s)
{
	struct error err;

	if (!take_metric(scene, vm, BILLING_CPU_SECONDS, start_s, stop_s, cpu_s, &err) ||
	    !take_metric(scene, vm, BILLING_ACTIVE_SECONDS, start_s, stop_s, active_s, &err))
		fail_msg("%s", err.text);
}

static void end(struct scene *scene, int64_t seconds)
{
	billing_judge_end(&scene->judge, at(seconds), WALL_NS + seconds * SECOND);
}

static void expect_right(const struct scene *scene, size_t vm)
{
	struct error err;

	if (!billing_judge_check(&scene->judge, vm, &err))
		fail_msg("%s", err.text);
}

static void expect_wrong(const struct scene *scene, size_t vm, const char *part)
{
	struct error err;

	assert_false(billing_judge_check(&scene->judge, vm, &err));
	if (strstr(err.text, part) == NULL)
		fail_msg("%s", err.text);
}

static void what_was_used_is_right(void **state)
{
	struct scene scene;

	(void)state;
	open(&scene);
	take(&scene, 0, 0, 6, 6, 6);
	take(&scene, 0, 6, 12, 6, 6);
	take(&scene, 1, 0, 12, 24, 12);
	end(&scene, 12);
	expect_right(&scene, 0);
	expect_right(&scene, 1);
	expect_right(&scene, 2);
	assert_int_equal(billing_judge_lost(&scene.judge, 0), 0);
	assert_int_equal(billing_judge_lost(&scene.judge, 2), 0);
	assert_true(scene.judge.vms[1].used_cpu_s > 23.99 && scene.judge.vms[1].used_cpu_s < 24.01);
	billing_judge_destroy(&scene.judge);
}

static void at_most_a_second_more(void **state)
{
	struct scene scene;

	(void)state;
	open(&scene);
	take(&scene, 0, 0, 12, 13, 12);
	take(&scene, 1, 0, 12, 26, 12);
	end(&scene, 12);
	expect_right(&scene, 0);
	expect_wrong(&scene, 1, "26 CPU-seconds were billed, 24.00 used");
	billing_judge_destroy(&scene.judge);
}

static void less_only_by_the_first_period_and_by_changes(void **state)
{
	struct scene scene;

	(void)state;
	open(&scene);
	/* VM 0: 4 s of 1, 4 s of 3, 4 s of 1: 20; it may lose 1 at the start, 2 at each change, and 1 for rounding. */
	billing_judge_set_cpu(&scene.judge, 0, 3000, at(4));
	billing_judge_set_cpu(&scene.judge, 0, 1000, at(8));
	take(&scene, 0, 0, 12, 14, 12);
	take(&scene, 1, 0, 12, 21, 11);
	end(&scene, 12);
	expect_right(&scene, 0);
	assert_true(scene.judge.vms[0].used_cpu_s > 19.99 && scene.judge.vms[0].used_cpu_s < 20.01);
	expect_right(&scene, 1);
	billing_judge_destroy(&scene.judge);

	open(&scene);
	billing_judge_set_cpu(&scene.judge, 0, 3000, at(4));
	billing_judge_set_cpu(&scene.judge, 0, 1000, at(8));
	take(&scene, 0, 0, 12, 13, 12);
	take(&scene, 1, 0, 12, 20, 11);
	end(&scene, 12);
	expect_wrong(&scene, 0, "at most 6.00 less and 1.00 more");
	expect_wrong(&scene, 1, "20 CPU-seconds were billed");
	billing_judge_destroy(&scene.judge);
}

static void active_time_is_judged_too(void **state)
{
	struct scene scene;

	(void)state;
	open(&scene);
	take(&scene, 0, 0, 12, 12, 14);
	take(&scene, 1, 0, 12, 24, 9);
	end(&scene, 12);
	expect_wrong(&scene, 0, "14 active seconds were billed, of 12.00");
	expect_wrong(&scene, 1, "9 active seconds");
	billing_judge_destroy(&scene.judge);
}

static void an_agent_may_start_late_and_end_late(void **state)
{
	struct scene scene;

	(void)state;
	open(&scene);
	take(&scene, 0, 3, 14, 11, 11);
	take(&scene, 1, 3, 14, 23, 11);
	end(&scene, 12);
	expect_right(&scene, 0);
	expect_right(&scene, 1);
	billing_judge_destroy(&scene.judge);
}

static void windows_that_never_came_are_lost(void **state)
{
	struct scene scene;

	(void)state;
	open(&scene);
	take(&scene, 0, 0, 6, 6, 6);
	take(&scene, 0, 12, 18, 6, 6); /* one before it is missing */
	take(&scene, 1, 0, 6, 12, 6);  /* all after it are missing: 6 to 12, 12 to 18, and the last */
	end(&scene, 20);
	assert_int_equal(billing_judge_lost(&scene.judge, 0), 2 + 2);
	assert_int_equal(billing_judge_lost(&scene.judge, 1), 2 * 2);
	expect_wrong(&scene, 0, "CPU-seconds");
	billing_judge_destroy(&scene.judge);

	open(&scene);
	end(&scene, 18);
	assert_int_equal(billing_judge_lost(&scene.judge, 0), 4);
	expect_wrong(&scene, 0, "0 CPU-seconds were billed, 18.00 used");
	billing_judge_destroy(&scene.judge);
}

static void a_run_that_ends_before_the_first_sample_has_nothing_to_bill(void **state)
{
	struct scene scene;

	(void)state;
	open(&scene);
	end(&scene, 3);
	assert_int_equal(billing_judge_lost(&scene.judge, 0), 0);
	expect_right(&scene, 0);
	expect_right(&scene, 1);
	billing_judge_destroy(&scene.judge);
}

static void a_single_lost_event_is_one(void **state)
{
	struct scene scene;
	struct error err;

	(void)state;
	open(&scene);
	take(&scene, 0, 0, 6, 6, 6);
	assert_true(take_metric(&scene, 0, BILLING_CPU_SECONDS, 6, 12, 6, &err));
	end(&scene, 12);
	assert_int_equal(billing_judge_lost(&scene.judge, 0), 1);
	billing_judge_destroy(&scene.judge);
}

static void a_window_twice_cant_be(void **state)
{
	struct scene scene;
	struct error err;

	(void)state;
	open(&scene);
	take(&scene, 0, 0, 6, 6, 6);
	assert_false(take_metric(&scene, 0, BILLING_CPU_SECONDS, 0, 6, 6, &err));
	assert_non_null(strstr(err.text, "begins 6.000 s before the end of the one before"));
	billing_judge_destroy(&scene.judge);
}

static void a_vm_without_an_agent_isnt_billed(void **state)
{
	struct scene scene;
	struct error err;

	(void)state;
	open(&scene);
	assert_false(take_metric(&scene, 2, BILLING_CPU_SECONDS, 0, 6, 6, &err));
	assert_non_null(strstr(err.text, "no agent"));
	billing_judge_destroy(&scene.judge);
}

static void while_agents_see_nothing_they_may_bill_nothing(void **state)
{
	struct scene scene;

	(void)state;
	open(&scene);
	take(&scene, 0, 0, 6, 6, 6);
	billing_judge_excuse(&scene.judge, at(6), UINT64_MAX);
	billing_judge_excuse(&scene.judge, at(20), at(25));
	/* None for the windows from 6 to 24, and no gap. */
	take(&scene, 0, 24, 30, 5, 5);
	take(&scene, 0, 30, 36, 6, 6);
	take(&scene, 1, 0, 36, 72, 36); /* it may, of course */
	end(&scene, 36);
	expect_right(&scene, 0);
	expect_right(&scene, 1);
	assert_int_equal(billing_judge_lost(&scene.judge, 0), 0);
	billing_judge_destroy(&scene.judge);

	/* But what comes later is due again. */
	open(&scene);
	take(&scene, 0, 0, 6, 6, 6);
	billing_judge_excuse(&scene.judge, at(6), at(8));
	billing_judge_set_cpu(&scene.judge, 1, 2000, at(12));
	take(&scene, 0, 12, 18, 6, 6);
	take(&scene, 0, 30, 36, 6, 6);
	end(&scene, 36);
	assert_int_equal(billing_judge_lost(&scene.judge, 0), 4);
	expect_wrong(&scene, 0, "18 CPU-seconds");
	billing_judge_destroy(&scene.judge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_used_is_right),
		cmocka_unit_test(at_most_a_second_more),
		cmocka_unit_test(less_only_by_the_first_period_and_by_changes),
		cmocka_unit_test(active_time_is_judged_too),
		cmocka_unit_test(an_agent_may_start_late_and_end_late),
		cmocka_unit_test(windows_that_never_came_are_lost),
		cmocka_unit_test(a_run_that_ends_before_the_first_sample_has_nothing_to_bill),
		cmocka_unit_test(a_single_lost_event_is_one),
		cmocka_unit_test(a_window_twice_cant_be),
		cmocka_unit_test(a_vm_without_an_agent_isnt_billed),
		cmocka_unit_test(while_agents_see_nothing_they_may_bill_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
