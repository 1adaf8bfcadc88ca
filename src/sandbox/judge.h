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
	JUDGE_SENTENCE_BYTES = 256,
	JUDGE_SENTENCES_MAX = 1000, /* further ones are counted only */
	JUDGE_TIMES_MAX = 1000,     /* per VM, likewise */
};

/* What the judge saw of a VM. */
struct judge_vm {
	unsigned upscales, downscales; /* patches that made it larger or smaller */
	double *seconds_to_reach_goal; /* of each phase that changed the goal and saw it reached */
	size_t times_count;
	bool awaits_goal; /* in this phase */
	unsigned denied_at_phase_start;
	bool judged_before; /* the phase before was judged */
};

struct judge {
	const struct workload *workload;
	const struct sandbox_options *options;
	unsigned phase;
	uint64_t phase_start_ns;
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

/* To be called for each phase of the workload in turn, and judge_phase_end before the next. */
void judge_phase_begin(struct judge *judge, const struct cluster *cluster, unsigned phase, uint64_t now_ns);
/*
 * The phase is over (complete), or the run ends within it. VMs that outages or the short time kept from settling aren't
 * judged.
 */
void judge_phase_end(struct judge *judge, const struct cluster *cluster, uint64_t now_ns, bool complete);

/*
 * The run ends, judge_phase_end was called: the parts must agree with each other, and VMs to be ignored must not have been
 * touched.
 */
void judge_end(struct judge *judge, const struct cluster *cluster);

#endif
