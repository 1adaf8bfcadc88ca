/*
 * Spec surroundings 5.3, 5.4 and 8.4 (K2, K3, K6, K8), and what answers look like on the wire.
 */
#include "api_fixture.h"

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
	assert_in_range(watching->at_ms, 59000, 63000);
	expect_json(event, "/kind", "\"VirtualMachine\"");
	expect_json(event, "/metadata", "{\"resourceVersion\":\"4\"}");
	expect_no_event(without, 1000);
	watch_close(watching);
	watch_close(without);

	watching = watch_open(fixture, NULL, SYSTEM_PODS "?watch=1&allowWatchBookmarks=1&timeoutSeconds=10");
	event = expect_event(watching, 9000, "BOOKMARK"); /* near the end */
	assert_in_range(watching->at_ms, 7900, 9500);
	expect_json(
		event, "",
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"4\",\"creationTimestamp\":null},"
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
	watching = watch_open(fixture, NULL,
	                      "/apis/vm.neon.tech/v1/namespaces/other/virtualmachines?watch=true&resourceVersion=0");
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
	(void)snprintf(message, sizeof message, "\"too old resource version: 1 (%s)\"",
	               version_of(fixture, get(fixture, VMS).root));
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

	assert_true(control_plane_add_scheduler_pod(fixture->plane, "autoscale-scheduler", "s-1", "127.9.1.1", "node-a",
	                                            &err));
	watching = watch_open(fixture, NULL, SYSTEM_PODS "?labelSelector=name%3Dautoscale-scheduler&watch=true");
	event = expect_event(watching, 100, "ADDED");
	before = version_of(fixture, event);
	expect_json(event, "/status/conditions/1/status", "\"True\"");
	assert_true(control_plane_set_pod_ready(fixture->plane, "kube-system", "s-1", false, &err));
	event = expect_event(watching, 100, "MODIFIED");
	expect_json(event, "/status/conditions/1/type", "\"Ready\"");
	expect_json(event, "/status/conditions/1/status", "\"False\"");
	assert_false(control_plane_set_pod_ready(fixture->plane, "kube-system", "s-2", false, &err));

	reply = admin(fixture, "PATCH", SYSTEM_PODS "/s-1", MERGE_PATCH,
	              "{\"metadata\":{\"labels\":{\"name\":\"other\"}}}");
	expect_status(&reply, 200);
	event = expect_event(watching, 100, "DELETED");
	expect_json(event, "/metadata/labels/name", "\"autoscale-scheduler\"");
	assert_string_equal(version_of(fixture, event), version_of(fixture, reply.root));
	assert_string_not_equal(version_of(fixture, event), before);
	reply = admin(fixture, "PATCH", SYSTEM_PODS "/s-1", MERGE_PATCH, "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}");
	expect_no_event(watching, 100);
	reply = admin(fixture, "PATCH", SYSTEM_PODS "/s-1", MERGE_PATCH,
	              "{\"metadata\":{\"labels\":{\"name\":\"autoscale-scheduler\"}}}");
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

/* A bookmark behind the end would claim that what came in between has been told. */
static void no_bookmark_comes_behind_a_watchs_end(void **state)
{
	struct plane_fixture *fixture = *state;
	struct watching *watching = watch_open(fixture, NULL, VMS "?watch=true&allowWatchBookmarks=true");

	control_plane_end_watches(fixture->plane, true);
	add_pine(fixture);
	test_clock_skip((uint64_t)2 * API_SERVER_BOOKMARK_S * NS_PER_S); /* a process that was stopped */
	test_loop_until(fixture->loop, &watching->done);
	assert_false(watching->failed);
	assert_int_equal(watching->text.length, 0);
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
	static const struct stream_handler HANDLER = { .on_open = wire_on_open,
		                                       .on_data = wire_on_data,
		                                       .on_close = wire_on_close };
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
	(void)snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " AGENT_TOKEN "\r\n\r\n",
	               target);
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

/* More than a connection lets wait, and many objects. */
static void lists_and_watches_of_any_size_get_through(void **state)
{
	enum { OBJECT_COUNT = 300, PADDING = 32 * 1024 };
	struct plane_fixture *fixture = *state;
	struct watching *watching;
	struct buffer json;
	struct reply reply;
	unsigned events = 0;

	buffer_init(&json, (size_t)2 * PADDING);
	for (int i = 0; i < OBJECT_COUNT; i++) {
		buffer_clear(&json);
		buffer_append_format(
			&json,
			"{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"Drive\",\"metadata\":{\"name\":\"d-%04d\"},"
			"\"spec\":{\"Path\":\"%0*d\"}}",
			i, PADDING, i);
		buffer_append_char(&json, '\0');
		put(fixture, json.data);
	}
	buffer_destroy(&json);
	reply = admin(fixture, "GET", "/apis/csi-baremetal.dell.com/v1/drives", NULL, NULL);
	expect_status(&reply, 200);
	assert_true(reply.body.length > (size_t)8 * 1024 * 1024);
	assert_memory_equal(reply.body.data + reply.body.length - 4, "\"}}\n", 4);
	assert_int_equal(json_tree_find(reply.root, "/items")->count, OBJECT_COUNT);
	watching = watch_open(fixture, ADMIN_TOKEN, "/apis/csi-baremetal.dell.com/v1/drives?watch=true");
	for (; events < OBJECT_COUNT; events++)
		expect_event(watching, 0, "ADDED");
	assert_false(watching->done);
	watch_close(watching);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bookmarks_come_each_minute_to_those_who_ask, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_watch_without_a_version_begins_with_everything, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_watch_from_a_version_tells_what_came_after_it_once, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_version_that_is_too_old_is_refused_in_three_ways, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(a_pod_that_no_longer_matches_is_told_as_deleted, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(an_outage_cuts_watches_and_loses_nothing, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(watches_can_be_ended_cleanly_and_uncleanly, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(no_bookmark_comes_behind_a_watchs_end, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(a_client_that_goes_away_ends_its_watch, plane_set_up, plane_tear_down),
		cmocka_unit_test_setup_teardown(events_are_cut_at_2048_bytes_and_share_chunks, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(short_answers_have_a_length_and_long_ones_chunks, plane_set_up,
		                                plane_tear_down),
		cmocka_unit_test_setup_teardown(lists_and_watches_of_any_size_get_through, plane_set_up,
		                                plane_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
