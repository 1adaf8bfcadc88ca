#include "sandbox/vm_webhook.h"

#include "base/buffer.h"
#include "codec/quantity.h"
#include "sandbox/vm_view.h"

enum { SLOT_UNIT_BYTES = 8 * 1024 * 1024, NUMBER_BYTES = 32 };

/* ---- sizes within their limits ---- */

static void print_cpu(uint32_t milli, char text[NUMBER_BYTES])
{
	struct buffer buffer;

	buffer_init(&buffer, NUMBER_BYTES - 1);
	milli_cpu_print(milli, &buffer);
	text[0] = '\0';
	for (size_t i = 0; i < buffer.length; i++) {
		text[i] = buffer.data[i];
		text[i + 1] = '\0';
	}
	buffer_destroy(&buffer);
}

static bool deny_cpu(const struct vm_view *view, const char *prefix, bool too_small, struct error *err)
{
	char use[NUMBER_BYTES];
	char limit[NUMBER_BYTES];

	print_cpu(view->cpu_use_milli, use);
	print_cpu(too_small ? view->cpu_min_milli : view->cpu_max_milli, limit);
	return error_set(err, ERROR_REFUSED, "%s.cpus.use (%s) should be %s than or equal to the %s.cpus.%s (%s)",
	                 prefix, use, too_small ? "greater" : "less", prefix, too_small ? "min" : "max", limit);
}

static bool check_cpus(const struct vm_view *view, const char *prefix, struct error *err)
{
	if (view->cpu_use_milli < view->cpu_min_milli)
		return deny_cpu(view, prefix, true, err);
	return view->cpu_use_milli <= view->cpu_max_milli || deny_cpu(view, prefix, false, err);
}

static bool check_slots(const struct vm_view *view, const char *prefix, struct error *err)
{
	bool too_small = view->slots_use < view->slots_min;

	if (!too_small && view->slots_use <= view->slots_max)
		return true;
	return error_set(err, ERROR_REFUSED,
	                 "%s.memorySlots.use (%lld) should be %s than or equal to the %s.memorySlots.%s (%lld)", prefix,
	                 (long long)view->slots_use, too_small ? "greater" : "less", prefix, too_small ? "min" : "max",
	                 (long long)(too_small ? view->slots_min : view->slots_max));
}

bool vm_webhook_check_new(const struct json_node *root, struct error *err)
{
	struct vm_view view = vm_view_read(root);

	if (!check_cpus(&view, ".spec.guest", err))
		return false;
	if (view.slot_bytes % SLOT_UNIT_BYTES != 0)
		return error_set(
			err, ERROR_REFUSED,
			".spec.guest: memorySlotSize invalid for use with virtio-mem: must be a multiple of 8Mi");
	return check_slots(&view, ".spec.guest", err);
}

/* ---- what may not change ---- */

/* CPUs may be written in several ways. */
static bool same_cpu(const struct json_node *before, const struct json_node *after)
{
	uint32_t old_milli;
	uint32_t new_milli;

	return vm_view_milli_cpu(before, &old_milli) && vm_view_milli_cpu(after, &new_milli)
	               ? old_milli == new_milli
	               : json_tree_equal(before, after);
}

static bool check_immutable(const struct json_node *before, const struct json_node *after, struct error *err)
{
	static const struct {
		const char *pointer;
		const char *field;
		bool cpu;
	} FIELDS[] = {
		{ "/spec/guest/cpus/min", ".spec.guest.cpus.min", true },
		{ "/spec/guest/cpus/max", ".spec.guest.cpus.max", true },
		{ "/spec/guest/memorySlots/min", ".spec.guest.memorySlots.min", false },
		{ "/spec/guest/memorySlots/max", ".spec.guest.memorySlots.max", false },
		{ "/spec/guest/ports", ".spec.guest.ports", false },
		{ "/spec/guest/rootDisk", ".spec.guest.rootDisk", false },
		{ "/spec/guest/command", ".spec.guest.command", false },
		{ "/spec/guest/args", ".spec.guest.args", false },
		{ "/spec/guest/env", ".spec.guest.env", false },
		{ "/spec/guest/settings", ".spec.guest.settings", false },
		{ "/spec/disks", ".spec.disks", false },
		{ "/spec/podResources", ".spec.podResources", false },
		{ "/spec/enableAcceleration", ".spec.enableAcceleration", false },
		{ "/spec/enableSSH", ".spec.enableSSH", false },
		{ "/spec/initScript", ".spec.initScript", false },
		{ "/spec/enableNetworkMonitoring", ".spec.enableNetworkMonitoring", false },
	};

	for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
		const struct json_node *old_value = json_tree_find(before, FIELDS[i].pointer);
		const struct json_node *new_value = json_tree_find(after, FIELDS[i].pointer);

		if (!(FIELDS[i].cpu ? same_cpu(old_value, new_value) : json_tree_equal(old_value, new_value)))
			return error_set(err, ERROR_REFUSED, "%s is immutable", FIELDS[i].field);
	}
	return true;
}

static bool check_set_once(const struct json_node *before, const struct json_node *after, struct error *err)
{
	static const char *const FIELDS[][2] = { { "/spec/cpuScalingMode", ".spec.cpuScalingMode" },
		                                 { "/spec/targetArchitecture", ".spec.targetArchitecture" } };

	for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
		const struct json_node *old_value = json_tree_find(before, FIELDS[i][0]);

		if (old_value != NULL && !json_tree_equal(old_value, json_tree_find(after, FIELDS[i][0])))
			return error_set(err, ERROR_REFUSED, "%s is not allowed to be changed once it's set",
			                 FIELDS[i][1]);
	}
	return true;
}

bool vm_webhook_check_update(const struct json_node *before, const struct json_node *after, struct error *err)
{
	struct vm_view view = vm_view_read(after);

	return check_immutable(before, after, err) && check_set_once(before, after, err) &&
	       check_cpus(&view, "", err) && check_slots(&view, "", err);
}
