/*
 * Permits and agreements are remembered for a while: a patch that the network held up may arrive when the agent has given
 * it up already, and then stands for what was permitted when it was sent.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codec/json_tree.h"
#include "sandbox/object_store.h"
#include "sim_cluster_internal.h"

enum {
	MARK_SEEN_S = 4,   /* a little later agents must know */
	LATE_PATCH_S = 90, /* what a request can be late by: stalls, partitions, a frozen API server */
	RECONNECT_S = 75,  /* after the last fault: a dead connection is found in 30 s, a retry waits 5 s more */
	MONITOR_MESSAGES_MAX = 40, /* in one second, of one VM: health checks and requests come every few seconds */
	SCRAPES_MAX = 10,          /* what the network held up may come all at once, from the agents of two nodes */
};

/* ---- histories ---- */

void sim_history_add(struct sim_history *history, uint64_t now_ns, struct resources value)
{
	unsigned place = history->count++ % SIM_HISTORY;

	history->entries[place].at_ns = now_ns;
	history->entries[place].value = value;
}

/* What was said in the last LATE_PATCH_S, and what stood when they began. */
static struct resources widest(const struct sim_history *history, uint64_t now_ns, bool largest)
{
	unsigned kept = history->count < SIM_HISTORY ? history->count : SIM_HISTORY;
	uint64_t since_ns = now_ns > (uint64_t)LATE_PATCH_S * NS_PER_S ? now_ns - (uint64_t)LATE_PATCH_S * NS_PER_S : 0;
	struct resources found = history->entries[(history->count - 1) % SIM_HISTORY].value;

	for (unsigned i = 1; i <= kept; i++) {
		unsigned place = (history->count - i) % SIM_HISTORY;
		struct resources value = history->entries[place].value;

		found = largest ? resources_max(found, value) : resources_min(found, value);
		if (history->entries[place].at_ns < since_ns)
			break;
	}
	return found;
}

/* ---- each patch ---- */

static void check_bounds(struct sim_vm *vm, struct cluster_size size)
{
	const struct workload_vm *planned = &vm->cluster->workload->vms[vm->index];
	unsigned most = planned->bound != 0 ? planned->bound : planned->max;
	char text[CLUSTER_SIZE_TEXT_BYTES];

	if (!cluster_size_is_larger(cluster_units(planned->min), size) &&
	    !cluster_size_is_larger(size, cluster_units(most)))
		return;
	cluster_size_print(size, text);
	simulation_broken(vm->cluster->simulation, "bounds", "%s was given %s, its bounds are %u and %u CU", vm->name,
	                  text, planned->min, most);
}

static void check_permit(struct sim_vm *vm, struct cluster_size before, struct cluster_size after)
{
	struct simulation *simulation = vm->cluster->simulation;
	struct resources permit = widest(&vm->permits, simulation_now_ns(simulation), true);

	if ((after.cpu_milli > before.cpu_milli && after.cpu_milli > permit.cpu_milli) ||
	    (after.slots > before.slots && after.slots * WORKLOAD_UNIT_BYTES > permit.mem_bytes))
		simulation_broken(simulation, "permit",
		                  "%s grows to %um and %u slots, the plugin permitted %um and %.2f GiB", vm->name,
		                  after.cpu_milli, after.slots, permit.cpu_milli,
		                  (double)permit.mem_bytes / (double)WORKLOAD_UNIT_BYTES);
}

static void check_agreement(struct sim_vm *vm, struct cluster_size before, struct cluster_size after)
{
	struct simulation *simulation = vm->cluster->simulation;
	struct resources agreed = widest(&vm->agreements, simulation_now_ns(simulation), false);

	if ((after.slots < before.slots && after.slots * WORKLOAD_UNIT_BYTES < agreed.mem_bytes) ||
	    (after.cpu_milli < before.cpu_milli && after.cpu_milli < agreed.cpu_milli))
		simulation_broken(simulation, "agreement",
		                  "%s shrinks to %um and %u slots, its monitor agreed to %um and %.2f GiB", vm->name,
		                  after.cpu_milli, after.slots, agreed.cpu_milli,
		                  (double)agreed.mem_bytes / (double)WORKLOAD_UNIT_BYTES);
}

void sim_cluster_on_patched(void *context, const char *name, uint32_t old_cpu_milli, uint16_t old_slots,
                            uint32_t new_cpu_milli, uint16_t new_slots)
{
	struct sim_cluster *cluster = context;
	struct cluster_size before = { .cpu_milli = old_cpu_milli, .slots = old_slots };
	struct cluster_size after = { .cpu_milli = new_cpu_milli, .slots = new_slots };
	struct sim_vm *vm = NULL;

	for (unsigned i = 0; i < cluster->vm_count; i++)
		if (strcmp(cluster->vms[i].name, name) == 0)
			vm = &cluster->vms[i];
	sim_world_note(simulation_world(cluster->simulation), "api: %s from %um %u to %um %u slots", name,
	               before.cpu_milli, before.slots, after.cpu_milli, after.slots);
	cluster->counts.patches++;
	if (vm == NULL || vm->index >= cluster->workload->options.vms) {
		simulation_broken(cluster->simulation, "only-ours", "%s was patched and isn't to be", name);
		return;
	}
	vm->size = after;
	vm->size_before = before;
	vm->patched_ns = simulation_now_ns(cluster->simulation);
	check_bounds(vm, after);
	check_permit(vm, before, after);
	check_agreement(vm, before, after);
}

