/*
 * Torture: a scenario is run again and again, and each time the n-th allocation, or the n-th system call of a kind, fails
 * once, for every n there is.
 *
 * System calls are caught by defining their names in the test program (TORTURE_CALLS below, in one source file of it),
 * which takes precedence over the C library's. They work as always until one is told to fail.
 */
#ifndef BALLAST_TESTS_SUPPORT_FAILING_CALLS_H
#define BALLAST_TESTS_SUPPORT_FAILING_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"

/* Does something from beginning to end; returns whether it went well. It must end, and give back what it took. */
typedef bool torture_scenario(void *context);

enum torture_call {
	TORTURE_NONE,
	TORTURE_READ,
	TORTURE_WRITE,
	TORTURE_OPEN,
	TORTURE_POLL,
	TORTURE_RECV,
	TORTURE_SEND,
	TORTURE_CONNECT,
	TORTURE_ACCEPT,
	TORTURE_SOCKET,
	TORTURE_BIND,
	TORTURE_LISTEN,
	TORTURE_SETSOCKOPT,
	TORTURE_EPOLL_CREATE,
	TORTURE_EPOLL_CTL,
	TORTURE_EPOLL_WAIT,
};

/* An error of TORTURE_SHORT lets one byte pass instead. */
enum { TORTURE_SHORT = -1 };

struct torture_fault {
	enum torture_call call;
	int error;     /* errno, or TORTURE_SHORT */
	bool harmless; /* the scenario must go well all the same */
};

/* The fault at work; `at` counts down to it. */
struct torture_state {
	struct torture_fault fault;
	unsigned long at;
	unsigned long count;      /* calls of that kind so far */
	unsigned long allocation; /* the one to fail; 0: none */
	bool allocation_failed;
};

extern struct torture_state torture_state;

/* Whether this call is the one to fail. */
static inline bool torture_strikes(enum torture_call call)
{
	return torture_state.fault.call == call && ++torture_state.count == torture_state.at;
}

/* For the definition of a call: whether it is to fail, with errno set; and how much of it is to pass at most. */
bool torture_fails(enum torture_call call);
size_t torture_shortened(enum torture_call call, size_t length);

/*
 * Called by a scenario around the part in which allocations may fail; what it needs before and after, its fixtures, may
 * not.
 */
void torture_arm(void);
void torture_disarm(void);

/*
 * Does something from beginning to end, gives back all that it took, and says whether it went well; if not, why. What it
 * was to fill in must be as it was then: torture_untouched. It may go well without some of the memory it wanted.
 */
typedef bool torture_function(void *context, struct error *err);

struct torture_count {
	unsigned long points; /* allocations that failed, one by one */
	unsigned long errors; /* after how many of them the function did */
};

/*
 * Fails the n-th allocation for every n, each of an arena's own allocations among them. After each nothing may be left, and
 * an error must be ERROR_NO_MEMORY and say something. Without a failure the function must go well.
 */
struct torture_count torture_each_allocation(torture_function *function, void *context);

/* A table of functions to be tortured, each with the least number of points that it has. */
struct torture_case {
	const char *name;
	torture_function *function;
	unsigned long least;
};

/* All of them; prints how many points there were, and returns that. */
unsigned long torture_each_case(const struct torture_case *cases, size_t count, void *context);

/* An output with a pattern in it, and whether the pattern is still there. */
void torture_mark(void *output, size_t size);
bool torture_untouched(const void *output, size_t size);

/*
 * Fails the n-th allocation for every n; returns how many there were. After each failure a run without must go well.
 * Both fail the test themselves.
 */
unsigned long torture_allocations(torture_scenario *scenario, void *context);
/* The same with one kind of system call; the scenario must go well when the fault is harmless. */
unsigned long torture_calls(const struct torture_fault *fault, torture_scenario *scenario, void *context);

#endif
