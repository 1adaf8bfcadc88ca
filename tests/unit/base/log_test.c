#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/memory.h"

enum { RING_BYTES = 65536, OUTPUT_BYTES = 1 << 20 };

/* A log that writes into a pipe, and what was read from it. */
struct fixture {
	int reader, writer;
	struct log_sink *sink;
	struct logger logger;
	char output[OUTPUT_BYTES];
};

static int64_t fixed_wall_ns(void *context)
{
	return *(const int64_t *)context;
}

static int64_t wall_ns = 1700000000123456789;

static struct fixture *open_log(enum log_format format, enum log_level least, size_t ring_bytes)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct error err;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	f->reader = ends[0];
	f->writer = ends[1];
	assert_int_not_equal(fcntl(f->reader, F_SETFL, O_NONBLOCK), -1);
	assert_int_not_equal(fcntl(f->writer, F_SETPIPE_SZ, 4096), -1);
	f->sink = log_sink_create(f->writer, format, least, ring_bytes, fixed_wall_ns, &wall_ns, &err);
	assert_non_null(f->sink);
	f->logger = (struct logger){ .sink = f->sink, .name = "autoscaler-agent.runner", .context_json = "" };
	return f;
}

static void close_log(struct fixture *f)
{
	log_sink_destroy(f->sink, 0);
	close(f->writer);
	if (f->reader >= 0)
		close(f->reader);
	free(f);
}

/* Everything that can be had, flushing until nothing is left. */
static const char *read_all(struct fixture *f)
{
	size_t length = 0;
	bool waiting;

	do {
		waiting = log_flush(f->sink);

		ssize_t count = read(f->reader, f->output + length, sizeof f->output - 1 - length);

		if (count > 0)
			length += (size_t)count;
	} while (waiting);
	f->output[length] = '\0';
	return f->output;
}

static size_t count_lines(const char *text)
{
	size_t count = 0;

	for (; *text != '\0'; text++)
		count += *text == '\n';
	return count;
}

static void a_json_line_has_the_keys_of_the_reference_in_its_order(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_JSON, LOG_INFO, RING_BYTES);
	struct error err;

	f->logger.context_json = "\"restarts\":2,\"pod\":{\"namespace\":\"a\",\"name\":\"b\"}";
	error_set(&err, ERROR_CLOSED, "EOF");
	log_error(&f->logger, "Say \"no\" & <go>", log_error_field(&err), log_int("attempt", -3),
	          log_uint("id", UINT64_MAX), log_float("load", 0.25), log_bool("ok", true),
	          log_duration("delay", 1500000000), log_json("event", SLICE("{\"kind\":\n\"added\"}\n")),
	          log_text("none", NULL), log_json("nothing", SLICE("")));
	assert_string_equal(
		read_all(f),
		"{\"level\":\"error\",\"ts\":1700000000.123456,\"logger\":\"autoscaler-agent.runner\","
		"\"msg\":\"Say \\\"no\\\" & <go>\",\"restarts\":2,\"pod\":{\"namespace\":\"a\",\"name\":\"b\"},"
		"\"error\":\"EOF\",\"attempt\":-3,\"id\":18446744073709551615,\"load\":0.25,\"ok\":true,\"delay\":1.5,"
		"\"event\":{\"kind\": \"added\"} ,\"none\":\"\",\"nothing\":null}\n");
	close_log(f);
}

static void a_text_line_is_made_for_people(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_TEXT, LOG_INFO, RING_BYTES);

	wall_ns = 1741064767123456789;
	f->logger.context_json = "\"restarts\":2,\"pod\":{\"namespace\":\"a,b\",\"name\":\"c\\\",d\"},\"task\":\"x\"";
	log_info(&f->logger, "VM \"v\" is gone", log_text("plain", "a/b"), log_text("spaced", "a b"),
	         log_text("empty", ""), log_duration("delay", 250000000), log_json("event", SLICE("[1,2]")),
	         log_text("lines", "a\nb"));
	log_panic(&f->logger, "two\nlines");
	wall_ns = 1700000000123456789;
	assert_string_equal(
		read_all(f),
		"2025-03-04T05:06:07.123Z INFO  autoscaler-agent.runner  VM \"v\" is gone  restarts=2 "
		"pod={\"namespace\":\"a,b\",\"name\":\"c\\\",d\"} task=\"x\" plain=a/b spaced=\"a b\" empty=\"\" delay=0.25 "
		"event=[1,2] lines=\"a\\nb\"\n"
		"2025-03-04T05:06:07.123Z PANIC autoscaler-agent.runner  \"two\\nlines\"  restarts=2 "
		"pod={\"namespace\":\"a,b\",\"name\":\"c\\\",d\"} task=\"x\"\n");
	close_log(f);
}

