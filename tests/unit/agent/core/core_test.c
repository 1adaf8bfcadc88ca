/*
 * What the recorded runs can't show: behaviour that replay doesn't have, and every way for the core to break. The
 * recorded runs themselves are compared in tests/unit/cli/replay_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/core.h"

static const int64_t SECOND = 1000000000;
static const struct revision_with_time NO_REVISION = { .updated_at_ns = RFC3339_ZERO };

static struct resources compute_units(uint16_t count)
{
	return resources_multiply((struct resources){ .cpu_milli = 500, .mem_bytes = UINT64_C(2) << 30 }, count);
}

/* Configuration K of the specification's vectors. */
static struct core_config config_k(bool clamp_instead_of_fail)
{
	return (struct core_config){
		.compute_unit = compute_units(1),
		.default_scaling_config = {
			.has_load_average_fraction_target = true,
			.load_average_fraction_target = 0.8,
			.has_memory_usage_fraction_target = true,
			.memory_usage_fraction_target = 0.6,
			.has_memory_total_fraction_target = true,
			.memory_total_fraction_target = 0.85,
			.has_enable_lfc_metrics = true,
			.has_lfc_use_largest_window = true,
			.has_lfc_to_memory_ratio = true,
			.lfc_to_memory_ratio = 0.7,
			.has_lfc_min_wait_before_downscale_minutes = true,
			.lfc_min_wait_before_downscale_minutes = 4,
			.has_lfc_window_size_minutes = true,
			.lfc_window_size_minutes = 3,
			.has_cpu_stable_zone_ratio = true,
			.has_cpu_mixed_zone_ratio = true,
		},
		.neonvm_retry_wait_ns = 6 * SECOND,
		.plugin_request_tick_ns = 12 * SECOND,
		.plugin_retry_wait_ns = 4 * SECOND,
		.plugin_denied_retry_wait_ns = 3 * SECOND,
		.monitor_denied_downscale_cooldown_ns = 9 * SECOND,
		.monitor_requested_upscale_valid_period_ns = 15 * SECOND,
		.monitor_retry_wait_ns = 5 * SECOND / 2,
		.clamp_instead_of_fail = clamp_instead_of_fail,
	};
}

static struct vm_info vm_using(uint16_t use_cu)
{
	return (struct vm_info){
		.name = "vm-a",
		.namespace = "ns",
		.cpu = { .min_milli = 500, .max_milli = 3000, .use_milli = 500u * use_cu },
		.mem = {
			.min_slots = 8,
			.max_slots = 48,
			.use_slots = (uint16_t)(8 * use_cu),
			.slot_bytes = UINT64_C(256) << 20,
		},
		.scaling_enabled = true,
	};
}

static struct core core_using_cu(uint16_t use_cu, bool clamp_instead_of_fail)
{
	struct core_config config = config_k(clamp_instead_of_fail);
	struct vm_info vm = vm_using(use_cu);
	struct core core;

	core_init(&core, &config, &vm, &(struct core_callbacks){ 0 });
	core.revision_source.offset = 41;
	return core;
}

static void check_resources(struct resources actual, struct resources expected)
{
	assert_int_equal(actual.cpu_milli, expected.cpu_milli);
	assert_int_equal(actual.mem_bytes, expected.mem_bytes);
}

static void set_load(struct core *core, double load_average_1_min)
{
	core_update_system_metrics(core, &(struct system_metrics){ .load_average_1_min = load_average_1_min });
}

static void boot(struct core *core, uint16_t permit_cu)
{
	struct error err;

	core_plugin_starting_request(core, 0, compute_units(permit_cu));
	assert_true(core_plugin_request_successful(core, SECOND / 20, NO_REVISION, compute_units(permit_cu), &err));
}

static struct core_actions next_actions(struct core *core, int64_t now_ns)
{
	struct core_actions actions;
	struct error err = { .text = "" };

	if (!core_next_actions(core, now_ns, &actions, &err))
		fail_msg("%s", err.text);
	return actions;
}

static void count_hypothetical(void *context, int64_t now_ns, uint32_t current_cu, uint32_t goal_cu,
                               const struct goal_parts *parts)
{
	unsigned *current_cus = context;

	(void)now_ns;
	(void)goal_cu;
	(void)parts;
	*current_cus += 100 + current_cu;
}

