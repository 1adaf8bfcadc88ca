/*
 * Spec surroundings 5.5, 5.6 and 8.4 (K4, K5, K7, K9): patches, objects as an extender and kubectl write them, and lack of memory.
 */
#include "api_fixture.h"

#include "base/memory.h"

/* ---- patches ---- */

/* K4, K5, K7 */
static void patches_are_refused_in_the_servers_order(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = example();
	struct watching *watching;
	struct reply reply;
	struct reply before;

	add_vm(fixture, &vm);
	pass_ms(fixture, 500);
	before = get(fixture, EXAMPLE);
	watching = watch_vms(fixture);
	reply = patch(fixture, "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines/nope", "[{");
	expect_captured(fixture, &reply, 404, "status-404.json");
	reply = ask(fixture, &(struct ask){ .method = "PATCH", .target = EXAMPLE, .type = "text/plain", .body = "[]" });
	expect_captured(fixture, &reply, 415, "status-415.json");
	reply = ask(fixture,
	            &(struct ask){ .method = "PATCH", .target = EXAMPLE "-nope", .type = "text/plain", .body = "[]" });
	expect_captured(fixture, &reply, 415, "status-415.json");
	reply = patch(fixture, EXAMPLE, "[");
	expect_message(&reply, 400, "unexpected end of JSON input");
	expect_json(reply.root, "/details", NULL);
	reply = patch(fixture, EXAMPLE, "[{\"op\":\"test\",\"path\":\"/metadata/annotations/a\",\"value\":\"b\"}]");
	expect_message(&reply, 422, "the server rejected our request due to an error in our request");
	expect_json(reply.root, "/details", "{}");
	expect_json(reply.root, "/reason", "\"Invalid\"");
	reply = patch(fixture, EXAMPLE, "[{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":0.5}]");
	expect_captured(fixture, &reply, 422, "status-422.json");
	reply = ask(fixture, &(struct ask){ .method = "PATCH", .target = EXAMPLE, .type = MERGE_PATCH, .body = "[]" });
	expect_captured(fixture, &reply, 500, "status-500-invalid-patch.json");
	reply = patch(fixture, EXAMPLE, "[{\"op\":\"add\",\"path\":\"/metadata/labels\",\"value\":{\"a\":1}}]");
	expect_status(&reply, 422);
	reply = patch(fixture, EXAMPLE, "[{\"op\":\"replace\",\"path\":\"/metadata\",\"value\":1}]");
	expect_status(&reply, 422);
	reply = patch(fixture, EXAMPLE,
	              "[{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"1\"}]");
	expect_captured(fixture, &reply, 409, "status-409-conflict.json");

	/* status is written by its own path only. */
	reply = patch(fixture, EXAMPLE, "[{\"op\":\"replace\",\"path\":\"/status/phase\",\"value\":\"Failed\"}]");
	expect_status(&reply, 200);
	assert_true(json_tree_equal(reply.root, before.root));
	reply = admin(fixture, "PATCH", EXAMPLE "/status", JSON_PATCH,
	              "[{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":2}]");
	expect_status(&reply, 200);
	assert_true(json_tree_equal(reply.root, before.root));
	expect_no_event(watching, 500);
	reply = admin(fixture, "PATCH", EXAMPLE "/status", JSON_PATCH,
	              "[{\"op\":\"replace\",\"path\":\"/status/restartCount\",\"value\":3}]");
	expect_json(reply.root, "/status/restartCount", "3");
	expect_json(reply.root, "/metadata/generation", "1");
	expect_event(watching, 100, "MODIFIED");
	watch_close(watching);
}

static void a_patched_value_keeps_its_form(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply reply;

	add_pine(fixture);
	reply = patch(fixture, PINE, "[{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":\"2\"}]");
	expect_json(reply.root, "/spec/guest/cpus/use", "\"2\"");
	expect_json(reply.root, "/metadata/generation", "2");
	reply = patch(fixture, PINE, "[{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":2}]");
	expect_json(reply.root, "/spec/guest/cpus/use", "2");
	expect_json(reply.root, "/metadata/generation", "3");
	reply = patch(fixture, PINE, "null");
	expect_json(reply.root, "/metadata/generation", "3");
	assert_int_equal(control_plane_counters(fixture->plane).patches, 3);
	assert_true(slice_starts_with(slice_of(fixture->told), SLICE("patched pine 500/2 2000/2\n")));
	assert_null(strstr(fixture->told + 1, "patched"));
}

