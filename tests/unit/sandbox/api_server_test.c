/*
 * Spec surroundings 5.1, 5.2, 5.6 and 8.4 (K1): who is served, and lists.
 */
#include "api_fixture.h"

/* ---- access ---- */

/* K1 */
static void only_known_tokens_with_rights_are_served(void **state)
{
	struct plane_fixture *fixture = *state;
	static const struct api_rule RULES[] = {
		{ .group = "vm.neon.tech", .resource = "virtualmachines", .verbs = "get,list", .name_space = "apps" }
	};
	struct reply reply = ask(fixture, &(struct ask){ .token = "", .target = VMS });
	struct error err;

	expect_message(
		&reply, 403,
		"virtualmachines.vm.neon.tech is forbidden: User \"system:anonymous\" cannot list resource \"virtualmachines\" in API group "
		"\"vm.neon.tech\" at the cluster scope");
	expect_json(reply.root, "/details", "{\"group\":\"vm.neon.tech\",\"kind\":\"virtualmachines\"}");
	reply = ask(fixture, &(struct ask){ .token = "wrong", .target = VMS });
	expect_captured(fixture, &reply, 401, "status-401.json");

	assert_true(control_plane_grant(fixture->plane, "narrow", "system:serviceaccount:kube-system:agent", RULES, 1,
	                                &err));
	reply = ask(fixture, &(struct ask){ .token = "narrow",
	                                    .target = "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines" });
	expect_captured(fixture, &reply, 403, "status-403.json");
	reply = ask(fixture, &(struct ask){ .token = "narrow",
	                                    .target = "/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines" });
	expect_status(&reply, 200);
	reply = ask(fixture,
	            &(struct ask){
			    .token = "narrow", .method = "PATCH", .target = PINE, .type = JSON_PATCH, .body = "[]" });
	expect_message(
		&reply, 403,
		"virtualmachines.vm.neon.tech \"pine\" is forbidden: User \"system:serviceaccount:kube-system:agent\" cannot patch resource "
		"\"virtualmachines\" in API group \"vm.neon.tech\" in the namespace \"apps\"");
	expect_json(reply.root, "/details",
	            "{\"name\":\"pine\",\"group\":\"vm.neon.tech\",\"kind\":\"virtualmachines\"}");
	reply = ask(fixture, &(struct ask){ .token = "narrow", .target = SYSTEM_PODS "?watch=1" });
	expect_message(
		&reply, 403,
		"pods is forbidden: User \"system:serviceaccount:kube-system:agent\" cannot watch resource \"pods\" in API group \"\" in the "
		"namespace \"kube-system\"");

	assert_true(control_plane_revoke(fixture->plane, "narrow"));
	assert_false(control_plane_revoke(fixture->plane, "narrow"));
	reply = ask(fixture, &(struct ask){ .token = "narrow", .target = VMS });
	expect_status(&reply, 401);
	assert_int_equal(control_plane_counters(fixture->plane).unauthorized, 6);
	assert_int_equal(control_plane_counters(fixture->plane).rejected, 0);
}

static void the_agent_may_do_what_it_may_in_a_real_cluster(void **state)
{
	static const struct {
		const char *method, *target;
		int status;
	} CASES[] = {
		{ "GET", VMS, 200 },
		{ "GET", PINE, 200 },
		{ "GET", PINE "/status", 200 },
		{ "GET", SYSTEM_PODS, 200 },
		{ "GET", "/api/v1/pods", 200 },
		{ "PATCH", PINE "/status", 403 },
		{ "GET", "/api/v1/nodes", 403 },
		{ "DELETE", SYSTEM_PODS "/a", 403 },
		{ "GET", "/apis/nope.io/v1/things", 403 },
	};
	struct plane_fixture *fixture = *state;

	add_pine(fixture);
	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		struct reply reply =
			ask(fixture,
		            &(struct ask){ .method = CASES[i].method, .target = CASES[i].target, .type = JSON_PATCH });

		if (reply.status != CASES[i].status)
			fail_msg("%s %s: %d", CASES[i].method, CASES[i].target, reply.status);
	}
}

