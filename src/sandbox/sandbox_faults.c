/*
 * The faults of --faults that come by themselves: a timer for each kind.
 */
#include "base/clock.h"
#include "sandbox/sandbox_internal.h"

enum {
	MONITOR_CLOSED_MS = 200,
	MONITOR_SLOW_MS = 3000,
	/* An agent whose first list fails ends, as the reference does; so its start is left alone. */
	FIRST_FAULT_MS = 2000,
};

static void plan(struct sandbox_fault *fault);

static void end_monitor_fault(void *context)
{
	struct sandbox_fault *fault = context;

	fault->active = false;
	cluster_set_monitor_fault(fault->sandbox->cluster, fault->vm, fault->kind, false);
}

/* An outage of the same vm-monitor goes first. */
static void disturb_monitor(struct sandbox_fault *fault, unsigned length_ms)
{
	struct sandbox *sandbox = fault->sandbox;
	unsigned vms = sandbox->options->vms;

	if (vms == 0 || fault->active)
		return;
	fault->vm = (unsigned)rng_between(&sandbox->faults.rng, 0, vms);
	for (size_t i = 0; i < sandbox->options->outage_count; i++) {
		const struct outage *outage = sandbox->outages[i].outage;

		if (outage->peer == OUTAGE_MONITOR && outage->vm == fault->vm)
			return;
	}
	if (!faults_happen(&sandbox->faults, fault->kind))
		return;
	fault->active = true;
	live_view_vm_event(sandbox->view, fault->vm, "fault: %s", fault_name(fault->kind));
	cluster_set_monitor_fault(sandbox->cluster, fault->vm, fault->kind, true);
	loop_timer_start(sandbox->loop, &fault->end_timer, length_ms * (uint64_t)NS_PER_MS, end_monitor_fault, fault);
}

static void on_time(void *context)
{
	struct sandbox_fault *fault = context;
	struct sandbox *sandbox = fault->sandbox;
	struct control_plane *plane = cluster_control_plane(sandbox->cluster);

	plan(fault);
	if (fault->kind == FAULT_MONITOR_CLOSED || fault->kind == FAULT_MONITOR_SLOW) {
		disturb_monitor(fault, fault->kind == FAULT_MONITOR_CLOSED ? MONITOR_CLOSED_MS : MONITOR_SLOW_MS);
		return;
	}
	if ((fault->kind == FAULT_EXTENDER_KILLED && sandbox->extender.process == NULL) ||
	    !faults_happen(&sandbox->faults, fault->kind))
		return;
	live_view_event(sandbox->view, "fault: %s", fault_name(fault->kind));
	if (fault->kind == FAULT_EXTENDER_KILLED)
		sandbox_extender_kill(sandbox);
	if (fault->kind == FAULT_API_EXPIRED)
		control_plane_compact(plane);
	if (fault->kind == FAULT_API_EXPIRED || fault->kind == FAULT_API_WATCHES_CUT)
		control_plane_end_watches(plane, false);
}

static void plan(struct sandbox_fault *fault)
{
	uint64_t delay_ns = faults_next_ns(&fault->sandbox->faults, fault->kind);

	if (delay_ns > 0)
		loop_timer_start(fault->sandbox->loop, &fault->timer, delay_ns, on_time, fault);
}

static void begin(void *context)
{
	struct sandbox *sandbox = context;

	sandbox->faults.suspended = false;
	for (size_t i = 0; i < FAULT_COUNT; i++) {
		struct sandbox_fault *fault = &sandbox->timed_faults[i];

		fault->sandbox = sandbox;
		fault->kind = (enum fault_kind)i;
		if (faults_comes_by_itself(fault->kind))
			plan(fault);
	}
}

void sandbox_faults_start(struct sandbox *sandbox)
{
	faults_init(&sandbox->faults, sandbox->options->faults, sandbox->options->seed);
	if (sandbox->options->faults == FAULTS_NONE)
		return;
	sandbox->faults.suspended = true;
	cluster_set_faults(sandbox->cluster, &sandbox->faults);
	loop_timer_start(sandbox->loop, &sandbox->faults_timer, (uint64_t)FIRST_FAULT_MS * NS_PER_MS, begin, sandbox);
}

static void calm_down(void *context)
{
	struct sandbox *sandbox = context;

	sandbox->faults.suspended = true;
}

void sandbox_faults_begin_phase(struct sandbox *sandbox)
{
	uint64_t settle_ns = sandbox->workload->settle_ns / 2, now_ns = sandbox_elapsed_ns(sandbox);
	uint64_t until_ns = (sandbox->phase + 1) * sandbox->workload->phase_length_ns;
	uint64_t end_ns = sandbox_options_end_ns(sandbox->options);
	bool ends = end_ns != 0 && end_ns <= until_ns;

	if (sandbox->options->faults == FAULTS_NONE)
		return;
	/* The first of them come a while after the start. */
	if (sandbox->phase > 0)
		sandbox->faults.suspended = false;
	if (sandbox->options->faults == FAULTS_HEAVY && !ends)
		return;
	until_ns = ends ? end_ns : until_ns;
	loop_timer_start(sandbox->loop, &sandbox->quiet_timer,
	                 until_ns > now_ns + settle_ns ? until_ns - now_ns - settle_ns : 0, calm_down, sandbox);
}

void sandbox_faults_stop(struct sandbox *sandbox)
{
	if (sandbox->loop != NULL) {
		loop_timer_stop(sandbox->loop, &sandbox->faults_timer);
		loop_timer_stop(sandbox->loop, &sandbox->quiet_timer);
	}
	for (size_t i = 0; sandbox->loop != NULL && i < FAULT_COUNT; i++) {
		loop_timer_stop(sandbox->loop, &sandbox->timed_faults[i].timer);
		loop_timer_stop(sandbox->loop, &sandbox->timed_faults[i].end_timer);
	}
	sandbox->faults.suspended = true;
}
