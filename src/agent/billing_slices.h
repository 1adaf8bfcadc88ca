/*
 * How much each VM used, from samples of its size (spec reporting B2 … B7): pure, the caller brings the time.
 *
 * At each collection every VM that counts is named with its CPU. A VM named twice in a row used the smaller of both
 * amounts for the time between; seen once, or not at the collection before, it used nothing. A drain tells what each VM
 * used since the last one, in whole seconds; what rounding takes or gives is carried to the next drain (README of the
 * specs, decision 13), so that sums are right within half a second.
 */
#ifndef BALLAST_AGENT_BILLING_SLICES_H
#define BALLAST_AGENT_BILLING_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/table.h"

enum {
	/* Drains for which the remainder of a VM that isn't seen is kept: its watch may have failed meanwhile. */
	BILLING_REMAINDER_DRAINS = 16,
};

struct billing_slices {
	struct table vms;                    /* by UID and endpoint: struct billed_vm */
	uint64_t collection;                 /* how many there were */
	uint64_t slice_start_ns, collect_ns; /* the collection before, and the latest */
};

/* What one VM used. */
struct billing_usage {
	struct slice endpoint_id; /* valid during the callback */
	uint64_t cpu_seconds;
	uint64_t active_seconds;
};

void billing_slices_init(struct billing_slices *slices);
void billing_slices_destroy(struct billing_slices *slices);

/*
 * A collection at now_ns (monotonic): begin, then one call for each VM that counts. False when memory is short: the VM
 * then counts as not seen. The same UID under another endpoint is another VM.
 */
void billing_slices_begin(struct billing_slices *slices, uint64_t now_ns);
bool billing_slices_see(struct billing_slices *slices, struct slice uid, struct slice endpoint_id, uint32_t cpu_milli,
                        struct error *err);

/* VMs that a drain would tell of: those with any time since the last one. */
size_t billing_slices_count(const struct billing_slices *slices);
/* Tells what each of them used, also if it rounds to 0, and begins anew. Nothing may be collected from inside. */
void billing_slices_drain(struct billing_slices *slices, void (*use)(void *context, const struct billing_usage *usage),
                          void *context);

#endif