/* ---- after each step ---- */

static void look_at_monitor(struct sim_vm *vm, uint64_t now_ns)
{
	struct resources believed = { .cpu_milli = (uint32_t)lround(guest_monitor_believes_cpus(vm->guest) * 1000),
		                      .mem_bytes = guest_monitor_believes_bytes(vm->guest) };

	if (resources_equal(believed, vm->believed))
		return;
	vm->believed = believed;
	if (believed.mem_bytes != 0)
		sim_history_add(&vm->agreements, now_ns, believed);
}

void sim_cluster_check(void *context, struct simulation *simulation)
{
	struct sim_cluster *cluster = context;
	uint64_t now_ns = simulation_now_ns(simulation);

	for (unsigned i = 0; i < cluster->workload->options.vms; i++)
		look_at_monitor(&cluster->vms[i], now_ns);
	if (simulation_in_storm(simulation))
		sim_cluster_restore(cluster, now_ns);
}

/* What one guest may be asked in a second, by an agent that isn't in a loop of its own. */
static void check_rates(struct sim_cluster *cluster)
{
	for (unsigned i = 0; i < cluster->workload->options.vms; i++) {
		struct sim_vm *vm = &cluster->vms[i];
		struct guest_counters now = guest_counters(vm->guest);
		unsigned messages = now.upscales + now.downscales_approved + now.downscales_denied + now.health_checks;
		unsigned before = vm->asked.upscales + vm->asked.downscales_approved + vm->asked.downscales_denied +
		                  vm->asked.health_checks;
		unsigned scrapes =
			now.system_scrapes + now.lfc_scrapes - vm->asked.system_scrapes - vm->asked.lfc_scrapes;

		if (messages - before > MONITOR_MESSAGES_MAX || scrapes > SCRAPES_MAX)
			simulation_broken(cluster->simulation, "no-busy-loop",
			                  "%s got %u messages and %u scrapes in one second", vm->name,
			                  messages - before, scrapes);
		if (now.bad_messages != 0)
			simulation_broken(cluster->simulation, "well-formed", "the monitor of %s got a bad message",
			                  vm->name);
		vm->asked = now;
	}
	sim_schedulers_check_rates(cluster);
}

static bool mark_vm(struct sim_cluster *cluster, const struct sim_vm *vm, bool marked, struct error *err)
{
	struct object_store *store = control_plane_store(cluster->api.plane);
	struct stored_object *object = object_store_find(store, resource_kind(RESOURCE_VIRTUAL_MACHINES),
	                                                 SLICE(SIM_NAME_SPACE), slice_of(vm->name));
	struct object_edit edit;
	struct json_node *labels;
	bool ok;

	if (object == NULL || !object_edit_begin(&edit, object, err))
		return false;
	labels = json_tree_ensure(&edit.arena, json_tree_find(edit.root, "/metadata"), SLICE("labels"));
	ok = json_tree_set_text(&edit.arena, labels, SLICE("autoscaling.neon.tech/auto-migration-enabled"),
	                        marked ? SLICE("true") : SLICE("false")) &&
	     object_edit_commit(&edit, store, err);
	object_edit_end(&edit);
	return ok;
}

static void mark(struct sim_cluster *cluster, uint64_t now_ns)
{
	struct error err;

	cluster->marked = !cluster->marked;
	cluster->marked_ns = now_ns;
	for (unsigned i = 0; i < cluster->workload->options.vms; i++)
		if (!mark_vm(cluster, &cluster->vms[i], cluster->marked, &err))
			simulation_broken(cluster->simulation, "simulator", "%s can't be labelled",
			                  cluster->vms[i].name);
}

bool sim_cluster_mark(const struct sim_cluster *cluster, bool *ret_marked)
{
	uint64_t calm_ns = simulation_calm_since_ns(cluster->simulation);
	uint64_t now_ns = simulation_now_ns(cluster->simulation);

	*ret_marked = cluster->marked;
	return calm_ns != UINT64_MAX && cluster->marked_ns > calm_ns &&
	       now_ns >= cluster->marked_ns + (uint64_t)MARK_SEEN_S * NS_PER_S;
}

