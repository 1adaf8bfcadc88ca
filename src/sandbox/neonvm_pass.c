/*
 * A pass: one look at a VM, at most one write of its object, and the copies on its pod (spec surroundings 3.4 … 3.6). Whatever was written, and
 * whatever changes at its pod, leads to another pass soon; nothing written, to one after a while.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "codec/quantity.h"
#include "codec/rfc3339.h"
#include "sandbox/neonvm_pass.h"

/* ---- writing status ---- */

static void set(struct pass *pass, const char *key, struct json_node *value)
{
	pass->ok = json_tree_set(pass->status, slice_of(key), value) && pass->ok;
}

static void set_text(struct pass *pass, const char *key, const char *text)
{
	set(pass, key, json_tree_string(&pass->edit.arena, slice_of(text)));
}

void neonvm_pass_set_phase(struct pass *pass, const char *phase)
{
	pass->phase = slice_of(phase);
	set_text(pass, "phase", phase);
}

void neonvm_pass_set_cpus(struct pass *pass, uint32_t milli)
{
	struct buffer text;

	if (milli % NEONVM_CPU_MILLI == 0) {
		set(pass, "cpus", json_tree_number(&pass->edit.arena, milli / NEONVM_CPU_MILLI));
		return;
	}
	buffer_init(&text, 64);
	milli_cpu_print_quantity(milli, &text);
	set(pass, "cpus", json_tree_string(&pass->edit.arena, buffer_slice(&text)));
	buffer_destroy(&text);
}

void neonvm_pass_set_memory(struct pass *pass, uint64_t bytes)
{
	struct buffer text;

	buffer_init(&text, 64);
	bytes_print(bytes, &text);
	set(pass, "memorySize", json_tree_string(&pass->edit.arena, buffer_slice(&text)));
	buffer_destroy(&text);
}

static struct json_node *now_text(struct pass *pass)
{
	struct buffer text;
	struct json_node *node;

	buffer_init(&text, 64);
	rfc3339_print_seconds(loop_wall_ns(pass->vm->controller->loop), &text);
	node = json_tree_string(&pass->edit.arena, buffer_slice(&text));
	buffer_destroy(&text);
	return node;
}

static void set_condition(struct pass *pass, const char *status, const char *message)
{
	struct arena *arena = &pass->edit.arena;
	struct json_node *conditions = json_tree_array(arena);
	struct json_node *condition = json_tree_object(arena);

	pass->ok = json_tree_set(condition, SLICE("lastTransitionTime"), now_text(pass)) &&
	           json_tree_set_text(arena, condition, SLICE("message"), slice_of(message)) &&
	           json_tree_set_text(arena, condition, SLICE("reason"), SLICE("Reconciling")) &&
	           json_tree_set_text(arena, condition, SLICE("status"), slice_of(status)) &&
	           json_tree_set_text(arena, condition, SLICE("type"), SLICE("Available")) &&
	           json_tree_append(conditions, condition) && pass->ok;
	set(pass, "conditions", conditions);
}

/* At the end of every pass whose phase is Running, and never otherwise (3.4.5). */
static void copy_revision(struct pass *pass)
{
	const struct vm_revision *target = &pass->view.target;
	const struct vm_revision *current = &pass->view.current;
	struct json_node *copy;
	struct json_node *revision;

	if (!target->there || (current->there && current->value == target->value && current->flags == target->flags))
		return;
	copy = json_tree_object(&pass->edit.arena);
	revision = json_tree_copy(&pass->edit.arena, json_tree_find(pass->edit.root, "/spec/targetRevision/revision"));
	pass->ok = json_tree_set(copy, SLICE("revision"), revision) &&
	           json_tree_set(copy, SLICE("updatedAt"), now_text(pass)) && pass->ok;
	set(pass, "currentRevision", copy);
}

/* ---- scaling ---- */

uint32_t neonvm_whole_cpus(uint32_t milli)
{
	return milli / NEONVM_CPU_MILLI + (milli % NEONVM_CPU_MILLI != 0 ? 1 : 0);
}

uint64_t neonvm_wanted_memory(const struct vm_view *view)
{
	return (uint64_t)view->slots_use * view->slot_bytes;
}

/* Whether the guest has what the spec wants. */
static bool is_at_size(const struct vm *vm, const struct vm_view *view)
{
	return vm->machine.quota_milli == view->cpu_use_milli &&
	       vm->machine.cpus == neonvm_whole_cpus(view->cpu_use_milli) &&
	       neonvm_memory(vm) == neonvm_wanted_memory(view);
}

