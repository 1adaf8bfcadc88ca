/*
 * The vectors S1 to S17 of surroundings 8.1, over real sockets, with a clock that the test moves; and what they leave
 * out.
 */
#include "tests/unit/sandbox/scene.h"

#include <stdlib.h>

#include "codec/quantity.h"
#include "sandbox/scheduler_plugin.h"
#include "tests/support/vector_file.h"

static const uint64_t GIB = 1 << 30;

enum { REQUEST_BYTES = 4096, NOTES_BYTES = 65536, WAIT_MS = 3000 };

struct scene {
	struct loop *loop;
	struct scheduler_plugin *plugin;
	struct buffer annotations; /* a line each */
	struct buffer answers;
};

static void note_answer(void *context, const struct scheduler_plugin_answer *answer)
{
	struct scene *scene = context;

	buffer_append_format(&scene->answers, "%s %u %u%s\n", answer->pod_name, answer->wanted.cpu_milli,
	                     answer->permit.cpu_milli, answer->denied ? " denied" : "");
}

static void note_annotation(void *context, const char *pod_name, const char *key, struct slice json)
{
	struct scene *scene = context;

	buffer_append_format(&scene->annotations, "%s %s %.*s\n", pod_name, key, SLICE_ARGS(json));
}

static void add_pod(struct scene *scene, const char *name, const char *node, bool is_vm, uint32_t cpu_milli,
                    uint64_t gib, uint32_t overcommit)
{
	struct scheduler_plugin_pod pod = {
		.name_space = "apps",
		.name = name,
		.node = node,
		.is_vm = is_vm,
		.use = { .cpu_milli = cpu_milli, .mem_bytes = gib * GIB },
		.overcommit_cpu_milli = overcommit,
	};
	struct error err;

	assert_true(scheduler_plugin_add_pod(scene->plugin, &pod, &err));
}

static void start(struct scene *scene, double speed, uint32_t web_milli, uint32_t oak_overcommit)
{
	static const struct scheduler_plugin_handler HANDLER = { .on_answer = note_answer,
		                                                 .on_annotate = note_annotation };
	struct resources total = { .cpu_milli = 8000, .mem_bytes = 32 * GIB };
	struct address address;
	struct error err;

	assert_true(address_parse(SLICE("127.0.0.1"), 0, &address));
	scene->plugin = scheduler_plugin_start(scene->loop, &address, speed, &HANDLER, scene, &err);
	if (scene->plugin == NULL)
		fail_msg("%s", err.text);
	assert_true(scheduler_plugin_add_node(scene->plugin, "node-a", total, &err));
	add_pod(scene, "web", "node-a", false, web_milli, 4, 0);
	add_pod(scene, "oak-7k2pq", "node-a", true, 2000, 8, oak_overcommit);
	add_pod(scene, "pine-x7k2p", "node-a", true, 1000, 4, 0);
	add_pod(scene, "unbound", NULL, true, 250, 1, 0);
	/* Elsewhere, and so of no account. */
	add_pod(scene, "far", "node-b", true, 7000, 30, 0);
}

static int set_up(void **state)
{
	struct scene *scene = memory_allocate(sizeof *scene);
	struct error err;

	assert_non_null(scene);
	scene->loop = loop_epoll_create(&err);
	assert_non_null(scene->loop);
	buffer_init(&scene->annotations, NOTES_BYTES);
	buffer_init(&scene->answers, NOTES_BYTES);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	scheduler_plugin_destroy(scene->plugin);
	scene_settle(scene->loop);
	loop_destroy(scene->loop);
	buffer_destroy(&scene->annotations);
	buffer_destroy(&scene->answers);
	memory_release(scene);
	return 0;
}

/* ---- asking ---- */

static uint16_t port_of(const struct scene *scene)
{
	struct address address;

	assert_true(scheduler_plugin_address(scene->plugin, &address));
	return address.port;
}

static void append_post(struct buffer *request, struct slice body)
{
	buffer_append_format(request, "POST / HTTP/1.1\r\nHost: p\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
	                     body.length);
	buffer_append_slice(request, body);
}

