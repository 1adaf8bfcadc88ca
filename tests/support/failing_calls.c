#include "tests/support/failing_calls.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_FAILURES = 100000 };

struct torture_state torture_state;
static const char *torture_name = ""; /* of the case, for messages */

static size_t open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

bool torture_fails(enum torture_call call)
{
	if (!torture_strikes(call) || torture_state.fault.error == TORTURE_SHORT)
		return false;
	errno = torture_state.fault.error;
	return true;
}

size_t torture_shortened(enum torture_call call, size_t length)
{
	bool now = torture_state.fault.call == call && torture_state.fault.error == TORTURE_SHORT &&
	           torture_state.count == torture_state.at;

	return now && length > 1 ? 1 : length;
}

void torture_arm(void)
{
	if (torture_state.allocation == 0)
		return;
	memory_split_arenas(true);
	memory_fail_at(torture_state.allocation);
}

void torture_disarm(void)
{
	if (torture_state.allocation > 0)
		torture_state.allocation_failed = memory_allocation_count() >= torture_state.allocation;
	torture_state.allocation = 0;
	memory_fail_at(0);
	memory_split_arenas(false);
}

static void check_after(torture_scenario *scenario, void *context, size_t descriptors, unsigned long blocks,
                        unsigned long n)
{
	if (memory_block_count() != blocks)
		fail_msg("failure %lu leaves %ld blocks of memory", n, (long)(memory_block_count() - blocks));
	if (open_descriptors() != descriptors)
		fail_msg("failure %lu leaves descriptors open", n);
	if (!scenario(context))
		fail_msg("after failure %lu nothing works any more", n);
}

/* Of one run whose n-th allocation fails. Returns whether it came to that. */
static bool fail_allocation(torture_function *function, void *context, unsigned long n, struct torture_count *count)
{
	unsigned long blocks = memory_block_count();
	struct error err = { .code = ERROR_NONE };
	bool ok;
	bool failed;

	memory_split_arenas(true);
	memory_fail_at(n);
	ok = function(context, &err);
	failed = n != 0 && memory_allocation_count() >= n;
	memory_fail_at(0);
	memory_split_arenas(false);
	if (memory_block_count() != blocks)
		fail_msg("%s: failure %lu leaves %ld blocks of memory", torture_name, n,
		         (long)(memory_block_count() - blocks));
	if (!failed && !ok)
		fail_msg("%s: it fails without a failed allocation: %s", torture_name, err.text);
	if (!ok && (err.code != ERROR_NO_MEMORY || err.text[0] == '\0'))
		fail_msg("%s: failure %lu is reported as %d: \"%s\"", torture_name, n, err.code, err.text);
	count->points += failed ? 1 : 0;
	count->errors += ok ? 0 : 1;
	return failed;
}

struct torture_count torture_each_allocation(torture_function *function, void *context)
{
	struct torture_count count = { 0 };
	unsigned long n = 1;
	size_t descriptors;

	(void)fail_allocation(function, context, 0, &count);
	descriptors = open_descriptors();
	while (fail_allocation(function, context, n, &count))
		assert_true(++n < MOST_FAILURES);
	if (open_descriptors() != descriptors)
		fail_msg("descriptors are left open");
	return count;
}

unsigned long torture_each_case(const struct torture_case *cases, size_t count, void *context)
{
	unsigned long points = 0;

	for (size_t i = 0; i < count; i++) {
		struct torture_count one;

		torture_name = cases[i].name;
		one = torture_each_allocation(cases[i].function, context);
		print_message("%s: %lu points, %lu errors\n", cases[i].name, one.points, one.errors);
		if (one.points < cases[i].least)
			fail_msg("%s has %lu points only", cases[i].name, one.points);
		points += one.points;
	}
	print_message("%lu failing allocations\n", points);
	return points;
}

enum { PATTERN = 0xa5 };

void torture_mark(void *output, size_t size)
{
	memset(output, PATTERN, size);
}

bool torture_untouched(const void *output, size_t size)
{
	const unsigned char *bytes = output;

	for (size_t i = 0; i < size; i++)
		if (bytes[i] != PATTERN)
			return false;
	return true;
}

unsigned long torture_allocations(torture_scenario *scenario, void *context)
{
	size_t descriptors;
	unsigned long blocks;

	assert_true(scenario(context));
	descriptors = open_descriptors();
	blocks = memory_block_count();
	for (unsigned long n = 1; n < MOST_FAILURES; n++) {
		bool ok;
		bool failed;

		torture_state = (struct torture_state){ .allocation = n };
		ok = scenario(context);
		failed = torture_state.allocation_failed;
		if (torture_state.allocation != 0)
			fail_msg("the scenario doesn't arm and disarm");
		if (!failed) {
			assert_true(ok);
			return n - 1;
		}
		check_after(scenario, context, descriptors, blocks, n);
	}
	fail_msg("there is no end of allocations");
	return 0;
}

unsigned long torture_calls(const struct torture_fault *fault, torture_scenario *scenario, void *context)
{
	size_t descriptors;
	unsigned long blocks;

	assert_true(scenario(context));
	descriptors = open_descriptors();
	blocks = memory_block_count();
	for (unsigned long n = 1; n < MOST_FAILURES; n++) {
		bool ok;
		bool failed;

		torture_state = (struct torture_state){ .fault = *fault, .at = n };
		ok = scenario(context);
		failed = torture_state.count >= n;
		torture_state = (struct torture_state){ .at = 0 };
		if (!ok && (fault->harmless || !failed))
			fail_msg("call %d, the %lu. with error %d (%s): it should have gone well", fault->call, n,
			         fault->error, fault->error > 0 ? strerror(fault->error) : "short");
		if (!failed)
			return n - 1;
		check_after(scenario, context, descriptors, blocks, n);
	}
	fail_msg("there is no end of calls");
	return 0;
}
