/*
 * The workload's pods with a small extender of the test's own, which writes reservations into the store and reads their answers there.
 */
#include "scene.h"

#include "net/http_server.h"
#include "sandbox/pod_cluster.h"
#include "storage_scene.h"

enum { BODY_BYTES = 1024 * 1024, PODS = 16, RUN_MS = 24000 };

struct setting {
	struct loop *loop;
	struct object_store *store;
	struct arena arena;
	struct pod_workload *workload;
	struct pod_cluster *cluster;
	struct http_server *server;
	bool careless; /* it lets every pod go everywhere */
	unsigned mismatches;
	char mismatch[256];
};

/* ---- the extender ---- */

/* The pod's requests, in the form of a reservation; false if it has none. */
static bool print_requests(struct setting *setting, const struct pod_plan *pod, struct buffer *out)
{
	for (unsigned i = 0; i < pod->volume_count; i++) {
		const struct pod_volume *volume = &pod->volumes[i];
		const struct stored_object *object = object_store_find(setting->store, resource_kind(RESOURCE_CLAIMS),
		                                                       SLICE(POD_NAME_SPACE), slice_of(volume->claim));
		struct storage_claim claim;
		struct error err;

		assert_non_null(object);
		assert_true(storage_read_claim(object, &setting->arena, &claim, &err));
		buffer_append_format(
			out,
			"%s{\"CapacityRequest\":{\"Name\":\"%s\",\"StorageClass\":\"%s\",\"Size\":%lld,\"StorageGroup\":\"%s\"}}",
			i > 0 ? "," : "", volume->claim, storage_type_name(volume->type), (long long)claim.size_bytes,
			volume->group);
	}
	return pod->volume_count > 0;
}

static void print_node_ids(struct setting *setting, struct buffer *out)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_NODES);

	for (size_t i = 0; i < object_store_count(setting->store, kind); i++) {
		struct json_node *root;
		struct error err;

		assert_true(storage_parse(object_store_at(setting->store, kind, i), &setting->arena, &root, &err));
		buffer_append_format(out, "%s\"%.*s\"", i > 0 ? "," : "",
		                     SLICE_ARGS(storage_text(root, "/metadata/uid")));
	}
}

static void ask_anew(struct setting *setting, const struct pod_plan *pod)
{
	struct buffer requests, nodes;
	char name[64];
	struct error err;

	(void)snprintf(name, sizeof name, POD_NAME_SPACE "-%s", pod->name);
	buffer_init(&requests, BODY_BYTES);
	buffer_init(&nodes, BODY_BYTES);
	assert_true(print_requests(setting, pod, &requests));
	print_node_ids(setting, &nodes);
	assert_true(storage_remove(setting->store, RESOURCE_RESERVATIONS, slice_from(NULL, 0), slice_of(name), &err));
	if (!storage_add(
		    setting->store, &setting->arena, NULL, &err,
		    "{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"AvailableCapacityReservation\",\"metadata\":{\"name\":"
		    "\"%s\"},\"spec\":{\"Namespace\":\"" POD_NAME_SPACE
		    "\",\"Status\":\"REQUESTED\",\"NodeRequests\":{\"Requested\":["
		    "%.*s]},\"ReservationRequests\":[%.*s]}}",
		    name, SLICE_ARGS(buffer_slice(&nodes)), SLICE_ARGS(buffer_slice(&requests))))
		fail_msg("%s", err.text);
	buffer_destroy(&requests);
	buffer_destroy(&nodes);
}

/* Those of the request's nodes that are reserved, or all. */
static void print_nodes(struct setting *setting, const struct json_node *request, const struct json_node *reserved,
                        struct buffer *out)
{
	const struct json_node *items = json_tree_find(request, "/Nodes/items");
	bool first = true;

	(void)setting;
	buffer_append_text(out, "{\"Nodes\":{\"metadata\":{},\"items\":[");
	for (const struct json_node *item = items->first; item != NULL; item = item->next) {
		bool matches = reserved == NULL;

		for (const struct json_node *id = reserved == NULL ? NULL : reserved->first; id != NULL; id = id->next)
			matches |= slice_equal(json_tree_text(id), storage_text(item, "/metadata/uid"));
		if (!matches)
			continue;
		buffer_append_format(out, "%s{\"metadata\":{\"name\":\"%.*s\"}}", first ? "" : ",",
		                     SLICE_ARGS(storage_text(item, "/metadata/name")));
		first = false;
	}
	buffer_append_text(out, "]},\"NodeNames\":null,\"FailedNodes\":null,\"Error\":\"\"}");
}

