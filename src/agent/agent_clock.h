/*
 * The instants the agent works with: wall time at its start plus monotonic time since then, so that they never step
 * (agent/core/instant.h).
 */
#ifndef BALLAST_AGENT_AGENT_CLOCK_H
#define BALLAST_AGENT_AGENT_CLOCK_H

#include <stdint.h>

#include "net/loop.h"

struct agent_clock {
	struct loop *loop;
	int64_t wall_at_start_ns;
	uint64_t monotonic_at_start_ns;
};

struct agent_clock agent_clock_start(struct loop *loop);
int64_t agent_clock_now(const struct agent_clock *clock);

#endif
