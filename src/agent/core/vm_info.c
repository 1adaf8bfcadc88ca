#include "agent/core/vm_info.h"

#include <string.h>

static bool copy_name(char *to, size_t limit, struct slice name, const char *what, struct error *err)
{
	if (name.length > limit)
		return error_set(err, ERROR_LIMIT, "%s of %zu bytes is longer than %zu", what, name.length, limit);
	if (name.length > 0)
		memcpy(to, name.data, name.length);
	to[name.length] = '\0';
	return true;
}

bool vm_info_set_name(struct vm_info *vm, struct slice namespace, struct slice name, struct error *err)
{
	return copy_name(vm->namespace, VM_NAMESPACE_BYTES_MAX, namespace, "VM namespace", err) &&
	       copy_name(vm->name, VM_NAME_BYTES_MAX, name, "VM name", err);
}

static struct resources amount_of(const struct vm_info *vm, uint32_t cpu_milli, uint16_t slots)
{
	return (struct resources){ .cpu_milli = cpu_milli, .mem_bytes = vm->mem.slot_bytes * slots };
}

struct resources vm_info_using(const struct vm_info *vm)
{
	return amount_of(vm, vm->cpu.use_milli, vm->mem.use_slots);
}

struct resources vm_info_min(const struct vm_info *vm)
{
	return amount_of(vm, vm->cpu.min_milli, vm->mem.min_slots);
}

struct resources vm_info_max(const struct vm_info *vm)
{
	return amount_of(vm, vm->cpu.max_milli, vm->mem.max_slots);
}

bool vm_info_set_using(struct vm_info *vm, struct resources amount, struct error *err)
{
	if (vm->mem.slot_bytes == 0)
		return error_set(err, ERROR_INVARIANT, "division by zero: memory slots have a size");
	vm->cpu.use_milli = amount.cpu_milli;
	vm->mem.use_slots = (uint16_t)(amount.mem_bytes / vm->mem.slot_bytes);
	return true;
}
