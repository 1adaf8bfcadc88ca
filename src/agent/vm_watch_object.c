#include "agent/vm_watch_object.h"

#include <string.h>

#include "base/memory.h"

/* ---- strings behind a struct ---- */

static struct slice put(char **at, struct slice text)
{
	struct slice copy = slice_from(*at, text.length);

	if (text.length > 0)
		memcpy(*at, text.data, text.length);
	*at += text.length;
	return copy;
}

/* ---- what an event tells ---- */

static struct vm_snapshot *make_snapshot(const struct vm_virtual_machine *vm, const struct vm_info *info,
                                         enum vm_info_oddity oddity)
{
	struct slice endpoint_id = vm_label(vm, VM_LABEL_ENDPOINT_ID);
	size_t length = vm->status.pod_name.length + vm->status.pod_ip.length + endpoint_id.length;
	struct vm_snapshot *snapshot = memory_allocate(sizeof *snapshot + length);
	char *at;

	if (snapshot == NULL)
		return NULL;
	at = (char *)(snapshot + 1);
	snapshot->info = *info;
	snapshot->oddity = oddity;
	snapshot->pod_name = put(&at, vm->status.pod_name);
	snapshot->pod_ip = put(&at, vm->status.pod_ip);
	snapshot->endpoint_id = put(&at, endpoint_id);
	return snapshot;
}

/* False when memory is short. */
static bool read_info(struct node_vm *here, const struct vm_virtual_machine *vm, enum agent_generation generation,
                      struct arena *arena)
{
	struct vm_info info;
	enum vm_info_oddity oddity;
	struct error problem;

	if (vm_info_extract(vm, generation, arena, &info, &oddity, &problem)) {
		here->snapshot = make_snapshot(vm, &info, oddity);
		return here->snapshot != NULL;
	}
	if (problem.code == ERROR_NO_MEMORY)
		return false;
	here->problem = memory_allocate(sizeof *here->problem);
	if (here->problem == NULL)
		return false;
	*here->problem = problem;
	return true;
}

/* ---- what the gauges show ---- */

static double cores(uint32_t milli)
{
	return (double)milli / 1000;
}

static struct vm_gauges gauges_of(const struct node_vm *here, const struct vm_virtual_machine *vm, struct arena *arena)
{
	const struct vm_guest *guest = &vm->spec.guest;
	const struct vm_guest_memory_slots *slots = &guest->memory_slots;
	double slot_bytes = (double)guest->memory_slot_size_bytes;
	struct vm_bounds bounds;
	struct error ignored; /* bounds that can't be read aren't shown */
	bool readable = vm_bounds_read(vm, AGENT_GENERATION_B, arena, &bounds, &ignored) && bounds.present;
	struct vm_gauges gauges = {
		.namespace = here->namespace,
		.name = here->name,
		.endpoint_id = here->endpoint_id,
		.project_id = here->project_id,
		.spec_cpu = { cores(guest->cpus.min_milli), cores(guest->cpus.max_milli),
		              cores(guest->cpus.use_milli) },
		.spec_mem = { slots->min * slot_bytes, slots->max * slot_bytes, slots->use * slot_bytes },
		.has_status_cpu = vm->status.has_cpus_milli,
		.status_cpu = cores(vm->status.cpus_milli),
		.has_status_mem = vm->status.has_memory_size_bytes,
		.status_mem = (double)vm->status.memory_size_bytes,
		.restart_count = vm->status.restart_count,
		.has_extra_ip = vm->status.extra_net_ip.length > 0,
		.has_autoscaling = readable,
	};

	if (readable) {
		gauges.autoscaling_cpu.min = cores(bounds.min_cpu_milli);
		gauges.autoscaling_cpu.max = cores(bounds.max_cpu_milli);
		gauges.autoscaling_mem.min = (double)bounds.min_mem_bytes;
		gauges.autoscaling_mem.max = (double)bounds.max_mem_bytes;
	}
	return gauges;
}

