/*
 * Which generation goes with which plugin, the configuration that follows, and the demands of late 2023 against what
 * reads them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/config.h"
#include "agent/core/goal.h"
#include "sandbox/agent_config_2023.h"
#include "sandbox/agent_setup.h"
#include "sandbox/demand.h"
#include "sandbox/generation.h"
#include "sandbox/vm_monitor_decision.h"
#include "sandbox/workload.h"

static bool read(struct sandbox_generation *generation, bool late_2023, const char *plugin, const char *prefix,
                 struct error *err)
{
	*generation = (struct sandbox_generation){ .late_2023 = late_2023 };
	return sandbox_generation_read(generation, plugin, prefix, err);
}

static void check_pair(bool late_2023, const char *plugin, uint32_t version)
{
	struct sandbox_generation generation;
	struct error err;
	bool legal = read(&generation, late_2023, plugin, NULL, &err);

	if (legal != (version != 0))
		fail_msg("%d %s", late_2023, plugin);
	if (!legal) {
		assert_non_null(strstr(err.text, "refuses requests without a compute unit"));
		return;
	}
	assert_true(generation.negotiates);
	assert_string_equal(sandbox_generation_plugin(&generation)->name, plugin);
	assert_int_equal(sandbox_generation_version(&generation), version);
}

static void generations_and_plugins_go_together_as_the_help_says(void **state)
{
	(void)state;
	static const struct {
		const char *plugin;
		uint32_t a, b; /* protoVersion; 0: refused */
	} pairs[] = {
		{ "v0.19", 3, 3 }, { "v0.21", 3, 4 }, { "v0.22", 3, 5 },  { "v0.25", 3, 6 },
		{ "v0.27", 0, 6 }, { "v0.41", 0, 7 }, { "newest", 0, 7 },
	};

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		check_pair(true, pairs[i].plugin, pairs[i].a);
		check_pair(false, pairs[i].plugin, pairs[i].b);
	}
}

static void without_options_each_generation_has_its_own(void **state)
{
	(void)state;
	struct sandbox_generation generation;
	struct error err;

	assert_true(read(&generation, false, NULL, NULL, &err));
	assert_string_equal(sandbox_generation_name(&generation), "B");
	assert_string_equal(sandbox_generation_plugin(&generation)->name, "newest");
	assert_string_equal(sandbox_generation_prefix(&generation), "host_");
	assert_false(generation.negotiates);
	assert_int_equal(sandbox_generation_version(&generation), 7);
	assert_true(read(&generation, true, NULL, "node_", &err));
	assert_string_equal(sandbox_generation_name(&generation), "A");
	assert_string_equal(sandbox_generation_plugin(&generation)->name, "v0.19");
	assert_string_equal(sandbox_generation_prefix(&generation), "node_");
	assert_int_equal(sandbox_generation_version(&generation), 3);
}

static void nonsense_is_refused_with_what_would_do(void **state)
{
	(void)state;
	struct sandbox_generation generation;
	struct error err;

	assert_false(read(&generation, false, "v0.20", NULL, &err));
	assert_non_null(strstr(err.text, "\"v0.20\" is none of v0.19, v0.21, v0.22, v0.25, v0.27, v0.41, newest"));
	assert_false(read(&generation, true, NULL, "my_", &err));
	assert_non_null(strstr(err.text, "\"my_\" is none of host_, node_"));
	assert_false(read(&generation, false, NULL, "node_", &err));
	assert_non_null(strstr(err.text, "generation B knows metrics that begin with host_ only"));
}

/* ---- configurations ---- */

static void check_config(const struct sandbox_generation *generation, enum agent_generation expected,
                         enum plugin_protocol protocol)
{
	struct agent_setup setup;
	struct agent_config config;
	struct slice error_text;
	struct arena arena;
	struct error err;
	char path[AGENT_SETUP_PATH_BYTES + 16];

