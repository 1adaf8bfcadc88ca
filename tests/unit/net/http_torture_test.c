/*
 * Two requests over one connection, while each allocation and each socket call of either side fails once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "tests/support/torture.h"

enum { PORT = 9100, BODY_BYTES = 40000, REQUESTS = 2 };

struct scene {
	unsigned done, good;
	char body[BODY_BYTES];
	unsigned plays, plays_with_a_failure;
};

static void on_request(void *context, struct http_call *call)
{
	const struct scene *scene = context;

	http_call_respond(call, 200, "text/plain", slice_from(scene->body, BODY_BYTES));
}

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct scene *scene = context;

	scene->done++;
	if (err != NULL) {
		assert_true(err->code != ERROR_NONE && strlen(err->text) > 2);
		return;
	}
	/* An answer is whole, or it is an error: a 5xx of a server without memory is whole, too. */
	if (response->status == 200) {
		assert_int_equal(response->body.length, BODY_BYTES);
		assert_memory_equal(response->body.data, scene->body, BODY_BYTES);
		scene->good++;
	} else {
		assert_in_range(response->status, 500, 599);
	}
}

static bool send_request(struct torture *torture, struct http_client *client, struct scene *scene)
{
	static const struct http_handler HANDLER = { .on_done = on_done };
	struct http_request request = { .origin = { .host = "10.0.0.2", .port = PORT },
		                        .method = SLICE("POST"),
		                        .target = SLICE("/page"),
		                        .body = SLICE("a question"),
		                        .total_timeout_ns = UINT64_C(10) * NS_PER_S,
		                        .max_body_bytes = BODY_BYTES };
	struct error err = { .code = ERROR_NONE };
	bool sent;

	torture_enter(torture, torture->client);
	sent = http_client_send(client, &request, &HANDLER, scene, &err) != NULL;
	torture_leave(torture, torture->client);
	assert_true(sent || (err.code != ERROR_NONE && err.text[0] != '\0'));
	return sent;
}

static void talk(struct torture *torture, struct http_client *client, struct scene *scene)
{
	unsigned expected = 0;

	for (unsigned i = 0; i < REQUESTS; i++) {
		expected += send_request(torture, client, scene) ? 1 : 0;
		torture_pass(torture, 15000);
		/* Each request ends, once. */
		assert_int_equal(scene->done, expected);
	}
}

static void play(struct torture *torture, void *context)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request };
	struct http_server_options options = { .address = torture_server_address(PORT), .max_body_bytes = 1000 };
	struct scene *scene = context;
	struct http_server *server;
	struct http_client *client;
	struct error err;

	scene->done = scene->good = 0;
	scene->plays++;
	torture_enter(torture, torture->server);
	server = http_server_start(torture->server, &options, &HANDLER, scene, &err);
	torture_leave(torture, torture->server);
	torture_enter(torture, torture->client);
	client = http_client_create(torture->client, &err);
	torture_leave(torture, torture->client);
	if (client != NULL) {
		talk(torture, client, scene);
		torture_enter(torture, torture->client);
		http_client_destroy(client);
		torture_leave(torture, torture->client);
	}
	if (server != NULL)
		http_server_destroy(server);
	if (scene->good < REQUESTS)
		scene->plays_with_a_failure++;
	/* One failure spoils one request at most: the next goes well, if there are a client and a server. */
	if (client != NULL && server != NULL)
		assert_in_range(scene->good, REQUESTS - 1, REQUESTS);
}

static void torture(enum torture_kind kind, enum torture_victim victim)
{
	struct scene scene = { .done = 0 };
	unsigned long points;

	for (size_t i = 0; i < BODY_BYTES; i++)
		scene.body[i] = (char)('a' + i % 23);
	points = torture_each(kind, victim, play, &scene);
	assert_int_equal(scene.plays, points + 2);
	/* Most of them are no matter of taste. */
	assert_in_range(scene.plays_with_a_failure, 2, points);
}

static void a_client_survives_each_failed_allocation(void **state)
{
	(void)state;
	torture(TORTURE_ALLOCATIONS, TORTURE_CLIENT);
}

static void a_client_survives_each_failed_call(void **state)
{
	(void)state;
	torture(TORTURE_CALLS, TORTURE_CLIENT);
}

static void a_server_survives_each_failed_allocation(void **state)
{
	(void)state;
	torture(TORTURE_ALLOCATIONS, TORTURE_SERVER);
}

static void a_server_survives_each_failed_call(void **state)
{
	(void)state;
	torture(TORTURE_CALLS, TORTURE_SERVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_survives_each_failed_allocation),
		cmocka_unit_test(a_client_survives_each_failed_call),
		cmocka_unit_test(a_server_survives_each_failed_allocation),
		cmocka_unit_test(a_server_survives_each_failed_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
