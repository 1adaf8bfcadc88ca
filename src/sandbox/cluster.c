/*
 * The parts know each other by names (of VM, of pod) or by handle; here they become the workload's numbers. Everything that one
 * part's act means for another passes through this file: what the controller plugs changes the guest, what the plugin reserves
 * is written to the VM's annotations.
 */
#include "sandbox/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sandbox/cluster_internal.h"
#include "sandbox/demand.h"

enum {
	ROOMY_NODE_UNITS = 64,     /* at least; plenty for every VM at its maximum */
	DESCRIPTORS_PER_GUEST = 3, /* its ports */
	DESCRIPTORS_PER_VM = 3,    /* connections of one that is scaled: to the vm-monitor, and a scrape of each page */
	DESCRIPTORS_BESIDE =
		100, /* seen: 50; API and plugin, locks of addresses, and what the program itself has open */
};

static const char SCHEDULER_POD[] = "autoscale-scheduler-6f7d9c5b8-q2w3e";
static const char USER[] = "system:serviceaccount:kube-system:autoscaler-agent";

/* ---- sizes ---- */

static struct cluster_size size_of(uint32_t cpu_milli, uint64_t mem_bytes)
{
	return (struct cluster_size){ .cpu_milli = cpu_milli, .slots = (unsigned)(mem_bytes / WORKLOAD_UNIT_BYTES) };
}

/* ---- what the parts tell ---- */

static struct cluster_vm *find_by_name(struct cluster *cluster, const char *name)
{
	for (unsigned i = 0; i < cluster->vm_count; i++) {
		if (strcmp(cluster->vms[i].name, name) == 0)
			return &cluster->vms[i];
	}
	return NULL;
}

static struct cluster_vm *find_by_pod(struct cluster *cluster, const char *pod_name)
{
	for (unsigned i = 0; i < cluster->vm_count; i++) {
		if (strcmp(cluster->vms[i].pod_name, pod_name) == 0)
			return &cluster->vms[i];
	}
	return NULL;
}

void cluster_set_demand(const struct cluster_vm *vm)
{
	const struct workload *workload = vm->cluster->workload;
	struct guest_demand demand;

	if (vm->index >= workload->options.vms)
		return;
	demand = workload->options.generation.late_2023
	                 ? demand_of_phase_2023(workload_phase(workload, vm->index, vm->cluster->phase),
	                                        vm->plugged_bytes)
	                 : demand_of_phase(workload_phase(workload, vm->index, vm->cluster->phase), vm->plugged_bytes);
	guest_set_demand(vm->guest, &demand);
}

static void on_patched(void *context, const char *name, uint32_t old_cpu_milli, uint16_t old_slots,
                       uint32_t new_cpu_milli, uint16_t new_slots)
{
	struct cluster *cluster = context;
	const struct cluster_vm *vm = find_by_name(cluster, name);

	if (vm != NULL)
		cluster->handler.on_patched(cluster->context, vm->index,
		                            (struct cluster_size){ old_cpu_milli, old_slots },
		                            (struct cluster_size){ new_cpu_milli, new_slots });
}

static void on_resized(void *context, const char *name, uint32_t cpu_milli, uint64_t memory_bytes, bool settled)
{
	struct cluster *cluster = context;
	struct cluster_vm *vm = find_by_name(cluster, name);

	(void)settled;
	if (vm == NULL)
		return;
	vm->plugged = size_of(cpu_milli, memory_bytes);
	vm->plugged_bytes = memory_bytes;
	guest_set_size(vm->guest, cpu_milli, memory_bytes);
	if (cluster->handler.on_cpu != NULL)
		cluster->handler.on_cpu(cluster->context, vm->index, cpu_milli);
	cluster_set_demand(vm);
}

static void on_answer(void *context, const struct scheduler_plugin_answer *answer)
{
	struct cluster *cluster = context;
	const struct cluster_vm *vm = find_by_pod(cluster, answer->pod_name);

	if (vm != NULL && resources_has_less(answer->permit, answer->wanted))
		cluster->handler.on_short_permit(
			cluster->context, vm->index, size_of(answer->wanted.cpu_milli, answer->wanted.mem_bytes),
			size_of(answer->permit.cpu_milli, answer->permit.mem_bytes), answer->denied);
}