/* The body for "pod cpu memory last cpu memory" or "pod cpu memory last null". */
static void append_wish(struct buffer *body, const char *wish)
{
	char pod[64], cpu[32], memory[32], last_cpu[32], last_memory[32];
	int fields = sscanf(wish, "%63s %31s %31s last %31s %31s", pod, cpu, memory, last_cpu, last_memory);

	assert_true(fields >= 4);
	buffer_append_format(
		body,
		"{\"protoVersion\":7,\"pod\":{\"namespace\":\"apps\",\"name\":\"%s\"},\"computeUnit\":{\"vCPUs\":"
		"\"250m\",\"mem\":\"1Gi\"},\"resources\":{\"vCPUs\":\"%s\",\"mem\":\"%s\"},\"lastPermit\":",
		pod, cpu, memory);
	if (fields == 4)
		buffer_append_text(body, "null");
	else
		buffer_append_format(body, "{\"vCPUs\":\"%s\",\"mem\":\"%s\"}", last_cpu, last_memory);
	buffer_append_text(body, ",\"metrics\":null}");
}

static void append_request(struct buffer *request, const char *what)
{
	struct buffer body;

	buffer_init(&body, REQUEST_BYTES);
	if (strcmp(what, "GET") == 0) {
		buffer_append_text(request, "GET / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n");
	} else {
		if (strcmp(what, "PADDED") == 0)
			buffer_append_format(&body, "{\"padding\":\"%1100s\",\"protoVersion\":7}", "x");
		else if (what[0] == '{')
			buffer_append_text(&body, what);
		else
			append_wish(&body, what);
		append_post(request, buffer_slice(&body));
	}
	buffer_destroy(&body);
}

/* Sends the request, and returns after how many ms the answer came. */
static unsigned ask(struct scene *scene, struct raw_client *client, const char *what)
{
	uint64_t asked_ms;
	struct buffer request;

	buffer_init(&request, REQUEST_BYTES);
	append_request(&request, what);
	assert_false(request.failed);
	raw_client_begin(client, scene->loop, "127.0.0.1", port_of(scene));
	raw_client_send(client, buffer_slice(&request));
	buffer_destroy(&request);
	asked_ms = scene_ms();
	scene_settle(scene->loop);
	while (client->closed == 0 && scene_ms() < asked_ms + WAIT_MS)
		scene_advance(scene->loop, SCENE_STEP_MS);
	buffer_append_char(&client->received, '\0');
	return (unsigned)(scene_ms() - asked_ms);
}

static struct resources reserved_for(const struct scene *scene, const char *pod)
{
	struct resources reserved = { 0 };

	assert_true(scheduler_plugin_reserved(scene->plugin, "apps", pod, &reserved));
	return reserved;
}

/* ---- the vectors ---- */

struct vector_run {
	struct scene *scene;
	double speed;
};

static struct vector_run run;

static void begin_row(const char *how)
{
	if (strcmp(how, "then") == 0)
		return;
	scheduler_plugin_destroy(run.scene->plugin);
	if (strcmp(how, "web 1600m") == 0) {
		start(run.scene, run.speed, 1600, 0);
	} else if (strcmp(how, "oak overcommit") == 0) {
		start(run.scene, run.speed, 1500, 2000);
	} else {
		assert_string_equal(how, "fresh");
		start(run.scene, run.speed, 1500, 0);
	}
}

static void check_row(const struct vector_row *row)
{
	struct raw_client client;
	unsigned long expected_ms;
	unsigned waited_ms;

	assert_int_equal(row->count, 6);
	expected_ms = strtoul(row->fields[4], NULL, 10) / (unsigned long)run.speed;
	begin_row(row->fields[1]);
	waited_ms = ask(run.scene, &client, row->fields[2]);
	if (client.closed == 0 || raw_client_status(&client) != atoi(row->fields[3]) ||
	    strcmp(raw_client_body(&client), row->fields[5]) != 0)
		fail_msg("%s: %s", row->fields[0], client.received.data);
	if (waited_ms < expected_ms || waited_ms > expected_ms + 4 * SCENE_STEP_MS)
		fail_msg("%s: answered after %u ms", row->fields[0], waited_ms);
	if (atoi(row->fields[3]) == 200)
		assert_true(raw_client_head_has(&client, "Content-Type: application/json"));
	else if (strcmp(row->fields[2], "GET") == 0)
		assert_true(raw_client_head_has(&client, "Content-Type: text/plain; charset=utf-8"));
	else
		assert_true(raw_client_head_has(&client, "Content-Type: text/plain"));
	raw_client_end(&client);
}

