/*
 * A simulated process of the product: an agent or an extender, unchanged, on a loop of its own. Here is what any of them
 * meets: it crashes and is started again, is told to end, freezes, loses its network, runs out of memory, and has its
 * clock set. What it allocates while its code runs is counted as its own, and one that ends must leave nothing behind.
 *
 * An actor has a struct sim_process inside, and says with its handler what is special about the program.
 */
#ifndef BALLAST_TESTS_SIM_SIM_PROCESS_H
#define BALLAST_TESTS_SIM_SIM_PROCESS_H

#include "base/log.h"
#include "simulation.h"

/* As struct sim_actor's: the first of an actor's misfortunes. Being told to end is left to the handler. */
enum {
	SIM_PROCESS_MISFORTUNES = 11,
	SIM_PROCESS_LATE_MS = 1500, /* what turns may be late */
};
#define SIM_PROCESS_MISFORTUNE_NAMES                                                                   \
	"crash", "freeze", "partition", "partition", "step-clock", "told-to-end", "cut", "cut", "cut", \
		"fail-allocation", "fail-call"

enum sim_process_end {
	SIM_PROCESS_CRASHED, /* killed */
	SIM_PROCESS_FATAL,   /* a failure that it can't go on with */
	SIM_PROCESS_TOLD,    /* as it was told */
};

/* context: the actor. */
struct sim_process_handler {
	/* It has its loop, and nothing has run yet: makes the actor ready for a new life. False: it can't start. */
	bool (*prepare)(void *context, struct error *err);
	/* The program begins. If that fails, it stops its loop. */
	void (*start)(void *context);
	/* Whether it was a fatal failure that stopped the loop. */
	bool (*is_fatal)(const void *context);
	/* It has ended; what it had is still there. */
	void (*on_end)(void *context, enum sim_process_end how);
	/* Frees what the program had. */
	void (*dismantle)(void *context);
	/* Somebody wants it to end. */
	void (*on_told_to_end)(void *context, struct rng *rng);
	/* Whom a partition cuts it off from; NULL: from all. */
	struct loop *(*pick_peer)(void *context, struct rng *rng);
	/* All of these may be NULL. An allocation of its has failed, or a call; a turn is over; its wall clock was set. */
	void (*on_starved)(void *context);
	void (*on_failed_call)(void *context);
	void (*after_turn)(void *context);
	void (*on_clock_set)(void *context);
};

/* Complete when the simulation has ended. */
struct sim_process_counts {
	unsigned starts, crashes, fatal_exits, orderly_ends;
	unsigned failed_allocations;
	uint64_t most_turns_per_second;
	/* The most that was seen when all was quiet. */
	unsigned long quiet_blocks;
	size_t quiet_sockets, quiet_timers;
};

struct sim_process_options {
	const char *name; /* must outlive it */
	struct address address;
	enum log_level log_level;
	const struct sim_process_handler *handler;
	void *context;
	struct sim_process_counts *counts;
};

struct sim_process {
	struct simulation *simulation;
	struct sim_process_options options;
	int log_descriptor;

	bool runs;   /* it is there; if not, from start_again_ns it will be */
	bool ending; /* told to end in good order, since … */
	uint64_t told_to_end_ns;
	uint64_t started_ns;
	uint64_t start_again_ns;
	unsigned patience; /* of those who kill processes */
	int64_t clock_error_ns;
	uint64_t frozen_until_ns;
	struct loop *loop;
	struct log_sink *log_sink; /* NULL: no log is written */

	/* What is counted as its own: while its code runs. */
	unsigned long blocks_before; /* of this program at large, when its code began to run */
	long blocks;
	uint64_t failed_calls_before;     /* in the world, likewise */
	unsigned long fail_allocation_in; /* 0: none is to fail */
	uint64_t turns_this_second;
	unsigned quiet_checks;
	unsigned long first_quiet_blocks;
};

/* False if the log can't be written. Otherwise to be destroyed. */
bool sim_process_init(struct sim_process *process, struct simulation *simulation,
                      const struct sim_process_options *options, struct error *err);
void sim_process_destroy(struct sim_process *process);

/* Around everything that the program does but in turns of its loop. */
void sim_process_enter(struct sim_process *process);
void sim_process_leave(struct sim_process *process);
/* It is told to end from now on: whoever calls this tells the program. */
void sim_process_note_told(struct sim_process *process);

/* After each step: ends what has stopped, and starts what is to start. False if there is no process now. */
bool sim_process_go_on(struct sim_process *process);
/* Of struct sim_actor; misfortune: below SIM_PROCESS_MISFORTUNES. The process must run. */
void sim_process_strike(struct sim_process *process, unsigned misfortune, struct rng *rng);
void sim_process_calm(struct sim_process *process);

/* Once a second: how often it turned. */
void sim_process_check_turns(struct sim_process *process, uint64_t most);

/* Whether it ends within that time once it was told to. */
void sim_process_check_end(const struct sim_process *process, uint64_t most_ns);

/* What a process may have when all is quiet. */
struct sim_process_limits {
	size_t sockets, timers;
	unsigned long more_blocks; /* than when it was quiet first */
};

/* At the end of a calm. The process must run. */
void sim_process_check_quiet(struct sim_process *process, const struct sim_process_limits *limits);

#endif