/* ---- VMs ---- */

/* Alive, with an address, and wanted (5.2); that it is on this node is known. */
static bool is_ours(const struct vm_virtual_machine *vm, const struct vm_watch_filter *filter)
{
	static const char *const phases[] = { "Running", "PreMigrating", "Scaling" };
	bool alive = false;

	for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
		alive = alive || slice_equal_text(vm->status.phase, phases[i]);
	return alive && vm->status.pod_ip.length > 0 && vm_label_is_true(vm, VM_LABEL_ENABLED) &&
	       slice_equal(vm->spec.scheduler_name, filter->scheduler_name);
}

static void release_node_vm(struct node_vm *here)
{
	if (here == NULL)
		return;
	memory_release(here->snapshot);
	memory_release(here->problem);
	memory_release(here);
}

static struct node_vm *make_node_vm(const struct vm_virtual_machine *vm, const struct vm_watch_filter *filter,
                                    struct arena *arena)
{
	const struct slice *billing = vm_annotation(vm, VM_ANNOTATION_BILLING_ENDPOINT_ID);
	const struct slice texts[] = { vm->metadata.namespace,
		                       vm->metadata.name,
		                       vm->status.phase,
		                       vm->status.pod_name,
		                       vm_label(vm, VM_LABEL_ENDPOINT_ID),
		                       vm_label(vm, VM_LABEL_PROJECT_ID),
		                       billing != NULL ? *billing : slice_from(NULL, 0) };
	size_t length = 0;
	struct node_vm *here;
	char *at;

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		length += texts[i].length;
	here = memory_allocate(sizeof *here + length);
	if (here == NULL)
		return NULL;
	at = (char *)(here + 1);
	here->namespace = put(&at, texts[0]);
	here->name = put(&at, texts[1]);
	here->phase = put(&at, texts[2]);
	here->pod_name = put(&at, texts[3]);
	here->endpoint_id = put(&at, texts[4]);
	here->project_id = put(&at, texts[5]);
	here->billing_endpoint_id = put(&at, texts[6]);
	here->has_billing_endpoint_id = billing != NULL;
	here->autoscaling_enabled = vm_label_is_true(vm, VM_LABEL_ENABLED);
	here->has_status_cpu = vm->status.has_cpus_milli;
	here->status_cpu_milli = vm->status.cpus_milli;
	here->ours = is_ours(vm, filter);
	here->gauges = gauges_of(here, vm, arena);
	if (!read_info(here, vm, filter->generation, arena)) {
		release_node_vm(here);
		return NULL;
	}
	return here;
}

void watched_vm_release(struct watched_vm *vm)
{
	if (vm == NULL)
		return;
	release_node_vm(vm->here);
	memory_release(vm);
}

struct watched_vm *watched_vm_decode(struct slice json, const struct vm_watch_filter *filter, struct arena *arena,
                                     struct slice *ret_name, struct error *err)
{
	struct vm_virtual_machine vm;
	struct watched_vm *watched;
	char *at;

	arena_reset(arena);
	if (!vm_virtual_machine_from_json(json, arena, &vm, err))
		return NULL;
	if (vm.metadata.uid.length == 0) {
		error_set(err, ERROR_SYNTAX, "a VirtualMachine without uid");
		return NULL;
	}
	watched = memory_allocate(sizeof *watched + vm.metadata.uid.length);
	if (watched == NULL)
		goto no_memory;
	at = (char *)(watched + 1);
	watched->uid = put(&at, vm.metadata.uid);
	if (slice_equal(vm.status.node, filter->node_name)) {
		watched->here = make_node_vm(&vm, filter, arena);
		if (watched->here == NULL)
			goto no_memory;
	}
	*ret_name = vm.metadata.name;
	return watched;
no_memory:
	watched_vm_release(watched);
	error_set(err, ERROR_NO_MEMORY, "no memory for a VirtualMachine");
	return NULL;
}