static void requests_are_answered_as_the_vectors_say(void **state)
{
	run = (struct vector_run){ .scene = *state, .speed = 1 };
	assert_int_equal(vector_table_walk("vectors/sandbox/plugin.txt", check_row), 29);
}

static void speed_divides_the_times(void **state)
{
	run = (struct vector_run){ .scene = *state, .speed = 10 };
	assert_int_equal(vector_table_walk("vectors/sandbox/plugin.txt", check_row), 29);
}

/* ---- older releases ---- */

/* Asks, and expects that answer after that time. */
static void expect_answer(struct scene *scene, const char *what, int status, const char *body, unsigned most_ms)
{
	struct raw_client client;
	unsigned waited_ms = ask(scene, &client, what);

	if (client.closed == 0 || raw_client_status(&client) != status || strcmp(raw_client_body(&client), body) != 0)
		fail_msg("%s: %s", what, client.received.data);
	assert_true(waited_ms <= most_ms + 4 * SCENE_STEP_MS);
	raw_client_end(&client);
}

#define PINE_POD "\"pod\":{\"namespace\":\"apps\",\"name\":\"pine-x7k2p\"}"
#define OLD_UNIT "\"resourceUnit\":{\"vCPUs\":\"250m\",\"mem\":1}"

static void s18_an_old_release_grants_to_the_milli_and_to_the_slot(void **state)
{
	struct scene *scene = *state;

	start(scene, 1, 1600, 0);
	scheduler_plugin_be(scene->plugin, plugin_release_find("v0.19"));
	expect_answer(scene,
	              "{\"protoVersion\":3," PINE_POD ",\"resources\":{\"vCPUs\":5,\"mem\":40},\"metrics\":null}", 200,
	              "{\"permit\":{\"vCPUs\":\"4400m\",\"mem\":20}," OLD_UNIT "}", 10);
	assert_int_equal(scheduler_plugin_counters(scene->plugin).version, 3);
	/* A denial doesn't take longer, nothing is annotated, and nothing is granted later. */
	expect_answer(scene,
	              "{\"protoVersion\":3," PINE_POD ",\"resources\":{\"vCPUs\":5,\"mem\":40},\"metrics\":null}", 200,
	              "{\"permit\":{\"vCPUs\":\"4400m\",\"mem\":20}," OLD_UNIT "}", 10);
	assert_int_equal(scheduler_plugin_counters(scene->plugin).denials, 1);
	assert_int_equal(scene->annotations.length, 0);
	scheduler_plugin_remove_pod(scene->plugin, "apps", "oak-7k2pq");
	scene_advance(scene->loop, 6000);
	assert_int_equal(reserved_for(scene, "pine-x7k2p").cpu_milli, 4400);
}

static void s19_an_old_release_can_not_read_bytes(void **state)
{
	struct scene *scene = *state;

	start(scene, 1, 1500, 0);
	scheduler_plugin_be(scene->plugin, plugin_release_find("v0.19"));
	expect_answer(scene, "{\"protoVersion\":7," PINE_POD ",\"resources\":{\"vCPUs\":1,\"mem\":\"5Gi\"}}", 400,
	              "bad JSON", 0);
}

