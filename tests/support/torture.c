#include "tests/support/torture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"

enum { POINTS_MAX = 5000 };

struct address torture_server_address(uint16_t port)
{
	return (struct address){ .bytes = { 10, 0, 0, 2 }, .port = port };
}

void torture_enter(struct torture *torture, struct loop *loop)
{
	memory_fail_at(loop == torture->victim_loop ? torture->fail_in : 0);
	memory_split_arenas(loop == torture->victim_loop);
}

void torture_leave(struct torture *torture, struct loop *loop)
{
	unsigned long used = memory_allocation_count();

	memory_fail_at(0);
	memory_split_arenas(false);
	if (loop != torture->victim_loop)
		return;
	torture->allocations += used;
	if (torture->fail_in == 0)
		return;
	torture->failed = used >= torture->fail_in;
	torture->fail_in = torture->failed ? 0 : torture->fail_in - used;
}

static void watch_client(void *context, bool begins)
{
	struct torture *torture = context;

	(begins ? torture_enter : torture_leave)(torture, torture->client);
}

static void watch_server(void *context, bool begins)
{
	struct torture *torture = context;

	(begins ? torture_enter : torture_leave)(torture, torture->server);
}

void torture_pass(struct torture *torture, uint64_t ms)
{
	uint64_t until_ns = sim_world_now_ns(torture->world) + ms * NS_PER_MS;
	struct error err;

	while (sim_world_step(torture->world, until_ns, &err))
		;
	assert_int_equal(err.code, ERROR_NONE);
}

/* Returns whether the point was reached. */
static bool play(enum torture_kind kind, enum torture_victim victim, unsigned long point, torture_scenario *scenario,
                 void *context)
{
	const struct sim_faults faults = { .delay_low_ns = NS_PER_MS, .delay_high_ns = 2 * NS_PER_MS, .split = 200000 };
	struct address client = { .bytes = { 10, 0, 0, 1 } }, server = torture_server_address(0);
	unsigned long blocks = memory_block_count();
	struct torture torture = { .fail_in = kind == TORTURE_ALLOCATIONS ? point : 0 };
	struct error err;
	bool reached;

	torture.world = sim_world_create(1, INT64_C(1700000000) * NS_PER_S, &err);
	assert_non_null(torture.world);
	sim_world_set_faults(torture.world, &faults);
	torture.client = loop_sim_create(torture.world, "client", &client, &err);
	torture.server = loop_sim_create(torture.world, "server", &server, &err);
	assert_true(torture.client != NULL && torture.server != NULL);
	torture.victim_loop = victim == TORTURE_CLIENT ? torture.client : torture.server;
	loop_sim_set_watcher(torture.client, watch_client, &torture);
	loop_sim_set_watcher(torture.server, watch_server, &torture);
	if (kind == TORTURE_CALLS)
		loop_sim_fail_call(torture.victim_loop, point);
	scenario(&torture, context);
	reached = kind == TORTURE_CALLS ? loop_sim_call_count(torture.victim_loop) >= point
	                                : torture.allocations >= point;
	loop_destroy(torture.client);
	loop_destroy(torture.server);
	if (memory_block_count() != blocks || sim_world_leaked_sockets(torture.world) != 0 ||
	    sim_world_leaked_timers(torture.world) != 0)
		fail_msg("failure of %s %lu: %ld blocks, %zu sockets, %zu timers are left",
		         kind == TORTURE_CALLS ? "call" : "allocation", point, (long)(memory_block_count() - blocks),
		         sim_world_leaked_sockets(torture.world), sim_world_leaked_timers(torture.world));
	sim_world_destroy(torture.world);
	return point == 0 || reached;
}

unsigned long torture_each(enum torture_kind kind, enum torture_victim victim, torture_scenario *scenario,
                           void *context)
{
	unsigned long point = 0;

	while (play(kind, victim, point, scenario, context)) {
		point++;
		assert_true(point < POINTS_MAX);
	}
	return point - 1;
}