/* K9 */
static void overload_is_told_with_a_time_to_wait(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching;
	struct reply reply;

	control_plane_refuse_next(fixture->plane, 1);
	reply = ask(fixture, &(struct ask){ .token = "wrong", .target = VMS });
	expect_status(&reply, 401);
	watching = watch_open(fixture, NULL, VMS "?watch=true");
	assert_int_equal(watching->status, 200);
	reply = get(fixture, VMS);
	expect_status(&reply, 429);
	assert_string_equal(reply.retry_after, "1");
	assert_string_equal(reply.content_type, "text/plain; charset=utf-8");
	assert_true(slice_equal_text(slice_from(reply.body.data, reply.body.length),
	                             "Too many requests, please try again later.\n"));
	reply = get(fixture, VMS);
	expect_status(&reply, 200);
	watch_close(watching);
}

static void trouble_has_any_status_and_passes(void **state)
{
	static const struct {
		int status;
		const char *reason;
	} TROUBLES[] = { { 409, "Conflict" },
		         { 410, "Expired" },
		         { 500, "InternalError" },
		         { 503, "ServiceUnavailable" },
		         { 504, "Timeout" } };
	struct plane_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof TROUBLES / sizeof TROUBLES[0]; i++) {
		struct watching *watching;
		struct reply reply;
		char part[64];

		control_plane_fail_next(fixture->plane, 2, TROUBLES[i].status);
		reply = get(fixture, VMS);
		expect_status(&reply, TROUBLES[i].status);
		(void)snprintf(part, sizeof part, "\"reason\":\"%s\"", TROUBLES[i].reason);
		assert_true(slice_contains(slice_from(reply.body.data, reply.body.length), slice_of(part)));
		watching = watch_open(fixture, NULL, VMS "?watch=true");
		assert_int_equal(watching->status, TROUBLES[i].status);
		watch_close(watching);
		reply = get(fixture, VMS);
		expect_status(&reply, 200);
	}
}

/* ---- create, update, delete: as an extender and kubectl do ---- */

static void objects_are_created_read_and_replaced(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply created = admin(
		fixture, "POST", RESERVATIONS, "application/json",
		"{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"AvailableCapacityReservation\",\"metadata\":{\"name\":"
		"\"default-web-0\"},\"spec\":{\"Status\":\"REQUESTED\",\"Namespace\":\"default\"}}");
	struct json_node *captured = json_tree_find(read_json(fixture, "data/kube/csi-acr-list.json"), "/items/0");
	struct reply reply;
	char body[1024];

	expect_status(&created, 201);
	expect_json(created.root, "/spec", "{\"Namespace\":\"default\",\"Status\":\"REQUESTED\"}");
	assert_true(json_tree_equal(json_tree_find(created.root, "/kind"), json_tree_find(captured, "/kind")));
	reply = admin(fixture, "GET", RESERVATIONS "/default-web-0", NULL, NULL);
	assert_true(json_tree_equal(reply.root, created.root));
	reply = admin(fixture, "POST", RESERVATIONS, "application/json", "{\"metadata\":{\"name\":\"default-web-0\"}}");
	expect_message(&reply, 409,
	               "availablecapacityreservations.csi-baremetal.dell.com \"default-web-0\" already exists");
	expect_json(reply.root, "/reason", "\"AlreadyExists\"");

	(void)snprintf(
		body, sizeof body,
		"{\"metadata\":{\"name\":\"default-web-0\",\"resourceVersion\":\"%s\"},\"spec\":{\"Status\":\"RESERVED\"}}",
		version_of(fixture, created.root));
	reply = admin(fixture, "PUT", RESERVATIONS "/default-web-0", "application/json", body);
	expect_status(&reply, 200);
	expect_json(reply.root, "/spec", "{\"Status\":\"RESERVED\"}");
	expect_json(reply.root, "/metadata/generation", "2");
	assert_true(json_tree_equal(json_tree_find(reply.root, "/metadata/uid"),
	                            json_tree_find(created.root, "/metadata/uid")));
	reply = admin(fixture, "PUT", RESERVATIONS "/default-web-0", "application/json", body);
	expect_message(
		&reply, 409,
		"Operation cannot be fulfilled on availablecapacityreservations.csi-baremetal.dell.com \"default-web-0\": the object has been "
		"modified; please apply your changes to the latest version and try again");
	reply = admin(fixture, "PUT", RESERVATIONS "/default-web-0", "application/json",
	              "{\"metadata\":{\"name\":\"default-web-0\"}}");
	expect_message(
		&reply, 422,
		"AvailableCapacityReservation.csi-baremetal.dell.com \"default-web-0\" is invalid: metadata.resourceVersion: Invalid value: "
		"0x0: must be specified for an update");
	reply = admin(fixture, "PUT", RESERVATIONS "/other", "application/json", "{\"metadata\":{\"name\":\"other\"}}");
	expect_status(&reply, 404);
	reply = admin(fixture, "PUT", RESERVATIONS "/other", "application/json",
	              "{\"metadata\":{\"name\":\"default-web-0\"}}");
	expect_message(&reply, 400,
	               "the name of the object (default-web-0) does not match the name on the URL (other)");

	reply = admin(fixture, "DELETE", RESERVATIONS "/default-web-0", NULL, NULL);
	expect_status(&reply, 200);
	expect_json(reply.root, "/status", "\"Success\"");
	reply = admin(fixture, "DELETE", RESERVATIONS "/default-web-0", NULL, NULL);
	expect_status(&reply, 404);
}

