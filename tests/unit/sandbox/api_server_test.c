/*
 * Spec surroundings section 5 and 8.4 (K1 … K9); texts are compared with those of a real API server (tests/data/kube).
 */
#include "plane_fixture.h"

#define POD(name, labels) \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"kube-system\",\"labels\":" labels "},\"spec\":{}}"
#define RESERVATIONS "/apis/csi-baremetal.dell.com/v1/availablecapacityreservations"

static void put(struct plane_fixture *fixture, const char *json)
{
	struct error err;

	if (!control_plane_put(fixture->plane, slice_of(json), &err))
		fail_msg("%s", err.text);
}

/* The reply must be what a real server said, as a Status with another name. */
static void expect_captured(struct plane_fixture *fixture, const struct reply *reply, int status, const char *file)
{
	char path[128];
	struct json_node *captured;

	(void)snprintf(path, sizeof path, "data/kube/%s", file);
	captured = read_json(fixture, path);
	expect_status(reply, status);
	if (!json_tree_equal(reply->root, captured))
		fail_msg("not as in %s: %.*s", file, (int)reply->body.length, reply->body.data);
}

/* A VM called as the one in the captures. */
static struct control_plane_vm example(void)
{
	struct control_plane_vm vm = pine();

	vm.name = "example";
	vm.name_space = "default";
	vm.pod_name = NULL;
	return vm;
}

#define EXAMPLE "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines/example"

/* ---- access ---- */

/* K1 */
static void only_known_tokens_with_rights_are_served(void **state)
{
	struct plane_fixture *fixture = *state;
	static const struct api_rule RULES[] = { { .group = "vm.neon.tech", .resource = "virtualmachines", .verbs = "get,list", .name_space = "apps" } };
	struct reply reply = ask(fixture, &(struct ask){ .token = "", .target = VMS });
	struct error err;

	expect_message(&reply, 403,
	               "virtualmachines.vm.neon.tech is forbidden: User \"system:anonymous\" cannot list resource \"virtualmachines\" in API group "
	               "\"vm.neon.tech\" at the cluster scope");
	expect_json(reply.root, "/details", "{\"group\":\"vm.neon.tech\",\"kind\":\"virtualmachines\"}");
	reply = ask(fixture, &(struct ask){ .token = "wrong", .target = VMS });
	expect_captured(fixture, &reply, 401, "status-401.json");

	assert_true(control_plane_grant(fixture->plane, "narrow", "system:serviceaccount:kube-system:agent", RULES, 1, &err));
	reply = ask(fixture, &(struct ask){ .token = "narrow", .target = "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines" });
	expect_captured(fixture, &reply, 403, "status-403.json");
	reply = ask(fixture, &(struct ask){ .token = "narrow", .target = "/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines" });
	expect_status(&reply, 200);
	reply = ask(fixture, &(struct ask){ .token = "narrow", .method = "PATCH", .target = PINE, .type = JSON_PATCH, .body = "[]" });
	expect_message(&reply, 403,
	               "virtualmachines.vm.neon.tech \"pine\" is forbidden: User \"system:serviceaccount:kube-system:agent\" cannot patch resource "
	               "\"virtualmachines\" in API group \"vm.neon.tech\" in the namespace \"apps\"");
	expect_json(reply.root, "/details", "{\"name\":\"pine\",\"group\":\"vm.neon.tech\",\"kind\":\"virtualmachines\"}");
	reply = ask(fixture, &(struct ask){ .token = "narrow", .target = SYSTEM_PODS "?watch=1" });
	expect_message(&reply, 403,
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
		struct reply reply = ask(fixture, &(struct ask){ .method = CASES[i].method, .target = CASES[i].target, .type = JSON_PATCH });

		if (reply.status != CASES[i].status)
			fail_msg("%s %s: %d", CASES[i].method, CASES[i].target, reply.status);
	}
}