static void unknown_paths_and_methods_are_refused(void **state)
{
	static const char *const PATHS[] = { "/",
		                             "/nope",
		                             "/apis/nope.io/v1/things",
		                             "/api/v2/pods",
		                             "/api/v1/namespaces/a/nodes",
		                             "/apis/vm.neon.tech/v1/virtualmachines/pine",
		                             PINE "/scale",
		                             PINE "/status/x",
		                             "/api/v1//pods" };
	struct plane_fixture *fixture = *state;
	struct reply reply;

	for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
		reply = admin(fixture, "GET", PATHS[i], NULL, NULL);
		if (reply.status != 404 || strcmp(reply.content_type, "text/plain; charset=utf-8") != 0 ||
		    reply.body.length != 19)
			fail_msg("%s: %d %.*s", PATHS[i], reply.status, (int)reply.body.length, reply.body.data);
	}
	reply = admin(fixture, "DELETE", VMS, NULL, NULL);
	expect_message(&reply, 405, "the server does not allow this method on the requested resource");
	reply = ask(fixture, &(struct ask){ .token = "", .target = "/nope" });
	expect_message(&reply, 403, "forbidden: User \"system:anonymous\" cannot get path \"/nope\"");
	reply = ask(fixture, &(struct ask){ .token = "", .target = "/healthz" });
	expect_status(&reply, 200);
}

/* ---- lists ---- */

static void lists_look_as_a_real_servers(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply empty = get(fixture, VMS);
	struct reply list;
	struct control_plane_vm vm = pine();
	struct error err;
	char expected[256];

	assert_string_equal(empty.content_type, "application/json");
	assert_string_equal(empty.cache, "no-cache, private");
	(void)snprintf(
		expected, sizeof expected,
		"{\"apiVersion\":\"vm.neon.tech/v1\",\"items\":[],\"kind\":\"VirtualMachineList\",\"metadata\":{\"continue\":\"\","
		"\"resourceVersion\":\"%s\"}}\n",
		version_of(fixture, empty.root));
	assert_int_equal(empty.body.length, strlen(expected));
	assert_memory_equal(empty.body.data, expected, empty.body.length);

	add_pine(fixture);
	vm.name = "oak";
	vm.pod_name = NULL;
	add_vm(fixture, &vm);
	vm.name = "ash";
	vm.name_space = "zoo";
	add_vm(fixture, &vm);
	list = get(fixture, VMS);
	assert_string_equal(list.length, ""); /* chunked */
	expect_json(list.root, "/items/0/metadata/name", "\"oak\"");
	expect_json(list.root, "/items/1/metadata/name", "\"pine\"");
	expect_json(list.root, "/items/2/metadata/name", "\"ash\"");
	expect_json(list.root, "/items/2/kind", "\"VirtualMachine\"");
	expect_json(list.root, "/items/2/apiVersion", "\"vm.neon.tech/v1\"");
	assert_true(slice_starts_with(slice_from(list.body.data, list.body.length),
	                              SLICE("{\"apiVersion\":\"vm.neon.tech/v1\",\"items\":[{")));
	list = get(fixture, "/apis/vm.neon.tech/v1/namespaces/zoo/virtualmachines");
	assert_int_equal(json_tree_find(list.root, "/items")->count, 1);

	assert_true(control_plane_add_scheduler_pod(fixture->plane, "autoscale-scheduler", "scheduler-1", "127.9.1.1",
	                                            "node-a", &err));
	list = get(fixture, SYSTEM_PODS "?labelSelector=name%3Dautoscale-scheduler");
	(void)snprintf(
		expected, sizeof expected,
		"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%s\"},\"items\":[{\"metadata\":{\"name\":\"scheduler-1\"",
		version_of(fixture, list.root));
	assert_true(slice_starts_with(slice_from(list.body.data, list.body.length), slice_of(expected)));
	expect_json(list.root, "/items/0/status/podIP", "\"127.9.1.1\"");
	assert_null(json_tree_find(list.root, "/items/0/kind"));
	list = get(fixture, SYSTEM_PODS "?labelSelector=name%3Dother");
	expect_json(list.root, "/items", "[]");
}

