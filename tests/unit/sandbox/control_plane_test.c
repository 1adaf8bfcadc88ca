/*
 * Spec surroundings 8.3 (N1 … N9) and 3.6, over TLS with a client as the agent has it, at the original's speed on a clock that is moved on.
 */
#include "plane_fixture.h"

#include "sandbox/vm_view.h"

#define REVISION_42 "{\"revision\":{\"value\":42,\"flags\":1},\"updatedAt\":\"2025-03-04T05:06:07Z\"}"
#define REVISION_43 "{\"revision\":{\"value\":43,\"flags\":0},\"updatedAt\":\"2025-03-04T05:06:09Z\"}"
#define CPU_PATCH(value) "{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":" value "}"
#define SLOTS_PATCH(value) "{\"op\":\"replace\",\"path\":\"/spec/guest/memorySlots/use\",\"value\":" value "}"
#define REVISION_PATCH(value) "{\"op\":\"replace\",\"path\":\"/spec/targetRevision\",\"value\":" value "}"
#define N1_PATCH "[" CPU_PATCH("\"1250m\"") "," SLOTS_PATCH("5") "," REVISION_PATCH(REVISION_42) "]"

/* Pine, long settled, and its watch. */
static struct watching *begin(struct plane_fixture *fixture)
{
	add_pine(fixture);
	pass_ms(fixture, 1000);
	return watch_vms(fixture);
}

/* Its clock begins with the patch. */
static struct reply timed_patch(struct watching *watching, const char *body)
{
	struct reply reply = patch(watching->fixture, PINE, body);

	expect_status(&reply, 200);
	watching->since_ms = now_ms();
	return reply;
}

static void a_vm_begins_as_a_real_one_looks(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply vm;
	struct reply pod;
	struct control_plane_vm_state vm_state;

	add_pine(fixture);
	pass_ms(fixture, 1000);
	vm = get(fixture, PINE);
	expect_status(&vm, 200);
	assert_in_range(vm.body.length, 2048, 10240);
	expect_json(vm.root, "/apiVersion", "\"vm.neon.tech/v1\"");
	expect_json(vm.root, "/metadata/generation", "1");
	expect_json(vm.root, "/metadata/labels",
	            "{\"autoscaling.neon.tech/enabled\":\"true\",\"neon/endpoint-id\":\"ep-pine\"}");
	expect_json(vm.root, "/spec/guest/cpus", "{\"max\":2,\"min\":\"250m\",\"use\":\"500m\"}");
	expect_json(vm.root, "/spec/guest/memorySlots", "{\"max\":8,\"min\":1,\"use\":2}");
	expect_json(vm.root, "/spec/guest/memorySlotSize", "\"1Gi\"");
	expect_json(vm.root, "/spec/schedulerName", "\"autoscale-scheduler\"");
	expect_json(vm.root, "/spec/cpuScalingMode", "\"QmpScaling\"");
	expect_json(vm.root, "/spec/targetRevision", NULL);
	expect_json(vm.root, "/status/phase", "\"Running\"");
	expect_json(vm.root, "/status/podName", "\"pine-x7k2p\"");
	expect_json(vm.root, "/status/podIP", "\"127.9.0.5\"");
	expect_json(vm.root, "/status/node", "\"node-a\"");
	expect_json(vm.root, "/status/cpus", "\"500m\"");
	expect_json(vm.root, "/status/memorySize", "\"2Gi\"");
	expect_json(vm.root, "/status/restartCount", "0");
	expect_json(vm.root, "/status/currentRevision", NULL);
	assert_non_null(json_tree_find(vm.root, "/metadata/managedFields/0"));

	pod = get(fixture, "/api/v1/namespaces/apps/pods/pine-x7k2p");
	expect_status(&pod, 200);
	expect_json(
		pod.root, "/metadata/labels",
		"{\"app.kubernetes.io/name\":\"NeonVM\",\"autoscaling.neon.tech/enabled\":\"true\",\"neon/endpoint-id\":\"ep-pine\","
		"\"vm.neon.tech/name\":\"pine\"}");
	expect_json(pod.root, "/metadata/annotations/vm.neon.tech~1usage",
	            "\"{\\\"cpu\\\":\\\"500m\\\",\\\"memory\\\":\\\"2Gi\\\"}\"");
	expect_json(
		pod.root, "/metadata/annotations/vm.neon.tech~1resources",
		"\"{\\\"cpus\\\":{\\\"min\\\":\\\"250m\\\",\\\"max\\\":2,\\\"use\\\":\\\"500m\\\"},\\\"memorySlots\\\":{\\\"min\\\":1,"
		"\\\"max\\\":8,\\\"use\\\":2},\\\"memorySlotSize\\\":\\\"1Gi\\\"}\"");
	expect_json(pod.root, "/metadata/ownerReferences/0/kind", "\"VirtualMachine\"");
	expect_json(pod.root, "/spec/nodeName", "\"node-a\"");
	expect_json(pod.root, "/status/phase", "\"Running\"");
	assert_true(json_tree_equal(json_tree_find(pod.root, "/metadata/ownerReferences/0/uid"),
	                            json_tree_find(vm.root, "/metadata/uid")));

	assert_true(control_plane_vm_state(fixture->plane, "pine", &vm_state));
	assert_int_equal(vm_state.cpu_use_milli, 500);
	assert_int_equal(vm_state.slots_use, 2);
	assert_int_equal(vm_state.cpu_plugged_milli, 500);
	assert_int_equal(vm_state.memory_plugged_bytes, UINT64_C(2) << 30);
	assert_false(vm_state.scaling);
	assert_string_equal(vm_state.phase, "Running");
	assert_false(control_plane_vm_state(fixture->plane, "oak", &vm_state));
	assert_string_equal(fixture->told, "");
}

