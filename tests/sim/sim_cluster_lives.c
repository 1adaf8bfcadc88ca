/*
 * What happens to VMs: their pods fail, they are stopped for a while, deleted and made anew with the same name, and
 * migrated to another node. Whatever was begun is over a few seconds after a storm.
 *
 * Not on the full node: there the other VM may take the capacity, for good.
 */
#include <stdio.h>

#include "codec/json_tree.h"
#include "sandbox/object_store.h"
#include "sim_cluster_internal.h"

enum { AWAY_LOW_MS = 500, AWAY_HIGH_MS = 60000, LATE_S = 60 };

static bool is_spared(const struct sim_vm *vm)
{
	return vm->is_deleted || vm->is_stopped || (vm->cluster->workload->has_full_node && vm->node == 1);
}

static uint64_t time_in(const struct sim_cluster *cluster, struct rng *rng)
{
	return simulation_now_ns(cluster->simulation) + rng_between(rng, AWAY_LOW_MS, AWAY_HIGH_MS) * NS_PER_MS;
}

/* There is no guest any more, until it has booted again. */
static void end_guest(struct sim_vm *vm)
{
	vm->has_booted = false;
	vm->monitor_away = false; /* it comes back with the pod */
	guest_set_monitor_available(vm->guest, false);
}

/* ---- its pod fails, and another one takes its place ---- */

static void restart_vm(struct sim_vm *vm)
{
	struct sim_cluster *cluster = vm->cluster;
	struct error err;

	if (is_spared(vm))
		return;
	sim_world_note(simulation_world(cluster->simulation), "vm %s: its pod fails", vm->name);
	if (!control_plane_restart_vm(cluster->api.plane, vm->name, &err))
		return; /* it has none at the moment */
	cluster->counts.vm_restarts++;
	end_guest(vm);
}

/* ---- it is stopped: its pod ends, well or not, and none takes its place for a while ---- */

static bool set_text(struct sim_cluster *cluster, enum resource resource, const char *name, const char *parent,
                     const char *key, const char *text)
{
	struct object_store *store = control_plane_store(cluster->api.plane);
	struct stored_object *object =
		object_store_find(store, resource_kind(resource), SLICE(SIM_NAME_SPACE), slice_of(name));
	struct object_edit edit;
	struct error err;
	bool ok;

	if (object == NULL || !object_edit_begin(&edit, object, &err))
		return false;
	ok = json_tree_set_text(&edit.arena, json_tree_find(edit.root, parent), slice_of(key), slice_of(text)) &&
	     object_edit_commit(&edit, store, &err);
	object_edit_end(&edit);
	return ok;
}

static bool end_pod(struct sim_vm *vm, bool well)
{
	struct error err;

	if (!well)
		return control_plane_restart_vm(vm->cluster->api.plane, vm->name, &err);
	return set_text(vm->cluster, RESOURCE_PODS, vm->pod_name, "/status", "phase", "Succeeded");
}

static void stop_vm(struct sim_vm *vm, struct rng *rng)
{
	struct sim_cluster *cluster = vm->cluster;
	bool well = rng_between(rng, 0, 2) == 0;

	if (is_spared(vm) || !set_text(cluster, RESOURCE_VIRTUAL_MACHINES, vm->name, "/spec", "restartPolicy", "Never"))
		return;
	vm->is_stopped = true;
	vm->back_ns = time_in(cluster, rng);
	sim_world_note(simulation_world(cluster->simulation), "vm %s: is stopped (%s)", vm->name,
	               well ? "Succeeded" : "Failed");
	if (!end_pod(vm, well))
		return; /* it has none at the moment: it was just starting, and goes on */
	cluster->counts.vm_stops++;
	end_guest(vm);
}

static void go_on(struct sim_vm *vm)
{
	vm->is_stopped =
		!set_text(vm->cluster, RESOURCE_VIRTUAL_MACHINES, vm->name, "/spec", "restartPolicy", "Always");
}

/* ---- it is deleted, and made anew ---- */

