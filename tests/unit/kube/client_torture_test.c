/*
 * A Kubernetes client that gets, is refused, and watches, while each of its allocations and socket calls fails once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "kube/client.h"
#include "net/http_server.h"
#include "tests/support/torture.h"

enum { PORT = 8001, CALLS = 3, PATH_BYTES = 128, BODY_BYTES = 30000 };

struct scene {
	char folder[64], token[PATH_BYTES];
	char body[BODY_BYTES];
	unsigned done, good, refused, failed;
	unsigned plays, plays_with_a_failure;
};

static void on_request(void *context, struct http_call *call)
{
	const struct scene *scene = context;

	if (slice_equal_text(http_call_path(call), "/refused"))
		http_call_respond(call, 409, "application/json",
		                  SLICE("{\"kind\":\"Status\",\"message\":\"it has changed\",\"code\":409}"));
	else
		http_call_respond(call, 200, "application/json", slice_from(scene->body, BODY_BYTES));
}

static void on_done(void *context, int status, struct slice body, const struct error *err)
{
	struct scene *scene = context;

	scene->done++;
	if (err == NULL) {
		assert_int_equal(status, 200);
		assert_true(body.length == 0 || slice_equal(body, slice_from(scene->body, BODY_BYTES)));
		scene->good++;
		return;
	}
	assert_true(err->code != ERROR_NONE && err->text[0] != '\0');
	if (status == 409)
		scene->refused++;
	else
		scene->failed++;
}

static void on_body(void *context, struct slice bytes)
{
	(void)context;
	assert_true(bytes.length > 0);
}

static void send(struct torture *torture, struct kube_client *client, struct scene *scene, unsigned number)
{
	static const struct kube_handler COLLECTED = { .on_done = on_done };
	static const struct kube_handler STREAMED = { .on_done = on_done, .on_body = on_body };
	static const char *const PATHS[CALLS] = { "/list", "/refused", "/watch" };
	struct kube_request request = {
		.method = number == 1 ? SLICE("PATCH") : SLICE("GET"),
		.path = slice_of(PATHS[number]),
		.content_type = SLICE("application/json-patch+json"),
		.body = number == 1 ? SLICE("[]") : SLICE(""),
		.timeout_ns = UINT64_C(20) * NS_PER_S,
		.max_body_bytes = BODY_BYTES,
		.verb = "get",
		.resource = "things",
		.watch = number == 2,
	};
	struct error err = { .code = ERROR_NONE };
	unsigned before = scene->done;
	bool sent;

	torture_enter(torture, torture->client);
	sent = kube_client_send(client, &request, number == 2 ? &STREAMED : &COLLECTED, scene, &err) != NULL;
	torture_leave(torture, torture->client);
	assert_true(sent || (err.code != ERROR_NONE && err.text[0] != '\0'));
	torture_pass(torture, 30000);
	assert_int_equal(scene->done, before + (sent ? 1 : 0));
}

static struct kube_client *create(struct torture *torture, const struct scene *scene)
{
	const struct kube_client_options options = {
		.host = "10.0.0.2",
		.port = PORT,
		.credentials_dir = scene->folder,
		.user_agent = "ballast-test",
		.logger = { .name = "test", .context_json = "" },
		.plain = true,
	};
	struct error err = { .code = ERROR_NONE };
	struct kube_client *client;

	torture_enter(torture, torture->client);
	client = kube_client_create(torture->client, &options, &err);
	torture_leave(torture, torture->client);
	assert_true(client != NULL || (err.code == ERROR_NO_MEMORY && err.text[0] != '\0'));
	return client;
}

static void play(struct torture *torture, void *context)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request };
	struct http_server_options options = { .address = torture_server_address(PORT), .max_body_bytes = 1000 };
	struct scene *scene = context;
	struct http_server *server;
	struct kube_client *client;
	struct error err;

	scene->plays++;
	scene->done = scene->good = scene->refused = scene->failed = 0;
	server = http_server_start(torture->server, &options, &HANDLER, scene, &err);
	assert_non_null(server);
	client = create(torture, scene);
	for (unsigned i = 0; client != NULL && i < CALLS; i++)
		send(torture, client, scene, i);
	torture_enter(torture, torture->client);
	kube_client_destroy(client);
	torture_leave(torture, torture->client);
	http_server_destroy(server);
	/* A failure spoils one call at most. */
	if (client != NULL)
		assert_in_range(scene->good + scene->refused, CALLS - 1, CALLS);
	if (scene->good + scene->refused < CALLS)
		scene->plays_with_a_failure++;
	assert_true(scene->refused <= 1);
}

static void torture(enum torture_kind kind)
{
	struct scene scene = { .folder = "/tmp/ballast-kube-torture-XXXXXX" };
	unsigned long points;
	FILE *token;

	memset(scene.body, 'x', sizeof scene.body);
	assert_non_null(mkdtemp(scene.folder));
	(void)snprintf(scene.token, sizeof scene.token, "%s/token", scene.folder);
	token = fopen(scene.token, "w");
	assert_non_null(token);
	(void)fputs("the-token\n", token);
	(void)fclose(token);
	points = torture_each(kind, TORTURE_CLIENT, play, &scene);
	print_message("%lu points, %u plays with a failure\n", points, scene.plays_with_a_failure);
	assert_int_equal(scene.plays, points + 2);
	assert_in_range(scene.plays_with_a_failure, 2, points);
	(void)unlink(scene.token);
	(void)rmdir(scene.folder);
}

static void a_client_survives_each_failed_allocation(void **state)
{
	(void)state;
	torture(TORTURE_ALLOCATIONS);
}

static void a_client_survives_each_failed_call(void **state)
{
	(void)state;
	torture(TORTURE_CALLS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_survives_each_failed_allocation),
		cmocka_unit_test(a_client_survives_each_failed_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
