#include <stdio.h>
#include <string.h>

#include "gen/scaling.gen.h"
#include "sim_cluster_internal.h"

enum { IGNORED_UNITS = 2, IGNORED_MAX_UNITS = 4, ANNOTATION_BYTES = 512 };

static const char POD_SUFFIX[] = "-x7k2p";

/* ---- guests ---- */

void sim_vm_set_demand(struct sim_vm *vm)
{
	const struct workload *workload = vm->cluster->workload;
	struct guest_demand demand;

	if (vm->index >= workload->options.vms)
		return;
	demand = demand_of_phase(workload_phase(workload, vm->index, vm->cluster->phase), vm->plugged_bytes);
	guest_set_demand(vm->guest, &demand);
}

/* Not before: a monitor keeps to the memory it saw when it was connected to, and would ask for more for ever. */
void sim_vm_end_boot(struct sim_vm *vm)
{
	if (!vm->has_booted || vm->plugged_bytes != vm->size.slots * WORKLOAD_UNIT_BYTES)
		return;
	vm->has_booted = false;
	guest_set_monitor_available(vm->guest, true);
}

static void on_guest_event(void *context, struct guest *guest, const char *text)
{
	const struct sim_vm *vm = context;

	(void)guest;
	sim_world_note(simulation_world(vm->cluster->simulation), "vm %s: %s", vm->name, text);
}

/* ---- making them ---- */

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

void sim_vm_print_ip(const struct sim_vm *vm, char ip[ADDRESS_TEXT_BYTES])
{
	struct address address = sim_cluster_guest_address(vm->index);

	address_print_host(&address, false, ip);
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
		.address = sim_cluster_guest_address(vm->index),
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

static bool add_object(struct sim_vm *vm, const struct vm_plan *plan, bool again, struct error *err)
{
	char bounds[ANNOTATION_BYTES], node[SIM_NODE_NAME_BYTES], ip[ADDRESS_TEXT_BYTES];
	struct control_plane_vm added = {
		.name_space = SIM_NAME_SPACE,
		.name = vm->name,
		.node = node,
		.pod_name = again ? NULL : vm->pod_name,
		.starts = again,
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

	sim_cluster_name_node(node, vm->node);
	sim_vm_print_ip(vm, ip);
	if (plan->plugged != plan->initial && !again) {
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
	return control_plane_add_vm(vm->cluster->api.plane, &added, err);
}

bool sim_cluster_add_vm(struct sim_cluster *cluster, unsigned index, struct error *err)
{
	struct sim_vm *vm = &cluster->vms[index];
	struct vm_plan plan = plan_of(cluster, index);
	struct resources use = sim_units(plan.initial);

	vm->cluster = cluster;
	vm->index = index;
	name_vm(vm);
	vm->size = cluster_units(plan.initial);
	sim_history_add(&vm->permits, 0, use);
	sim_history_add(&vm->agreements, 0, use);
	if (!start_guest(vm, &plan, err) || !sim_schedulers_add_pod(cluster, vm, use, err) ||
	    !add_object(vm, &plan, false, err))
		return error_wrap(err, "VM %s", vm->name);
	sim_vm_set_demand(vm);
	return true;
}

bool sim_vm_add_again(struct sim_vm *vm, struct error *err)
{
	struct vm_plan plan = plan_of(vm->cluster, vm->index);
	uint64_t now_ns = simulation_now_ns(vm->cluster->simulation);

	if (!add_object(vm, &plan, true, err))
		return false;
	vm->size = cluster_units(plan.initial);
	vm->patched_ns = 0;
	sim_history_add(&vm->permits, now_ns, sim_units(plan.initial));
	sim_history_add(&vm->agreements, now_ns, sim_units(plan.initial));
	return true;
}
