/*
 * A websocket connection with a question and its answer, while each allocation and each socket call of either side fails
 * once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "net/websocket.h"
#include "tests/support/torture.h"

enum { PORT = 10301, MESSAGE_BYTES_MAX = 65536 };

struct side {
	struct torture *torture;
	struct websocket *websocket;
	unsigned closed;
	unsigned answers;
};

struct scene {
	struct side client, server;
	unsigned plays, plays_with_a_failure;
};

static void on_close(void *context, int code, struct slice reason, const struct error *err)
{
	struct side *side = context;

	(void)code;
	(void)reason;
	assert_true(err == NULL || err->text[0] != '\0');
	side->closed++;
	side->websocket = NULL;
}

static void on_open(void *context)
{
	struct side *client = context;
	struct error err;

	/* If it can't be sent, nobody answers; the connection is closed in the end all the same. */
	(void)websocket_send(client->websocket, SLICE("question"), true, &err);
}

static void on_answer(void *context, struct slice message, bool is_text)
{
	struct side *client = context;

	assert_true(is_text && slice_equal_text(message, "answer"));
	client->answers++;
	websocket_close(client->websocket, WEBSOCKET_NORMAL, SLICE("normal exit"));
}

static void on_question(void *context, struct slice message, bool is_text)
{
	struct side *server = context;
	struct error err;

	assert_true(is_text && slice_equal_text(message, "question"));
	if (!websocket_send(server->websocket, SLICE("answer"), true, &err))
		websocket_close(server->websocket, WEBSOCKET_INTERNAL_ERROR, SLICE("no memory"));
}

static void on_request(void *context, struct http_call *call)
{
	static const struct websocket_handler HANDLER = { .on_message = on_question, .on_close = on_close };
	struct side *server = context;
	struct error err;

	server->websocket = websocket_accept(server->torture->server, call, MESSAGE_BYTES_MAX, &HANDLER, server, &err);
	if (server->websocket == NULL) {
		assert_true(err.text[0] != '\0');
		http_call_respond(call, 503, NULL, SLICE(""));
	}
}

static struct http_server *start_server(struct torture *torture, struct side *side)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request };
	struct http_server_options options = { .address = torture_server_address(PORT), .max_body_bytes = 100 };
	struct http_server *server;
	struct error err;

	torture_enter(torture, torture->server);
	server = http_server_start(torture->server, &options, &HANDLER, side, &err);
	torture_leave(torture, torture->server);
	return server;
}

static bool dial(struct torture *torture, struct side *side)
{
	static const struct websocket_handler HANDLER = { .on_open = on_open,
		                                          .on_message = on_answer,
		                                          .on_close = on_close };
	struct websocket_connect_options options = { .stream = { .host = "10.0.0.2", .port = PORT },
		                                     .path = "/monitor",
		                                     .handshake_timeout_ns = UINT64_C(4) * NS_PER_S,
		                                     .max_message_bytes = MESSAGE_BYTES_MAX };
	struct error err = { .code = ERROR_NONE };

	torture_enter(torture, torture->client);
	side->websocket = websocket_connect(torture->client, &options, &HANDLER, side, &err);
	torture_leave(torture, torture->client);
	assert_true(side->websocket != NULL || err.text[0] != '\0');
	return side->websocket != NULL;
}

static void drop(struct side *side)
{
	if (side->websocket != NULL)
		websocket_abort(side->websocket);
	side->websocket = NULL;
}

static void play(struct torture *torture, void *context)
{
	struct scene *scene = context;
	struct http_server *server;
	bool dialled;

	scene->plays++;
	scene->client = scene->server = (struct side){ .torture = torture };
	server = start_server(torture, &scene->server);
	dialled = dial(torture, &scene->client);
	torture_pass(torture, 30000);
	assert_in_range(scene->client.closed, 0, dialled ? 1 : 0);
	assert_in_range(scene->server.closed, 0, 1);
	/* With an answer the client has closed, and that came to an end. */
	if (scene->client.answers > 0)
		assert_int_equal(scene->client.closed, 1);
	else
		scene->plays_with_a_failure++;
	drop(&scene->client);
	drop(&scene->server);
	torture_pass(torture, 30000);
	if (server != NULL)
		http_server_destroy(server);
	torture_pass(torture, 30000);
}

static void torture(enum torture_kind kind, enum torture_victim victim)
{
	struct scene scene = { .plays = 0 };
	unsigned long points = torture_each(kind, victim, play, &scene);

	assert_int_equal(scene.plays, points + 2);
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
