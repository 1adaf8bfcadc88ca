/*
 * A VM is known by namespace and name; what is remembered of it are the labels its series carry now. When these change,
 * the old series go, but for those of desired_cu: the reference leaves them behind until the VM itself goes.
 */
#include "agent/vm_metrics.h"

#include <string.h>

#include "agent/core/vm_info.h"
#include "base/memory.h"
#include "base/table.h"
#include "metrics/registry.h"

enum family { CPU, MEM, RESTARTS, EXTRA_IP, DESIRED_CU, RESOURCES, PAGE_ERRORS, FAMILY_COUNT };

/* Labels of a family stand in the order of their names; "value" and "component" come first or in the middle. */
enum {
	VALUE_LABELS = 5,     /* endpoint_id, project_id, value, vm_name, vm_namespace */
	PLAIN_LABELS = 4,     /* endpoint_id, project_id, vm_name, vm_namespace */
	COMPONENT_LABELS = 5, /* component, endpoint_id, project_id, vm_name, vm_namespace */
	RESOURCE_LABELS = 5,  /* endpoint_id, resource, value, vm_name, vm_namespace */
	KEY_BYTES = VM_NAMESPACE_BYTES_MAX + 1 + VM_NAME_BYTES_MAX,
};

static const struct metrics_family_options FAMILIES[FAMILY_COUNT] = {
	[CPU] = { METRICS_GAUGE,
	          "autoscaling_vm_cpu_cores",
	          "vCPUs of a VM: what is allowed, asked for and in use.",
	          { "endpoint_id", "project_id", "value", "vm_name", "vm_namespace" },
	          NULL,
	          0 },
	[MEM] = { METRICS_GAUGE,
	          "autoscaling_vm_memory_bytes",
	          "Memory of a VM: what is allowed, asked for and in use.",
	          { "endpoint_id", "project_id", "value", "vm_name", "vm_namespace" },
	          NULL,
	          0 },
	[RESTARTS] = { METRICS_GAUGE,
	               "autoscaling_vm_restart_count",
	               "How often a VM was restarted.",
	               { "endpoint_id", "project_id", "vm_name", "vm_namespace" },
	               NULL,
	               0 },
	[EXTRA_IP] = { METRICS_GAUGE,
	               "autoscaling_vm_extra_ip",
	               "1 if a VM has an address in the overlay network.",
	               { "endpoint_id", "project_id", "vm_name", "vm_namespace" },
	               NULL,
	               0 },
	[DESIRED_CU] = { METRICS_GAUGE,
	                 "autoscaling_vm_desired_cu",
	                 "Compute units a VM should have by its metrics alone, in total and for each of them.",
	                 { "component", "endpoint_id", "project_id", "vm_name", "vm_namespace" },
	                 NULL,
	                 0 },
	[RESOURCES] = { METRICS_GAUGE,
	                "autoscaling_vm_resources",
	                "CPU (cores) and memory (bytes) of a VM: what is allowed, asked for and in use.",
	                { "endpoint_id", "resource", "value", "vm_name", "vm_namespace" },
	                NULL,
	                0 },
	[PAGE_ERRORS] = { METRICS_COUNTER,
	                  "promhttp_metric_handler_errors_total",
	                  "Internal errors while this page was made.",
	                  { "cause" },
	                  NULL,
	                  0 },
};

struct vm_metrics {
	struct metrics_registry *registry;
	struct metrics_family *families[FAMILY_COUNT]; /* NULL: this generation doesn't have it */
	bool late_2023;
	struct table vms; /* "namespace/name" → struct shown_vm */
};

struct shown_vm {
	struct slice endpoint_id; /* both in the same allocation */
	struct slice project_id;
};

/* ---- coming and going ---- */

static void count_page_errors(struct vm_metrics *metrics, const char *cause, double amount)
{
	metrics_add(metrics->families[PAGE_ERRORS], &(struct slice){ .data = cause, .length = strlen(cause) }, amount);
}

static bool has_family(const struct vm_metrics *metrics, enum family family)
{
	return family == PAGE_ERRORS || (family == RESOURCES) == metrics->late_2023;
}

static struct vm_metrics *create(bool late_2023, struct error *err)
{
	struct vm_metrics *metrics = memory_allocate(sizeof *metrics);

	if (metrics == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the metrics of VMs");
		return NULL;
	}
	metrics->late_2023 = late_2023;
	table_init(&metrics->vms);
	metrics->registry = metrics_registry_create(err);
	for (enum family i = 0; metrics->registry != NULL && i < FAMILY_COUNT; i++) {
		if (!has_family(metrics, i))
			continue;
		metrics->families[i] = metrics_registry_add(metrics->registry, &FAMILIES[i], err);
		if (metrics->families[i] == NULL)
			break;
	}
	if (metrics->families[FAMILY_COUNT - 1] == NULL) {
		vm_metrics_destroy(metrics);
		return NULL;
	}
	count_page_errors(metrics, "encoding", 0);
	count_page_errors(metrics, "gathering", 0);
	return metrics;
}

