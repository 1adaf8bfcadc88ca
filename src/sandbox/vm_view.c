#include "sandbox/vm_view.h"

#include "codec/quantity.h"

/* Quantities stand as strings or as bare numbers. */
static bool read_quantity(const struct json_node *node, struct quantity *ret_quantity)
{
	struct error err;

	return node != NULL && (node->kind == JSON_KIND_STRING || node->kind == JSON_KIND_NUMBER) &&
	       quantity_parse(node->text, ret_quantity, &err);
}

bool vm_view_milli_cpu(const struct json_node *node, uint32_t *ret_milli)
{
	struct quantity quantity;
	int64_t milli;

	if (!read_quantity(node, &quantity))
		return false;
	milli = quantity_milli_value(quantity);
	if (milli < 0 || milli > UINT32_MAX)
		return false;
	*ret_milli = (uint32_t)milli;
	return true;
}

bool vm_view_bytes(const struct json_node *node, uint64_t *ret_bytes)
{
	struct quantity quantity;
	int64_t bytes;

	if (!read_quantity(node, &quantity))
		return false;
	bytes = quantity_value(quantity);
	if (bytes < 0)
		return false;
	*ret_bytes = (uint64_t)bytes;
	return true;
}

static struct vm_revision read_revision(const struct json_node *node)
{
	struct vm_revision revision = { .there = node != NULL && node->kind == JSON_KIND_OBJECT };

	(void)json_tree_integer(json_tree_find(node, "/value"), &revision.value);
	(void)json_tree_integer(json_tree_find(node, "/flags"), &revision.flags);
	return revision;
}

static bool has_finalizer(const struct json_node *root)
{
	const struct json_node *finalizers = json_tree_find(root, "/metadata/finalizers");

	for (const struct json_node *item = finalizers != NULL ? finalizers->first : NULL; item != NULL;
	     item = item->next)
		if (slice_equal_text(json_tree_text(item), VM_FINALIZER))
			return true;
	return false;
}

static void read_status(const struct json_node *status, struct vm_view *view)
{
	view->phase = json_tree_text(json_tree_find(status, "/phase"));
	view->pod_name = json_tree_text(json_tree_find(status, "/podName"));
	view->pod_ip = json_tree_text(json_tree_find(status, "/podIP"));
	view->node = json_tree_text(json_tree_find(status, "/node"));
	view->has_cpus = vm_view_milli_cpu(json_tree_find(status, "/cpus"), &view->status_cpu_milli);
	view->has_memory = vm_view_bytes(json_tree_find(status, "/memorySize"), &view->status_memory_bytes);
	view->current = read_revision(json_tree_find(status, "/currentRevision/revision"));
	(void)json_tree_integer(json_tree_find(status, "/restartCount"), &view->restart_count);
}

struct vm_view vm_view_read(const struct json_node *root)
{
	const struct json_node *spec = json_tree_find(root, "/spec");
	const struct json_node *guest = json_tree_find(spec, "/guest");
	struct vm_view view = {
		.name_space = json_tree_text(json_tree_find(root, "/metadata/namespace")),
		.name = json_tree_text(json_tree_find(root, "/metadata/name")),
		.scaling_mode = json_tree_text(json_tree_find(spec, "/cpuScalingMode")),
		.restart_policy = json_tree_text(json_tree_find(spec, "/restartPolicy")),
		.target = read_revision(json_tree_find(spec, "/targetRevision/revision")),
		.deleting = json_tree_find(root, "/metadata/deletionTimestamp") != NULL,
		.has_finalizer = has_finalizer(root),
	};

	(void)vm_view_milli_cpu(json_tree_find(guest, "/cpus/min"), &view.cpu_min_milli);
	(void)vm_view_milli_cpu(json_tree_find(guest, "/cpus/max"), &view.cpu_max_milli);
	(void)vm_view_milli_cpu(json_tree_find(guest, "/cpus/use"), &view.cpu_use_milli);
	(void)json_tree_integer(json_tree_find(guest, "/memorySlots/min"), &view.slots_min);
	(void)json_tree_integer(json_tree_find(guest, "/memorySlots/max"), &view.slots_max);
	(void)json_tree_integer(json_tree_find(guest, "/memorySlots/use"), &view.slots_use);
	(void)vm_view_bytes(json_tree_find(guest, "/memorySlotSize"), &view.slot_bytes);
	read_status(json_tree_find(root, "/status"), &view);
	return view;
}
