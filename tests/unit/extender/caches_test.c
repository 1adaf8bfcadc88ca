#include "api_scene.h"

#include "extender/caches.h"
#include "extender/process_limits.h"

#define JSON_FIELD "Content-Type: application/json\r\n"
#define LIST(items) "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" items "]}"
#define CLAIM(uid, name, spec, phase)                                                                          \
	"{\"metadata\":{\"uid\":\"" uid "\",\"resourceVersion\":\"9\",\"namespace\":\"shop\",\"name\":\"" name \
	"\",\"labels\":{\"drive.csi-baremetal.dell.com/storage-group\":\"fast\"}},\"spec\":" spec              \
	",\"status\":{\"phase\":\"" phase "\"}}"
#define CLASS(uid, name)                                      \
	"{\"metadata\":{\"uid\":\"" uid "\",\"name\":\"" name \
	"\"},\"provisioner\":\"csi-baremetal\",\"parameters\":{\"storageType\":\"hdd\",\"StorageType\":\"ssd\"}}"
#define VOLUME(uid, spec)                                                                                  \
	"{\"metadata\":{\"uid\":\"" uid "\",\"resourceVersion\":\"9\",\"namespace\":\"n\",\"name\":\"" uid \
	"\"},\"spec\":" spec "}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

enum kind { CLAIMS, CLASSES, VOLUMES, NODES, KINDS };

struct scene {
	struct api_scene base;
	struct extender_settings settings;
	struct caches *caches;
	struct scripted_request *watches[KINDS];
	size_t looked_at; /* requests */
	bool synced, missing;
	struct error err;
};

static void on_synced(void *context)
{
	struct scene *scene = context;

	assert_false(scene->synced);
	scene->synced = true;
}

static void on_missing(void *context, const struct error *err)
{
	struct scene *scene = context;

	scene->missing = true;
	scene->err = *err;
}

static int set_up(void **state)
{
	static const struct caches_handler HANDLER = { .on_synced = on_synced, .on_missing = on_missing };
	struct scene *scene = calloc(1, sizeof *scene);
	struct caches_options options;
	struct error err;

	api_scene_begin(&scene->base);
	options = (struct caches_options){
		.loop = scene->base.loop,
		.client = scene->base.fixture->client,
		.metrics = scene->base.metrics,
		.settings = &scene->settings,
		.log_sink = scene->base.fixture->sink,
	};
	scene->caches = caches_start(&options, &HANDLER, scene, &err);
	assert_non_null(scene->caches);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	caches_stop(scene->caches);
	api_scene_end(&scene->base);
	free(scene);
	return 0;
}

static enum kind kind_of(const struct scripted_request *request)
{
	static const char *const PATHS[KINDS] = {
		[CLAIMS] = "/api/v1/persistentvolumeclaims",
		[CLASSES] = "/apis/storage.k8s.io/v1/storageclasses",
		[VOLUMES] = "/apis/csi-baremetal.dell.com/v1/volumes",
		[NODES] = "/api/v1/nodes",
	};

	for (int i = 0; i < KINDS; i++) {
		if (slice_starts_with(request->target, slice_of(PATHS[i])))
			return (enum kind)i;
	}
	fail_msg("a request for %.*s", SLICE_ARGS(request->target));
	return KINDS;
}

/* Answers the next request: a list as in lists (NULL: 403), a watch by opening it. */
static enum kind answer_next_request(struct scene *scene, const char *const lists[KINDS])
{
	struct scripted_request *request = scripted_api_wait(scene->base.api, ++scene->looked_at);
	enum kind kind = kind_of(request);

	if (slice_contains(request->target, SLICE("watch=true"))) {
		scripted_begin(request, 200, JSON_FIELD);
		scene->watches[kind] = request;
	} else if (lists[kind] == NULL) {
		scripted_reply(request, 403, JSON_FIELD, "{\"kind\":\"Status\",\"message\":\"not allowed\"}");
	} else {
		scripted_reply(request, 200, JSON_FIELD, lists[kind]);
	}
	return kind;
}

static const char *const LISTS[KINDS] = {
	[CLAIMS] = LIST(CLAIM(
		"c1", "a", "{\"storageClassName\":\"bm\",\"resources\":{\"requests\":{\"storage\":\"1.5Gi\"}}}",
		"Pending") "," CLAIM("c2", "b", "{\"storageClassName\":null}",
	                             "Bound") "," CLAIM("c3", "d",
	                                                "{\"storageClassName\":\"\",\"resources\":{\"requests\":{\"storage\":\"what\"}}}",
	                                                "")),
	[CLASSES] = LIST(CLASS("s1", "bm")),
	[VOLUMES] = LIST(
		VOLUME("v1", "{\"NodeId\":\"n1\"}") "," VOLUME("v2", "{\"NodeId\":\"n1\"}") "," VOLUME("v3", "{}")),
	[NODES] = LIST("{\"metadata\":{\"uid\":\"u1\",\"name\":\"wk-a\"}}"),
};

static void fill(struct scene *scene)
{
	for (int i = 0; i < 2 * NODES; i++)
		answer_next_request(scene, LISTS);
	test_loop_until(scene->base.loop, &scene->synced);
}