/* A reservation that doesn't ask for what the pod asks for now counts for nothing. */
static bool is_current(struct setting *setting, const struct pod_plan *pod, const struct json_node *reservation)
{
	const struct stored_object *object = object_store_find(setting->store, resource_kind(RESOURCE_CLAIMS),
	                                                       SLICE(POD_NAME_SPACE), slice_of(pod->volumes[0].claim));
	struct storage_claim claim;
	struct error err;

	return object != NULL && storage_read_claim(object, &setting->arena, &claim, &err) &&
	       storage_integer(reservation, "/spec/ReservationRequests/0/CapacityRequest/Size") == claim.size_bytes;
}

static void filter(struct setting *setting, const struct pod_plan *pod, const struct json_node *request,
                   struct buffer *out)
{
	char name[64];
	const struct stored_object *object;
	struct json_node *root = NULL;
	struct error err;

	(void)snprintf(name, sizeof name, POD_NAME_SPACE "-%s", pod->name);
	object = object_store_find(setting->store, resource_kind(RESOURCE_RESERVATIONS), slice_from(NULL, 0),
	                           slice_of(name));
	assert_true(object == NULL || storage_parse(object, &setting->arena, &root, &err));
	if (setting->careless || pod->volume_count == 0) {
		print_nodes(setting, request, NULL, out);
	} else if (root != NULL && is_current(setting, pod, root) &&
	           slice_equal_text(storage_text(root, "/spec/Status"), "RESERVED")) {
		print_nodes(setting, request, json_tree_find(root, "/spec/NodeRequests/Reserved"), out);
	} else {
		if (root == NULL || !slice_equal_text(storage_text(root, "/spec/Status"), "REQUESTED"))
			ask_anew(setting, pod);
		buffer_append_text(out, "{\"Nodes\":null,\"Error\":\"\"}");
	}
}

static void on_request(void *context, struct http_call *call)
{
	struct setting *setting = context;
	struct json_node *request;
	struct buffer answer;
	struct error err;

	buffer_init(&answer, BODY_BYTES);
	if (slice_equal_text(http_call_path(call), "/filter")) {
		assert_true(json_tree_parse(http_call_body(call), &setting->arena, &request, &err));
		for (unsigned i = 0; i < PODS; i++) {
			const struct pod_plan *pod = &setting->workload->pods[i];

			if (slice_equal_text(storage_text(request, "/Pod/metadata/name"), pod->name))
				filter(setting, pod, request, &answer);
		}
	} else {
		buffer_append_text(&answer, "null");
	}
	http_call_respond(call, 200, "application/json", buffer_slice(&answer));
	buffer_destroy(&answer);
}

/* ---- the setting ---- */

static void on_pod(void *context, unsigned pod, const char *text)
{
	(void)context;
	(void)pod;
	assert_true(text[0] != '\0');
}

static void on_mismatch(void *context, const char *text)
{
	struct setting *setting = context;

	setting->mismatches++;
	(void)snprintf(setting->mismatch, sizeof setting->mismatch, "%s", text);
}

static void open_setting(struct setting *setting, uint64_t seed, bool careless)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request };
	static const struct pod_cluster_handler CLUSTER = { .on_pod = on_pod, .on_mismatch = on_mismatch };
	struct pod_workload_options workload = {
		.seed = seed, .pods = PODS, .nodes = 3, .duration_ns = RUN_MS * (uint64_t)NS_PER_MS, .speed = 4
	};
	struct http_server_options server = { .max_body_bytes = BODY_BYTES };
	struct pod_cluster_options options = { .faults = NULL };
	struct error err;

	*setting = (struct setting){ .careless = careless, .loop = loop_epoll_create(&err) };
	assert_non_null(setting->loop);
	setting->store = object_store_create(setting->loop, &err);
	assert_non_null(setting->store);
	arena_init(&setting->arena, STORAGE_ARENA_BYTES);
	setting->workload = pod_workload_create(&workload, &err);
	assert_non_null(setting->workload);
	assert_true(address_parse(SLICE("127.0.0.1"), 0, &server.address));
	setting->server = http_server_start(setting->loop, &server, &HANDLER, setting, &err);
	assert_non_null(setting->server);
	assert_true(http_server_address(setting->server, &options.extender));
	options.store = setting->store;
	options.workload = setting->workload;
	setting->cluster = pod_cluster_create(setting->loop, &options, &CLUSTER, setting, &err);
	if (setting->cluster == NULL)
		fail_msg("%s", err.text);
	pod_cluster_begin(setting->cluster);
}

