#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "codec/json_tree.h"
#include "gen/scaling.gen.h"
#include "sandbox/object_store.h"
#include "sim_cluster_internal.h"

static const char USER[] = "system:serviceaccount:kube-system:autoscaler-agent";

struct resources sim_units(unsigned units)
{
	return (struct resources){ .cpu_milli = units * WORKLOAD_UNIT_CPU_MILLI,
		                   .mem_bytes = units * WORKLOAD_UNIT_BYTES };
}

/* ---- addresses and names ---- */

enum sim_place { PLACE_API, PLACE_PLUGIN, PLACE_GUEST };

static struct address address_at(enum sim_place place, unsigned index, uint16_t port)
{
	return (struct address){ .bytes = { 10, (uint8_t)place, (uint8_t)(index / 250), (uint8_t)(1 + index % 250) },
		                 .port = port };
}

void sim_cluster_name_node(char name[SIM_NODE_NAME_BYTES], unsigned node)
{
	(void)snprintf(name, SIM_NODE_NAME_BYTES, "node-%c", (char)('a' + (int)(node % 26)));
}

/* ---- what the parts tell each other ---- */

struct sim_vm *sim_cluster_find_pod(struct sim_cluster *cluster, const char *pod_name)
{
	for (unsigned i = 0; i < cluster->vm_count; i++)
		if (strcmp(cluster->vms[i].pod_name, pod_name) == 0)
			return &cluster->vms[i];
	return NULL;
}

static struct sim_vm *find_by_name(struct sim_cluster *cluster, const char *name)
{
	for (unsigned i = 0; i < cluster->vm_count; i++)
		if (strcmp(cluster->vms[i].name, name) == 0)
			return &cluster->vms[i];
	return NULL;
}

static void on_resized(void *context, const char *name, uint32_t cpu_milli, uint64_t memory_bytes, bool settled)
{
	struct sim_cluster *cluster = context;
	struct sim_vm *vm = find_by_name(cluster, name);

	(void)settled;
	if (vm == NULL)
		return;
	vm->plugged_bytes = memory_bytes;
	guest_set_size(vm->guest, cpu_milli, memory_bytes);
	sim_vm_set_demand(vm);
	sim_vm_end_boot(vm);
}

static unsigned node_of_pod(const struct sim_vm *vm)
{
	struct stored_object *object =
		object_store_find(control_plane_store(vm->cluster->api.plane), resource_kind(RESOURCE_PODS),
	                          SLICE(SIM_NAME_SPACE), slice_of(vm->pod_name));
	struct object_edit edit;
	unsigned node = vm->node;
	struct slice name;
	struct error err;

	if (object == NULL || !object_edit_begin(&edit, object, &err))
		return node;
	name = json_tree_text(json_tree_find(edit.root, "/spec/nodeName"));
	if (name.length > 0)
		node = (unsigned)(name.data[name.length - 1] - 'a');
	object_edit_end(&edit);
	return node;
}

/* The plugin's own watch of pods: the VM has another pod than before. */
static void change_pod(struct sim_vm *vm, struct slice pod_name)
{
	struct sim_cluster *cluster = vm->cluster;
	unsigned old_node = vm->node;
	struct resources use = { .cpu_milli = vm->size.cpu_milli, .mem_bytes = vm->size.slots * WORKLOAD_UNIT_BYTES };
	struct error err;

	sim_schedulers_remove_pod(cluster, vm->pod_name);
	(void)snprintf(vm->pod_name, sizeof vm->pod_name, "%.*s", SLICE_ARGS(pod_name));
	vm->node = node_of_pod(vm);
	sim_history_add(&vm->permits, simulation_now_ns(cluster->simulation), use);
	if (!sim_schedulers_add_pod(cluster, vm, use, &err))
		simulation_broken(cluster->simulation, "simulator", "%s: %s", vm->name, err.text);
	vm->has_booted = vm->node == old_node; /* otherwise it came as it was */
}