static void a_last_permit_in_slots_shrinks_the_reservation_of_some(void **state)
{
	struct scene *scene = *state;
	static const char REQUEST[] = "{\"protoVersion\":4," PINE_POD
				      ",\"resources\":{\"vCPUs\":1,\"mem\":4},\"lastPermit\":{\"vCPUs\":1,\"mem\":4}}";

	start(scene, 1, 1500, 0);
	scheduler_plugin_be(scene->plugin, plugin_release_find("v0.25"));
	add_pod(scene, "large", "node-a", true, 1000, 20, 0);
	/* 32 GiB − web's 4, oak's 8 and large's 20 leave nothing beside the 4 bytes it is taken to have. */
	expect_answer(scene, REQUEST, 200, "{\"permit\":{\"vCPUs\":1,\"mem\":0}," OLD_UNIT "}", 10);
	scheduler_plugin_be(scene->plugin, plugin_release_find("v0.21"));
	expect_answer(scene, REQUEST, 200, "{\"permit\":{\"vCPUs\":1,\"mem\":4}," OLD_UNIT "}", 10);
}

static void an_old_release_reserves_maximums_when_it_comes_back(void **state)
{
	struct scene *scene = *state;
	struct scheduler_plugin_pod pod = {
		.name_space = "apps",
		.name = "elm",
		.node = "node-a",
		.is_vm = true,
		.use = { .cpu_milli = 250, .mem_bytes = GIB },
		.maximum = { .cpu_milli = 4000, .mem_bytes = 16 * GIB },
	};
	struct error err;

	start(scene, 1, 1500, 0);
	scheduler_plugin_be(scene->plugin, plugin_release_find("v0.22"));
	assert_true(scheduler_plugin_add_pod(scene->plugin, &pod, &err));
	assert_true(scheduler_plugin_set_available(scene->plugin, false, &err));
	assert_true(scheduler_plugin_set_available(scene->plugin, true, &err));
	assert_int_equal(reserved_for(scene, "elm").cpu_milli, 4000);
	assert_int_equal(reserved_for(scene, "pine-x7k2p").cpu_milli, 1000);
	/* Its first request says what it really has. */
	expect_answer(scene,
	              "{\"protoVersion\":3,\"pod\":{\"namespace\":\"apps\",\"name\":\"elm\"},\"resources\":{\"vCPUs\":"
	              "\"250m\",\"mem\":1},\"metrics\":null}",
	              200, "{\"permit\":{\"vCPUs\":\"250m\",\"mem\":1}," OLD_UNIT "}", 10);
	assert_int_equal(reserved_for(scene, "elm").cpu_milli, 250);
}

/* ---- beyond the vectors ---- */

static void what_follows_the_first_value_is_ignored(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;
	struct buffer body;

	start(scene, 1, 1500, 0);
	buffer_init(&body, REQUEST_BYTES);
	append_wish(&body, "pine-x7k2p 1000m 4Gi last 1000m 4Gi");
	buffer_append_format(&body, "%1100s", "} nonsense");
	buffer_append_char(&body, '\0');
	ask(scene, &client, body.data);
	assert_int_equal(raw_client_status(&client), 200);
	raw_client_end(&client);
	buffer_destroy(&body);
}

static void freed_capacity_is_granted_without_a_request(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;

	start(scene, 1, 1500, 0);
	ask(scene, &client, "pine-x7k2p 4500m 20Gi last 4500m 20Gi");
	raw_client_end(&client);
	ask(scene, &client, "oak-7k2pq 2250m 9Gi last 2000m 8Gi");
	raw_client_end(&client);
	assert_int_equal(reserved_for(scene, "oak-7k2pq").cpu_milli, 2000);
	ask(scene, &client, "pine-x7k2p 1000m 4Gi last 4500m 20Gi");
	raw_client_end(&client);
	buffer_clear(&scene->annotations);
	scene_advance(scene->loop, 5000);
	assert_int_equal(reserved_for(scene, "oak-7k2pq").cpu_milli, 2250);
	assert_int_equal(reserved_for(scene, "oak-7k2pq").mem_bytes, 9 * GIB);
	assert_true(slice_equal_text(buffer_slice(&scene->annotations),
	                             "oak-7k2pq internal.autoscaling.neon.tech/resources-approved "
	                             "{\"vCPUs\":\"2250m\",\"mem\":\"9Gi\"}\n"));
}

