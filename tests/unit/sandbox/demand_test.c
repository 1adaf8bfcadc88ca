/*
 * The pages of a phase against what reads them: the scaling core's goal, and the vm-monitor's decision.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/goal.h"
#include "sandbox/demand.h"
#include "sandbox/vm_monitor_decision.h"
#include "sandbox/workload.h"

static const double KERNEL_BYTES = 104857600; /* added to what the page says (agent-core M-2) */

/* As shipped (agent-core 1.3). */
static const struct scaling_config SHIPPED = {
	.has_load_average_fraction_target = true,
	.has_memory_usage_fraction_target = true,
	.has_memory_total_fraction_target = true,
	.has_enable_lfc_metrics = true,
	.has_lfc_use_largest_window = true,
	.has_lfc_to_memory_ratio = true,
	.has_lfc_min_wait_before_downscale_minutes = true,
	.has_lfc_window_size_minutes = true,
	.has_cpu_stable_zone_ratio = true,
	.has_cpu_mixed_zone_ratio = true,
	.enable_lfc_metrics = true,
	.load_average_fraction_target = 0.9,
	.memory_usage_fraction_target = 0.75,
	.memory_total_fraction_target = 0.9,
	.lfc_to_memory_ratio = 0.75,
	.lfc_min_wait_before_downscale_minutes = 5,
	.lfc_window_size_minutes = 5,
};

/* What the agent makes of it. Figures of the page may be off by this factor: kilobytes of 1000 bytes, 32-bit loads. */
static unsigned goal_of(const struct guest_demand *demand, double memory_factor)
{
	struct system_metrics metrics = {
		.load_average_1_min = (float)demand->load_average_1_min,
		.load_average_5_min = (float)demand->load_average_5_min,
		.memory_usage_bytes = (double)demand->memory_used_bytes * memory_factor + KERNEL_BYTES,
		.memory_cached_bytes = (double)demand->memory_cached_bytes,
	};
	struct lfc_metrics lfc = { .window_count = 60 };
	struct goal_input input = {
		.config = &SHIPPED,
		.compute_unit = { .cpu_milli = WORKLOAD_UNIT_CPU_MILLI, .mem_bytes = WORKLOAD_UNIT_BYTES },
		.system = &metrics,
	};
	struct goal goal;
	struct error err;

	for (unsigned i = 0; i < 60; i++)
		lfc.window_pages[i] = (double)demand->working_set_pages[i];
	if (demand->working_set_pages[0] != 0)
		input.lfc = &lfc;
	assert_true(goal_calculate(&input, &goal, &err));
	return goal.compute_units;
}

static struct guest_demand demand_for(enum workload_cause cause, unsigned units, unsigned held, unsigned plugged)
{
	struct workload_phase phase = { .cause = cause, .demand = units, .held = held };

	return demand_of_phase(&phase, plugged * WORKLOAD_UNIT_BYTES);
}

static void load_and_working_set_speak_for_their_units_whatever_is_plugged(void **state)
{
	(void)state;
	static const enum workload_cause causes[] = { WORKLOAD_CAUSE_LOAD, WORKLOAD_CAUSE_LFC };

	for (size_t i = 0; i < 2; i++) {
		for (unsigned units = 1; units <= 8; units++) {
			for (unsigned plugged = 1; plugged <= 8; plugged++) {
				struct guest_demand demand = demand_for(causes[i], units, 0, plugged);

				assert_int_equal(goal_of(&demand, 1), units);
				assert_int_equal(goal_of(&demand, 1000.0 / 1024), units);
				assert_int_equal(goal_of(&demand, 1.01), units);
			}
		}
	}
}

