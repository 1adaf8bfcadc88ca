/*
 * How each VM of the cluster begins: by the workload, or as one of those that agents must ignore.
 */
#include "sandbox/cluster_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "gen/scaling.gen.h"

enum { IGNORED_UNITS = 2, IGNORED_MAX_UNITS = 4, ANNOTATION_BYTES = 512 };

void cluster_name_node(char name[CLUSTER_NODE_NAME_BYTES], unsigned node)
{
	(void)snprintf(name, CLUSTER_NODE_NAME_BYTES, "node-%c", (char)('a' + node));
}

void cluster_name_endpoint(char endpoint[CLUSTER_ENDPOINT_BYTES], const char *vm_name)
{
	(void)snprintf(endpoint, CLUSTER_ENDPOINT_BYTES, "ep-%s", vm_name);
}

struct address cluster_address(const struct cluster *cluster, unsigned place, uint16_t port)
{
	return address_block_at(&cluster->addresses, place, port);
}

struct resources cluster_resources(unsigned units)
{
	return (struct resources){ .cpu_milli = units * WORKLOAD_UNIT_CPU_MILLI,
		                   .mem_bytes = units * WORKLOAD_UNIT_BYTES };
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

void cluster_name_vms(struct cluster *cluster)
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
				node = cluster->agent_count + (other - 1) / CLUSTER_IGNORED_ON_NODE;
			(void)snprintf(vm->name, sizeof vm->name, "other-%u", other + 1);
		}
		cluster_name_node(vm->node, node);
		name_pod(vm, &rng);
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
	char endpoint[CLUSTER_ENDPOINT_BYTES], project[WORKLOAD_NAME_BYTES + 8];
	struct control_plane_vm added = {
		.name_space = CLUSTER_NAME_SPACE,
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

	cluster_name_endpoint(endpoint, vm->name);
	(void)snprintf(project, sizeof project, "project-%s", vm->name);
	if (plan->plugged != plan->initial && !cluster->workload->options.generation.late_2023) {
		added.target_revision = 41;
		added.target_flags = 1;
		added.current_revision = 40;
	}
	if (plan->plugged != plan->initial) {
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
	static const struct guest_handler handler = { .on_event = cluster_on_guest_event,
		                                      .on_accept_error = cluster_on_guest_accept_error };
	char host_name[CLUSTER_POD_NAME_BYTES + 4];
	struct guest_options options = {
		.host_name = host_name,
		.address = cluster_address(cluster, ADDRESS_GUESTS + vm->index, 0),
		.metrics_port = AGENT_SETUP_SYSTEM_PORT,
		.lfc_port = AGENT_SETUP_LFC_PORT,
		.monitor_port = AGENT_SETUP_MONITOR_PORT,
		.cpu_milli = plan->plugged * WORKLOAD_UNIT_CPU_MILLI,
		.memory_bytes = plan->plugged * WORKLOAD_UNIT_BYTES,
		.metrics_prefix = sandbox_generation_prefix(&cluster->workload->options.generation),
		.late_2023 = cluster->workload->options.generation.late_2023,
		.page_padding_kb = 20, /* a page of 30 kB, as of a small VM (surroundings 4.1.7) */
	};

	(void)snprintf(host_name, sizeof host_name, "vm-%s", vm->pod_name);
	vm->plugged = cluster_units(plan->plugged);
	vm->plugged_bytes = options.memory_bytes;
	vm->guest = guest_start(cluster->loop, &options, &handler, vm, err);
	return vm->guest != NULL;
}

bool cluster_add_vm(struct cluster *cluster, unsigned index, struct error *err)
{
	struct cluster_vm *vm = &cluster->vms[index];
	struct vm_plan plan = plan_of(cluster, index);
	struct address address = cluster_address(cluster, ADDRESS_GUESTS + index, 0);
	char pod_ip[ADDRESS_TEXT_BYTES];
	struct scheduler_plugin_pod pod = {
		.name_space = CLUSTER_NAME_SPACE,
		.name = vm->pod_name,
		.node = vm->node,
		.is_vm = true,
		.use = cluster_resources(plan.initial),
		.maximum = cluster_resources(plan.autoscaling ? plan.max : 0),
		.slot_bytes = WORKLOAD_UNIT_BYTES,
	};

	address_print_host(&address, false, pod_ip);
	if (!start_guest(cluster, vm, &plan, err) || !scheduler_plugin_add_pod(cluster->plugin, &pod, err) ||
	    !add_to_control_plane(cluster, vm, &plan, pod_ip, err))
		return error_wrap(err, "VM %s", vm->name);
	cluster_set_demand(vm);
	return true;
}
