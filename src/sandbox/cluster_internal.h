/*
 * What the files of the cluster share.
 */
#ifndef BALLAST_SANDBOX_CLUSTER_INTERNAL_H
#define BALLAST_SANDBOX_CLUSTER_INTERNAL_H

#include "sandbox/address_block.h"
#include "sandbox/cluster.h"

#define CLUSTER_NAME_SPACE "apps"

enum {
	CLUSTER_IGNORED_ON_NODE = 2, /* VMs on each node that has no agent of ours */
	CLUSTER_POD_NAME_BYTES = WORKLOAD_NAME_BYTES + 8,
	CLUSTER_TOKEN_BYTES = 48,
	CLUSTER_ENDPOINT_BYTES = WORKLOAD_NAME_BYTES + 8,
};

/* Places in the address block. */
enum {
	ADDRESS_API,
	ADDRESS_PLUGIN,
	ADDRESS_EXTENDER,
	ADDRESS_RECEIVER,
	ADDRESS_AGENTS,
	ADDRESS_GUESTS = ADDRESS_AGENTS + CLUSTER_AGENTS_MAX
};

struct cluster_vm {
	struct cluster *cluster;
	unsigned index;
	char name[WORKLOAD_NAME_BYTES];
	char pod_name[CLUSTER_POD_NAME_BYTES];
	char node[CLUSTER_NODE_NAME_BYTES];
	struct guest *guest;
	struct cluster_size plugged;
	uint64_t plugged_bytes;
};

struct cluster {
	struct loop *loop;
	const struct workload *workload;
	struct cluster_handler handler;
	void *context;
	struct address_block addresses;
	struct control_plane *plane;
	struct scheduler_plugin *plugin;
	char token[CLUSTER_TOKEN_BYTES];
	char api_address[ADDRESS_TEXT_BYTES];
	char agent_addresses[CLUSTER_AGENTS_MAX][ADDRESS_TEXT_BYTES];
	char agent_nodes[CLUSTER_AGENTS_MAX][CLUSTER_NODE_NAME_BYTES];
	unsigned agent_count;
	unsigned phase;
	unsigned vm_count;
	struct cluster_vm vms[];
};

void cluster_name_node(char name[CLUSTER_NODE_NAME_BYTES], unsigned node);
void cluster_name_endpoint(char endpoint[CLUSTER_ENDPOINT_BYTES], const char *vm_name);
struct address cluster_address(const struct cluster *cluster, unsigned place, uint16_t port);
struct resources cluster_resources(unsigned units);

/* Numbers, names and nodes of all VMs. */
void cluster_name_vms(struct cluster *cluster);
/* Starts the guest of a VM that has its name, and makes it known to plugin and control plane. */
bool cluster_add_vm(struct cluster *cluster, unsigned index, struct error *err);
/* Makes the guest do what its phase states, with the memory that it has now. */
void cluster_set_demand(const struct cluster_vm *vm);
/* Handler of a guest; context: the VM. */
void cluster_on_guest_event(void *context, struct guest *guest, const char *text);
void cluster_on_guest_accept_error(void *context, const struct error *err);

#endif
