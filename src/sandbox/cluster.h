/*
 * The little cluster of a sandbox run: control plane, scheduler plugin and one guest per VM, wired to each other, on addresses
 * of their own.
 *
 * It plays the workload's phases and the outages that it is told, tells what the agents do, and answers what is true of each VM. VMs are
 * numbered as in the workload; those behind it are there for the agents to ignore (on other nodes, or without the label).
 */
#ifndef BALLAST_SANDBOX_CLUSTER_H
#define BALLAST_SANDBOX_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "net/loop.h"
#include "sandbox/agent_setup.h"
#include "sandbox/cluster_size.h"
#include "sandbox/control_plane.h"
#include "sandbox/faults.h"
#include "sandbox/guest.h"
#include "sandbox/outage.h"
#include "sandbox/scheduler_plugin.h"
#include "sandbox/workload.h"

enum { CLUSTER_AGENTS_MAX = 2, CLUSTER_NODE_NAME_BYTES = 16 };

struct cluster;

struct cluster_handler {
	/* A patch changed what the VM shall have. */
	void (*on_patched)(void *context, unsigned vm, struct cluster_size before, struct cluster_size after);
	/* The plugin answered, and granted less than was asked for (denied: nothing of an increase). */
	void (*on_short_permit)(void *context, unsigned vm, struct cluster_size wanted, struct cluster_size permit,
	                        bool denied);
	/* What the vm-monitor has to say. */
	void (*on_monitor)(void *context, unsigned vm, const char *text);
	/* The guest has another amount of CPU. */
	void (*on_cpu)(void *context, unsigned vm, uint32_t cpu_milli);
	/* A guest or the plugin couldn't accept a connection: descriptors are short, say. */
	void (*on_accept_error)(void *context, const struct error *err);
};

/* What is true of a VM now. */
struct cluster_vm_state {
	struct cluster_size size;      /* by its spec */
	struct cluster_size plugged;   /* what the guest has */
	struct cluster_size permitted; /* what the plugin has reserved for it */
	enum guest_monitor_state monitor;
	uint64_t monitor_believes_bytes; /* 0: it was told nothing on its connection */
	struct guest_counters guest;
	unsigned patches;
	unsigned refused_patches;
};

/* The handler is told from the loop. The workload must outlive the cluster. Phase 0 begins at once. */
struct cluster *cluster_start(struct loop *loop, const struct workload *workload, const struct cluster_handler *handler,
                              void *context, struct error *err);
void cluster_destroy(struct cluster *cluster); /* NULL is fine */
/* How many open files a cluster for this workload needs, and whoever runs it. Agents need fewer. */
unsigned cluster_descriptors(const struct workload *workload);

/* The API server, for peers inside this process. */
struct control_plane *cluster_control_plane(const struct cluster *cluster);
/* An address for the extender. */
struct address cluster_extender_address(const struct cluster *cluster, uint16_t port);
/* The text lives as long as the cluster. */
const char *cluster_api_address(const struct cluster *cluster);
/* API and plugin meet these faults from now on; they must outlive the cluster. */
void cluster_set_faults(struct cluster *cluster, struct faults *faults);
/* FAULT_MONITOR_CLOSED or FAULT_MONITOR_SLOW comes over the vm-monitor of a VM that is scaled, or leaves it again. */
void cluster_set_monitor_fault(struct cluster *cluster, unsigned vm, enum fault_kind kind, bool faulty);

/* For the agents: the only token that the API accepts, and the CA that signed its certificate. */
const char *cluster_token(const struct cluster *cluster);
struct slice cluster_ca_pem(const struct cluster *cluster);
/* An agent belongs on each node where VMs are scaled. The texts live as long as the cluster. */
unsigned cluster_agent_count(const struct cluster *cluster);
struct agent_place cluster_agent_place(const struct cluster *cluster, unsigned agent);

/* Kept free for whoever takes the agents' events. */
struct address cluster_receiver_address(const struct cluster *cluster, uint16_t port);
/* What its events are billed to, and whether an agent is on its node. */
bool cluster_vm_is_billed(const struct cluster *cluster, unsigned vm);
/* The number of the VM that has this endpoint's id; false if none has. */
bool cluster_find_endpoint(const struct cluster *cluster, struct slice endpoint_id, unsigned *ret_vm);

void cluster_begin_phase(struct cluster *cluster, unsigned phase);
/* Takes the peer away, or brings it back. */
bool cluster_set_away(struct cluster *cluster, const struct outage *outage, bool away, struct error *err);

unsigned cluster_vm_count(const struct cluster *cluster); /* with those to be ignored */
const char *cluster_vm_name(const struct cluster *cluster, unsigned vm);
struct cluster_vm_state cluster_vm_state(const struct cluster *cluster, unsigned vm);
struct control_plane_counters cluster_api_counters(const struct cluster *cluster);
struct scheduler_plugin_counters cluster_scheduler_counters(const struct cluster *cluster);

#endif
