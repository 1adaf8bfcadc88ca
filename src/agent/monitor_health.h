/*
 * Health checks over one vm-monitor connection: one every 5 s, the first after 5 s (spec agent-runtime 11.5).
 */
#ifndef BALLAST_AGENT_MONITOR_HEALTH_H
#define BALLAST_AGENT_MONITOR_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/monitor_connection.h"
#include "base/log.h"
#include "net/loop.h"

enum { MONITOR_HEALTH_CHECK_S = 5 };

struct monitor_health_handler {
	void *context;
	void (*on_success)(void *context);
	/*
	 * Checks have failed for too long. reason: for the close frame. The checks have stopped. The connection may be
	 * closed within, but may just be handling the message that made the last check fail.
	 */
	void (*on_unhealthy)(void *context, const struct error *reason);
};

struct monitor_health {
	struct loop *loop;
	const struct agent_monitor_config *config;
	struct monitor_connection *connection;
	struct monitor_health_handler handler;
	struct logger logger;
	bool running;
	bool checking;     /* a call is under way */
	bool tick_waiting; /* and a tick came meanwhile; further ones are dropped */
	uint64_t ticks;
	uint64_t started_ns;
	uint64_t check_started_ns;
	uint64_t ok_sequence;
	uint64_t fail_sequence;
	uint64_t first_failure_ns; /* of the streak */
	struct loop_timer timer;
};

/* Copies; what the copy points at, and the struct, must stay. */
void monitor_health_init(struct monitor_health *health, const struct monitor_health *settings);
void monitor_health_start(struct monitor_health *health);
/* A check under way is the connection's to end; its result doesn't matter any more. */
void monitor_health_stop(struct monitor_health *health);

#endif
