/*
 * The functions below only say which series of which family something counts in. Families that a generation doesn't
 * have are NULL, and add_values() and its like leave them alone.
 */
#include "agent/agent_metrics.h"

#include "agent/agent_metrics_families.h"
#include "agent/limits.h"
#include "base/memory.h"
#include "metrics/process_metrics.h"
#include "metrics/registry.h"

struct agent_metrics {
	struct metrics_registry *registry;
	struct metrics_family *families[FAMILY_COUNT];
	struct process_metrics process;
	const struct log_sink *log_sink; /* NULL: none to follow */
	bool late_2023;
	bool has_billing;
};

static const char *const DIRECTIONS[] = {
	[AGENT_DIRECTION_INC] = "inc",
	[AGENT_DIRECTION_DEC] = "dec",
	[AGENT_DIRECTION_BOTH] = "both",
	[AGENT_DIRECTION_NONE] = "none",
};

static const char *const WATCHERS[] = {
	[AGENT_WATCHER_VIRTUAL_MACHINES] = "VirtualMachines",
	[AGENT_WATCHER_SCHEDULER_POD] = "Scheduler Pod",
};

/* ---- series by the texts of their labels ---- */

static const char *bool_text(bool value)
{
	return value ? "true" : "false";
}

static void add_values(struct agent_metrics *metrics, enum family family, const struct slice *values, double amount)
{
	if (metrics->families[family] != NULL)
		metrics_add(metrics->families[family], values, amount);
}

static void set_values(struct agent_metrics *metrics, enum family family, const struct slice *values, double value)
{
	if (metrics->families[family] != NULL)
		metrics_set(metrics->families[family], values, value);
}

static void add_one(struct agent_metrics *metrics, enum family family, const char *label, double amount)
{
	const struct slice values[] = { slice_of(label) };

	add_values(metrics, family, values, amount);
}

/* In the order of the label names. */
static void add_two(struct agent_metrics *metrics, enum family family, const char *first, const char *second,
                    double amount)
{
	const struct slice values[] = { slice_of(first), slice_of(second) };

	add_values(metrics, family, values, amount);
}

static void set_one(struct agent_metrics *metrics, enum family family, const char *label, double value)
{
	const struct slice values[] = { slice_of(label) };

	set_values(metrics, family, values, value);
}

static void count(struct agent_metrics *metrics, enum family family)
{
	add_values(metrics, family, NULL, 1);
}

static void add_runner(struct agent_metrics *metrics, const struct agent_runner_label *label, double amount)
{
	static const char *const states[] = {
		[AGENT_RUNNER_OK] = "ok",
		[AGENT_RUNNER_STUCK] = "stuck",
		[AGENT_RUNNER_PANICKED] = "panicked",
		[AGENT_RUNNER_ERRORED] = "errored",
	};

	add_two(metrics, RUNNERS, bool_text(label->is_endpoint), states[label->state], amount);
}

/* ---- coming and going ---- */

static bool add_families(struct agent_metrics *metrics, struct error *err)
{
	for (enum family i = 0; i < FAMILY_COUNT; i++) {
		const struct metrics_family_options *options =
			agent_metrics_family_options(i, metrics->late_2023, metrics->has_billing);

		if (options == NULL)
			continue;
		metrics->families[i] = metrics_registry_add(metrics->registry, options, err);
		if (metrics->families[i] == NULL)
			return false;
	}
	return process_metrics_init(&metrics->process, metrics->registry, err);
}

/* What no runner of ours ever comes to, so that those who ask for it find 0. */
static void make_first_series_2023(struct agent_metrics *metrics)
{
	add_runner(metrics, &(struct agent_runner_label){ .is_endpoint = true, .state = AGENT_RUNNER_ERRORED }, 0);
	add_runner(metrics, &(struct agent_runner_label){ .is_endpoint = false, .state = AGENT_RUNNER_ERRORED }, 0);
	add_values(metrics, FATAL_ERRORS, NULL, 0);
	set_values(metrics, BILLING_QUEUE, NULL, 0);
}

/* Adding 0 makes a series. */
static void make_first_series(struct agent_metrics *metrics)
{
	for (enum family i = SCHEDULER_REQUESTED_CPU; i <= NEONVM_REQUESTED_MEM; i++) {
		add_one(metrics, i, "inc", 0);
		add_one(metrics, i, "dec", 0);
	}
	for (enum agent_runner_state i = AGENT_RUNNER_OK; i <= AGENT_RUNNER_PANICKED; i++) {
		add_runner(metrics, &(struct agent_runner_label){ .is_endpoint = true, .state = i }, 0);
		add_runner(metrics, &(struct agent_runner_label){ .is_endpoint = false, .state = i }, 0);
	}
	for (enum family i = RUNNER_PANICS; i <= NEXT_ACTIONS; i++)
		add_values(metrics, i, NULL, 0);
	add_values(metrics, LOG_LINES_DROPPED, NULL, 0);
	if (metrics->late_2023)
		make_first_series_2023(metrics);
	add_one(metrics, PAGE_ERRORS, "encoding", 0);
	add_one(metrics, PAGE_ERRORS, "gathering", 0);
	agent_metrics_set_watch_failing(metrics, AGENT_WATCHER_VIRTUAL_MACHINES, false);
	agent_metrics_set_watch_failing(metrics, AGENT_WATCHER_SCHEDULER_POD, false);
}