/* It fails only when memory is short, and nothing but the copy in the annotations is lost then. */
static void on_annotate(void *context, const char *pod_name, const char *key, struct slice json)
{
	struct cluster *cluster = context;
	const struct cluster_vm *vm = find_by_pod(cluster, pod_name);
	struct error err;

	if (vm != NULL)
		(void)control_plane_annotate_vm(cluster->plane, vm->name, slice_of(key), json, &err);
}

void cluster_on_guest_event(void *context, struct guest *guest, const char *text)
{
	const struct cluster_vm *vm = context;
	const struct cluster *cluster = vm->cluster;

	(void)guest;
	cluster->handler.on_monitor(cluster->context, vm->index, text);
}

void cluster_on_guest_accept_error(void *context, const struct error *err)
{
	const struct cluster *cluster = ((const struct cluster_vm *)context)->cluster;

	cluster->handler.on_accept_error(cluster->context, err);
}

static void on_plugin_accept_error(void *context, const struct error *err)
{
	const struct cluster *cluster = context;

	cluster->handler.on_accept_error(cluster->context, err);
}

/* ---- making it ---- */

static bool make_token(struct cluster *cluster, struct error *err)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bytes[CLUSTER_TOKEN_BYTES / 2 - 1];
	size_t length = 0;

	if (!loop_random(cluster->loop, bytes, sizeof bytes))
		return error_set(err, ERROR_SYSTEM, "the system has no randomness");
	for (size_t i = 0; i < sizeof bytes; i++) {
		cluster->token[length++] = digits[bytes[i] >> 4];
		cluster->token[length++] = digits[bytes[i] & 15];
	}
	cluster->token[length] = '\0';
	return true;
}

static bool start_control_plane(struct cluster *cluster, struct error *err)
{
	static const struct control_plane_handler handler = { .on_patched = on_patched, .on_resized = on_resized };
	struct control_plane_options options = {
		.address = cluster_address(cluster, ADDRESS_API, AGENT_SETUP_API_PORT),
		.token = cluster->token,
		.user = USER,
		.late_2023 = cluster->workload->options.generation.late_2023,
		.speed = cluster->workload->options.speed,
	};
	char scheduler_address[ADDRESS_TEXT_BYTES];
	struct address address = cluster_address(cluster, ADDRESS_PLUGIN, 0);

	cluster->plane = control_plane_start(cluster->loop, &options, &handler, cluster, err);
	if (cluster->plane == NULL)
		return false;
	address_print_host(&options.address, false, cluster->api_address);
	address_print_host(&address, false, scheduler_address);
	return control_plane_add_scheduler_pod(cluster->plane, AGENT_SETUP_SCHEDULER_NAME, SCHEDULER_POD,
	                                       scheduler_address, "node-a", err);
}

static bool start_plugin(struct cluster *cluster, struct error *err)
{
	static const struct scheduler_plugin_handler handler = { .on_answer = on_answer,
		                                                 .on_annotate = on_annotate,
		                                                 .on_accept_error = on_plugin_accept_error };
	const struct workload *workload = cluster->workload;
	struct address address = cluster_address(cluster, ADDRESS_PLUGIN, AGENT_SETUP_PLUGIN_PORT);

	cluster->plugin =
		scheduler_plugin_start(cluster->loop, &address, workload->options.speed, &handler, cluster, err);
	if (cluster->plugin == NULL)
		return false;
	scheduler_plugin_be(cluster->plugin, sandbox_generation_plugin(&workload->options.generation));
	for (unsigned i = 0; i < workload->options.nodes; i++) {
		unsigned units = ROOMY_NODE_UNITS;
		char name[CLUSTER_NODE_NAME_BYTES];

		for (unsigned j = 0; j < workload->options.vms; j++)
			units += workload->vms[j].max;
		if (workload->has_full_node && i == 1)
			units = WORKLOAD_FULL_NODE_UNITS;
		cluster_name_node(name, i);
		if (!scheduler_plugin_add_node(cluster->plugin, name, cluster_resources(units), err))
			return false;
	}
	return true;
}

