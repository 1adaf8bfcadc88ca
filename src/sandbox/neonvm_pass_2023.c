/*
 * How the controller of late 2023 scaled (spec surroundings 3.4, last paragraph, and 3.2.2): only whole CPUs and memory go
 * through Scaling, one step of each in a pass; the quota is set in Running. Memory goes in slots, which the guest gives
 * back or doesn't.
 */
#include "sandbox/neonvm_pass.h"

void neonvm_pass_set_quota(struct pass *pass)
{
	struct machine *machine = &pass->vm->machine;
	uint32_t wanted_milli = pass->view.cpu_use_milli;

	machine->quota_milli =
		machine->cpus == neonvm_whole_cpus(wanted_milli) ? wanted_milli : machine->cpus * NEONVM_CPU_MILLI;
}

static void step_cpu(struct machine *machine, uint32_t wanted)
{
	if (machine->cpus < wanted)
		machine->cpus++;
	else if (machine->cpus > wanted)
		machine->cpus--;
	machine->quota_milli = machine->cpus * NEONVM_CPU_MILLI;
}

static void step_memory(struct pass *pass)
{
	uint64_t there = neonvm_memory(pass->vm);
	uint64_t wanted = neonvm_wanted_memory(&pass->view);

	if (there < wanted)
		neonvm_ask_memory(pass->vm, there + pass->view.slot_bytes);
	else if (there > wanted)
		neonvm_ask_memory(pass->vm, there - pass->view.slot_bytes);
}

void neonvm_pass_scale_late_2023(struct pass *pass)
{
	struct vm *vm = pass->vm;
	uint32_t cpus = neonvm_whole_cpus(pass->view.cpu_use_milli);
	bool cpu_done = vm->machine.cpus == cpus;
	uint64_t there = neonvm_memory(vm);

	if (!cpu_done)
		step_cpu(&vm->machine, cpus);
	step_memory(pass);
	neonvm_pass_set_quota(pass);
	neonvm_pass_set_cpus(pass, machine_cpu_milli(&vm->machine));
	neonvm_pass_set_memory(pass, there);
	if (cpu_done && there == neonvm_wanted_memory(&pass->view))
		neonvm_pass_set_phase(pass, "Running");
}

bool neonvm_pass_give_up_unplugging(struct pass *pass)
{
	struct vm *vm = pass->vm;
	uint64_t there = neonvm_memory(vm);
	int64_t slots = (int64_t)(there / pass->view.slot_bytes);
	struct json_node *memory;

	/* What was asked for before is there, or is still on its way out. */
	if (vm->machine.memory_target >= there || vm->machine.shrink_bytes_per_s != 0)
		return false;
	neonvm_ask_memory(vm, there);
	if (there % pass->view.slot_bytes != 0 || slots == pass->view.slots_use)
		return false;
	memory = json_tree_find(pass->edit.root, "/spec/guest/memorySlots");
	pass->ok = memory != NULL && json_tree_set(memory, SLICE("use"), json_tree_number(&pass->edit.arena, slots)) &&
	           pass->ok;
	return true;
}