/* One action (3.4.2); true if there was nothing left to do. */
static bool scale_cpu(struct machine *machine, uint32_t use_milli)
{
	uint32_t wanted = neonvm_whole_cpus(use_milli);

	if (machine->cpus < wanted)
		machine->cpus++;
	else if (machine->cpus > wanted)
		machine->cpus--;
	else if (machine->quota_milli != use_milli)
		machine->quota_milli = use_milli;
	else
		return true;
	return false;
}

/* The memory part, and the end of a pass in Scaling (3.4.3, 3.4.4). */
static void finish_scaling(struct pass *pass, bool cpu_done)
{
	struct vm *vm = pass->vm;
	uint64_t wanted = neonvm_wanted_memory(&pass->view);
	uint64_t there = neonvm_memory(vm);

	neonvm_ask_memory(vm, wanted);
	neonvm_pass_set_memory(pass, there);
	if (!cpu_done || there != wanted)
		return;
	neonvm_pass_set_phase(pass, "Running");
	copy_revision(pass);
}

/* False if the pass goes on later, when the CPU is out. */
static bool pass_scaling(struct pass *pass)
{
	struct vm *vm = pass->vm;
	uint32_t found_milli = machine_cpu_milli(&vm->machine);
	bool cpu_done;

	if (vm->machine.cpus > neonvm_whole_cpus(pass->view.cpu_use_milli)) {
		vm->unplugging = true;
		return false;
	}
	cpu_done = scale_cpu(&vm->machine, pass->view.cpu_use_milli);
	neonvm_pass_set_cpus(pass, found_milli);
	finish_scaling(pass, cpu_done);
	return true;
}

/* ---- the other phases ---- */

static void begin_migration(struct pass *pass)
{
	struct vm *vm = pass->vm;
	struct error err;

	neonvm_pod_make_name(vm, vm->target_pod);
	if (!neonvm_pod_create(vm, pass->edit.root, vm->target_pod, &vm->target, &err)) {
		vm->target_pod[0] = '\0';
		pass->ok = false;
		return;
	}
	neonvm_pod_start(vm, vm->target_pod);
	neonvm_pass_set_phase(pass, "PreMigrating");
}

static void pass_running(struct pass *pass)
{
	struct vm *vm = pass->vm;
	const struct vm_view *view = &pass->view;

	set_text(pass, "podIP", vm->place.pod_ip);
	set_text(pass, "node", vm->place.node);
	if (vm->controller->late_2023)
		neonvm_pass_set_quota(pass);
	neonvm_pass_set_cpus(pass, machine_cpu_milli(&vm->machine));
	neonvm_pass_set_memory(pass, neonvm_memory(vm));
	if (!is_at_size(vm, view))
		neonvm_pass_set_phase(pass, "Scaling");
	else if (vm->migration_wanted)
		begin_migration(pass);
	else
		copy_revision(pass);
}

static void pass_fresh(struct pass *pass)
{
	if (!pass->vm->controller->late_2023)
		set(pass, "restartCount", json_tree_number(&pass->edit.arena, 0));
	neonvm_pass_set_phase(pass, "Pending");
	set_condition(pass, "Unknown", "Creating VirtualMachine");
}

/* A fresh runner has the minimums plugged (3.6.1). */
static void boot(struct pass *pass)
{
	struct machine *machine = &pass->vm->machine;

	machine_set_cpu(machine, pass->view.cpu_min_milli);
	machine->memory_from = machine->memory_target = (uint64_t)pass->view.slots_min * pass->view.slot_bytes;
	neonvm_pass_set_phase(pass, "Running");
	set_text(pass, "podIP", pass->vm->place.pod_ip);
	set_condition(pass, "True", "Pod for VirtualMachine created successfully");
	copy_revision(pass);
}

static void pass_pending(struct pass *pass)
{
	struct vm *vm = pass->vm;
	struct error err;
	char phase[16];

	if (pass->view.pod_name.length == 0) {
		neonvm_pod_make_name(vm, vm->pod);
		set_text(pass, "podName", vm->pod);
		return;
	}
	snprintf(vm->pod, sizeof vm->pod, "%.*s", SLICE_ARGS(pass->view.pod_name));
	neonvm_pod_phase(vm, vm->pod, phase);
	if (phase[0] == '\0')
		pass->ok =
			vm->place.node[0] == '\0' || neonvm_pod_create(vm, pass->edit.root, vm->pod, &vm->place, &err);
	else if (strcmp(phase, "Running") == 0)
		boot(pass);
	else if (strcmp(phase, "Failed") == 0)
		neonvm_pass_set_phase(pass, "Failed");
	else if (!loop_timer_running(&vm->ready_timer))
		neonvm_pod_start(vm, vm->pod);
}

