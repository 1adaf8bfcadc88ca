/*
 * Where the agents report to, as one process: a billing service that takes HTTP pushes, an S3 bucket and an Azure
 * container for billing, and likewise for scaling events. What it takes goes to the bills (sim_bills.h).
 *
 * In storms it is away, restarts, answers 429 and 5xx, with and without being asked to wait, answers late or never, sends
 * heads without bodies, and takes batches without a word of it.
 */
#ifndef BALLAST_TESTS_SIM_SIM_RECEIVER_H
#define BALLAST_TESTS_SIM_SIM_RECEIVER_H

#include "sandbox/agent_setup.h"
#include "sim_bills.h"
#include "simulation.h"

/* Where objects go. */
#define SIM_BILLING_BUCKET "bills"
#define SIM_SCALING_BUCKET "events"
#define SIM_BILLING_CONTAINER "bill-blobs"
#define SIM_SCALING_CONTAINER "event-blobs"

struct sim_receiver;

enum sim_receiver_fault {
	SIM_RECEIVER_GOOD,
	SIM_RECEIVER_AWAY,        /* nobody listens */
	SIM_RECEIVER_BUSY,        /* 429 or 503, perhaps with the time to wait */
	SIM_RECEIVER_FAILS,       /* 500, 502, 504, 403 */
	SIM_RECEIVER_SLOW,        /* it takes and answers late */
	SIM_RECEIVER_HANGS,       /* it neither takes nor answers */
	SIM_RECEIVER_HEAD_ONLY,   /* it takes, and answers but for the body */
	SIM_RECEIVER_LOST_ANSWER, /* it takes, and the connection ends */
	SIM_RECEIVER_ODD_ANSWER,  /* it takes, and answers with a status that doesn't count as success */
	SIM_RECEIVER_FAULTS
};

struct sim_receiver_counts {
	unsigned faults[SIM_RECEIVER_FAULTS]; /* requests that met it; for AWAY how often it was */
	unsigned requests;
};

const char *sim_receiver_fault_name(enum sim_receiver_fault fault);

/* Adds itself to the simulation as an actor, which frees it and its bills. */
struct sim_receiver *sim_receiver_create(struct simulation *simulation, struct error *err);
struct sim_bills *sim_receiver_bills(const struct sim_receiver *receiver);
struct loop *sim_receiver_loop(const struct sim_receiver *receiver);
struct sim_receiver_counts sim_receiver_counts(const struct sim_receiver *receiver);

/*
 * Writes an agent's configuration for one life to the path: as the set-up has it, with every client for events, and the
 * life's name for the region.
 */
bool sim_receiver_write_config(const struct agent_setup *setup, const char *life, const char *path, struct error *err);

#endif
