/*
 * Compares what happens in a sandbox run with what the workload states, and remembers every difference as a sentence.
 *
 * It knows the workload, the outages, and what is true of each VM; it never hears what an agent says. The caller tells it of patches, of
 * the borders of phases and of the end. All times are nanoseconds since the start of the run.
 */
#ifndef BALLAST_SANDBOX_JUDGE_H
#define BALLAST_SANDBOX_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "sandbox/cluster.h"
#include "sandbox/sandbox_options.h"
#include "sandbox/workload.h"

enum {
	JUDGE_SENTENCE_BYTES = 640,
	JUDGE_SENTENCES_MAX = 1000, /* further ones are counted only */
	JUDGE_TIMES_MAX = 1000,     /* per VM, likewise */
};

/* A phase that changed what a VM must have. */
struct judge_goal {
	unsigned phase;    /* from 0 */
	unsigned expected; /* compute units */
	bool reached;
	double seconds; /* from the beginning of the phase */
};

/* What the judge saw of a VM. */
struct judge_vm {
	unsigned upscales, downscales; /* patches that made it larger or smaller */
	double *seconds_to_reach_goal; /* of each phase that changed the goal and saw it reached */
	size_t times_count;
	struct judge_goal *goals; /* as many as the phases that changed it */
	size_t goal_count;
	bool awaits_goal; /* in this phase: of the last of goals, if that had room */
	unsigned denied_at_phase_start;
	bool judged_before; /* the phase before was judged */
};

struct judge {
	const struct workload *workload;
	const struct sandbox_options *options;
	unsigned phase;
	uint64_t phase_start_ns;
	bool was_disturbed;
	uint64_t disturbed_ns; /* the latest time that something out of the workload's hands held everything up */
	size_t judgements;     /* of a VM at the end of a phase */
	char (*sentences)[JUDGE_SENTENCE_BYTES];
	size_t sentence_count;
	size_t sentences_left_out;
	struct judge_vm *vms; /* as many as the workload has */
};

/* The workload and the options must outlive it. */
bool judge_init(struct judge *judge, const struct workload *workload, const struct sandbox_options *options,
                struct error *err);
void judge_destroy(struct judge *judge); /* fine on a zeroed one */

/* Anything that isn't as it should be. Cut if it is longer than a sentence may be. */
void judge_mismatch(struct judge *judge, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A patch of any VM of the cluster, also of one that no agent may touch. */
void judge_patched(struct judge *judge, const char *name, unsigned vm, struct cluster_size before,
                   struct cluster_size after, uint64_t now_ns);

/* Everything stood still up to now (the program was stopped): VMs are given time to settle, as after an outage. */
void judge_disturbed(struct judge *judge, uint64_t now_ns);

/* To be called for each phase of the workload in turn, and judge_phase_end before the next. */
void judge_phase_begin(struct judge *judge, const struct cluster *cluster, unsigned phase, uint64_t now_ns);
/*
 * The phase is over (complete), or the run ends within it. VMs that outages or the short time kept from settling aren't
 * judged.
 */
void judge_phase_end(struct judge *judge, const struct cluster *cluster, uint64_t now_ns, bool complete);

/* In place of judge_phase_end, when the phase can't be judged at all. */
void judge_phase_void(struct judge *judge);

/*
 * The run ends, judge_phase_end was called: the parts must agree with each other, and VMs to be ignored must not have been
 * touched.
 */
void judge_end(struct judge *judge, const struct cluster *cluster);

#endif
