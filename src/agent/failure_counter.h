/*
 * How many failures there were lately: one of the things that make a runner stuck (spec agent-runtime 6.6).
 */
#ifndef BALLAST_AGENT_FAILURE_COUNTER_H
#define BALLAST_AGENT_FAILURE_COUNTER_H

#include <stddef.h>
#include <stdint.h>

enum { FAILURE_COUNTER_INLINE = 4 };

struct failure_counter {
	int64_t interval_ns;
	size_t limit; /* most that is remembered */
	int64_t *times;
	size_t first; /* ring: index of the oldest */
	size_t count;
	size_t capacity;
	int64_t few
		/* where times points until there are more, so that a first failure is never lost */
		[FAILURE_COUNTER_INLINE];
};

/*
 * The struct must stay where it is. Up to AGENT_FAILURES_REMEMBERED failures are remembered, or threshold + 1 if that
 * is more.
 */
void failure_counter_init(struct failure_counter *counter, uint64_t interval_ns, uint64_t threshold);
void failure_counter_destroy(struct failure_counter *counter);
/* Instants must not go backwards. When the limit is reached, or memory is short, the oldest failure is forgotten. */
void failure_counter_add(struct failure_counter *counter, int64_t now_ns);
/* Failures strictly newer than now - interval. Forgets the others. */
size_t failure_counter_count(struct failure_counter *counter, int64_t now_ns);

#endif