static void close_setting(struct setting *setting)
{
	pod_cluster_destroy(setting->cluster);
	http_server_destroy(setting->server);
	object_store_destroy(setting->store);
	pod_workload_destroy(setting->workload);
	arena_destroy(&setting->arena);
	loop_destroy(setting->loop);
}

/* ---- tests ---- */

static void pods_that_fit_are_bound_where_their_disks_are_and_others_wait(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct pod_cluster_counters counters;
		struct setting setting;
		struct error err;

		open_setting(&setting, seed, false);
		scene_advance(setting.loop, RUN_MS);
		for (unsigned i = 0; i < PODS; i++) {
			struct pod_cluster_state pod = pod_cluster_state(setting.cluster, i);

			if (pod.bound != setting.workload->pods[i].fits)
				fail_msg("seed %llu: %s", (unsigned long long)seed, setting.workload->pods[i].name);
			if (!pod_cluster_check_volumes(setting.cluster, i, &err))
				fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
			assert_true(pod.filter_calls > 0);
			assert_true(!pod.bound || pod.seconds_to_bind < 4);
		}
		counters = pod_cluster_counters(setting.cluster);
		assert_int_equal(setting.mismatches, 0);
		assert_int_equal(counters.promised_twice, 0);
		assert_int_equal(counters.volumes.refused, 0);
		assert_int_equal(counters.placed, counters.scheduler.bound);
		assert_true(counters.busy_seconds > 0 && counters.busy_seconds < RUN_MS / 1000.0);
		close_setting(&setting);
	}
}

static void nothing_is_made_for_pods_that_a_careless_extender_lets_pass(void **state)
{
	(void)state;
	struct setting setting;

	open_setting(&setting, 1, true);
	scene_advance(setting.loop, 6000);
	for (unsigned i = 0; i < PODS; i++) {
		const struct pod_plan *plan = &setting.workload->pods[i];
		struct pod_cluster_state pod = pod_cluster_state(setting.cluster, i);
		struct error err;

		/* Whoever finds a reservation of an earlier pod gets a volume that is too small, and that is seen. */
		if (plan->kind == POD_LEFTOVER && pod.bound)
			assert_false(pod_cluster_check_volumes(setting.cluster, i, &err));
		else
			assert_int_equal(pod.bound, plan->kind == POD_PLAIN);
	}
	assert_true(pod_cluster_counters(setting.cluster).volumes.refused > 10);
	close_setting(&setting);
}

static void a_pod_that_is_bound_although_it_cant_fit_is_a_mismatch(void **state)
{
	(void)state;
	struct setting setting;
	const struct pod_plan *plan;

	open_setting(&setting, 1, true);
	plan = &setting.workload->pods[POD_TOO_LARGE];
	scene_advance(setting.loop, 9000);
	/* Somebody binds its claims behind everybody's back. */
	for (unsigned i = 0; i < plan->volume_count; i++) {
		struct object_edit edit;
		struct error err;

		assert_true(
			object_edit_begin(&edit,
		                          object_store_find(setting.store, resource_kind(RESOURCE_CLAIMS),
		                                            SLICE(POD_NAME_SPACE), slice_of(plan->volumes[i].claim)),
		                          &err));
		assert_true(json_tree_set_text(&edit.arena, json_tree_find(edit.root, "/status"), SLICE("phase"),
		                               SLICE("Bound")));
		assert_true(object_edit_commit(&edit, setting.store, &err));
		object_edit_end(&edit);
	}
	scene_advance(setting.loop, 4000);
	assert_int_equal(setting.mismatches, 1);
	assert_non_null(strstr(setting.mismatch, "pod too-large-1 was bound to node-"));
	close_setting(&setting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_that_fit_are_bound_where_their_disks_are_and_others_wait),
		cmocka_unit_test(nothing_is_made_for_pods_that_a_careless_extender_lets_pass),
		cmocka_unit_test(a_pod_that_is_bound_although_it_cant_fit_is_a_mismatch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
