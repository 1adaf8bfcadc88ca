/*
 * The stand-in scheduler, with an extender that does what the test says.
 */
#include "scene.h"

#include "net/http_client.h"
#include "net/http_server.h"
#include "sandbox/kube_scheduler.h"
#include "sandbox/volume_provisioner.h"
#include "storage_scene.h"

enum { BODY_BYTES = 1024 * 1024, TEXT_BYTES = 4096 };

struct extender {
	struct http_server *server;
	struct address address;
	const char *filter, *prioritize; /* bodies of the answers; filter NULL: none comes */
	int status;
	unsigned filters, prioritizes;
	char request[TEXT_BYTES]; /* the end of the last one's body */
	struct http_call *hanging;
};

struct setting {
	struct storage_scene storage;
	struct extender extender;
	struct kube_scheduler_options options;
	struct kube_scheduler *scheduler;
	char called[256]; /* the calls that were over, as they were told */
	char why[256];
	unsigned unschedulable;
};

static void on_request(void *context, struct http_call *call)
{
	struct extender *extender = context;
	struct slice body = http_call_body(call);
	bool filter = slice_equal_text(http_call_path(call), "/filter");

	assert_true(slice_equal_text(http_call_method(call), "POST"));
	(void)snprintf(extender->request, sizeof extender->request, "%.*s",
	               SLICE_ARGS(slice_from_offset(body, body.length > 1000 ? body.length - 1000 : 0)));
	extender->filters += filter;
	extender->prioritizes += !filter;
	if (filter && extender->filter == NULL) {
		extender->hanging = call;
		return;
	}
	http_call_respond(call, extender->status, "application/json",
	                  slice_of(filter ? extender->filter : extender->prioritize));
}

static void on_abort(void *context, struct http_call *call)
{
	struct extender *extender = context;

	if (extender->hanging == call)
		extender->hanging = NULL;
}

static void on_unschedulable(void *context, struct slice name_space, struct slice name, const char *why)
{
	struct setting *setting = context;

	(void)name_space;
	(void)name;
	setting->unschedulable++;
	(void)snprintf(setting->why, sizeof setting->why, "%s", why);
}

static void on_called(void *context, const struct kube_scheduler_call *call)
{
	struct setting *setting = context;
	size_t used = strlen(setting->called);

	assert_true(call->pod_text.length > 0);
	(void)snprintf(setting->called + used, sizeof setting->called - used, "%s %.*s/%.*s %zu nodes: %d; ",
	               call->target, SLICE_ARGS(call->name_space), SLICE_ARGS(call->name), call->node_count,
	               call->failure == NULL ? call->response->status : 0);
}

static void start_scheduler(struct setting *setting)
{
	static const struct kube_scheduler_handler SCHEDULER = { .on_called = on_called,
		                                                 .on_unschedulable = on_unschedulable };
	struct error err;

	setting->scheduler = kube_scheduler_create(setting->storage.loop, &setting->options, &SCHEDULER, setting, &err);
	assert_non_null(setting->scheduler);
}

static void open_setting(struct setting *setting, bool names, bool strict)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request, .on_abort = on_abort };
	struct http_server_options server = { .max_body_bytes = BODY_BYTES };
	struct kube_scheduler_options options = { .speed = 1, .node_names = names, .strict = strict };
	struct error err;

	memset(setting, 0, sizeof *setting);
	storage_scene_open(&setting->storage);
	assert_true(address_parse(SLICE("127.0.0.1"), 0, &server.address));
	setting->extender.server =
		http_server_start(setting->storage.loop, &server, &HANDLER, &setting->extender, &err);
	assert_non_null(setting->extender.server);
	assert_true(http_server_address(setting->extender.server, &options.extender));
	setting->extender.status = 200;
	setting->extender.prioritize = "null";
	options.store = setting->storage.store;
	setting->options = options;
	start_scheduler(setting);
}

static void close_setting(struct setting *setting)
{
	kube_scheduler_destroy(setting->scheduler);
	http_server_destroy(setting->extender.server);
	storage_scene_close(&setting->storage);
}

static struct kube_scheduler_pod find(const struct setting *setting, const char *name)
{
	struct kube_scheduler_pod pod;

	assert_true(kube_scheduler_find(setting->scheduler, SLICE("shop"), slice_of(name), &pod));
	return pod;
}