static void lines_below_the_least_level_are_left_out(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_TEXT, LOG_WARN, RING_BYTES);
	struct logger nowhere = { .name = "x", .context_json = "" };

	assert_false(log_enabled(&f->logger, LOG_INFO));
	assert_true(log_enabled(&f->logger, LOG_WARN));
	assert_false(log_enabled(&nowhere, LOG_PANIC));
	log_debug(&f->logger, "no");
	log_info(&f->logger, "no");
	log_warn(&f->logger, "yes");
	log_error(&f->logger, "yes");
	log_error(&nowhere, "no");
	assert_string_equal(read_all(f), "2023-11-14T22:13:20.123Z WARN  autoscaler-agent.runner  yes\n"
	                                 "2023-11-14T22:13:20.123Z ERROR autoscaler-agent.runner  yes\n");
	close_log(f);
}

static void numbers_that_json_lacks_are_strings(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_JSON, LOG_INFO, RING_BYTES);

	log_info(&f->logger, "m", log_float("a", (double)NAN), log_float("b", (double)INFINITY),
	         log_float("c", -(double)INFINITY));
	assert_non_null(strstr(read_all(f), "\"msg\":\"m\",\"a\":\"NaN\",\"b\":\"+Inf\",\"c\":\"-Inf\"}\n"));
	close_log(f);
}

static void times_before_1970_are_right_too(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_JSON, LOG_INFO, RING_BYTES);
	struct fixture *text = open_log(LOG_FORMAT_TEXT, LOG_INFO, RING_BYTES);

	wall_ns = -1500000001;
	log_info(&f->logger, "m");
	log_info(&text->logger, "m");
	wall_ns = 1700000000123456789;
	assert_non_null(strstr(read_all(f), "\"ts\":-1.500000,"));
	assert_string_equal(read_all(text), "1969-12-31T23:59:58.499Z INFO  autoscaler-agent.runner  m\n");
	close_log(f);
	close_log(text);
}

static void a_full_pipe_never_blocks_and_full_rings_drop_the_newest_and_say_so(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_JSON, LOG_INFO, 8192);
	char expected[64];

	alarm(20); /* a write that blocks ends the test */
	for (int i = 0; i < 1000; i++)
		log_info(&f->logger, "line", log_int("number", i));
	alarm(0);

	uint64_t dropped = log_dropped_lines(f->sink);
	size_t kept = 1000 - (size_t)dropped;

	assert_in_range(dropped, 800, 950);
	assert_true(log_flush(f->sink));
	assert_int_equal(count_lines(read_all(f)), kept);
	snprintf(expected, sizeof expected, "\"number\":%zu}\n", kept - 1);
	assert_string_equal(f->output + strlen(f->output) - strlen(expected), expected);

	log_info(&f->logger, "after");
	snprintf(expected, sizeof expected, "\"msg\":\"log lines dropped\",\"lines\":%u}\n", (unsigned)dropped);
	assert_non_null(strstr(read_all(f), expected));
	assert_memory_equal(f->output, "{\"level\":\"warn\",\"ts\":1700000000.123456,\"logger\":\"autoscaler-agent\",",
	                    67);
	assert_non_null(strstr(
		f->output,
		"}\n{\"level\":\"info\",\"ts\":1700000000.123456,\"logger\":\"autoscaler-agent.runner\",\"msg\":\"after\"}\n"));
	log_info(&f->logger, "once only");
	assert_null(strstr(read_all(f), "dropped"));
	assert_int_equal(log_dropped_lines(f->sink), dropped);
	close_log(f);
}

static void count_call(void *context)
{
	(*(int *)context)++;
}

static void who_flushes_is_told_while_something_waits(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_JSON, LOG_INFO, 8192);
	int told = 0;

	log_sink_tell_waiting(f->sink, count_call, &told);
	log_info(&f->logger, "goes straight into the pipe");
	assert_int_equal(told, 0);
	log_info(&f->logger, "finds the pipe's only page in use");
	assert_int_equal(told, 1);
	log_info(&f->logger, "waits too");
	assert_int_equal(told, 2);
	assert_int_equal(count_lines(read_all(f)), 3);
	log_info(&f->logger, "goes straight into the pipe again");
	assert_int_equal(told, 2);
	log_sink_tell_waiting(f->sink, NULL, NULL);
	log_info(&f->logger, "waits, and nobody is told");
	assert_int_equal(told, 2);
	close_log(f);
}