/* N1 */
static void a_patch_is_carried_out_step_by_step(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct reply reply = timed_patch(watching, N1_PATCH);
	struct control_plane_vm_state vm_state;
	struct json_node *event;

	expect_json(reply.root, "/metadata/generation", "2");
	expect_json(reply.root, "/status/phase", "\"Running\"");
	event = expect_event(watching, 0, "MODIFIED");
	assert_true(json_tree_equal(event, reply.root));

	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Scaling\"");
	expect_json(event, "/status/cpus", "\"500m\"");
	expect_json(event, "/status/memorySize", "\"2Gi\"");
	expect_json(event, "/metadata/generation", "2");
	assert_in_range(watching->at_ms, 5, 400);

	event = expect_event(watching, 2000, "MODIFIED");
	expect_json(event, "/status/phase", "\"Scaling\"");
	expect_json(event, "/status/cpus", "\"500m\"");
	expect_json(event, "/status/memorySize", "\"5Gi\"");
	expect_json(event, "/status/currentRevision", NULL);
	assert_in_range(watching->at_ms, 1000, 2500);

	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Running\"");
	expect_json(event, "/status/cpus", "\"1250m\"");
	expect_json(event, "/status/memorySize", "\"5Gi\"");
	expect_json(event, "/status/currentRevision/revision", "{\"flags\":1,\"value\":42}");
	assert_int_equal(json_tree_text(json_tree_find(event, "/status/currentRevision/updatedAt")).length,
	                 sizeof "2025-03-04T05:06:07Z" - 1);
	assert_in_range(watching->at_ms, 1010, 3000);
	expect_no_event(watching, 20000);

	/* The guest had its memory as soon as it was asked for, before anybody could see it. */
	assert_string_equal(
		fixture->told,
		"patched pine 500/2 1250/5\nphase pine Scaling\nresized pine 500m 5120Mi\nresized pine 1250m 5120Mi\n"
		"phase pine Running\nresized pine 1250m 5120Mi settled\n");
	assert_true(control_plane_vm_state(fixture->plane, "pine", &vm_state));
	assert_int_equal(vm_state.patches, 1);
	assert_int_equal(vm_state.target_revision, 42);
	assert_int_equal(vm_state.current_revision, 42);
	assert_int_equal(vm_state.cpu_plugged_milli, 1250);
	watch_close(watching);
}

/* N2 */
static void a_revision_alone_is_confirmed_without_scaling(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct json_node *event;

	(void)timed_patch(watching, "[" REVISION_PATCH(REVISION_43) "]");
	expect_event(watching, 0, "MODIFIED");
	event = expect_event(watching, 200, "MODIFIED");
	assert_in_range(watching->at_ms, 5, 400);
	expect_json(event, "/status/phase", "\"Running\"");
	expect_json(event, "/status/currentRevision/revision", "{\"flags\":0,\"value\":43}");

	/* Only updatedAt: stored, but not confirmed. */
	(void)timed_patch(
		watching,
		"[{\"op\":\"replace\",\"path\":\"/spec/targetRevision/updatedAt\",\"value\":\"2025-03-04T06:00:00Z\"}]");
	expect_event(watching, 0, "MODIFIED");
	expect_no_event(watching, 20000);

	/* A smaller one is copied as well. */
	(void)timed_patch(watching, "[" REVISION_PATCH(REVISION_42) "]");
	expect_event(watching, 0, "MODIFIED");
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/currentRevision/revision/value", "42");
	assert_string_equal(fixture->told, "");
	watch_close(watching);
}