static void memory_speaks_for_its_units_once_they_are_there_and_for_more_before(void **state)
{
	(void)state;
	for (unsigned units = 1; units <= 8; units++) {
		for (unsigned plugged = 1; plugged <= 8; plugged++) {
			struct guest_demand demand = demand_for(WORKLOAD_CAUSE_MEMORY, units, 0, plugged);

			assert_true(demand.memory_used_bytes <= plugged * WORKLOAD_UNIT_BYTES * 9 / 10);
			if (plugged >= units) {
				assert_int_equal(goal_of(&demand, 1), units);
				assert_int_equal(goal_of(&demand, 1000.0 / 1024), units);
			} else {
				assert_in_range(goal_of(&demand, 1), plugged + 1, units);
			}
		}
	}
}

static enum vm_monitor_verdict ask_monitor(uint64_t used_bytes, unsigned from, unsigned to)
{
	struct vm_monitor_state state = {
		.manages_cgroup = true,
		.manages_cache = true,
		.threshold_bytes = vm_monitor_threshold_bytes(vm_monitor_usable_bytes(from * WORKLOAD_UNIT_BYTES)),
	};
	struct buffer status;
	enum vm_monitor_verdict verdict;

	vm_monitor_samples_begin(&state.samples, 0);
	for (uint64_t i = 1; i <= VM_MONITOR_SAMPLES; i++)
		vm_monitor_samples_add(&state.samples, used_bytes, i);
	buffer_init(&status, 1024);
	verdict = vm_monitor_downscale(&state, to * WORKLOAD_UNIT_BYTES, VM_MONITOR_SAMPLES, &status);
	buffer_destroy(&status);
	return verdict;
}

static void the_monitor_lets_every_downscale_to_the_demand_pass(void **state)
{
	(void)state;
	static const enum workload_cause causes[] = { WORKLOAD_CAUSE_LOAD, WORKLOAD_CAUSE_MEMORY, WORKLOAD_CAUSE_LFC };

	for (size_t i = 0; i < 3; i++) {
		for (unsigned units = 1; units < 8; units++) {
			struct guest_demand demand = demand_for(causes[i], units, 0, 8);

			assert_int_equal(ask_monitor(demand.cgroup_used_bytes, 8, units), VM_MONITOR_AGREED);
			/* And it doesn't want it back. */
			assert_true(demand.cgroup_used_bytes <
			            vm_monitor_threshold_bytes(vm_monitor_usable_bytes(units * WORKLOAD_UNIT_BYTES)));
		}
	}
}

static void the_monitor_insists_on_what_is_held_and_on_no_more(void **state)
{
	(void)state;
	for (unsigned held = 2; held <= 8; held++) {
		struct guest_demand demand = demand_for(WORKLOAD_CAUSE_LOAD, 1, held, held);

		assert_int_equal(goal_of(&demand, 1), 1);
		assert_int_equal(ask_monitor(demand.cgroup_used_bytes, 8, held), VM_MONITOR_AGREED);
		assert_int_equal(ask_monitor(demand.cgroup_used_bytes, held, held - 1), VM_MONITOR_DENIED);
		assert_true(demand.cgroup_used_bytes <
		            vm_monitor_threshold_bytes(vm_monitor_usable_bytes(held * WORKLOAD_UNIT_BYTES)));
	}
}

static void only_a_working_set_needs_the_cache_page(void **state)
{
	(void)state;
	assert_int_equal(demand_for(WORKLOAD_CAUSE_LOAD, 4, 0, 4).working_set_pages[59], 0);
	assert_int_equal(demand_for(WORKLOAD_CAUSE_MEMORY, 4, 0, 4).working_set_pages[0], 0);
	assert_true(demand_for(WORKLOAD_CAUSE_LFC, 1, 0, 4).working_set_pages[59] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_and_working_set_speak_for_their_units_whatever_is_plugged),
		cmocka_unit_test(memory_speaks_for_its_units_once_they_are_there_and_for_more_before),
		cmocka_unit_test(the_monitor_lets_every_downscale_to_the_demand_pass),
		cmocka_unit_test(the_monitor_insists_on_what_is_held_and_on_no_more),
		cmocka_unit_test(only_a_working_set_needs_the_cache_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
