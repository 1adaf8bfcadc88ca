#include "agent/agent_clock.h"

struct agent_clock agent_clock_start(struct loop *loop)
{
	return (struct agent_clock){
		.loop = loop,
		.wall_at_start_ns = loop_wall_ns(loop),
		.monotonic_at_start_ns = loop_now_ns(loop),
	};
}

int64_t agent_clock_now(const struct agent_clock *clock)
{
	return clock->wall_at_start_ns + (int64_t)(loop_now_ns(clock->loop) - clock->monotonic_at_start_ns);
}
