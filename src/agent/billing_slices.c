/*
 * A VM's record has the open slice (a stretch of constant CPU), and the sums of the closed ones. Whether it was seen at
 * the collection before is told by that collection's number, so that nothing has to be copied or cleared in between.
 *
 * The sums begin with what rounding left at the last drain, which may be less than nothing.
 */
#include "agent/billing_slices.h"

#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"

enum { KEY_BYTES = 64 * 1024 };

struct billed_vm {
	uint64_t seen; /* the collection that saw it last */
	uint32_t cpu_milli;
	bool has_slice; /* since the last drain; the open one then stands below */
	uint64_t start_ns, end_ns;
	uint32_t slice_cpu_milli;
	double cpu_seconds;     /* of closed slices, and the remainder */
	int64_t active_ns;      /* likewise */
	unsigned drains_unseen; /* in a row */
	size_t endpoint_length;
	char endpoint_id[];
};

void billing_slices_init(struct billing_slices *slices)
{
	*slices = (struct billing_slices){ .collection = 0 };
	table_init(&slices->vms);
}

void billing_slices_destroy(struct billing_slices *slices)
{
	for (struct table_entry *entry = table_next(&slices->vms, NULL); entry != NULL;
	     entry = table_next(&slices->vms, entry))
		memory_release(entry->value);
	table_destroy(&slices->vms);
}

/* ---- collecting ---- */

static bool no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory to bill a VM");
}

static struct billed_vm *add_vm(struct billing_slices *slices, struct slice key, struct slice endpoint_id)
{
	struct billed_vm *vm = memory_allocate(sizeof *vm + endpoint_id.length);

	if (vm == NULL)
		return NULL;
	vm->endpoint_length = endpoint_id.length;
	if (endpoint_id.length > 0)
		memcpy(vm->endpoint_id, endpoint_id.data, endpoint_id.length);
	if (!table_set(&slices->vms, key, vm)) {
		memory_release(vm);
		return NULL;
	}
	return vm;
}

static struct billed_vm *find_or_add(struct billing_slices *slices, struct slice uid, struct slice endpoint_id)
{
	struct billed_vm *vm = NULL;
	struct buffer key;

	buffer_init(&key, KEY_BYTES);
	buffer_append_slice(&key, uid);
	buffer_append_char(&key, '\0');
	buffer_append_slice(&key, endpoint_id);
	if (!key.failed) {
		vm = table_find(&slices->vms, buffer_slice(&key));
		if (vm == NULL)
			vm = add_vm(slices, buffer_slice(&key), endpoint_id);
	}
	buffer_destroy(&key);
	return vm;
}

/* B5. */
static void close_slice(struct billed_vm *vm)
{
	uint64_t length_ns = vm->end_ns - vm->start_ns;
	uint64_t whole_seconds = length_ns / NS_PER_S;
	double seconds = (double)whole_seconds + (double)(length_ns % NS_PER_S) / 1e9;

	vm->cpu_seconds += seconds * ((double)vm->slice_cpu_milli / 1000);
	vm->active_ns += (int64_t)length_ns;
	vm->start_ns = vm->end_ns;
}

/* B4. */
static void add_slice(struct billed_vm *vm, uint64_t start_ns, uint64_t end_ns, uint32_t cpu_milli)
{
	if (vm->has_slice && vm->end_ns == start_ns && vm->slice_cpu_milli == cpu_milli) {
		vm->end_ns = end_ns;
		return;
	}
	if (vm->has_slice)
		close_slice(vm);
	vm->has_slice = true;
	vm->start_ns = start_ns;
	vm->end_ns = end_ns;
	vm->slice_cpu_milli = cpu_milli;
}

void billing_slices_begin(struct billing_slices *slices, uint64_t now_ns)
{
	slices->collection++;
	slices->slice_start_ns = slices->collect_ns;
	/* The clock is monotonic; were it not, nothing would be billed rather than a century. */
	slices->collect_ns = now_ns > slices->collect_ns ? now_ns : slices->collect_ns;
}

bool billing_slices_see(struct billing_slices *slices, struct slice uid, struct slice endpoint_id, uint32_t cpu_milli,
                        struct error *err)
{
	struct billed_vm *vm = find_or_add(slices, uid, endpoint_id);
	uint32_t least;

	if (vm == NULL)
		return no_memory(err);
	if (vm->seen == slices->collection)
		return true;
	least = cpu_milli < vm->cpu_milli ? cpu_milli : vm->cpu_milli;
	if (vm->seen != 0 && vm->seen == slices->collection - 1)
		add_slice(vm, slices->slice_start_ns, slices->collect_ns, least);
	vm->seen = slices->collection;
	vm->cpu_milli = cpu_milli;
	vm->drains_unseen = 0;
	return true;
}

/* ---- draining ---- */

size_t billing_slices_count(const struct billing_slices *slices)
{
	size_t count = 0;

	for (struct table_entry *entry = table_next(&slices->vms, NULL); entry != NULL;
	     entry = table_next(&slices->vms, entry))
		count += ((const struct billed_vm *)entry->value)->has_slice;
	return count;
}

/* Half away from zero (B7); what was billed too much before can't be taken back, only made up for. */
static uint64_t whole(double seconds)
{
	return seconds > 0 ? (uint64_t)round(seconds) : 0;
}

static uint64_t whole_of_ns(int64_t ns)
{
	return ns > 0 ? ((uint64_t)ns + NS_PER_S / 2) / NS_PER_S : 0;
}

static void drain_vm(struct billed_vm *vm, void (*use)(void *context, const struct billing_usage *usage), void *context)
{
	struct billing_usage usage = { .endpoint_id = slice_from(vm->endpoint_id, vm->endpoint_length) };

	close_slice(vm);
	usage.cpu_seconds = whole(vm->cpu_seconds);
	usage.active_seconds = whole_of_ns(vm->active_ns);
	vm->cpu_seconds -= (double)usage.cpu_seconds;
	vm->active_ns -= (int64_t)(usage.active_seconds * NS_PER_S);
	vm->has_slice = false;
	use(context, &usage);
}

void billing_slices_drain(struct billing_slices *slices, void (*use)(void *context, const struct billing_usage *usage),
                          void *context)
{
	for (struct table_entry *entry = table_next(&slices->vms, NULL); entry != NULL;
	     entry = table_next(&slices->vms, entry)) {
		struct billed_vm *vm = entry->value;

		if (vm->has_slice)
			drain_vm(vm, use, context);
		if (vm->seen == slices->collection)
			continue;
		if (++vm->drains_unseen <= BILLING_REMAINDER_DRAINS)
			continue;
		(void)table_remove(&slices->vms, slice_from(entry->key, entry->key_length));
		memory_release(vm);
	}
}