static void on_phase(void *context, const char *name, const char *phase)
{
	struct sim_cluster *cluster = context;
	struct sim_vm *vm = find_by_name(cluster, name);
	struct stored_object *object =
		object_store_find(control_plane_store(cluster->api.plane), resource_kind(RESOURCE_VIRTUAL_MACHINES),
	                          SLICE(SIM_NAME_SPACE), slice_of(name));
	struct object_edit edit;
	struct slice pod_name;
	struct error err;

	sim_world_note(simulation_world(cluster->simulation), "vm %s: %s", name, phase);
	if (vm == NULL || object == NULL || strcmp(phase, "Running") != 0 || !object_edit_begin(&edit, object, &err))
		return;
	pod_name = json_tree_text(json_tree_find(edit.root, "/status/podName"));
	if (pod_name.length > 0 && !slice_equal_text(pod_name, vm->pod_name))
		change_pod(vm, pod_name);
	object_edit_end(&edit);
}

/* ---- making it ---- */

static bool start_plane(struct sim_cluster *cluster, struct error *err)
{
	static const struct control_plane_handler HANDLER = { .on_patched = sim_cluster_on_patched,
		                                              .on_resized = on_resized,
		                                              .on_phase = on_phase };
	struct sim_world *world = simulation_world(cluster->simulation);
	struct control_plane_options options = {
		.address = address_at(PLACE_API, 0, AGENT_SETUP_API_PORT),
		.token = cluster->token,
		.user = USER,
		.speed = 1,
		.plain = !simulation_options(cluster->simulation)->tls,
	};

	(void)snprintf(cluster->token, sizeof cluster->token, "token-of-the-agent");
	cluster->api_loop = loop_sim_create(world, "api", &options.address, err);
	if (cluster->api_loop == NULL)
		return false;
	cluster->api = (struct sim_api){ .simulation = cluster->simulation, .name = "api" };
	cluster->api.plane = control_plane_start(cluster->api_loop, &options, &HANDLER, cluster, err);
	return cluster->api.plane != NULL;
}

struct address sim_cluster_plugin_address(unsigned number)
{
	return address_at(PLACE_PLUGIN, number, AGENT_SETUP_PLUGIN_PORT);
}

struct address sim_cluster_guest_address(unsigned index)
{
	return address_at(PLACE_GUEST, index, 0);
}

/* ---- as an actor ---- */

static void begin_phase(void *context, struct simulation *simulation, unsigned phase)
{
	struct sim_cluster *cluster = context;

	sim_world_note(simulation_world(simulation), "phase %u of the workload", phase + 1);
	cluster->phase = phase;
	for (unsigned i = 0; i < cluster->vm_count; i++)
		sim_vm_set_demand(&cluster->vms[i]);
}

static void destroy_loop(struct loop *loop)
{
	if (loop != NULL)
		loop_destroy(loop);
}

static void destroy(void *context, struct simulation *simulation)
{
	struct sim_cluster *cluster = context;

	(void)simulation;
	for (unsigned i = 0; i < cluster->vm_count; i++) {
		guest_destroy(cluster->vms[i].guest);
		destroy_loop(cluster->vms[i].loop);
	}
	sim_schedulers_destroy(cluster);
	control_plane_destroy(cluster->api.plane);
	destroy_loop(cluster->api_loop);
	workload_destroy(cluster->workload);
	memory_release(cluster);
}

static bool start_all(struct sim_cluster *cluster, struct error *err)
{
	if (!start_plane(cluster, err) || !sim_schedulers_start(cluster, err))
		return false;
	for (unsigned i = 0; i < cluster->vm_count; i++)
		if (!sim_cluster_add_vm(cluster, i, err))
			return false;
	return true;
}