/* N3 */
static void memory_that_the_guest_keeps_holds_up_scaling_until_a_new_patch(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct watching *watching;
	struct json_node *event;
	struct control_plane_vm_state vm_state;
	uint64_t bytes = UINT64_C(5) << 30;
	int steps = 0;

	vm.slots_use = 5;
	add_vm(fixture, &vm);
	assert_true(control_plane_set_shrink(fixture->plane, "pine", UINT64_C(3448) << 20, UINT64_C(400) << 20));
	assert_false(control_plane_set_shrink(fixture->plane, "oak", 0, 0));
	pass_ms(fixture, 1000);
	watching = watch_vms(fixture);
	(void)timed_patch(watching, "[" SLOTS_PATCH("2") "," REVISION_PATCH(REVISION_42) "]");
	expect_event(watching, 0, "MODIFIED");
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Scaling\"");

	while (bytes > UINT64_C(3448) << 20) {
		uint64_t before = bytes;

		event = expect_event(watching, 3000, "MODIFIED");
		assert_true(vm_view_bytes(json_tree_find(event, "/status/memorySize"), &bytes));
		assert_true(bytes < before);
		assert_int_equal(bytes % (8 << 20), 0);
		expect_json(event, "/status/phase", "\"Scaling\"");
		expect_json(event, "/status/currentRevision", NULL);
		steps++;
	}
	expect_json(event, "/status/memorySize", "\"3448Mi\"");
	assert_true(control_plane_vm_state(fixture->plane, "pine", &vm_state));
	assert_true(vm_state.scaling);
	assert_int_equal(vm_state.memory_plugged_bytes, UINT64_C(3448) << 20);
	assert_in_range(steps, 3, 500);
	expect_no_event(watching, 30000);

	(void)timed_patch(watching, "[" SLOTS_PATCH("4") "]");
	expect_event(watching, 0, "MODIFIED");
	event = expect_event(watching, 3000, "MODIFIED");
	expect_json(event, "/status/phase", "\"Running\"");
	expect_json(event, "/status/memorySize", "\"4Gi\"");
	expect_json(event, "/status/currentRevision/revision/value", "42");
	watch_close(watching);
}

/* N4, N5: the texts are in tests/vectors/sandbox/vm_refusals.txt. */
static void a_refused_patch_leaves_everything_as_it_was(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct reply reply = patch(fixture, PINE, "[" CPU_PATCH("\"2500m\"") "]");
	struct control_plane_vm_state vm_state;

	expect_message(
		&reply, 403,
		"admission webhook \"vvirtualmachine.kb.io\" denied the request: .cpus.use (2.5) should be less than or equal to the "
		".cpus.max (2)");
	expect_json(reply.root, "/details", NULL);
	reply = patch(fixture, PINE, "[" SLOTS_PATCH("0") "," CPU_PATCH("\"2500m\"") "]");
	expect_message(&reply, 422,
	               "VirtualMachine.vm.neon.tech \"pine\" is invalid: spec.guest.memorySlots.use: Invalid value: 0: "
	               "spec.guest.memorySlots.use in body should be greater than or equal to 1");
	expect_json(
		reply.root, "/details/causes",
		"[{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value: 0: spec.guest.memorySlots.use in body should be greater than "
		"or equal to 1\",\"field\":\"spec.guest.memorySlots.use\"}]");
	expect_no_event(watching, 2000);
	assert_true(control_plane_vm_state(fixture->plane, "pine", &vm_state));
	assert_int_equal(vm_state.refused_patches, 2);
	assert_int_equal(vm_state.patches, 0);
	watch_close(watching);
}

