/*
 * A control plane under test, with a client that talks to it over TLS as the agent does, and a clock that can be moved on: times of the original
 * are tested at speed 1.
 */
#ifndef BALLAST_TESTS_PLANE_FIXTURE_H
#define BALLAST_TESTS_PLANE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "codec/json_tree.h"
#include "net/http_client.h"
#include "net/loop_epoll.h"
#include "net/tls.h"
#include "sandbox/control_plane.h"
#include "tests/support/scripted_api.h"

#define UNUSED_HERE __attribute__((unused))
#define AGENT_TOKEN "agent-token"
#define AGENT_USER "system:serviceaccount:kube-system:autoscaler-agent"
#define ADMIN_TOKEN "admin-token"
#define VMS "/apis/vm.neon.tech/v1/virtualmachines"
#define PINE "/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines/pine"
#define SYSTEM_PODS "/api/v1/namespaces/kube-system/pods"
#define JSON_PATCH "application/json-patch+json"
#define MERGE_PATCH "application/merge-patch+json"

enum { STEP_MS = 5, ARENA_BYTES = 64 * 1024 * 1024, PATIENCE_STEPS = 100000 };

struct plane_fixture {
	struct loop *loop;
	struct control_plane *plane;
	struct http_client *client;
	struct address address;
	struct arena arena;     /* of replies and events; until the end of the test */
	char told[16 * 1024];   /* what the plane's handler was told, a line each */
	bool away_once_patched; /* the handler makes an outage of it */
};

/* ---- what the plane tells ---- */

static void fixture_note(void *context, const char *format, ...) __attribute__((format(printf, 2, 3)));

UNUSED_HERE static void fixture_note(void *context, const char *format, ...)
{
	struct plane_fixture *fixture = context;
	size_t used = strlen(fixture->told);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(fixture->told + used, sizeof fixture->told - used, format, arguments);
	va_end(arguments);
}

UNUSED_HERE static void fixture_on_patched(void *context, const char *name, uint32_t old_cpu_milli, uint16_t old_slots,
                                           uint32_t new_cpu_milli, uint16_t new_slots)
{
	struct plane_fixture *fixture = context;

	fixture_note(context, "patched %s %u/%u %u/%u\n", name, old_cpu_milli, old_slots, new_cpu_milli, new_slots);
	if (fixture->away_once_patched)
		control_plane_set_available(fixture->plane, false);
}

UNUSED_HERE static void fixture_on_resized(void *context, const char *name, uint32_t cpu_milli, uint64_t memory_bytes,
                                           bool settled)
{
	fixture_note(context, "resized %s %um %lluMi%s\n", name, cpu_milli, (unsigned long long)(memory_bytes >> 20),
	             settled ? " settled" : "");
}

UNUSED_HERE static void fixture_on_phase(void *context, const char *name, const char *phase)
{
	fixture_note(context, "phase %s %s\n", name, phase);
}

/* ---- life ---- */

UNUSED_HERE static const struct api_rule ADMIN_RULES[] = { { .group = "*", .resource = "*", .verbs = "*" } };

