#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "codec/json_tree.h"
#include "gen/scaling.gen.h"
#include "sandbox/object_store.h"
#include "sim_cluster_internal.h"

enum { IGNORED_UNITS = 2, IGNORED_MAX_UNITS = 4, ANNOTATION_BYTES = 512, ROOMY_NODE_UNITS = 64 };

static const char SCHEDULER_POD[] = "autoscale-scheduler-6f7d9c5b8-q2w3e";
static const char POD_SUFFIX[] = "-x7k2p";
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

static void print_host(const struct address *address, char text[ADDRESS_TEXT_BYTES])
{
	address_print_host(address, false, text);
}

static void name_node(char name[SIM_NODE_NAME_BYTES], unsigned node)
{
	(void)snprintf(name, SIM_NODE_NAME_BYTES, "node-%c", (char)('a' + (int)(node % 26)));
}

/* ---- what the parts tell each other ---- */

static struct sim_vm *find_by_pod(struct sim_cluster *cluster, const char *pod_name)
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

void sim_vm_set_demand(struct sim_vm *vm)
{
	const struct workload *workload = vm->cluster->workload;
	struct guest_demand demand;

	if (vm->index >= workload->options.vms)
		return;
	demand = demand_of_phase(workload_phase(workload, vm->index, vm->cluster->phase), vm->plugged_bytes);
	guest_set_demand(vm->guest, &demand);
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
	/* Not before: a monitor keeps to the memory it saw when it was connected to, and would ask for more for ever. */
	if (vm->has_booted && memory_bytes == vm->size.slots * WORKLOAD_UNIT_BYTES) {
		vm->has_booted = false;
		guest_set_monitor_available(vm->guest, true);
	}
}

/* The plugin's own watch of pods: the VM has another pod than before. */
static void change_pod(struct sim_vm *vm, struct slice pod_name)
{
	struct sim_cluster *cluster = vm->cluster;
	char node[SIM_NODE_NAME_BYTES];
	struct scheduler_plugin_pod pod = {
		.name_space = SIM_NAME_SPACE,
		.name = vm->pod_name,
		.node = node,
		.is_vm = true,
		.use = { .cpu_milli = vm->size.cpu_milli, .mem_bytes = vm->size.slots * WORKLOAD_UNIT_BYTES },
	};
	struct error err;

	scheduler_plugin_remove_pod(cluster->plugin, SIM_NAME_SPACE, vm->pod_name);
	(void)snprintf(vm->pod_name, sizeof vm->pod_name, "%.*s", SLICE_ARGS(pod_name));
	name_node(node, vm->node);
	sim_history_add(&vm->permits, simulation_now_ns(cluster->simulation), pod.use);
	if (!scheduler_plugin_add_pod(cluster->plugin, &pod, &err))
		simulation_broken(cluster->simulation, "simulator", "%s: %s", vm->name, err.text);
	vm->has_booted = true;
}

