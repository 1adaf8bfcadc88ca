#include "cli/status_read.h"

#include "codec/rfc3339.h"
#include "gen/status_view.gen.h"

enum { ONGOING_MAX = 4 };

/* How amounts of a VM are to be read: in generation A memory is in slots. */
struct unit {
	bool in_slots;
	uint64_t slot_bytes;
};

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static bool set_amount(bool is_there, const struct status_view_resources *resources, struct unit unit,
                       struct status_line_amount *ret_amount)
{
	if (!is_there)
		return false;
	ret_amount->cpu_milli = resources->cpu_milli;
	ret_amount->mem_bytes = unit.in_slots ? multiply(resources->mem, unit.slot_bytes) : resources->mem;
	return true;
}

/* ---- what happened last ---- */

static void consider(struct status_line_vm *vm, const char *what, int64_t at_ns)
{
	/* 0 is what an absent object has. */
	if (at_ns == RFC3339_ZERO || at_ns == 0 || (vm->has_last_action && vm->last_action.at_ns >= at_ns))
		return;
	vm->has_last_action = true;
	vm->last_action.what = slice_of(what);
	vm->last_action.at_ns = at_ns;
}

static void find_last_action(const struct status_view_state *state, struct status_line_vm *vm)
{
	const struct status_view_plugin *plugin = &state->plugin;
	const struct status_view_monitor *monitor = &state->monitor;

	if (plugin->has_last_request) {
		consider(vm, "plugin asked", plugin->last_request.at_ns);
		consider(vm, "plugin asked", plugin->last_request.time_ns);
	}
	consider(vm, "plugin failed", plugin->last_failure_at_ns);
	consider(vm, "plugin failed", plugin->last_request_at_ns);
	if (monitor->has_requested_upscale)
		consider(vm, "upscale requested", monitor->requested_upscale.at_ns);
	if (monitor->has_denied_downscale)
		consider(vm, "downscale denied", monitor->denied_downscale.at_ns);
	consider(vm, "downscale failed", monitor->downscale_failure_at_ns);
	consider(vm, "upscale failed", monitor->upscale_failure_at_ns);
	consider(vm, "patch failed", state->neonvm.request_failed_at_ns);
}

static bool find_ongoing(const struct status_view_state *state, struct arena *arena, struct status_line_vm *vm,
                         struct error *err)
{
	struct slice *ongoing = arena_allocate_array(arena, ONGOING_MAX, sizeof *ongoing);

	if (ongoing == NULL)
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	vm->ongoing = ongoing;
	if (state->plugin.ongoing_request)
		ongoing[vm->ongoing_count++] = SLICE("asking plugin");
	if (state->monitor.has_ongoing_request)
		ongoing[vm->ongoing_count++] = slice_equal_text(state->monitor.ongoing_request.kind, "upscale")
		                                       ? SLICE("telling monitor")
		                                       : SLICE("asking monitor");
	if (state->neonvm.has_ongoing_requested)
		ongoing[vm->ongoing_count++] = SLICE("patching");
	return true;
}

/* ---- one VM ---- */

static bool read_state(const struct status_view_state *state, struct unit unit, struct arena *arena,
                       struct status_line_vm *vm, struct error *err)
{
	const struct status_view_plugin *plugin = &state->plugin;
	bool has_asked = plugin->has_last_request && plugin->last_request.has_resources;

	vm->answered = true;
	vm->has_permit = set_amount(plugin->has_permit, &plugin->permit, unit, &vm->permit);
	vm->has_goal = set_amount(state->has_last_desired_resources, &state->last_desired_resources, unit, &vm->goal) ||
	               (unit.in_slots && set_amount(has_asked, &plugin->last_request.resources, unit, &vm->goal));
	vm->monitor.has_approved =
		set_amount(state->monitor.has_approved, &state->monitor.approved, unit, &vm->monitor.approved);
	find_last_action(state, vm);
	return find_ongoing(state, arena, vm, err);
}

static bool read_pod(const struct status_view_pod *pod, struct arena *arena, struct status_line_vm *vm,
                     struct error *err)
{
	const struct status_view_runner_status *status = &pod->status;
	const struct status_view_vm *info = &status->vm_info;
	const struct status_view_state *state =
		pod->has_runner && pod->runner.has_executor_state ? &pod->runner.executor_state : NULL;

	/* The core's own view is newer. */
	if (state != NULL && state->has_vm && state->vm.mem.slot_size_bytes > 0)
		info = &state->vm;

	const struct unit unit = { .in_slots = info->has_scaling_enabled, .slot_bytes = info->mem.slot_size_bytes };

	vm->namespace = info->name.length > 0 ? info->namespace : pod->pod_name.namespace;
	vm->name = info->name.length > 0 ? info->name : pod->pod_name.name;
	vm->pod = pod->pod_name.name;
	vm->endpoint_id = status->endpoint_id;
	vm->generation = unit.in_slots ? SLICE("A") : SLICE("B");
	vm->state = status->state;
	vm->stuck = slice_equal_text(status->state, "stuck");
	vm->restarts = status->previous_end_states_count;
	vm->has_using = unit.slot_bytes > 0;
	vm->using.cpu_milli = info->cpu.use_milli;
	vm->using.mem_bytes = multiply(info->mem.use_slots, unit.slot_bytes);
	vm->monitor.connected = pod->has_runner && pod->runner.has_monitor;
	return state == NULL || read_state(state, unit, arena, vm, err);
}

bool status_read(struct slice text, struct arena *arena, struct status *ret_status, struct error *err)
{
	struct status_view_dump dump;
	struct status status = { .vms = NULL };

	if (!status_view_dump_from_json(text, arena, &dump, err))
		return error_wrap(err, "this is no state dump");
	if (dump.pods_presence == JSON_ABSENT)
		return error_set(err, ERROR_SYNTAX, "this is no state dump: it has no \"pods\"");
	status.stopped = dump.stopped;
	status.vm_count = dump.pods_count;
	status.vms = arena_allocate_array(arena, dump.pods_count, sizeof *status.vms);
	if (status.vms == NULL && dump.pods_count > 0)
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < dump.pods_count; i++) {
		if (!read_pod(&dump.pods[i], arena, &status.vms[i], err))
			return false;
	}
	*ret_status = status;
	return true;
}