UNUSED_HERE static struct plane_fixture *plane_fixture_make(bool late_2023, double speed, uint64_t bookmark_interval_ns)
{
	static const struct control_plane_handler HANDLER = {
		.on_patched = fixture_on_patched,
		.on_resized = fixture_on_resized,
		.on_phase = fixture_on_phase,
	};
	struct plane_fixture *fixture = calloc(1, sizeof *fixture);
	struct control_plane_options options = {
		.token = AGENT_TOKEN,
		.user = AGENT_USER,
		.late_2023 = late_2023,
		.speed = speed,
		.bookmark_interval_ns = bookmark_interval_ns,
	};
	struct tls_client_options trust = { 0 };
	struct tls_settings *tls;
	struct error err;

	arena_init(&fixture->arena, ARENA_BYTES);
	fixture->loop = loop_epoll_create(&err);
	assert_non_null(fixture->loop);
	assert_true(address_parse(SLICE("127.0.0.1"), 0, &options.address));
	fixture->plane = control_plane_start(fixture->loop, &options, &HANDLER, fixture, &err);
	if (fixture->plane == NULL)
		fail_msg("control_plane_start: %s", err.text);
	assert_true(control_plane_grant(fixture->plane, ADMIN_TOKEN, "kubernetes-admin", ADMIN_RULES, 1, &err));
	assert_true(control_plane_address(fixture->plane, &fixture->address));
	trust.ca_pem = control_plane_ca_pem(fixture->plane);
	tls = tls_client_settings_create(fixture->loop, &trust, &err);
	if (tls == NULL)
		fail_msg("tls_client_settings_create: %s", err.text);
	fixture->client = http_client_create(fixture->loop, &err);
	assert_non_null(fixture->client);
	http_client_set_tls(fixture->client, tls);
	tls_settings_release(tls);
	return fixture;
}

UNUSED_HERE static struct plane_fixture *plane_fixture_create(double speed, uint64_t bookmark_interval_ns)
{
	return plane_fixture_make(false, speed, bookmark_interval_ns);
}

UNUSED_HERE static struct plane_fixture *plane_fixture_create_late_2023(void)
{
	return plane_fixture_make(true, 1, 0);
}

UNUSED_HERE static void plane_fixture_destroy(struct plane_fixture *fixture)
{
	http_client_destroy(fixture->client);
	control_plane_destroy(fixture->plane);
	loop_destroy(fixture->loop);
	arena_destroy(&fixture->arena);
	free(fixture);
}

UNUSED_HERE static int plane_set_up(void **state)
{
	*state = plane_fixture_create(1, 0);
	return 0;
}

UNUSED_HERE static int plane_tear_down(void **state)
{
	plane_fixture_destroy(*state);
	return 0;
}

/* The VM of spec surroundings 8.3. */
UNUSED_HERE static struct control_plane_vm pine(void)
{
	return (struct control_plane_vm){
		.name_space = "apps",
		.name = "pine",
		.node = "node-a",
		.pod_name = "pine-x7k2p",
		.pod_ip = "127.9.0.5",
		.endpoint_id = "ep-pine",
		.autoscaling = true,
		.cpu_min_milli = 250,
		.cpu_max_milli = 2000,
		.cpu_use_milli = 500,
		.slots_min = 1,
		.slots_max = 8,
		.slots_use = 2,
		.slot_bytes = UINT64_C(1) << 30,
	};
}

UNUSED_HERE static void add_vm(struct plane_fixture *fixture, const struct control_plane_vm *vm)
{
	struct error err;

	if (!control_plane_add_vm(fixture->plane, vm, &err))
		fail_msg("control_plane_add_vm: %s", err.text);
}

UNUSED_HERE static void add_pine(struct plane_fixture *fixture)
{
	struct control_plane_vm vm = pine();

	add_vm(fixture, &vm);
}

/* ---- time ---- */

UNUSED_HERE static void fixture_do_nothing(void *context)
{
	(void)context;
}

/* Turns the loop a few times, without waiting for anything. */
UNUSED_HERE static void fixture_turn(struct plane_fixture *fixture)
{
	for (int i = 0; i < 4; i++) {
		struct loop_task task = { 0 };
		struct error err;

		loop_run_soon(fixture->loop, &task, fixture_do_nothing, NULL);
		assert_true(loop_turn(fixture->loop, &err));
		loop_task_cancel(fixture->loop, &task);
	}
}

UNUSED_HERE static uint64_t now_ms(void)
{
	return clock_monotonic_ns() / NS_PER_MS;
}

/* Lets so much time pass, in steps, so that timers run in their order. */
UNUSED_HERE static void pass_ms(struct plane_fixture *fixture, uint64_t ms)
{
	for (uint64_t end = now_ms() + ms; now_ms() < end;) {
		test_clock_skip((uint64_t)STEP_MS * NS_PER_MS);
		fixture_turn(fixture);
	}
	test_loop_spin(fixture->loop, 1);
}

