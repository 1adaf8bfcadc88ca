/*
 * Our websockets against those of the npm package ws, both ways round (tests/e2e/websocket_peer.js).
 */
#include "websocket_end.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT TESTS_DIR "/e2e/websocket_peer.js"

/* A child process whose output is read and whose end is waited for. */
struct child {
	pid_t pid;
	int input;  /* ends it when closed */
	int output; /* non-blocking */
	struct buffer text;
	bool ended;
	struct loop *loop;
	struct loop_watch *watch;
};

static void read_output(void *context)
{
	struct child *child = context;
	char bytes[1000];
	ssize_t length = read(child->output, bytes, sizeof bytes);

	if (length > 0) {
		buffer_append(&child->text, bytes, (size_t)length);
	} else if (length == 0) {
		loop_watch_stop(child->watch);
		child->watch = NULL;
		child->ended = true;
	}
}

static void child_start(struct child *child, struct loop *loop, const char *mode, const char *port)
{
	int input[2];
	int output[2];
	struct error err;

	*child = (struct child){ .loop = loop };
	buffer_init(&child->text, 100000);
	assert_int_equal(pipe2(input, O_CLOEXEC), 0);
	assert_int_equal(pipe2(output, O_CLOEXEC | O_NONBLOCK), 0);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (child->pid == 0) {
		(void)fcntl(output[1], F_SETFL, 0);
		if (dup2(input[0], 0) == 0 && dup2(output[1], 1) == 1)
			(void)execlp("node", "node", SCRIPT, mode, port, (char *)NULL);
		_exit(127);
	}
	close(input[0]);
	close(output[1]);
	child->input = input[1];
	child->output = output[0];
	child->watch = loop_watch_descriptor(loop, child->output, SOCKET_READ, read_output, child, &err);
	assert_non_null(child->watch);
}

static bool child_said(const struct child *child, const char *text)
{
	return slice_contains(buffer_slice(&child->text), slice_of(text));
}

static void child_end(struct child *child)
{
	int status;

	close(child->input);
	TURN_UNTIL(child->loop, child->ended);
	close(child->output);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) != 0)
		fail_msg("node ended with %d (run vendor/setup.sh?): %.*s", WEXITSTATUS(status),
		         (int)child->text.length, child->text.data != NULL ? child->text.data : "");
	buffer_destroy(&child->text);
}

/* ---- our client, their server ---- */

static void connect_to(struct websocket_end *end, struct loop *loop, uint16_t port)
{
	end_init(end);
	end_connect(end, loop, port);
	TURN_UNTIL(loop, end->opened == 1);
}

static void our_client_understands_their_server(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct child child;
	struct websocket_end end;
	uint64_t port = 0;
	struct error err;

	child_start(&child, loop, "serve", NULL);
	TURN_UNTIL(loop, child_said(&child, "\n") || child.ended);
	if (child.ended)
		child_end(&child);
	assert_true(slice_to_u64(slice_trim(buffer_slice(&child.text)), &port));

	connect_to(&end, loop, (uint16_t)port);
	end_send(&end, "h\xc3\xa9llo");
	end_send(&end, "");
	assert_true(websocket_send(end.websocket, SLICE("\xff\0\xfe"), false, &err));
	end_send(&end, "fragments");
	TURN_UNTIL(loop, end.messages == 4);
	assert_true(slice_equal(buffer_slice(&end.text),
	                        SLICE("h\xc3\xa9llo\n\n\xff\0\xfe\none two \xe2\x82\xac three\n")));
	buffer_clear(&end.text);
	end_send(&end, "ping");
	end_send(&end, "big");
	TURN_UNTIL(loop, end.messages == 6);
	assert_true(slice_contains(buffer_slice(&end.text), SLICE("pong payload\n")));
	assert_int_equal(end.text.length, 13 + 32769);
	websocket_close(end.websocket, 1000, SLICE("normal exit"));
	TURN_UNTIL(loop, end.closed == 1 && child_said(&child, "end 1000 normal exit\n"));
	assert_int_equal(end.code, 1000);
	assert_string_equal(end.reason, "normal exit");
	assert_true(end.clean);
	end_destroy(&end);

	connect_to(&end, loop, (uint16_t)port);
	end_send(&end, "close");
	TURN_UNTIL(loop, end.closed == 1 && child_said(&child, "end 4321 because \xc3\xa9\n"));
	assert_int_equal(end.code, 4321);
	assert_string_equal(end.reason, "because \xc3\xa9");
	assert_true(end.clean);
	end_destroy(&end);

	connect_to(&end, loop, (uint16_t)port);
	end_send(&end, "close without code");
	TURN_UNTIL(loop, end.closed == 1 && child_said(&child, "end 1005 \n"));
	assert_int_equal(end.code, 1005);
	end_destroy(&end);

	connect_to(&end, loop, (uint16_t)port);
	end_send(&end, "too big");
	TURN_UNTIL(loop, end.closed == 1 && child_said(&child, "closed 1009 read limited at 32769 bytes\n"));
	assert_int_equal(end.code, 1009);
	end_destroy(&end);

	connect_to(&end, loop, (uint16_t)port);
	end_send(&end, "terminate");
	TURN_UNTIL(loop, end.closed == 1);
	assert_int_equal(end.code, 1006);
	end_destroy(&end);

	connect_to(&end, loop, (uint16_t)port);
	websocket_detach_and_close(end.websocket, 1011, SLICE("detached"));
	end.websocket = NULL;
	TURN_UNTIL(loop, child_said(&child, "end 1011 detached\n"));
	end_destroy(&end);
	assert_false(child_said(&child, "error "));
	child_end(&child);
	loop_destroy(loop);
}

/* ---- our server, their client ---- */

static void echo_or_abort(struct websocket_end *end)
{
	if (end_has(end, "abort\n")) {
		websocket_abort(end->websocket);
		end->websocket = NULL;
	}
	buffer_clear(&end->text);
}

static struct websocket_end server;

static void accept_websocket(struct site *site, struct http_call *call)
{
	struct error err;

	buffer_clear(&server.text);
	server.websocket = websocket_accept(site->loop, call, 32768, &END_HANDLER, &server, &err);
	if (server.websocket == NULL)
		http_call_respond(call, 400, "text/plain", slice_of(err.text));
}

static void their_client_understands_our_server(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct child child;
	struct site site;
	char port[16];

	site_init(&site, loop);
	site.on_request = accept_websocket;
	end_init(&server);
	server.echoes = true;
	server.in_message = echo_or_abort;
	snprintf(port, sizeof port, "%u", site.address.port);
	child_start(&child, loop, "connect", port);
	TURN_UNTIL(loop, child.ended);
	if (!child_said(&child, "ok\n"))
		fail_msg("%.*s", (int)child.text.length, child.text.data != NULL ? child.text.data : "");
	child_end(&child);
	end_destroy(&server);
	site_destroy(&site);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_client_understands_their_server),
		cmocka_unit_test(their_client_understands_our_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