static void selectors_that_cant_be_understood_are_bad_requests(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply reply = get(fixture, SYSTEM_PODS "?labelSelector=%3D%3D1");

	expect_message(&reply, 400, "found '==', expected: !, identifier, or 'end of string'");
	expect_json(reply.root, "/reason", "\"BadRequest\"");
	reply = get(fixture, SYSTEM_PODS "?fieldSelector=spec.foo%3D1");
	expect_message(&reply, 400, "field label not supported: spec.foo");
	reply = get(fixture, VMS "?watch=true&fieldSelector=spec.nodeName%3D1");
	expect_message(&reply, 400, "field label not supported: spec.nodeName");
	reply = get(fixture, VMS "?resourceVersion=abc");
	expect_message(&reply, 500,
	               "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax");
	reply = get(fixture, VMS "?watch=true&resourceVersion=abc");
	expect_status(&reply, 500);
	reply = get(fixture, VMS "?limit=x");
	expect_status(&reply, 400);
}

static void fields_select_too(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct reply reply;

	add_pine(fixture);
	vm.name = "oak";
	vm.node = "node-b";
	vm.pod_name = "oak-1";
	add_vm(fixture, &vm);
	reply = get(fixture, "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-b");
	assert_int_equal(json_tree_find(reply.root, "/items")->count, 1);
	expect_json(reply.root, "/items/0/metadata/name", "\"oak-1\"");
	reply = get(fixture, "/api/v1/pods?fieldSelector=spec.nodeName!%3Dnode-b,metadata.namespace%3D%3Dapps");
	assert_int_equal(json_tree_find(reply.root, "/items")->count, 1);
	expect_json(reply.root, "/items/0/metadata/name", "\"pine-x7k2p\"");
	reply = get(fixture, VMS "?fieldSelector=metadata.name%3Doak");
	assert_int_equal(json_tree_find(reply.root, "/items")->count, 1);
}

static void a_list_comes_in_pages_of_one_version(void **state)
{
	static const char *const NAMES[] = { "a", "b", "c", "d", "e" };
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct reply page;
	const char *version;
	struct slice token;
	char target[1024];

	vm.pod_name = NULL;
	for (size_t i = 0; i < 5; i++) {
		vm.name = NAMES[i];
		vm.name_space = i < 3 ? "apps" : "zoo";
		add_vm(fixture, &vm);
	}
	page = get(fixture, VMS "?limit=2");
	version = version_of(fixture, page.root);
	assert_int_equal(json_tree_find(page.root, "/items")->count, 2);
	expect_json(page.root, "/metadata/remainingItemCount", "3");

	/* What changes between the pages isn't seen. */
	vm.name = "bb";
	vm.name_space = "apps";
	add_vm(fixture, &vm);
	assert_true(control_plane_delete_vm(fixture->plane, "c", &(struct error){ 0 }));
	pass_ms(fixture, 500);

	token = json_tree_text(json_tree_find(page.root, "/metadata/continue"));
	(void)snprintf(target, sizeof target, VMS "?limit=2&continue=%.*s", SLICE_ARGS(token));
	page = get(fixture, target);
	expect_json(page.root, "/items/0/metadata/name", "\"c\"");
	expect_json(page.root, "/items/1/metadata/name", "\"d\"");
	expect_json(page.root, "/metadata/remainingItemCount", "1");
	assert_string_equal(version_of(fixture, page.root), version);
	token = json_tree_text(json_tree_find(page.root, "/metadata/continue"));
	(void)snprintf(target, sizeof target, VMS "?limit=2&continue=%.*s", SLICE_ARGS(token));
	page = get(fixture, target);
	assert_int_equal(json_tree_find(page.root, "/items")->count, 1);
	expect_json(page.root, "/items/0/metadata/name", "\"e\"");
	expect_json(page.root, "/metadata/continue", "\"\"");
	expect_json(page.root, "/metadata/remainingItemCount", NULL);
	page = get(fixture, VMS "?limit=2&continue=nonsense!");
	expect_status(&page, 400);
}