static void a_webhook_that_cant_be_reached_fails_every_write(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply reply;

	add_pine(fixture);
	control_plane_set_webhook_available(fixture->plane, false);
	reply = patch(fixture, PINE, N1_PATCH);
	expect_message(
		&reply, 500,
		"Internal error occurred: failed calling webhook \"vvirtualmachine.kb.io\": Post "
		"\"https://neonvm-webhook-service.neonvm-system.svc:443/validate-vm-neon-tech-v1-virtualmachine?timeout=10s\": dial tcp "
		"10.96.12.34:443: connect: connection refused");
	expect_json(reply.root, "/reason", "\"InternalError\"");
	control_plane_set_webhook_available(fixture->plane, true);
	reply = patch(fixture, PINE, N1_PATCH);
	expect_status(&reply, 200);
}

/* N6 */
static void the_same_patch_again_is_no_event(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct reply first;
	struct reply second;

	(void)timed_patch(watching, N1_PATCH);
	for (int i = 0; i < 4; i++)
		expect_event(watching, 2000, "MODIFIED");
	first = get(fixture, PINE);
	second = timed_patch(watching, N1_PATCH);
	assert_string_equal(version_of(fixture, first.root), version_of(fixture, second.root));
	expect_no_event(watching, 2000);
	watch_close(watching);
}

/* N7 */
static void a_killed_pod_leads_to_a_restart_from_the_minimum(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct json_node *event;
	struct reply pods;
	struct control_plane_vm_state vm_state;
	char old_pod[] = "\"pine-x7k2p\"";
	struct error err;

	(void)timed_patch(watching, "[" REVISION_PATCH(REVISION_43) "]");
	expect_event(watching, 0, "MODIFIED");
	expect_event(watching, 200, "MODIFIED");
	watching->since_ms = now_ms();
	assert_true(control_plane_restart_vm(fixture->plane, "pine", &err));
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Failed\"");
	expect_json(event, "/status/podName", old_pod);
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Pending\"");
	expect_json(event, "/status/restartCount", "1");
	expect_json(event, "/status/podName", NULL);
	expect_json(event, "/status/podIP", NULL);
	expect_json(event, "/status/node", NULL);
	expect_json(event, "/status/cpus", NULL);
	expect_json(event, "/status/memorySize", NULL);
	expect_json(event, "/status/currentRevision/revision/value", "43");
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Pending\"");
	assert_true(slice_starts_with(json_tree_text(json_tree_find(event, "/status/podName")), SLICE("pine-")));
	assert_false(slice_equal_text(json_tree_text(json_tree_find(event, "/status/podName")), "pine-x7k2p"));
	event = expect_event(watching, 10000, "MODIFIED");
	assert_in_range(watching->at_ms, 5000, 8000);
	expect_json(event, "/status/phase", "\"Running\"");
	expect_json(event, "/status/podIP", "\"127.9.0.5\"");
	expect_json(event, "/status/node", NULL);
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Scaling\"");
	expect_json(event, "/status/node", "\"node-a\"");
	expect_json(event, "/status/cpus", "\"250m\"");
	expect_json(event, "/status/memorySize", "\"1Gi\"");
	do
		event = expect_event(watching, 2000, "MODIFIED");
	while (!slice_equal_text(json_tree_text(json_tree_find(event, "/status/phase")), "Running"));
	expect_json(event, "/status/cpus", "\"500m\"");
	expect_json(event, "/status/memorySize", "\"2Gi\"");
	pods = get(fixture, "/api/v1/namespaces/apps/pods");
	assert_int_equal(json_tree_find(pods.root, "/items")->count, 1);
	assert_true(control_plane_vm_state(fixture->plane, "pine", &vm_state));
	assert_int_equal(vm_state.restarts, 1);
	assert_non_null(
		strstr(fixture->told,
	               "phase pine Failed\nphase pine Pending\nphase pine Running\nresized pine 250m 1024Mi\n"));
	assert_false(control_plane_restart_vm(fixture->plane, "oak", &err));
	assert_string_equal(err.text, "there is no VM \"oak\"");
	watch_close(watching);
}

