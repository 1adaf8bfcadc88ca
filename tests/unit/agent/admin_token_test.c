#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/admin_token.h"
#include "agent/limits.h"
#include "base/memory.h"
#include "net/loop_epoll.h"
#include "tests/unit/agent/plain_http.h"

struct world {
	struct loop *loop;
	struct http_server *server;
	struct address address;
	struct admin_token token;
	char path[64];
	char answer[PLAIN_HTTP_ANSWER_BYTES];
	bool fails; /* the allocations while the token is asked */
};

static void on_request(void *context, struct http_call *call)
{
	struct world *world = context;

	if (world->fails)
		memory_fail_at(1);
	if (admin_token_admits(&world->token, call))
		http_call_respond(call, 200, NULL, SLICE("in"));
	memory_fail_at(0);
}

static int set_up(void **state)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request };
	struct http_server_options options = { .max_body_bytes = 1000 };
	struct world *world = calloc(1, sizeof *world);
	struct error err;
	int descriptor;

	snprintf(world->path, sizeof world->path, "/tmp/ballast-token-XXXXXX");
	descriptor = mkstemp(world->path);
	assert_true(descriptor >= 0);
	close(descriptor);
	world->token = (struct admin_token){ .path = world->path };
	world->loop = loop_epoll_create(&err);
	assert_true(address_parse(SLICE("127.0.0.1"), 0, &options.address));
	world->server = http_server_start(world->loop, &options, &HANDLER, world, &err);
	assert_non_null(world->server);
	assert_true(http_server_address(world->server, &world->address));
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	http_server_destroy(world->server);
	loop_destroy(world->loop);
	unlink(world->path);
	free(world);
	return 0;
}

static void write_token(struct world *world, const char *text)
{
	FILE *file = fopen(world->path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* The status for a request with these fields; each ends in \r\n. */
static int ask(struct world *world, const char *fields)
{
	char head[1024];

	snprintf(head, sizeof head, "GET / HTTP/1.1\r\n%s", fields);
	plain_http_ask(world->loop, &world->address, head, "", world->answer);
	return plain_http_status(world->answer);
}

static void without_a_path_everybody_is_let_in(void **state)
{
	struct world *world = *state;
	struct error err;

	world->token.path = NULL;
	assert_true(admin_token_check(&world->token, &err));
	assert_int_equal(ask(world, ""), 200);
	world->token.path = "";
	assert_int_equal(ask(world, "Authorization: Bearer x\r\n"), 200);
}

static void only_the_token_lets_in(void **state)
{
	struct world *world = *state;

	write_token(world, "  open-sesame \n");
	assert_int_equal(ask(world, "Authorization: Bearer open-sesame\r\n"), 200);
	assert_string_equal(plain_http_body(world->answer), "in");
	assert_int_equal(ask(world, "authorization: bEARER open-sesame\r\n"), 200);
	assert_int_equal(ask(world, ""), 401);
	assert_non_null(strstr(world->answer, "\r\nWWW-Authenticate: Bearer\r\n"));
	assert_int_equal(ask(world, "Authorization: open-sesame\r\n"), 401);
	assert_int_equal(ask(world, "Authorization: Bearer\r\n"), 401);
	assert_int_equal(ask(world, "Authorization: Beareropen-sesame\r\n"), 401);
	assert_int_equal(ask(world, "Authorization: Bearer open-sesam\r\n"), 401);
	assert_int_equal(ask(world, "Authorization: Bearer open-sesame2\r\n"), 401);
	assert_int_equal(ask(world, "Authorization: Bearer OPEN-SESAME\r\n"), 401);
	assert_int_equal(ask(world, "Authorization: Bearer open-sesame\r\nAuthorization: Bearer open-sesame\r\n"), 401);
	write_token(world, "another");
	assert_int_equal(ask(world, "Authorization: Bearer open-sesame\r\n"), 401);
	assert_int_equal(ask(world, "Authorization: Bearer another\r\n"), 200);
}

static void a_file_without_a_token_lets_nobody_in(void **state)
{
	struct world *world = *state;
	char big[AGENT_ADMIN_TOKEN_BYTES + 2];
	struct error err;

	write_token(world, " \n");
	assert_false(admin_token_check(&world->token, &err));
	assert_int_equal(err.code, ERROR_SYNTAX);
	assert_int_equal(ask(world, "Authorization: Bearer \r\n"), 401);
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	write_token(world, big);
	assert_false(admin_token_check(&world->token, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_int_equal(ask(world, "Authorization: Bearer xx\r\n"), 401);
	unlink(world->path);
	assert_false(admin_token_check(&world->token, &err));
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_int_equal(ask(world, "Authorization: Bearer x\r\n"), 401);
}

static void without_memory_nobody_is_let_in(void **state)
{
	struct world *world = *state;

	write_token(world, "open-sesame");
	world->fails = true;
	assert_int_equal(ask(world, "Authorization: Bearer open-sesame\r\n"), 401);
	world->fails = false;
	assert_int_equal(ask(world, "Authorization: Bearer open-sesame\r\n"), 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_a_path_everybody_is_let_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_the_token_lets_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_without_a_token_lets_nobody_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_memory_nobody_is_let_in, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