static void capacity_freed_while_a_denial_waits_counts(void **state)
{
	struct scene *scene = *state;
	struct raw_client oak, pine;
	struct buffer request;

	start(scene, 1, 1500, 0);
	ask(scene, &pine, "pine-x7k2p 4500m 20Gi last 4500m 20Gi");
	raw_client_end(&pine);
	/* Until the next round of grants is less than a second away. */
	scene_advance(scene->loop, 4400);
	buffer_init(&request, REQUEST_BYTES);
	append_request(&request, "oak-7k2pq 2250m 9Gi last 2000m 8Gi");
	raw_client_begin(&oak, scene->loop, "127.0.0.1", port_of(scene));
	raw_client_send(&oak, buffer_slice(&request));
	buffer_destroy(&request);
	scene_advance(scene->loop, 100);
	ask(scene, &pine, "pine-x7k2p 1000m 4Gi last 4500m 20Gi");
	raw_client_end(&pine);
	assert_int_equal(oak.closed, 0);
	scene_advance(scene->loop, 900);
	assert_int_equal(oak.closed, 1);
	buffer_append_char(&oak.received, '\0');
	assert_string_equal(raw_client_body(&oak), "{\"permit\":{\"vCPUs\":\"2250m\",\"mem\":\"9Gi\"}}");
	raw_client_end(&oak);
	assert_int_equal(scheduler_plugin_counters(scene->plugin).denials, 0);
}

static void a_request_is_written_to_the_annotations(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;

	start(scene, 1, 1500, 0);
	ask(scene, &client, "pine-x7k2p 5000m 20Gi last 1250m 5Gi");
	raw_client_end(&client);
	buffer_append_char(&scene->annotations, '\0');
	assert_string_equal(
		scene->annotations.data,
		"pine-x7k2p autoscaling.neon.tech/scaling-unit {\"vCPUs\":\"250m\",\"mem\":\"1Gi\"}\n"
		"pine-x7k2p internal.autoscaling.neon.tech/resources-requested {\"vCPUs\":5,\"mem\":\"20Gi\"}\n"
		"pine-x7k2p internal.autoscaling.neon.tech/resources-approved {\"vCPUs\":\"4500m\",\"mem\":\"20Gi\"}\n");
}

static void answers_are_told_and_counted(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;
	struct scheduler_plugin_counters counters;

	start(scene, 1, 1500, 0);
	ask(scene, &client, "pine-x7k2p 4500m 20Gi last 4500m 20Gi");
	raw_client_end(&client);
	ask(scene, &client, "oak-7k2pq 2250m 9Gi last 2000m 8Gi");
	raw_client_end(&client);
	ask(scene, &client, "{");
	raw_client_end(&client);
	ask(scene, &client, "nobody 1000m 4Gi last 1000m 4Gi");
	raw_client_end(&client);
	buffer_append_char(&scene->answers, '\0');
	assert_string_equal(scene->answers.data, "pine-x7k2p 4500 4500\noak-7k2pq 2250 2000 denied\n");
	counters = scheduler_plugin_counters(scene->plugin);
	assert_int_equal(counters.requests, 4);
	assert_int_equal(counters.denials, 1);
	assert_int_equal(counters.errors, 2);
	assert_int_equal(counters.malformed, 1);
}

static void a_pod_removed_while_its_request_waits_is_not_found(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;
	struct buffer request;

	start(scene, 1, 1500, 0);
	buffer_init(&request, REQUEST_BYTES);
	append_request(&request, "pine-x7k2p 1250m 5Gi last 1000m 4Gi");
	raw_client_begin(&client, scene->loop, "127.0.0.1", port_of(scene));
	raw_client_send(&client, buffer_slice(&request));
	buffer_destroy(&request);
	scene_advance(scene->loop, 20);
	scheduler_plugin_remove_pod(scene->plugin, "apps", "pine-x7k2p");
	scheduler_plugin_remove_pod(scene->plugin, "apps", "pine-x7k2p");
	scene_advance(scene->loop, 100);
	assert_int_equal(client.closed, 1);
	buffer_append_char(&client.received, '\0');
	assert_int_equal(raw_client_status(&client), 404);
	assert_string_equal(raw_client_body(&client), "pod not found");
	raw_client_end(&client);
}