static void conflict_and_existence_are_told_as_a_real_server_does(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = example();
	struct reply reply;

	add_vm(fixture, &vm);
	reply = get(fixture, EXAMPLE);
	assert_true(json_tree_set_text(&fixture->arena, json_tree_find(reply.root, "/metadata"),
	                               SLICE("resourceVersion"), SLICE("1")));
	{
		struct buffer body;
		struct error err;

		buffer_init(&body, (size_t)1024 * 1024);
		assert_true(json_tree_print(reply.root, &body, &err));
		buffer_append_char(&body, '\0');
		reply = admin(fixture, "PUT", EXAMPLE, "application/json", body.data);
		expect_captured(fixture, &reply, 409, "status-409-conflict.json");
		assert_true(json_tree_parse(slice_of(body.data), &fixture->arena, &reply.root, &err));
		assert_true(json_tree_remove(json_tree_find(reply.root, "/metadata"), SLICE("resourceVersion")));
		buffer_clear(&body);
		assert_true(json_tree_print(reply.root, &body, &err));
		buffer_append_char(&body, '\0');
		reply = admin(fixture, "POST", "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines",
		              "application/json", body.data);
		expect_captured(fixture, &reply, 409, "status-409-exists.json");
		buffer_destroy(&body);
	}
}

static void bodies_that_dont_fit_their_path_are_refused(void **state)
{
	static const struct {
		const char *body;
		int status;
		const char *message;
	} CASES[] = {
		{ "{", 400, "unexpected end of JSON input" },
		{ "[]", 400, "couldn't get version/kind; json parse error: the body is no object" },
		{ "{\"kind\":\"Node\"}", 400,
		  "the API version or kind in the data does not match the expected one of this path" },
		{ "{\"metadata\":{\"namespace\":\"other\"}}", 400,
		  "the namespace of the provided object does not match the namespace sent on the request" },
		{ "{\"metadata\":{}}", 422,
		  "Pod \"\" is invalid: metadata.name: Required value: name or generateName is required" },
		{ "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}", 500,
		  "resourceVersion should not be set on objects to be created" },
	};
	struct plane_fixture *fixture = *state;
	struct reply reply;

	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		reply = admin(fixture, "POST", SYSTEM_PODS, "application/json", CASES[i].body);
		expect_message(&reply, CASES[i].status, CASES[i].message);
	}
	reply = admin(fixture, "POST", SYSTEM_PODS, "text/plain", "{}");
	expect_status(&reply, 415);
	reply = admin(fixture, "POST", SYSTEM_PODS, "application/json; charset=utf-8",
	              "{\"metadata\":{\"generateName\":\"web-\"},\"status\":{\"x\":1}}");
	expect_status(&reply, 201);
	assert_int_equal(json_tree_text(json_tree_find(reply.root, "/metadata/name")).length, sizeof "web-abcde" - 1);
	expect_json(reply.root, "/metadata/namespace", "\"kube-system\"");
	expect_json(reply.root, "/status", "{\"phase\":\"Pending\"}");
}