#define NODES(items) \
	"{\"Nodes\":{\"metadata\":{},\"items\":" items "},\"NodeNames\":null,\"FailedNodes\":null,\"Error\":\"\"}"
#define NODE(name) "{\"metadata\":{\"name\":\"" name "\"}}"
#define PENDING NODES("null")

/* ---- tests ---- */

static void a_pod_is_bound_to_the_only_node_that_is_left(void **state)
{
	(void)state;
	struct setting setting;

	open_setting(&setting, false, false);
	setting.extender.filter = NODES("[" NODE("node-b") "]") " and more";
	storage_scene_pod(&setting.storage, "web", NULL);
	scene_advance(setting.storage.loop, 50);
	assert_member(&setting.storage, RESOURCE_PODS, "shop", "web", "/spec/nodeName", "node-b");
	assert_member(&setting.storage, RESOURCE_PODS, "shop", "web", "/status/phase", "Running");
	assert_int_equal(setting.extender.filters, 1);
	/* One node needs no scores. */
	assert_int_equal(setting.extender.prioritizes, 0);
	assert_non_null(strstr(setting.extender.request, "\"NodeNames\":null"));
	assert_non_null(strstr(setting.extender.request, "\"name\":\"node-a\""));
	assert_false(find(&setting, "web").unchecked);
	close_setting(&setting);
}

static void the_node_with_the_highest_score_is_taken(void **state)
{
	(void)state;
	struct setting setting;

	open_setting(&setting, false, false);
	setting.extender.filter = NODES("[" NODE("node-a") "," NODE("node-b") "]");
	setting.extender.prioritize =
		"[{\"Host\":\"node-a\",\"Score\":2},{\"Host\":\"node-b\",\"Score\":3},{\"Host\":\"x\",\"Score\":9}]\n";
	for (unsigned i = 0; i < 5; i++) {
		char name[16];

		(void)snprintf(name, sizeof name, "web-%u", i);
		storage_scene_pod(&setting.storage, name, NULL);
		scene_advance(setting.storage.loop, 50);
		assert_member(&setting.storage, RESOURCE_PODS, "shop", name, "/spec/nodeName", "node-b");
	}
	assert_int_equal(setting.extender.prioritizes, 5);
	close_setting(&setting);
}

static void with_names_only_names_go_and_come(void **state)
{
	(void)state;
	struct setting setting;

	open_setting(&setting, true, true);
	setting.extender.filter = "{\"Nodes\":null,\"NodeNames\":[\"node-b\"],\"FailedNodes\":{},\"Error\":\"\"}";
	storage_scene_pod(&setting.storage, "web", NULL);
	scene_advance(setting.storage.loop, 50);
	assert_member(&setting.storage, RESOURCE_PODS, "shop", "web", "/spec/nodeName", "node-b");
	assert_non_null(strstr(setting.extender.request, "\"Nodes\":null,\"NodeNames\":[\"node-a\",\"node-b\"]"));
	/* A name that wasn't sent is a failure. */
	setting.extender.filter = "{\"Nodes\":null,\"NodeNames\":[\"node-c\"],\"Error\":\"\"}";
	storage_scene_pod(&setting.storage, "lost", NULL);
	scene_advance(setting.storage.loop, 50);
	assert_false(find(&setting, "lost").bound);
	assert_string_equal(setting.why, "the extender names node \"node-c\", which it wasn't sent");
	assert_int_equal(kube_scheduler_counters(setting.scheduler).failed_filter_calls, 1);
	close_setting(&setting);
}

static void a_pod_without_a_node_is_tried_again_after_1_2_4_8_and_10_seconds(void **state)
{
	(void)state;
	static const unsigned waits_ms[] = { 1000, 2000, 4000, 8000, 10000, 10000 };
	struct setting setting;

	open_setting(&setting, false, false);
	setting.extender.filter = PENDING;
	storage_scene_pod(&setting.storage, "web", NULL);
	scene_advance(setting.storage.loop, 20);
	for (unsigned i = 0; i < sizeof waits_ms / sizeof waits_ms[0]; i++) {
		assert_int_equal(setting.extender.filters, i + 1);
		scene_advance(setting.storage.loop, waits_ms[i] - 50);
		assert_int_equal(setting.extender.filters, i + 1);
		scene_advance(setting.storage.loop, 50);
	}
	assert_string_equal(setting.why, "the extender left no node");
	/* One event, counted: the first attempt's, and six more. */
	assert_int_equal(object_store_count(setting.storage.store, resource_kind(RESOURCE_EVENTS)), 1);
	assert_int_equal(find(&setting, "web").filter_calls, 7);
	close_setting(&setting);
}