/* N8 */
static void a_migration_shows_the_old_node_for_a_moment(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct json_node *event;
	struct reply pods;
	struct error err;

	assert_true(control_plane_migrate_vm(fixture->plane, "pine", "node-b", "127.9.1.5", &err));
	assert_false(control_plane_migrate_vm(fixture->plane, "pine", "node-b", "127.9.1.5", &err));
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"PreMigrating\"");
	expect_json(event, "/status/podName", "\"pine-x7k2p\"");

	/* A patch is stored but not carried out meanwhile. */
	(void)timed_patch(watching, N1_PATCH);
	expect_event(watching, 0, "MODIFIED");
	event = expect_event(watching, 10000, "MODIFIED");
	expect_json(event, "/status/phase", "\"Migrating\"");
	event = expect_event(watching, 10000, "MODIFIED");
	expect_json(event, "/status/phase", "\"Running\"");
	expect_json(event, "/status/podIP", "\"127.9.1.5\"");
	expect_json(event, "/status/node", "\"node-a\"");
	expect_json(event, "/status/memorySize", "\"2Gi\"");
	assert_false(slice_equal_text(json_tree_text(json_tree_find(event, "/status/podName")), "pine-x7k2p"));
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Scaling\"");
	expect_json(event, "/status/node", "\"node-b\"");
	do
		event = expect_event(watching, 3000, "MODIFIED");
	while (!slice_equal_text(json_tree_text(json_tree_find(event, "/status/phase")), "Running"));
	expect_json(event, "/status/cpus", "\"1250m\"");
	expect_json(event, "/status/currentRevision/revision/value", "42");
	pods = get(fixture, "/api/v1/namespaces/apps/pods");
	assert_int_equal(json_tree_find(pods.root, "/items")->count, 1);
	expect_json(pods.root, "/items/0/spec/nodeName", "\"node-b\"");
	watch_close(watching);
}

/* N9 */
static void other_bounds_are_no_reason_to_scale(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct json_node *event;
	struct reply pod;
	struct error err;

	(void)timed_patch(
		watching,
		"[{\"op\":\"add\",\"path\":\"/metadata/annotations/autoscaling.neon.tech~1bounds\",\"value\":\"{}\"}]");
	event = expect_event(watching, 0, "MODIFIED");
	expect_json(event, "/metadata/generation", "1");
	expect_json(event, "/metadata/annotations/autoscaling.neon.tech~1bounds", "\"{}\"");
	expect_no_event(watching, 2000);
	pod = get(fixture, "/api/v1/namespaces/apps/pods/pine-x7k2p");
	expect_json(pod.root, "/metadata/annotations/autoscaling.neon.tech~1bounds", "\"{}\"");

	assert_true(control_plane_annotate_vm(fixture->plane, "pine", SLICE("autoscaling.neon.tech/scaling-unit"),
	                                      SLICE("{\"vCPUs\":1}"), &err));
	event = expect_event(watching, 0, "MODIFIED");
	expect_json(event, "/metadata/annotations/autoscaling.neon.tech~1scaling-unit", "\"{\\\"vCPUs\\\":1}\"");
	assert_true(control_plane_annotate_vm(fixture->plane, "pine", SLICE("autoscaling.neon.tech/bounds"),
	                                      (struct slice){ 0 }, &err));
	event = expect_event(watching, 0, "MODIFIED");
	expect_json(event, "/metadata/annotations/autoscaling.neon.tech~1bounds", NULL);
	assert_false(control_plane_annotate_vm(fixture->plane, "oak", SLICE("a"), SLICE("b"), &err));
	pass_ms(fixture, 1000);
	pod = get(fixture, "/api/v1/namespaces/apps/pods/pine-x7k2p");
	expect_json(pod.root, "/metadata/annotations/autoscaling.neon.tech~1bounds", NULL);
	assert_non_null(json_tree_find(pod.root, "/metadata/annotations/autoscaling.neon.tech~1scaling-unit"));
	watch_close(watching);
}

/* 3.4.4: "4 → 1 CPUs: about 4.7 s, cpus 1 one write before Running". */
static void cpus_are_unplugged_one_by_one(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct watching *watching;
	struct json_node *event;

	vm.cpu_max_milli = 4000;
	vm.cpu_use_milli = 4000;
	add_vm(fixture, &vm);
	pass_ms(fixture, 1000);
	watching = watch_vms(fixture);
	(void)timed_patch(watching, "[" CPU_PATCH("1") "]");
	expect_event(watching, 0, "MODIFIED");
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Scaling\"");
	expect_json(event, "/status/cpus", "4");
	event = expect_event(watching, 10000, "MODIFIED");
	expect_json(event, "/status/phase", "\"Scaling\"");
	expect_json(event, "/status/cpus", "1");
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Running\"");
	expect_json(event, "/status/cpus", "1");
	assert_in_range(watching->at_ms, 4300, 6500);
	watch_close(watching);
}

