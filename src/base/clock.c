#include "base/clock.h"

#include <time.h>

/* Neither call can fail for these two clocks with a valid pointer. */
static struct timespec now(clockid_t clock)
{
	struct timespec time = { 0 };

	clock_gettime(clock, &time);
	return time;
}

uint64_t clock_monotonic_ns(void)
{
	struct timespec time = now(CLOCK_MONOTONIC);

	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

int64_t clock_wall_ns(void)
{
	struct timespec time = now(CLOCK_REALTIME);

	return (int64_t)time.tv_sec * NS_PER_S + time.tv_nsec;
}