static void place_agents(struct cluster *cluster)
{
	cluster->agent_count = cluster->workload->has_full_node ? 2 : cluster->workload->options.vms > 0;
	for (unsigned i = 0; i < cluster->agent_count; i++) {
		struct address address = cluster_address(cluster, ADDRESS_AGENTS + i, 0);

		address_print_host(&address, false, cluster->agent_addresses[i]);
		cluster_name_node(cluster->agent_nodes[i], i);
	}
}

static bool start_all(struct cluster *cluster, struct error *err)
{
	uint64_t choice;

	if (!loop_random(cluster->loop, &choice, sizeof choice))
		return error_set(err, ERROR_SYSTEM, "the system has no randomness");
	if (!address_block_take(&cluster->addresses, ADDRESS_GUESTS + cluster->vm_count, choice, err) ||
	    !make_token(cluster, err) || !start_control_plane(cluster, err) || !start_plugin(cluster, err))
		return false;
	place_agents(cluster);
	cluster_name_vms(cluster);
	for (unsigned i = 0; i < cluster->vm_count; i++) {
		if (!cluster_add_vm(cluster, i, err))
			return false;
	}
	return true;
}

/* With those to be ignored. */
static unsigned count_vms(const struct workload *workload)
{
	unsigned agents = workload->has_full_node ? 2 : 1;
	unsigned others = 1;

	if (workload->options.vms == 0)
		return 0;
	if (workload->options.nodes > agents)
		others += CLUSTER_IGNORED_ON_NODE * (workload->options.nodes - agents);
	return workload->options.vms + others;
}

unsigned cluster_descriptors(const struct workload *workload)
{
	return count_vms(workload) * DESCRIPTORS_PER_GUEST + workload->options.vms * DESCRIPTORS_PER_VM +
	       DESCRIPTORS_BESIDE;
}

struct cluster *cluster_start(struct loop *loop, const struct workload *workload, const struct cluster_handler *handler,
                              void *context, struct error *err)
{
	unsigned vm_count = count_vms(workload);
	struct cluster *cluster;

	cluster = memory_allocate(sizeof *cluster + vm_count * sizeof cluster->vms[0]);
	if (cluster == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory for the cluster");
		return NULL;
	}
	cluster->loop = loop;
	cluster->workload = workload;
	cluster->handler = *handler;
	cluster->context = context;
	cluster->vm_count = vm_count;
	if (!start_all(cluster, err)) {
		cluster_destroy(cluster);
		return NULL;
	}
	return cluster;
}

void cluster_destroy(struct cluster *cluster)
{
	if (cluster == NULL)
		return;
	for (unsigned i = 0; i < cluster->vm_count; i++)
		guest_destroy(cluster->vms[i].guest);
	scheduler_plugin_destroy(cluster->plugin);
	if (cluster->plane != NULL)
		control_plane_destroy(cluster->plane);
	address_block_give_back(&cluster->addresses);
	memory_release(cluster);
}

/* ---- what it is told and asked ---- */

const char *cluster_token(const struct cluster *cluster)
{
	return cluster->token;
}

struct slice cluster_ca_pem(const struct cluster *cluster)
{
	return control_plane_ca_pem(cluster->plane);
}

unsigned cluster_agent_count(const struct cluster *cluster)
{
	return cluster->agent_count;
}

struct agent_place cluster_agent_place(const struct cluster *cluster, unsigned agent)
{
	return (struct agent_place){ .node = cluster->agent_nodes[agent],
		                     .address = cluster->agent_addresses[agent],
		                     .api_address = cluster->api_address };
}

struct address cluster_receiver_address(const struct cluster *cluster, uint16_t port)
{
	return cluster_address(cluster, ADDRESS_RECEIVER, port);
}

bool cluster_vm_is_billed(const struct cluster *cluster, unsigned vm)
{
	for (unsigned i = 0; i < cluster->agent_count; i++) {
		if (strcmp(cluster->vms[vm].node, cluster->agent_nodes[i]) == 0)
			return true;
	}
	return false;
}