/* 3.4.3: "A new spec is taken up by the next pass, in any direction." */
static void a_patch_while_scaling_is_taken_up(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct json_node *event;

	(void)timed_patch(watching, "[" CPU_PATCH("2") "," SLOTS_PATCH("8") "," REVISION_PATCH(REVISION_42) "]");
	expect_event(watching, 0, "MODIFIED");
	expect_event(watching, 200, "MODIFIED");
	(void)timed_patch(watching, "[" CPU_PATCH("\"500m\"") "," SLOTS_PATCH("2") "," REVISION_PATCH(REVISION_43) "]");
	do
		event = expect_event(watching, 5000, "MODIFIED");
	while (!slice_equal_text(json_tree_text(json_tree_find(event, "/status/phase")), "Running"));
	expect_json(event, "/status/cpus", "\"500m\"");
	expect_json(event, "/status/memorySize", "\"2Gi\"");
	expect_json(event, "/status/currentRevision/revision", "{\"flags\":0,\"value\":43}");
	expect_no_event(watching, 20000);
	watch_close(watching);
}

static void a_vm_half_scaled_by_an_earlier_agent_goes_on(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct reply reply;

	vm.cpu_use_milli = 1250;
	vm.slots_use = 5;
	vm.plugged_cpu_milli = 500;
	vm.plugged_slots = 2;
	vm.target_revision = 42;
	vm.target_flags = 1;
	vm.current_revision = 41;
	add_vm(fixture, &vm);
	reply = get(fixture, PINE);
	expect_json(reply.root, "/status/phase", "\"Scaling\"");
	expect_json(reply.root, "/status/cpus", "\"500m\"");
	expect_json(reply.root, "/status/memorySize", "\"2Gi\"");
	expect_json(reply.root, "/spec/targetRevision/revision", "{\"flags\":1,\"value\":42}");
	expect_json(reply.root, "/status/currentRevision/revision", "{\"flags\":0,\"value\":41}");
	pass_ms(fixture, 5000);
	reply = get(fixture, PINE);
	expect_json(reply.root, "/status/phase", "\"Running\"");
	expect_json(reply.root, "/status/cpus", "\"1250m\"");
	expect_json(reply.root, "/status/currentRevision/revision", "{\"flags\":1,\"value\":42}");
}

/* 3.6.1 */
static void a_new_vm_starts_event_by_event(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct watching *watching = watch_vms(fixture);
	struct json_node *event;

	vm.starts = true;
	vm.target_revision = 7;
	add_vm(fixture, &vm);
	event = expect_event(watching, 0, "ADDED");
	expect_json(event, "/status", NULL);
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/metadata/finalizers", "[\"vm.neon.tech/finalizer\"]");
	expect_json(event, "/spec/cpuScalingMode", NULL);
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/spec/cpuScalingMode", "\"QmpScaling\"");
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/phase", "\"Pending\"");
	expect_json(event, "/status/restartCount", "0");
	expect_json(event, "/status/conditions/0/status", "\"Unknown\"");
	event = expect_event(watching, 200, "MODIFIED");
	assert_true(slice_starts_with(json_tree_text(json_tree_find(event, "/status/podName")), SLICE("pine-")));
	event = expect_event(watching, 10000, "MODIFIED");
	expect_json(event, "/status/phase", "\"Running\"");
	expect_json(event, "/status/podIP", "\"127.9.0.5\"");
	expect_json(event, "/status/node", NULL);
	expect_json(event, "/status/currentRevision/revision/value", "7");
	expect_json(event, "/status/conditions/0/status", "\"True\"");
	event = expect_event(watching, 200, "MODIFIED");
	expect_json(event, "/status/node", "\"node-a\"");
	expect_json(event, "/status/phase", "\"Scaling\"");
	watch_close(watching);
}

/* 3.6.4 */
static void a_deleted_vm_goes_with_its_finalizer_and_its_pod(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct control_plane_vm_state vm_state;
	struct json_node *event;
	struct reply pods;
	struct error err;

	assert_true(control_plane_delete_vm(fixture->plane, "pine", &err));
	event = expect_event(watching, 0, "MODIFIED");
	assert_non_null(json_tree_find(event, "/metadata/deletionTimestamp"));
	expect_json(event, "/status/phase", "\"Running\"");
	expect_event(watching, 200, "DELETED");
	pass_ms(fixture, 200);
	pods = get(fixture, "/api/v1/namespaces/apps/pods");
	expect_json(pods.root, "/items", "[]");
	assert_false(control_plane_vm_state(fixture->plane, "pine", &vm_state));
	assert_false(control_plane_delete_vm(fixture->plane, "pine", &err));

	/* The name is free again. */
	add_pine(fixture);
	event = expect_event(watching, 0, "ADDED");
	expect_json(event, "/status/phase", "\"Running\"");
	watch_close(watching);
}