void sim_cluster_check_second(void *context, struct simulation *simulation)
{
	struct sim_cluster *cluster = context;
	uint64_t now_ns = simulation_now_ns(simulation);

	check_rates(cluster);
	for (unsigned i = 0; i < cluster->workload->options.vms; i++)
		sim_vm_go_on(&cluster->vms[i], now_ns);
	if (simulation_is_calm(simulation, SIM_KNOWN_S) && cluster->marked_ns <= simulation_calm_since_ns(simulation))
		mark(cluster, now_ns);
	if (!simulation_is_calm(simulation, RECONNECT_S))
		return;
	for (unsigned i = 0; i < cluster->workload->options.vms; i++)
		if (guest_monitor_state(cluster->vms[i].guest) != GUEST_MONITOR_CONNECTED)
			simulation_broken(cluster->simulation, "reconnected",
			                  "no agent is connected to the monitor of %s, %d s after "
			                  "the last fault",
			                  cluster->vms[i].name, RECONNECT_S);
}

/* ---- when all is quiet ---- */

/*
 * A storm may have let either VM of the full node come first. What is certain: nothing of the node is left, and neither
 * has more than it wants.
 */
static bool shares_full_node(const struct sim_cluster *cluster, const struct sim_vm *vm)
{
	unsigned first = cluster->workload->options.vms - 2;
	const struct sim_vm *a = &cluster->vms[first], *b = &cluster->vms[first + 1];
	struct cluster_size sum = { .cpu_milli = a->size.cpu_milli + b->size.cpu_milli,
		                    .slots = a->size.slots + b->size.slots };
	unsigned wanted = workload_phase(cluster->workload, vm->index, cluster->phase)->demand;

	return cluster_size_equal(sum, cluster_units(WORKLOAD_FULL_NODE_UNITS)) &&
	       !cluster_size_is_larger(vm->size, cluster_units(wanted));
}

static void check_goal(struct sim_cluster *cluster, const struct sim_vm *vm)
{
	const struct workload_phase *phase = workload_phase(cluster->workload, vm->index, cluster->phase);
	char text[CLUSTER_SIZE_TEXT_BYTES];

	if (cluster_size_equal(vm->size, cluster_units(phase->expected)) ||
	    (phase->contended && shares_full_node(cluster, vm)))
		return;
	cluster_size_print(vm->size, text);
	simulation_broken(cluster->simulation, "goal", "%s has %s, its load needs %u CU (%s for %u, held at %u)",
	                  vm->name, text, phase->expected, workload_cause_name(phase->cause), phase->demand,
	                  phase->held);
}

/* Nothing is under way, so all must know the same. */
static void check_agreed(struct sim_cluster *cluster, const struct sim_vm *vm)
{
	const struct scheduler_plugin *plugin = sim_schedulers_current(cluster)->plugin;
	uint64_t bytes = vm->size.slots * WORKLOAD_UNIT_BYTES;
	uint64_t believed = guest_monitor_believes_bytes(vm->guest);
	struct resources reserved = { 0 };

	(void)scheduler_plugin_reserved(plugin, SIM_NAME_SPACE, vm->pod_name, &reserved);
	if (vm->plugged_bytes != bytes)
		simulation_broken(cluster->simulation, "agree", "%s has %.2f GiB plugged, and %u slots by its spec",
		                  vm->name, (double)vm->plugged_bytes / (double)WORKLOAD_UNIT_BYTES, vm->size.slots);
	if (reserved.cpu_milli != vm->size.cpu_milli || reserved.mem_bytes != bytes)
		simulation_broken(cluster->simulation, "agree",
		                  "%s has %um and %u slots, the plugin reserves %um and %.2f GiB", vm->name,
		                  vm->size.cpu_milli, vm->size.slots, reserved.cpu_milli,
		                  (double)reserved.mem_bytes / (double)WORKLOAD_UNIT_BYTES);
	if (believed != 0 && believed != bytes)
		simulation_broken(cluster->simulation, "agree", "%s has %u slots, its monitor believes in %.2f GiB",
		                  vm->name, vm->size.slots, (double)believed / (double)WORKLOAD_UNIT_BYTES);
}

static void check_untouched(const struct sim_cluster *cluster, const struct sim_vm *vm)
{
	struct guest_counters counters = guest_counters(vm->guest);

	if (counters.system_scrapes != 0 || counters.lfc_scrapes != 0 || counters.connections != 0)
		simulation_broken(cluster->simulation, "only-ours", "%s isn't to be scaled, but its guest was asked",
		                  vm->name);
}

void sim_cluster_check_settled(void *context, struct simulation *simulation)
{
	struct sim_cluster *cluster = context;

	cluster->counts.settled_checks++;
	for (unsigned i = 0; i < cluster->vm_count && simulation_is_whole(simulation); i++) {
		if (i >= cluster->workload->options.vms) {
			check_untouched(cluster, &cluster->vms[i]);
			continue;
		}
		check_goal(cluster, &cluster->vms[i]);
		check_agreed(cluster, &cluster->vms[i]);
	}
	sim_api_check_settled(&cluster->api);
}