	assert_true(agent_setup_create(&setup, 4, generation, NULL, "t", SLICE("c"), &err));
	(void)snprintf(path, sizeof path, "%s/config.json", setup.folder);
	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	if (!agent_config_load(path, &arena, &config, &error_text, &err))
		fail_msg("%.*s", SLICE_ARGS(error_text));
	assert_int_equal(config.generation, expected);
	assert_int_equal(config.scheduler.protocol, protocol);
	assert_int_equal(config.scheduler.compute_unit_configured, expected == AGENT_GENERATION_B);
	if (expected == AGENT_GENERATION_A) {
		assert_string_equal(config.metrics_prefix, "node_");
		assert_false(config.billing.present);
		assert_true(config.dump.present);
		/* 10 s, 5 s and 5 s of the shipped ones, at four times the speed. */
		assert_int_equal(config.neonvm.request_timeout_ns / 1000000000, 3);
		assert_int_equal(config.system_metrics.seconds_between_requests, 2);
		assert_int_equal(config.core.plugin_request_tick_ns / 1000000000, 2);
	}
	arena_destroy(&arena);
	agent_setup_remove(&setup);
}

static void the_agent_finds_the_configuration_of_its_generation(void **state)
{
	(void)state;
	struct sandbox_generation generation;
	struct error err;

	assert_true(read(&generation, true, NULL, "node_", &err));
	check_config(&generation, AGENT_GENERATION_A, PLUGIN_PROTOCOL_2_0);
	assert_true(read(&generation, true, "v0.19", "node_", &err));
	check_config(&generation, AGENT_GENERATION_A, PLUGIN_PROTOCOL_AUTO);
	assert_true(read(&generation, false, NULL, NULL, &err));
	check_config(&generation, AGENT_GENERATION_B, PLUGIN_PROTOCOL_5_0);
	assert_true(read(&generation, false, "v0.41", NULL, &err));
	check_config(&generation, AGENT_GENERATION_B, PLUGIN_PROTOCOL_AUTO);
}

/* ---- demands ---- */

/* What the agent of late 2023 makes of the page. */
static unsigned goal_of(const struct guest_demand *demand)
{
	static const double KERNEL_BYTES = 104857600;
	const struct scaling_config shipped = {
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
		.load_average_fraction_target = 0.9,
		.memory_usage_fraction_target = 0.75,
		.memory_total_fraction_target = 0.9,
		.lfc_to_memory_ratio = 0.75,
		.lfc_min_wait_before_downscale_minutes = 5,
		.lfc_window_size_minutes = 5,
	};
	struct system_metrics metrics = {
		.load_average_1_min = (float)demand->load_average_1_min,
		.load_average_5_min = (float)demand->load_average_5_min,
		.memory_usage_bytes = (double)demand->memory_used_bytes + KERNEL_BYTES,
	};
	const struct goal_input input = {
		.config = &shipped,
		.compute_unit = { .cpu_milli = WORKLOAD_UNIT_CPU_MILLI, .mem_bytes = WORKLOAD_UNIT_BYTES },
		.whole_unit_parts = true,
		.system = &metrics,
	};
	struct goal goal;
	struct error err;

	assert_true(goal_calculate(&input, &goal, &err));
	return goal.compute_units > 0 ? goal.compute_units : 1; /* a VM's minimum */
}

static struct guest_demand demand_for(enum workload_cause cause, unsigned units, unsigned held, unsigned plugged)
{
	const struct workload_phase phase = { .cause = cause, .demand = units, .held = held };

	return demand_of_phase_2023(&phase, plugged * WORKLOAD_UNIT_BYTES);
}

static uint64_t threshold_of(unsigned units)
{
	const struct vm_monitor_state state = { .manages_cgroup = true, .manages_cache = true, .late_2023 = true };

	return vm_monitor_state_threshold_bytes(&state, vm_monitor_usable_bytes(units * WORKLOAD_UNIT_BYTES));
}

