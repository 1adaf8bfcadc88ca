/*
 * Compares what the agents billed with what the VMs really had (spec reporting 3).
 *
 * An agent samples sizes, and of two samples in a row the smaller one counts: so it may bill each change of a VM's CPU
 * up to a collect period late or early, always to the VM's advantage, and nothing before its first sample. Within that,
 * the sum must be right to a second, and never more than was used; every window must be there, once.
 *
 * It knows what is true of the VMs and what the receiver got; it never hears what an agent says otherwise.
 */
#ifndef BALLAST_SANDBOX_BILLING_JUDGE_H
#define BALLAST_SANDBOX_BILLING_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum billing_metric { BILLING_CPU_SECONDS, BILLING_ACTIVE_SECONDS, BILLING_METRICS };

/* An event, without what is the same for all. Stamps are since 1970. */
struct billing_judge_event {
	enum billing_metric metric;
	uint64_t seconds;
	int64_t start_wall_ns, stop_wall_ns;
};

/* What was billed of one metric of one VM. */
struct billing_judge_sum {
	uint64_t billed;
	int64_t last_stop_wall_ns;
	unsigned lost; /* events */
};

struct billing_judge_vm {
	bool billable; /* an agent looks after its node */
	uint32_t cpu_milli;
	double used_cpu_s;          /* since the agents' start */
	double excused_cpu_s;       /* of that, while no agent could know of it */
	double changes_cpu;         /* the sum of all changes of its CPU */
	double first_cpu, most_cpu; /* in vCPUs */
	bool excused;               /* since its last event */
	int64_t first_start_wall_ns;
	struct billing_judge_sum sums[BILLING_METRICS];
};

struct billing_judge {
	double collect_s, accumulate_s;
	uint64_t start_ns, now_ns, excused_from_ns, excused_until_ns; /* monotonic */
	int64_t start_wall_ns, end_wall_ns;                           /* end 0: it still runs */
	double excused_s;
	size_t vm_count;
	struct billing_judge_vm *vms;
};

/* The periods are the agents'. */
bool billing_judge_init(struct billing_judge *judge, size_t vm_count, double collect_s, double accumulate_s,
                        struct error *err);
void billing_judge_destroy(struct billing_judge *judge); /* fine on a zeroed one */

/* A VM that agents bill has that CPU when they are started; to be called before the start. */
void billing_judge_add_vm(struct billing_judge *judge, size_t vm, uint32_t cpu_milli);
/* The agents are started, and told to end. */
void billing_judge_start(struct billing_judge *judge, uint64_t now_ns, int64_t wall_ns);
void billing_judge_end(struct billing_judge *judge, uint64_t now_ns, int64_t wall_ns);
/* The VM has another amount of CPU. */
void billing_judge_set_cpu(struct billing_judge *judge, size_t vm, uint32_t cpu_milli, uint64_t now_ns);
/* Agents can't know what VMs have, from now until that time (UINT64_MAX: not known yet). */
void billing_judge_excuse(struct billing_judge *judge, uint64_t now_ns, uint64_t until_ns);

/* An event that came for the first time. False with a sentence if it can't be. */
bool billing_judge_take(struct billing_judge *judge, size_t vm, const struct billing_judge_event *event,
                        struct error *err);

/* Once everything is over: whether the VM was billed as it must be, else a sentence. */
bool billing_judge_check(const struct billing_judge *judge, size_t vm, struct error *err);
/* Events of the VM that never came, as far as gaps between windows tell; those at the end included. */
unsigned billing_judge_lost(const struct billing_judge *judge, size_t vm);

#endif