struct sim_cluster *sim_cluster_create(struct simulation *simulation, struct error *err)
{
	const struct sim_options *options = simulation_options(simulation);
	const struct workload_options workload_options = {
		.seed = options->seed, .vms = options->vms, .nodes = options->nodes, .speed = 1
	};
	unsigned vm_count = options->vms + SIM_IGNORED_VMS;
	struct sim_cluster *cluster = memory_allocate(sizeof *cluster + vm_count * sizeof cluster->vms[0]);
	struct sim_actor actor = {
		.name = "cluster",
		.context = cluster,
		.misfortunes = SIM_CLUSTER_MISFORTUNES,
		.strike = sim_cluster_strike,
		.calm = sim_cluster_calm,
		.begin_phase = begin_phase,
		.check = sim_cluster_check,
		.check_second = sim_cluster_check_second,
		.check_settled = sim_cluster_check_settled,
		.destroy = destroy,
	};
	/* With chances of their own. */
	struct sim_actor vms = {
		.name = "VMs", .context = cluster, .misfortunes = SIM_VM_MISFORTUNES, .strike = sim_cluster_strike_vm
	};
	struct sim_actor schedulers = { .name = "schedulers",
		                        .context = cluster,
		                        .misfortunes = SIM_SCHEDULER_MISFORTUNES,
		                        .strike = sim_schedulers_strike };

	if (cluster == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a cluster");
		return NULL;
	}
	cluster->simulation = simulation;
	cluster->vm_count = vm_count;
	cluster->workload = workload_create(&workload_options, err);
	if (cluster->workload != NULL)
		cluster->agent_count = !cluster->workload->has_full_node ? 1
		                       : options->nodes > 2              ? SIM_CLUSTER_AGENTS
		                                                         : 2;
	if (cluster->workload == NULL || !start_all(cluster, err) || !simulation_add(simulation, &actor) ||
	    !simulation_add(simulation, &vms) || !simulation_add(simulation, &schedulers)) {
		destroy(cluster, simulation);
		return NULL;
	}
	return cluster;
}

/* ---- what may be asked ---- */

const char *sim_cluster_token(const struct sim_cluster *cluster)
{
	return cluster->token;
}

struct slice sim_cluster_ca_pem(const struct sim_cluster *cluster)
{
	return control_plane_ca_pem(cluster->api.plane);
}

struct address sim_cluster_api_address(const struct sim_cluster *cluster)
{
	(void)cluster;
	return address_at(PLACE_API, 0, AGENT_SETUP_API_PORT);
}

const struct workload *sim_cluster_workload(const struct sim_cluster *cluster)
{
	return cluster->workload;
}

unsigned sim_cluster_agent_count(const struct sim_cluster *cluster)
{
	return cluster->agent_count;
}

static bool is_there(const struct sim_vm *vm, unsigned node)
{
	return vm->node == node && !vm->is_deleted && !vm->is_stopped;
}

unsigned sim_cluster_vms_on_node(const struct sim_cluster *cluster, unsigned node)
{
	unsigned count = 0;

	for (unsigned i = 0; i < cluster->workload->options.vms; i++)
		count += is_there(&cluster->vms[i], node) ? 1 : 0;
	return count;
}

unsigned sim_cluster_vms_billed_on_node(const struct sim_cluster *cluster, unsigned node)
{
	unsigned count = 0;

	for (unsigned i = 0; i < cluster->vm_count; i++)
		count += is_there(&cluster->vms[i], node) ? 1 : 0;
	return count;
}

bool sim_cluster_is_billed_on_node(const struct sim_cluster *cluster, struct slice name, unsigned node)
{
	for (unsigned i = 0; i < cluster->vm_count; i++)
		if (slice_equal_text(name, cluster->vms[i].name))
			return is_there(&cluster->vms[i], node);
	return false;
}

bool sim_cluster_may_ask(const struct sim_cluster *cluster, const char *scheduler_pod)
{
	return sim_schedulers_may_ask(cluster, scheduler_pod);
}

struct control_plane_counters sim_cluster_api_counters(const struct sim_cluster *cluster)
{
	return control_plane_counters(cluster->api.plane);
}

struct sim_cluster_counts sim_cluster_counts(const struct sim_cluster *cluster)
{
	struct sim_cluster_counts counts = cluster->counts;

	counts.api = cluster->api.counts;
	return counts;
}

unsigned sim_cluster_loop_count(const struct sim_cluster *cluster)
{
	return 2 + cluster->vm_count;
}

struct loop *sim_cluster_loop(const struct sim_cluster *cluster, unsigned index)
{
	return index == 0   ? cluster->api_loop
	       : index == 1 ? sim_schedulers_current(cluster)->loop
	                    : cluster->vms[index - 2].loop;
}
