/*
 * What goes wrong in a sandbox run with --faults: a table of faults, each with how often it comes at each level, and a seeded generator that decides.
 *
 * Faults of requests are drawn for each request; the others come at random intervals. Whoever acts out a fault asks here first; what was
 * decided is counted.
 */
#ifndef BALLAST_SANDBOX_FAULTS_H
#define BALLAST_SANDBOX_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/rng.h"

enum fault_level { FAULTS_NONE, FAULTS_LIGHT, FAULTS_HEAVY };

enum fault_kind {
	FAULT_API_ERROR,    /* 500 */
	FAULT_API_TOO_MANY, /* 429 */
	FAULT_API_CONFLICT, /* 409, to updates and patches */
	FAULT_API_SLOW,
	FAULT_API_CLOSED,
	FAULT_API_WATCHES_CUT,
	FAULT_API_EXPIRED, /* the next watches from where they were get 410 */
	FAULT_PLUGIN_ERROR,
	FAULT_PLUGIN_SLOW,
	FAULT_PLUGIN_CLOSED,
	FAULT_MONITOR_CLOSED,
	FAULT_MONITOR_SLOW,
	FAULT_SCHEDULER_GIVES_UP, /* long before its time limit */
	FAULT_EXTENDER_KILLED,
	FAULT_COUNT,
	FAULT_NONE = FAULT_COUNT,
};

/* Who draws. */
enum fault_target {
	FAULTS_OF_API_READS,
	FAULTS_OF_API_WRITES,
	FAULTS_OF_PLUGIN,
	FAULTS_OF_SCHEDULER,
	FAULTS_OF_TIME, /* those that come by themselves */
};

enum { FAULT_SLOW_MS_MIN = 200, FAULT_SLOW_MS_MAX = 800 };

struct faults {
	enum fault_level level;
	bool suspended;
	struct rng rng;
	unsigned counts[FAULT_COUNT];
};

void faults_init(struct faults *faults, enum fault_level level, uint64_t seed);
/* FAULT_NONE, or the fault that the request shall meet, which is counted. Never for FAULTS_OF_TIME. */
enum fault_kind faults_draw(struct faults *faults, enum fault_target target);
/* How long until the fault comes the next time; 0: never. For FAULTS_OF_TIME. */
uint64_t faults_next_ns(struct faults *faults, enum fault_kind kind);
/* It comes now: true, and it is counted; false while they are suspended. */
bool faults_happen(struct faults *faults, enum fault_kind kind);
bool faults_comes_by_itself(enum fault_kind kind);
/* How long something slow takes. */
uint64_t faults_slow_ns(struct faults *faults);

const char *fault_name(enum fault_kind kind); /* "api-error" */
/* The table, for --help: a line for each fault. */
void faults_print_table(struct buffer *out);

#endif