static void lines_come_out_whole_and_in_order_from_a_slow_reader(void **state)
{
	(void)state;
	enum { LINES = 3000 };
	struct fixture *f = open_log(LOG_FORMAT_TEXT, LOG_INFO, 16384);
	char padding[200];
	char *copy = calloc(1, OUTPUT_BYTES);
	size_t length = 0, expected_number = 0, dropped_lines = 0;

	memset(padding, 'p', sizeof padding);
	for (size_t i = 0; i < LINES; i++) {
		log_info(&f->logger, "m", log_slice("padding", slice_from(padding, i * 7 % sizeof padding)),
		         log_uint("number", i));
		if (i % 3 == 0) {
			ssize_t count = read(f->reader, copy + length, 100 + i % 500);

			length += count > 0 ? (size_t)count : 0;
		}
	}
	strcpy(copy + length, read_all(f));
	for (char *line = strtok(copy, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		unsigned number;
		const char *found = strstr(line, "lines=");

		if (found != NULL && sscanf(found, "lines=%u", &number) == 1) {
			dropped_lines += number;
			expected_number += number;
			continue;
		}
		assert_memory_equal(line, "2023-11-14T22:13:20.123Z INFO  autoscaler-agent.runner  m  padding=", 66);
		found = strstr(line, "number=");
		assert_non_null(found);
		assert_int_equal(sscanf(found, "number=%u", &number), 1);
		assert_int_equal(number, expected_number);
		expected_number++;
	}
	assert_true(dropped_lines > 100);
	assert_true(log_dropped_lines(f->sink) >= dropped_lines);
	assert_int_equal(LINES - expected_number, log_dropped_lines(f->sink) - dropped_lines);
	free(copy);
	close_log(f);
}

static void short_writes_and_full_sockets_are_continued_later(void **state)
{
	(void)state;
	struct error err;
	int ends[2];
	char text[3000];
	static char output[OUTPUT_BYTES];
	size_t length = 0;

	/* A non-blocking socket takes parts of writes, and EAGAIN comes when it is full. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &(int){ 4096 }, sizeof(int)), 0);

	struct log_sink *sink =
		log_sink_create(ends[1], LOG_FORMAT_TEXT, LOG_INFO, 1 << 20, fixed_wall_ns, &wall_ns, &err);
	struct logger logger = { .sink = sink, .name = "n", .context_json = "" };

	memset(text, 't', sizeof text);
	for (int i = 0; i < 50; i++)
		log_info(&logger, "m", log_slice("text", slice_from(text, sizeof text)));
	assert_int_equal(log_descriptor(sink), ends[1]);
	while (log_flush(sink)) {
		ssize_t count = read(ends[0], output + length, 1000);

		assert_true(count > 0);
		length += (size_t)count;
	}
	for (ssize_t count; (count = read(ends[0], output + length, 1000)) > 0;)
		length += (size_t)count;
	output[length] = '\0';
	assert_int_equal(count_lines(output), 50);
	assert_int_equal(length, 50 * (strlen("2023-11-14T22:13:20.123Z INFO  n  m  text=\n") + sizeof text));
	assert_int_equal(log_dropped_lines(sink), 0);
	log_sink_destroy(sink, 0);
	close(ends[0]);
	close(ends[1]);
}

static void a_reader_that_went_away_costs_lines_only(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_TEXT, LOG_INFO, RING_BYTES);
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);

	close(f->reader);
	f->reader = -1;
	for (int i = 0; i < 3; i++)
		log_info(&f->logger, "nobody reads this");
	assert_false(log_flush(f->sink));
	/* Each line after the first carries the notice that others were lost, and that notice is lost with it. */
	assert_int_equal(log_dropped_lines(f->sink), 1 + 2 + 2);
	signal(SIGPIPE, before);
	close_log(f);
}

static void a_closed_descriptor_costs_lines_only(void **state)
{
	(void)state;
	struct error err;
	struct log_sink *sink = log_sink_create(987, LOG_FORMAT_TEXT, LOG_INFO, 1000, fixed_wall_ns, &wall_ns, &err);
	struct logger logger = { .sink = sink, .name = "n", .context_json = "" };

	log_info(&logger, "m");
	assert_int_equal(log_dropped_lines(sink), 1);
	assert_false(log_flush(sink));
	log_sink_destroy(sink, 1000);
}

static void values_of_a_line_that_is_too_long_are_cut(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_JSON, LOG_INFO, 1 << 20);
	char *text = malloc(70000);
	char expected[2000];

	memset(text, 'x', 70000);
	text[0] = '"'; /* valid JSON */
	text[69999] = '"';
	memcpy(text + 1023, "\xc3\xa9", 2); /* lies across the cut */
	log_info(&f->logger, "m", log_slice("text", slice_from(text, 70000)), log_json("json", slice_from(text, 70000)),
	         log_text("short", "s"));
	read_all(f);
	snprintf(
		expected, sizeof expected,
		"{\"level\":\"info\",\"ts\":1700000000.123456,\"logger\":\"autoscaler-agent.runner\",\"msg\":\"m\","
		"\"text\":\"\\\"%.*s\xe2\x80\xa6 (68977 bytes left out)\",\"json\":\"(70000 bytes left out)\",\"short\":\"s\"}\n",
		1022, text + 1025);
	assert_string_equal(f->output, expected);
	assert_int_equal(log_dropped_lines(f->sink), 0);

	/* One that fits is complete. */
	log_info(&f->logger, "m", log_slice("text", slice_from(text + 2000, 60000)));
	assert_true(strlen(read_all(f)) > 60000);
	free(text);
	close_log(f);
}

