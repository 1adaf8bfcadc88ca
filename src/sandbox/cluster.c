/*
 * The parts know each other by names (of VM, of pod) or by handle; here they become the workload's numbers. Everything that one
 * part's act means for another passes through this file: what the controller plugs changes the guest, what the plugin reserves
 * is written to the VM's annotations.
 */
#include "sandbox/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "gen/scaling.gen.h"
#include "sandbox/address_block.h"
#include "sandbox/demand.h"

enum {
	IGNORED_ON_OTHER_NODE = 2, /* VMs on each node that has no agent of ours */
	IGNORED_UNITS = 2,
	IGNORED_MAX_UNITS = 4,
	ROOMY_NODE_UNITS = 64, /* at least; plenty for every VM at its maximum */
	POD_NAME_BYTES = WORKLOAD_NAME_BYTES + 8,
	ANNOTATION_BYTES = 512,
	TOKEN_BYTES = 48,
};

/* Places in the address block. */
enum { ADDRESS_API, ADDRESS_PLUGIN, ADDRESS_AGENTS, ADDRESS_GUESTS = ADDRESS_AGENTS + CLUSTER_AGENTS_MAX };

static const char NAME_SPACE[] = "apps";
static const char SCHEDULER_POD[] = "autoscale-scheduler-6f7d9c5b8-q2w3e";
static const char USER[] = "system:serviceaccount:kube-system:autoscaler-agent";

struct cluster_vm {
	struct cluster *cluster;
	unsigned index;
	char name[WORKLOAD_NAME_BYTES];
	char pod_name[POD_NAME_BYTES];
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
	char token[TOKEN_BYTES];
	char api_address[ADDRESS_TEXT_BYTES];
	char agent_addresses[CLUSTER_AGENTS_MAX][ADDRESS_TEXT_BYTES];
	char agent_nodes[CLUSTER_AGENTS_MAX][CLUSTER_NODE_NAME_BYTES];
	unsigned agent_count;
	unsigned phase;
	unsigned vm_count;
	struct cluster_vm vms[];
};

/* ---- sizes ---- */

struct cluster_size cluster_units(unsigned units)
{
	return (struct cluster_size){ .cpu_milli = units * WORKLOAD_UNIT_CPU_MILLI, .slots = units };
}

static struct cluster_size size_of(uint32_t cpu_milli, uint64_t mem_bytes)
{
	return (struct cluster_size){ .cpu_milli = cpu_milli, .slots = (unsigned)(mem_bytes / WORKLOAD_UNIT_BYTES) };
}

static struct resources resources_of_units(unsigned units)
{
	return (struct resources){ .cpu_milli = units * WORKLOAD_UNIT_CPU_MILLI,
		                   .mem_bytes = units * WORKLOAD_UNIT_BYTES };
}

bool cluster_size_equal(struct cluster_size a, struct cluster_size b)
{
	return a.cpu_milli == b.cpu_milli && a.slots == b.slots;
}

