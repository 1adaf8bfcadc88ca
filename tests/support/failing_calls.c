#include "tests/support/failing_calls.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_FAILURES = 100000 };

struct torture_state torture_state;

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

void torture_arm(void)
{
	if (torture_state.allocation > 0)
		memory_fail_at(torture_state.allocation);
}

void torture_disarm(void)
{
	if (torture_state.allocation > 0)
		torture_state.allocation_failed = memory_allocation_count() >= torture_state.allocation;
	torture_state.allocation = 0;
	memory_fail_at(0);
}

static void check_after(torture_scenario *scenario, void *context, size_t descriptors, unsigned long n)
{
	if (open_descriptors() != descriptors)
		fail_msg("failure %lu leaves descriptors open", n);
	if (!scenario(context))
		fail_msg("after failure %lu nothing works any more", n);
}

unsigned long torture_allocations(torture_scenario *scenario, void *context)
{
	size_t descriptors = open_descriptors();

	assert_true(scenario(context));
	descriptors = open_descriptors();
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
		check_after(scenario, context, descriptors, n);
	}
	fail_msg("there is no end of allocations");
	return 0;
}

unsigned long torture_calls(const struct torture_fault *fault, torture_scenario *scenario, void *context)
{
	size_t descriptors;

	assert_true(scenario(context));
	descriptors = open_descriptors();
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
		check_after(scenario, context, descriptors, n);
	}
	fail_msg("there is no end of calls");
	return 0;
}
