/*
 * The simulated loop: virtual time and an in-memory network, so that a day of a whole cluster passes in seconds and
 * every run can be had again from its seed (design section 1.3). For tests only; nothing in the product makes one.
 *
 * A world has one clock, one network and one source of chance. In it live loops, one for each simulated process, each
 * with an address of its own; what runs on a loop is the unchanged product. Time passes only between turns: the world
 * looks for what happens next (bytes that arrive, a timer that is due) and makes it that time.
 *
 * The network behaves as TCP over a bad network does: what is sent arrives in order, after a delay, cut and merged in any
 * way, or not at all; peers are refused, reset, cut off in the middle, or silent. A silent peer is found as a real kernel
 * with the options of loop_epoll_socket.c finds it: 20 to 30 s later.
 */
#ifndef BALLAST_NET_LOOP_SIM_H
#define BALLAST_NET_LOOP_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "net/address.h"
#include "net/loop.h"

struct sim_world;

/* ---- the world ---- */

/* Wall time begins at wall_start_ns since 1970. */
struct sim_world *sim_world_create(uint64_t seed, int64_t wall_start_ns, struct error *err);
/* Every loop must have been destroyed before. NULL is fine. */
void sim_world_destroy(struct sim_world *world);

uint64_t sim_world_now_ns(const struct sim_world *world); /* since the beginning */
/* For decisions of whoever drives the world: they are part of what the seed fixes. */
struct rng *sim_world_rng(struct sim_world *world);

/*
 * Does the next thing that happens: a turn of one loop, or something in the network alone. False when nothing happens
 * up to until_ns, which it is then; or, with *err set, when a loop failed. err->code is ERROR_NONE otherwise.
 */
bool sim_world_step(struct sim_world *world, uint64_t until_ns, struct error *err);

/* What a name is to be resolved to; other names don't exist. Copied. False without memory. */
bool sim_world_add_name(struct sim_world *world, const char *name, const struct address *address);

/* ---- what can go wrong ---- */

/* Chances are per million. Zero everywhere is a perfect network without delay. */
struct sim_faults {
	uint64_t delay_low_ns, delay_high_ns; /* of a segment, one way */
	unsigned lost;    /* segments: they come late, as when sent again after 200 ms, 600 ms … */
	unsigned stalled; /* segments: later by up to stall_ns */
	uint64_t stall_ns;
	unsigned split;           /* segments that arrive in pieces */
	unsigned single_bytes;    /* reads that get one byte */
	unsigned unmerged;        /* reads that stop where a segment ends */
	unsigned short_writes;    /* writes that take a part only */
	unsigned reset;           /* segments in whose place both sides find the connection reset */
	unsigned silent;          /* segments after which the connection carries nothing more, and nobody is told */
	unsigned refused_connect; /* connects */
	unsigned failed_accept;   /* accepts: out of descriptors */
};

void sim_world_set_faults(struct sim_world *world, const struct sim_faults *faults);

/* How often each kind of fault happened. */
enum sim_fault {
	SIM_FAULT_LOST,
	SIM_FAULT_STALLED,
	SIM_FAULT_SPLIT,
	SIM_FAULT_SINGLE_BYTE,
	SIM_FAULT_UNMERGED,
	SIM_FAULT_SHORT_WRITE,
	SIM_FAULT_RESET,
	SIM_FAULT_SILENT,
	SIM_FAULT_REFUSED_CONNECT,
	SIM_FAULT_FAILED_ACCEPT,
	SIM_FAULT_CUT_ANSWER,
	SIM_FAULT_PARTITION,
	SIM_FAULT_FREEZE,
	SIM_FAULT_CRASH,
	SIM_FAULT_CLOCK_STEP,
	SIM_FAULT_FAILED_CALL,
	SIM_FAULTS,
};

uint64_t sim_world_fault_count(const struct sim_world *world, enum sim_fault fault);
const char *sim_fault_name(enum sim_fault fault);

/* ---- loops, one for each process ---- */

/* The name (copied, cut to 23 bytes) is for the trace. The address is where its connections come from. */
struct loop *loop_sim_create(struct sim_world *world, const char *name, const struct address *address,
                             struct error *err);

/* How a process ends when nobody asked it to. */
enum sim_crash {
	SIM_CRASH_END,    /* its connections end in good order, as those of a killed process */
	SIM_CRASH_RESET,  /* they are reset: it had not read everything */
	SIM_CRASH_SILENT, /* the machine is gone: nobody is told */
};

/*
 * From now on nothing that the loop's owner does reaches anybody, and nobody reaches it: the owner can be destroyed at
 * leisure.
 */
void loop_sim_crash(struct loop *loop, enum sim_crash how);
/* The loop doesn't turn until then, as a stopped process; its peers' kernels don't notice. */
void loop_sim_freeze(struct loop *loop, uint64_t until_ns);
/* Wall time jumps; the monotonic clock doesn't. */
void loop_sim_step_clock(struct loop *loop, int64_t by_ns);
/* Nothing passes between the two (b NULL: between a and anybody) until then. */
void loop_sim_partition(struct loop *a, struct loop *b, uint64_t until_ns);
/* Partitions and freezes end now, what they and stalls held up goes on, and what was to be cut later isn't. */
void sim_world_heal(struct sim_world *world);
/*
 * One of the loop's connections, by chance, ends: after after_bytes more bytes towards the loop (so an answer is lost or
 * cut in the middle), and silently if asked. False if it has none.
 */
bool loop_sim_cut_connection(struct loop *loop, uint64_t after_bytes, bool silent);
/* The count-th socket call from now fails once, as such calls do; 0: none. */
void loop_sim_fail_call(struct loop *loop, unsigned long count);
unsigned long loop_sim_call_count(const struct loop *loop); /* since the last loop_sim_fail_call */

/* loop_stop was called: the process wants to end. It gets no more turns. */
bool loop_sim_stopped(const struct loop *loop);
size_t loop_sim_socket_count(const struct loop *loop);
size_t loop_sim_timer_count(const struct loop *loop);
uint64_t loop_sim_bytes_sent(const struct loop *loop);
/* What loops still had when they were destroyed, and should not have had any more. */
size_t sim_world_leaked_sockets(const struct sim_world *world);
size_t sim_world_leaked_timers(const struct sim_world *world);

/*
 * Called before and after each turn of the loop, so that what happens in it can be counted or made to fail. NULL: nobody.
 */
void loop_sim_set_watcher(struct loop *loop, void (*watcher)(void *context, bool begins), void *context);

/* ---- the trace: what happened, in order ---- */

enum { SIM_TRACE_TEXT_BYTES = 160, SIM_TRACE_KEPT = 256 };

/* Depends on everything that happened so far, down to the bytes sent. */
uint64_t sim_world_hash(const struct sim_world *world);
uint64_t sim_world_event_count(const struct sim_world *world);
/* Adds a line to the trace. */
void sim_world_note(struct sim_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The lines kept, oldest first; each begins with its time. */
void sim_world_last_events(const struct sim_world *world, void (*line)(void *context, const char *text), void *context);
/* Told each line as it is added. NULL: nobody. */
void sim_world_follow(struct sim_world *world, void (*line)(void *context, const char *text), void *context);

#endif
