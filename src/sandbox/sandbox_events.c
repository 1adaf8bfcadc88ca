/*
 * The agents' events: who takes them, and whether they say what is true.
 */
#include "sandbox/sandbox_internal.h"

#include "base/clock.h"
#include "base/memory.h"
#include "kube/limits.h"

/* ---- what the receiver hears ---- */

static void show(struct sandbox *sandbox, const struct events_billing_event *event)
{
	if (sandbox->options->shows_events)
		live_view_event(sandbox->view, "billed to %.*s: %llu %.*s, %.*s to %.*s",
		                SLICE_ARGS(event->endpoint_id), (unsigned long long)event->value,
		                SLICE_ARGS(event->metric), SLICE_ARGS(event->start_time), SLICE_ARGS(event->stop_time));
}

static void on_billing_event(void *context, const struct events_billing_event *event, int64_t start_wall_ns,
                             int64_t stop_wall_ns)
{
	struct sandbox *sandbox = context;
	struct billing_judge_event judged = { .metric = BILLING_CPU_SECONDS,
		                              .seconds = event->value,
		                              .start_wall_ns = start_wall_ns,
		                              .stop_wall_ns = stop_wall_ns };
	struct error err;
	unsigned vm;

	show(sandbox, event);
	if (slice_equal_text(event->metric, AGENT_SETUP_ACTIVE_METRIC)) {
		judged.metric = BILLING_ACTIVE_SECONDS;
	} else if (!slice_equal_text(event->metric, AGENT_SETUP_CPU_METRIC)) {
		judge_mismatch(&sandbox->judge, "a billing event of the metric \"%.*s\"", SLICE_ARGS(event->metric));
		return;
	}
	if (!cluster_find_endpoint(sandbox->cluster, event->endpoint_id, &vm))
		judge_mismatch(&sandbox->judge, "a billing event for the endpoint \"%.*s\", which doesn't exist",
		               SLICE_ARGS(event->endpoint_id));
	else if (!billing_judge_take(&sandbox->events.judge, vm, &judged, &err))
		judge_mismatch(&sandbox->judge, "billing of %s: %s", cluster_vm_name(sandbox->cluster, vm), err.text);
}

static void on_duplicate(void *context, struct slice key)
{
	struct sandbox *sandbox = context;

	if (sandbox->options->shows_events)
		live_view_event(sandbox->view, "billing event received again: %.*s", SLICE_ARGS(key));
}

static void on_scaling_event(void *context, const struct events_scaling_event *event)
{
	struct sandbox *sandbox = context;

	if (sandbox->options->shows_events)
		live_view_event(sandbox->view, "scaling event of %.*s: %.*s, %g CU to %g CU",
		                SLICE_ARGS(event->endpoint_id), SLICE_ARGS(event->kind), event->current_cu / 1000.0,
		                event->target_cu / 1000.0);
}

static void on_problem(void *context, const struct error *err)
{
	struct sandbox *sandbox = context;

	judge_mismatch(&sandbox->judge, "event receiver: %s", err->text);
}

/* ---- its life ---- */

bool sandbox_events_prepare(struct sandbox *sandbox, struct error *err)
{
	static const struct event_receiver_handler HANDLER = {
		.on_billing_event = on_billing_event,
		.on_duplicate = on_duplicate,
		.on_scaling_event = on_scaling_event,
		.on_problem = on_problem,
		.on_accept_error = sandbox_on_accept_error,
	};
	const struct cluster *cluster = sandbox->cluster;
	double speed = sandbox->options->speed;
	struct sandbox_events *events = &sandbox->events;
	struct address address = cluster_receiver_address(cluster, AGENT_SETUP_RECEIVER_PORT);

	if (!billing_judge_init(&events->judge, cluster_vm_count(cluster),
	                        (double)agent_setup_scaled_s(AGENT_SETUP_COLLECT_S, speed),
	                        (double)agent_setup_scaled_s(AGENT_SETUP_ACCUMULATE_S, speed), err))
		return false;
	for (unsigned i = 0; i < cluster_vm_count(cluster); i++) {
		if (cluster_vm_is_billed(cluster, i))
			billing_judge_add_vm(&events->judge, i, cluster_vm_state(cluster, i).plugged.cpu_milli);
	}
	address_print_host(&address, false, events->address);
	events->receiver = event_receiver_start(sandbox->loop, &address, &HANDLER, sandbox, err);
	return events->receiver != NULL;
}

