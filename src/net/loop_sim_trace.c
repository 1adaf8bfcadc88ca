/* Chance, and what tells of a run: the counts of faults, the hash of everything that happens, the last events. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "net/loop_sim_internal.h"

bool sim_chance(struct sim_world *world, unsigned per_million)
{
	return per_million != 0 && rng_between(&world->rng, 0, SIM_MILLION) < per_million;
}

void sim_count_fault(struct sim_world *world, enum sim_fault fault)
{
	world->fault_counts[fault]++;
}

uint64_t sim_world_fault_count(const struct sim_world *world, enum sim_fault fault)
{
	return world->fault_counts[fault];
}

const char *sim_fault_name(enum sim_fault fault)
{
	static const char *const NAMES[SIM_FAULTS] = {
		[SIM_FAULT_LOST] = "lost segments",
		[SIM_FAULT_STALLED] = "stalled segments",
		[SIM_FAULT_SPLIT] = "split segments",
		[SIM_FAULT_SINGLE_BYTE] = "one-byte reads",
		[SIM_FAULT_UNMERGED] = "unmerged reads",
		[SIM_FAULT_SHORT_WRITE] = "short writes",
		[SIM_FAULT_RESET] = "resets",
		[SIM_FAULT_SILENT] = "silent deaths",
		[SIM_FAULT_REFUSED_CONNECT] = "refused connects",
		[SIM_FAULT_FAILED_ACCEPT] = "failed accepts",
		[SIM_FAULT_CUT_ANSWER] = "cut answers",
		[SIM_FAULT_PARTITION] = "partitions",
		[SIM_FAULT_FREEZE] = "freezes",
		[SIM_FAULT_CRASH] = "crashes",
		[SIM_FAULT_CLOCK_STEP] = "clock steps",
		[SIM_FAULT_FAILED_CALL] = "failed calls",
	};

	return NAMES[fault];
}

void sim_hash_value(struct sim_world *world, uint64_t value)
{
	world->hash = (world->hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	world->hash ^= world->hash >> 29;
}

void sim_hash_bytes(struct sim_world *world, const void *data, size_t length)
{
	const char *bytes = data;

	sim_hash_value(world, length);
	for (; length >= sizeof(uint64_t); length -= sizeof(uint64_t), bytes += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, bytes, sizeof word);
		sim_hash_value(world, word);
	}
	for (; length > 0; length--)
		sim_hash_value(world, (unsigned char)*bytes++);
}

void sim_world_note(struct sim_world *world, const char *format, ...)
{
	char *line = world->trace[world->trace_count % SIM_TRACE_KEPT];
	va_list arguments;
	int used = snprintf(line, SIM_TRACE_TEXT_BYTES, "%12.6f ", (double)world->now_ns / (double)NS_PER_S);

	if (used < 0)
		return;
	va_start(arguments, format);
	(void)vsnprintf(line + used, SIM_TRACE_TEXT_BYTES - (size_t)used, format, arguments);
	va_end(arguments);
	world->trace_count++;
	sim_hash_bytes(world, line, strlen(line));
	sim_hash_value(world, world->now_ns);
	if (world->follower != NULL)
		world->follower(world->follower_context, line);
}

uint64_t sim_world_hash(const struct sim_world *world)
{
	return world->hash;
}

uint64_t sim_world_event_count(const struct sim_world *world)
{
	return world->trace_count;
}

void sim_world_last_events(const struct sim_world *world, void (*line)(void *context, const char *text), void *context)
{
	uint64_t first = world->trace_count > SIM_TRACE_KEPT ? world->trace_count - SIM_TRACE_KEPT : 0;

	for (uint64_t i = first; i < world->trace_count; i++)
		line(context, world->trace[i % SIM_TRACE_KEPT]);
}

void sim_world_follow(struct sim_world *world, void (*line)(void *context, const char *text), void *context)
{
	world->follower = line;
	world->follower_context = context;
}
