#include "agent/failure_counter.h"

#include "agent/core/instant.h"
#include "agent/limits.h"
#include "base/memory.h"

void failure_counter_init(struct failure_counter *counter, uint64_t interval_ns, uint64_t threshold)
{
	size_t limit = AGENT_FAILURES_REMEMBERED;

	if (threshold >= limit)
		limit = threshold < AGENT_FAILURES_REMEMBERED_MAX ? (size_t)threshold + 1
		                                                  : AGENT_FAILURES_REMEMBERED_MAX;
	*counter = (struct failure_counter){
		.interval_ns = interval_ns > INT64_MAX ? INT64_MAX : (int64_t)interval_ns,
		.limit = limit,
		.capacity = FAILURE_COUNTER_INLINE,
	};
	counter->times = counter->few;
}

void failure_counter_destroy(struct failure_counter *counter)
{
	if (counter->times != counter->few)
		memory_release(counter->times);
	counter->times = counter->few;
	counter->first = 0;
	counter->count = 0;
	counter->capacity = FAILURE_COUNTER_INLINE;
}

static void forget_oldest(struct failure_counter *counter)
{
	counter->first = (counter->first + 1) % counter->capacity;
	counter->count--;
}

/* Makes room for one more, if it can. */
static void grow(struct failure_counter *counter)
{
	size_t capacity = counter->capacity * 2 < counter->limit ? counter->capacity * 2 : counter->limit;
	int64_t *times = capacity > counter->capacity ? memory_allocate(capacity * sizeof *times) : NULL;

	if (times == NULL)
		return;
	for (size_t i = 0; i < counter->count; i++)
		times[i] = counter->times[(counter->first + i) % counter->capacity];
	if (counter->times != counter->few)
		memory_release(counter->times);
	counter->times = times;
	counter->first = 0;
	counter->capacity = capacity;
}

void failure_counter_add(struct failure_counter *counter, int64_t now_ns)
{
	if (counter->count == counter->capacity)
		(void)failure_counter_count(counter, now_ns);
	if (counter->count == counter->capacity)
		grow(counter);
	if (counter->count == counter->capacity)
		forget_oldest(counter);
	counter->times[(counter->first + counter->count) % counter->capacity] = now_ns;
	counter->count++;
}

size_t failure_counter_count(struct failure_counter *counter, int64_t now_ns)
{
	while (counter->count > 0 && instant_difference(now_ns, counter->times[counter->first]) >= counter->interval_ns)
		forget_oldest(counter);
	return counter->count;
}
