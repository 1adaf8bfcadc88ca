/*
 * What a vm-monitor decides, without any network: thresholds, the size of Postgres' local file cache ("cache"), and
 * whether memory may go (spec surroundings 2.4). Amounts are bytes.
 */
#ifndef BALLAST_SANDBOX_VM_MONITOR_DECISION_H
#define BALLAST_SANDBOX_VM_MONITOR_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

enum {
	VM_MONITOR_SAMPLES = 5,        /* whose mean is what is used */
	VM_MONITOR_SAMPLES_LEAST = 2,  /* before anything is decided by them */
	VM_MONITOR_SAMPLE_MS = 100,    /* from one to the next */
	VM_MONITOR_SAMPLES_OLD_S = 5,  /* beyond it nothing is decided by them */
	VM_MONITOR_STATUS_BYTES = 512, /* of a decision's text */
};

/* What of a VM's memory is there for cgroup and cache. */
uint64_t vm_monitor_usable_bytes(uint64_t memory_bytes);
/* The cgroup's threshold for that much usable memory. */
uint64_t vm_monitor_threshold_bytes(uint64_t usable_bytes);
/* The cache for that much usable memory: whole MiB, no more than maximum_bytes (0: no maximum). */
uint64_t vm_monitor_cache_bytes(uint64_t usable_bytes, uint64_t maximum_bytes);

/* The latest samples of the cgroup's anonymous memory, on one connection. */
struct vm_monitor_samples {
	uint64_t used_bytes[VM_MONITOR_SAMPLES];
	unsigned count;     /* up to VM_MONITOR_SAMPLES */
	unsigned next;      /* the place of the next */
	uint64_t newest_ns; /* when the last came; before the first, when the connection began */
};

void vm_monitor_samples_begin(struct vm_monitor_samples *samples, uint64_t now_ns);
void vm_monitor_samples_add(struct vm_monitor_samples *samples, uint64_t used_bytes, uint64_t now_ns);
/* Rounded down; 0 without samples. */
uint64_t vm_monitor_samples_mean(const struct vm_monitor_samples *samples);

/* What the monitor holds on one connection. */
struct vm_monitor_state {
	bool manages_cgroup, manages_cache;
	bool postgres_down;           /* the cache can't be set */
	bool late_2023;               /* the threshold leaves room for the cache, too */
	uint64_t cache_maximum_bytes; /* Postgres' own; 0: none */
	uint64_t threshold_bytes;
	uint64_t cache_bytes;
	struct vm_monitor_samples samples;
};

/* The threshold for that much usable memory, as this monitor has it. */
uint64_t vm_monitor_state_threshold_bytes(const struct vm_monitor_state *state, uint64_t usable_bytes);

enum vm_monitor_verdict { VM_MONITOR_AGREED, VM_MONITOR_DENIED, VM_MONITOR_FAILED };

/*
 * Decides on a request to go down to memory_bytes. Agreed: threshold and cache are set. The status is appended unless
 * it failed; then nothing is changed.
 */
enum vm_monitor_verdict vm_monitor_downscale(struct vm_monitor_state *state, uint64_t memory_bytes, uint64_t now_ns,
                                             struct buffer *status);
/* The VM has memory_bytes now. Never denied, also when it is less than before; false: failed, nothing was changed. */
bool vm_monitor_upscale(struct vm_monitor_state *state, uint64_t memory_bytes);

#endif
