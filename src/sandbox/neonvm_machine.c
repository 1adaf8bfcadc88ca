/*
 * The hypervisor of a VM, as far as it can be seen: whole CPUs, a quota on them, and memory that grows at once but shrinks as the guest likes.
 */
#include "base/clock.h"
#include "sandbox/neonvm_internal.h"

enum { CPU_MILLI = 1000, MEMORY_BLOCK_BYTES = 8 * 1024 * 1024 };

uint32_t machine_cpu_milli(const struct machine *machine)
{
	uint32_t plugged = machine->cpus * CPU_MILLI;

	return machine->quota_milli < plugged ? machine->quota_milli : plugged;
}

void machine_set_cpu(struct machine *machine, uint32_t milli)
{
	machine->cpus = milli / CPU_MILLI + (milli % CPU_MILLI != 0 ? 1 : 0);
	machine->quota_milli = milli;
}

uint64_t machine_memory(const struct machine *machine, uint64_t elapsed_ns)
{
	uint64_t lowest =
		machine->memory_target > machine->shrink_floor ? machine->memory_target : machine->shrink_floor;
	double given_back = (double)machine->shrink_bytes_per_s * ((double)elapsed_ns / NS_PER_S);
	uint64_t memory;

	if (machine->memory_target >= machine->memory_from)
		return machine->memory_target;
	if (lowest > machine->memory_from)
		lowest = machine->memory_from;
	if (machine->shrink_bytes_per_s == 0 || given_back >= (double)(machine->memory_from - lowest))
		return lowest;
	memory = machine->memory_from - (uint64_t)given_back;
	return (memory + MEMORY_BLOCK_BYTES - 1) / MEMORY_BLOCK_BYTES * MEMORY_BLOCK_BYTES;
}

void machine_ask_memory(struct machine *machine, uint64_t bytes, uint64_t now_ns, uint64_t elapsed_ns)
{
	if (bytes == machine->memory_target)
		return;
	machine->memory_from = machine_memory(machine, elapsed_ns);
	machine->memory_target = bytes;
	machine->memory_since_ns = now_ns;
}
