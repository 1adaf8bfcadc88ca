#include "sandbox/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

bool judge_init(struct judge *judge, const struct workload *workload, const struct sandbox_options *options,
                struct error *err)
{
	*judge = (struct judge){ .workload = workload, .options = options };
	judge->vms = memory_allocate(workload->options.vms * sizeof *judge->vms);
	return judge->vms != NULL || error_set(err, ERROR_NO_MEMORY, "out of memory for judging");
}

static void release_vm(struct judge_vm *vm)
{
	memory_release(vm->seconds_to_reach_goal);
	memory_release(vm->goals);
}

void judge_destroy(struct judge *judge)
{
	for (unsigned i = 0; judge->vms != NULL && i < judge->workload->options.vms; i++)
		release_vm(&judge->vms[i]);
	memory_release(judge->vms);
	memory_release(judge->sentences);
	*judge = (struct judge){ .workload = NULL };
}

void judge_mismatch(struct judge *judge, const char *format, ...)
{
	size_t count = judge->sentence_count;
	va_list arguments;

	/* Room doubles: at 0, 1, 2, 4 … sentences. */
	if ((count & (count - 1)) == 0 && count < JUDGE_SENTENCES_MAX) {
		size_t room = count == 0 ? 1 : 2 * count;
		char(*grown)[JUDGE_SENTENCE_BYTES] = memory_resize(judge->sentences, room * sizeof *grown);

		if (grown == NULL) {
			judge->sentences_left_out++;
			return;
		}
		judge->sentences = grown;
	}
	if (count >= JUDGE_SENTENCES_MAX) {
		judge->sentences_left_out++;
		return;
	}
	va_start(arguments, format);
	(void)vsnprintf(judge->sentences[count], JUDGE_SENTENCE_BYTES, format, arguments);
	va_end(arguments);
	judge->sentence_count++;
}

/* ---- while it runs ---- */

static void note_goal(struct judge_vm *seen, unsigned phase, unsigned expected)
{
	size_t count = seen->goal_count;

	if (count >= JUDGE_TIMES_MAX)
		return;
	if ((count & (count - 1)) == 0) {
		struct judge_goal *grown = memory_resize(seen->goals, (count == 0 ? 1 : 2 * count) * sizeof *grown);

		if (grown == NULL)
			return;
		seen->goals = grown;
	}
	seen->goals[seen->goal_count++] = (struct judge_goal){ .phase = phase, .expected = expected };
}

static void note_goal_reached(struct judge *judge, struct judge_vm *seen, uint64_t now_ns)
{
	uint64_t ms = (now_ns - judge->phase_start_ns + NS_PER_MS / 2) / NS_PER_MS;
	double seconds = (double)ms / 1000;
	struct judge_goal *goal = seen->goal_count > 0 ? &seen->goals[seen->goal_count - 1] : NULL;
	size_t count = seen->times_count;

	seen->awaits_goal = false;
	if (goal != NULL && goal->phase == judge->phase) {
		goal->reached = true;
		goal->seconds = seconds;
	}
	if (count >= JUDGE_TIMES_MAX)
		return;
	if ((count & (count - 1)) == 0) {
		double *grown =
			memory_resize(seen->seconds_to_reach_goal, (count == 0 ? 1 : 2 * count) * sizeof(double));

		if (grown == NULL)
			return;
		seen->seconds_to_reach_goal = grown;
	}
	seen->seconds_to_reach_goal[seen->times_count++] = seconds;
}

void judge_patched(struct judge *judge, const char *name, unsigned vm, struct cluster_size before,
                   struct cluster_size after, uint64_t now_ns)
{
	char text[CLUSTER_SIZE_TEXT_BYTES];
	const struct workload_vm *planned;
	struct judge_vm *seen;
	unsigned most;

	if (vm >= judge->workload->options.vms)
		return; /* judge_end finds it */
	planned = &judge->workload->vms[vm];
	seen = &judge->vms[vm];
	if (cluster_size_is_larger(after, before))
		seen->upscales++;
	else
		seen->downscales++;
	most = planned->bound != 0 ? planned->bound : planned->max;
	if (cluster_size_is_larger(cluster_units(planned->min), after) ||
	    cluster_size_is_larger(after, cluster_units(most))) {
		cluster_size_print(after, text);
		judge_mismatch(judge, "%s: was given %s, and must have between %u CU and %u CU", name, text,
		               planned->min, most);
	}
	if (seen->awaits_goal &&
	    cluster_size_equal(after, cluster_units(workload_phase(judge->workload, vm, judge->phase)->expected)))
		note_goal_reached(judge, seen, now_ns);
}

