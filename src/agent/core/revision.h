/*
 * Revisions: numbers that let latencies be measured from a change of the target to its arrival (spec agent-core 1.5,
 * 7).
 *
 * A revision source hands out numbers and remembers when; observing a number reports how long ago it was handed out.
 */
#ifndef BALLAST_AGENT_CORE_REVISION_H
#define BALLAST_AGENT_CORE_REVISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { REVISION_UPSCALE = 1, REVISION_DOWNSCALE = 2 };

struct revision {
	int64_t value;
	uint64_t flags; /* REVISION_UPSCALE | REVISION_DOWNSCALE */
};

struct revision_with_time {
	struct revision revision;
	int64_t updated_at_ns; /* instant, see instant.h; RFC3339_ZERO = never */
};

/* a if its value is smaller, else b: on a tie b's flags win (T-14). */
struct revision revision_min(struct revision a, struct revision b);
struct revision_with_time revision_with_time(struct revision revision, int64_t instant_ns);

/* Gets a latency (it may be negative: the clocks of two machines) and the flags of its revision. */
typedef void revision_latency_callback(void *context, int64_t latency_ns, uint64_t flags);

/*
 * Takes target into *slot if it is newer, and reports its latency at now_ns first (V-4). The callback may be NULL.
 */
void revision_propagate(int64_t now_ns, struct revision_with_time target, struct revision *slot,
                        revision_latency_callback *callback, void *context);

enum { REVISION_PENDING_MAX = 100 }; /* V-2 */

/* Copyable by value. */
struct revision_source {
	bool silent;    /* hands out {0, 0} and observes nothing (spec replay 2, "nil") */
	uint16_t first; /* ring: index of the oldest */
	uint16_t count;
	int64_t offset; /* value of the oldest pending revision, or of the next one when none is pending */
	int64_t pending_ns[REVISION_PENDING_MAX];
};

/* A source whose first revision is initial_revision + 1 (V-1). */
void revision_source_init(struct revision_source *source, int64_t initial_revision);
struct revision revision_source_next(struct revision_source *source, int64_t now_ns, uint64_t flags);
/*
 * Reports the latency of an observed revision of this source to the callback (may be NULL) and forgets it and all
 * before. Older ones than are remembered are fine; a future one is ERROR_INVARIANT "revision is in the future" (V-3).
 */
bool revision_source_observe(struct revision_source *source, int64_t moment_ns, struct revision revision,
                             revision_latency_callback *callback, void *context, struct error *err);

#endif
