/*
 * The workload of a sandbox run: which VMs there are, what each does phase by phase, and the size it must have by the end of
 * each phase.
 *
 * A pure function of the options: the same seed always gives the same workload. Expectations follow from the sizes stated here
 * alone, never from anything the agent does or says. A size is a number of compute units (250m CPU and 1 GiB, which is also
 * the slot size).
 */
#ifndef BALLAST_SANDBOX_WORKLOAD_H
#define BALLAST_SANDBOX_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/generation.h"

enum {
	WORKLOAD_UNIT_CPU_MILLI = 250,
	WORKLOAD_PHASES = 12, /* stated for each VM; longer runs repeat them. A multiple of every kind's own period */
	WORKLOAD_VMS_MAX = 500,
	WORKLOAD_NODES_MAX = 26, /* node-a to node-z */
	WORKLOAD_NAME_BYTES = 32,
	WORKLOAD_FULL_NODE_UNITS = 8,
	WORKLOAD_FULL_VMS_LEAST = 6, /* with fewer VMs there is no full node */
};

#define WORKLOAD_UNIT_BYTES (UINT64_C(1) << 30)

enum workload_kind {
	WORKLOAD_RAMP,        /* load goes up and down in steps */
	WORKLOAD_HELD,        /* the vm-monitor denies a downscale for a whole phase */
	WORKLOAD_MEMORY,      /* memory grows into whatever the VM has */
	WORKLOAD_TAKEOVER,    /* an earlier agent left it half-scaled */
	WORKLOAD_FULL_FIRST,  /* takes most of a small node */
	WORKLOAD_FULL_SECOND, /* wants more than the first leaves */
	WORKLOAD_LFC,         /* the working set of the local file cache decides; in late 2023 it has no say */
	WORKLOAD_BOUNDED,     /* wants more than its bounds annotation allows */
	WORKLOAD_SPIKE,       /* load jumps from least to most and back */
	WORKLOAD_RANDOM,      /* any of the above causes, any size */
};

/* What makes the VM need its size. */
enum workload_cause { WORKLOAD_CAUSE_LOAD, WORKLOAD_CAUSE_MEMORY, WORKLOAD_CAUSE_LFC };

struct workload_phase {
	enum workload_cause cause;
	unsigned demand;   /* units that the pages speak for */
	unsigned held;     /* units that the vm-monitor insists on; 0: none */
	unsigned expected; /* units the VM must have */
	bool contended;    /* `expected` is what another VM of the same node leaves */
};

struct workload_vm {
	char name[WORKLOAD_NAME_BYTES];
	enum workload_kind kind;
	unsigned node;     /* 0: node-a */
	unsigned min, max; /* of the spec */
	unsigned bound;    /* maximum of the bounds annotation; 0: no annotation */
	unsigned initial;  /* units in use at the start, by the spec */
	unsigned plugged;  /* units the VM really has then: less, if it is half-scaled */
	struct workload_phase phases[WORKLOAD_PHASES];
};

struct workload_options {
	uint64_t seed;
	unsigned vms;   /* 1 … WORKLOAD_VMS_MAX */
	unsigned nodes; /* 1 … WORKLOAD_NODES_MAX */
	double speed;
	struct sandbox_generation generation;
	uint64_t duration_ns; /* 0: endless */
};

struct workload {
	struct workload_options options;
	uint64_t settle_ns;       /* within this a VM must have reached the size of a phase */
	unsigned phase_count;     /* 0: endless */
	uint64_t phase_length_ns; /* at least settle_ns, if the run has more than one */
	bool has_full_node;       /* node-b is small, and the last two VMs are on it */
	struct workload_vm vms[]; /* options.vms of them */
};

/* The least length of a phase: the slowest way to a new size, in wall time. */
uint64_t workload_least_ns(double speed);
/* The same with so many VMs: agents patch 50 times a second at most, and all VMs change at once. */
uint64_t workload_settle_ns(double speed, unsigned vms);

/*
 * Whether duration_ns is enough for one phase; if not, ERROR_LIMIT with a text that names the least. 0, endless, is enough.
 */
bool workload_check_duration(double speed, unsigned vms, uint64_t duration_ns, struct error *err);

/* Fails as workload_check_duration, or without memory. The options' ranges are the caller's to check. */
struct workload *workload_create(const struct workload_options *options, struct error *err);
void workload_destroy(struct workload *workload); /* NULL is fine */

/* Any index from 0, also past the stated phases: they repeat. */
const struct workload_phase *workload_phase(const struct workload *workload, unsigned vm, unsigned index);
/* What the VM is expected to have before the phase: the expectation of the one before, or its initial size. */
unsigned workload_expected_before(const struct workload *workload, unsigned vm, unsigned index);
/* The phase that runs at this time; the last one if it is later. */
unsigned workload_phase_at(const struct workload *workload, uint64_t elapsed_ns);

const char *workload_kind_name(enum workload_kind kind);
const char *workload_cause_name(enum workload_cause cause);

#endif
