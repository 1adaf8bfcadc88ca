/*
 * Pods in a sandbox run: they are set up beside the VMs, told of as things happen to them, and judged at the end.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/sandbox_internal.h"

enum { EXTENDER_PORT = 8889 };

static const double SECONDS_PER_MINUTE = 60;

static const char *name_of(const struct sandbox *sandbox, unsigned pod)
{
	return sandbox->pod_workload->pods[pod].name;
}

/* ---- what the cluster tells ---- */

static void on_pod(void *context, unsigned pod, const char *text)
{
	struct sandbox *sandbox = context;

	live_view_pod_event(sandbox->view, pod, "%s", text);
}

static void on_mismatch(void *context, const char *text)
{
	struct sandbox *sandbox = context;

	judge_mismatch(&sandbox->judge, "%s", text);
}

/* ---- the beginning ---- */

bool sandbox_pods_set_up(struct sandbox *sandbox, struct error *err)
{
	static const struct pod_cluster_handler HANDLER = { .on_pod = on_pod, .on_mismatch = on_mismatch };
	const struct sandbox_options *options = sandbox->options;
	const struct pod_workload_options workload = { .seed = options->seed,
		                                       .pods = options->pods,
		                                       .nodes = options->nodes,
		                                       .duration_ns = sandbox_options_end_ns(options),
		                                       .speed = options->speed };
	struct pod_cluster_options cluster = { .faults = &sandbox->faults, .node_names = options->node_names };

	if (options->pods == 0)
		return true;
	sandbox->pod_workload = pod_workload_create(&workload, err);
	if (sandbox->pod_workload == NULL || !sandbox_extender_set_up(sandbox, err))
		return false;
	cluster.store = control_plane_store(cluster_control_plane(sandbox->cluster));
	cluster.workload = sandbox->pod_workload;
	cluster.extender = cluster_extender_address(sandbox->cluster, EXTENDER_PORT);
	sandbox->pods = pod_cluster_create(sandbox->loop, &cluster, &HANDLER, sandbox, err);
	return sandbox->pods != NULL && live_view_show_pods(sandbox->view, sandbox->pods, err);
}

bool sandbox_pods_start(struct sandbox *sandbox, struct error *err)
{
	if (sandbox->pods == NULL)
		return true;
	if (!sandbox_extender_start(sandbox, err))
		return false;
	return sandbox_extender_await(sandbox, err);
}

void sandbox_pods_begin(struct sandbox *sandbox)
{
	live_view_event(sandbox->view, "the extender is ready");
	pod_cluster_begin(sandbox->pods);
}

void sandbox_pods_end(struct sandbox *sandbox)
{
	if (sandbox->pods != NULL)
		pod_cluster_end(sandbox->pods);
}

void sandbox_pods_tear_down(struct sandbox *sandbox)
{
	sandbox_faults_stop(sandbox);
	sandbox_extender_destroy(sandbox);
	pod_cluster_destroy(sandbox->pods);
	pod_workload_destroy(sandbox->pod_workload);
}

/* ---- judging ---- */

/* Whether outages, or a program that stood still, left it the time to be placed. */
static bool had_time(const struct sandbox *sandbox, const struct pod_cluster_state *state)
{
	uint64_t settle_ns = sandbox->pod_workload->settle_ns, now_ns = sandbox->duration_ns;

	if (!state->created || state->age_ns < settle_ns)
		return false;
	if (sandbox->judge.was_disturbed && sandbox->judge.disturbed_ns + settle_ns > now_ns)
		return false;
	for (size_t i = 0; i < sandbox->options->outage_count; i++) {
		const struct outage *outage = &sandbox->options->outages[i];

		if ((outage->peer == OUTAGE_API || outage->peer == OUTAGE_EXTENDER) && outage->start_ns < now_ns &&
		    outage->end_ns + settle_ns > now_ns)
			return false;
	}
	return true;
}

/* A pod that can't fit may be judged as soon as it has come. */
static bool is_judged(const struct sandbox *sandbox, unsigned pod, const struct pod_cluster_state *state)
{
	if (state->first)
		return false;
	return state->bound || !sandbox->pod_workload->pods[pod].fits || had_time(sandbox, state);
}

