#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http_site.h"

enum { STEPS = 40, STEP_BYTES = 100000 };

/* An answer in steps, each when the one before has left. */
struct stepper {
	struct site site; /* first: it is the server's context */
	unsigned written, drained;
};

static char step[STEP_BYTES];

static void begin(struct site *site, struct http_call *call)
{
	struct stepper *stepper = (struct stepper *)site;

	http_call_begin(call, 200, (struct http_fields){ 0 });
	assert_true(http_call_write(call, slice_from(step, sizeof step)));
	stepper->written = 1;
}

static void on_drained(void *context, struct http_call *call)
{
	struct stepper *stepper = context;

	stepper->drained++;
	assert_int_equal(http_call_pending_bytes(call), 0);
	if (stepper->written == STEPS) {
		http_call_end(call);
		return;
	}
	stepper->written++;
	assert_true(http_call_write(call, slice_from(step, sizeof step)));
}

static void a_long_answer_is_written_as_it_leaves(void **state)
{
	static const struct http_server_handler HANDLER = { .on_request = site_on_request, .on_drained = on_drained };
	struct error err;
	struct loop *loop = loop_epoll_create(&err);
	struct http_server_options options = site_options();
	struct stepper stepper = { .written = 0 };
	struct peer peer;

	(void)state;
	assert_non_null(loop);
	memset(step, 'x', sizeof step);
	site_init_with(&stepper.site, loop, &options, &HANDLER);
	stepper.site.on_request = begin;
	peer_connect_site(&peer, &stepper.site);
	peer_write(&peer, SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, received_at_end(&peer, "\r\n0\r\n\r\n"));
	assert_int_equal(stepper.written, STEPS);
	assert_int_equal(stepper.drained, STEPS);
	assert_true(peer.received.length > (size_t)STEPS * STEP_BYTES);
	/* The connection goes on, and an answer at once has nothing to do with it. */
	stepper.site.on_request = NULL;
	peer_write(&peer, SLICE("GET /b HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, received_at_end(&peer, "GET /b \"\""));
	assert_int_equal(stepper.drained, STEPS);
	peer_destroy(&peer);
	site_destroy(&stepper.site);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_answer_is_written_as_it_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