/* ---- requests ---- */

struct reply {
	bool done;
	int status;
	char content_type[64];
	char length[32];
	char retry_after[8];
	char cache[64];
	struct buffer body;
	struct json_node *root; /* NULL if the body is no JSON */
	bool failed;
	struct error err;
};

UNUSED_HERE static void reply_copy_field(const struct http_response *response, const char *name, char *to, size_t size)
{
	struct slice value = http_fields_find(response->fields, name);

	(void)snprintf(to, size, "%.*s", SLICE_ARGS(value));
}

UNUSED_HERE static void reply_on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct reply *reply = context;

	reply->done = true;
	reply->failed = err != NULL;
	if (err != NULL)
		reply->err = *err;
	if (response == NULL)
		return;
	reply->status = response->status;
	reply_copy_field(response, "Content-Type", reply->content_type, sizeof reply->content_type);
	reply_copy_field(response, "Content-Length", reply->length, sizeof reply->length);
	reply_copy_field(response, "Retry-After", reply->retry_after, sizeof reply->retry_after);
	reply_copy_field(response, "Cache-Control", reply->cache, sizeof reply->cache);
	buffer_append_slice(&reply->body, response->body);
}

struct ask {
	const char *token;  /* NULL: the agent's; "": none */
	const char *method; /* NULL: GET */
	const char *target;
	const char *type;
	const char *body;
};

UNUSED_HERE static struct http_exchange *fixture_send(struct plane_fixture *fixture, const struct ask *ask,
                                                      const struct http_handler *handler, void *context)
{
	char authorization[128];
	struct http_field fields[3] = { { SLICE("Accept"), SLICE("application/json, */*") } };
	struct http_request request = {
		.origin = { .secure = true, .host = "127.0.0.1", .port = fixture->address.port },
		.method = slice_of(ask->method != NULL ? ask->method : "GET"),
		.target = slice_of(ask->target),
		.fields = { .items = fields, .count = 1 },
		.body = slice_of(ask->body),
		.max_body_bytes = (size_t)64 * 1024 * 1024,
	};
	struct http_exchange *exchange;
	struct error err;

	if (ask->token == NULL || ask->token[0] != '\0') {
		(void)snprintf(authorization, sizeof authorization, "Bearer %s",
		               ask->token != NULL ? ask->token : AGENT_TOKEN);
		fields[request.fields.count++] = (struct http_field){ SLICE("Authorization"), slice_of(authorization) };
	}
	if (ask->type != NULL)
		fields[request.fields.count++] = (struct http_field){ SLICE("Content-Type"), slice_of(ask->type) };
	exchange = http_client_send(fixture->client, &request, handler, context, &err);
	if (exchange == NULL)
		fail_msg("http_client_send: %s", err.text);
	return exchange;
}

UNUSED_HERE static void fixture_start(struct plane_fixture *fixture, const struct ask *ask, struct reply *reply)
{
	static const struct http_handler HANDLER = { .on_done = reply_on_done };

	*reply = (struct reply){ 0 };
	buffer_init(&reply->body, (size_t)64 * 1024 * 1024);
	fixture_send(fixture, ask, &HANDLER, reply);
}

UNUSED_HERE static void fixture_wait(struct plane_fixture *fixture, struct reply *reply)
{
	struct error err;
	struct slice body = { 0 };

	test_loop_until(fixture->loop, &reply->done);
	assert_true(arena_copy(&fixture->arena, buffer_slice(&reply->body), &body));
	buffer_destroy(&reply->body);
	reply->body = (struct buffer){ .data = (char *)(uintptr_t)body.data, .length = body.length };
	if (!json_tree_parse(body, &fixture->arena, &reply->root, &err))
		reply->root = NULL;
}

