/*
 * What a loop is made of, for the two implementations, and what streams need beyond loop.h.
 */
#ifndef BALLAST_NET_LOOP_INTERNAL_H
#define BALLAST_NET_LOOP_INTERNAL_H

#include "net/loop.h"

struct loop_operations {
	uint64_t (*monotonic_ns)(const struct loop *loop);
	int64_t (*wall_ns)(const struct loop *loop);
	bool (*random)(struct loop *loop, void *data, size_t length);
	/*
	 * Waits until something is ready or `until_ns` has come (UINT64_MAX: for ever), and runs the handlers of what
	 * is ready.
	 */
	bool (*wait)(struct loop *loop, uint64_t until_ns, struct error *err);
	struct socket *(*connect)(struct loop *loop, const struct address *address, const struct address *local,
	                          const struct socket_handler *handler, void *context, struct error *err);
	struct socket *(*listen)(struct loop *loop, const struct address *address, const struct socket_handler *handler,
	                         void *context, struct error *err);
	/* NULL where there are no descriptors. */
	struct loop_watch *(*watch)(struct loop *loop, int descriptor, unsigned interest,
	                            void (*callback)(void *context), void *context, struct error *err);
	/* Names only: literal addresses are answered by the common part. */
	struct lookup *(*lookup)(struct loop *loop, const char *host, uint16_t port, uint64_t timeout_ns,
	                         lookup_callback *callback, void *context, struct error *err);
	/* First step of the end: gives up what may still need the common part (timers, garbage). May be NULL. */
	void (*close)(struct loop *loop);
	/* Last step: frees what the implementation has, and the loop itself. */
	void (*destroy)(struct loop *loop);
};

struct socket_operations {
	bool (*connect_result)(struct socket *socket, struct error *err);
	struct socket *(*accept)(struct socket *listener, struct address *ret_peer, enum socket_result *ret_result,
	                         struct error *err);
	bool (*set_interest)(struct socket *socket, unsigned interest, struct error *err);
	enum socket_result (*read)(struct socket *socket, void *data, size_t size, size_t *ret_length,
	                           struct error *err);
	enum socket_result (*write)(struct socket *socket, const void *data, size_t length, size_t *ret_written,
	                            struct error *err);
	void (*shutdown_write)(struct socket *socket);
	bool (*local_address)(const struct socket *socket, struct address *ret_address);
	void (*close)(struct socket *socket, bool abort);
};

/* All three are first members of what an implementation allocates. */
struct socket {
	const struct socket_operations *operations;
	struct loop *loop;
	struct socket_handler handler;
	void *context;
};

struct lookup {
	void (*cancel)(struct lookup *lookup);
};

struct loop_watch {
	void (*stop)(struct loop_watch *watch);
};

/* Embedded in what may be closed while one of its own callbacks is still on the stack. */
struct loop_garbage {
	struct loop_garbage *next;
	void (*release)(void *owner);
	void *owner;
};

/* Embedded in what lives on after its user let go of it, such as a stream that still sends. */
struct loop_leftover {
	struct loop_leftover *next, *previous;
	void (*end)(void *owner);
	void *owner;
};

struct loop {
	const struct loop_operations *operations;
	struct heap timers;
	struct loop_timer *timers_outside; /* those the heap had no memory for */
	struct loop_task *first_task, *last_task;
	struct loop_task *mark; /* while tasks run: the last one of this turn */
	struct loop_garbage *garbage;
	struct loop_leftover *leftovers;
	struct rng rng;
	uint64_t now_ns; /* while in_turn */
	bool in_turn;
	uint64_t turns;
	bool stopping;
};

/* Prepares the common part; the implementation then seeds loop->rng. */
void loop_init(struct loop *loop, const struct loop_operations *operations);

/* When the loop has something to do by itself: 0 for at once (a task waits, or it is to stop), UINT64_MAX for never. */
uint64_t loop_due_ns(const struct loop *loop);

/*
 * Calls release(owner) when no callback is on the stack: at the end of the turn, or when the loop is destroyed. Can't
 * fail.
 */
void loop_release_later(struct loop *loop, struct loop_garbage *garbage, void (*release)(void *owner), void *owner);

/* Destroying the loop calls end(owner), which must remove the leftover. */
void loop_leftover_add(struct loop *loop, struct loop_leftover *leftover, void (*end)(void *owner), void *owner);
void loop_leftover_remove(struct loop *loop, struct loop_leftover *leftover); /* no-op if it isn't in */

#endif
