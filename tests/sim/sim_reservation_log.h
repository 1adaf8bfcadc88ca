/*
 * Keeps the states that reservations had in the store, each with the time in which it was true.
 */
#ifndef BALLAST_TESTS_SIM_SIM_RESERVATION_LOG_H
#define BALLAST_TESTS_SIM_SIM_RESERVATION_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/object_store.h"
#include "sandbox/workload.h"
#include "simulation.h"

enum {
	SIM_LOG_STATES = 2048,
	SIM_LOG_REQUESTS = 4, /* of one reservation: pods have up to three volumes */
	SIM_LOG_NAME_BYTES = 80,
	SIM_LOG_ID_BYTES = 64,
};

struct sim_reservation_state {
	char name[SIM_LOG_NAME_BYTES];
	uint64_t from_ns, until_ns; /* UINT64_MAX: it is true now */
	bool reserved;
	uint32_t nodes; /* reserved ones, by bit: as in the log's nodes */
	unsigned request_count;
	struct {
		char claim[SIM_LOG_NAME_BYTES];
		int64_t size_bytes;
	} requests[SIM_LOG_REQUESTS];
};

struct sim_log_node {
	char name[SIM_LOG_ID_BYTES], id[SIM_LOG_ID_BYTES];
};

struct sim_reservation_log {
	struct simulation *simulation;
	struct object_store *store;
	struct object_observer observer;
	unsigned node_count;
	struct sim_log_node nodes[WORKLOAD_NODES_MAX];
	size_t next;           /* of the states, to be overwritten */
	uint64_t forgotten_ns; /* states that ended before may have been overwritten */
	struct sim_reservation_state states[SIM_LOG_STATES];
};

/* The log is zero; nodes must be in the store already. */
void sim_reservation_log_start(struct sim_reservation_log *log, struct simulation *simulation,
                               struct object_store *store);
void sim_reservation_log_stop(struct sim_reservation_log *log);

#endif
