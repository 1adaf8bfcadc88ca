/*
 * The NeonVM controller of late 2023 (spec surroundings 3.4, last paragraph; N10), over TLS with a client as the agent has
 * it, at the original's speed on a clock that is moved on.
 */
#include "plane_fixture.h"

#include "sandbox/vm_view.h"

#define CPU_PATCH(value) "{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":" value "}"
#define SLOTS_PATCH(value) "{\"op\":\"replace\",\"path\":\"/spec/guest/memorySlots/use\",\"value\":" value "}"

static int late_set_up(void **state)
{
	*state = plane_fixture_create_late_2023();
	return 0;
}

static struct control_plane_vm_state state_of(const struct plane_fixture *fixture)
{
	struct control_plane_vm_state vm_state;

	assert_true(control_plane_vm_state(fixture->plane, "pine", &vm_state));
	return vm_state;
}

static void change(struct plane_fixture *fixture, const char *body)
{
	struct reply reply = patch(fixture, PINE, body);

	expect_status(&reply, 200);
	fixture->told[0] = '\0';
}

static void memory_goes_slot_by_slot(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply vm;

	add_pine(fixture);
	pass_ms(fixture, 2000);
	change(fixture, "[" SLOTS_PATCH("5") "]");
	pass_ms(fixture, 4000);
	assert_false(state_of(fixture).scaling);
	assert_int_equal(state_of(fixture).memory_plugged_bytes, UINT64_C(5) << 30);
	assert_non_null(strstr(fixture->told, "resized pine 500m 3072Mi\n"));
	assert_non_null(strstr(fixture->told, "resized pine 500m 4096Mi\n"));
	change(fixture, "[" SLOTS_PATCH("2") "]");
	pass_ms(fixture, 6000);
	assert_int_equal(state_of(fixture).memory_plugged_bytes, UINT64_C(2) << 30);
	assert_non_null(strstr(fixture->told, "resized pine 500m 4096Mi\nresized pine 500m 3072Mi\n"));
	vm = get(fixture, PINE);
	expect_json(vm.root, "/status/phase", "\"Running\"");
	expect_json(vm.root, "/status/memorySize", "\"2Gi\"");
	expect_json(vm.root, "/status/currentRevision", NULL);
}

static void a_quota_alone_is_set_without_scaling(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply vm;

	add_pine(fixture);
	pass_ms(fixture, 2000);
	change(fixture, "[" CPU_PATCH("\"750m\"") "]");
	pass_ms(fixture, 500);
	vm = get(fixture, PINE);
	expect_json(vm.root, "/status/phase", "\"Running\"");
	expect_json(vm.root, "/status/cpus", "\"750m\"");
	assert_null(strstr(fixture->told, "Scaling"));
}

static void whole_cpus_go_through_scaling(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply vm;

	add_pine(fixture);
	pass_ms(fixture, 2000);
	change(fixture, "[" CPU_PATCH("\"1250m\"") "]");
	pass_ms(fixture, 4000);
	vm = get(fixture, PINE);
	expect_json(vm.root, "/status/phase", "\"Running\"");
	expect_json(vm.root, "/status/cpus", "\"1250m\"");
	assert_non_null(strstr(fixture->told, "phase pine Scaling\n"));
	change(fixture, "[" CPU_PATCH("\"500m\"") "]");
	pass_ms(fixture, 4000);
	assert_int_equal(state_of(fixture).cpu_plugged_milli, 500);
}

static void n10_a_slot_that_stays_is_written_back_to_the_spec(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct reply reply;

	vm.slots_use = 5;
	add_vm(fixture, &vm);
	assert_true(control_plane_set_shrink(fixture->plane, "pine", UINT64_C(3) << 30, 0));
	pass_ms(fixture, 2000);
	change(fixture, "[" SLOTS_PATCH("2") "]");
	pass_ms(fixture, 8000);
	reply = get(fixture, PINE);
	expect_json(reply.root, "/spec/guest/memorySlots/use", "3");
	expect_json(reply.root, "/status/phase", "\"Running\"");
	expect_json(reply.root, "/status/memorySize", "\"3Gi\"");
	/* It was no patch of the agent's. */
	assert_int_equal(state_of(fixture).patches, 1);
	/* And a later wish is carried out. */
	change(fixture, "[" SLOTS_PATCH("4") "]");
	pass_ms(fixture, 4000);
	assert_int_equal(state_of(fixture).memory_plugged_bytes, UINT64_C(4) << 30);
	assert_false(state_of(fixture).scaling);
}

static void a_restart_clears_the_phase_and_counts_nothing(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply vm;
	struct error err;

	add_pine(fixture);
	pass_ms(fixture, 2000);
	fixture->told[0] = '\0';
	assert_true(control_plane_restart_vm(fixture->plane, "pine", &err));
	pass_ms(fixture, 15000);
	vm = get(fixture, PINE);
	expect_json(vm.root, "/status/phase", "\"Running\"");
	assert_int_equal(state_of(fixture).memory_plugged_bytes, UINT64_C(2) << 30);
	assert_int_equal(state_of(fixture).restarts, 0);
	assert_non_null(strstr(fixture->told, "phase pine Failed\nphase pine \n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(memory_goes_slot_by_slot, late_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_quota_alone_is_set_without_scaling, late_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(whole_cpus_go_through_scaling, late_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(n10_a_slot_that_stays_is_written_back_to_the_spec, late_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_restart_clears_the_phase_and_counts_nothing, late_set_up,
		                                plane_tear_down),
	};

	return cmocka_run_group_tests_name("neonvm_2023", tests, NULL, NULL);
}
