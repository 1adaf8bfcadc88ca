#include "sandbox/scheduler_capacity.h"

#include <string.h>

#include "base/memory.h"

bool scheduler_capacity_add_node(struct scheduler_capacity *capacity, const struct scheduler_node *node)
{
	struct scheduler_node *nodes =
		memory_resize(capacity->nodes, (capacity->node_count + 1) * sizeof *capacity->nodes);

	if (nodes == NULL)
		return false;
	capacity->nodes = nodes;
	nodes[capacity->node_count++] = *node;
	return true;
}

bool scheduler_capacity_add_pod(struct scheduler_capacity *capacity, const struct scheduler_pod *pod)
{
	struct scheduler_pod **pods =
		memory_resize(capacity->pods, (capacity->pod_count + 1) * sizeof(struct scheduler_pod *));

	if (pods == NULL)
		return false;
	capacity->pods = pods;
	pods[capacity->pod_count] = memory_allocate(sizeof *pod);
	if (pods[capacity->pod_count] == NULL)
		return false;
	*pods[capacity->pod_count++] = *pod;
	return true;
}

static bool is_named(const struct scheduler_pod *pod, struct slice name_space, struct slice name)
{
	return slice_equal_text(name_space, pod->name_space) && slice_equal_text(name, pod->name);
}

void scheduler_capacity_remove_pod(struct scheduler_capacity *capacity, struct slice name_space, struct slice name)
{
	for (size_t i = 0; i < capacity->pod_count; i++) {
		if (!is_named(capacity->pods[i], name_space, name))
			continue;
		memory_release(capacity->pods[i]);
		capacity->pods[i] = capacity->pods[--capacity->pod_count];
		return;
	}
}

void scheduler_capacity_destroy(struct scheduler_capacity *capacity)
{
	for (size_t i = 0; i < capacity->pod_count; i++)
		memory_release(capacity->pods[i]);
	memory_release(capacity->pods);
	memory_release(capacity->nodes);
	*capacity = (struct scheduler_capacity){ 0 };
}

struct scheduler_pod *scheduler_capacity_find(const struct scheduler_capacity *capacity, struct slice name_space,
                                              struct slice name)
{
	for (size_t i = 0; i < capacity->pod_count; i++)
		if (is_named(capacity->pods[i], name_space, name))
			return capacity->pods[i];
	return NULL;
}

/* A pod on an overcommitted VM counts for less than it holds (surroundings 1.3.3). */
static uint64_t counted(uint64_t reserved, uint32_t overcommit_milli)
{
	return reserved * SCHEDULER_NORMAL_OVERCOMMIT_MILLI / overcommit_milli;
}

static uint64_t subtract_to_zero(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

struct resources scheduler_capacity_free(const struct scheduler_capacity *capacity, const struct scheduler_pod *pod)
{
	uint64_t cpu = 0, memory = 0;
	struct resources total = { 0 };

	for (size_t i = 0; i < capacity->node_count; i++)
		if (strcmp(capacity->nodes[i].name, pod->node) == 0)
			total = capacity->nodes[i].total;
	for (size_t i = 0; i < capacity->pod_count; i++) {
		const struct scheduler_pod *other = capacity->pods[i];

		if (strcmp(other->node, pod->node) != 0)
			continue;
		cpu += counted(other->reserved.cpu_milli, other->overcommit_cpu_milli);
		memory += counted(other->reserved.mem_bytes, other->overcommit_memory_milli);
	}
	return (struct resources){ .cpu_milli = (uint32_t)subtract_to_zero(total.cpu_milli, cpu),
		                   .mem_bytes = subtract_to_zero(total.mem_bytes, memory) };
}

static uint64_t grant_one(uint64_t reserved, uint64_t requested, uint64_t free_amount, uint32_t overcommit_milli,
                          uint64_t unit)
{
	if (requested <= reserved || unit == 0)
		return requested < reserved ? requested : reserved;

	uint64_t room = free_amount * overcommit_milli / SCHEDULER_NORMAL_OVERCOMMIT_MILLI;
	uint64_t step = room / unit * unit;
	uint64_t missing = requested - reserved;

	return reserved + (step < missing ? step : missing);
}

void scheduler_capacity_grant(const struct scheduler_capacity *capacity, struct scheduler_pod *pod)
{
	struct resources room = scheduler_capacity_free(capacity, pod);

	pod->reserved.cpu_milli = (uint32_t)grant_one(pod->reserved.cpu_milli, pod->requested.cpu_milli, room.cpu_milli,
	                                              pod->overcommit_cpu_milli, pod->unit.cpu_milli);
	pod->reserved.mem_bytes = grant_one(pod->reserved.mem_bytes, pod->requested.mem_bytes, room.mem_bytes,
	                                    pod->overcommit_memory_milli, pod->unit.mem_bytes);
}