static void on_phase(void *context, const char *name, const char *phase)
{
	struct sim_cluster *cluster = context;
	struct sim_vm *vm = find_by_name(cluster, name);
	struct stored_object *object =
		object_store_find(control_plane_store(cluster->plane), resource_kind(RESOURCE_VIRTUAL_MACHINES),
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

static void on_answer(void *context, const struct scheduler_plugin_answer *answer)
{
	struct sim_cluster *cluster = context;
	struct sim_vm *vm = find_by_pod(cluster, answer->pod_name);

	if (vm == NULL)
		return;
	sim_history_add(&vm->permits, simulation_now_ns(cluster->simulation), answer->permit);
	sim_world_note(simulation_world(cluster->simulation), "plugin: %s wants %um %lluMi, gets %um %lluMi", vm->name,
	               answer->wanted.cpu_milli, (unsigned long long)(answer->wanted.mem_bytes >> 20),
	               answer->permit.cpu_milli, (unsigned long long)(answer->permit.mem_bytes >> 20));
	if (resources_has_less(answer->permit, answer->wanted))
		cluster->counts.short_permits++;
}

static void on_annotate(void *context, const char *pod_name, const char *key, struct slice json)
{
	struct sim_cluster *cluster = context;
	const struct sim_vm *vm = find_by_pod(cluster, pod_name);
	struct error err;

	if (vm != NULL)
		(void)control_plane_annotate_vm(cluster->plane, vm->name, slice_of(key), json, &err);
}

static void on_guest_event(void *context, struct guest *guest, const char *text)
{
	const struct sim_vm *vm = context;

	(void)guest;
	sim_world_note(simulation_world(vm->cluster->simulation), "vm %s: %s", vm->name, text);
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
	struct address scheduler = address_at(PLACE_PLUGIN, 0, 0);
	char scheduler_ip[ADDRESS_TEXT_BYTES];

	(void)snprintf(cluster->token, sizeof cluster->token, "token-of-the-agent");
	print_host(&scheduler, scheduler_ip);
	cluster->api_loop = loop_sim_create(world, "api", &options.address, err);
	if (cluster->api_loop == NULL)
		return false;
	cluster->plane = control_plane_start(cluster->api_loop, &options, &HANDLER, cluster, err);
	return cluster->plane != NULL && control_plane_add_scheduler_pod(cluster->plane, AGENT_SETUP_SCHEDULER_NAME,
	                                                                 SCHEDULER_POD, scheduler_ip, "node-a", err);
}

static unsigned node_units(const struct sim_cluster *cluster, unsigned node)
{
	const struct workload *workload = cluster->workload;
	unsigned units = ROOMY_NODE_UNITS;

	if (workload->has_full_node && node == 1)
		return WORKLOAD_FULL_NODE_UNITS;
	for (unsigned i = 0; i < workload->options.vms; i++)
		units += workload->vms[i].max;
	return units;
}

static bool start_plugin(struct sim_cluster *cluster, struct error *err)
{
	static const struct scheduler_plugin_handler HANDLER = { .on_answer = on_answer, .on_annotate = on_annotate };
	struct address address = address_at(PLACE_PLUGIN, 0, AGENT_SETUP_PLUGIN_PORT);

	cluster->plugin_loop = loop_sim_create(simulation_world(cluster->simulation), "plugin", &address, err);
	if (cluster->plugin_loop == NULL)
		return false;
	cluster->plugin = scheduler_plugin_start(cluster->plugin_loop, &address, 1, &HANDLER, cluster, err);
	if (cluster->plugin == NULL)
		return false;
	for (unsigned i = 0; i < cluster->workload->options.nodes; i++) {
		char name[SIM_NODE_NAME_BYTES];

		name_node(name, i);
		if (!scheduler_plugin_add_node(cluster->plugin, name, sim_units(node_units(cluster, i)), err))
			return false;
	}
	return true;
}

/* How a VM begins. */
struct vm_plan {
	bool autoscaling;
	unsigned min, max, initial, plugged, bound;
	bool reads_lfc;
};

static struct vm_plan plan_of(const struct sim_cluster *cluster, unsigned index)
{
	const struct workload_vm *vm;

	if (index >= cluster->workload->options.vms)
		return (struct vm_plan){ .autoscaling = index > cluster->workload->options.vms,
			                 .min = 1,
			                 .max = IGNORED_MAX_UNITS,
			                 .initial = IGNORED_UNITS,
			                 .plugged = IGNORED_UNITS };
	vm = &cluster->workload->vms[index];
	return (struct vm_plan){ .autoscaling = true,
		                 .min = vm->min,
		                 .max = vm->max,
		                 .initial = vm->initial,
		                 .plugged = vm->plugged,
		                 .bound = vm->bound,
		                 .reads_lfc = vm->kind == WORKLOAD_LFC };
}

static void name_vm(struct sim_vm *vm)
{
	const struct sim_cluster *cluster = vm->cluster;
	const struct workload *workload = cluster->workload;

	if (vm->index < workload->options.vms) {
		vm->node = workload->vms[vm->index].node;
		memcpy(vm->name, workload->vms[vm->index].name, sizeof vm->name);
	} else {
		unsigned other = vm->index - workload->options.vms;

		vm->node = other == 0 ? 0 : cluster->agent_count;
		(void)snprintf(vm->name, sizeof vm->name, "other-%u", other + 1);
	}
	memcpy(vm->pod_name, vm->name, strlen(vm->name));
	memcpy(vm->pod_name + strlen(vm->name), POD_SUFFIX, sizeof POD_SUFFIX);
}

static bool start_guest(struct sim_vm *vm, const struct vm_plan *plan, struct error *err)
{
	static const struct guest_handler HANDLER = { .on_event = on_guest_event };
	char loop_name[WORKLOAD_NAME_BYTES + 4];
	struct guest_options options = {
		.host_name = vm->pod_name,
		.address = address_at(PLACE_GUEST, vm->index, 0),
		.metrics_port = AGENT_SETUP_SYSTEM_PORT,
		.lfc_port = AGENT_SETUP_LFC_PORT,
		.monitor_port = AGENT_SETUP_MONITOR_PORT,
		.cpu_milli = plan->plugged * WORKLOAD_UNIT_CPU_MILLI,
		.memory_bytes = plan->plugged * WORKLOAD_UNIT_BYTES,
	};

	(void)snprintf(loop_name, sizeof loop_name, "vm-%s", vm->name);
	vm->loop = loop_sim_create(simulation_world(vm->cluster->simulation), loop_name, &options.address, err);
	if (vm->loop == NULL)
		return false;
	vm->plugged_bytes = options.memory_bytes;
	vm->guest = guest_start(vm->loop, &options, &HANDLER, vm, err);
	return vm->guest != NULL;
}

static bool add_object(struct sim_vm *vm, const struct vm_plan *plan, struct error *err)
{
	char bounds[ANNOTATION_BYTES], node[SIM_NODE_NAME_BYTES], ip[ADDRESS_TEXT_BYTES];
	struct address address = address_at(PLACE_GUEST, vm->index, 0);
	struct control_plane_vm added = {
		.name_space = SIM_NAME_SPACE,
		.name = vm->name,
		.node = node,
		.pod_name = vm->pod_name,
		.pod_ip = ip,
		.endpoint_id = vm->name,
		.autoscaling = plan->autoscaling,
		.cpu_min_milli = plan->min * WORKLOAD_UNIT_CPU_MILLI,
		.cpu_max_milli = plan->max * WORKLOAD_UNIT_CPU_MILLI,
		.cpu_use_milli = plan->initial * WORKLOAD_UNIT_CPU_MILLI,
		.slots_min = (uint16_t)plan->min,
		.slots_max = (uint16_t)plan->max,
		.slots_use = (uint16_t)plan->initial,
		.slot_bytes = WORKLOAD_UNIT_BYTES,
	};

	name_node(node, vm->node);
	print_host(&address, ip);
	if (plan->plugged != plan->initial) {
		added.target_revision = 41;
		added.target_flags = 1;
		added.current_revision = 40;
		added.plugged_cpu_milli = plan->plugged * WORKLOAD_UNIT_CPU_MILLI;
		added.plugged_slots = (uint16_t)plan->plugged;
	}
	(void)snprintf(bounds, sizeof bounds,
	               "{\"min\":{\"cpu\":\"%um\",\"mem\":\"%uGi\"},\"max\":{\"cpu\":\"%um\",\"mem\":\"%uGi\"}}",
	               plan->min * WORKLOAD_UNIT_CPU_MILLI, plan->min, plan->bound * WORKLOAD_UNIT_CPU_MILLI,
	               plan->bound);
	if (plan->bound != 0)
		added.bounds_annotation = bounds;
	if (plan->reads_lfc)
		added.config_annotation = "{\"enableLFCMetrics\":true}";
	return control_plane_add_vm(vm->cluster->plane, &added, err);
}

static bool add_vm(struct sim_cluster *cluster, unsigned index, struct error *err)
{
	struct sim_vm *vm = &cluster->vms[index];
	struct vm_plan plan = plan_of(cluster, index);
	char node[SIM_NODE_NAME_BYTES];
	struct scheduler_plugin_pod pod = {
		.name_space = SIM_NAME_SPACE,
		.name = vm->pod_name,
		.node = node,
		.is_vm = true,
		.use = sim_units(plan.initial),
	};

	vm->cluster = cluster;
	vm->index = index;
	name_vm(vm);
	name_node(node, vm->node);
	vm->size = cluster_units(plan.initial);
	sim_history_add(&vm->permits, 0, pod.use);
	sim_history_add(&vm->agreements, 0, pod.use);
	if (!start_guest(vm, &plan, err) || !scheduler_plugin_add_pod(cluster->plugin, &pod, err) ||
	    !add_object(vm, &plan, err))
		return error_wrap(err, "VM %s", vm->name);
	sim_vm_set_demand(vm);
	return true;
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
	scheduler_plugin_destroy(cluster->plugin);
	destroy_loop(cluster->plugin_loop);
	control_plane_destroy(cluster->plane);
	destroy_loop(cluster->api_loop);
	workload_destroy(cluster->workload);
	memory_release(cluster);
}

static bool start_all(struct sim_cluster *cluster, struct error *err)
{
	if (!start_plane(cluster, err) || !start_plugin(cluster, err))
		return false;
	for (unsigned i = 0; i < cluster->vm_count; i++)
		if (!add_vm(cluster, i, err))
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
		.disturb = sim_cluster_disturb,
		.calm = sim_cluster_calm,
		.begin_phase = begin_phase,
		.check = sim_cluster_check,
		.check_second = sim_cluster_check_second,
		.check_settled = sim_cluster_check_settled,
		.destroy = destroy,
	};

	if (cluster == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a cluster");
		return NULL;
	}
	cluster->simulation = simulation;
	cluster->vm_count = vm_count;
	cluster->workload = workload_create(&workload_options, err);
	if (cluster->workload != NULL)
		cluster->agent_count = cluster->workload->has_full_node ? 2 : 1;
	if (cluster->workload == NULL || !start_all(cluster, err) || !simulation_add(simulation, &actor)) {
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
	return control_plane_ca_pem(cluster->plane);
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

unsigned sim_cluster_vms_on_node(const struct sim_cluster *cluster, unsigned node)
{
	unsigned count = 0;

	for (unsigned i = 0; i < cluster->workload->options.vms; i++)
		count += cluster->vms[i].node == node ? 1 : 0;
	return count;
}

struct control_plane_counters sim_cluster_api_counters(const struct sim_cluster *cluster)
{
	return control_plane_counters(cluster->plane);
}

struct sim_cluster_counts sim_cluster_counts(const struct sim_cluster *cluster)
{
	return cluster->counts;
}

unsigned sim_cluster_loop_count(const struct sim_cluster *cluster)
{
	return 2 + cluster->vm_count;
}

struct loop *sim_cluster_loop(const struct sim_cluster *cluster, unsigned index)
{
	return index == 0 ? cluster->api_loop : index == 1 ? cluster->plugin_loop : cluster->vms[index - 2].loop;
}