static void a_vm_created_through_the_api_gets_defaults_and_the_controllers_care(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply reply = ask(
		fixture,
		&(struct ask){ .method = "POST",
	                       .target = "/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines",
	                       .type = "application/json",
	                       .body = "{\"apiVersion\":\"vm.neon.tech/v1\",\"kind\":\"VirtualMachine\",\"metadata\":{"
	                               "\"name\":\"pine\"},\"spec\":{\"guest\":{\"cpus\":{\"min\":\"0.25\",\"max\":2,"
	                               "\"use\":\"2\"},\"memorySlots\":{\"min\":1,\"max\":4,\"use\":1},\"rootDisk\":{"
	                               "\"image\":\"x\"}}}}" });

	expect_status(&reply, 201);
	expect_json(
		reply.root, "/spec",
		"{\"enableAcceleration\":true,\"enableNetworkMonitoring\":false,\"enableSSH\":true,\"guest\":{\"cpus\":{\"max\":2,\"min\":\"0.25\","
		"\"use\":\"2\"},\"memorySlotSize\":\"1Gi\",\"memorySlots\":{\"max\":4,\"min\":1,\"use\":1},\"rootDisk\":{\"image\":\"x\","
		"\"imagePullPolicy\":\"IfNotPresent\"}},\"qmp\":20183,\"qmpManual\":20184,\"restartPolicy\":\"Always\",\"runnerPort\":25183,"
		"\"terminationGracePeriodSeconds\":5}");
	pass_ms(fixture, 1000);
	reply = get(fixture, PINE);
	expect_json(reply.root, "/status/phase", "\"Pending\""); /* for want of a node */
	reply = ask(
		fixture,
		&(struct ask){
			.method = "POST",
			.target = "/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines",
			.type = "application/json",
			.body = "{\"metadata\":{\"name\":\"oak\"},\"spec\":{\"guest\":{\"cpus\":{\"min\":1,\"max\":2,\"use\":1},"
				"\"memorySlotSize\":\"100Mi\",\"memorySlots\":{\"min\":1,\"max\":4,\"use\":1}}}}" });
	expect_message(
		&reply, 403,
		"admission webhook \"vvirtualmachine.kb.io\" denied the request: .spec.guest: memorySlotSize invalid for use with virtio-mem: "
		"must be a multiple of 8Mi");
	reply = ask(fixture, &(struct ask){ .method = "DELETE", .target = PINE });
	expect_status(&reply, 200);
	assert_non_null(json_tree_find(reply.root, "/metadata/deletionTimestamp"));
	pass_ms(fixture, 500);
	reply = get(fixture, PINE);
	expect_status(&reply, 404);
}

static void any_known_object_can_be_put_from_inside(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply reply;
	struct error err;

	put(fixture, POD("p", "{\"a\":\"b\"}"));
	put(fixture,
	    "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"csi\"},\"provisioner\":\"csi-baremetal\"}");
	put(fixture,
	    "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"},\"status\":{"
	    "\"phase\":\"Pending\"}}");
	put(fixture,
	    "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"},\"status\":{"
	    "\"phase\":\"Bound\"}}");
	put(fixture,
	    "{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"Volume\",\"metadata\":{\"name\":\"v\",\"namespace\":\"n\"}}");
	put(fixture, "{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"v\"}}");
	put(fixture,
	    "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"e\",\"namespace\":\"n\"},\"involvedObject\":{\"name\":\"p\"}}");
	reply = admin(fixture, "GET", "/api/v1/persistentvolumeclaims", NULL, NULL);
	expect_json(reply.root, "/items/0/status/phase", "\"Bound\"");
	reply = admin(fixture, "GET", "/apis/storage.k8s.io/v1/storageclasses", NULL, NULL);
	expect_json(reply.root, "/kind", "\"StorageClassList\"");
	expect_json(reply.root, "/items/0/provisioner", "\"csi-baremetal\"");
	reply = admin(fixture, "GET", "/apis/csi-baremetal.dell.com/v1/volumes", NULL, NULL);
	assert_int_equal(json_tree_find(reply.root, "/items")->count, 1);
	reply = admin(fixture, "GET", "/api/v1/namespaces/n/events?fieldSelector=involvedObject.name%3Dp", NULL, NULL);
	assert_int_equal(json_tree_find(reply.root, "/items")->count, 1);
	assert_false(control_plane_put(fixture->plane, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Secret\"}"), &err));
	assert_string_equal(err.text, "storing an object: no kind of objects is called \"Secret\" of \"v1\"");
	assert_false(control_plane_put(fixture->plane, SLICE("{"), &err));
	assert_int_equal(object_store_count(control_plane_store(fixture->plane), resource_kind(RESOURCE_CSI_NODES)), 1);
}