static void judge_pod(struct sandbox *sandbox, unsigned pod)
{
	struct pod_cluster_state state = pod_cluster_state(sandbox->pods, pod);
	struct error err;

	if (!is_judged(sandbox, pod, &state))
		return;
	/* One that is bound and can't be was a mismatch when that happened. */
	if (sandbox->pod_workload->pods[pod].fits && !state.bound)
		judge_mismatch(&sandbox->judge, "pod %s fits, and wasn't bound within %.1f s (%u filter calls)",
		               name_of(sandbox, pod), (double)state.age_ns / NS_PER_S, state.filter_calls);
	if (!pod_cluster_check_volumes(sandbox->pods, pod, &err))
		judge_mismatch(&sandbox->judge, "pod %s: %s", name_of(sandbox, pod), err.text);
}

void sandbox_pods_judge(struct sandbox *sandbox)
{
	unsigned promised_twice;

	if (sandbox->pods == NULL)
		return;
	for (unsigned i = 0; i < sandbox->pod_workload->pod_count; i++)
		judge_pod(sandbox, i);
	promised_twice = pod_cluster_counters(sandbox->pods).promised_twice;
	if (promised_twice > 0)
		judge_mismatch(&sandbox->judge, "%u time%s something was promised twice, at first: %s", promised_twice,
		               promised_twice == 1 ? "" : "s", pod_cluster_promised_twice(sandbox->pods));
}

/* ---- the report ---- */

static void describe_pod(const struct sandbox *sandbox, unsigned pod, struct report_pod *room,
                         struct sandbox_report_pod *ret)
{
	const struct pod_plan *plan = &sandbox->pod_workload->pods[pod];

	room->state = pod_cluster_state(sandbox->pods, pod);
	*ret = (struct sandbox_report_pod){
		.name = slice_of(plan->name),
		.volumes = plan->volume_count,
		.has_node = room->state.bound,
		.node = slice_of(room->state.node),
		.filter_calls = room->state.filter_calls,
		.has_seconds_to_bind = room->state.bound,
		.seconds_to_bind = room->state.seconds_to_bind,
		.expected = plan->fits ? SLICE("bound") : SLICE("pending"),
		.judged = is_judged(sandbox, pod, &room->state),
	};
}

static void describe_sums(const struct sandbox *sandbox, struct sandbox_report_report *message)
{
	struct pod_cluster_counters counters = pod_cluster_counters(sandbox->pods);
	const struct sandbox_extender *extender = &sandbox->extender;

	message->capacity = (struct sandbox_report_capacity){
		.promised_twice = counters.promised_twice,
		.reserved = counters.reservations.reserved,
		.rejected = counters.reservations.rejected,
		.volumes = counters.volumes.created,
		.refused_volumes = counters.volumes.refused,
	};
	message->has_placement = message->has_extender = true;
	message->placement = (struct sandbox_report_placement){
		.bound = counters.scheduler.bound,
		.filter_calls = counters.scheduler.filter_calls,
		.failed_filter_calls = counters.scheduler.failed_filter_calls,
		.has_pods_per_minute = counters.busy_seconds > 0,
		.pods_per_minute =
			counters.busy_seconds > 0 ? counters.placed * SECONDS_PER_MINUTE / counters.busy_seconds : 0,
	};
	message->extender = (struct sandbox_report_extender){
		.max_resident_kib = extender->usage.max_resident_kib,
		.cpu_seconds = (double)extender->usage.cpu_us / 1e6,
		.restarts = extender->restarts,
	};
}

static void describe_faults(const struct sandbox *sandbox, struct report *report)
{
	for (size_t i = 0; i < FAULT_COUNT; i++) {
		if (sandbox->faults.counts[i] > 0)
			report->faults[report->message.faults_count++] = (struct sandbox_report_fault_count){
				.kind = slice_of(fault_name((enum fault_kind)i)),
				.count = sandbox->faults.counts[i],
			};
	}
	report->message.faults = report->faults;
}

bool sandbox_pods_report(const struct sandbox *sandbox, struct report *report, struct error *err)
{
	unsigned count = sandbox->pods != NULL ? sandbox->pod_workload->pod_count : 0;

	describe_faults(sandbox, report);
	if (!report_add_pods(report, count, err))
		return false;
	for (unsigned i = 0; i < count; i++) {
		describe_pod(sandbox, i, &report->pods[i], &report->message.pods[i]);
		report->anything_judged |= report->message.pods[i].judged;
	}
	if (sandbox->pods != NULL)
		describe_sums(sandbox, &report->message);
	return true;
}
