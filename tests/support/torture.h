/*
 * Torture: a scenario between two simulated processes is played again and again, and each time another allocation, or
 * another socket call, of one of them fails: the first, the second, and so on, until there are no more.
 *
 * An arena's own allocations are among them (base/memory.h). After each play nothing may be left: no memory, no socket, no timer. What else must hold is the scenario's business.
 */
#ifndef BALLAST_TESTS_SUPPORT_TORTURE_H
#define BALLAST_TESTS_SUPPORT_TORTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/address.h"
#include "net/loop_sim.h"

enum torture_kind { TORTURE_ALLOCATIONS, TORTURE_CALLS };
enum torture_victim { TORTURE_CLIENT, TORTURE_SERVER };

struct torture {
	struct sim_world *world;
	struct loop *client, *server;
	struct loop *victim_loop;
	unsigned long allocations; /* of the victim, so far */
	unsigned long fail_in;     /* 0: the failure is over, or there is none */
	bool failed;               /* something has */
};

/* Plays once, from start to end: what it makes on the loops it must unmake. */
typedef void torture_scenario(struct torture *torture, void *context);

/* The first play is without any failure. Returns how many there were; fails the test when something is left. */
unsigned long torture_each(enum torture_kind kind, enum torture_victim victim, torture_scenario *scenario,
                           void *context);

/* Around what the scenario itself calls for one of the processes, so that it counts as done by it. */
void torture_enter(struct torture *torture, struct loop *loop);
void torture_leave(struct torture *torture, struct loop *loop);
/* Lets time pass. */
void torture_pass(struct torture *torture, uint64_t ms);

struct address torture_server_address(uint16_t port); /* "10.0.0.2" */

#endif