static void an_old_continue_token_is_refused_with_a_fresh_one(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = example();
	struct json_node *captured = read_json(fixture, "data/kube/vm-list-410-continue.json");
	struct json_node *first = read_json(fixture, "data/kube/vm-list-limit1.json");
	struct reply page;
	char target[1024];

	add_vm(fixture, &vm);
	vm.name = "second";
	add_vm(fixture, &vm);
	page = get(fixture, "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines?limit=1");
	(void)snprintf(target, sizeof target,
	               "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines?limit=1&continue=%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(page.root, "/metadata/continue"))));
	control_plane_compact(fixture->plane);
	page = get(fixture, target);
	expect_status(&page, 410);
	assert_true(json_tree_equal(page.root, captured)); /* the token too, for the object is called the same */

	(void)snprintf(target, sizeof target,
	               "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines?limit=1&continue=%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(page.root, "/metadata/continue"))));
	page = get(fixture, target);
	expect_status(&page, 200);
	expect_json(page.root, "/items/0/metadata/name", "\"second\"");

	/* A real token of version 381 is from the future here, and so as good as of now. */
	(void)snprintf(target, sizeof target,
	               "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines?limit=1&continue=%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(first, "/metadata/continue"))));
	page = get(fixture, target);
	expect_json(page.root, "/items/0/metadata/name", "\"second\"");
}

static void an_exact_version_is_listed_as_long_as_it_is_known(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply reply = get(fixture, VMS);
	char target[256];

	(void)snprintf(target, sizeof target, VMS "?resourceVersionMatch=Exact&resourceVersion=%s",
	               version_of(fixture, reply.root));
	add_pine(fixture);
	reply = get(fixture, target);
	expect_json(reply.root, "/items", "[]");
	control_plane_compact(fixture->plane);
	reply = get(fixture, target);
	expect_captured(fixture, &reply, 410, "vm-list-410-exact.json");
}

static void a_version_from_the_future_is_refused_after_three_seconds(void **state)
{
	struct plane_fixture *fixture = *state;
	struct json_node *captured = read_json(fixture, "data/kube/status-504-rv-too-large.json");
	struct reply reply;
	char message[128];

	fixture_start(fixture, &(struct ask){ .target = VMS "?resourceVersion=99999999" }, &reply);
	pass_ms(fixture, 2500);
	assert_false(reply.done);
	pass_ms(fixture, 1000);
	fixture_wait(fixture, &reply);
	(void)snprintf(message, sizeof message, "Timeout: Too large resource version: 99999999, current: %s",
	               version_of(fixture, get(fixture, VMS).root));
	expect_message(&reply, 504, message);
	assert_string_equal(reply.retry_after, "1");
	assert_true(json_tree_equal(json_tree_find(reply.root, "/details"), json_tree_find(captured, "/details")));
	expect_json(reply.root, "/reason", "\"Timeout\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_known_tokens_with_rights_are_served, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(the_agent_may_do_what_it_may_in_a_real_cluster, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(unknown_paths_and_methods_are_refused, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(lists_look_as_a_real_servers, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(selectors_that_cant_be_understood_are_bad_requests, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(fields_select_too, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_list_comes_in_pages_of_one_version, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(an_old_continue_token_is_refused_with_a_fresh_one, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(an_exact_version_is_listed_as_long_as_it_is_known, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_version_from_the_future_is_refused_after_three_seconds, plane_set_up,
		                                plane_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