void cluster_size_print(struct cluster_size size, char text[CLUSTER_SIZE_TEXT_BYTES])
{
	if (cluster_size_equal(size, cluster_units(size.slots)))
		(void)snprintf(text, CLUSTER_SIZE_TEXT_BYTES, "%u CU", size.slots);
	else
		(void)snprintf(text, CLUSTER_SIZE_TEXT_BYTES, "%um CPU and %u slots", size.cpu_milli, size.slots);
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

static void set_demand(const struct cluster_vm *vm)
{
	const struct workload *workload = vm->cluster->workload;
	struct guest_demand demand;

	if (vm->index >= workload->options.vms)
		return;
	demand = demand_of_phase(workload_phase(workload, vm->index, vm->cluster->phase), vm->plugged_bytes);
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
	set_demand(vm);
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

static void on_guest_event(void *context, struct guest *guest, const char *text)
{
	const struct cluster_vm *vm = context;
	const struct cluster *cluster = vm->cluster;

	(void)guest;
	cluster->handler.on_monitor(cluster->context, vm->index, text);
}

/* ---- making it ---- */

static bool make_token(struct cluster *cluster, struct error *err)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bytes[TOKEN_BYTES / 2 - 1];
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

static void name_node(char name[CLUSTER_NODE_NAME_BYTES], unsigned node)
{
	(void)snprintf(name, CLUSTER_NODE_NAME_BYTES, "node-%c", (char)('a' + node));
}

static struct address address_of(const struct cluster *cluster, unsigned place, uint16_t port)
{
	return address_block_at(&cluster->addresses, place, port);
}

static bool start_control_plane(struct cluster *cluster, struct error *err)
{
	static const struct control_plane_handler handler = { .on_patched = on_patched, .on_resized = on_resized };
	struct control_plane_options options = {
		.address = address_of(cluster, ADDRESS_API, AGENT_SETUP_API_PORT),
		.token = cluster->token,
		.user = USER,
		.speed = cluster->workload->options.speed,
	};
	char scheduler_address[ADDRESS_TEXT_BYTES];
	struct address address = address_of(cluster, ADDRESS_PLUGIN, 0);

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
	static const struct scheduler_plugin_handler handler = { .on_answer = on_answer, .on_annotate = on_annotate };
	const struct workload *workload = cluster->workload;
	struct address address = address_of(cluster, ADDRESS_PLUGIN, AGENT_SETUP_PLUGIN_PORT);

	cluster->plugin =
		scheduler_plugin_start(cluster->loop, &address, workload->options.speed, &handler, cluster, err);
	if (cluster->plugin == NULL)
		return false;
	for (unsigned i = 0; i < workload->options.nodes; i++) {
		unsigned units = ROOMY_NODE_UNITS;
		char name[CLUSTER_NODE_NAME_BYTES];

		for (unsigned j = 0; j < workload->options.vms; j++)
			units += workload->vms[j].max;
		if (workload->has_full_node && i == 1)
			units = WORKLOAD_FULL_NODE_UNITS;
		name_node(name, i);
		if (!scheduler_plugin_add_node(cluster->plugin, name, resources_of_units(units), err))
			return false;
	}
	return true;
}

static void place_agents(struct cluster *cluster)
{
	cluster->agent_count = cluster->workload->has_full_node ? 2 : 1;
	for (unsigned i = 0; i < cluster->agent_count; i++) {
		struct address address = address_of(cluster, ADDRESS_AGENTS + i, 0);

		address_print_host(&address, false, cluster->agent_addresses[i]);
		name_node(cluster->agent_nodes[i], i);
	}
}

/* How a VM begins. */
struct vm_plan {
	bool autoscaling;
	unsigned min, max, initial, plugged, bound;
	bool reads_lfc;
};

static struct vm_plan plan_of(const struct cluster *cluster, unsigned index)
{
	const struct workload *workload = cluster->workload;
	const struct workload_vm *vm;

	/* The first of those to be ignored lives beside ours, without the label; the rest has it, and lives elsewhere. */
	if (index >= workload->options.vms)
		return (struct vm_plan){ .autoscaling = index > workload->options.vms,
			                 .min = 1,
			                 .max = IGNORED_MAX_UNITS,
			                 .initial = IGNORED_UNITS,
			                 .plugged = IGNORED_UNITS };
	vm = &workload->vms[index];
	return (struct vm_plan){ .autoscaling = true,
		                 .min = vm->min,
		                 .max = vm->max,
		                 .initial = vm->initial,
		                 .plugged = vm->plugged,
		                 .bound = vm->bound,
		                 .reads_lfc = vm->kind == WORKLOAD_LFC };
}

static bool print_bounds(const struct vm_plan *plan, struct buffer *out, struct error *err)
{
	struct scaling_bounds bounds = {
		.min = { .cpu_milli = plan->min * WORKLOAD_UNIT_CPU_MILLI,
		         .mem_bytes = plan->min * WORKLOAD_UNIT_BYTES },
		.max = { .cpu_milli = plan->bound * WORKLOAD_UNIT_CPU_MILLI,
		         .mem_bytes = plan->bound * WORKLOAD_UNIT_BYTES },
	};

	return plan->bound == 0 || scaling_bounds_to_json(&bounds, out, err);
}

static bool print_config(const struct vm_plan *plan, struct buffer *out, struct error *err)
{
	struct scaling_scaling_config config = { .has_enable_lfc_metrics = true, .enable_lfc_metrics = true };

	return !plan->reads_lfc || scaling_scaling_config_to_json(&config, out, err);
}

/* Its text, terminated, or NULL if there is none. */
static const char *text_or_null(struct buffer *buffer)
{
	if (buffer->length == 0)
		return NULL;
	buffer_append_char(buffer, '\0');
	return buffer->failed ? NULL : buffer->data;
}

static bool add_to_control_plane(struct cluster *cluster, const struct cluster_vm *vm, const struct vm_plan *plan,
                                 const char *pod_ip, struct error *err)
{
	struct buffer bounds, config;
	char endpoint[WORKLOAD_NAME_BYTES + 8], project[WORKLOAD_NAME_BYTES + 8];
	struct control_plane_vm added = {
		.name_space = NAME_SPACE,
		.name = vm->name,
		.node = vm->node,
		.pod_name = vm->pod_name,
		.pod_ip = pod_ip,
		.endpoint_id = endpoint,
		.project_id = project,
		.autoscaling = plan->autoscaling,
		.cpu_min_milli = plan->min * WORKLOAD_UNIT_CPU_MILLI,
		.cpu_max_milli = plan->max * WORKLOAD_UNIT_CPU_MILLI,
		.cpu_use_milli = plan->initial * WORKLOAD_UNIT_CPU_MILLI,
		.slots_min = (uint16_t)plan->min,
		.slots_max = (uint16_t)plan->max,
		.slots_use = (uint16_t)plan->initial,
		.slot_bytes = WORKLOAD_UNIT_BYTES,
	};
	bool ok;

	(void)snprintf(endpoint, sizeof endpoint, "ep-%s", vm->name);
	(void)snprintf(project, sizeof project, "project-%s", vm->name);
	if (plan->plugged != plan->initial) {
		added.target_revision = 41;
		added.target_flags = 1;
		added.current_revision = 40;
		added.plugged_cpu_milli = plan->plugged * WORKLOAD_UNIT_CPU_MILLI;
		added.plugged_slots = (uint16_t)plan->plugged;
	}
	buffer_init(&bounds, ANNOTATION_BYTES);
	buffer_init(&config, ANNOTATION_BYTES);
	ok = print_bounds(plan, &bounds, err) && print_config(plan, &config, err);
	if (ok) {
		added.bounds_annotation = text_or_null(&bounds);
		added.config_annotation = text_or_null(&config);
		ok = buffer_check(&bounds, "bounds", err) && buffer_check(&config, "config", err) &&
		     control_plane_add_vm(cluster->plane, &added, err);
	}
	buffer_destroy(&bounds);
	buffer_destroy(&config);
	return ok;
}

static bool start_guest(struct cluster *cluster, struct cluster_vm *vm, const struct vm_plan *plan, struct error *err)
{
	static const struct guest_handler handler = { .on_event = on_guest_event };
	char host_name[POD_NAME_BYTES + 4];
	struct guest_options options = {
		.host_name = host_name,
		.address = address_of(cluster, ADDRESS_GUESTS + vm->index, 0),
		.metrics_port = AGENT_SETUP_SYSTEM_PORT,
		.lfc_port = AGENT_SETUP_LFC_PORT,
		.monitor_port = AGENT_SETUP_MONITOR_PORT,
		.cpu_milli = plan->plugged * WORKLOAD_UNIT_CPU_MILLI,
		.memory_bytes = plan->plugged * WORKLOAD_UNIT_BYTES,
		.page_padding_kb = 20, /* a page of 30 kB, as of a small VM (surroundings 4.1.7) */
	};

	(void)snprintf(host_name, sizeof host_name, "vm-%s", vm->pod_name);
	vm->plugged = cluster_units(plan->plugged);
	vm->plugged_bytes = options.memory_bytes;
	vm->guest = guest_start(cluster->loop, &options, &handler, vm, err);
	return vm->guest != NULL;
}

static bool add_vm(struct cluster *cluster, unsigned index, struct error *err)
{
	struct cluster_vm *vm = &cluster->vms[index];
	struct vm_plan plan = plan_of(cluster, index);
	struct address address = address_of(cluster, ADDRESS_GUESTS + index, 0);
	char pod_ip[ADDRESS_TEXT_BYTES];
	struct scheduler_plugin_pod pod = {
		.name_space = NAME_SPACE,
		.name = vm->pod_name,
		.node = vm->node,
		.is_vm = true,
		.use = resources_of_units(plan.initial),
	};

	address_print_host(&address, false, pod_ip);
	if (!start_guest(cluster, vm, &plan, err) || !scheduler_plugin_add_pod(cluster->plugin, &pod, err) ||
	    !add_to_control_plane(cluster, vm, &plan, pod_ip, err))
		return error_wrap(err, "VM %s", vm->name);
	set_demand(vm);
	return true;
}

/* As the controller names its pods. */
static void name_pod(struct cluster_vm *vm, struct rng *rng)
{
	static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
	size_t length = strlen(vm->name);

	memcpy(vm->pod_name, vm->name, length);
	vm->pod_name[length++] = '-';
	for (int i = 0; i < 5; i++)
		vm->pod_name[length++] = letters[rng_between(rng, 0, sizeof letters - 1)];
	vm->pod_name[length] = '\0';
}

static void name_vms(struct cluster *cluster)
{
	const struct workload *workload = cluster->workload;
	struct rng rng;

	rng_seed(&rng, workload->options.seed);
	for (unsigned i = 0; i < cluster->vm_count; i++) {
		struct cluster_vm *vm = &cluster->vms[i];
		unsigned node = 0;

		vm->cluster = cluster;
		vm->index = i;
		if (i < workload->options.vms) {
			node = workload->vms[i].node;
			memcpy(vm->name, workload->vms[i].name, sizeof vm->name);
		} else {
			unsigned other = i - workload->options.vms;

			if (other > 0)
				node = cluster->agent_count + (other - 1) / IGNORED_ON_OTHER_NODE;
			(void)snprintf(vm->name, sizeof vm->name, "other-%u", other + 1);
		}
		name_node(vm->node, node);
		name_pod(vm, &rng);
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
	name_vms(cluster);
	for (unsigned i = 0; i < cluster->vm_count; i++) {
		if (!add_vm(cluster, i, err))
			return false;
	}
	return true;
}

struct cluster *cluster_start(struct loop *loop, const struct workload *workload, const struct cluster_handler *handler,
                              void *context, struct error *err)
{
	unsigned agents = workload->has_full_node ? 2 : 1;
	unsigned vm_count = workload->options.vms + 1;
	struct cluster *cluster;

	if (workload->options.nodes > agents)
		vm_count += IGNORED_ON_OTHER_NODE * (workload->options.nodes - agents);
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

void cluster_begin_phase(struct cluster *cluster, unsigned phase)
{
	cluster->phase = phase;
	for (unsigned i = 0; i < cluster->vm_count; i++)
		set_demand(&cluster->vms[i]);
}

bool cluster_set_away(struct cluster *cluster, const struct outage *outage, bool away, struct error *err)
{
	switch (outage->peer) {
	case OUTAGE_MONITOR:
		guest_set_monitor_available(cluster->vms[outage->vm].guest, !away);
		return true;
	case OUTAGE_API:
		control_plane_set_available(cluster->plane, !away);
		return true;
	case OUTAGE_PLUGIN:
		/* As when the process crashes in its place: the pod stays, and isn't ready meanwhile. */
		return scheduler_plugin_set_available(cluster->plugin, !away, err) &&
		       control_plane_set_pod_ready(cluster->plane, "kube-system", SCHEDULER_POD, !away, err);
	}
	return true;
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
	(void)scheduler_plugin_reserved(cluster->plugin, NAME_SPACE, from->pod_name, &reserved);
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
