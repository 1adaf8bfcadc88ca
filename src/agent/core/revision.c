#include "agent/core/revision.h"

#include "agent/core/instant.h"

struct revision revision_min(struct revision a, struct revision b)
{
	return a.value < b.value ? a : b;
}

struct revision_with_time revision_with_time(struct revision revision, int64_t instant_ns)
{
	return (struct revision_with_time){ .revision = revision, .updated_at_ns = instant_ns };
}

void revision_propagate(int64_t now_ns, struct revision_with_time target, struct revision *slot,
                        revision_latency_callback *callback, void *context)
{
	if (slot->value >= target.revision.value)
		return;
	if (callback != NULL)
		callback(context, instant_difference(now_ns, target.updated_at_ns), target.revision.flags);
	*slot = target.revision;
}

/* Revision values wrap as the reference's do: signed overflow is undefined in C, unsigned isn't. */
static int64_t value_plus(int64_t value, uint64_t increment)
{
	return (int64_t)((uint64_t)value + increment);
}

static size_t pending_index(const struct revision_source *source, uint64_t position)
{
	return (source->first + position) % REVISION_PENDING_MAX;
}

void revision_source_init(struct revision_source *source, int64_t initial_revision)
{
	*source = (struct revision_source){ .offset = value_plus(initial_revision, 1) };
}

static void forget_oldest(struct revision_source *source, uint16_t count)
{
	source->first = (uint16_t)pending_index(source, count);
	source->count = (uint16_t)(source->count - count);
	source->offset = value_plus(source->offset, count);
}

struct revision revision_source_next(struct revision_source *source, int64_t now_ns, uint64_t flags)
{
	if (source->silent)
		return (struct revision){ 0 };

	struct revision next = { .value = value_plus(source->offset, source->count), .flags = flags };

	if (source->count == REVISION_PENDING_MAX)
		forget_oldest(source, 1);
	source->pending_ns[pending_index(source, source->count)] = now_ns;
	source->count++;
	return next;
}

bool revision_source_observe(struct revision_source *source, int64_t moment_ns, struct revision revision,
                             revision_latency_callback *callback, void *context, struct error *err)
{
	if (source->silent || revision.value < source->offset)
		return true;

	uint64_t position = (uint64_t)revision.value - (uint64_t)source->offset;

	if (position >= source->count)
		return error_set(err, ERROR_INVARIANT, "revision is in the future");
	if (callback != NULL) {
		int64_t handed_out_ns = source->pending_ns[pending_index(source, position)];

		callback(context, instant_difference(moment_ns, handed_out_ns), revision.flags);
	}
	forget_oldest(source, (uint16_t)(position + 1));
	return true;
}