static enum vm_monitor_verdict ask_monitor(uint64_t used_bytes, unsigned to)
{
	struct vm_monitor_state state = { .manages_cgroup = true, .manages_cache = true, .late_2023 = true };
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

/* Surroundings 2.4. */
static void the_monitor_s_threshold_leaves_room_for_the_cache(void **state)
{
	(void)state;
	assert_int_equal(threshold_of(2), UINT64_C(487) << 20);
	assert_int_equal(threshold_of(4), UINT64_C(999) << 20);
}

static void load_speaks_for_its_units_and_leaves_the_monitor_alone(void **state)
{
	(void)state;
	for (unsigned units = 1; units <= 8; units++) {
		for (unsigned plugged = 1; plugged <= 8; plugged++) {
			struct guest_demand demand = demand_for(WORKLOAD_CAUSE_LOAD, units, 0, plugged);

			assert_int_equal(goal_of(&demand), units);
			assert_true(demand.cgroup_used_bytes < threshold_of(1));
			assert_int_equal(ask_monitor(demand.cgroup_used_bytes, units), VM_MONITOR_AGREED);
		}
	}
}

static void memory_speaks_for_its_units_once_they_are_there_and_the_monitor_before(void **state)
{
	(void)state;
	for (unsigned units = 1; units <= 8; units++) {
		for (unsigned plugged = 1; plugged <= 8; plugged++) {
			struct guest_demand demand = demand_for(WORKLOAD_CAUSE_MEMORY, units, 0, plugged);

			assert_true(goal_of(&demand) <= units);
			if (plugged >= units)
				assert_int_equal(goal_of(&demand), units);
			/* It asks for more as long as there is less. */
			assert_int_equal(demand.cgroup_used_bytes >= threshold_of(plugged), plugged < units);
			assert_int_equal(ask_monitor(demand.cgroup_used_bytes, units), VM_MONITOR_AGREED);
		}
	}
}

static void the_monitor_insists_on_what_is_held_and_on_no_more(void **state)
{
	(void)state;
	for (unsigned held = 2; held <= 8; held++) {
		struct guest_demand demand = demand_for(WORKLOAD_CAUSE_LOAD, 1, held, 8);

		assert_int_equal(goal_of(&demand), 1);
		assert_int_equal(ask_monitor(demand.cgroup_used_bytes, held), VM_MONITOR_AGREED);
		assert_int_equal(ask_monitor(demand.cgroup_used_bytes, held - 1), VM_MONITOR_DENIED);
		assert_true(demand.cgroup_used_bytes < threshold_of(held));
	}
}

static void a_working_set_has_no_say_but_its_page_is_there(void **state)
{
	(void)state;
	struct guest_demand demand = demand_for(WORKLOAD_CAUSE_LFC, 6, 0, 1);
	const struct workload_options options = {
		.seed = 3, .vms = 7, .nodes = 1, .speed = 4, .generation = { .late_2023 = true }
	};
	struct workload *workload;
	struct error err;

	assert_int_equal(goal_of(&demand), 1);
	assert_true(demand.working_set_pages[0] > 0);
	workload = workload_create(&options, &err);
	assert_non_null(workload);
	assert_int_equal(workload->vms[4].kind, WORKLOAD_LFC);
	for (unsigned i = 0; i < WORKLOAD_PHASES; i++) {
		assert_true(workload->vms[4].phases[i].demand > 0);
		assert_int_equal(workload->vms[4].phases[i].expected, workload->vms[4].min);
	}
	workload_destroy(workload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generations_and_plugins_go_together_as_the_help_says),
		cmocka_unit_test(without_options_each_generation_has_its_own),
		cmocka_unit_test(nonsense_is_refused_with_what_would_do),
		cmocka_unit_test(the_agent_finds_the_configuration_of_its_generation),
		cmocka_unit_test(the_monitor_s_threshold_leaves_room_for_the_cache),
		cmocka_unit_test(load_speaks_for_its_units_and_leaves_the_monitor_alone),
		cmocka_unit_test(memory_speaks_for_its_units_once_they_are_there_and_the_monitor_before),
		cmocka_unit_test(the_monitor_insists_on_what_is_held_and_on_no_more),
		cmocka_unit_test(a_working_set_has_no_say_but_its_page_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
