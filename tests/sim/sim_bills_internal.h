/*
 * What the files of the bills share: sim_bills.c takes what comes, sim_bills_life.c knows what should come.
 */
#ifndef BALLAST_TESTS_SIM_SIM_BILLS_INTERNAL_H
#define BALLAST_TESTS_SIM_SIM_BILLS_INTERNAL_H

#include "base/table.h"
#include "sim_bills.h"

enum { SIM_PAST_S = 64, SIM_ENDPOINT_BYTES = 64, SIM_BATCHES = 16 };

/* Amounts of one VM, or of what was billed of it. */
struct sim_amounts {
	double active_s, cpu_s;
};

struct sim_life_vm {
	char endpoint[SIM_ENDPOINT_BYTES]; /* empty: no VM yet */
	uint64_t uid;                      /* its hash */
	bool present, was_present;
	uint32_t cpu_milli;
	struct sim_amounts seen;
	unsigned episodes;  /* of being there */
	double changes_cpu; /* sum of all changes of its CPU */
	double unseen_cpu;  /* of those that two samples may not show */
	double changed_by;  /* the last of them, at changed_ns */
	uint64_t changed_ns;
	double most_cpu;
	struct sim_amounts past[SIM_PAST_S]; /* what was seen, by the second, the latest ones */
	struct sim_amounts billed[SIM_BILLING_CHANNELS];
};

/* What came last over a channel. */
struct sim_chain {
	struct {
		uint64_t hash;
		bool in_doubt; /* its answer may have been lost */
	} batches[SIM_BATCHES];
	unsigned batch_count; /* ever */
	bool begun;
	int64_t start_wall_ns, stop_wall_ns; /* of the drain */
	uint64_t number, count;
	uint64_t endpoint; /* hash of the last event's */
	uint64_t delivered;
	struct report_progress progress;
	uint64_t submitted_ns; /* when something was handed out last */
	struct table events;   /* scaling events that came */
};

struct sim_life {
	struct sim_life *next;
	struct sim_bills *bills;
	char name[SIM_LIFE_NAME_BYTES];
	int64_t begin_wall_ns;
	uint64_t viewed_ns;
	uint64_t past_seconds; /* how many were noted */
	double frozen_s;
	uint64_t frozen_until_ns;
	bool starved, clock_set;
	bool bounded; /* it may drop events */
	uint64_t bound;
	struct sim_chain chains[SIM_CHANNELS];
	struct sim_life_vm vms[SIM_BILLED_VMS];
};

struct sim_bills {
	struct simulation *simulation;
	struct sim_life *lives; /* the latest first */
	struct sim_bills_counts counts;
};

struct sim_life *sim_bills_life(struct sim_bills *bills, struct slice name); /* NULL: there is none */
/* Of that endpoint; a new one if there is none yet. NULL: too many. */
struct sim_life_vm *sim_life_vm(struct sim_life *life, struct slice endpoint_id);
/* Whether no more was billed than could be. */
void sim_life_check_most(struct sim_life *life, const struct sim_life_vm *vm, enum sim_channel channel);

#endif
