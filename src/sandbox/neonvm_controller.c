#include "sandbox/neonvm_controller.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/neonvm_internal.h"

/* ---- which VMs there are ---- */

static struct vm *find_vm(const struct neonvm_controller *controller, struct slice name)
{
	for (struct vm *vm = controller->vms; vm != NULL; vm = vm->next)
		if (!vm->gone && slice_equal_text(name, vm->name))
			return vm;
	return NULL;
}

static void copy_name(char to[NEONVM_NAME_BYTES], struct slice from)
{
	snprintf(to, NEONVM_NAME_BYTES, "%.*s", SLICE_ARGS(from));
}

static struct vm *find_or_make_vm(struct neonvm_controller *controller, struct slice name_space, struct slice name,
                                  struct error *err)
{
	struct vm *vm = find_vm(controller, name);

	if (vm != NULL && slice_equal_text(name_space, vm->name_space))
		return vm;
	if (name.length >= NEONVM_NAME_BYTES || name_space.length >= NEONVM_NAME_BYTES) {
		error_set(err, ERROR_LIMIT, "the name of a VM is too long");
		return NULL;
	}
	vm = memory_allocate(sizeof *vm);
	if (vm == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a VM");
		return NULL;
	}
	vm->controller = controller;
	copy_name(vm->name_space, name_space);
	copy_name(vm->name, name);
	vm->next = controller->vms;
	controller->vms = vm;
	return vm;
}

void neonvm_free_vm(struct vm *vm)
{
	struct vm **link = &vm->controller->vms;

	while (*link != vm)
		link = &(*link)->next;
	*link = vm->next;
	loop_timer_stop(vm->controller->loop, &vm->pass_timer);
	loop_timer_stop(vm->controller->loop, &vm->ready_timer);
	memory_release(vm);
}

/* ---- when ---- */

uint64_t neonvm_scaled(const struct neonvm_controller *controller, uint64_t ms)
{
	return (uint64_t)((double)(ms * NS_PER_MS) / controller->speed);
}

void neonvm_pass_later(struct vm *vm, uint64_t ms)
{
	if (vm->soon)
		return;
	loop_timer_start(vm->controller->loop, &vm->pass_timer, neonvm_scaled(vm->controller, ms), neonvm_pass, vm);
}

static void pass_soon(struct vm *vm)
{
	struct loop *loop = vm->controller->loop;

	if (vm->unplugging) {
		vm->changed = true;
		return;
	}
	if (vm->soon || vm->gone)
		return;
	neonvm_pass_later(vm, rng_between(loop_rng(loop), NEONVM_PASS_LOW_MS, NEONVM_PASS_HIGH_MS + 1));
	vm->soon = true;
}

static void on_vm_change(struct neonvm_controller *controller, const struct object_change *change)
{
	struct error err;
	struct vm *vm = find_or_make_vm(controller, change->after->name_space, change->after->name, &err);

	if (vm == NULL)
		return; /* without memory, nobody looks after this VM */
	if (change->type != OBJECT_DELETED) {
		vm->in_store = true;
		pass_soon(vm);
		return;
	}
	vm->gone = true;
	/* It may be the VM's own pass that removed it: what is left is done from the loop. */
	loop_timer_start(controller->loop, &vm->pass_timer, 0, neonvm_pass, vm);
}

static void on_change(void *context, const struct object_change *change)
{
	struct neonvm_controller *controller = context;
	const struct stored_object *object = change->after;

	if (object->kind == resource_kind(RESOURCE_VIRTUAL_MACHINES)) {
		on_vm_change(controller, change);
	} else if (object->kind == resource_kind(RESOURCE_PODS)) {
		const struct slice *name =
			json_pairs_find(object->labels, object->label_count, SLICE("vm.neon.tech/name"));
		struct vm *vm = name != NULL ? find_vm(controller, *name) : NULL;

		if (vm != NULL && vm->in_store && slice_equal_text(object->name_space, vm->name_space))
			pass_soon(vm);
	}
}

