/*
 * What the parts of the vm-monitor share: vm_monitor.c (listening, upgrades, the owner's calls) and
 * vm_monitor_connection.c (frames, set-up, work).
 */
#ifndef BALLAST_SANDBOX_VM_MONITOR_INTERNAL_H
#define BALLAST_SANDBOX_VM_MONITOR_INTERNAL_H

#include "base/buffer.h"
#include "net/http_server.h"
#include "net/stream.h"
#include "net/websocket_engine.h"
#include "sandbox/vm_monitor.h"
#include "sandbox/vm_monitor_decision.h"
#include "sandbox/vm_monitor_messages.h"

enum monitor_phase {
	MONITOR_SETUP, /* the agent's first message isn't there yet */
	MONITOR_OPEN,
};

struct monitor_connection {
	struct monitor_connection *next;
	struct vm_monitor *monitor;
	struct stream *stream;
	struct websocket_engine engine;
	enum monitor_phase phase;
	bool replaced; /* by a newer one: ends as soon as the work at hand is done */
	struct loop_timer setup_timer;
	struct loop_timer sample_timer;

	/* A message in work; what came behind it waits. */
	bool working;
	struct loop_timer work_timer;
	struct vm_monitor_request request;
	struct buffer waiting;

	struct vm_monitor_state state;
	uint64_t believes_bytes;
	double believes_cpus;
	uint64_t next_id; /* of its own messages */
	bool has_asked;   /* for more, at asked_ns */
	uint64_t asked_ns;
};

struct vm_monitor {
	struct loop *loop;
	struct vm_monitor_options options;
	struct vm_monitor_handler handler;
	void *context;
	struct http_server *server; /* NULL while not available */
	struct loop_timer reopen_timer;
	struct vm_monitor_faults faults;
	struct vm_monitor_counters counters;
	uint64_t used_bytes;
	uint64_t cache_bytes;
	struct monitor_connection *connections; /* newest first; all but one are replaced */
	size_t connection_count;
};

void monitor_tell(struct vm_monitor *monitor, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The one that isn't replaced, or NULL. */
struct monitor_connection *monitor_current(const struct vm_monitor *monitor);

/* NULL if memory is short. Not yet one of the monitor's connections. */
struct monitor_connection *monitor_connection_create(struct vm_monitor *monitor);
/* Takes over an upgraded stream; early is what came behind the request. Replaces the connection in use. */
void monitor_connection_begin(struct monitor_connection *connection, struct stream *stream, struct slice early);
/* Of one that was never begun. */
void monitor_connection_destroy(struct monitor_connection *connection);
/* Of one that was: ends its stream, without a close frame. What was written still goes out. */
void monitor_connection_drop(struct monitor_connection *connection);

#endif