/* Sends a request and waits for the reply. */
UNUSED_HERE static struct reply ask(struct plane_fixture *fixture, const struct ask *ask)
{
	struct reply reply;

	fixture_start(fixture, ask, &reply);
	fixture_wait(fixture, &reply);
	return reply;
}

UNUSED_HERE static struct reply get(struct plane_fixture *fixture, const char *target)
{
	return ask(fixture, &(struct ask){ .target = target });
}

UNUSED_HERE static struct reply patch(struct plane_fixture *fixture, const char *target, const char *body)
{
	return ask(fixture, &(struct ask){ .method = "PATCH", .target = target, .type = JSON_PATCH, .body = body });
}

UNUSED_HERE static struct reply admin(struct plane_fixture *fixture, const char *method, const char *target,
                                      const char *type, const char *body)
{
	return ask(
		fixture,
		&(struct ask){ .token = ADMIN_TOKEN, .method = method, .target = target, .type = type, .body = body });
}

UNUSED_HERE static void expect_status(const struct reply *reply, int status)
{
	if (reply->failed)
		fail_msg("%s", reply->err.text);
	if (reply->status != status)
		fail_msg("status %d instead of %d: %.*s", reply->status, status, (int)reply->body.length,
		         reply->body.data);
}

UNUSED_HERE static void fixture_expect_text(const struct json_node *root, const char *pointer, const char *text)
{
	const struct json_node *node = json_tree_find(root, pointer);
	struct buffer printed;
	struct error err;

	if (node == NULL && text == NULL)
		return;
	if (node == NULL)
		fail_msg("there is no %s; it should be %s", pointer, text);
	buffer_init(&printed, (size_t)1024 * 1024);
	assert_true(json_tree_print(node, &printed, &err));
	buffer_append_char(&printed, '\0');
	if (text == NULL)
		fail_msg("%s is %s; it shouldn't be there", pointer, printed.data);
	if (strcmp(printed.data, text) != 0)
		fail_msg("%s is %s instead of %s", pointer, printed.data, text);
	buffer_destroy(&printed);
}

/* The value at a pointer, as JSON text; NULL: it isn't there. */
#define expect_json(root, pointer, text) fixture_expect_text(root, pointer, text)

UNUSED_HERE static void expect_message(const struct reply *reply, int status, const char *message)
{
	struct slice found = json_tree_text(json_tree_find(reply->root, "/message"));

	expect_status(reply, status);
	if (!slice_equal_text(found, message))
		fail_msg("message \"%.*s\" instead of \"%s\"", SLICE_ARGS(found), message);
}

UNUSED_HERE static const char *version_of(struct plane_fixture *fixture, const struct json_node *root)
{
	struct slice text = json_tree_text(json_tree_find(root, "/metadata/resourceVersion"));
	struct slice copy = { 0 };

	assert_true(text.length > 0);
	assert_true(arena_copy(&fixture->arena, text, &copy));
	return copy.data;
}

/* A file of tests/ as JSON. */
UNUSED_HERE static struct json_node *read_json(struct plane_fixture *fixture, const char *path)
{
	size_t length;
	char *text = test_file_read(path, &length);
	struct slice copy = { 0 };
	struct json_node *root;
	struct error err;

	assert_true(arena_copy(&fixture->arena, slice_from(text, length), &copy));
	free(text);
	if (!json_tree_parse(copy, &fixture->arena, &root, &err))
		fail_msg("%s: %s", path, err.text);
	return root;
}

/* ---- watches ---- */

struct watching {
	struct plane_fixture *fixture;
	struct http_exchange *exchange;
	bool open, done, failed;
	int status;
	struct error err;
	struct buffer text; /* not looked at yet */
	uint64_t since_ms;  /* when `at_ms` began */
	uint64_t at_ms;     /* when the last event came */
	char type[16];      /* of the last event */
};

UNUSED_HERE static void watching_on_head(void *context, const struct http_response *response)
{
	struct watching *watching = context;

	watching->open = true;
	watching->status = response->status;
}

