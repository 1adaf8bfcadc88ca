/*
 * What the files of the simulated cluster share: sim_cluster.c makes it, sim_cluster_vms.c its VMs, sim_cluster_faults.c
 * has its misfortunes, sim_cluster_lives.c those of the VMs, sim_cluster_checks.c its invariants.
 */
#ifndef BALLAST_TESTS_SIM_SIM_CLUSTER_INTERNAL_H
#define BALLAST_TESTS_SIM_SIM_CLUSTER_INTERNAL_H

#include "sandbox/agent_setup.h"
#include "sandbox/cluster_size.h"
#include "sandbox/demand.h"
#include "sim_cluster.h"
#include "sim_schedulers.h"

#define SIM_NAME_SPACE "apps"

enum {
	SIM_IGNORED_VMS = 3, /* one without the label on the first node, two on a node without an agent */
	SIM_POD_NAME_BYTES = WORKLOAD_NAME_BYTES + 8,
	SIM_NODE_NAME_BYTES = 16,
	SIM_HISTORY = 64,
	SIM_TOKEN_BYTES = 48,
	SIM_ROOMY_NODE_UNITS = 64,
};

/* What somebody said a VM may have, and when: the latest ones. */
struct sim_history {
	struct {
		uint64_t at_ns;
		struct resources value;
	} entries[SIM_HISTORY];
	unsigned count; /* ever */
};

struct sim_vm {
	struct sim_cluster *cluster;
	unsigned index;
	unsigned node;
	char name[WORKLOAD_NAME_BYTES];
	char pod_name[SIM_POD_NAME_BYTES];
	struct loop *loop;
	struct guest *guest;
	uint64_t plugged_bytes;
	struct cluster_size size;        /* by its spec */
	struct cluster_size size_before; /* the last patch, at patched_ns */
	uint64_t patched_ns;
	struct sim_history permits;
	struct sim_history agreements;
	struct resources believed;   /* by its monitor, when last looked at */
	struct guest_counters asked; /* a second ago */
	bool has_booted;             /* in a new pod, and its memory isn't all there yet */
	bool is_deleted, is_stopped; /* until back_ns */
	uint64_t back_ns;
	bool monitor_away, pages_bad, monitor_bad;
	uint64_t monitor_back_ns, pages_good_ns, monitor_good_ns;
};

struct sim_cluster {
	struct simulation *simulation;
	struct workload *workload;
	struct loop *api_loop;
	struct sim_api api;
	struct sim_scheduler schedulers[SIM_SCHEDULERS];
	unsigned scheduler_number; /* how many there were */
	char token[SIM_TOKEN_BYTES];
	unsigned agent_count;
	unsigned phase;
	bool marked; /* the label that says nothing is on the VMs; since marked_ns */
	uint64_t marked_ns;
	struct sim_cluster_counts counts;
	unsigned vm_count;
	struct sim_vm vms[];
};

struct resources sim_units(unsigned units);
void sim_vm_set_demand(struct sim_vm *vm);
void sim_vm_print_ip(const struct sim_vm *vm, char ip[ADDRESS_TEXT_BYTES]);
void sim_cluster_name_node(char name[SIM_NODE_NAME_BYTES], unsigned node);
struct address sim_cluster_plugin_address(unsigned number);
struct address sim_cluster_guest_address(unsigned index);
bool sim_cluster_add_vm(struct sim_cluster *cluster, unsigned index, struct error *err);
struct sim_vm *sim_cluster_find_pod(struct sim_cluster *cluster, const char *pod_name);

/* Misfortunes of VMs: sim_cluster_lives.c. */
extern const char *const SIM_VM_MISFORTUNES[];
void sim_cluster_strike_vm(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng);
/* The monitor starts when a guest in a new pod has all of its memory. */
void sim_vm_end_boot(struct sim_vm *vm);
/* Once a second: what has been away for its time comes back. */
void sim_vm_go_on(struct sim_vm *vm, uint64_t now_ns);
/* Makes the object anew, as it was at first. False if it isn't quite gone. */
bool sim_vm_add_again(struct sim_vm *vm, struct error *err);

void sim_history_add(struct sim_history *history, uint64_t now_ns, struct resources value);

/* control_plane_handler.on_patched */
void sim_cluster_on_patched(void *context, const char *name, uint32_t old_cpu_milli, uint16_t old_slots,
                            uint32_t new_cpu_milli, uint16_t new_slots);

/* Of struct sim_actor; context: the cluster. */
extern const char *const SIM_CLUSTER_MISFORTUNES[];
void sim_cluster_strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng);
void sim_cluster_calm(void *context, struct simulation *simulation);
/* Brings back what has been away for its time. */
void sim_cluster_restore(struct sim_cluster *cluster, uint64_t now_ns);
void sim_cluster_check(void *context, struct simulation *simulation);
void sim_cluster_check_second(void *context, struct simulation *simulation);
void sim_cluster_check_settled(void *context, struct simulation *simulation);

#endif