/* ---- life ---- */

struct neonvm_controller *neonvm_controller_create(struct loop *loop, struct object_store *store, double speed,
                                                   const struct neonvm_handler *handler, void *context,
                                                   struct error *err)
{
	struct neonvm_controller *controller = memory_allocate(sizeof *controller);

	if (controller == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a controller");
		return NULL;
	}
	controller->loop = loop;
	controller->store = store;
	controller->speed = speed > 0 ? speed : 1;
	controller->handler = *handler;
	controller->context = context;
	controller->observer = (struct object_observer){ .on_change = on_change, .context = controller };
	object_store_observe(store, &controller->observer);
	return controller;
}

void neonvm_controller_be_late_2023(struct neonvm_controller *controller)
{
	controller->late_2023 = true;
}

void neonvm_controller_destroy(struct neonvm_controller *controller)
{
	if (controller == NULL)
		return;
	object_store_ignore(&controller->observer);
	while (controller->vms != NULL)
		neonvm_free_vm(controller->vms);
	memory_release(controller);
}

/* ---- machines ---- */

static uint64_t elapsed_ns(const struct vm *vm)
{
	return (uint64_t)((double)(loop_now_ns(vm->controller->loop) - vm->machine.memory_since_ns) *
	                  vm->controller->speed);
}

uint64_t neonvm_memory(const struct vm *vm)
{
	return machine_memory(&vm->machine, elapsed_ns(vm));
}

void neonvm_ask_memory(struct vm *vm, uint64_t bytes)
{
	machine_ask_memory(&vm->machine, bytes, loop_now_ns(vm->controller->loop), elapsed_ns(vm));
}

void neonvm_tell(struct vm *vm, const char *phase, bool settled)
{
	/* The handler may have the VM deleted: nothing of it is touched after the first call. */
	const struct neonvm_handler handler = vm->controller->handler;
	void *context = vm->controller->context;
	uint32_t cpu_milli = machine_cpu_milli(&vm->machine);
	uint64_t memory = neonvm_memory(vm);
	bool up = strcmp(phase, "Running") == 0 || strcmp(phase, "Scaling") == 0;
	bool resized =
		up && (cpu_milli != vm->told_cpu_milli || memory != vm->told_memory || (settled && !vm->told_settled));
	bool moved = strcmp(phase, vm->told_phase) != 0;
	char name[NEONVM_NAME_BYTES];

	memcpy(name, vm->name, sizeof name);
	snprintf(vm->told_phase, sizeof vm->told_phase, "%s", phase);
	vm->told_settled = settled;
	if (up) {
		vm->told_cpu_milli = cpu_milli;
		vm->told_memory = memory;
	}
	if (moved && handler.on_phase != NULL)
		handler.on_phase(context, name, phase);
	if (resized && handler.on_resized != NULL)
		handler.on_resized(context, name, cpu_milli, memory, settled);
}

/* ---- asked from outside ---- */

static bool no_such_vm(struct slice name, struct error *err)
{
	return error_set(err, ERROR_REFUSED, "there is no VM \"%.*s\"", SLICE_ARGS(name));
}

static void copy_place(struct place *to, const struct neonvm_place *from)
{
	copy_name(to->node, slice_of(from->node));
	copy_name(to->pod_ip, slice_of(from->pod_ip));
}

bool neonvm_controller_place(struct neonvm_controller *controller, struct slice name_space, struct slice name,
                             const struct neonvm_place *place, struct error *err)
{
	struct vm *vm = find_or_make_vm(controller, name_space, name, err);

	if (vm == NULL)
		return false;
	copy_place(&vm->place, place);
	if (vm->in_store)
		pass_soon(vm);
	return true;
}