static bool find_claim(struct scene *scene, const char *namespace, const char *name, struct claim_view *ret_claim)
{
	const struct storage_view *view = caches_view(scene->caches);

	return view->find_claim(view->context, slice_of(namespace), slice_of(name), ret_claim);
}

/* Sends an event, and turns the loop until it must have come. */
static void send_event(struct scene *scene, enum kind kind, const char *event)
{
	scripted_chunk_text(scene->watches[kind], event);
	test_loop_spin(scene->base.loop, 20);
}

static void only_the_needed_members_are_kept(void **state)
{
	struct scene *scene = *state;
	const struct storage_view *view = caches_view(scene->caches);
	struct claim_view claim;
	struct class_view class;
	struct error err;

	assert_string_equal(caches_missing(scene->caches), "persistentvolumeclaims");
	fill(scene);
	assert_null(caches_missing(scene->caches));
	assert_true(find_claim(scene, "shop", "a", &claim));
	assert_true(claim.has_class_name);
	assert_true(slice_equal_text(claim.class_name, "bm"));
	assert_true(slice_equal_text(claim.phase, "Pending"));
	assert_true(slice_equal_text(claim.storage_group, "fast"));
	assert_int_equal(claim.size_bytes, 1610612736);
	assert_true(find_claim(scene, "shop", "b", &claim));
	assert_false(claim.has_class_name);
	assert_int_equal(claim.size_bytes, 0);
	assert_true(find_claim(scene, "shop", "d", &claim));
	assert_true(claim.has_class_name);
	assert_int_equal(claim.class_name.length, 0);
	assert_false(find_claim(scene, "", "a", &claim));
	assert_false(find_claim(scene, "other", "a", &claim));
	assert_true(view->find_class(view->context, SLICE("bm"), &class));
	assert_true(slice_equal_text(class.provisioner, "csi-baremetal"));
	assert_true(slice_equal_text(class.storage_type, "hdd")); /* T26: the key's letter case counts */
	assert_false(view->find_class(view->context, SLICE("BM"), &class));
	assert_int_equal(volume_counts_of(caches_volume_counts(scene->caches, &err), SLICE("n1")), 2);
	assert_int_equal(volume_counts_of(caches_volume_counts(scene->caches, &err), SLICE("")), 1);
	assert_null(view->find_node);
}

static void lookups_see_the_last_event(void **state)
{
	struct scene *scene = *state;
	struct claim_view claim;
	struct error err;

	fill(scene);
	send_event(scene, CLAIMS, EVENT("MODIFIED", CLAIM("c1", "a", "{}", "Bound")));
	assert_true(find_claim(scene, "shop", "a", &claim));
	assert_true(slice_equal_text(claim.phase, "Bound"));
	assert_false(claim.has_class_name);
	/* A successor of the same name isn't lost with its predecessor. */
	send_event(scene, CLAIMS, EVENT("ADDED", CLAIM("c9", "a", "{}", "Lost")));
	send_event(scene, CLAIMS, EVENT("DELETED", CLAIM("c1", "a", "{}", "Bound")));
	assert_true(find_claim(scene, "shop", "a", &claim));
	assert_true(slice_equal_text(claim.phase, "Lost"));
	send_event(scene, CLAIMS, EVENT("DELETED", CLAIM("c9", "a", "{}", "Lost")));
	assert_false(find_claim(scene, "shop", "a", &claim));
	send_event(scene, VOLUMES, EVENT("MODIFIED", VOLUME("v1", "{\"NodeId\":\"n2\"}")));
	send_event(scene, VOLUMES, EVENT("DELETED", VOLUME("v3", "{}")));
	assert_int_equal(volume_counts_of(caches_volume_counts(scene->caches, &err), SLICE("n1")), 1);
	assert_int_equal(volume_counts_of(caches_volume_counts(scene->caches, &err), SLICE("n2")), 1);
	assert_int_equal(volume_counts_most(caches_volume_counts(scene->caches, &err)), 1);
}

static void the_last_state_stays_while_a_watch_is_broken(void **state)
{
	struct scene *scene = *state;
	struct claim_view claim;

	fill(scene);
	scripted_api_stop_listening(scene->base.api);
	for (int i = 0; i < NODES; i++)
		scripted_reset(scene->watches[i]);
	test_loop_spin(scene->base.loop, 50);
	test_clock_skip(5 * (uint64_t)NS_PER_S);
	test_loop_spin(scene->base.loop, 50);
	assert_true(find_claim(scene, "shop", "a", &claim));
	assert_int_equal(api_scene_count(&scene->base,
	                                 "ballast_extender_watch_failing{resource=\"persistentvolumeclaims\"} 1\n"),
	                 1);
}

static void a_refusal_at_the_start_is_tried_again(void **state)
{
	static const char *const REFUSED[KINDS] = { NULL };
	struct scene *scene = *state;

	for (int i = 0; i < NODES; i++)
		answer_next_request(scene, REFUSED);
	test_loop_spin(scene->base.loop, 50);
	assert_int_equal(scripted_api_request_count(scene->base.api), NODES);
	assert_false(scene->synced);
	test_clock_skip((uint64_t)CACHES_RETRY_HIGH_MS * NS_PER_MS);
	fill(scene);
	assert_false(scene->missing);
}