static struct agent_metrics *create(bool late_2023, bool has_billing, struct error *err)
{
	struct agent_metrics *metrics = memory_allocate(sizeof *metrics);

	if (metrics == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for metrics");
		return NULL;
	}
	metrics->late_2023 = late_2023;
	metrics->has_billing = has_billing;
	metrics->registry = metrics_registry_create(err);
	if (metrics->registry == NULL || !add_families(metrics, err)) {
		agent_metrics_destroy(metrics);
		return NULL;
	}
	make_first_series(metrics);
	return metrics;
}

struct agent_metrics *agent_metrics_create(struct error *err)
{
	return create(false, true, err);
}

struct agent_metrics *agent_metrics_create_late_2023(bool has_billing, struct error *err)
{
	return create(true, has_billing, err);
}

void agent_metrics_destroy(struct agent_metrics *metrics)
{
	if (metrics == NULL)
		return;
	metrics_registry_destroy(metrics->registry);
	memory_release(metrics);
}

void agent_metrics_follow_log(struct agent_metrics *metrics, const struct log_sink *log_sink)
{
	metrics->log_sink = log_sink;
}

bool agent_metrics_print(struct agent_metrics *metrics, struct buffer *page, struct error *err)
{
	if (metrics->log_sink != NULL)
		metrics_set(metrics->families[LOG_LINES_DROPPED], NULL, (double)log_dropped_lines(metrics->log_sink));
	process_metrics_update(&metrics->process);
	if (metrics_registry_print(metrics->registry, page, err))
		return true;
	add_one(metrics, PAGE_ERRORS, "encoding", 1);
	return false;
}

/* ---- requests and answers ---- */

static void count_difference(struct agent_metrics *metrics, enum family family, double before, double after)
{
	if (after > before)
		add_one(metrics, family, "inc", after - before);
	else if (after < before)
		add_one(metrics, family, "dec", before - after);
}

void agent_metrics_count_change(struct agent_metrics *metrics, enum agent_change change, struct resources before,
                                struct resources after)
{
	static const double bytes_per_mib = 1048576;
	enum family cpu = SCHEDULER_REQUESTED_CPU + 2 * (unsigned)change;

	count_difference(metrics, cpu, (double)before.cpu_milli / 1000, (double)after.cpu_milli / 1000);
	count_difference(metrics, cpu + 1, (double)before.mem_bytes / bytes_per_mib,
	                 (double)after.mem_bytes / bytes_per_mib);
}

void agent_metrics_count_scheduler_request(struct agent_metrics *metrics, const char *code)
{
	add_one(metrics, SCHEDULER_REQUESTS, code, 1);
}

void agent_metrics_count_monitor_outbound(struct agent_metrics *metrics, const char *endpoint, const char *code)
{
	add_two(metrics, MONITOR_OUTBOUND, code, endpoint, 1);
}

void agent_metrics_count_monitor_inbound(struct agent_metrics *metrics, const char *endpoint, const char *code)
{
	add_two(metrics, MONITOR_INBOUND, code, endpoint, 1);
}

void agent_metrics_touch_monitor_inbound(struct agent_metrics *metrics, const char *endpoint, const char *code)
{
	add_two(metrics, MONITOR_INBOUND, code, endpoint, 0);
}

void agent_metrics_count_neonvm_request(struct agent_metrics *metrics, const char *result)
{
	const struct metrics_family *family = metrics->families[NEONVM_OUTBOUND];
	const struct slice values[] = { slice_of(result) };
	bool is_new = metrics_value(family, values) == 0;

	if (is_new && metrics_series_count(family) >= AGENT_NEONVM_RESULTS)
		result = "[error: other]";
	add_one(metrics, NEONVM_OUTBOUND, result, 1);
}

void agent_metrics_count_full_denial(struct agent_metrics *metrics, enum agent_direction direction)
{
	add_one(metrics, FULL_DENIALS, DIRECTIONS[direction], 1);
}

void agent_metrics_count_partial_approval(struct agent_metrics *metrics, enum agent_direction direction)
{
	add_one(metrics, PARTIAL_APPROVALS, DIRECTIONS[direction], 1);
}

/* ---- runners ---- */

void agent_metrics_move_runner(struct agent_metrics *metrics, const struct agent_runner_label *before,
                               const struct agent_runner_label *after)
{
	if (before != NULL)
		add_runner(metrics, before, -1);
	if (after != NULL)
		add_runner(metrics, after, 1);
}

void agent_metrics_count_runner_start(struct agent_metrics *metrics)
{
	count(metrics, RUNNER_STARTS);
}

