/*
 * Vectors of spec generations 6 that are about the core: what the late-2023 agent decides, and when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/vector_file.h"
#include "tests/unit/agent/core/late_2023.h"

static void check_goal(const struct vector_row *row)
{
	struct late_world world;

	assert_int_equal(row->count, 3);
	late_begin(&world);
	late_run(&world, row->fields[1], true);
	/* Each statement prints a blank first. */
	if (strcmp(world.text + 1, row->fields[2]) != 0)
		fail_msg("%s (line %zu):\n  expected %s\n  found   %s", row->fields[0], row->line, row->fields[2],
		         world.text);
}

static void the_goals_are_those_of_late_2023(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/generations/goals.txt", check_goal) >= 25);
}

static void check_sequence(const struct vector_block *block)
{
	struct late_world world;
	char script[4096];

	snprintf(script, sizeof script, "%.*s", SLICE_ARGS(block->input));
	late_begin(&world);
	late_run(&world, script, false);
	if (strcmp(world.text, block->expected) != 0)
		fail_msg("%s:\nexpected\n%s\nfound\n%s", block->name, block->expected, world.text);
}

static void sequences_lead_to_the_actions_of_late_2023(void **state)
{
	(void)state;
	assert_true(vector_blocks_walk("vectors/generations/sequences.txt", check_sequence) >= 15);
}

/* W2, before it is printed. */
static void w2_memory_is_worked_out_in_32_bits(void **state)
{
	struct system_metrics metrics = system_metrics_from_single(0.1F, 0.2F, 5197705216.0F, 2147483648.0F);

	(void)state;
	assert_true(metrics.memory_usage_bytes == 3155079168.0);
	assert_true(metrics.load_average_1_min == (double)0.1F && metrics.load_average_1_min != 0.1);
	/* Doubles would give 4026531740 here. */
	metrics = system_metrics_from_single(0, 0, 8589934592.0F, 4668260452.0F);
	assert_true(metrics.memory_usage_bytes == 4026531840.0);
}

/*
 * A unit that is no whole number of slots can't be asked for in slots: what is asked is rounded down, and its grant
 * settles the matter (generations 2.3) instead of being asked again and again.
 */
static void memory_that_is_no_whole_slot_is_asked_for_once(void **state)
{
	const uint64_t slot_bytes = UINT64_C(768) << 20;
	struct late_world world;
	struct core_actions actions;
	struct core *core;
	struct error err;

	(void)state;
	late_begin(&world);
	world.vm.mem.slot_bytes = slot_bytes;
	world.vm.mem.max_slots = 32;
	world.unit = (struct resources){ .cpu_milli = 250, .mem_bytes = UINT64_C(1) << 30 };
	core = late_core(&world);
	late_permitted(&world, 0, "1000/4");
	core->compute_unit = world.unit;
	late_metrics(&world, "1.125 0");
	assert_true(core_next_actions(core, LATE_SECOND_NS, &actions, &err));
	assert_true(actions.has_plugin_request);
	assert_int_equal(actions.plugin_request.target.cpu_milli, 1250);
	assert_int_equal(actions.plugin_request.target.mem_bytes, 6 * slot_bytes); /* of 5 GiB */
	core_plugin_starting_request(core, LATE_SECOND_NS, actions.plugin_request.target);
	assert_true(core_plugin_request_answered(core, LATE_SECOND_NS, LATE_NO_REVISION, actions.plugin_request.target,
	                                         world.unit, &err));
	assert_true(core_next_actions(core, LATE_SECOND_NS + 1, &actions, &err));
	assert_false(actions.has_plugin_request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_goals_are_those_of_late_2023),
		cmocka_unit_test(sequences_lead_to_the_actions_of_late_2023),
		cmocka_unit_test(w2_memory_is_worked_out_in_32_bits),
		cmocka_unit_test(memory_that_is_no_whole_slot_is_asked_for_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
