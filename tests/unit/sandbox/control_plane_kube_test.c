/*
 * The agent's own Kubernetes client and watch store against the control plane: both must agree on what the wire looks like.
 */
#include "plane_fixture.h"

#include <unistd.h>

#include "base/log.h"
#include "kube/client.h"
#include "kube/watch_store.h"

struct kept_object {
	char uid[64];
	char name[64];
	char phase[16];
};

struct kube_side {
	struct plane_fixture *plane;
	struct kube_client *client;
	struct watch_store *store;
	struct log_sink *sink;
	FILE *log;
	char folder[64];
	bool started;
	unsigned added, updated, deleted, errors, bookmarks;
};

static int64_t no_time(void *context)
{
	(void)context;
	return 0;
}

static void write_file(const struct kube_side *side, const char *name, struct slice content)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/%s", side->folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(content.data, 1, content.length, file), content.length);
	assert_int_equal(fclose(file), 0);
}

static void remove_file(const struct kube_side *side, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof path, "%s/%s", side->folder, name);
	(void)unlink(path);
}

static void *decode(void *context, struct slice json, struct slice *ret_uid, struct slice *ret_name, struct error *err)
{
	struct kube_side *side = context;
	struct kept_object *object;
	struct json_node *root;

	arena_reset(&side->plane->arena);
	if (!json_tree_parse(json, &side->plane->arena, &root, err))
		return NULL;
	object = calloc(1, sizeof *object);
	(void)snprintf(object->uid, sizeof object->uid, "%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(root, "/metadata/uid"))));
	(void)snprintf(object->name, sizeof object->name, "%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(root, "/metadata/name"))));
	(void)snprintf(object->phase, sizeof object->phase, "%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(root, "/status/phase"))));
	*ret_uid = slice_of(object->uid);
	*ret_name = slice_of(object->name);
	return object;
}

static void release(void *context, void *object)
{
	(void)context;
	free(object);
}

static void on_add(void *context, void *object)
{
	(void)object;
	((struct kube_side *)context)->added++;
}

static void on_update(void *context, void *before, void *after)
{
	(void)before;
	(void)after;
	((struct kube_side *)context)->updated++;
}

static void on_delete(void *context, void *object)
{
	(void)object;
	((struct kube_side *)context)->deleted++;
}

static void on_started(void *context)
{
	((struct kube_side *)context)->started = true;
}

static void on_start_failed(void *context, const struct error *err)
{
	(void)context;
	fail_msg("%s", err->text);
}

static void on_event(void *context, enum watch_store_event event)
{
	((struct kube_side *)context)->bookmarks += event == WATCH_STORE_BOOKMARK;
}

static void on_error(void *context, enum watch_store_error error)
{
	(void)error;
	((struct kube_side *)context)->errors++;
}

static int set_up(void **state)
{
	static const struct watch_store_type TYPE = {
		.path = VMS, .resource = "virtualmachines.vm.neon.tech", .decode = decode, .release = release
	};
	static const struct watch_store_handler HANDLER = {
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_started = on_started,
		.on_start_failed = on_start_failed,
		.on_event = on_event,
		.on_error = on_error,
	};
	struct kube_side *side = calloc(1, sizeof *side);
	struct kube_client_options options = { .host = "127.0.0.1", .user_agent = "ballast-test" };
	struct watch_store_options store_options = {
		.retry_unit_ns = NS_PER_MS, .retry_low = 500, .retry_high = 1000, .page_size = 2
	};
	struct control_plane_vm vm = pine();
	struct error err;

	side->plane = plane_fixture_create(1, 0);
	side->log = tmpfile();
	side->sink = log_sink_create(fileno(side->log), LOG_FORMAT_JSON, LOG_DEBUG, 1024 * 1024, no_time, NULL, &err);
	assert_non_null(side->sink);
	(void)snprintf(side->folder, sizeof side->folder, "/tmp/ballast-plane-XXXXXX");
	assert_non_null(mkdtemp(side->folder));
	write_file(side, "token", SLICE(AGENT_TOKEN "\n"));
	write_file(side, "ca.crt", control_plane_ca_pem(side->plane->plane));
	vm.pod_name = NULL;
	for (int i = 0; i < 5; i++) {
		static const char *const NAMES[] = { "a", "b", "c", "d", "pine" };

		vm.name = NAMES[i];
		add_vm(side->plane, &vm);
	}
	options.port = side->plane->address.port;
	options.credentials_dir = side->folder;
	options.logger = (struct logger){ .sink = side->sink, .name = "kube", .context_json = "" };
	store_options.logger = options.logger;
	side->client = kube_client_create(side->plane->loop, &options, &err);
	if (side->client == NULL)
		fail_msg("%s", err.text);
	side->store = watch_store_start(side->plane->loop, side->client, &TYPE, &store_options, &HANDLER, side, &err);
	assert_non_null(side->store);
	test_loop_until(side->plane->loop, &side->started);
	*state = side;
	return 0;
}

static int tear_down(void **state)
{
	struct kube_side *side = *state;

	watch_store_destroy(side->store);
	kube_client_destroy(side->client);
	plane_fixture_destroy(side->plane);
	log_sink_destroy(side->sink, 0);
	(void)fclose(side->log);
	remove_file(side, "token");
	remove_file(side, "ca.crt");
	(void)rmdir(side->folder);
	free(side);
	return 0;
}

static void turn_until(struct kube_side *side, const unsigned *count, unsigned wanted)
{
	for (int i = 0; i < 2000 && *count < wanted; i++)
		pass_ms(side->plane, STEP_MS);
	assert_int_equal(*count, wanted);
}

static void a_list_in_pages_and_its_watch_agree(void **state)
{
	struct kube_side *side = *state;
	struct control_plane_vm vm = pine();
	struct error err;

	assert_int_equal(watch_store_count(side->store), 5);
	assert_int_equal(side->added, 5);
	assert_int_equal(control_plane_counters(side->plane->plane).lists, 3);
	side->updated = 0;
	assert_true(control_plane_annotate_vm(side->plane->plane, "a", SLICE("x"), SLICE("y"), &err));
	turn_until(side, &side->updated, 1);
	vm.name = "oak";
	vm.pod_name = NULL;
	add_vm(side->plane, &vm);
	turn_until(side, &side->added, 6);
	assert_true(control_plane_delete_vm(side->plane->plane, "b", &err));
	turn_until(side, &side->deleted, 1);
	pass_ms(side->plane, 61000);
	assert_true(side->bookmarks >= 1);
	assert_int_equal(side->errors, 0);
}

static void an_expired_version_leads_to_a_fresh_list(void **state)
{
	static const enum api_expiry WAYS[] = { API_EXPIRY_CACHE, API_EXPIRY_ETCD, API_EXPIRY_HTTP };
	struct kube_side *side = *state;
	struct error err;

	for (size_t i = 0; i < 3; i++) {
		unsigned lists = control_plane_counters(side->plane->plane).lists;

		control_plane_set_expiry(side->plane->plane, WAYS[i]);
		control_plane_compact(side->plane->plane);
		control_plane_end_watches(side->plane->plane, true);
		for (int step = 0; step < 2000 && control_plane_counters(side->plane->plane).lists < lists + 3; step++)
			pass_ms(side->plane, STEP_MS);
		assert_int_equal(control_plane_counters(side->plane->plane).lists, lists + 3);
		pass_ms(side->plane, 2000);
		side->updated = 0;
		assert_true(control_plane_annotate_vm(side->plane->plane, "a", SLICE("x"),
		                                      i % 2 == 0 ? SLICE("1") : SLICE("2"), &err));
		turn_until(side, &side->updated, 1);
	}
	assert_int_equal(watch_store_count(side->store), 5);
	assert_int_equal(side->added, 5);
	assert_int_equal(side->deleted, 0);
}

static void after_an_outage_the_store_catches_up(void **state)
{
	struct kube_side *side = *state;
	struct error err;

	pass_ms(side->plane, 1000);
	side->updated = 0;
	control_plane_set_available(side->plane->plane, false);
	assert_true(control_plane_annotate_vm(side->plane->plane, "a", SLICE("x"), SLICE("y"), &err));
	pass_ms(side->plane, 5000);
	assert_int_equal(side->updated, 0);
	control_plane_set_available(side->plane->plane, true);
	turn_until(side, &side->updated, 1);
	assert_int_equal(watch_store_count(side->store), 5);
}

static void on_patched(void *context, int status, struct slice body, const struct error *err)
{
	bool *done = context;

	(void)body;
	assert_null(err);
	assert_int_equal(status, 200);
	*done = true;
}

static void the_clients_patch_is_taken(void **state)
{
	static const struct kube_handler HANDLER = { .on_done = on_patched };
	struct kube_side *side = *state;
	struct kube_request request = {
		.method = SLICE("PATCH"),
		.path = SLICE(PINE),
		.content_type = SLICE(JSON_PATCH),
		.body = SLICE("[{\"op\":\"replace\",\"path\":\"/spec/guest/cpus/use\",\"value\":\"1250m\"}]"),
		.max_body_bytes = (size_t)1024 * 1024,
		.verb = "patch",
		.resource = "virtualmachines.vm.neon.tech",
		.name = SLICE("pine"),
	};
	struct control_plane_vm_state vm_state;
	bool done = false;
	struct error err;

	/* The first try is told to come again, and does. */
	control_plane_refuse_next(side->plane->plane, 1);
	assert_non_null(kube_client_send(side->client, &request, &HANDLER, &done, &err));
	for (int i = 0; i < 1000 && !done; i++)
		pass_ms(side->plane, STEP_MS);
	assert_true(done);
	assert_true(control_plane_vm_state(side->plane->plane, "pine", &vm_state));
	assert_int_equal(vm_state.cpu_use_milli, 1250);
	assert_int_equal(control_plane_counters(side->plane->plane).rejected, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_list_in_pages_and_its_watch_agree, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_expired_version_leads_to_a_fresh_list, set_up, tear_down),
		cmocka_unit_test_setup_teardown(after_an_outage_the_store_catches_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_clients_patch_is_taken, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
