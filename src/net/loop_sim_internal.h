/*
 * What the files of the simulated loop share: loop_sim.c has the world and its loops, loop_sim_trace.c what tells of
 * a run, loop_sim_faults.c what is done to loops, loop_sim_socket.c what a process sees of the network,
 * loop_sim_network.c the network itself.
 *
 * What stands for the kernel's memory is taken from malloc directly, past base/memory.h: it is neither to be counted as
 * the product's nor to fail in its place.
 */
#ifndef BALLAST_NET_LOOP_SIM_INTERNAL_H
#define BALLAST_NET_LOOP_SIM_INTERNAL_H

#include "net/loop_internal.h"
#include "net/loop_sim.h"

enum {
	SIM_NAME_BYTES = 24,
	SIM_PARTITIONS_MAX = 32,
	SIM_WINDOW_BYTES = 256 * 1024, /* that may be under way, or wait to be read, in one direction */
	SIM_BACKLOG = 128,
	SIM_MILLION = 1000000,
};

struct sim_loop;
struct sim_socket;
struct sim_connection;

/* First member of what is to happen at some time. */
struct sim_event {
	uint64_t time_ns;
	uint64_t order;
	void (*run)(struct sim_event *event);
};

enum sim_segment_kind {
	SIM_SEGMENT_BYTES,
	SIM_SEGMENT_END, /* the sender ended its side */
	SIM_SEGMENT_RESET,
};

struct sim_segment {
	struct sim_event event; /* must be first */
	struct sim_segment *next;
	struct sim_connection *connection;
	unsigned to; /* index of the end it goes to */
	bool arrived;
	enum sim_segment_kind kind;
	size_t length, read;
	char data[];
};

/* What one side of a connection has, and what is on its way there. */
struct sim_end {
	struct sim_socket *socket; /* NULL: not accepted yet, or closed */
	struct sim_loop *loop;     /* NULL once it is gone */
	struct address address;
	struct sim_segment *first, *last;
	size_t unread_bytes; /* sent by the other side */
	uint64_t last_arrival_ns;
	uint64_t cut_after_bytes; /* with will_cut */
	bool will_cut, cut_silently;
	bool connected;
	bool closed;
	bool end_sent;   /* by this side */
	int failure;     /* errno: the connection is broken, for this side */
	bool watch_runs; /* the event below is scheduled */
	bool severed;    /* its process has crashed */
};

/* Checks at some time whether an end's peer can still be reached. */
struct sim_watch {
	struct sim_event event; /* must be first */
	struct sim_connection *connection;
	unsigned end;
};

/* A step of the handshake. */
struct sim_knock {
	struct sim_event event; /* must be first */
	struct sim_connection *connection;
	unsigned attempt;
	enum { SIM_KNOCK_ARRIVES, SIM_KNOCK_ANSWERED, SIM_KNOCK_REFUSED } step;
};

struct sim_connection {
	struct sim_world *world;
	struct sim_connection *next, *previous;
	struct sim_connection *next_waiting; /* to be accepted */
	uint64_t id;
	struct sim_end ends[2]; /* who connected, who accepted */
	struct address to;      /* where the first connects to */
	struct sim_watch watches[2];
	struct sim_knock knock;
	unsigned references; /* scheduled events, and sides not closed */
	bool silent;
};

struct sim_socket {
	struct socket socket; /* must be first */
	struct sim_loop *owner;
	struct sim_socket *next, *previous;
	struct sim_socket *next_ready;
	struct loop_garbage garbage;
	unsigned interest;
	bool queued; /* among the ready ones */
	bool closed;
	/* a connection */
	struct sim_connection *connection;
	unsigned side;
	/* a listener */
	bool listens;
	struct address address;
	struct sim_connection *first_waiting, *last_waiting;
	unsigned waiting_count;
};

struct sim_loop {
	struct loop loop; /* must be first */
	struct sim_world *world;
	struct sim_loop *next;
	unsigned number;
	char name[SIM_NAME_BYTES];
	struct address address;
	struct sim_socket *sockets;
	size_t socket_count;
	struct sim_socket *first_ready, *last_ready;
	struct rng secrets;
	uint64_t frozen_until_ns;
	uint64_t busy_until_ns;
	int64_t wall_offset_ns;
	uint64_t bytes_sent;
	bool crashed;
	unsigned long calls, fail_call_at;
	void (*watcher)(void *context, bool begins);
	void *watcher_context;
};

