/*
 * Replaces the machine's clocks in a test program by ones that can be moved on, so that waits of seconds and minutes
 * take no time. To be included by one file of a program.
 */
#ifndef BALLAST_TESTS_UNIT_NET_TEST_CLOCK_H
#define BALLAST_TESTS_UNIT_NET_TEST_CLOCK_H

#include <time.h>

#include "base/clock.h"

static uint64_t skipped_ns;

uint64_t clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec + skipped_ns;
}

int64_t clock_wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec + (int64_t)skipped_ns;
}

static inline void skip_time_ms(uint64_t ms)
{
	skipped_ns += ms * NS_PER_MS;
}

#endif
