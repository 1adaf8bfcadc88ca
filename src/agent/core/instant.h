/*
 * Time as the scaling core sees it (spec agent-core 0).
 *
 * An instant is nanoseconds since 1970 as int64_t; RFC3339_ZERO (the smallest int64_t) is the zero instant, earlier
 * than every other by more than a duration can say. A duration is nanoseconds as int64_t. Results that don't fit
 * saturate. The agent passes wall time at process start plus monotonic time since then, so instants never step.
 */
#ifndef BALLAST_AGENT_CORE_INSTANT_H
#define BALLAST_AGENT_CORE_INSTANT_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/rfc3339.h"

struct optional_instant {
	bool present;
	int64_t ns;
};

struct optional_instant instant_some(int64_t instant_ns);

/* later - earlier. */
int64_t instant_difference(int64_t later_ns, int64_t earlier_ns);

/* start + length - now: how long until a period that began at start is over; 0 or less when it is. */
int64_t instant_remaining(int64_t start_ns, int64_t length_ns, int64_t now_ns);

#endif