/* The runner pod is gone or has ended: true if the phase says so now. */
static bool pod_ended(struct pass *pass)
{
	char phase[16];

	neonvm_pod_phase(pass->vm, pass->vm->pod, phase);
	if (strcmp(phase, "Running") == 0)
		return false;
	neonvm_pass_set_phase(pass, strcmp(phase, "Succeeded") == 0 ? "Succeeded" : "Failed");
	return true;
}

/* What was begun for a migration is of no use any more. */
static void abandon_migration(struct vm *vm)
{
	if (vm->target_pod[0] != '\0')
		neonvm_pod_delete(vm, vm->target_pod);
	vm->target_pod[0] = '\0';
	vm->migration_wanted = false;
	vm->migrated_at_ns = 0;
}

static void pass_ended(struct pass *pass)
{
	static const char *const FORGOTTEN[] = { "podName", "podIP", "node", "cpus", "memorySize" };
	struct vm *vm = pass->vm;
	bool failed = slice_equal_text(pass->view.phase, "Failed");

	if (!slice_equal_text(pass->view.restart_policy, "Always") &&
	    !(failed && slice_equal_text(pass->view.restart_policy, "OnFailure")))
		return;
	abandon_migration(vm);
	neonvm_pod_delete(vm, vm->pod);
	vm->pod[0] = '\0';
	for (size_t i = 0; i < sizeof FORGOTTEN / sizeof *FORGOTTEN; i++)
		json_tree_remove(pass->status, slice_of(FORGOTTEN[i]));
	if (vm->controller->late_2023) {
		json_tree_remove(pass->status, SLICE("phase"));
		pass->phase = SLICE("");
		return;
	}
	set(pass, "restartCount", json_tree_number(&pass->edit.arena, pass->view.restart_count + 1));
	neonvm_pass_set_phase(pass, "Pending");
}

static void pass_pre_migrating(struct pass *pass)
{
	struct vm *vm = pass->vm;
	char phase[16];

	neonvm_pod_phase(vm, vm->target_pod, phase);
	if (strcmp(phase, "Running") != 0)
		return;
	neonvm_pass_set_phase(pass, "Migrating");
	vm->migrated_at_ns = loop_now_ns(vm->controller->loop) + neonvm_scaled(vm->controller, NEONVM_MIGRATION_MS);
}

/* The guest now runs in the target pod; the node follows with the next pass (3.6.3). */
static void pass_migrating(struct pass *pass)
{
	struct vm *vm = pass->vm;

	if (loop_now_ns(vm->controller->loop) < vm->migrated_at_ns)
		return;
	neonvm_pod_delete(vm, vm->pod);
	memcpy(vm->pod, vm->target_pod, sizeof vm->pod);
	vm->place = vm->target;
	vm->target_pod[0] = '\0';
	vm->migration_wanted = false;
	set_text(pass, "podName", vm->pod);
	set_text(pass, "podIP", vm->place.pod_ip);
	neonvm_pass_set_phase(pass, "Running");
}

/* ---- a pass ---- */

static bool add_finalizer(struct pass *pass)
{
	struct arena *arena = &pass->edit.arena;
	struct json_node *metadata = json_tree_find(pass->edit.root, "/metadata");
	struct json_node *finalizers = json_tree_find(metadata, "/finalizers");

	if (finalizers == NULL || finalizers->kind != JSON_KIND_ARRAY) {
		finalizers = json_tree_array(arena);
		if (!json_tree_set(metadata, SLICE("finalizers"), finalizers))
			return false;
	}
	return json_tree_append(finalizers, json_tree_string(arena, SLICE(VM_FINALIZER)));
}

static void remove_finalizer(struct pass *pass)
{
	struct json_node *finalizers = json_tree_find(pass->edit.root, "/metadata/finalizers");

	for (size_t i = 0; finalizers != NULL && i < finalizers->count;) {
		if (slice_equal_text(json_tree_text(json_tree_item(finalizers, i)), VM_FINALIZER))
			json_tree_remove_item(finalizers, i);
		else
			i++;
	}
}

/* Writes of the main resource come alone; true if there is one. */
static bool write_main(struct pass *pass)
{
	struct arena *arena = &pass->edit.arena;

	if (pass->view.deleting) {
		remove_finalizer(pass);
		return true;
	}
	if (!pass->view.has_finalizer) {
		pass->ok = add_finalizer(pass);
		return true;
	}
	if (pass->view.scaling_mode.length == 0) {
		pass->ok = json_tree_set_text(arena, json_tree_find(pass->edit.root, "/spec"), SLICE("cpuScalingMode"),
		                              SLICE("QmpScaling"));
		return true;
	}
	return false;
}