void agent_metrics_count_runner_restart(struct agent_metrics *metrics)
{
	count(metrics, RUNNER_RESTARTS);
}

void agent_metrics_count_runner_panic(struct agent_metrics *metrics)
{
	count(metrics, RUNNER_PANICS);
}

void agent_metrics_count_next_actions(struct agent_metrics *metrics)
{
	count(metrics, NEXT_ACTIONS);
}

void agent_metrics_observe_latency(struct agent_metrics *metrics, enum agent_latency latency,
                                   enum agent_direction direction, int64_t latency_ns)
{
	const struct slice values[] = { slice_of(DIRECTIONS[direction]) };
	struct metrics_family *family = metrics->families[SCALING_LATENCY + (unsigned)latency];

	if (family != NULL)
		metrics_observe(family, values, (double)latency_ns / 1e9);
}

void agent_metrics_count_scaling_event(struct agent_metrics *metrics, enum agent_scaling_event kind)
{
	add_one(metrics, SCALING_EVENTS, kind == AGENT_SCALING_EVENT_ACTUAL ? "actual" : "hypothetical", 1);
}

/* ---- billing and senders ---- */

void agent_metrics_reset_billed_vms(struct agent_metrics *metrics)
{
	if (metrics->has_billing)
		metrics_remove_matching(metrics->families[BILLING_VMS_CURRENT], NULL, NULL, 0);
}

void agent_metrics_count_billed_vm(struct agent_metrics *metrics, bool is_endpoint, bool autoscaling_enabled,
                                   struct slice phase)
{
	const struct slice values[] = { slice_of(bool_text(autoscaling_enabled)), slice_of(bool_text(is_endpoint)),
		                        phase };

	add_values(metrics, BILLING_VMS_PROCESSED, values, 1);
	add_values(metrics, BILLING_VMS_CURRENT, values, 1);
}

void agent_metrics_set_queue_size(struct agent_metrics *metrics, enum agent_sender sender, const char *client,
                                  double events)
{
	if (metrics->late_2023)
		set_values(metrics, BILLING_QUEUE + (unsigned)sender, NULL, events);
	else
		set_one(metrics, BILLING_QUEUE + (unsigned)sender, client, events);
}

void agent_metrics_set_last_send_duration(struct agent_metrics *metrics, enum agent_sender sender, const char *client,
                                          double seconds)
{
	set_one(metrics, BILLING_SEND_DURATION + (unsigned)sender, client, seconds);
}

void agent_metrics_count_send_error(struct agent_metrics *metrics, enum agent_sender sender, const char *client,
                                    const char *cause)
{
	if (metrics->late_2023)
		add_one(metrics, BILLING_SEND_ERRORS + (unsigned)sender, cause, 1);
	else
		add_two(metrics, BILLING_SEND_ERRORS + (unsigned)sender, cause, client, 1);
}

void agent_metrics_count_dropped_events(struct agent_metrics *metrics, enum agent_sender sender, const char *client,
                                        double events)
{
	add_two(metrics, EVENTS_DROPPED, client, sender == AGENT_SENDER_BILLING ? "billing" : "scalingevents", events);
}

/* ---- watches ---- */

void agent_metrics_count_watch_call(struct agent_metrics *metrics, enum agent_watcher watcher,
                                    enum watch_store_call call)
{
	add_two(metrics, WATCH_CALLS, call == WATCH_STORE_LIST ? "List" : "Watch", WATCHERS[watcher], 1);
}

void agent_metrics_count_watch_event(struct agent_metrics *metrics, enum agent_watcher watcher,
                                     enum watch_store_event event)
{
	static const char *const types[] = {
		[WATCH_STORE_ADDED] = "ADDED",     [WATCH_STORE_MODIFIED] = "MODIFIED",
		[WATCH_STORE_DELETED] = "DELETED", [WATCH_STORE_BOOKMARK] = "BOOKMARK",
		[WATCH_STORE_ERROR] = "ERROR",
	};

	add_two(metrics, WATCH_EVENTS, types[event], WATCHERS[watcher], 1);
}

void agent_metrics_count_watch_error(struct agent_metrics *metrics, enum agent_watcher watcher,
                                     enum watch_store_error error)
{
	static const char *const sources[] = {
		[WATCH_STORE_ERROR_LIST] = "List",
		[WATCH_STORE_ERROR_WATCH] = "Watch",
		[WATCH_STORE_ERROR_EVENT] = "Watch.Event",
	};

	add_two(metrics, WATCH_ERRORS, sources[error], WATCHERS[watcher], 1);
}

void agent_metrics_set_watch_alive(struct agent_metrics *metrics, enum agent_watcher watcher, bool alive)
{
	set_one(metrics, WATCH_ALIVE, WATCHERS[watcher], alive ? 1 : 0);
}

void agent_metrics_set_watch_failing(struct agent_metrics *metrics, enum agent_watcher watcher, bool failing)
{
	set_one(metrics, WATCH_FAILING, WATCHERS[watcher], failing ? 1 : 0);
}