static void delete_vm(struct sim_vm *vm, struct rng *rng)
{
	struct sim_cluster *cluster = vm->cluster;
	struct error err;

	if (is_spared(vm) || !control_plane_delete_vm(cluster->api.plane, vm->name, &err))
		return;
	sim_world_note(simulation_world(cluster->simulation), "vm %s: is deleted", vm->name);
	cluster->counts.vm_deletions++;
	vm->is_deleted = true;
	vm->back_ns = time_in(cluster, rng);
	sim_schedulers_remove_pod(cluster, vm->pod_name);
	end_guest(vm);
}

/* ---- it is migrated ---- */

static void migrate_vm(struct sim_vm *vm)
{
	struct sim_cluster *cluster = vm->cluster;
	char node[SIM_NODE_NAME_BYTES], ip[ADDRESS_TEXT_BYTES];
	struct error err;

	if (is_spared(vm) || cluster->agent_count < SIM_CLUSTER_AGENTS)
		return;
	sim_cluster_name_node(node, vm->node == 0 ? 2 : 0);
	sim_vm_print_ip(vm, ip);
	if (!control_plane_migrate_vm(cluster->api.plane, vm->name, node, ip, &err))
		return; /* it is under way already */
	sim_world_note(simulation_world(cluster->simulation), "vm %s: is to be migrated to %s", vm->name, node);
	cluster->counts.vm_migrations++;
}

/* ---- a patch that was given up is carried out after all, when a newer one has been ---- */

static bool set_size(struct object_edit *edit, struct cluster_size size)
{
	char cpu[16];

	(void)snprintf(cpu, sizeof cpu, "%um", size.cpu_milli);
	return json_tree_set_text(&edit->arena, json_tree_find(edit->root, "/spec/guest/cpus"), SLICE("use"),
	                          slice_of(cpu)) &&
	       json_tree_set(json_tree_find(edit->root, "/spec/guest/memorySlots"), SLICE("use"),
	                     json_tree_number(&edit->arena, size.slots));
}

static void patch_late(struct sim_vm *vm)
{
	struct sim_cluster *cluster = vm->cluster;
	struct object_store *store = control_plane_store(cluster->api.plane);
	struct stored_object *object = object_store_find(store, resource_kind(RESOURCE_VIRTUAL_MACHINES),
	                                                 SLICE(SIM_NAME_SPACE), slice_of(vm->name));
	struct cluster_size now = vm->size, late = vm->size_before;
	struct object_edit edit;
	struct error err;

	if (vm->patched_ns == 0 || object == NULL ||
	    simulation_now_ns(cluster->simulation) > vm->patched_ns + (uint64_t)LATE_S * NS_PER_S ||
	    !object_edit_begin(&edit, object, &err))
		return;
	sim_world_note(simulation_world(cluster->simulation), "api: carries out a late patch of %s", vm->name);
	if (set_size(&edit, late) && object_edit_commit(&edit, store, &err)) {
		cluster->counts.late_patches++;
		sim_cluster_on_patched(cluster, vm->name, now.cpu_milli, (uint16_t)now.slots, late.cpu_milli,
		                       (uint16_t)late.slots);
	}
	object_edit_end(&edit);
}

/* ---- any of them ---- */

const char *const SIM_VM_MISFORTUNES[] = { "restart", "stop",    "delete",  "late-patch", "late-patch",
	                                   "migrate", "migrate", "migrate", NULL };

void sim_cluster_strike_vm(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng)
{
	struct sim_cluster *cluster = context;
	struct sim_vm *vm = &cluster->vms[rng_between(rng, 0, cluster->workload->options.vms)];

	(void)simulation;
	switch (misfortune) {
	case 0:
		restart_vm(vm);
		return;
	case 1:
		stop_vm(vm, rng);
		return;
	case 2:
		delete_vm(vm, rng);
		return;
	case 3:
	case 4:
		patch_late(vm);
		return;
	default:
		migrate_vm(vm);
		return;
	}
}

/* ---- back to normal ---- */

void sim_vm_go_on(struct sim_vm *vm, uint64_t now_ns)
{
	struct error err;

	sim_vm_end_boot(vm); /* a patch may have made it so */
	if (now_ns < vm->back_ns)
		return;
	if (vm->is_stopped)
		go_on(vm);
	/* Of the old one something may still be there. */
	if (vm->is_deleted && sim_vm_add_again(vm, &err))
		vm->is_deleted = false;
}
