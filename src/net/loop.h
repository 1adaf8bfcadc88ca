/*
 * The loop: time, timers, work for later, sockets, name lookup and randomness, for everything above (design section
 * 1.3).
 *
 * There are two: epoll (the real one, loop_epoll.h) and, for tests, a simulated one with virtual time and an in-memory
 * network. Timers, tasks and the turn are common to both; what differs stands in struct loop_operations.
 *
 * One thread. Callbacks run from loop_turn only, never from inside the call that asked for them. Whatever is cancelled
 * or closed calls back no more.
 */
#ifndef BALLAST_NET_LOOP_H
#define BALLAST_NET_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/rng.h"
#include "base/slice.h"
#include "net/address.h"

struct loop;
struct socket; /* one end of a byte stream, or a listener; made by a loop */
struct lookup; /* a name lookup under way */

/* ---- timers: embedded in their owner, zero-initialised ---- */

struct loop_timer {
	struct heap_node node; /* must be first */
	void (*callback)(void *context);
	void *context;
	struct loop_timer *next, *previous; /* among those that the heap had no memory for, see loop.c */
	bool waits_outside;
};

/*
 * (Re)starts the timer: callback runs once, delay_ns from now. Can't fail: when memory is short, the timer waits
 * outside the heap, on a list that is merely slower, so that no deadline is ever lost.
 */
void loop_timer_start(struct loop *loop, struct loop_timer *timer, uint64_t delay_ns, void (*callback)(void *context),
                      void *context);
void loop_timer_stop(struct loop *loop, struct loop_timer *timer); /* no-op if it isn't running */
bool loop_timer_running(const struct loop_timer *timer);

/* ---- tasks: run soon, in order, once ---- */

struct loop_task {
	struct loop_task *next, *previous; /* NULL when not queued */
	void (*callback)(void *context);
	void *context;
};

/* Queues the task for later in this turn or the next; queueing it again before it ran does nothing. */
void loop_run_soon(struct loop *loop, struct loop_task *task, void (*callback)(void *context), void *context);
void loop_task_cancel(struct loop *loop, struct loop_task *task);

/* ---- time and chance ---- */

uint64_t loop_now_ns(const struct loop *loop); /* monotonic; within a turn, as of the start of its current phase */
int64_t loop_wall_ns(const struct loop *loop); /* since 1970; may jump */
struct rng *loop_rng(struct loop *loop);       /* jitter; seeded from the system, or from the simulation's seed */
bool loop_random(struct loop *loop, void *data, size_t length); /* for keys and masks; false if the system can't */

/* ---- sockets: what streams are built on; see stream.h for everyday use ---- */

struct socket_handler {
	void (*on_readable)(void *context);
	void (*on_writable)(void *context);
};

enum socket_interest { SOCKET_READ = 1, SOCKET_WRITE = 2 };

enum socket_result { SOCKET_OK, SOCKET_AGAIN, SOCKET_END, SOCKET_FAILED };

/*
 * Starts a connect, from the address `local` (port 0: any) if it isn't NULL. on_writable tells that it is over:
 * socket_connect_result says how. NULL with *err if it can't even start.
 */
struct socket *loop_connect(struct loop *loop, const struct address *address, const struct address *local,
                            const struct socket_handler *handler, void *context, struct error *err);
/*
 * Listens; on_readable tells that socket_accept has something. Port 0 takes a free one, see socket_local_address. "::" stands
 * for all addresses, IPv4's too, and for those alone on a machine without IPv6.
 */
struct socket *loop_listen(struct loop *loop, const struct address *address, const struct socket_handler *handler,
                           void *context, struct error *err);

/* After on_writable: true if connected; else *err has the reason, and the socket is good for closing only. */
bool socket_connect_result(struct socket *socket, struct error *err);
/*
 * The next waiting connection, or NULL with SOCKET_AGAIN or SOCKET_FAILED (out of descriptors: err tells) in
 * *ret_result.
 */
struct socket *socket_accept(struct socket *listener, struct address *ret_peer, enum socket_result *ret_result,
                             struct error *err);
void socket_set_handler(struct socket *socket, const struct socket_handler *handler, void *context);
/*
 * What to be told of, of SOCKET_READ and SOCKET_WRITE; level-triggered. False with *err when the system has no room for
 * one more watch; then nothing will be told.
 */
bool socket_set_interest(struct socket *socket, unsigned interest, struct error *err);
/*
 * SOCKET_OK: some bytes were read or taken (at least one). SOCKET_END: the peer ended its side. SOCKET_FAILED: *err
 * tells.
 */
enum socket_result socket_read(struct socket *socket, void *data, size_t size, size_t *ret_length, struct error *err);
enum socket_result socket_write(struct socket *socket, const void *data, size_t length, size_t *ret_written,
                                struct error *err);
/* Tells the peer that nothing more will come. */
void socket_shutdown_write(struct socket *socket);
bool socket_local_address(const struct socket *socket, struct address *ret_address);
/* Closes at once, or with a reset if `abort`; allowed inside its own callback. The handle is gone. */
void socket_close(struct socket *socket, bool abort);

/*
 * Asks to be told, again and again, while a descriptor (standard error, a signal or child descriptor) is readable or
 * writable. The descriptor stays the caller's, who stops the watch before closing it. A plain file counts as always
 * ready. Real loop only.
 */
struct loop_watch;
struct loop_watch *loop_watch_descriptor(struct loop *loop, int descriptor, unsigned interest,
                                         void (*callback)(void *context), void *context, struct error *err);
void loop_watch_stop(struct loop_watch *watch); /* NULL is fine; allowed inside the callback */

/* ---- names ---- */

typedef void lookup_callback(void *context, const struct address *addresses, size_t count, const struct error *err);

/*
 * Resolves host (a name or a literal address) off the loop, with a deadline; lookups of equal names are merged. The
 * callback gets at least one address with the given port, or count 0 and an error; the handle is gone by then. NULL
 * with *err if it can't start: the name is empty or too long, or too many lookups wait (NET_LOOKUP_QUEUE).
 */
struct lookup *loop_lookup(struct loop *loop, const char *host, uint16_t port, uint64_t timeout_ns,
                           lookup_callback *callback, void *context, struct error *err);
void lookup_cancel(struct lookup *lookup);

/* ---- running ---- */

/*
 * Runs tasks, due timers and ready sockets once; waits for something to happen if nothing is due. False on a failure of
 * the loop itself.
 */
bool loop_turn(struct loop *loop, struct error *err);
/* Turns until loop_stop was called. May be run again. */
bool loop_run(struct loop *loop, struct error *err);
void loop_stop(struct loop *loop);
/* Turns so far: a health check compares two readings. */
uint64_t loop_turn_count(const struct loop *loop);
void loop_destroy(struct loop *loop); /* the user must have closed everything else before */

#endif