static void a_context_too_long_for_a_line_drops_it(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_JSON, LOG_INFO, 1 << 20);
	char *context = malloc(70001);

	memset(context, '1', 70000);
	memcpy(context, "\"a\":", 4);
	context[70000] = '\0';
	f->logger.context_json = context;
	log_info(&f->logger, "m");
	assert_string_equal(read_all(f), "");
	assert_int_equal(log_dropped_lines(f->sink), 1);
	free(context);
	close_log(f);
}

static void fields_beyond_the_most_are_counted(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_JSON, LOG_INFO, RING_BYTES);
	struct log_field n = log_int("n", 1);

	log_info(&f->logger, "m", n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n,
	         n, n, n);
	assert_null(strstr(read_all(f), "fieldsLeftOut"));
	log_info(&f->logger, "m", n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n,
	         n, n, n, n);
	assert_non_null(strstr(read_all(f), "\"n\":1,\"fieldsLeftOut\":2}\n"));
	close_log(f);
}

static void destroying_waits_for_a_slow_reader_but_not_for_ever(void **state)
{
	(void)state;
	struct fixture *f = open_log(LOG_FORMAT_TEXT, LOG_INFO, RING_BYTES);

	for (int i = 0; i < 200; i++)
		log_info(&f->logger, "a line of some length, so that the pipe is full soon");
	assert_true(log_flush(f->sink));
	alarm(20);
	log_sink_destroy(f->sink, 50);
	alarm(0);
	f->sink = NULL;
	log_sink_destroy(NULL, 50);
	close_log(f);
}

static void short_memory_costs_lines_only(void **state)
{
	(void)state;
	char text[2000];
	struct error err;
	unsigned long failing = 1;
	bool reached = true;

	memset(text, 'x', sizeof text);
	for (; reached; failing++) {
		int ends[2];

		assert_int_equal(pipe(ends), 0);
		memory_fail_at(failing);

		struct log_sink *sink =
			log_sink_create(ends[1], LOG_FORMAT_JSON, LOG_INFO, 30000, fixed_wall_ns, &wall_ns, &err);
		struct logger logger = { .sink = sink, .name = "n", .context_json = "" };

		if (sink == NULL)
			assert_int_equal(err.code, ERROR_NO_MEMORY);
		for (int i = 0; i < 3; i++)
			log_info(&logger, "m", log_slice("text", slice_from(text, sizeof text)));
		reached = memory_allocation_count() >= failing;
		memory_fail_at(0);
		if (sink != NULL)
			assert_int_equal(log_dropped_lines(sink), reached ? 1 : 0);
		log_sink_destroy(sink, 0);
		close(ends[0]);
		close(ends[1]);
	}
	assert_true(failing > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_json_line_has_the_keys_of_the_reference_in_its_order),
		cmocka_unit_test(a_text_line_is_made_for_people),
		cmocka_unit_test(lines_below_the_least_level_are_left_out),
		cmocka_unit_test(numbers_that_json_lacks_are_strings),
		cmocka_unit_test(times_before_1970_are_right_too),
		cmocka_unit_test(a_full_pipe_never_blocks_and_full_rings_drop_the_newest_and_say_so),
		cmocka_unit_test(who_flushes_is_told_while_something_waits),
		cmocka_unit_test(lines_come_out_whole_and_in_order_from_a_slow_reader),
		cmocka_unit_test(short_writes_and_full_sockets_are_continued_later),
		cmocka_unit_test(a_reader_that_went_away_costs_lines_only),
		cmocka_unit_test(a_closed_descriptor_costs_lines_only),
		cmocka_unit_test(values_of_a_line_that_is_too_long_are_cut),
		cmocka_unit_test(a_context_too_long_for_a_line_drops_it),
		cmocka_unit_test(fields_beyond_the_most_are_counted),
		cmocka_unit_test(destroying_waits_for_a_slow_reader_but_not_for_ever),
		cmocka_unit_test(short_memory_costs_lines_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
