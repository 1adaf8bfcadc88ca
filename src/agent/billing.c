/*
 * Two tickers (B1): collections fall on a grid that begins at the start, drains on one that begins half a second later,
 * when the first window opens and the first collection takes place. Ticks that are missed are left out.
 *
 * Lengths of time are measured on the monotonic clock; the wall clock gives stamps only. When it is set back, stamps go
 * on from where they are at half its speed until it has caught up, so that no window ends before it begins and no two
 * drains have the same stamp.
 */
#include "agent/billing.h"

#include "agent/billing_slices.h"
#include "agent/event_json.h"
#include "agent/limits.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"

enum {
	FIRST_DRAIN_OFFSET_MS = 500,
	SUBMITTED_PER_TURN = 64,         /* VMs: some 15 us each */
	DRAINED_BYTES = 4 * 1024 * 1024, /* some 100 for each VM */
};

struct ticker {
	struct loop_timer timer;
	uint64_t next_ns, period_ns;
};

struct billing {
	struct billing_options options;
	struct logger logger;
	struct billing_slices slices;
	struct ticker collect, accumulate;
	struct loop_timer opening;
	bool open; /* the first window has begun */
	bool finished;
	int64_t window_wall_ns;     /* begin of the window */
	uint64_t window_ns;         /* likewise, monotonic */
	struct billing_event event; /* of the drain under way */
	struct arena arena;         /* for what it drained */
	struct billing_usage *drained;
	size_t drained_count, submitted;
	struct loop_task submission;
};

/* ---- tickers ---- */

static void wait_for_tick(struct billing *billing, struct ticker *ticker, void (*callback)(void *context))
{
	uint64_t now_ns = loop_now_ns(billing->options.loop);

	loop_timer_start(billing->options.loop, &ticker->timer, ticker->next_ns > now_ns ? ticker->next_ns - now_ns : 0,
	                 callback, billing);
}

static void start_ticker(struct billing *billing, struct ticker *ticker, uint64_t period_ns,
                         void (*callback)(void *context))
{
	ticker->period_ns = period_ns;
	ticker->next_ns = loop_now_ns(billing->options.loop) + period_ns;
	wait_for_tick(billing, ticker, callback);
}

static void next_tick(struct billing *billing, struct ticker *ticker, void (*callback)(void *context))
{
	uint64_t now_ns = loop_now_ns(billing->options.loop);

	ticker->next_ns += ticker->period_ns;
	if (ticker->next_ns <= now_ns)
		ticker->next_ns += ((now_ns - ticker->next_ns) / ticker->period_ns + 1) * ticker->period_ns;
	wait_for_tick(billing, ticker, callback);
}

/* ---- collecting ---- */

/* B3, step 5. */
static bool has_billed_phase(struct slice phase)
{
	static const char *const PHASES[] = { "Running", "PreMigrating", "Migrating", "Scaling" };

	for (size_t i = 0; i < sizeof PHASES / sizeof PHASES[0]; i++) {
		if (slice_equal_text(phase, PHASES[i]))
			return true;
	}
	return false;
}

static void collect_vm(struct billing *billing, const struct vm_watch_vm *vm)
{
	struct error err;

	agent_metrics_count_billed_vm(billing->options.metrics, vm->has_billing_endpoint_id, vm->autoscaling_enabled,
	                              vm->phase);
	if (!vm->has_billing_endpoint_id || !has_billed_phase(vm->phase) || !vm->has_status_cpu)
		return;
	if (!billing_slices_see(&billing->slices, vm->uid, vm->billing_endpoint_id, vm->status_cpu_milli, &err))
		log_error(&billing->logger, "Failed to collect a VM", log_error_field(&err));
}

static void collect(struct billing *billing)
{
	const struct billing_source *source = &billing->options.source;
	struct vm_watch_vm vm;
	size_t position = 0;

	billing_slices_begin(&billing->slices, loop_now_ns(billing->options.loop));
	agent_metrics_reset_billed_vms(billing->options.metrics);
	if (source->failing(source->context)) {
		log_error(&billing->logger, "VM store is currently stopped. No events will be recorded");
		return;
	}
	while (source->next(source->context, &position, &vm))
		collect_vm(billing, &vm);
}

/* ---- draining ---- */

static void submit_event(struct billing *billing, struct slice metric, uint64_t value)
{
	struct billing_event *event = &billing->event;
	struct buffer key, json;
	struct error err;

	event->number++;
	event->metric = metric;
	event->value = value;
	buffer_init(&key, AGENT_EVENT_BYTES);
	buffer_init(&json, AGENT_EVENT_BYTES);
	billing_event_print_key(event, &key);
	log_info(&billing->logger, "Adding event to batch", log_slice("IdempotencyKey", buffer_slice(&key)),
	         log_slice("EndpointID", event->endpoint_id), log_slice("MetricName", metric),
	         log_uint("Value", value));
	if (billing_event_print_json(event, &json, &err))
		billing->options.submit(billing->options.submit_context, buffer_slice(&json));
	else
		log_error(&billing->logger, "Failed to make an event", log_error_field(&err));
	buffer_destroy(&key);
	buffer_destroy(&json);
}