UNUSED_HERE static void watching_on_body(void *context, struct slice bytes)
{
	struct watching *watching = context;

	buffer_append_slice(&watching->text, bytes);
}

UNUSED_HERE static void watching_on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct watching *watching = context;

	(void)response;
	watching->done = true;
	watching->failed = err != NULL;
	if (err != NULL)
		watching->err = *err;
}

UNUSED_HERE static struct watching *watch_open(struct plane_fixture *fixture, const char *token, const char *target)
{
	static const struct http_handler HANDLER = { .on_head = watching_on_head,
		                                     .on_body = watching_on_body,
		                                     .on_done = watching_on_done };
	struct watching *watching = calloc(1, sizeof *watching);

	watching->fixture = fixture;
	buffer_init(&watching->text, (size_t)64 * 1024 * 1024);
	watching->exchange =
		fixture_send(fixture, &(struct ask){ .token = token, .target = target }, &HANDLER, watching);
	test_loop_until(fixture->loop, &watching->open);
	watching->since_ms = now_ms();
	return watching;
}

UNUSED_HERE static void watch_close(struct watching *watching)
{
	if (!watching->done)
		http_exchange_cancel(watching->exchange);
	buffer_destroy(&watching->text);
	free(watching);
}

UNUSED_HERE static bool watch_has_line(const struct watching *watching)
{
	return watching->text.length > 0 && memchr(watching->text.data, '\n', watching->text.length) != NULL;
}

/* The next event's object, for which up to ms may pass (0: it has happened already); NULL if none comes. */
UNUSED_HERE static struct json_node *watch_next(struct watching *watching, uint64_t ms)
{
	struct plane_fixture *fixture = watching->fixture;
	struct slice line;
	struct slice copy = { 0 };
	struct json_node *event;
	struct error err;
	uint64_t end = now_ms() + ms;

	test_loop_spin(fixture->loop, 1);
	/* What has happened already may take its real time to get here. */
	for (int i = 0; i < 400 && ms == 0 && !watch_has_line(watching) && !watching->done; i++)
		test_loop_spin(fixture->loop, 5);
	while (!watch_has_line(watching)) {
		if (now_ms() >= end || watching->done)
			return NULL;
		test_clock_skip((uint64_t)STEP_MS * NS_PER_MS);
		fixture_turn(fixture);
	}
	watching->at_ms = now_ms() - watching->since_ms;
	line = buffer_slice(&watching->text);
	assert_true(arena_copy(&fixture->arena, slice_take_until(&line, '\n'), &copy));
	buffer_consume(&watching->text, copy.length + 1);
	if (!json_tree_parse(copy, &fixture->arena, &event, &err))
		fail_msg("an event is no JSON: %s", err.text);
	(void)snprintf(watching->type, sizeof watching->type, "%.*s",
	               SLICE_ARGS(json_tree_text(json_tree_find(event, "/type"))));
	return json_tree_find(event, "/object");
}

/* The next event must come within ms and be of that type. */
UNUSED_HERE static struct json_node *expect_event(struct watching *watching, uint64_t ms, const char *type)
{
	struct json_node *object = watch_next(watching, ms);

	if (object == NULL)
		fail_msg("no event came within %u ms; it should be %s", (unsigned)ms, type);
	if (strcmp(watching->type, type) != 0)
		fail_msg("an event is %s instead of %s", watching->type, type);
	return object;
}

UNUSED_HERE static void expect_no_event(struct watching *watching, uint64_t ms)
{
	if (watch_next(watching, ms) != NULL)
		fail_msg("an event came: %s", watching->type);
}

UNUSED_HERE static struct watching *watch_vms(struct plane_fixture *fixture)
{
	struct reply list = get(fixture, VMS);
	char target[256];

	expect_status(&list, 200);
	(void)snprintf(target, sizeof target, VMS "?allowWatchBookmarks=true&resourceVersion=%s&watch=true",
	               version_of(fixture, list.root));
	return watch_open(fixture, NULL, target);
}

#endif
