/*
 * What the fuzz targets that go through sockets share: one loop for all inputs, and turning it without long waits.
 */
#ifndef BALLAST_TESTS_FUZZ_HTTP_LOOPBACK_H
#define BALLAST_TESTS_FUZZ_HTTP_LOOPBACK_H

#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/loop_epoll.h"
#include "net/stream.h"

/* A few turns for what may happen, many for what must. */
enum { TURNS = 5, TURNS_AT_MOST = 3000, TURN_NS = 200 * NS_PER_US };

static const struct address LOOPBACK = { .bytes = { 127, 0, 0, 1 } };

static inline void require(bool condition)
{
	if (!condition)
		abort();
}

static inline struct loop *the_loop(void)
{
	static struct loop *loop;
	struct error err;

	if (loop == NULL)
		loop = loop_epoll_create(&err);
	require(loop != NULL);
	return loop;
}

static inline void wake(void *context)
{
	(void)context;
}

/* One turn that doesn't wait for long. */
static inline void turn_once(struct loop *loop)
{
	struct loop_timer timer = { 0 };
	struct error err;

	loop_timer_start(loop, &timer, TURN_NS, wake, NULL);
	require(loop_turn(loop, &err));
	loop_timer_stop(loop, &timer);
}

#endif