void judge_phase_begin(struct judge *judge, const struct cluster *cluster, unsigned phase, uint64_t now_ns)
{
	judge->phase = phase;
	judge->phase_start_ns = now_ns;
	for (unsigned i = 0; i < judge->workload->options.vms; i++) {
		struct judge_vm *seen = &judge->vms[i];
		struct cluster_vm_state state = cluster_vm_state(cluster, i);
		unsigned expected = workload_phase(judge->workload, i, phase)->expected;

		seen->denied_at_phase_start = state.guest.downscales_denied;
		seen->awaits_goal = expected != workload_expected_before(judge->workload, i, phase);
		if (seen->awaits_goal)
			note_goal(seen, phase, expected);
		if (seen->awaits_goal && cluster_size_equal(state.size, cluster_units(expected)))
			note_goal_reached(judge, seen, now_ns);
	}
}

void judge_disturbed(struct judge *judge, uint64_t now_ns)
{
	judge->was_disturbed = true;
	judge->disturbed_ns = now_ns;
}

/* ---- at the end of a phase ---- */

static void describe_phase(const struct judge *judge, unsigned vm, char *text, size_t size)
{
	const struct workload_phase *phase = workload_phase(judge->workload, vm, judge->phase);

	if (phase->held != 0)
		(void)snprintf(text, size, "phase %u (held at %u CU)", judge->phase + 1, phase->held);
	else
		(void)snprintf(text, size, "phase %u (%s for %u CU)", judge->phase + 1,
		               workload_cause_name(phase->cause), phase->demand);
}

/*
 * When the phase before didn't bring the two VMs of the full node to their sizes, either may come first now. What is certain is
 * that nothing of the node is left, and that neither has more than it wants.
 */
static bool shares_full_node(const struct judge *judge, const struct cluster *cluster, unsigned vm)
{
	unsigned first = judge->workload->options.vms - 2;
	struct cluster_size a = cluster_vm_state(cluster, first).size;
	struct cluster_size b = cluster_vm_state(cluster, first + 1).size;
	struct cluster_size sum = { .cpu_milli = a.cpu_milli + b.cpu_milli, .slots = a.slots + b.slots };
	struct cluster_size wanted = cluster_units(workload_phase(judge->workload, vm, judge->phase)->demand);

	return cluster_size_equal(sum, cluster_units(WORKLOAD_FULL_NODE_UNITS)) &&
	       !cluster_size_is_larger(cluster_vm_state(cluster, vm).size, wanted);
}

static void judge_vm(struct judge *judge, const struct cluster *cluster, unsigned vm)
{
	const struct workload_phase *phase = workload_phase(judge->workload, vm, judge->phase);
	const struct judge_vm *seen = &judge->vms[vm];
	const char *name = judge->workload->vms[vm].name;
	struct cluster_vm_state state = cluster_vm_state(cluster, vm);
	bool history_counts = judge->phase == 0 || seen->judged_before;
	char what[64], has[CLUSTER_SIZE_TEXT_BYTES];

	describe_phase(judge, vm, what, sizeof what);
	cluster_size_print(state.size, has);
	if (phase->contended && !history_counts) {
		if (!shares_full_node(judge, cluster, vm))
			judge_mismatch(judge, "%s: %s: has %s, and the full node isn't shared out", name, what, has);
		return;
	}
	if (!cluster_size_equal(state.size, cluster_units(phase->expected)))
		judge_mismatch(judge, "%s: %s: expected %u CU, has %s", name, what, phase->expected, has);
	if (phase->held > phase->demand && history_counts &&
	    state.guest.downscales_denied == seen->denied_at_phase_start)
		judge_mismatch(judge, "%s: %s: the vm-monitor was asked for no downscale that it could deny", name,
		               what);
}