static void tv26_a_size_that_isnt_whole_units_makes_no_hypothetical_event(void **state)
{
	unsigned current_cus = 0;
	struct core_config config = config_k(true);
	struct vm_info vm = vm_using(2);
	struct core core;

	(void)state;
	/* As much CPU as 2 units, as much memory as 3. */
	vm.mem.use_slots = 24;
	core_init(&core, &config, &vm,
	          &(struct core_callbacks){ .context = &current_cus, .hypothetical_scaling = count_hypothetical });
	set_load(&core, 0.5);
	(void)next_actions(&core, SECOND);
	assert_int_equal(current_cus, 0);
	vm.mem.use_slots = 16;
	core_init(&core, &config, &vm,
	          &(struct core_callbacks){ .context = &current_cus, .hypothetical_scaling = count_hypothetical });
	set_load(&core, 0.5);
	(void)next_actions(&core, SECOND);
	assert_int_equal(current_cus, 102);
}

/* S21 up to its last event: the monitor approves 2 CU while a NeonVM downscale to 1 CU succeeds. */
static struct core approval_above_use(bool clamp_instead_of_fail)
{
	struct core core = core_using_cu(2, clamp_instead_of_fail);
	struct error err;

	core_monitor_active(&core, true);
	boot(&core, 2);
	set_load(&core, 0);
	core_monitor_starting_downscale_request(&core, SECOND, compute_units(1));
	assert_true(core_monitor_downscale_request_allowed(&core, 11 * SECOND / 10, NO_REVISION, &err));
	assert_true(next_actions(&core, 12 * SECOND / 10).has_neonvm_request);
	assert_true(core_neonvm_starting_request(&core, 12 * SECOND / 10, compute_units(1), &err));
	set_load(&core, 0.8);
	assert_true(next_actions(&core, 13 * SECOND / 10).has_monitor_upscale);
	core_monitor_starting_upscale_request(&core, 13 * SECOND / 10, compute_units(2));
	assert_true(core_neonvm_request_successful(&core, 14 * SECOND / 10, &err));
	assert_true(core_monitor_upscale_request_successful(&core, 15 * SECOND / 10, &err));
	return core;
}

