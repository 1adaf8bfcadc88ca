/*
 * The cluster around the agents: API server with the NeonVM controller, scheduler plugin, and a guest for each VM, each of
 * them a process with a loop of its own. They are the sandbox's stand-ins (src/sandbox), on a simulated network.
 *
 * It knows what is true of each VM, and holds every change of a VM against what the plugin permitted, what the vm-monitor
 * agreed to, and the VM's bounds.
 */
#ifndef BALLAST_TESTS_SIM_SIM_CLUSTER_H
#define BALLAST_TESTS_SIM_SIM_CLUSTER_H

#include <stdbool.h>

#include "base/slice.h"
#include "sandbox/guest.h"
#include "sandbox/scheduler_plugin.h"
#include "sandbox/workload.h"
#include "sim_peers.h"
#include "simulation.h"

enum { SIM_CLUSTER_AGENTS = 3 };

struct sim_cluster;

/* Adds itself to the simulation as an actor. */
struct sim_cluster *sim_cluster_create(struct simulation *simulation, struct error *err);

const char *sim_cluster_token(const struct sim_cluster *cluster);
struct slice sim_cluster_ca_pem(const struct sim_cluster *cluster);
struct address sim_cluster_api_address(const struct sim_cluster *cluster);
const struct workload *sim_cluster_workload(const struct sim_cluster *cluster);
/* Agents belong on the first so many nodes. */
unsigned sim_cluster_agent_count(const struct sim_cluster *cluster);
/* VMs that the agent of this node must scale. */
unsigned sim_cluster_vms_on_node(const struct sim_cluster *cluster, unsigned node);
/* VMs that the agent of this node must see and bill: also those that it must not scale. */
unsigned sim_cluster_vms_billed_on_node(const struct sim_cluster *cluster, unsigned node);
/* Whether the VM of that name is one of those. */
bool sim_cluster_is_billed_on_node(const struct sim_cluster *cluster, struct slice name, unsigned node);
/* Whether agents may ask the scheduler pod of that name, now that all have heard of all of them. */
bool sim_cluster_may_ask(const struct sim_cluster *cluster, const char *scheduler_pod);
struct control_plane_counters sim_cluster_api_counters(const struct sim_cluster *cluster);

/*
 * In each calm, when every dead connection must have been found, all VMs get or lose a label that the agents carry but
 * don't act upon. True once agents must have seen that; *ret_marked says what the label is.
 */
bool sim_cluster_mark(const struct sim_cluster *cluster, bool *ret_marked);

/* Misfortunes and observations so far, for the report. */
struct sim_cluster_counts {
	unsigned patches, short_permits;
	struct sim_api_counts api;
	unsigned plugin_outages, monitor_outages, page_faults, monitor_faults, vm_restarts;
	unsigned vm_stops, vm_deletions, vm_migrations, scheduler_changes, late_patches;
	unsigned settled_checks;
};

struct sim_cluster_counts sim_cluster_counts(const struct sim_cluster *cluster);
/* For the agents' own misfortunes: the loops of API server, plugin and guests, in this order. */
unsigned sim_cluster_loop_count(const struct sim_cluster *cluster);
struct loop *sim_cluster_loop(const struct sim_cluster *cluster, unsigned index);

#endif