static bool may_be_judged(const struct judge *judge, unsigned vm, uint64_t now_ns, bool complete)
{
	uint64_t settle_ns = judge->workload->settle_ns;

	if (judge->was_disturbed && now_ns < judge->disturbed_ns + settle_ns)
		return false;
	return (complete || now_ns >= judge->phase_start_ns + settle_ns) &&
	       outages_leave_settled(judge->options->outages, judge->options->outage_count, vm, now_ns, settle_ns);
}

void judge_phase_end(struct judge *judge, const struct cluster *cluster, uint64_t now_ns, bool complete)
{
	for (unsigned i = 0; i < judge->workload->options.vms; i++) {
		bool judged = may_be_judged(judge, i, now_ns, complete);

		if (judged) {
			judge_vm(judge, cluster, i);
			judge->judgements++;
		}
		judge->vms[i].judged_before = judged;
	}
}

void judge_phase_void(struct judge *judge)
{
	for (unsigned i = 0; i < judge->workload->options.vms; i++)
		judge->vms[i].judged_before = false;
}

/* ---- at the end ---- */

static void compare(struct judge *judge, const char *name, const char *who, struct cluster_size believed,
                    struct cluster_size size)
{
	char a[CLUSTER_SIZE_TEXT_BYTES], b[CLUSTER_SIZE_TEXT_BYTES];

	if (cluster_size_equal(believed, size))
		return;
	cluster_size_print(believed, a);
	cluster_size_print(size, b);
	judge_mismatch(judge, "%s: %s has %s, but its spec says %s", name, who, a, b);
}

/* Nothing is on its way any more, so all must know the same. */
static void judge_agreement(struct judge *judge, const char *name, const struct cluster_vm_state *state)
{
	uint64_t believed = state->monitor_believes_bytes;

	compare(judge, name, "the guest", state->plugged, state->size);
	compare(judge, name, "the scheduler plugin", state->permitted, state->size);
	if (state->monitor != GUEST_MONITOR_CONNECTED)
		judge_mismatch(judge, "%s: no agent is connected to the vm-monitor", name);
	else if (believed != 0 && believed != state->size.slots * WORKLOAD_UNIT_BYTES)
		judge_mismatch(judge, "%s: the vm-monitor believes in %.2f GiB, but its spec says %u", name,
		               (double)believed / (double)WORKLOAD_UNIT_BYTES, state->size.slots);
}

static void judge_ignored(struct judge *judge, const char *name, const struct cluster_vm_state *state)
{
	if (state->patches != 0 || state->refused_patches != 0)
		judge_mismatch(judge, "%s: isn't to be scaled, but was patched", name);
	if (state->guest.system_scrapes != 0 || state->guest.lfc_scrapes != 0)
		judge_mismatch(judge, "%s: isn't to be scaled, but was scraped", name);
	if (state->guest.connections != 0)
		judge_mismatch(judge, "%s: isn't to be scaled, but its vm-monitor was talked to", name);
}

/* Of the protocol that agents speak to the scheduler plugin; 0: they didn't get that far. */
static void judge_version(struct judge *judge, uint32_t version)
{
	uint32_t expected = sandbox_generation_version(&judge->workload->options.generation);

	if (version != 0 && version != expected)
		judge_mismatch(judge, "agents speak %s to the scheduler plugin, and should have come to %s",
		               plugin_release_version_name(version), plugin_release_version_name(expected));
}

void judge_end(struct judge *judge, const struct cluster *cluster)
{
	unsigned unauthorized = cluster_api_counters(cluster).unauthorized;

	judge_version(judge, cluster_scheduler_counters(cluster).version);

	for (unsigned i = 0; i < cluster_vm_count(cluster); i++) {
		struct cluster_vm_state state = cluster_vm_state(cluster, i);
		const char *name = cluster_vm_name(cluster, i);

		if (i >= judge->workload->options.vms) {
			judge_ignored(judge, name, &state);
			continue;
		}
		if (judge->vms[i].judged_before)
			judge_agreement(judge, name, &state);
		if (state.refused_patches != 0)
			judge_mismatch(judge, "%s: %u patches were refused", name, state.refused_patches);
		if (state.guest.bad_messages != 0)
			judge_mismatch(judge, "%s: the vm-monitor got %u bad messages", name, state.guest.bad_messages);
	}
	if (unauthorized != 0)
		judge_mismatch(judge, "%u requests came without a valid token", unauthorized);
}