static void unknown_paths_and_methods_are_refused(void **state)
{
	static const char *const PATHS[] = { "/", "/nope", "/apis/nope.io/v1/things", "/api/v2/pods", "/api/v1/namespaces/a/nodes",
		                             "/apis/vm.neon.tech/v1/virtualmachines/pine", PINE "/scale", PINE "/status/x", "/api/v1//pods" };
	struct plane_fixture *fixture = *state;
	struct reply reply;

	for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
		reply = admin(fixture, "GET", PATHS[i], NULL, NULL);
		if (reply.status != 404 || strcmp(reply.content_type, "text/plain; charset=utf-8") != 0 || reply.body.length != 19)
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
	(void)snprintf(expected, sizeof expected,
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
	assert_true(slice_starts_with(slice_from(list.body.data, list.body.length), SLICE("{\"apiVersion\":\"vm.neon.tech/v1\",\"items\":[{")));
	list = get(fixture, "/apis/vm.neon.tech/v1/namespaces/zoo/virtualmachines");
	assert_int_equal(json_tree_find(list.root, "/items")->count, 1);

	assert_true(control_plane_add_scheduler_pod(fixture->plane, "autoscale-scheduler", "scheduler-1", "127.9.1.1", "node-a", &err));
	list = get(fixture, SYSTEM_PODS "?labelSelector=name%3Dautoscale-scheduler");
	(void)snprintf(expected, sizeof expected, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%s\"},\"items\":[{\"metadata\":{\"name\":\"scheduler-1\"",
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
	expect_message(&reply, 500, "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax");
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
	(void)snprintf(target, sizeof target, "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines?limit=1&continue=%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(page.root, "/metadata/continue"))));
	control_plane_compact(fixture->plane);
	page = get(fixture, target);
	expect_status(&page, 410);
	assert_true(json_tree_equal(page.root, captured)); /* the token too, for the object is called the same */

	(void)snprintf(target, sizeof target, "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines?limit=1&continue=%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(page.root, "/metadata/continue"))));
	page = get(fixture, target);
	expect_status(&page, 200);
	expect_json(page.root, "/items/0/metadata/name", "\"second\"");

	/* A real token of version 381 is from the future here, and so as good as of now. */
	(void)snprintf(target, sizeof target, "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines?limit=1&continue=%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(first, "/metadata/continue"))));
	page = get(fixture, target);
	expect_json(page.root, "/items/0/metadata/name", "\"second\"");
}

static void an_exact_version_is_listed_as_long_as_it_is_known(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply reply = get(fixture, VMS);
	char target[256];

	(void)snprintf(target, sizeof target, VMS "?resourceVersionMatch=Exact&resourceVersion=%s", version_of(fixture, reply.root));
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

/* ---- watches ---- */

/* K2 */
static void bookmarks_come_each_minute_to_those_who_ask(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching;
	struct watching *without;
	struct json_node *event;
	struct reply list;
	char target[256];

	add_pine(fixture);
	pass_ms(fixture, 500);
	list = get(fixture, VMS);
	watching = watch_vms(fixture);
	(void)snprintf(target, sizeof target, VMS "?watch=true&resourceVersion=%s", version_of(fixture, list.root));
	without = watch_open(fixture, NULL, target);
	event = expect_event(watching, 70000, "BOOKMARK");
	assert_in_range(watching->at_ms, 59000, 61000);
	expect_json(event, "/kind", "\"VirtualMachine\"");
	expect_json(event, "/metadata", "{\"resourceVersion\":\"4\"}");
	expect_no_event(without, 1000);
	watch_close(watching);
	watch_close(without);

	watching = watch_open(fixture, NULL, SYSTEM_PODS "?watch=1&allowWatchBookmarks=1&timeoutSeconds=10");
	event = expect_event(watching, 9000, "BOOKMARK"); /* near the end */
	assert_in_range(watching->at_ms, 7900, 8300);
	expect_json(event, "", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"4\",\"creationTimestamp\":null},"
	                       "\"spec\":{\"containers\":null},\"status\":{}}");
	expect_no_event(watching, 3000);
	assert_true(watching->done);
	assert_false(watching->failed);
	watch_close(watching);
}

static void a_watch_without_a_version_begins_with_everything(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct watching *watching;
	struct json_node *event;

	vm.pod_name = NULL;
	vm.name = "oak";
	add_vm(fixture, &vm);
	watching = watch_open(fixture, NULL, VMS "?watch=true");
	event = expect_event(watching, 100, "ADDED");
	expect_json(event, "/metadata/name", "\"oak\"");
	vm.name = "ash";
	add_vm(fixture, &vm);
	event = expect_event(watching, 100, "ADDED");
	expect_json(event, "/metadata/name", "\"ash\"");
	watch_close(watching);
	watching = watch_open(fixture, NULL, "/apis/vm.neon.tech/v1/namespaces/other/virtualmachines?watch=true&resourceVersion=0");
	expect_no_event(watching, 500);
	watch_close(watching);
	/* From the future on. */
	watching = watch_open(fixture, NULL, VMS "?watch=true&resourceVersion=9999");
	vm.name = "elm";
	add_vm(fixture, &vm);
	expect_no_event(watching, 500);
	watch_close(watching);
}

static void a_watch_from_a_version_tells_what_came_after_it_once(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching;
	struct reply list = get(fixture, VMS);
	char target[256];
	struct json_node *event;

	add_pine(fixture);
	(void)patch(fixture, PINE, "[{\"op\":\"add\",\"path\":\"/metadata/labels/a\",\"value\":\"b\"}]");
	(void)snprintf(target, sizeof target, VMS "?watch=true&resourceVersion=%s", version_of(fixture, list.root));
	watching = watch_open(fixture, NULL, target);
	expect_event(watching, 100, "ADDED");
	event = expect_event(watching, 100, "MODIFIED");
	expect_json(event, "/metadata/labels/a", "\"b\"");
	(void)patch(fixture, PINE, "[{\"op\":\"remove\",\"path\":\"/metadata/labels/a\"}]");
	event = expect_event(watching, 100, "MODIFIED");
	expect_json(event, "/metadata/labels/a", NULL);
	watch_close(watching);
}

/* K3 and 5.4 */
static void a_version_that_is_too_old_is_refused_in_three_ways(void **state)
{
	struct plane_fixture *fixture = *state;
	struct json_node *captured = read_json(fixture, "data/kube/vm-watch-410-cache.ndjson");
	struct watching *watching;
	struct json_node *event;
	struct reply reply;
	char message[128];

	add_pine(fixture);
	control_plane_compact(fixture->plane);
	watching = watch_open(fixture, NULL, VMS "?watch=true&resourceVersion=1");
	assert_int_equal(watching->status, 200);
	event = expect_event(watching, 100, "ERROR");
	(void)snprintf(message, sizeof message, "\"too old resource version: 1 (%s)\"", version_of(fixture, get(fixture, VMS).root));
	expect_json(event, "/message", message);
	assert_true(json_tree_remove(event, SLICE("message")));
	assert_true(json_tree_remove(json_tree_find(captured, "/object"), SLICE("message")));
	assert_true(json_tree_equal(event, json_tree_find(captured, "/object")));
	expect_no_event(watching, 100);
	assert_true(watching->done);
	assert_false(watching->failed);
	watch_close(watching);

	control_plane_set_expiry(fixture->plane, API_EXPIRY_ETCD);
	watching = watch_open(fixture, NULL, VMS "?watch=true&resourceVersion=1");
	event = expect_event(watching, 100, "ERROR");
	expect_json(event, "/message", "\"The resourceVersion for the provided watch is too old.\"");
	expect_json(event, "/code", "410");
	watch_close(watching);

	control_plane_set_expiry(fixture->plane, API_EXPIRY_HTTP);
	reply = get(fixture, VMS "?watch=true&resourceVersion=1");
	expect_message(&reply, 410, "The resourceVersion for the provided watch is too old.");
	expect_json(reply.root, "/reason", "\"Expired\"");
}

/* K6 */
static void a_pod_that_no_longer_matches_is_told_as_deleted(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching;
	struct json_node *event;
	struct reply reply;
	const char *before;
	struct error err;

	assert_true(control_plane_add_scheduler_pod(fixture->plane, "autoscale-scheduler", "s-1", "127.9.1.1", "node-a", &err));
	watching = watch_open(fixture, NULL, SYSTEM_PODS "?labelSelector=name%3Dautoscale-scheduler&watch=true");
	event = expect_event(watching, 100, "ADDED");
	before = version_of(fixture, event);
	expect_json(event, "/status/conditions/1/status", "\"True\"");
	assert_true(control_plane_set_pod_ready(fixture->plane, "kube-system", "s-1", false, &err));
	event = expect_event(watching, 100, "MODIFIED");
	expect_json(event, "/status/conditions/1/type", "\"Ready\"");
	expect_json(event, "/status/conditions/1/status", "\"False\"");
	assert_false(control_plane_set_pod_ready(fixture->plane, "kube-system", "s-2", false, &err));

	reply = admin(fixture, "PATCH", SYSTEM_PODS "/s-1", MERGE_PATCH, "{\"metadata\":{\"labels\":{\"name\":\"other\"}}}");
	expect_status(&reply, 200);
	event = expect_event(watching, 100, "DELETED");
	expect_json(event, "/metadata/labels/name", "\"autoscale-scheduler\"");
	assert_string_equal(version_of(fixture, event), version_of(fixture, reply.root));
	assert_string_not_equal(version_of(fixture, event), before);
	reply = admin(fixture, "PATCH", SYSTEM_PODS "/s-1", MERGE_PATCH, "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}");
	expect_no_event(watching, 100);
	reply = admin(fixture, "PATCH", SYSTEM_PODS "/s-1", MERGE_PATCH, "{\"metadata\":{\"labels\":{\"name\":\"autoscale-scheduler\"}}}");
	event = expect_event(watching, 100, "ADDED");
	expect_json(event, "/metadata/labels/x", "\"y\"");

	assert_true(control_plane_remove(fixture->plane, RESOURCE_PODS, "kube-system", "s-1", &err));
	event = expect_event(watching, 100, "MODIFIED");
	assert_non_null(json_tree_find(event, "/metadata/deletionTimestamp"));
	event = expect_event(watching, 100, "DELETED");
	assert_false(control_plane_remove(fixture->plane, RESOURCE_PODS, "kube-system", "s-1", &err));
	watch_close(watching);
}

/* K8 */
static void an_outage_cuts_watches_and_loses_nothing(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching;
	struct reply reply;
	struct json_node *event;
	char target[256];
	struct error err;

	add_pine(fixture);
	pass_ms(fixture, 500);
	watching = watch_vms(fixture);
	reply = get(fixture, VMS);
	(void)snprintf(target, sizeof target, VMS "?watch=true&resourceVersion=%s", version_of(fixture, reply.root));

	control_plane_set_available(fixture->plane, false);
	test_loop_until(fixture->loop, &watching->done);
	assert_true(watching->failed);
	assert_string_equal(error_root(&watching->err), "connection reset by peer");
	watch_close(watching);
	reply = get(fixture, VMS);
	assert_true(reply.failed);
	assert_string_equal(error_root(&reply.err), "connection refused");
	control_plane_set_available(fixture->plane, false);
	assert_true(control_plane_annotate_vm(fixture->plane, "pine", SLICE("a"), SLICE("b"), &err));

	control_plane_set_available(fixture->plane, true);
	control_plane_set_available(fixture->plane, true);
	watching = watch_open(fixture, NULL, target);
	event = expect_event(watching, 100, "MODIFIED");
	expect_json(event, "/metadata/annotations/a", "\"b\"");
	watch_close(watching);
}

static void watches_can_be_ended_cleanly_and_uncleanly(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = watch_open(fixture, NULL, VMS "?watch=true");

	control_plane_end_watches(fixture->plane, true);
	test_loop_until(fixture->loop, &watching->done);
	assert_false(watching->failed);
	watch_close(watching);
	watching = watch_open(fixture, NULL, VMS "?watch=true");
	control_plane_end_watches(fixture->plane, false);
	test_loop_until(fixture->loop, &watching->done);
	assert_true(watching->failed);
	watch_close(watching);
	watching = watch_open(fixture, NULL, VMS "?watch=true&timeoutSeconds=2");
	pass_ms(fixture, 1800);
	assert_false(watching->done);
	pass_ms(fixture, 400);
	assert_true(watching->done);
	assert_false(watching->failed);
	watch_close(watching);
}

static void a_client_that_goes_away_ends_its_watch(void **state)
{
	struct plane_fixture *fixture = *state;

	for (int i = 0; i < 3; i++) {
		watch_close(watch_open(fixture, NULL, VMS "?watch=true&allowWatchBookmarks=true"));
		test_loop_spin(fixture->loop, 10);
	}
	add_pine(fixture); /* nobody is told */
	pass_ms(fixture, 500);
	assert_int_equal(control_plane_counters(fixture->plane).watches, 3);
}

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
	reply = ask(fixture, &(struct ask){ .method = "PATCH", .target = EXAMPLE "-nope", .type = "text/plain", .body = "[]" });
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
	reply = patch(fixture, EXAMPLE, "[{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"1\"}]");
	expect_captured(fixture, &reply, 409, "status-409-conflict.json");

	/* status is written by its own path only. */
	reply = patch(fixture, EXAMPLE, "[{\"op\":\"replace\",\"path\":\"/status/phase\",\"value\":\"Failed\"}]");
	expect_status(&reply, 200);
	assert_true(json_tree_equal(reply.root, before.root));
	reply = admin(fixture, "PATCH", EXAMPLE "/status", JSON_PATCH, "[{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":2}]");
	expect_status(&reply, 200);
	assert_true(json_tree_equal(reply.root, before.root));
	expect_no_event(watching, 500);
	reply = admin(fixture, "PATCH", EXAMPLE "/status", JSON_PATCH, "[{\"op\":\"replace\",\"path\":\"/status/restartCount\",\"value\":3}]");
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
	assert_string_equal(fixture->told, "patched pine 500/2 2000/2\n");
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
	assert_true(slice_equal_text(slice_from(reply.body.data, reply.body.length), "Too many requests, please try again later.\n"));
	reply = get(fixture, VMS);
	expect_status(&reply, 200);
	watch_close(watching);
}

/* ---- create, update, delete: as an extender and kubectl do ---- */

static void objects_are_created_read_and_replaced(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply created = admin(fixture, "POST", RESERVATIONS, "application/json",
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
	expect_message(&reply, 409, "availablecapacityreservations.csi-baremetal.dell.com \"default-web-0\" already exists");
	expect_json(reply.root, "/reason", "\"AlreadyExists\"");

	(void)snprintf(body, sizeof body,
	               "{\"metadata\":{\"name\":\"default-web-0\",\"resourceVersion\":\"%s\"},\"spec\":{\"Status\":\"RESERVED\"}}",
	               version_of(fixture, created.root));
	reply = admin(fixture, "PUT", RESERVATIONS "/default-web-0", "application/json", body);
	expect_status(&reply, 200);
	expect_json(reply.root, "/spec", "{\"Status\":\"RESERVED\"}");
	expect_json(reply.root, "/metadata/generation", "2");
	assert_true(json_tree_equal(json_tree_find(reply.root, "/metadata/uid"), json_tree_find(created.root, "/metadata/uid")));
	reply = admin(fixture, "PUT", RESERVATIONS "/default-web-0", "application/json", body);
	expect_message(&reply, 409,
	               "Operation cannot be fulfilled on availablecapacityreservations.csi-baremetal.dell.com \"default-web-0\": the object has been "
	               "modified; please apply your changes to the latest version and try again");
	reply = admin(fixture, "PUT", RESERVATIONS "/default-web-0", "application/json", "{\"metadata\":{\"name\":\"default-web-0\"}}");
	expect_message(&reply, 422,
	               "AvailableCapacityReservation.csi-baremetal.dell.com \"default-web-0\" is invalid: metadata.resourceVersion: Invalid value: "
	               "0x0: must be specified for an update");
	reply = admin(fixture, "PUT", RESERVATIONS "/other", "application/json", "{\"metadata\":{\"name\":\"other\"}}");
	expect_status(&reply, 404);
	reply = admin(fixture, "PUT", RESERVATIONS "/other", "application/json", "{\"metadata\":{\"name\":\"default-web-0\"}}");
	expect_message(&reply, 400, "the name of the object (default-web-0) does not match the name on the URL (other)");

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
	assert_true(json_tree_set_text(&fixture->arena, json_tree_find(reply.root, "/metadata"), SLICE("resourceVersion"), SLICE("1")));
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
		reply = admin(fixture, "POST", "/apis/vm.neon.tech/v1/namespaces/default/virtualmachines", "application/json", body.data);
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
		{ "{\"kind\":\"Node\"}", 400, "the API version or kind in the data does not match the expected one of this path" },
		{ "{\"metadata\":{\"namespace\":\"other\"}}", 400,
		  "the namespace of the provided object does not match the namespace sent on the request" },
		{ "{\"metadata\":{}}", 422, "Pod \"\" is invalid: metadata.name: Required value: name or generateName is required" },
		{ "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}", 500, "resourceVersion should not be set on objects to be created" },
	};
	struct plane_fixture *fixture = *state;
	struct reply reply;

	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		reply = admin(fixture, "POST", SYSTEM_PODS, "application/json", CASES[i].body);
		expect_message(&reply, CASES[i].status, CASES[i].message);
	}
	reply = admin(fixture, "POST", SYSTEM_PODS, "text/plain", "{}");
	expect_status(&reply, 415);
	reply = admin(fixture, "POST", SYSTEM_PODS, "application/json; charset=utf-8", "{\"metadata\":{\"generateName\":\"web-\"},\"status\":{\"x\":1}}");
	expect_status(&reply, 201);
	assert_int_equal(json_tree_text(json_tree_find(reply.root, "/metadata/name")).length, sizeof "web-abcde" - 1);
	expect_json(reply.root, "/metadata/namespace", "\"kube-system\"");
	expect_json(reply.root, "/status", "{\"phase\":\"Pending\"}");
}

static void a_vm_created_through_the_api_gets_defaults_and_the_controllers_care(void **state)
{
	struct plane_fixture *fixture = *state;
	struct reply reply = ask(fixture, &(struct ask){ .method = "POST",
	                                                 .target = "/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines",
	                                                 .type = "application/json",
	                                                 .body = "{\"apiVersion\":\"vm.neon.tech/v1\",\"kind\":\"VirtualMachine\",\"metadata\":{"
	                                                         "\"name\":\"pine\"},\"spec\":{\"guest\":{\"cpus\":{\"min\":\"0.25\",\"max\":2,"
	                                                         "\"use\":\"2\"},\"memorySlots\":{\"min\":1,\"max\":4,\"use\":1},\"rootDisk\":{"
	                                                         "\"image\":\"x\"}}}}" });

	expect_status(&reply, 201);
	expect_json(reply.root, "/spec",
	            "{\"enableAcceleration\":true,\"enableNetworkMonitoring\":false,\"enableSSH\":true,\"guest\":{\"cpus\":{\"max\":2,\"min\":\"0.25\","
	            "\"use\":\"2\"},\"memorySlotSize\":\"1Gi\",\"memorySlots\":{\"max\":4,\"min\":1,\"use\":1},\"rootDisk\":{\"image\":\"x\","
	            "\"imagePullPolicy\":\"IfNotPresent\"}},\"qmp\":20183,\"qmpManual\":20184,\"restartPolicy\":\"Always\",\"runnerPort\":25183,"
	            "\"terminationGracePeriodSeconds\":5}");
	pass_ms(fixture, 1000);
	reply = get(fixture, PINE);
	expect_json(reply.root, "/status/phase", "\"Pending\""); /* for want of a node */
	reply = ask(fixture, &(struct ask){ .method = "POST",
	                                    .target = "/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines",
	                                    .type = "application/json",
	                                    .body = "{\"metadata\":{\"name\":\"oak\"},\"spec\":{\"guest\":{\"cpus\":{\"min\":1,\"max\":2,\"use\":1},"
	                                            "\"memorySlotSize\":\"100Mi\",\"memorySlots\":{\"min\":1,\"max\":4,\"use\":1}}}}" });
	expect_message(&reply, 403,
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
	put(fixture, "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"csi\"},\"provisioner\":\"csi-baremetal\"}");
	put(fixture, "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"},\"status\":{"
	             "\"phase\":\"Pending\"}}");
	put(fixture, "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"},\"status\":{"
	             "\"phase\":\"Bound\"}}");
	put(fixture, "{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"Volume\",\"metadata\":{\"name\":\"v\",\"namespace\":\"n\"}}");
	put(fixture, "{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"v\"}}");
	put(fixture, "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"e\",\"namespace\":\"n\"},\"involvedObject\":{\"name\":\"p\"}}");
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

/* ---- on the wire ---- */

struct wire {
	struct stream *stream;
	struct buffer input;
	bool closed;
};

static void wire_on_open(void *context)
{
	(void)context;
}

static void wire_on_data(void *context, struct slice bytes)
{
	buffer_append_slice(&((struct wire *)context)->input, bytes);
}

static void wire_on_close(void *context, const struct error *err)
{
	(void)err;
	((struct wire *)context)->closed = true;
}

/* Until something has come, and no more does. */
static void wire_wait(struct plane_fixture *fixture, struct wire *wire)
{
	size_t before;

	for (int i = 0; i < 500 && wire->input.length == 0 && !wire->closed; i++)
		test_loop_spin(fixture->loop, 5);
	do {
		before = wire->input.length;
		test_loop_spin(fixture->loop, 10);
	} while (wire->input.length > before);
	assert_true(wire->input.length > 0);
}

static void wire_open(struct plane_fixture *fixture, struct wire *wire, const char *target)
{
	static const struct stream_handler HANDLER = { .on_open = wire_on_open, .on_data = wire_on_data, .on_close = wire_on_close };
	struct tls_client_options trust = { .ca_pem = control_plane_ca_pem(fixture->plane) };
	struct tls_settings *tls;
	struct stream_connect_options options = { .host = "127.0.0.1", .port = fixture->address.port };
	char head[512];
	struct error err;

	*wire = (struct wire){ 0 };
	buffer_init(&wire->input, (size_t)64 * 1024 * 1024);
	tls = tls_client_settings_create(fixture->loop, &trust, &err);
	options.tls = tls;
	wire->stream = stream_connect(fixture->loop, &options, &HANDLER, wire, &err);
	assert_non_null(wire->stream);
	tls_settings_release(tls);
	(void)snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " AGENT_TOKEN "\r\n\r\n", target);
	assert_true(stream_write(wire->stream, slice_of(head), &err));
	wire_wait(fixture, wire);
}

static void wire_close(struct wire *wire)
{
	if (!wire->closed)
		stream_close(wire->stream);
	buffer_destroy(&wire->input);
}

/* Takes the next chunk's size off the front, with its bytes. */
static size_t take_chunk(struct wire *wire)
{
	char size_text[16];
	struct slice rest = buffer_slice(&wire->input);
	struct slice line = slice_take_until(&rest, '\n');
	size_t size;

	assert_in_range(line.length, 2, 10);
	(void)snprintf(size_text, sizeof size_text, "%.*s", (int)line.length - 1, line.data);
	size = strtoul(size_text, NULL, 16);
	assert_true(rest.length >= size + 2);
	buffer_consume(&wire->input, line.length + 1 + size + 2);
	return size;
}

static void take_head(struct wire *wire)
{
	const char *end = memmem(wire->input.data, wire->input.length, "\r\n\r\n", 4);

	assert_non_null(end);
	buffer_consume(&wire->input, (size_t)(end - wire->input.data) + 4);
}

static void events_are_cut_at_2048_bytes_and_share_chunks(void **state)
{
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct wire wire;
	size_t event_bytes;
	size_t chunks = 0;
	size_t total = 0;

	wire_open(fixture, &wire, VMS "?watch=true&resourceVersion=1");
	/* The head comes before any event. */
	assert_true(slice_starts_with(buffer_slice(&wire.input), SLICE("HTTP/1.1 200 OK\r\n")));
	assert_true(slice_contains(buffer_slice(&wire.input), SLICE("Transfer-Encoding: chunked\r\n")));
	assert_true(slice_contains(buffer_slice(&wire.input), SLICE("Cache-Control: no-cache, private\r\n")));
	take_head(&wire);
	assert_int_equal(wire.input.length, 0);

	add_vm(fixture, &vm);
	wire_wait(fixture, &wire);
	while (wire.input.length > 0) {
		size_t size = take_chunk(&wire);

		chunks++;
		total += size;
		assert_true(wire.input.length == 0 || size == 2048);
	}
	assert_true(chunks >= 2);
	event_bytes = total;

	/* Two events of one turn: the chunk in the middle has the end of one and the start of the next. */
	vm.name = "pane";
	vm.pod_name = "pane-x7k2p";
	add_vm(fixture, &vm);
	vm.name = "pone";
	vm.pod_name = "pone-x7k2p";
	add_vm(fixture, &vm);
	wire_wait(fixture, &wire);
	chunks = 0;
	total = 0;
	while (wire.input.length > 0) {
		total += take_chunk(&wire);
		chunks++;
	}
	assert_int_equal(total, 2 * event_bytes);
	assert_int_equal(chunks, (total + 2047) / 2048);
	wire_close(&wire);
}

static void short_answers_have_a_length_and_long_ones_chunks(void **state)
{
	struct plane_fixture *fixture = *state;
	struct wire wire;
	struct reply reply;

	reply = get(fixture, VMS);
	assert_string_not_equal(reply.length, "");
	add_pine(fixture);
	wire_open(fixture, &wire, VMS);
	take_head(&wire);
	assert_true(take_chunk(&wire) > 2048);
	assert_int_equal(take_chunk(&wire), 0);
	wire_close(&wire);
}

static unsigned count_of(const struct buffer *text, const char *part)
{
	const char *at = text->data;
	const char *end = text->data + text->length;
	unsigned count = 0;

	while ((at = memmem(at, (size_t)(end - at), part, strlen(part))) != NULL) {
		at += strlen(part);
		count++;
	}
	return count;
}

static void lists_and_watches_of_any_size_get_through(void **state)
{
	enum { VM_COUNT = 3000 };
	struct plane_fixture *fixture = *state;
	struct control_plane_vm vm = pine();
	struct watching *watching;
	struct reply reply;
	char name[32];
	unsigned events = 0;

	vm.pod_name = NULL;
	vm.name = name;
	for (int i = 0; i < VM_COUNT; i++) {
		(void)snprintf(name, sizeof name, "vm-%04d", i);
		add_vm(fixture, &vm);
	}
	reply = get(fixture, VMS);
	expect_status(&reply, 200);
	assert_true(reply.body.length > (size_t)8 * 1024 * 1024);
	assert_memory_equal(reply.body.data + reply.body.length - 4, "\"}}\n", 4);
	assert_int_equal(count_of(&reply.body, "\"kind\":\"VirtualMachine\","), VM_COUNT);
	watching = watch_open(fixture, NULL, VMS "?watch=true");
	while (events < VM_COUNT) {
		struct slice rest = buffer_slice(&watching->text);
		size_t used = 0;

		while (memchr(rest.data != NULL ? rest.data : "", '\n', rest.length) != NULL) {
			used += slice_take_until(&rest, '\n').length + 1;
			events++;
		}
		buffer_consume(&watching->text, used);
		assert_false(watching->done);
		test_loop_spin(fixture->loop, 1);
	}
	assert_int_equal(events, VM_COUNT);
	watch_close(watching);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_known_tokens_with_rights_are_served, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(the_agent_may_do_what_it_may_in_a_real_cluster, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(unknown_paths_and_methods_are_refused, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(lists_look_as_a_real_servers, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(selectors_that_cant_be_understood_are_bad_requests, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(fields_select_too, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_list_comes_in_pages_of_one_version, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(an_old_continue_token_is_refused_with_a_fresh_one, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(an_exact_version_is_listed_as_long_as_it_is_known, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_version_from_the_future_is_refused_after_three_seconds, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(bookmarks_come_each_minute_to_those_who_ask, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_watch_without_a_version_begins_with_everything, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_watch_from_a_version_tells_what_came_after_it_once, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_version_that_is_too_old_is_refused_in_three_ways, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_pod_that_no_longer_matches_is_told_as_deleted, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(an_outage_cuts_watches_and_loses_nothing, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(watches_can_be_ended_cleanly_and_uncleanly, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_client_that_goes_away_ends_its_watch, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(patches_are_refused_in_the_servers_order, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_patched_value_keeps_its_form, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(overload_is_told_with_a_time_to_wait, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(objects_are_created_read_and_replaced, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(conflict_and_existence_are_told_as_a_real_server_does, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(bodies_that_dont_fit_their_path_are_refused, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_vm_created_through_the_api_gets_defaults_and_the_controllers_care, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(any_known_object_can_be_put_from_inside, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(events_are_cut_at_2048_bytes_and_share_chunks, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(short_answers_have_a_length_and_long_ones_chunks, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(lists_and_watches_of_any_size_get_through, plane_set_up, plane_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