static void submit_usage(struct billing *billing, const struct billing_usage *usage)
{
	billing->event.endpoint_id = usage->endpoint_id;
	submit_event(billing, billing->options.config->cpu_metric_name, usage->cpu_seconds);
	submit_event(billing, billing->options.config->active_time_metric_name, usage->active_seconds);
}

/* Some of what was drained; the rest in other turns of the loop (design section 1.4). */
static void submit_some(void *context)
{
	struct billing *billing = context;

	for (int i = 0; i < SUBMITTED_PER_TURN && billing->submitted < billing->drained_count; i++)
		submit_usage(billing, &billing->drained[billing->submitted++]);
	if (billing->submitted < billing->drained_count)
		loop_run_soon(billing->options.loop, &billing->submission, submit_some, billing);
}

static void submit_rest(struct billing *billing)
{
	while (billing->submitted < billing->drained_count)
		submit_some(billing);
	loop_task_cancel(billing->options.loop, &billing->submission);
}

/* What there is no room to keep is submitted at once. */
static void take_usage(void *context, const struct billing_usage *usage)
{
	struct billing *billing = context;
	struct billing_usage kept = *usage;

	if (billing->drained == NULL || !arena_copy(&billing->arena, usage->endpoint_id, &kept.endpoint_id))
		submit_usage(billing, usage);
	else
		billing->drained[billing->drained_count++] = kept;
}

static void drain_slices(struct billing *billing)
{
	size_t count = billing_slices_count(&billing->slices);

	arena_reset(&billing->arena);
	billing->drained = arena_allocate_array(&billing->arena, count, sizeof *billing->drained);
	billing->drained_count = 0;
	billing->submitted = 0;
	billing->event.count = 2 * count;
	billing_slices_drain(&billing->slices, take_usage, billing);
	submit_some(billing);
}

/* When the window ends that is open now. */
static int64_t window_end_wall_ns(const struct billing *billing)
{
	int64_t wall_ns = loop_wall_ns(billing->options.loop);
	uint64_t half_ns = (loop_now_ns(billing->options.loop) - billing->window_ns) / 2;
	int64_t least_ns = billing->window_wall_ns + (int64_t)(half_ns > NS_PER_US ? half_ns : NS_PER_US);

	return wall_ns > least_ns ? wall_ns : least_ns;
}

static void drain(struct billing *billing)
{
	int64_t wall_ns = window_end_wall_ns(billing);

	submit_rest(billing); /* of the drain before */
	billing->event = (struct billing_event){
		.start_wall_ns = billing->window_wall_ns,
		.stop_wall_ns = wall_ns,
		.host_name = billing->options.host_name,
	};
	drain_slices(billing);
	billing->window_wall_ns = wall_ns;
	billing->window_ns = loop_now_ns(billing->options.loop);
}

/* ---- life ---- */

static void on_collect(void *context)
{
	struct billing *billing = context;

	next_tick(billing, &billing->collect, on_collect);
	log_info(&billing->logger, "Collecting billing state");
	collect(billing);
}

static void on_accumulate(void *context)
{
	struct billing *billing = context;

	next_tick(billing, &billing->accumulate, on_accumulate);
	log_info(&billing->logger, "Creating billing batch");
	drain(billing);
}

static void on_opening(void *context)
{
	struct billing *billing = context;

	billing->open = true;
	billing->window_wall_ns = loop_wall_ns(billing->options.loop);
	billing->window_ns = loop_now_ns(billing->options.loop);
	start_ticker(billing, &billing->accumulate, billing->options.config->accumulate_every_ns, on_accumulate);
	collect(billing);
}

struct billing *billing_start(const struct billing_options *options, struct error *err)
{
	struct billing *billing = memory_allocate(sizeof *billing);

	if (billing == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for billing");
		return NULL;
	}
	billing->options = *options;
	billing->logger = (struct logger){ .sink = options->log_sink,
		                           .name = "autoscaler-agent.billing.collect",
		                           .context_json = "" };
	billing_slices_init(&billing->slices);
	arena_init(&billing->arena, DRAINED_BYTES);
	start_ticker(billing, &billing->collect, options->config->collect_every_ns, on_collect);
	loop_timer_start(options->loop, &billing->opening, (uint64_t)FIRST_DRAIN_OFFSET_MS * NS_PER_MS, on_opening,
	                 billing);
	return billing;
}

static void stop_timers(struct billing *billing)
{
	loop_timer_stop(billing->options.loop, &billing->collect.timer);
	loop_timer_stop(billing->options.loop, &billing->accumulate.timer);
	loop_timer_stop(billing->options.loop, &billing->opening);
}

void billing_finish(struct billing *billing)
{
	if (billing->finished)
		return;
	billing->finished = true;
	stop_timers(billing);
	/* Nothing was collected before the first window. */
	if (!billing->open)
		return;
	log_info(&billing->logger, "Collecting billing state");
	collect(billing);
	log_info(&billing->logger, "Creating billing batch");
	drain(billing);
	submit_rest(billing);
}

void billing_destroy(struct billing *billing)
{
	if (billing == NULL)
		return;
	stop_timers(billing);
	loop_task_cancel(billing->options.loop, &billing->submission);
	billing_slices_destroy(&billing->slices);
	arena_destroy(&billing->arena);
	memory_release(billing);
}
