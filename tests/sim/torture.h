/*
 * Torture: each of the first allocations, or socket calls, that one process makes in a run fails once, and a sample of
 * those behind them.
 *
 * The run is done twice without failure. The first time it is counted what the process, the victim, makes each time its
 * code runs. The second time, whenever its code is about to run, this program forks once for each allocation or call that
 * is about to come: in the child that one fails, and the child goes on to the end of the run, where everything must be as
 * it should be. So a point costs what comes behind it only, and a crash is one child's.
 *
 * An actor that can be the victim calls sim_torture_before and sim_torture_after around everything its process does, and
 * lets the allocation fail that it is told.
 */
#ifndef BALLAST_TESTS_SIM_TORTURE_H
#define BALLAST_TESTS_SIM_TORTURE_H

#include <stdbool.h>

#include "base/error.h"
#include "net/loop.h"

enum sim_torture_kind { SIM_TORTURE_ALLOCATIONS, SIM_TORTURE_CALLS };

struct sim_torture_options {
	enum sim_torture_kind kind;
	const char *victim;  /* name of the process */
	unsigned long first; /* point, from 1 */
	unsigned long each;  /* up to this one, one by one; then a sample */
	unsigned children;   /* at a time, at most */
};

struct sim_torture;

struct sim_torture *sim_torture_create(const struct sim_torture_options *options, struct error *err);
void sim_torture_destroy(struct sim_torture *torture);

/* ---- for actors; torture NULL and names other than the victim's are fine ---- */

/*
 * The process is about to do something on its loop (NULL: it has none yet). If an allocation of what it does is to fail,
 * *fail_allocation_in says which (1: the next); else it isn't touched. Calls are made to fail on the loop itself.
 */
void sim_torture_before(struct sim_torture *torture, const char *name, struct loop *loop,
                        unsigned long *fail_allocation_in);
/* It is done, and made that many allocations. loop: NULL if there is none any more. */
void sim_torture_after(struct sim_torture *torture, const char *name, struct loop *loop, unsigned long allocations);

/* ---- for whoever makes the runs: count, then fork, then ask for the result ---- */

/* Between the two runs. False, with *err set, if the victim made nothing that could fail. */
bool sim_torture_begin(struct sim_torture *torture, struct error *err);
/* Whether this is a child: it must leave alone what is its parent's, and end with the next one. */
bool sim_torture_is_child(const struct sim_torture *torture);

/* What became of a child's run. */
struct sim_torture_end {
	bool whole;     /* every invariant held */
	bool happened;  /* the failure */
	bool restarted; /* the process ended of it and was started anew */
};

void sim_torture_end_child(struct sim_torture *torture, struct sim_torture_end end) __attribute__((noreturn));

struct sim_torture_result {
	unsigned long points;    /* in a run */
	unsigned long tried;     /* failed one by one */
	unsigned long happened;  /* of these */
	unsigned long restarted; /* times the process ended and was started anew */
	unsigned long broken;    /* times an invariant broke or the program crashed: each was told on standard output */
};

/* Waits for the last children. */
struct sim_torture_result sim_torture_finish(struct sim_torture *torture);

#endif
