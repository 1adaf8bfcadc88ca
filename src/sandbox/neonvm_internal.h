/*
 * What the parts of the stand-in NeonVM controller share: neonvm_controller.c (which VMs there are, and when each has its pass), neonvm_pass.c
 * (what a pass does), neonvm_pass_2023.c (what it did in late 2023), neonvm_machine.c (the hypervisor), neonvm_pod.c (runner pods).
 */
#ifndef BALLAST_SANDBOX_NEONVM_INTERNAL_H
#define BALLAST_SANDBOX_NEONVM_INTERNAL_H

#include "sandbox/neonvm_controller.h"
#include "sandbox/vm_view.h"

/* The hypervisor of a VM. */
struct machine {
	uint32_t cpus; /* plugged, whole ones */
	uint32_t quota_milli;
	uint64_t memory_from;     /* when memory was last asked for, there was this much, */
	uint64_t memory_target;   /* and this much was asked for, */
	uint64_t memory_since_ns; /* then */
	uint64_t shrink_floor;
	uint64_t shrink_bytes_per_s;
};

uint32_t machine_cpu_milli(const struct machine *machine); /* what the guest can use */
void machine_set_cpu(struct machine *machine, uint32_t milli);
/* elapsed_ns: since memory_since_ns, in the original's time. */
uint64_t machine_memory(const struct machine *machine, uint64_t elapsed_ns);
void machine_ask_memory(struct machine *machine, uint64_t bytes, uint64_t now_ns, uint64_t elapsed_ns);

struct place {
	char node[NEONVM_NAME_BYTES];
	char pod_ip[NEONVM_NAME_BYTES];
};

struct vm {
	struct vm *next;
	struct neonvm_controller *controller;
	char name_space[NEONVM_NAME_BYTES];
	char name[NEONVM_NAME_BYTES];
	struct machine machine;
	struct place place;
	bool in_store;
	bool gone; /* deleted; to be freed by the next pass */
	bool unreachable;
	/* passes */
	struct loop_timer pass_timer;
	bool soon;       /* the timer runs for a change */
	bool unplugging; /* a pass is under way that takes its time */
	bool changed;    /* meanwhile */
	/* the pod that starts, and when it will be ready */
	struct loop_timer ready_timer;
	char starting_pod[NEONVM_NAME_BYTES];
	char pod[NEONVM_NAME_BYTES]; /* the runner pod; "" without one */
	/* migration */
	bool migration_wanted;
	struct place target;
	char target_pod[NEONVM_NAME_BYTES];
	uint64_t migrated_at_ns;
	/* what the handler was told */
	uint32_t told_cpu_milli;
	uint64_t told_memory;
	bool told_settled;
	char told_phase[16];
};

struct neonvm_controller {
	struct loop *loop;
	struct object_store *store;
	double speed;
	bool late_2023;
	struct neonvm_handler handler;
	void *context;
	struct vm *vms;
	struct object_observer observer;
};

/* ---- neonvm_controller.c ---- */

uint64_t neonvm_scaled(const struct neonvm_controller *controller, uint64_t ms);
/* The VM's memory as the hypervisor says now. */
uint64_t neonvm_memory(const struct vm *vm);
void neonvm_ask_memory(struct vm *vm, uint64_t bytes);
/* Tells the handler what changed. The last thing that a pass does. */
void neonvm_tell(struct vm *vm, const char *phase, bool settled);
/* When the next pass is, if nothing changes before. */
void neonvm_pass_later(struct vm *vm, uint64_t ms);
void neonvm_free_vm(struct vm *vm);

/* ---- neonvm_pass.c ---- */

void neonvm_pass(void *context);

/* ---- neonvm_pod.c ---- */

/* NULL if there is none. */
struct stored_object *neonvm_pod_find(const struct vm *vm, const char *pod);
/* phase of a pod: "Pending", "Running", "Failed", …; "" without a pod. */
void neonvm_pod_phase(const struct vm *vm, const char *pod, char phase[16]);
void neonvm_pod_make_name(const struct vm *vm, char name[NEONVM_NAME_BYTES]);
/* root is the VM's tree. The pod waits for its node, if any, to get it ready. */
bool neonvm_pod_create(struct vm *vm, const struct json_node *root, const char *pod, const struct place *place,
                       struct error *err);
/* The node gets a pod ready NEONVM_POD_READY_MS from now. */
void neonvm_pod_start(struct vm *vm, const char *pod);
bool neonvm_pod_set_running(struct vm *vm, const char *pod, const char *pod_ip, struct error *err);
bool neonvm_pod_set_failed(struct vm *vm, const char *pod, struct error *err);
void neonvm_pod_delete(struct vm *vm, const char *pod);
/* Makes the pod's labels and annotations those of the VM (3.5). */
bool neonvm_pod_copy_labels(struct vm *vm, const struct json_node *root, const char *pod, struct error *err);

#endif
