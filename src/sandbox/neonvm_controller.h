/*
 * The stand-in NeonVM controller, its hypervisors and kubelets (spec surroundings 3.2 … 3.6, newest generation): watches VirtualMachines in the
 * store and takes each, pass by pass, to where its spec wants it.
 *
 * A VM whose object is added to the store without a status is started: Pending, a runner pod, Running. For that it needs a place (node and pod
 * address), which stands in for the scheduler; a VM without one waits for it.
 *
 * The original's typical times are divided by speed.
 */
#ifndef BALLAST_SANDBOX_NEONVM_CONTROLLER_H
#define BALLAST_SANDBOX_NEONVM_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "net/loop.h"
#include "sandbox/object_store.h"

enum {
	NEONVM_NAME_BYTES = 254, /* of a VM, pod, node or namespace, with its NUL */
	NEONVM_PASS_LOW_MS = 10, /* from a change to the pass it causes (3.4) */
	NEONVM_PASS_HIGH_MS = 100,
	NEONVM_PASS_SCALING_MS = 1000,
	NEONVM_PASS_IDLE_MS = 15000,
	NEONVM_UNPLUG_MS = 500,     /* of one CPU (3.4.2) */
	NEONVM_POD_READY_MS = 5000, /* first readiness probe (3.6.1) */
	NEONVM_MIGRATION_MS = 2000, /* of the phase Migrating */
};

struct neonvm_controller;

struct neonvm_place {
	const char *node;
	const char *pod_ip;
};

/* What the guest has; all texts are valid during the call. Each may be NULL. A handler may ask for anything below but destroy the controller. */
struct neonvm_handler {
	void (*on_resized)(void *context, const char *name, uint32_t cpu_milli, uint64_t memory_bytes, bool settled);
	void (*on_phase)(void *context, const char *name, const char *phase);
};

struct neonvm_controller *neonvm_controller_create(struct loop *loop, struct object_store *store, double speed,
                                                   const struct neonvm_handler *handler, void *context,
                                                   struct error *err);
/* Scales VMs as in late 2023: by one CPU and one slot of memory in a pass (3.4, 3.2.2). Before there is a VM. */
void neonvm_controller_be_late_2023(struct neonvm_controller *controller);
void neonvm_controller_destroy(struct neonvm_controller *controller); /* NULL is fine */

/* Where the VM's pods run from now on. May come before the VM is in the store. */
bool neonvm_controller_place(struct neonvm_controller *controller, struct slice name_space, struct slice name,
                             const struct neonvm_place *place, struct error *err);
/*
 * For a VM that has its place but isn't in the store yet, and will be added to it as one that runs: what is plugged. Returns the name of its
 * runner pod (pod_name, or a random one if that is NULL); NULL if the VM has no place. Once the VM is in the store, add_pod makes the pod.
 */
const char *neonvm_controller_run(struct neonvm_controller *controller, struct slice name, const char *pod_name,
                                  uint32_t cpu_milli, uint64_t memory_bytes);
bool neonvm_controller_add_pod(struct neonvm_controller *controller, struct slice name, struct error *err);

/* What the guest has now; false if there is no such VM. */
bool neonvm_controller_plugged(const struct neonvm_controller *controller, struct slice name, uint32_t *ret_cpu_milli,
                               uint64_t *ret_memory_bytes);

/*
 * How the guest gives memory back: bytes_per_s in the original's time (0: at once), and never below floor_bytes (0: as far as asked). Growth is
 * always prompt.
 */
bool neonvm_controller_set_shrink(struct neonvm_controller *controller, struct slice name, uint64_t floor_bytes,
                                  uint64_t bytes_per_s);
/* While QEMU can't be reached, passes fail and write nothing (3.4.6). */
bool neonvm_controller_set_reachable(struct neonvm_controller *controller, struct slice name, bool reachable);

/* The runner pod fails, and the VM starts anew (3.6.2). False if there is no such VM, or no pod of it. */
bool neonvm_controller_kill_pod(struct neonvm_controller *controller, struct slice name, struct error *err);
/* Starts a live migration (3.6.3) as soon as the VM is Running. False if there is no such VM, or one is under way. */
bool neonvm_controller_migrate(struct neonvm_controller *controller, struct slice name,
                               const struct neonvm_place *place, struct error *err);
/* The namespace of a VM in the store, by its name alone: names are unique in the sandbox. Empty if there is no such VM. */
struct slice neonvm_controller_name_space(const struct neonvm_controller *controller, struct slice name);

#endif