struct vm_metrics *vm_metrics_create(struct error *err)
{
	return create(false, err);
}

struct vm_metrics *vm_metrics_create_late_2023(struct error *err)
{
	return create(true, err);
}

void vm_metrics_destroy(struct vm_metrics *metrics)
{
	if (metrics == NULL)
		return;
	for (struct table_entry *vm = table_next(&metrics->vms, NULL); vm != NULL; vm = table_next(&metrics->vms, vm))
		memory_release(vm->value);
	table_destroy(&metrics->vms);
	metrics_registry_destroy(metrics->registry);
	memory_release(metrics);
}

bool vm_metrics_print(struct vm_metrics *metrics, struct buffer *page, struct error *err)
{
	if (metrics_registry_print(metrics->registry, page, err))
		return true;
	count_page_errors(metrics, "encoding", 1);
	return false;
}

/* ---- the VMs shown ---- */

/* False for names that no VM can have. */
static bool key_of(struct slice namespace, struct slice name, char room[KEY_BYTES], struct slice *ret_key)
{
	if (namespace.length > VM_NAMESPACE_BYTES_MAX || name.length > VM_NAME_BYTES_MAX)
		return false;
	if (namespace.length > 0)
		memcpy(room, namespace.data, namespace.length);
	room[namespace.length] = '/';
	if (name.length > 0)
		memcpy(room + namespace.length + 1, name.data, name.length);
	*ret_key = slice_from(room, namespace.length + 1 + name.length);
	return true;
}

static struct slice put(char **at, struct slice text)
{
	struct slice copy = slice_from(*at, text.length);

	if (text.length > 0)
		memcpy(*at, text.data, text.length);
	*at += text.length;
	return copy;
}

static struct shown_vm *make_shown(struct slice endpoint_id, struct slice project_id)
{
	struct shown_vm *vm = memory_allocate(sizeof *vm + endpoint_id.length + project_id.length);
	char *at;

	if (vm == NULL)
		return NULL;
	at = (char *)(vm + 1);
	vm->endpoint_id = put(&at, endpoint_id);
	vm->project_id = put(&at, project_id);
	return vm;
}

/* name_label: index of vm_name, which vm_namespace follows. */
static void remove_series(struct metrics_family *family, size_t name_label, struct slice namespace, struct slice name)
{
	const size_t indexes[] = { name_label, name_label + 1 };
	const struct slice values[] = { name, namespace };

	if (family != NULL)
		metrics_remove_matching(family, indexes, values, 2);
}

static void remove_sizes(struct vm_metrics *metrics, struct slice namespace, struct slice name)
{
	remove_series(metrics->families[CPU], VALUE_LABELS - 2, namespace, name);
	remove_series(metrics->families[MEM], VALUE_LABELS - 2, namespace, name);
	remove_series(metrics->families[RESTARTS], PLAIN_LABELS - 2, namespace, name);
	remove_series(metrics->families[EXTRA_IP], PLAIN_LABELS - 2, namespace, name);
	remove_series(metrics->families[RESOURCES], RESOURCE_LABELS - 2, namespace, name);
}

/*
 * Remembers a VM under its labels of now; what was shown of it under others goes. False when memory is short: then the
 * VM isn't shown at all, rather than with series that nobody would remove.
 */
static bool remember(struct vm_metrics *metrics, const struct vm_gauges *gauges)
{
	char room[KEY_BYTES];
	struct slice key;
	struct shown_vm *before;
	struct shown_vm *now;

	if (!key_of(gauges->namespace, gauges->name, room, &key))
		return false;
	before = table_find(&metrics->vms, key);
	if (before != NULL && slice_equal(before->endpoint_id, gauges->endpoint_id) &&
	    slice_equal(before->project_id, gauges->project_id))
		return true;
	if (before != NULL)
		remove_sizes(metrics, gauges->namespace, gauges->name);
	now = make_shown(gauges->endpoint_id, gauges->project_id);
	if (now == NULL || !table_set(&metrics->vms, key, now)) {
		memory_release(now);
		vm_metrics_forget(metrics, gauges->namespace, gauges->name);
		return false;
	}
	memory_release(before);
	return true;
}

/* ---- values ---- */

static void set_value(struct metrics_family *family, const struct vm_gauges *gauges, const char *what, bool present,
                      double value)
{
	const struct slice labels[VALUE_LABELS] = { gauges->endpoint_id, gauges->project_id, slice_of(what),
		                                    gauges->name, gauges->namespace };

	if (present)
		metrics_set(family, labels, value);
	else
		metrics_remove(family, labels);
}

