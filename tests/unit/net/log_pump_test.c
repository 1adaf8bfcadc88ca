#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/log_pump.h"
#include "net/loop_epoll.h"

enum { LINES = 2000 };

static int64_t no_time(void *context)
{
	(void)context;
	return 0;
}

static void a_slow_reader_gets_every_line(void **state)
{
	struct error err;
	struct loop *loop = loop_epoll_create(&err);
	struct log_pump pump = { 0 };
	struct log_sink *sink;
	struct logger logger;
	int ends[2];
	char bytes[4096];
	size_t lines = 0;

	(void)state;
	assert_non_null(loop);
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	sink = log_sink_create(ends[1], LOG_FORMAT_JSON, LOG_INFO, 1024 * 1024, no_time, NULL, &err);
	assert_non_null(sink);
	logger = (struct logger){ .sink = sink, .name = "test", .context_json = "" };
	log_pump_start(&pump, loop, sink);
	for (int i = 0; i < LINES; i++)
		log_info(&logger, "a line that is some sixty bytes long, all in all, or more");
	assert_non_null(pump.watch);
	while (lines < LINES) {
		ssize_t count = read(ends[0], bytes, sizeof bytes);

		for (ssize_t i = 0; i < count; i++)
			lines += bytes[i] == '\n';
		/* With nothing to wait for, a turn would be for ever. */
		if (pump.watch != NULL)
			assert_true(loop_turn(loop, &err));
	}
	assert_int_equal(log_dropped_lines(sink), 0);
	/* Nothing waits any more, and nothing is watched. */
	while (pump.watch != NULL)
		assert_true(loop_turn(loop, &err));
	assert_false(loop_timer_running(&pump.timer));
	log_pump_stop(&pump);
	log_pump_stop(&pump);
	log_sink_destroy(sink, 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_reader_gets_every_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
