/*
 * What the agents report, held against what they could know: billing events and scaling events, over each of the ways
 * that a configuration has for them.
 *
 * Each life of an agent process has a name of its own, which its events carry. While it lives, it is noted after each of
 * its turns which VMs its watch shows, and how large: what it may bill follows from that, to within the collect period
 * around each change (spec reporting B3 … B6). And it is asked how many events it has handed out, so that none can get
 * lost on the way.
 */
#ifndef BALLAST_TESTS_SIM_SIM_BILLS_H
#define BALLAST_TESTS_SIM_SIM_BILLS_H

#include "report/report_sink.h"
#include "simulation.h"

enum sim_channel {
	SIM_BILLING_HTTP,
	SIM_BILLING_AZURE,
	SIM_BILLING_S3,
	SIM_SCALING_AZURE,
	SIM_SCALING_S3,
	SIM_CHANNELS,
	SIM_BILLING_CHANNELS = SIM_SCALING_AZURE
};

enum {
	SIM_LIFE_NAME_BYTES = 32,
	SIM_BILLED_VMS = 32,
	SIM_COLLECT_S = 4, /* the agents' periods */
	SIM_ACCUMULATE_S = 24,
	SIM_PUSH_S = 10,
};

struct sim_bills;
struct sim_life;

struct sim_bills_counts {
	uint64_t batches, repeated_batches;
	uint64_t billing_events, scaling_events;
	uint64_t lives_billed_to_the_end;
	/* VM-seconds: that agents saw, and that they billed over HTTP. */
	double seen_s, billed_s;
};

struct sim_bills *sim_bills_create(struct simulation *simulation, struct error *err);
void sim_bills_destroy(struct sim_bills *bills); /* NULL is fine */
struct sim_bills_counts sim_bills_counts(const struct sim_bills *bills);

const char *sim_channel_client(enum sim_channel channel); /* "http", "azureblob", "s3" */

/*
 * A batch that the receiver takes: lines, or for HTTP the array; whole is what came over the network, by which a repeated
 * one is known. False with a sentence when it isn't what the specification says; a broken invariant is reported by itself.
 */
bool sim_bills_take(struct sim_bills *bills, enum sim_channel channel, struct slice whole, struct slice content,
                    struct error *err);

/* ---- lives of agents ---- */

/* NULL without memory. Lives belong to the bills. The name is copied. */
struct sim_life *sim_life_begin(struct sim_bills *bills, const char *name, int64_t wall_ns);
/*
 * What the agent's watch shows from now on: begin, then each VM that may be billed. After each of its turns, as nothing
 * changes in between.
 */
void sim_life_view_begin(struct sim_life *life);
void sim_life_view_vm(struct sim_life *life, struct slice uid, struct slice endpoint_id, uint32_t cpu_milli);
/* The agent's queues take that many events for each client, at most: it may drop some. */
void sim_life_bound(struct sim_life *life, uint64_t events);
/* An allocation failed, or the wall clock was set: from then on some things are no longer certain. */
void sim_life_starved(struct sim_life *life);
void sim_life_clock_set(struct sim_life *life);
/* How far it is with one channel, at the end of a turn. */
void sim_life_progress(struct sim_life *life, enum sim_channel channel, const struct report_progress *progress);
/* It ended; all_delivered: of its own accord, before its grace period was over. */
void sim_life_end(struct sim_life *life, bool all_delivered);
/* At the end of a calm: everything but the latest must have been billed. */
void sim_life_check_settled(struct sim_life *life);

#endif