static void a_kind_that_does_not_exist_is_told(void **state)
{
	struct scene *scene = *state;

	for (size_t i = 1; i <= NODES && !scene->missing; i++) {
		struct scripted_request *request = scripted_api_wait(scene->base.api, i);

		if (kind_of(request) == VOLUMES)
			scripted_reply(request, 404, "Content-Type: text/plain\r\n", "404 page not found\n");
	}
	test_loop_until(scene->base.loop, &scene->missing);
	assert_string_equal(scene->err.text,
	                    "volumes.csi-baremetal.dell.com: initial list failed: the server could not find the "
	                    "requested resource (get volumes.csi-baremetal.dell.com)");
}

static void nodes_are_asked_for_when_they_are_needed(void **state)
{
	struct scene *scene = *state;
	const struct storage_view *view = caches_view(scene->caches);
	struct node_id id;

	fill(scene);
	test_loop_spin(scene->base.loop, 20);
	assert_int_equal(scripted_api_request_count(scene->base.api), 2 * NODES);
	assert_int_equal(caches_nodes(scene->caches), CACHES_NODES_LOADING);
	assert_int_equal(caches_nodes(scene->caches), CACHES_NODES_LOADING);
	assert_int_equal(answer_next_request(scene, LISTS), NODES);
	assert_int_equal(answer_next_request(scene, LISTS), NODES);
	while (caches_nodes(scene->caches) != CACHES_NODES_READY)
		test_loop_spin(scene->base.loop, 5);
	assert_non_null(view->find_node);
	assert_true(view->find_node(view->context, SLICE("wk-a"), &id));
	assert_int_equal(id.outcome, NODE_ID_FOUND);
	assert_true(slice_equal_text(id.id, "u1"));
	assert_false(view->find_node(view->context, SLICE("wk-b"), &id));
}

static void nodes_that_may_not_be_listed_are_tried_again_later(void **state)
{
	static const char *const REFUSED[KINDS] = { NULL };
	struct scene *scene = *state;

	fill(scene);
	assert_int_equal(caches_nodes(scene->caches), CACHES_NODES_LOADING);
	assert_int_equal(answer_next_request(scene, REFUSED), NODES);
	while (caches_nodes(scene->caches) == CACHES_NODES_LOADING)
		test_loop_spin(scene->base.loop, 5);
	assert_int_equal(caches_nodes(scene->caches), CACHES_NODES_REFUSED);
	assert_null(caches_view(scene->caches)->find_node);
	assert_int_equal(scripted_api_request_count(scene->base.api), scene->looked_at);
	test_clock_skip((uint64_t)CACHES_NODES_RETRY_S * NS_PER_S);
	for (int i = 0; i < 2; i++)
		assert_int_equal(answer_next_request(scene, LISTS), NODES);
	while (caches_nodes(scene->caches) != CACHES_NODES_READY)
		test_loop_spin(scene->base.loop, 5);
}

/* A server with too much to do, a version that is out of date: taken for "may not", each would fail calls for a minute. */
static void what_passes_by_itself_is_no_refusal_of_nodes(void **state)
{
	static const int PASSING[] = { 503, 409, 410, 429 };
	struct scene *scene = *state;

	fill(scene);
	assert_int_equal(caches_nodes(scene->caches), CACHES_NODES_LOADING);
	for (size_t i = 0; i < sizeof PASSING / sizeof PASSING[0]; i++) {
		struct scripted_request *request = scripted_api_wait(scene->base.api, ++scene->looked_at);

		assert_int_equal(kind_of(request), NODES);
		scripted_reply(request, PASSING[i], JSON_FIELD, "{\"kind\":\"Status\",\"message\":\"not now\"}");
		assert_true(caches_nodes_may_come(scene->caches, loop_now_ns(scene->base.loop) + 1));
		test_loop_spin(scene->base.loop, 50);
		assert_int_equal(caches_nodes(scene->caches), CACHES_NODES_LOADING);
		/* Nothing comes before the next attempt: a call that has less time needn't wait. */
		assert_false(caches_nodes_may_come(scene->caches, loop_now_ns(scene->base.loop) + NS_PER_MS));
		assert_true(caches_nodes_may_come(
			scene->caches, loop_now_ns(scene->base.loop) + (uint64_t)CACHES_RETRY_MAX_MS * NS_PER_MS + 1));
		test_clock_skip((uint64_t)CACHES_RETRY_MAX_MS * NS_PER_MS);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(answer_next_request(scene, LISTS), NODES);
	while (caches_nodes(scene->caches) != CACHES_NODES_READY)
		test_loop_spin(scene->base.loop, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_the_needed_members_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lookups_see_the_last_event, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_last_state_stays_while_a_watch_is_broken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_refusal_at_the_start_is_tried_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_kind_that_does_not_exist_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nodes_are_asked_for_when_they_are_needed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nodes_that_may_not_be_listed_are_tried_again_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_passes_by_itself_is_no_refusal_of_nodes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