static void set_values(struct metrics_family *family, const struct vm_gauges *gauges, const struct vm_gauge_range *spec,
                       bool has_status, double status, const struct vm_gauge_range *autoscaling)
{
	set_value(family, gauges, "spec_min", true, spec->min);
	set_value(family, gauges, "spec_max", true, spec->max);
	set_value(family, gauges, "spec_use", true, spec->use);
	set_value(family, gauges, "status_use", has_status, status);
	set_value(family, gauges, "autoscaling_min", gauges->has_autoscaling, autoscaling->min);
	set_value(family, gauges, "autoscaling_max", gauges->has_autoscaling, autoscaling->max);
}

/* A value of 0 is a field that the spec doesn't have: no VM has none of either. */
static void set_resource(struct vm_metrics *metrics, const struct vm_gauges *gauges, const char *resource,
                         const char *what, double value)
{
	const struct slice labels[RESOURCE_LABELS] = { gauges->endpoint_id, slice_of(resource), slice_of(what),
		                                       gauges->name, gauges->namespace };

	if (value > 0)
		metrics_set(metrics->families[RESOURCES], labels, value);
	else
		metrics_remove(metrics->families[RESOURCES], labels);
}

static void set_resources(struct vm_metrics *metrics, const struct vm_gauges *gauges)
{
	const struct {
		const char *resource;
		const struct vm_gauge_range *spec;
		double status;
	} rows[] = {
		{ "cpu", &gauges->spec_cpu, gauges->has_status_cpu ? gauges->status_cpu : 0 },
		{ "mem", &gauges->spec_mem, gauges->has_status_mem ? gauges->status_mem : 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		set_resource(metrics, gauges, rows[i].resource, "min", rows[i].spec->min);
		set_resource(metrics, gauges, rows[i].resource, "max", rows[i].spec->max);
		set_resource(metrics, gauges, rows[i].resource, "spec_use", rows[i].spec->use);
		set_resource(metrics, gauges, rows[i].resource, "status_use", rows[i].status);
	}
}

void vm_metrics_show(struct vm_metrics *metrics, const struct vm_gauges *gauges)
{
	const struct slice labels[PLAIN_LABELS] = { gauges->endpoint_id, gauges->project_id, gauges->name,
		                                    gauges->namespace };

	if (!remember(metrics, gauges))
		return;
	if (metrics->late_2023) {
		set_resources(metrics, gauges);
		return;
	}
	set_values(metrics->families[CPU], gauges, &gauges->spec_cpu, gauges->has_status_cpu, gauges->status_cpu,
	           &gauges->autoscaling_cpu);
	set_values(metrics->families[MEM], gauges, &gauges->spec_mem, gauges->has_status_mem, gauges->status_mem,
	           &gauges->autoscaling_mem);
	metrics_set(metrics->families[RESTARTS], labels, gauges->restart_count);
	metrics_set(metrics->families[EXTRA_IP], labels, gauges->has_extra_ip ? 1 : 0);
}

void vm_metrics_forget(struct vm_metrics *metrics, struct slice namespace, struct slice name)
{
	char room[KEY_BYTES];
	struct slice key;

	if (!key_of(namespace, name, room, &key))
		return;
	memory_release(table_remove(&metrics->vms, key));
	remove_sizes(metrics, namespace, name);
	remove_series(metrics->families[DESIRED_CU], COMPONENT_LABELS - 2, namespace, name);
}

void vm_metrics_set_desired_cu(struct vm_metrics *metrics, struct slice namespace, struct slice name,
                               const struct scaling_desired_cu *desired)
{
	const struct goal_parts *parts = &desired->parts;
	const struct {
		const char *component;
		bool present;
		double value;
	} values[] = {
		{ "total", true, desired->total },
		{ "cpu", parts->has_cpu, parts->cpu },
		{ "mem", parts->has_mem, parts->mem },
		{ "lfc", parts->has_lfc, parts->lfc },
	};
	char room[KEY_BYTES];
	struct slice key;
	const struct shown_vm *vm;

	if (metrics->late_2023 || !key_of(namespace, name, room, &key))
		return;
	vm = table_find(&metrics->vms, key);
	if (vm == NULL)
		return;
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		const struct slice labels[COMPONENT_LABELS] = { slice_of(values[i].component), vm->endpoint_id,
			                                        vm->project_id, name, namespace };

		if (values[i].present)
			metrics_set(metrics->families[DESIRED_CU], labels, values[i].value);
		else
			metrics_remove(metrics->families[DESIRED_CU], labels);
	}
}
