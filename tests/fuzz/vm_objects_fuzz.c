/*
 * Any bytes as a VirtualMachine in the cluster, whose labels and annotations users write: what the agent of either
 * generation makes of it. Checked: it is read the same way twice; one that is ours has either all that scaling needs, within
 * its bounds, or a reason why not; what is kept is a copy.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vm_watch_object.h"
#include "base/buffer.h"
#include "base/memory.h"

enum { MAX_BYTES = 256 * 1024, ARENA_BYTES = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_snapshot(const struct vm_snapshot *snapshot)
{
	const struct vm_info *info = &snapshot->info;

	require(info->mem.slot_bytes > 0);
	require(memchr(info->name, '\0', sizeof info->name) != NULL);
	require(memchr(info->namespace, '\0', sizeof info->namespace) != NULL);
	if (snapshot->oddity == VM_INFO_FINE)
		require(!resources_has_less(vm_info_using(info), vm_info_min(info)));
	else
		require(vm_info_oddity_text(snapshot->oddity)[0] != '\0');
}

static void check_range(const struct vm_gauge_range *range)
{
	require(!isnan(range->min) && !isnan(range->max) && !isnan(range->use));
}

static void check_vm(const struct watched_vm *vm)
{
	const struct node_vm *here = vm->here;

	require(vm->uid.length > 0);
	if (here == NULL)
		return;
	require(!here->ours || (here->snapshot != NULL) != (here->problem != NULL));
	require(here->problem == NULL || here->problem->text[0] != '\0');
	if (here->snapshot != NULL)
		check_snapshot(here->snapshot);
	check_range(&here->gauges.spec_cpu);
	check_range(&here->gauges.spec_mem);
}

static struct watched_vm *read_vm(struct slice text, enum agent_generation generation)
{
	const struct vm_watch_filter filter = { .node_name = SLICE("node-a"),
		                                .scheduler_name = SLICE("autoscale-scheduler"),
		                                .generation = generation };
	char *copy = memory_copy_text(text.data != NULL ? text.data : "", text.length);
	struct error err = { .code = ERROR_NONE };
	struct watched_vm *vm;
	struct arena arena;
	struct slice name;

	require(copy != NULL);
	arena_init(&arena, ARENA_BYTES);
	vm = watched_vm_decode(slice_from(copy, text.length), &filter, &arena, &name, &err);
	require(vm != NULL || err.text[0] != '\0');
	/* Neither the text nor the arena may be needed any more: a sanitizer sees who does. */
	arena_destroy(&arena);
	memory_release(copy);
	if (vm != NULL)
		check_vm(vm);
	return vm;
}

static void compare(const struct watched_vm *vm, const struct watched_vm *again)
{
	const struct node_vm *a = vm->here, *b = again->here;

	require(slice_equal(vm->uid, again->uid) && (a == NULL) == (b == NULL));
	if (a == NULL)
		return;
	require(slice_equal(a->name, b->name) && slice_equal(a->phase, b->phase) && a->ours == b->ours);
	require((a->snapshot == NULL) == (b->snapshot == NULL));
	if (a->snapshot != NULL)
		require(resources_equal(vm_info_using(&a->snapshot->info), vm_info_using(&b->snapshot->info)));
	if (a->problem != NULL)
		require(b->problem != NULL && strcmp(a->problem->text, b->problem->text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);
	unsigned long blocks = memory_block_count();

	if (size > MAX_BYTES)
		return 0;
	for (enum agent_generation generation = AGENT_GENERATION_B; generation <= AGENT_GENERATION_A; generation++) {
		struct watched_vm *vm = read_vm(text, generation);
		struct watched_vm *again = read_vm(text, generation);

		require((vm == NULL) == (again == NULL));
		if (vm != NULL)
			compare(vm, again);
		watched_vm_release(vm);
		watched_vm_release(again);
	}
	require(memory_block_count() == blocks);
	return 0;
}