void sandbox_events_start(struct sandbox *sandbox)
{
	billing_judge_start(&sandbox->events.judge, loop_now_ns(sandbox->loop), loop_wall_ns(sandbox->loop));
}

void sandbox_events_end(struct sandbox *sandbox)
{
	billing_judge_end(&sandbox->events.judge, loop_now_ns(sandbox->loop), loop_wall_ns(sandbox->loop));
}

void sandbox_events_cpu(struct sandbox *sandbox, unsigned vm, uint32_t cpu_milli)
{
	if (sandbox->events.judge.vms != NULL)
		billing_judge_set_cpu(&sandbox->events.judge, vm, cpu_milli, loop_now_ns(sandbox->loop));
}

bool sandbox_events_outage(struct sandbox *sandbox, const struct outage *outage, bool away, struct error *err)
{
	uint64_t now_ns = loop_now_ns(sandbox->loop);
	uint64_t settled_ns = now_ns + (uint64_t)WATCH_STORE_RETRY_MAX_S * NS_PER_S +
	                      workload_settle_ns(sandbox->options->speed, sandbox->options->vms);

	/* While an agent can't see its VMs, and until it has noticed that it can again, it doesn't bill them (B6). */
	if (outage->peer == OUTAGE_API)
		billing_judge_excuse(&sandbox->events.judge, now_ns, away ? UINT64_MAX : settled_ns);
	return outage->peer != OUTAGE_RECEIVER || event_receiver_set_available(sandbox->events.receiver, !away, err);
}

/* ---- the verdict ---- */

static unsigned lost_events(const struct sandbox *sandbox)
{
	unsigned lost = 0;

	for (size_t i = 0; i < sandbox->events.judge.vm_count; i++)
		lost += billing_judge_lost(&sandbox->events.judge, i);
	return lost;
}

/* Duplicates are no fault: an agent that got no answer in time must send again (S7). */
void sandbox_events_judge(struct sandbox *sandbox)
{
	unsigned lost = lost_events(sandbox);
	struct error err;

	if (sandbox->events.voided)
		return;
	if (lost > 0)
		judge_mismatch(&sandbox->judge, "billing: %u event%s lost", lost, lost == 1 ? " was" : "s were");
	for (unsigned i = 0; i < sandbox->events.judge.vm_count; i++) {
		if (!billing_judge_check(&sandbox->events.judge, i, &err))
			judge_mismatch(&sandbox->judge, "billing of %s: %s", cluster_vm_name(sandbox->cluster, i),
			               err.text);
	}
}

/* ---- the report ---- */

static double rounded(double seconds)
{
	return (double)(uint64_t)(seconds * 1000 + 0.5) / 1000;
}

bool sandbox_events_describe(struct sandbox *sandbox, struct sandbox_report_billing *ret_billing, struct error *err)
{
	const struct billing_judge *judge = &sandbox->events.judge;
	struct event_receiver_counters counters = event_receiver_counters(sandbox->events.receiver);
	struct sandbox_report_billing billing = {
		.duplicates = counters.duplicates,
		.lost = lost_events(sandbox),
		.events = counters.billing_events,
		.scaling_events = counters.scaling_events,
	};
	double used_s = 0;

	memory_release(sandbox->events.described);
	sandbox->events.described = memory_allocate((judge->vm_count + 1) * sizeof *sandbox->events.described);
	if (sandbox->events.described == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the report");
	for (unsigned i = 0; i < judge->vm_count; i++) {
		const struct billing_judge_vm *vm = &judge->vms[i];

		if (!vm->billable)
			continue;
		used_s += vm->used_cpu_s;
		billing.billed_cpu_seconds += vm->sums[BILLING_CPU_SECONDS].billed;
		sandbox->events.described[billing.vms_count++] = (struct sandbox_report_billed_vm){
			.name = slice_of(cluster_vm_name(sandbox->cluster, i)),
			.expected_cpu_seconds = rounded(vm->used_cpu_s),
			.billed_cpu_seconds = vm->sums[BILLING_CPU_SECONDS].billed,
			.billed_active_seconds = vm->sums[BILLING_ACTIVE_SECONDS].billed,
		};
	}
	billing.expected_cpu_seconds = rounded(used_s);
	billing.vms = sandbox->events.described;
	*ret_billing = billing;
	return true;
}

void sandbox_events_destroy(struct sandbox *sandbox)
{
	event_receiver_destroy(sandbox->events.receiver);
	billing_judge_destroy(&sandbox->events.judge);
	memory_release(sandbox->events.described);
}