static void s21_an_approval_above_what_is_in_use_fails_like_the_reference(void **state)
{
	(void)state;
	struct core core = approval_above_use(false);
	struct core_actions actions = { .wait_ns = 77 };
	struct error err;

	assert_false(core_next_actions(&core, 16 * SECOND / 10, &actions, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_string_equal(err.text, "clamp called with invalid arguments: lower bound={VCPU:1 Mem:4Gi} has field "
	                              "greater than current={VCPU:0.5 Mem:2Gi}");
	assert_int_equal(actions.wait_ns, 77);
}

static void s21_an_approval_above_what_is_in_use_lets_the_agent_go_on(void **state)
{
	(void)state;
	struct core core = approval_above_use(true);
	struct core_actions actions = next_actions(&core, 16 * SECOND / 10);

	/* 2 CU are wanted, permitted and approved: back up. */
	assert_true(actions.has_neonvm_request);
	check_resources(actions.neonvm_request.current, compute_units(1));
	check_resources(actions.neonvm_request.target, compute_units(2));
	assert_false(actions.has_monitor_upscale);
	assert_false(actions.has_monitor_downscale);

	/* And when less is wanted, the approval doesn't force more. */
	set_load(&core, 0);
	actions = next_actions(&core, 17 * SECOND / 10);
	assert_false(actions.has_neonvm_request);
	assert_true(actions.has_monitor_downscale);
	check_resources(actions.monitor_downscale.target, compute_units(1));
}

/* S22: a NeonVM request succeeded for more than the permit. */
static struct core permit_below_use(bool clamp_instead_of_fail)
{
	struct core core = core_using_cu(1, clamp_instead_of_fail);
	struct error err;

	core_monitor_active(&core, true);
	boot(&core, 1);
	assert_true(core_neonvm_starting_request(&core, SECOND, compute_units(2), &err));
	assert_true(core_neonvm_request_successful(&core, 11 * SECOND / 10, &err));
	set_load(&core, 0);
	return core;
}

static void s22_a_permit_below_what_is_in_use_fails_like_the_reference(void **state)
{
	(void)state;
	struct core core = permit_below_use(false);
	struct core_actions actions;
	struct error err;

	/* The approval of 1 CU is no bound that was passed: only the permit is. */
	assert_false(core_next_actions(&core, 12 * SECOND / 10, &actions, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_non_null(strstr(err.text, "upper bound={VCPU:0.5 Mem:2Gi} has field less than"));
}

static void s22_a_permit_below_what_is_in_use_lets_the_agent_go_on(void **state)
{
	(void)state;
	struct core core = permit_below_use(true);
	struct core_actions actions = next_actions(&core, 12 * SECOND / 10);

	/* The monitor's approval still stands at 1 CU, and that is wanted: down. The plugin is told what is in use. */
	assert_true(actions.has_neonvm_request);
	check_resources(actions.neonvm_request.target, compute_units(1));
	assert_true(actions.has_plugin_request);
	check_resources(actions.plugin_request.target, compute_units(2));

	/* More is wanted than permitted: not a bit more is taken. */
	set_load(&core, 2);
	actions = next_actions(&core, 13 * SECOND / 10);
	assert_false(actions.has_neonvm_request);
	check_resources(actions.plugin_request.target, compute_units(5));
}

static void requests_that_were_never_started_break_the_core(void **state)
{
	(void)state;
	struct core core = core_using_cu(2, true);
	struct error err = { .code = ERROR_NONE };

	assert_false(core_plugin_request_successful(&core, 0, NO_REVISION, compute_units(2), &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	err.code = ERROR_NONE;
	assert_false(core_monitor_upscale_requested(&core, 0, false, true, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	err.code = ERROR_NONE;
	assert_false(core_monitor_downscale_request_denied(&core, 0, NO_REVISION, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	core_monitor_active(&core, true);
	err.code = ERROR_NONE;
	assert_false(core_monitor_downscale_request_denied(&core, 0, NO_REVISION, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	err.code = ERROR_NONE;
	assert_false(core_monitor_downscale_request_allowed(&core, 0, NO_REVISION, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	err.code = ERROR_NONE;
	assert_false(core_monitor_upscale_request_successful(&core, 0, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	err.code = ERROR_NONE;
	assert_false(core_neonvm_request_successful(&core, 0, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
}

static void a_permit_that_isnt_acceptable_is_refused_and_counts_as_a_failure(void **state)
{
	(void)state;
	struct core core = core_using_cu(2, true);
	struct error err = { .code = ERROR_NONE };

	core_plugin_starting_request(&core, 0, compute_units(3));
	assert_false(core_plugin_request_successful(&core, SECOND, NO_REVISION, compute_units(4), &err));
	assert_int_equal(err.code, ERROR_REFUSED);
	assert_string_equal(err.text,
	                    "permit has resources greater than request ({VCPU:2 Mem:8Gi} vs. {VCPU:1.5 Mem:6Gi})");
	assert_false(core.plugin.ongoing_request);
	assert_false(core.plugin.permit.present);
	assert_true(core.plugin.last_failure_at.present);
	assert_true(core.plugin.last_failure_at.ns == SECOND);
}

static void a_vm_without_slot_size_breaks_the_core(void **state)
{
	(void)state;
	struct core core = core_using_cu(2, true);
	struct vm_info vm = vm_using(2);
	struct error err;

	vm.mem.slot_bytes = 0;
	assert_false(core_updated_vm(&core, &vm, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
}

static void an_update_without_enable_lfc_metrics_anywhere_breaks_the_core(void **state)
{
	(void)state;
	struct core core = core_using_cu(2, true);
	struct vm_info vm = vm_using(2);
	struct error err;

	core.config.default_scaling_config.has_enable_lfc_metrics = false;
	assert_false(core_updated_vm(&core, &vm, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	vm.has_scaling_config = true;
	vm.scaling_config.has_enable_lfc_metrics = true;
	assert_true(core_updated_vm(&core, &vm, &err));
}

static void ignore_scaling(void *context, int64_t now_ns, uint32_t current_cu, uint32_t target_cu)
{
	(void)context;
	(void)now_ns;
	(void)current_cu;
	(void)target_cu;
}

static void a_compute_unit_of_nothing_breaks_the_core_when_it_divides(void **state)
{
	(void)state;
	struct core core = core_using_cu(2, true);
	struct core_desired desired;
	struct error err;

	core.compute_unit.cpu_milli = 0;
	assert_true(core_desired_resources(&core, 0, &desired, &err));
	core_monitor_active(&core, true);
	assert_true(core_monitor_upscale_requested(&core, 0, false, true, &err));
	assert_false(core_desired_resources(&core, SECOND, &desired, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);

	core.callbacks.actual_scaling = ignore_scaling;
	assert_false(core_neonvm_starting_request(&core, 0, compute_units(1), &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
}

static void too_many_windows_are_cut_off_rather_than_written_beyond(void **state)
{
	(void)state;
	struct core core = core_using_cu(2, true);
	static struct lfc_metrics lfc = { .window_count = LFC_WINDOWS_MAX + 5 };

	core_update_lfc_metrics(&core, &lfc);
	assert_int_equal(core.lfc_metrics.window_count, LFC_WINDOWS_MAX);
}

static void the_revision_source_starts_at_the_revision_of_the_vm(void **state)
{
	(void)state;
	struct core_config config = config_k(true);
	struct vm_info vm = vm_using(1);
	struct core core;

	core_init(&core, &config, &vm, &(struct core_callbacks){ 0 });
	assert_int_equal(revision_source_next(&core.revision_source, 0, 0).value, 1);
	vm.has_current_revision = true;
	vm.current_revision.revision.value = 12;
	core_init(&core, &config, &vm, &(struct core_callbacks){ 0 });
	assert_int_equal(revision_source_next(&core.revision_source, 0, 0).value, 13);
	assert_true(core.neonvm.target_revision.updated_at_ns == RFC3339_ZERO);
}

/* Answers that nobody should give: a "downscale" to more than there is, denied, then an approval of even more. */
static void a_downscale_to_where_it_was_just_denied_breaks_the_core(void **state)
{
	(void)state;
	struct core core = core_using_cu(4, true);
	struct core_actions actions;
	struct error err;

	core.vm.cpu.max_milli = 1500;
	core.vm.mem.max_slots = 24;
	core_monitor_active(&core, true);
	boot(&core, 4);
	set_load(&core, 0);
	core_monitor_starting_downscale_request(&core, SECOND, compute_units(5));
	assert_true(core_monitor_downscale_request_denied(&core, SECOND, NO_REVISION, &err));
	core_monitor_starting_upscale_request(&core, SECOND, compute_units(5));
	assert_true(core_monitor_upscale_request_successful(&core, SECOND, &err));
	assert_false(core_next_actions(&core, 2 * SECOND, &actions, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_string_equal(err.text, "wanted a downscale that the vm-monitor has just denied");
	/* Once the denial is old, it's a downscale like any other. */
	assert_true(core_next_actions(&core, 20 * SECOND, &actions, &err));
	assert_true(actions.has_monitor_downscale);
}

static void what_is_in_use_can_be_corrected_between_requests(void **state)
{
	struct core core = core_using_cu(2, true);
	struct core_actions actions;
	struct error err;

	(void)state;
	boot(&core, 2);
	core_monitor_active(&core, true);
	set_load(&core, 0.3);
	assert_true(core_correct_using(&core, compute_units(4), &err));
	check_resources(core_using(&core), compute_units(4));
	/* It shrinks to what the load needs, as any VM of that size: the monitor has agreed to 2 already. */
	actions = next_actions(&core, SECOND);
	assert_true(actions.has_neonvm_request);
	check_resources(actions.neonvm_request.current, compute_units(4));
	check_resources(actions.neonvm_request.target, compute_units(2));
	assert_true(core_neonvm_starting_request(&core, SECOND, actions.neonvm_request.target, &err));
	assert_false(core_correct_using(&core, compute_units(3), &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
}

static void a_core_is_a_value(void **state)
{
	(void)state;
	struct core core = core_using_cu(2, true);

	boot(&core, 2);
	set_load(&core, 1.2);

	struct core copy = core;
	struct core_actions first = next_actions(&core, SECOND);
	struct core_actions second = next_actions(&copy, SECOND);

	assert_true(first.has_plugin_request && second.has_plugin_request);
	check_resources(first.plugin_request.target, second.plugin_request.target);
	assert_int_equal(first.plugin_request.target_revision.revision.value,
	                 second.plugin_request.target_revision.revision.value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s21_an_approval_above_what_is_in_use_fails_like_the_reference),
		cmocka_unit_test(s21_an_approval_above_what_is_in_use_lets_the_agent_go_on),
		cmocka_unit_test(s22_a_permit_below_what_is_in_use_fails_like_the_reference),
		cmocka_unit_test(s22_a_permit_below_what_is_in_use_lets_the_agent_go_on),
		cmocka_unit_test(requests_that_were_never_started_break_the_core),
		cmocka_unit_test(a_permit_that_isnt_acceptable_is_refused_and_counts_as_a_failure),
		cmocka_unit_test(a_vm_without_slot_size_breaks_the_core),
		cmocka_unit_test(an_update_without_enable_lfc_metrics_anywhere_breaks_the_core),
		cmocka_unit_test(tv26_a_size_that_isnt_whole_units_makes_no_hypothetical_event),
		cmocka_unit_test(a_compute_unit_of_nothing_breaks_the_core_when_it_divides),
		cmocka_unit_test(too_many_windows_are_cut_off_rather_than_written_beyond),
		cmocka_unit_test(the_revision_source_starts_at_the_revision_of_the_vm),
		cmocka_unit_test(a_downscale_to_where_it_was_just_denied_breaks_the_core),
		cmocka_unit_test(what_is_in_use_can_be_corrected_between_requests),
		cmocka_unit_test(a_core_is_a_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
