/*
 * Files and the log over a system whose n-th call fails, for every n.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"
#include "tests/support/failing_files.h"

enum { FILE_BYTES = 100 * 1000, RING_BYTES = 64 * 1024, LINES = 40, PIPE_BYTES = 64 * 1024 };

/* ---- the calls; only those for `target` count, since cmocka writes too ---- */

static int target = -1;

ssize_t write(int descriptor, const void *data, size_t length)
{
	if (descriptor != target)
		return syscall(SYS_write, descriptor, data, length);
	if (torture_fails(TORTURE_WRITE))
		return -1;
	return syscall(SYS_write, descriptor, data, torture_shortened(TORTURE_WRITE, length));
}

int poll(struct pollfd *descriptors, nfds_t count, int timeout_ms)
{
	struct timespec timeout = { .tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L };

	return torture_fails(TORTURE_POLL)
	               ? -1
	               : (int)syscall(SYS_ppoll, descriptors, count, timeout_ms < 0 ? NULL : &timeout, NULL, (size_t)8);
}

/* ---- files ---- */

static char path[] = "/tmp/ballast-torture-XXXXXX";
static char text[FILE_BYTES];

static int make_file(void **state)
{
	int descriptor = mkstemp(path);

	(void)state;
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)('a' + i % 23);
	if (descriptor < 0 || syscall(SYS_write, descriptor, text, sizeof text) != (long)sizeof text)
		return -1;
	return close(descriptor);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static bool read_file(void *context)
{
	struct buffer content;
	struct error err = { .code = ERROR_NONE };
	bool ok;

	(void)context;
	torture_arm();
	buffer_init(&content, FILE_BYTES);
	ok = file_read(path, &content, &err);
	if (ok)
		assert_true(slice_equal(buffer_slice(&content), slice_from(text, sizeof text)));
	else
		assert_true(err.code == ERROR_NO_MEMORY ||
		            (err.code == ERROR_SYSTEM && strstr(err.text, path) != NULL));
	buffer_destroy(&content);
	torture_disarm();
	return ok;
}

static void a_file_is_read_whole_or_not_at_all(void **state)
{
	(void)state;
	static const struct torture_fault FAULTS[] = {
		{ TORTURE_OPEN, EINTR, true },   { TORTURE_OPEN, EMFILE, false }, { TORTURE_OPEN, EACCES, false },
		{ TORTURE_OPEN, ENOMEM, false }, { TORTURE_READ, EINTR, true },   { TORTURE_READ, TORTURE_SHORT, true },
		{ TORTURE_READ, EIO, false },    { TORTURE_READ, EAGAIN, false }, { TORTURE_READ, ENOBUFS, false },
	};

	for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++)
		assert_true(torture_calls(&FAULTS[i], read_file, NULL) >= (FAULTS[i].call == TORTURE_READ ? 7 : 1));
	assert_true(torture_allocations(read_file, NULL) >= 1);
}

/* ---- the log ---- */

static int64_t no_time(void *context)
{
	(void)context;
	return 0;
}

/*
 * What came out: whole lines in their order, some left out; the number of those. A line that was cut short is the last
 * piece before lines were given up, and counts as left out.
 */
static unsigned missing_lines(const char *log)
{
	unsigned next = 0;
	unsigned missing = 0;

	for (const char *found = strstr(log, "\"number\":"); found != NULL; found = strstr(found + 1, "\"number\":")) {
		unsigned number = (unsigned)strtoul(found + strlen("\"number\":"), NULL, 10);

		if (number < next)
			fail_msg("line %u comes behind line %u", number, next - 1);
		missing += number - next;
		next = number + 1;
	}
	return missing + (LINES - next);
}

/* Whether every line came out. Those that didn't must have been counted. */
static bool write_log(void *context)
{
	static char output[PIPE_BYTES];
	struct log_sink *sink;
	struct logger logger = { .name = "torture", .context_json = "" };
	struct error err;
	int pipes[2];
	ssize_t length;
	uint64_t dropped;
	unsigned missing;

	(void)context;
	assert_int_equal(pipe(pipes), 0);
	target = pipes[1];
	torture_arm();
	sink = log_sink_create(pipes[1], LOG_FORMAT_JSON, LOG_INFO, RING_BYTES, no_time, NULL, &err);
	if (sink == NULL) {
		torture_disarm();
		target = -1;
		close(pipes[0]);
		close(pipes[1]);
		return false;
	}
	logger.sink = sink;
	for (unsigned i = 0; i < LINES; i++)
		log_info(&logger, "A line of many", log_uint("number", i));
	for (int i = 0; i < 3; i++)
		(void)log_flush(sink);
	dropped = log_dropped_lines(sink);
	log_sink_destroy(sink, 100);
	torture_disarm();
	target = -1;
	close(pipes[1]);
	length = syscall(SYS_read, pipes[0], output, sizeof output - 1);
	close(pipes[0]);
	output[length > 0 ? length : 0] = '\0';
	missing = missing_lines(output);
	if (missing > dropped)
		fail_msg("%u lines are missing, %llu are counted", missing, (unsigned long long)dropped);
	return missing == 0;
}

static void lines_come_out_whole_and_in_order_or_are_counted(void **state)
{
	(void)state;
	static const struct torture_fault FAULTS[] = {
		{ TORTURE_WRITE, EINTR, true },         { TORTURE_WRITE, EAGAIN, true },
		{ TORTURE_WRITE, TORTURE_SHORT, true }, { TORTURE_WRITE, EPIPE, false },
		{ TORTURE_WRITE, EIO, false },          { TORTURE_WRITE, ENOSPC, false },
		{ TORTURE_POLL, EINTR, true },          { TORTURE_POLL, ENOMEM, true },
	};

	for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++)
		assert_true(torture_calls(&FAULTS[i], write_log, NULL) >= 1);
	assert_true(torture_allocations(write_log, NULL) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_whole_or_not_at_all),
		cmocka_unit_test(lines_come_out_whole_and_in_order_or_are_counted),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