struct sim_partition {
	const struct sim_loop *a, *b;
	uint64_t until_ns;
};

struct sim_name {
	struct sim_name *next;
	struct address address;
	char text[];
};

struct sim_world {
	uint64_t now_ns;
	int64_t wall_start_ns;
	struct rng rng;
	struct sim_event **events; /* a binary heap */
	size_t event_count, event_room;
	uint64_t next_order;
	struct sim_loop *loops;
	unsigned next_loop_number;
	struct sim_connection *connections;
	uint64_t next_connection_id;
	uint16_t next_port;
	struct sim_name *names;
	struct sim_faults faults;
	struct sim_partition partitions[SIM_PARTITIONS_MAX];
	uint64_t fault_counts[SIM_FAULTS];
	size_t leaked_sockets, leaked_timers;
	bool in_step;
	bool out_of_memory; /* the machine's own */
	uint64_t hash;
	uint64_t trace_count;
	char trace[SIM_TRACE_KEPT][SIM_TRACE_TEXT_BYTES];
	void (*follower)(void *context, const char *text);
	void *follower_context;
};

/* ---- loop_sim_trace.c ---- */

bool sim_chance(struct sim_world *world, unsigned per_million);
void sim_count_fault(struct sim_world *world, enum sim_fault fault);
void sim_hash_value(struct sim_world *world, uint64_t value);
void sim_hash_bytes(struct sim_world *world, const void *data, size_t length);

/* ---- loop_sim.c ---- */

/* False when the machine itself has no memory: the world is then of no more use. */
bool sim_schedule(struct sim_world *world, struct sim_event *event, uint64_t time_ns,
                  void (*run)(struct sim_event *event));
/* The loop will ask the socket in its next turn. */
void sim_wake(struct sim_socket *socket);
/* Whether this call is the one that must fail. */
bool sim_call_fails(struct sim_loop *loop);
/* The times of events have been changed. */
void sim_order_anew(struct sim_world *world);

/* ---- loop_sim_socket.c ---- */

struct socket *sim_socket_connect(struct loop *loop, const struct address *address, const struct address *local,
                                  const struct socket_handler *handler, void *context, struct error *err);
struct socket *sim_socket_listen(struct loop *loop, const struct address *address, const struct socket_handler *handler,
                                 void *context, struct error *err);
bool sim_socket_is_readable(const struct sim_socket *socket);
bool sim_socket_is_writable(const struct sim_socket *socket);
/* The process is gone: its sockets do nothing more. */
void sim_socket_sever(struct sim_socket *socket, enum sim_crash how);

/* ---- loop_sim_network.c ---- */

/* Starts the handshake. NULL when the machine has no memory. */
struct sim_connection *sim_network_connect(struct sim_socket *socket, const struct address *from,
                                           const struct address *to);
/* Takes bytes towards the other side; 0: there is no room. */
size_t sim_network_send(struct sim_connection *connection, unsigned from, const void *data, size_t length);
void sim_network_send_end(struct sim_connection *connection, unsigned from);
size_t sim_network_read(struct sim_connection *connection, unsigned side, void *data, size_t size);
/* This side lets go; the other one is told by an end or a reset, or (told false) not at all. */
void sim_network_close(struct sim_connection *connection, unsigned side, bool abort, bool told);
/* The peer of `side` finds the connection reset. */
void sim_network_reset(struct sim_connection *connection, unsigned side);
/* From now on nothing passes, and nobody is told. */
void sim_network_silence(struct sim_connection *connection);
void sim_network_partitioned(struct sim_world *world, const struct sim_loop *a, const struct sim_loop *b);
/* Nothing holds up what is under way any more: it arrives soon. The world's events must be put in order after that. */
void sim_network_hurry(struct sim_end *end, uint64_t now_ns);
void sim_connection_release(struct sim_connection *connection);

#endif