const char *neonvm_controller_run(struct neonvm_controller *controller, struct slice name, const char *pod_name,
                                  uint32_t cpu_milli, uint64_t memory_bytes)
{
	struct vm *vm = find_vm(controller, name);

	if (vm == NULL)
		return NULL;
	machine_set_cpu(&vm->machine, cpu_milli);
	vm->machine.memory_from = vm->machine.memory_target = memory_bytes;
	vm->told_cpu_milli = cpu_milli;
	vm->told_memory = memory_bytes;
	vm->told_settled = true;
	snprintf(vm->told_phase, sizeof vm->told_phase, "Running");
	if (pod_name != NULL)
		copy_name(vm->pod, slice_of(pod_name));
	else
		neonvm_pod_make_name(vm, vm->pod);
	return vm->pod;
}

bool neonvm_controller_add_pod(struct neonvm_controller *controller, struct slice name, struct error *err)
{
	struct vm *vm = find_vm(controller, name);
	struct stored_object *object = NULL;
	struct object_edit edit;
	bool ok;

	if (vm != NULL)
		object = object_store_find(controller->store, resource_kind(RESOURCE_VIRTUAL_MACHINES),
		                           slice_of(vm->name_space), name);
	if (object == NULL)
		return no_such_vm(name, err);
	if (!object_edit_begin(&edit, object, err))
		return false;
	ok = neonvm_pod_create(vm, edit.root, vm->pod, &vm->place, err) &&
	     neonvm_pod_set_running(vm, vm->pod, vm->place.pod_ip, err);
	object_edit_end(&edit);
	return ok;
}

bool neonvm_controller_plugged(const struct neonvm_controller *controller, struct slice name, uint32_t *ret_cpu_milli,
                               uint64_t *ret_memory_bytes)
{
	const struct vm *vm = find_vm(controller, name);

	if (vm == NULL)
		return false;
	*ret_cpu_milli = machine_cpu_milli(&vm->machine);
	*ret_memory_bytes = neonvm_memory(vm);
	return true;
}

bool neonvm_controller_set_shrink(struct neonvm_controller *controller, struct slice name, uint64_t floor_bytes,
                                  uint64_t bytes_per_s)
{
	struct vm *vm = find_vm(controller, name);

	if (vm == NULL)
		return false;
	/* What has been given back so far stays given back. */
	vm->machine.memory_from = neonvm_memory(vm);
	vm->machine.memory_since_ns = loop_now_ns(controller->loop);
	vm->machine.shrink_floor = floor_bytes;
	vm->machine.shrink_bytes_per_s = bytes_per_s;
	return true;
}

bool neonvm_controller_set_reachable(struct neonvm_controller *controller, struct slice name, bool reachable)
{
	struct vm *vm = find_vm(controller, name);

	if (vm == NULL)
		return false;
	vm->unreachable = !reachable;
	return true;
}

bool neonvm_controller_kill_pod(struct neonvm_controller *controller, struct slice name, struct error *err)
{
	struct vm *vm = find_vm(controller, name);

	if (vm == NULL)
		return no_such_vm(name, err);
	if (vm->pod[0] == '\0')
		return error_set(err, ERROR_REFUSED, "VM \"%s\" has no runner pod", vm->name);
	return neonvm_pod_set_failed(vm, vm->pod, err);
}

bool neonvm_controller_migrate(struct neonvm_controller *controller, struct slice name,
                               const struct neonvm_place *place, struct error *err)
{
	struct vm *vm = find_vm(controller, name);

	if (vm == NULL)
		return no_such_vm(name, err);
	if (vm->migration_wanted)
		return error_set(err, ERROR_REFUSED, "a migration of VM \"%s\" is under way", vm->name);
	vm->migration_wanted = true;
	copy_place(&vm->target, place);
	pass_soon(vm);
	return true;
}

struct slice neonvm_controller_name_space(const struct neonvm_controller *controller, struct slice name)
{
	const struct vm *vm = find_vm(controller, name);

	return slice_of(vm != NULL && vm->in_store ? vm->name_space : NULL);
}