static void a_failed_call_leaves_all_nodes_unless_the_extender_is_needed(void **state)
{
	(void)state;
	static const struct {
		int status;
		const char *filter;
	} rows[] = {
		{ 500, PENDING },
		{ 200, "not JSON" },
		{ 200, "{\"Nodes\":null,\"Error\":\"no\"}" },
		{ 200, NODES("[" NODE("node-x") "]") },
	};

	for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
		bool strict = i % 2 == 1;
		struct setting setting;

		open_setting(&setting, false, strict);
		setting.extender.status = rows[i / 2].status;
		setting.extender.filter = rows[i / 2].filter;
		storage_scene_pod(&setting.storage, "web", NULL);
		scene_advance(setting.storage.loop, 100);
		assert_int_equal(find(&setting, "web").bound, !strict);
		assert_int_equal(find(&setting, "web").unchecked, !strict);
		assert_int_equal(setting.unschedulable, strict);
		close_setting(&setting);
	}
}

static void an_answer_that_doesnt_come_is_a_failure_after_15_seconds(void **state)
{
	(void)state;
	struct setting setting;

	open_setting(&setting, false, false);
	storage_scene_pod(&setting.storage, "web", NULL);
	scene_advance(setting.storage.loop, KUBE_SCHEDULER_TIMEOUT_MS - 100);
	assert_false(find(&setting, "web").bound);
	setting.extender.filter = PENDING; /* of no use any more */
	scene_advance(setting.storage.loop, 200);
	assert_true(find(&setting, "web").bound);
	close_setting(&setting);
}

static void one_pod_is_tried_at_a_time(void **state)
{
	(void)state;
	struct setting setting;

	open_setting(&setting, false, false);
	storage_scene_pod(&setting.storage, "first", NULL);
	storage_scene_pod(&setting.storage, "second", NULL);
	scene_advance(setting.storage.loop, 1000);
	assert_int_equal(setting.extender.filters, 1);
	setting.extender.filter = PENDING;
	http_call_respond(setting.extender.hanging, 200, "application/json", SLICE(PENDING));
	scene_advance(setting.storage.loop, 20);
	assert_int_equal(setting.extender.filters, 2);
	close_setting(&setting);
}

static void one_that_starts_anew_takes_the_pods_that_are_there(void **state)
{
	(void)state;
	struct setting setting;

	open_setting(&setting, false, false);
	kube_scheduler_destroy(setting.scheduler);
	storage_scene_pod(&setting.storage, "web", NULL);
	setting.extender.filter = NODES("[" NODE("node-b") "," NODE("node-a") "]");
	start_scheduler(&setting);
	scene_advance(setting.storage.loop, 50);
	assert_true(find(&setting, "web").bound);
	assert_string_equal(setting.called, "/filter shop/web 2 nodes: 200; /prioritize shop/web 2 nodes: 200; ");
	kube_scheduler_destroy(setting.scheduler);
	start_scheduler(&setting);
	scene_advance(setting.storage.loop, 50);
	/* It has its node. */
	assert_int_equal(setting.extender.filters, 1);
	close_setting(&setting);
}

static void once_stopped_it_places_nothing_though_its_call_fails(void **state)
{
	(void)state;
	struct setting setting;

	open_setting(&setting, false, false);
	storage_scene_pod(&setting.storage, "web", NULL);
	scene_advance(setting.storage.loop, 20);
	assert_non_null(setting.extender.hanging);
	kube_scheduler_stop(setting.scheduler);
	storage_scene_pod(&setting.storage, "late", NULL);
	scene_advance(setting.storage.loop, KUBE_SCHEDULER_TIMEOUT_MS + 100);
	assert_null(setting.extender.hanging);
	assert_false(find(&setting, "web").bound);
	assert_int_equal(setting.extender.filters, 1);
	close_setting(&setting);
}

