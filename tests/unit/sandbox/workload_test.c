#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/workload.h"

static const uint64_t SECOND = NS_PER_S;

static struct workload *make(uint64_t seed, unsigned vms, unsigned nodes, double speed, uint64_t duration_s)
{
	struct workload_options options = {
		.seed = seed, .vms = vms, .nodes = nodes, .speed = speed, .duration_ns = duration_s * SECOND
	};
	struct error err;
	struct workload *workload = workload_create(&options, &err);

	assert_non_null(workload);
	return workload;
}

/* ---- time ---- */

static void a_run_has_as_many_phases_as_fit(void **state)
{
	(void)state;
	static const struct {
		double speed;
		uint64_t duration_s;
		unsigned phases;
		uint64_t length_ms;
	} rows[] = {
		/* 24 s / 4 + 2 s is 8 s */
		{ 4, 40, 5, 8000 },
		{ 4, 60, 7, 8571 },
		{ 4, 8, 1, 8000 },
		{ 4, 15, 1, 15000 },
		{ 4, 16, 2, 8000 },
		/* 26 s */
		{ 1, 60, 2, 30000 },
		/* 14 s */
		{ 2, 45, 3, 15000 },
		/* never less than 8 s */
		{ 100, 20, 2, 10000 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct workload *workload = make(1, 1, 1, rows[i].speed, rows[i].duration_s);

		assert_int_equal(workload->phase_count, rows[i].phases);
		assert_int_equal(workload->phase_length_ns / NS_PER_MS, rows[i].length_ms);
		workload_destroy(workload);
	}
}

static void phases_are_longer_with_so_many_vms_that_patches_wait(void **state)
{
	(void)state;
	/* 2.5 patches each, 100 at once, 50 per second. */
	static const struct {
		unsigned vms;
		uint64_t duration_s;
		unsigned phases;
		uint64_t settle_ms;
	} rows[] = {
		{ 40, 40, 5, 8000 },   { 60, 40, 4, 9000 },   { 200, 40, 2, 16000 },
		{ 200, 32, 2, 16000 }, { 200, 31, 1, 16000 }, { 200, 16, 1, 16000 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct workload *workload = make(1, rows[i].vms, 1, 4, rows[i].duration_s);

		assert_int_equal(workload->settle_ns / NS_PER_MS, rows[i].settle_ms);
		assert_int_equal(workload->phase_count, rows[i].phases);
		assert_int_equal(workload->phase_length_ns, rows[i].duration_s * SECOND / rows[i].phases);
		workload_destroy(workload);
	}
}

static void a_run_that_is_too_short_is_refused_and_the_least_is_named(void **state)
{
	(void)state;
	struct workload_options options = {
		.seed = 1, .vms = 6, .nodes = 3, .speed = 1, .duration_ns = 26 * SECOND - 1
	};
	struct error err;

	assert_null(workload_create(&options, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "at 6 VMs and speed 1 a run takes at least 26.0 s");
	options = (struct workload_options){ .vms = 200, .nodes = 3, .speed = 4, .duration_ns = 16 * SECOND - 1 };
	assert_null(workload_create(&options, &err));
	assert_string_equal(err.text, "at 200 VMs and speed 4 a run takes at least 16.0 s");
}

static void phases_follow_each_other_and_the_last_one_stays(void **state)
{
	(void)state;
	struct workload *workload = make(1, 1, 1, 4, 40);

	assert_int_equal(workload_phase_at(workload, 0), 0);
	assert_int_equal(workload_phase_at(workload, 8 * SECOND - 1), 0);
	assert_int_equal(workload_phase_at(workload, 8 * SECOND), 1);
	assert_int_equal(workload_phase_at(workload, 39 * SECOND), 4);
	assert_int_equal(workload_phase_at(workload, 400 * SECOND), 4);
	workload_destroy(workload);
}

static void an_endless_run_repeats_its_phases(void **state)
{
	(void)state;
	struct workload *workload = make(3, 6, 3, 4, 0);

	assert_int_equal(workload->phase_count, 0);
	assert_int_equal(workload->phase_length_ns, 8 * SECOND);
	assert_int_equal(workload_phase_at(workload, 800 * SECOND), 100);
	for (unsigned vm = 0; vm < 6; vm++)
		assert_ptr_equal(workload_phase(workload, vm, 100), workload_phase(workload, vm, 100 % 12));
	workload_destroy(workload);
}

/* ---- which VMs ---- */

static void kinds_are_given_out_in_a_fixed_order(void **state)
{
	(void)state;
	static const enum workload_kind with_full_node[] = {
		WORKLOAD_RAMP,    WORKLOAD_HELD,  WORKLOAD_MEMORY,     WORKLOAD_TAKEOVER,    WORKLOAD_LFC,
		WORKLOAD_BOUNDED, WORKLOAD_SPIKE, WORKLOAD_FULL_FIRST, WORKLOAD_FULL_SECOND,
	};
	static const enum workload_kind on_one_node[] = {
		WORKLOAD_RAMP,  WORKLOAD_HELD, WORKLOAD_MEMORY, WORKLOAD_TAKEOVER, WORKLOAD_LFC,    WORKLOAD_BOUNDED,
		WORKLOAD_SPIKE, WORKLOAD_RAMP, WORKLOAD_HELD,   WORKLOAD_MEMORY,   WORKLOAD_RANDOM, WORKLOAD_LFC,
	};
	struct workload *workload = make(1, 9, 2, 4, 40);

	assert_true(workload->has_full_node);
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(workload->vms[i].kind, with_full_node[i]);
		assert_int_equal(workload->vms[i].node, i >= 7 ? 1 : 0);
	}
	workload_destroy(workload);
	workload = make(1, 12, 1, 4, 40);
	assert_false(workload->has_full_node);
	for (unsigned i = 0; i < 12; i++) {
		assert_int_equal(workload->vms[i].kind, on_one_node[i]);
		assert_int_equal(workload->vms[i].node, 0);
	}
	workload_destroy(workload);
	workload = make(1, 5, 3, 4, 40);
	assert_false(workload->has_full_node);
	workload_destroy(workload);
}

static void names_are_distinct(void **state)
{
	(void)state;
	struct workload *workload = make(1, WORKLOAD_VMS_MAX, 3, 4, 40);

	assert_string_equal(workload->vms[0].name, "pine");
	assert_string_equal(workload->vms[24].name, "pine-2");
	for (unsigned i = 0; i < WORKLOAD_VMS_MAX; i++) {
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(workload->vms[i].name, workload->vms[j].name);
	}
	workload_destroy(workload);
}

static void a_seed_always_draws_the_same_and_another_one_something_else(void **state)
{
	(void)state;
	struct workload *a = make(7, 40, 3, 4, 40), *b = make(7, 40, 3, 4, 40), *c = make(8, 40, 3, 4, 40);
	bool differs = false;

	for (unsigned i = 0; i < 40; i++) {
		assert_memory_equal(a->vms[i].phases, b->vms[i].phases, sizeof a->vms[i].phases);
		differs = differs || memcmp(a->vms[i].phases, c->vms[i].phases, sizeof a->vms[i].phases) != 0;
	}
	assert_true(differs);
	workload_destroy(a);
	workload_destroy(b);
	workload_destroy(c);
}

static void more_vms_leave_the_others_as_they_are(void **state)
{
	(void)state;
	struct workload *few = make(7, 4, 1, 4, 40), *many = make(7, 30, 1, 4, 40);

	for (unsigned i = 0; i < 4; i++)
		assert_memory_equal(few->vms[i].phases, many->vms[i].phases, sizeof few->vms[i].phases);
	workload_destroy(few);
	workload_destroy(many);
}

/* ---- what they must have ---- */

static unsigned most_of(const struct workload_vm *vm)
{
	return vm->bound != 0 ? vm->bound : vm->max;
}

/* By the definition: the demand within the VM's limits, at least what is held. */
static unsigned expectation(const struct workload_vm *vm, const struct workload_phase *phase)
{
	unsigned units = phase->demand < vm->min ? vm->min : phase->demand;

	if (units > most_of(vm))
		units = most_of(vm);
	return units < phase->held ? phase->held : units;
}

static void check_vm(const struct workload_vm *vm)
{
	unsigned before = vm->initial;

	assert_in_range(vm->max, 5, 8);
	assert_int_equal(vm->min, 1);
	for (unsigned i = 0; i < WORKLOAD_PHASES; i++) {
		const struct workload_phase *phase = &vm->phases[i];

		if (!phase->contended)
			assert_int_equal(phase->expected, expectation(vm, phase));
		assert_in_range(phase->expected, vm->min, most_of(vm));
		assert_true(phase->demand >= 1);
		/* Something can be held only if it was there, and it must be more than is needed. */
		if (phase->held != 0) {
			assert_int_equal(phase->held, before);
			assert_true(phase->held > phase->demand);
		}
		/* A second of growth each. */
		if (phase->cause == WORKLOAD_CAUSE_MEMORY)
			assert_true(phase->demand <= 5);
		before = phase->expected;
	}
}

static void expectations_follow_from_demands_and_limits(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct workload *workload = make(seed, 40, 3, 4, 40);

		for (unsigned i = 0; i < 40; i++)
			check_vm(&workload->vms[i]);
		workload_destroy(workload);
	}
}

static void each_kind_has_its_character(void **state)
{
	(void)state;
	struct workload *workload = make(5, 12, 1, 4, 40);
	const struct workload_vm *held = &workload->vms[1], *takeover = &workload->vms[3];
	const struct workload_vm *bounded = &workload->vms[5], *spike = &workload->vms[6];

	assert_true(held->phases[1].held >= 3);
	assert_int_equal(held->phases[0].held, 0);
	assert_true(held->phases[2].expected < held->phases[1].expected);
	assert_int_equal(workload->vms[2].phases[0].cause, WORKLOAD_CAUSE_MEMORY);
	assert_int_equal(takeover->initial, 3);
	assert_int_equal(takeover->plugged, 1);
	assert_int_equal(takeover->phases[0].expected, 3);
	assert_int_equal(workload->vms[4].phases[0].cause, WORKLOAD_CAUSE_LFC);
	assert_int_equal(bounded->max, 8);
	assert_int_equal(bounded->bound, 4);
	assert_true(bounded->phases[0].demand > 4);
	assert_int_equal(bounded->phases[0].expected, 4);
	assert_int_equal(spike->phases[0].expected, 1);
	assert_int_equal(spike->phases[1].expected, spike->max);
	workload_destroy(workload);
}

static void the_full_node_is_shared_in_one_way_only(void **state)
{
	(void)state;
	static const unsigned first[] = { 5, 5, 1, 1 }, second[] = { 1, 3, 6, 1 }, wants[] = { 1, 6, 6, 1 };

	for (uint64_t seed = 0; seed < 20; seed++) {
		struct workload *workload = make(seed, 6, 2, 4, 40);

		for (unsigned i = 0; i < 3 * WORKLOAD_PHASES; i++) {
			const struct workload_phase *a = workload_phase(workload, 4, i);
			const struct workload_phase *b = workload_phase(workload, 5, i);

			assert_int_equal(a->expected, first[i % 4]);
			assert_int_equal(b->expected, second[i % 4]);
			assert_int_equal(b->demand, wants[i % 4]);
			assert_int_equal(a->contended, i % 4 == 1);
			assert_int_equal(b->contended, i % 4 == 1);
			/* Were two to rise at once, it would depend on who asks first. */
			assert_false(a->expected > workload_expected_before(workload, 4, i) &&
			             b->expected > workload_expected_before(workload, 5, i));
		}
		workload_destroy(workload);
	}
}

static void what_was_expected_before_begins_with_the_initial_size(void **state)
{
	(void)state;
	struct workload *workload = make(1, 4, 1, 4, 40);

	assert_int_equal(workload_expected_before(workload, 3, 0), 3);
	assert_int_equal(workload_expected_before(workload, 3, 1), workload->vms[3].phases[0].expected);
	assert_int_equal(workload_expected_before(workload, 3, 13), workload->vms[3].phases[0].expected);
	workload_destroy(workload);
}

static void running_out_of_memory_is_an_error(void **state)
{
	(void)state;
	struct workload_options options = { .seed = 1, .vms = 6, .nodes = 3, .speed = 4 };
	struct error err;

	memory_fail_at(1);
	assert_null(workload_create(&options, &err));
	memory_fail_at(0);
	assert_int_equal(err.code, ERROR_NO_MEMORY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_has_as_many_phases_as_fit),
		cmocka_unit_test(phases_are_longer_with_so_many_vms_that_patches_wait),
		cmocka_unit_test(a_run_that_is_too_short_is_refused_and_the_least_is_named),
		cmocka_unit_test(phases_follow_each_other_and_the_last_one_stays),
		cmocka_unit_test(an_endless_run_repeats_its_phases),
		cmocka_unit_test(kinds_are_given_out_in_a_fixed_order),
		cmocka_unit_test(names_are_distinct),
		cmocka_unit_test(a_seed_always_draws_the_same_and_another_one_something_else),
		cmocka_unit_test(more_vms_leave_the_others_as_they_are),
		cmocka_unit_test(expectations_follow_from_demands_and_limits),
		cmocka_unit_test(each_kind_has_its_character),
		cmocka_unit_test(the_full_node_is_shared_in_one_way_only),
		cmocka_unit_test(what_was_expected_before_begins_with_the_initial_size),
		cmocka_unit_test(running_out_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