/* False if the pass goes on later. */
static bool work(struct pass *pass)
{
	struct slice phase = pass->view.phase;
	bool running = slice_equal_text(phase, "Running");
	bool scaling = slice_equal_text(phase, "Scaling");

	if (write_main(pass))
		return true;
	if (scaling && pass->vm->controller->late_2023 && neonvm_pass_give_up_unplugging(pass))
		return true;
	pass->status = json_tree_ensure(&pass->edit.arena, pass->edit.root, SLICE("status"));
	if (pass->status == NULL) {
		pass->ok = false;
		return true;
	}
	pass->copies = running || scaling || slice_equal_text(phase, "Pending");
	if (phase.length == 0)
		pass_fresh(pass);
	else if (slice_equal_text(phase, "Pending"))
		pass_pending(pass);
	else if (slice_equal_text(phase, "Failed") || slice_equal_text(phase, "Succeeded"))
		pass_ended(pass);
	else if (pod_ended(pass))
		return true;
	else if (pass->vm->unreachable)
		pass->ok = false;
	else if (running)
		pass_running(pass);
	else if (scaling && pass->vm->controller->late_2023)
		neonvm_pass_scale_late_2023(pass);
	else if (scaling)
		return pass_scaling(pass);
	else if (slice_equal_text(phase, "PreMigrating"))
		pass_pre_migrating(pass);
	else if (slice_equal_text(phase, "Migrating"))
		pass_migrating(pass);
	return true;
}

/* Writes what the pass changed, looks after the pod, and plans the next pass. Ends the pass. */
static void conclude(struct pass *pass)
{
	struct vm *vm = pass->vm;
	struct error err;
	bool hurry = slice_equal_text(pass->phase, "Scaling") || slice_equal_text(pass->phase, "PreMigrating") ||
	             slice_equal_text(pass->phase, "Migrating");
	bool ok = pass->ok && object_edit_commit(&pass->edit, vm->controller->store, &err);
	bool settled;
	char phase[16];

	if (ok && pass->copies && vm->pod[0] != '\0')
		ok = neonvm_pod_copy_labels(vm, pass->edit.root, vm->pod, &err);
	snprintf(phase, sizeof phase, "%.*s", SLICE_ARGS(ok ? pass->phase : pass->view.phase));
	settled = slice_equal_text(slice_of(phase), "Running") && is_at_size(vm, &pass->view);
	object_edit_end(&pass->edit);
	if (vm->gone)
		return;
	/* A pass that failed is repeated. In late 2023 every phase was looked at each second. */
	neonvm_pass_later(vm, hurry || !ok || vm->controller->late_2023 ? NEONVM_PASS_SCALING_MS : NEONVM_PASS_IDLE_MS);
	neonvm_tell(vm, phase, settled);
}

static bool begin(struct pass *pass, struct vm *vm)
{
	struct stored_object *object =
		object_store_find(vm->controller->store, resource_kind(RESOURCE_VIRTUAL_MACHINES),
	                          slice_of(vm->name_space), slice_of(vm->name));
	struct error err;

	*pass = (struct pass){ .vm = vm, .ok = true };
	if (object == NULL)
		return false;
	if (!object_edit_begin(&pass->edit, object, &err)) {
		neonvm_pass_later(vm, NEONVM_PASS_SCALING_MS);
		return false;
	}
	pass->view = vm_view_read(pass->edit.root);
	pass->phase = pass->view.phase;
	return true;
}

/* The rest of a pass that took a CPU out; cpus isn't refreshed by it (3.4.2). */
static void unplugged(void *context)
{
	struct vm *vm = context;
	struct pass pass;

	vm->unplugging = false;
	vm->machine.cpus -= vm->machine.cpus > 1 ? 1 : 0;
	if (vm->changed) {
		/* As the original, which works with what it read: but a change made meanwhile must not be lost. */
		vm->changed = false;
		neonvm_pass_later(vm, NEONVM_PASS_LOW_MS);
		return;
	}
	if (!begin(&pass, vm))
		return;
	pass.status = json_tree_ensure(&pass.edit.arena, pass.edit.root, SLICE("status"));
	pass.copies = true;
	if (pass.status != NULL)
		finish_scaling(&pass, false);
	else
		pass.ok = false;
	conclude(&pass);
}

void neonvm_pass(void *context)
{
	struct vm *vm = context;
	struct pass pass;

	vm->soon = false;
	if (vm->gone) {
		abandon_migration(vm);
		neonvm_pod_delete(vm, vm->pod);
		neonvm_free_vm(vm);
		return;
	}
	if (!begin(&pass, vm))
		return;
	if (work(&pass)) {
		conclude(&pass);
		return;
	}
	object_edit_end(&pass.edit);
	loop_timer_start(vm->controller->loop, &vm->pass_timer, neonvm_scaled(vm->controller, NEONVM_UNPLUG_MS),
	                 unplugged, vm);
}