static void volumes_are_made_on_the_node_before_the_pod_is_bound(void **state)
{
	(void)state;
	static const struct provisioner_handler PROVISIONER = { .on_refused = NULL };
	struct volume_provisioner *provisioner;
	struct setting setting;
	struct error err;

	open_setting(&setting, false, false);
	setting.extender.filter = NODES("[" NODE("node-a") "]");
	provisioner =
		volume_provisioner_create(setting.storage.loop, setting.storage.store, 1, &PROVISIONER, NULL, &err);
	assert_non_null(provisioner);
	storage_scene_capacity(&setting.storage, "disk", 0, "HDD", 1 << 30);
	storage_scene_claim(&setting.storage, "data", "1Gi", NULL);
	storage_scene_pod(&setting.storage, "web", "data");
	/* Nothing is reserved: the node is taken back, and the pod waits. */
	scene_advance(setting.storage.loop, 100);
	assert_false(find(&setting, "web").bound);
	assert_string_equal(setting.why, "its volumes couldn't be made on the node");
	storage_scene_reservation(
		&setting.storage, "web", "RESERVED",
		"{\"CapacityRequest\":{\"Name\":\"data\",\"StorageClass\":\"HDD\",\"Size\":1073741824},\"Reservations\":[\"disk\"]}");
	scene_advance(setting.storage.loop, 1200);
	assert_true(find(&setting, "web").bound);
	assert_member(&setting.storage, RESOURCE_CLAIMS, "shop", "data", "/status/phase", "Bound");
	/* Made again, it can go nowhere else: only the node of its volume is sent. */
	assert_true(storage_remove(setting.storage.store, RESOURCE_PODS, SLICE("shop"), SLICE("web"), &err));
	storage_scene_pod(&setting.storage, "web", "data");
	scene_advance(setting.storage.loop, 100);
	assert_true(find(&setting, "web").bound);
	assert_int_equal(find(&setting, "web").filter_calls, 1);
	assert_null(strstr(setting.extender.request, "\"name\":\"node-b\""));
	volume_provisioner_destroy(provisioner);
	close_setting(&setting);
}

static void a_pod_without_its_claim_isnt_sent_and_one_that_is_deleted_is_forgotten(void **state)
{
	(void)state;
	struct kube_scheduler_pod pod;
	struct setting setting;
	struct error err;

	open_setting(&setting, false, false);
	storage_scene_pod(&setting.storage, "web", "missing");
	scene_advance(setting.storage.loop, 50);
	assert_int_equal(setting.extender.filters, 0);
	assert_string_equal(setting.why, "persistentvolumeclaim \"missing\" not found");
	/* Deleted while the extender thinks about it. */
	storage_scene_pod(&setting.storage, "brief", NULL);
	scene_advance(setting.storage.loop, 50);
	assert_int_equal(setting.extender.filters, 1);
	assert_true(storage_remove(setting.storage.store, RESOURCE_PODS, SLICE("shop"), SLICE("brief"), &err));
	assert_true(storage_remove(setting.storage.store, RESOURCE_PODS, SLICE("shop"), SLICE("web"), &err));
	assert_false(kube_scheduler_find(setting.scheduler, SLICE("shop"), SLICE("brief"), &pod));
	http_call_respond(setting.extender.hanging, 200, "application/json", SLICE(NODES("[" NODE("node-a") "]")));
	scene_advance(setting.storage.loop, 5000);
	assert_int_equal(setting.extender.filters, 1);
	assert_int_equal(kube_scheduler_counters(setting.scheduler).bound, 0);
	close_setting(&setting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_bound_to_the_only_node_that_is_left),
		cmocka_unit_test(the_node_with_the_highest_score_is_taken),
		cmocka_unit_test(with_names_only_names_go_and_come),
		cmocka_unit_test(a_pod_without_a_node_is_tried_again_after_1_2_4_8_and_10_seconds),
		cmocka_unit_test(a_failed_call_leaves_all_nodes_unless_the_extender_is_needed),
		cmocka_unit_test(an_answer_that_doesnt_come_is_a_failure_after_15_seconds),
		cmocka_unit_test(one_pod_is_tried_at_a_time),
		cmocka_unit_test(one_that_starts_anew_takes_the_pods_that_are_there),
		cmocka_unit_test(once_stopped_it_places_nothing_though_its_call_fails),
		cmocka_unit_test(volumes_are_made_on_the_node_before_the_pod_is_bound),
		cmocka_unit_test(a_pod_without_its_claim_isnt_sent_and_one_that_is_deleted_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