/* 3.4.6 */
static void while_qemu_cant_be_reached_nothing_is_written(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct json_node *event;

	assert_true(control_plane_set_vm_reachable(fixture->plane, "pine", false));
	(void)timed_patch(watching, N1_PATCH);
	expect_event(watching, 0, "MODIFIED");
	expect_no_event(watching, 20000);
	assert_true(control_plane_set_vm_reachable(fixture->plane, "pine", true));
	event = expect_event(watching, 2000, "MODIFIED");
	expect_json(event, "/status/phase", "\"Scaling\"");
	watch_close(watching);
}

static void vms_that_the_api_server_wouldnt_take_arent_added(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct error err;

	vm.cpu_use_milli = 3000;
	assert_false(control_plane_add_vm(fixture->plane, &vm, &err));
	assert_string_equal(
		err.text,
		"adding VM \"pine\": .spec.guest.cpus.use (3) should be less than or equal to the .spec.guest.cpus.max (2)");
	vm = pine();
	vm.slots_min = 0;
	assert_false(control_plane_add_vm(fixture->plane, &vm, &err));
	add_pine(fixture);
	vm = pine();
	vm.name_space = "other";
	assert_false(control_plane_add_vm(fixture->plane, &vm, &err));
	assert_string_equal(err.text, "there is a VM \"pine\" already");
	vm = pine();
	vm.name = "oak";
	assert_false(control_plane_add_vm(fixture->plane, &vm, &err));
	assert_string_equal(err.text, "adding VM \"oak\": there is a pod \"pine-x7k2p\" already");
	vm.pod_name = NULL;
	add_vm(fixture, &vm);
}

static void a_handler_may_make_an_outage(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = begin(fixture);
	struct reply reply;

	fixture->away_once_patched = true;
	reply = patch(fixture, PINE, N1_PATCH); /* its answer may be lost */
	test_loop_until(fixture->loop, &watching->done);
	assert_true(watching->failed);
	watch_close(watching);
	pass_ms(fixture, 5000);
	control_plane_set_available(fixture->plane, true);
	reply = get(fixture, PINE);
	expect_status(&reply, 200);
	expect_json(reply.root, "/status/cpus", "\"1250m\"");
	expect_json(reply.root, "/status/phase", "\"Running\"");
}

static void at_speed_100_the_same_takes_a_hundredth(void **state)
{
	struct plane_fixture *fixture = plane_fixture_create(100, 0);
	struct watching *watching;
	struct json_node *event;

	(void)state;
	add_pine(fixture);
	pass_ms(fixture, 100);
	watching = watch_vms(fixture);
	(void)timed_patch(watching, N1_PATCH);
	do
		event = expect_event(watching, 500, "MODIFIED");
	while (json_tree_find(event, "/status/currentRevision") == NULL);
	expect_json(event, "/status/cpus", "\"1250m\"");
	assert_in_range(watching->at_ms, 5, 500);
	watch_close(watching);
	plane_fixture_destroy(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_vm_begins_as_a_real_one_looks, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_patch_is_carried_out_step_by_step, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_revision_alone_is_confirmed_without_scaling, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(memory_that_the_guest_keeps_holds_up_scaling_until_a_new_patch,
		                                plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_refused_patch_leaves_everything_as_it_was, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_webhook_that_cant_be_reached_fails_every_write, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(the_same_patch_again_is_no_event, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_killed_pod_leads_to_a_restart_from_the_minimum, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_migration_shows_the_old_node_for_a_moment, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(other_bounds_are_no_reason_to_scale, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(cpus_are_unplugged_one_by_one, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_patch_while_scaling_is_taken_up, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_vm_half_scaled_by_an_earlier_agent_goes_on, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_new_vm_starts_event_by_event, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_deleted_vm_goes_with_its_finalizer_and_its_pod, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(while_qemu_cant_be_reached_nothing_is_written, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(vms_that_the_api_server_wouldnt_take_arent_added, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_handler_may_make_an_outage, plane_set_up, plane_tear_down),
		cmocka_unit_test(at_speed_100_the_same_takes_a_hundredth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