/* ---- without memory ---- */

static void expect_survival(struct plane_fixture *fixture, const struct ask *request)
{
	unsigned long tries = 0;
	bool reached = true;

	for (unsigned long i = 1; reached; i++) {
		struct reply reply;

		fixture_start(fixture, request, &reply);
		memory_fail_at(i);
		for (int turns = 0; turns < 1000 && !reply.done; turns++)
			test_loop_spin(fixture->loop, 0);
		reached = memory_allocation_count() >= i;
		tries++;
		memory_fail_at(0);
		fixture_wait(fixture, &reply);
		if (!reply.failed && reply.status < 500)
			assert_in_range(reply.status, 200, 201);
		reply = get(fixture, PINE);
		expect_status(&reply, 200);
		arena_reset(&fixture->arena);
	}
	assert_in_range(tries, 20, 2000);
}

static void expect_watch_survival(struct plane_fixture *fixture)
{
	unsigned long tries = 0;
	bool reached = true;

	for (unsigned long i = 1; reached; i++) {
		struct reply reply;

		/* A version of the past: the watch begins with events, and is then ended. */
		fixture_start(fixture,
		              &(struct ask){ .target = VMS "?watch=true&resourceVersion=1&allowWatchBookmarks=true" },
		              &reply);
		memory_fail_at(i);
		for (int turns = 0; turns < 8 && !reply.done; turns++)
			fixture_turn(fixture);
		reached = memory_allocation_count() >= i;
		tries++;
		memory_fail_at(0);
		/* It may only be opened now, on another connection. */
		for (int turns = 0; turns < 1000 && !reply.done; turns++) {
			control_plane_end_watches(fixture->plane, true);
			test_loop_spin(fixture->loop, 0);
		}
		fixture_wait(fixture, &reply);
		if (!reply.failed && reply.status < 500)
			assert_int_equal(reply.status, 200);
		arena_reset(&fixture->arena);
	}
	assert_in_range(tries, 20, 2000);
}

static void the_server_survives_every_failed_allocation(void **state)
{
	struct plane_fixture *fixture = *state;

	add_pine(fixture);
	pass_ms(fixture, 500);
	expect_survival(fixture, &(struct ask){ .target = VMS "?limit=1&labelSelector=neon/endpoint-id" });
	expect_survival(fixture, &(struct ask){ .target = "/api/v1/pods?fieldSelector=metadata.name!%3Dx" });
	expect_survival(
		fixture,
		&(struct ask){ .method = "PATCH",
	                       .target = PINE,
	                       .type = JSON_PATCH,
	                       .body = "[{\"op\":\"add\",\"path\":\"/metadata/labels/a~1b\",\"value\":\"c\"}]" });
	expect_survival(fixture, &(struct ask){ .token = ADMIN_TOKEN,
	                                        .method = "POST",
	                                        .target = SYSTEM_PODS,
	                                        .type = "application/json",
	                                        .body = "{\"metadata\":{\"generateName\":\"p-\"}}" });
	expect_watch_survival(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(patches_are_refused_in_the_servers_order, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_patched_value_keeps_its_form, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(trouble_has_any_status_and_passes, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(overload_is_told_with_a_time_to_wait, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(objects_are_created_read_and_replaced, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(conflict_and_existence_are_told_as_a_real_server_does, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(bodies_that_dont_fit_their_path_are_refused, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_vm_created_through_the_api_gets_defaults_and_the_controllers_care,
		                                plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(any_known_object_can_be_put_from_inside, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(the_server_survives_every_failed_allocation, plane_set_up,
		                                plane_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