bool cluster_find_endpoint(const struct cluster *cluster, struct slice endpoint_id, unsigned *ret_vm)
{
	char endpoint[CLUSTER_ENDPOINT_BYTES];

	for (unsigned i = 0; i < cluster->vm_count; i++) {
		cluster_name_endpoint(endpoint, cluster->vms[i].name);
		if (!slice_equal_text(endpoint_id, endpoint))
			continue;
		*ret_vm = i;
		return true;
	}
	return false;
}

void cluster_begin_phase(struct cluster *cluster, unsigned phase)
{
	cluster->phase = phase;
	for (unsigned i = 0; i < cluster->vm_count; i++)
		cluster_set_demand(&cluster->vms[i]);
}

bool cluster_set_away(struct cluster *cluster, const struct outage *outage, bool away, struct error *err)
{
	switch (outage->peer) {
	case OUTAGE_MONITOR:
		guest_set_monitor_available(cluster->vms[outage->vm].guest, !away);
		return true;
	case OUTAGE_RECEIVER: /* isn't a part of the cluster */
		return true;
	case OUTAGE_API:
		control_plane_set_available(cluster->plane, !away);
		return true;
	case OUTAGE_EXTENDER:
		return true; /* not a part of this */
	case OUTAGE_PLUGIN:
		/* As when the process crashes in its place: the pod stays, and isn't ready meanwhile. */
		return scheduler_plugin_set_available(cluster->plugin, !away, err) &&
		       control_plane_set_pod_ready(cluster->plane, "kube-system", SCHEDULER_POD, !away, err);
	}
	return true;
}

struct control_plane *cluster_control_plane(const struct cluster *cluster)
{
	return cluster->plane;
}

struct address cluster_extender_address(const struct cluster *cluster, uint16_t port)
{
	return cluster_address(cluster, ADDRESS_EXTENDER, port);
}

const char *cluster_api_address(const struct cluster *cluster)
{
	return cluster->api_address;
}

void cluster_set_faults(struct cluster *cluster, struct faults *faults)
{
	control_plane_set_faults(cluster->plane, faults);
	scheduler_plugin_set_faults(cluster->plugin, faults);
}

void cluster_set_monitor_fault(struct cluster *cluster, unsigned vm, enum fault_kind kind, bool faulty)
{
	struct guest_monitor_faults faults = { .work_ms = faulty ? FAULT_SLOW_MS_MAX : 0 };

	if (kind == FAULT_MONITOR_CLOSED)
		guest_set_monitor_available(cluster->vms[vm].guest, !faulty);
	else
		guest_set_monitor_faults(cluster->vms[vm].guest, &faults);
}

unsigned cluster_vm_count(const struct cluster *cluster)
{
	return cluster->vm_count;
}

const char *cluster_vm_name(const struct cluster *cluster, unsigned vm)
{
	return cluster->vms[vm].name;
}

struct cluster_vm_state cluster_vm_state(const struct cluster *cluster, unsigned vm)
{
	const struct cluster_vm *from = &cluster->vms[vm];
	struct control_plane_vm_state truth = { .cpu_use_milli = 0 };
	struct resources reserved = { .cpu_milli = 0 };

	(void)control_plane_vm_state(cluster->plane, from->name, &truth);
	(void)scheduler_plugin_reserved(cluster->plugin, CLUSTER_NAME_SPACE, from->pod_name, &reserved);
	return (struct cluster_vm_state){
		.size = { .cpu_milli = truth.cpu_use_milli, .slots = truth.slots_use },
		.plugged = from->plugged,
		.permitted = size_of(reserved.cpu_milli, reserved.mem_bytes),
		.monitor = guest_monitor_state(from->guest),
		.monitor_believes_bytes = guest_monitor_believes_bytes(from->guest),
		.guest = guest_counters(from->guest),
		.patches = truth.patches,
		.refused_patches = truth.refused_patches,
	};
}

struct control_plane_counters cluster_api_counters(const struct cluster *cluster)
{
	return control_plane_counters(cluster->plane);
}

struct scheduler_plugin_counters cluster_scheduler_counters(const struct cluster *cluster)
{
	return scheduler_plugin_counters(cluster->plugin);
}