static void an_outage_cuts_refuses_and_forgets_nothing(void **state)
{
	struct scene *scene = *state;
	struct raw_client client, late;
	struct buffer request;
	struct address address;
	struct error err;

	start(scene, 1, 1500, 0);
	ask(scene, &client, "pine-x7k2p 1250m 5Gi last 1000m 4Gi");
	raw_client_end(&client);

	assert_true(scheduler_plugin_address(scene->plugin, &address));
	buffer_init(&request, REQUEST_BYTES);
	append_request(&request, "oak-7k2pq 9000m 9Gi last 2000m 8Gi");
	raw_client_begin(&client, scene->loop, "127.0.0.1", address.port);
	raw_client_send(&client, buffer_slice(&request));
	buffer_destroy(&request);
	scene_advance(scene->loop, 20);
	assert_true(scheduler_plugin_set_available(scene->plugin, false, &err));
	assert_true(scheduler_plugin_set_available(scene->plugin, false, &err));
	scene_until(scene->loop, client.closed, 1);
	assert_int_equal(client.received.length, 0);
	raw_client_begin(&late, scene->loop, "127.0.0.1", address.port);
	assert_int_equal(late.opened, 0);
	raw_client_end(&late);
	raw_client_end(&client);
	scene_advance(scene->loop, 2000);

	assert_true(scheduler_plugin_set_available(scene->plugin, true, &err));
	assert_int_equal(port_of(scene), address.port);
	assert_int_equal(reserved_for(scene, "pine-x7k2p").cpu_milli, 1250);
	ask(scene, &client, "pine-x7k2p 1250m 5Gi last 1250m 5Gi");
	assert_int_equal(raw_client_status(&client), 200);
	raw_client_end(&client);
}

static void a_client_that_gives_up_leaves_nothing_behind(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;
	struct buffer request;

	start(scene, 1, 1500, 0);
	buffer_init(&request, REQUEST_BYTES);
	append_request(&request, "oak-7k2pq 2250m 9Gi last null");
	for (int i = 0; i < 50; i++) {
		raw_client_begin(&client, scene->loop, "127.0.0.1", port_of(scene));
		raw_client_send(&client, buffer_slice(&request));
		scene_advance(scene->loop, SCENE_STEP_MS);
		raw_client_end(&client);
	}
	buffer_destroy(&request);
	scene_advance(scene->loop, 2000);
	assert_int_equal(scene->answers.length, 0);
	assert_int_equal(scheduler_plugin_counters(scene->plugin).requests, 50);
}

static void names_and_memory_have_limits(void **state)
{
	struct scene *scene = *state;
	char name[300];
	struct error err;

	start(scene, 1, 1500, 0);
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_false(scheduler_plugin_add_node(scene->plugin, name, (struct resources){ 0 }, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_false(scheduler_plugin_add_pod(
		scene->plugin, &(struct scheduler_plugin_pod){ .name_space = "apps", .name = name }, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	for (unsigned long n = 1; n <= 2; n++) {
		memory_fail_at(n);
		assert_false(scheduler_plugin_add_pod(
			scene->plugin, &(struct scheduler_plugin_pod){ .name_space = "apps", .name = "x" }, &err));
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		memory_fail_at(0);
	}
}

#define scene_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(requests_are_answered_as_the_vectors_say),
		scene_test(speed_divides_the_times),
		scene_test(s18_an_old_release_grants_to_the_milli_and_to_the_slot),
		scene_test(s19_an_old_release_can_not_read_bytes),
		scene_test(a_last_permit_in_slots_shrinks_the_reservation_of_some),
		scene_test(an_old_release_reserves_maximums_when_it_comes_back),
		scene_test(what_follows_the_first_value_is_ignored),
		scene_test(freed_capacity_is_granted_without_a_request),
		scene_test(capacity_freed_while_a_denial_waits_counts),
		scene_test(a_request_is_written_to_the_annotations),
		scene_test(answers_are_told_and_counted),
		scene_test(a_pod_removed_while_its_request_waits_is_not_found),
		scene_test(an_outage_cuts_refuses_and_forgets_nothing),
		scene_test(a_client_that_gives_up_leaves_nothing_behind),
		scene_test(names_and_memory_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
