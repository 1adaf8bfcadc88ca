#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent_metrics.h"
#include "agent/limits.h"
#include "base/memory.h"

enum { PAGE_BYTES = 64 * 1024 };

static struct agent_metrics *create(void)
{
	struct error err;
	struct agent_metrics *metrics = agent_metrics_create(&err);

	assert_non_null(metrics);
	return metrics;
}

/* The page's lines that begin with prefix; without HELP lines and process_… */
static void print(struct agent_metrics *metrics, const char *prefix, char *text)
{
	struct buffer page;
	struct error err;
	struct slice rest;
	size_t length = 0;

	buffer_init(&page, PAGE_BYTES);
	assert_true(agent_metrics_print(metrics, &page, &err));
	rest = buffer_slice(&page);
	while (rest.length > 0) {
		struct slice line = slice_take_until(&rest, '\n');

		if (!slice_starts_with(line, slice_of(prefix)) || slice_starts_with(line, SLICE("# HELP")) ||
		    slice_starts_with(line, SLICE("process_")) || slice_contains(line, SLICE(" process_")))
			continue;
		memcpy(text + length, line.data, line.length);
		length += line.length;
		text[length++] = '\n';
	}
	text[length] = '\0';
	buffer_destroy(&page);
}

static void assert_lines(struct agent_metrics *metrics, const char *prefix, const char *expected)
{
	char text[PAGE_BYTES];

	print(metrics, prefix, text);
	assert_string_equal(text, expected);
}

#define A "autoscaling_agent_"
#define CHANGE(name) "# TYPE " A name " counter\n" A name "{direction=\"dec\"} 0\n" A name "{direction=\"inc\"} 0\n"

static struct agent_metrics *create_late_2023(bool has_billing)
{
	struct error err;
	struct agent_metrics *metrics = agent_metrics_create_late_2023(has_billing, &err);

	assert_non_null(metrics);
	return metrics;
}

/* generations 4.7 */
static void in_late_2023_a_new_page_has_other_families(void **state)
{
	struct agent_metrics *metrics = create_late_2023(false);

	(void)state;
	/* clang-format off */
	assert_lines(metrics, "",
		CHANGE("monitor_approved_cpu_change_total")
		CHANGE("monitor_approved_mem_change_total")
		CHANGE("monitor_requested_cpu_change_total")
		CHANGE("monitor_requested_mem_change_total")
		CHANGE("neonvm_requested_cpu_change_total")
		CHANGE("neonvm_requested_mem_changed_total")
		"# TYPE " A "runner_fatal_errors_total counter\n"
		A "runner_fatal_errors_total 0\n"
		"# TYPE " A "runner_next_actions_total counter\n"
		A "runner_next_actions_total 0\n"
		"# TYPE " A "runner_restarts counter\n"
		A "runner_restarts 0\n"
		"# TYPE " A "runner_starts counter\n"
		A "runner_starts 0\n"
		"# TYPE " A "runner_thread_panics_total counter\n"
		A "runner_thread_panics_total 0\n"
		"# TYPE " A "runners_current gauge\n"
		A "runners_current{is_endpoint=\"false\",state=\"errored\"} 0\n"
		A "runners_current{is_endpoint=\"false\",state=\"ok\"} 0\n"
		A "runners_current{is_endpoint=\"false\",state=\"panicked\"} 0\n"
		A "runners_current{is_endpoint=\"false\",state=\"stuck\"} 0\n"
		A "runners_current{is_endpoint=\"true\",state=\"errored\"} 0\n"
		A "runners_current{is_endpoint=\"true\",state=\"ok\"} 0\n"
		A "runners_current{is_endpoint=\"true\",state=\"panicked\"} 0\n"
		A "runners_current{is_endpoint=\"true\",state=\"stuck\"} 0\n"
		CHANGE("scheduler_plugin_accepted_cpu_change_total")
		CHANGE("scheduler_plugin_accepted_mem_change_total")
		CHANGE("scheduler_plugin_requested_cpu_change_total")
		CHANGE("scheduler_plugin_requested_mem_change_total")
		"# TYPE " A "watchers_failing_current gauge\n"
		A "watchers_failing_current{watcher_instance=\"Scheduler Pod\"} 0\n"
		A "watchers_failing_current{watcher_instance=\"VirtualMachines\"} 0\n"
		"# TYPE ballast_log_lines_dropped_total counter\n"
		"ballast_log_lines_dropped_total 0\n"
		"# TYPE promhttp_metric_handler_errors_total counter\n"
		"promhttp_metric_handler_errors_total{cause=\"encoding\"} 0\n"
		"promhttp_metric_handler_errors_total{cause=\"gathering\"} 0\n");
	/* clang-format on */
	agent_metrics_destroy(metrics);
}

static void in_late_2023_what_has_no_family_is_counted_nowhere(void **state)
{
	struct agent_metrics *metrics = create_late_2023(false);
	char before[PAGE_BYTES], after[PAGE_BYTES];

	(void)state;
	print(metrics, "", before);
	agent_metrics_count_full_denial(metrics, AGENT_DIRECTION_INC);
	agent_metrics_count_partial_approval(metrics, AGENT_DIRECTION_INC);
	agent_metrics_observe_latency(metrics, AGENT_LATENCY_NEONVM, AGENT_DIRECTION_INC, 1);
	agent_metrics_count_scaling_event(metrics, AGENT_SCALING_EVENT_ACTUAL);
	agent_metrics_set_queue_size(metrics, AGENT_SENDER_BILLING, "http", 1);
	agent_metrics_set_queue_size(metrics, AGENT_SENDER_SCALING_EVENTS, "s3", 1);
	agent_metrics_count_send_error(metrics, AGENT_SENDER_BILLING, "http", "x");
	agent_metrics_count_send_error(metrics, AGENT_SENDER_SCALING_EVENTS, "s3", "x");
	agent_metrics_set_last_send_duration(metrics, AGENT_SENDER_BILLING, "http", 1);
	agent_metrics_set_last_send_duration(metrics, AGENT_SENDER_SCALING_EVENTS, "s3", 1);
	agent_metrics_reset_billed_vms(metrics);
	agent_metrics_count_billed_vm(metrics, true, true, SLICE("Running"));
	print(metrics, "", after);
	assert_string_equal(before, after);
	agent_metrics_destroy(metrics);
}

static void in_late_2023_billing_has_one_client_that_is_not_named(void **state)
{
	struct agent_metrics *metrics = create_late_2023(true);

	(void)state;
	assert_lines(metrics, A "billing", A "billing_queue_size 0\n");
	agent_metrics_set_queue_size(metrics, AGENT_SENDER_BILLING, "http", 3);
	agent_metrics_count_send_error(metrics, AGENT_SENDER_BILLING, "http", "HTTP code 500");
	agent_metrics_count_billed_vm(metrics, true, false, SLICE("Running"));
	assert_lines(
		metrics, A "billing",
		A
		"billing_queue_size 3\n" A "billing_send_errors_total{cause=\"HTTP code 500\"} 1\n" A
		"billing_vms_current{autoscaling_enabled=\"false\",is_endpoint=\"true\",phase=\"Running\"} 1\n" A
		"billing_vms_processed_total{autoscaling_enabled=\"false\",is_endpoint=\"true\",phase=\"Running\"} 1\n");
	agent_metrics_reset_billed_vms(metrics);
	assert_lines(metrics, A "billing_vms_current", "");
	agent_metrics_destroy(metrics);
}

static void a_new_page_has_what_starts_at_zero(void **state)
{
	struct agent_metrics *metrics = create();

	(void)state;
	/* clang-format off */
	assert_lines(metrics, "",
		CHANGE("monitor_approved_cpu_change_total")
		CHANGE("monitor_approved_mem_change_total")
		CHANGE("monitor_requested_cpu_change_total")
		CHANGE("monitor_requested_mem_change_total")
		CHANGE("neonvm_requested_cpu_change_total")
		CHANGE("neonvm_requested_mem_changed_total")
		"# TYPE " A "runner_next_actions_total counter\n"
		A "runner_next_actions_total 0\n"
		"# TYPE " A "runner_restarts counter\n"
		A "runner_restarts 0\n"
		"# TYPE " A "runner_starts counter\n"
		A "runner_starts 0\n"
		"# TYPE " A "runner_thread_panics_total counter\n"
		A "runner_thread_panics_total 0\n"
		"# TYPE " A "runners_current gauge\n"
		A "runners_current{is_endpoint=\"false\",state=\"ok\"} 0\n"
		A "runners_current{is_endpoint=\"false\",state=\"panicked\"} 0\n"
		A "runners_current{is_endpoint=\"false\",state=\"stuck\"} 0\n"
		A "runners_current{is_endpoint=\"true\",state=\"ok\"} 0\n"
		A "runners_current{is_endpoint=\"true\",state=\"panicked\"} 0\n"
		A "runners_current{is_endpoint=\"true\",state=\"stuck\"} 0\n"
		CHANGE("scheduler_plugin_accepted_cpu_change_total")
		CHANGE("scheduler_plugin_accepted_mem_change_total")
		CHANGE("scheduler_plugin_requested_cpu_change_total")
		CHANGE("scheduler_plugin_requested_mem_change_total")
		"# TYPE " A "watchers_failing_current gauge\n"
		A "watchers_failing_current{watcher_instance=\"Scheduler Pod\"} 0\n"
		A "watchers_failing_current{watcher_instance=\"VirtualMachines\"} 0\n"
		"# TYPE ballast_log_lines_dropped_total counter\n"
		"ballast_log_lines_dropped_total 0\n"
		"# TYPE promhttp_metric_handler_errors_total counter\n"
		"promhttp_metric_handler_errors_total{cause=\"encoding\"} 0\n"
		"promhttp_metric_handler_errors_total{cause=\"gathering\"} 0\n");
	/* clang-format on */
	agent_metrics_destroy(metrics);
}

static int64_t no_time(void *context)
{
	(void)context;
	return 0;
}

static void dropped_lines_of_the_log_are_shown(void **state)
{
	enum { RING_BYTES = 256 };
	struct agent_metrics *metrics = create();
	struct logger logger = { .name = "autoscaler-agent", .context_json = "" };
	struct log_sink *sink;
	char expected[64];
	struct error err;
	int ends[2];

	(void)state;
	assert_lines(metrics, "ballast_log_lines_dropped_total ", "ballast_log_lines_dropped_total 0\n");
	assert_int_equal(pipe(ends), 0);
	sink = log_sink_create(ends[1], LOG_FORMAT_JSON, LOG_INFO, RING_BYTES, no_time, NULL, &err);
	assert_non_null(sink);
	agent_metrics_follow_log(metrics, sink);
	assert_lines(metrics, "ballast_log_lines_dropped_total ", "ballast_log_lines_dropped_total 0\n");
	logger.sink = sink;
	for (int i = 0; i < 20000; i++)
		log_info(&logger, "nobody reads this");
	assert_in_range(log_dropped_lines(sink), 1000, 20000);
	(void)snprintf(expected, sizeof expected, "ballast_log_lines_dropped_total %llu\n",
	               (unsigned long long)log_dropped_lines(sink));
	assert_lines(metrics, "ballast_log_lines_dropped_total ", expected);
	log_sink_destroy(sink, 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
	agent_metrics_destroy(metrics);
}

static void changes_are_counted_by_resource_and_direction(void **state)
{
	struct agent_metrics *metrics = create();
	const struct resources small = { 500, UINT64_C(2) << 30 };
	const struct resources large = { 1250, UINT64_C(4) << 30 };
	const struct resources mixed = { 250, UINT64_C(8) << 30 };

	(void)state;
	agent_metrics_count_change(metrics, AGENT_CHANGE_SCHEDULER_REQUESTED, small, large);
	agent_metrics_count_change(metrics, AGENT_CHANGE_SCHEDULER_ACCEPTED, large, small);
	agent_metrics_count_change(metrics, AGENT_CHANGE_MONITOR_REQUESTED, small, small);
	agent_metrics_count_change(metrics, AGENT_CHANGE_MONITOR_APPROVED, small, mixed);
	agent_metrics_count_change(metrics, AGENT_CHANGE_NEONVM_REQUESTED, small, large);
	agent_metrics_count_change(metrics, AGENT_CHANGE_NEONVM_REQUESTED, small, large);
	assert_lines(metrics, A "scheduler_plugin_requested",
	             A "scheduler_plugin_requested_cpu_change_total{direction=\"dec\"} 0\n" A
	               "scheduler_plugin_requested_cpu_change_total{direction=\"inc\"} 0.75\n" A
	               "scheduler_plugin_requested_mem_change_total{direction=\"dec\"} 0\n" A
	               "scheduler_plugin_requested_mem_change_total{direction=\"inc\"} 2048\n");
	assert_lines(metrics, A "scheduler_plugin_accepted",
	             A "scheduler_plugin_accepted_cpu_change_total{direction=\"dec\"} 0.75\n" A
	               "scheduler_plugin_accepted_cpu_change_total{direction=\"inc\"} 0\n" A
	               "scheduler_plugin_accepted_mem_change_total{direction=\"dec\"} 2048\n" A
	               "scheduler_plugin_accepted_mem_change_total{direction=\"inc\"} 0\n");
	assert_lines(metrics, A "monitor_requested_cpu",
	             A "monitor_requested_cpu_change_total{direction=\"dec\"} 0\n" A
	               "monitor_requested_cpu_change_total{direction=\"inc\"} 0\n");
	assert_lines(metrics, A "monitor_approved",
	             A "monitor_approved_cpu_change_total{direction=\"dec\"} 0.25\n" A
	               "monitor_approved_cpu_change_total{direction=\"inc\"} 0\n" A
	               "monitor_approved_mem_change_total{direction=\"dec\"} 0\n" A
	               "monitor_approved_mem_change_total{direction=\"inc\"} 6144\n");
	assert_lines(metrics, A "neonvm_requested",
	             A "neonvm_requested_cpu_change_total{direction=\"dec\"} 0\n" A
	               "neonvm_requested_cpu_change_total{direction=\"inc\"} 1.5\n" A
	               "neonvm_requested_mem_changed_total{direction=\"dec\"} 0\n" A
	               "neonvm_requested_mem_changed_total{direction=\"inc\"} 4096\n");
	agent_metrics_destroy(metrics);
}

static void requests_are_counted_by_their_outcome(void **state)
{
	struct agent_metrics *metrics = create();

	(void)state;
	agent_metrics_count_scheduler_request(metrics, "200");
	agent_metrics_count_scheduler_request(metrics, "200");
	agent_metrics_count_scheduler_request(metrics, "[error doing request: EOF]");
	agent_metrics_count_monitor_outbound(metrics, "HealthCheck", "ok");
	agent_metrics_touch_monitor_inbound(metrics, "Foo", "[error: received unknown message type]");
	agent_metrics_count_monitor_inbound(metrics, "UpscaleRequest", "ok");
	agent_metrics_count_neonvm_request(metrics, "[error: virtualmachines.vm.neon.tech \"<name>\" not found]");
	agent_metrics_count_full_denial(metrics, AGENT_DIRECTION_DEC);
	agent_metrics_count_partial_approval(metrics, AGENT_DIRECTION_INC);
	agent_metrics_count_scaling_event(metrics, AGENT_SCALING_EVENT_ACTUAL);
	agent_metrics_count_scaling_event(metrics, AGENT_SCALING_EVENT_HYPOTHETICAL);
	assert_lines(metrics, A "scheduler_plugin_requests",
	             A "scheduler_plugin_requests_total{code=\"200\"} 2\n" A
	               "scheduler_plugin_requests_total{code=\"[error doing request: EOF]\"} 1\n");
	assert_lines(metrics, A "monitor_outbound",
	             A "monitor_outbound_requests_total{code=\"ok\",endpoint=\"HealthCheck\"} 1\n");
	assert_lines(
		metrics, A "monitor_inbound",
		A
		"monitor_inbound_requests_total{code=\"[error: received unknown message type]\",endpoint=\"Foo\"} 0\n" A
		"monitor_inbound_requests_total{code=\"ok\",endpoint=\"UpscaleRequest\"} 1\n");
	assert_lines(metrics, A "neonvm_outbound",
	             A
	             "neonvm_outbound_requests_total{result=\"[error: virtualmachines.vm.neon.tech \\\"<name>\\\" not "
	             "found]\"} 1\n");
	assert_lines(metrics, A "scaling_",
	             A "scaling_events_total{kind=\"actual\"} 1\n" A "scaling_events_total{kind=\"hypothetical\"} 1\n" A
	               "scaling_full_denials_total{direction=\"dec\"} 1\n" A
	               "scaling_partial_approvals_total{direction=\"inc\"} 1\n");
	/* Only ever incremented, and a gauge all the same. */
	assert_lines(metrics, "# TYPE " A "scaling_events_total", "# TYPE " A "scaling_events_total gauge\n");
	agent_metrics_destroy(metrics);
}

static void dropped_events_are_counted_by_subsystem_and_client(void **state)
{
	struct agent_metrics *metrics = create();

	(void)state;
	agent_metrics_count_dropped_events(metrics, AGENT_SENDER_BILLING, "http", 0);
	agent_metrics_count_dropped_events(metrics, AGENT_SENDER_SCALING_EVENTS, "s3", 2);
	agent_metrics_count_dropped_events(metrics, AGENT_SENDER_SCALING_EVENTS, "s3", 3);
	assert_lines(metrics, "ballast_events_dropped_total",
	             "ballast_events_dropped_total{client=\"http\",subsystem=\"billing\"} 0\n"
	             "ballast_events_dropped_total{client=\"s3\",subsystem=\"scalingevents\"} 5\n");
	agent_metrics_destroy(metrics);
}

static void too_many_different_patch_results_become_one(void **state)
{
	struct agent_metrics *metrics = create();
	char text[PAGE_BYTES];
	char result[32];

	(void)state;
	for (int i = 0; i < AGENT_NEONVM_RESULTS + 10; i++) {
		snprintf(result, sizeof result, "[error: %d]", i);
		agent_metrics_count_neonvm_request(metrics, result);
	}
	agent_metrics_count_neonvm_request(metrics, "[error: 0]");
	print(metrics, A "neonvm_outbound", text);
	assert_non_null(strstr(text, "{result=\"[error: 0]\"} 2\n"));
	assert_non_null(strstr(text, "{result=\"[error: 63]\"} 1\n"));
	assert_null(strstr(text, "[error: 64]"));
	assert_non_null(strstr(text, "{result=\"[error: other]\"} 10\n"));
	agent_metrics_destroy(metrics);
}

static void runners_move_between_states(void **state)
{
	struct agent_metrics *metrics = create();
	const struct agent_runner_label ok = { false, AGENT_RUNNER_OK };
	const struct agent_runner_label stuck = { true, AGENT_RUNNER_STUCK };
	const struct agent_runner_label panicked = { true, AGENT_RUNNER_PANICKED };

	(void)state;
	agent_metrics_move_runner(metrics, NULL, &ok);
	agent_metrics_move_runner(metrics, NULL, &ok);
	agent_metrics_move_runner(metrics, &ok, &stuck);
	agent_metrics_move_runner(metrics, NULL, &panicked);
	agent_metrics_move_runner(metrics, &panicked, NULL);
	agent_metrics_count_runner_start(metrics);
	agent_metrics_count_runner_restart(metrics);
	agent_metrics_count_runner_panic(metrics);
	agent_metrics_count_next_actions(metrics);
	assert_lines(metrics, A "runner",
	             A "runner_next_actions_total 1\n" A "runner_restarts 1\n" A "runner_starts 1\n" A
	               "runner_thread_panics_total 1\n" A "runners_current{is_endpoint=\"false\",state=\"ok\"} 1\n" A
	               "runners_current{is_endpoint=\"false\",state=\"panicked\"} 0\n" A
	               "runners_current{is_endpoint=\"false\",state=\"stuck\"} 0\n" A
	               "runners_current{is_endpoint=\"true\",state=\"ok\"} 0\n" A
	               "runners_current{is_endpoint=\"true\",state=\"panicked\"} 0\n" A
	               "runners_current{is_endpoint=\"true\",state=\"stuck\"} 1\n");
	agent_metrics_destroy(metrics);
}

static void latencies_fall_into_the_buckets(void **state)
{
	static const char *const bounds[] = {
		"0.005", "0.01", "0.025", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4",
		"0.45",  "0.5",  "0.6",   "0.7",  "0.8", "0.9",  "1",   "1.25", "1.5", "1.75", "2",
		"2.5",   "3",    "3.5",   "4",    "4.5", "5",    "6",   "7",    "8",   "9",    "10",
		"15",    "20",   "25",    "30",   "40",  "50",   "60",  "+Inf",
	};
	struct agent_metrics *metrics = create();
	char expected[PAGE_BYTES] = "";

	(void)state;
	agent_metrics_observe_latency(metrics, AGENT_LATENCY_PLUGIN, AGENT_DIRECTION_BOTH, 1500000000);
	agent_metrics_observe_latency(metrics, AGENT_LATENCY_PLUGIN, AGENT_DIRECTION_BOTH, -500000000);
	agent_metrics_observe_latency(metrics, AGENT_LATENCY_PLUGIN, AGENT_DIRECTION_BOTH, 61000000000);
	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
		snprintf(expected + strlen(expected), sizeof expected - strlen(expected),
		         A "plugin_latency_seconds_bucket{direction=\"both\",le=\"%s\"} %d\n", bounds[i],
		         i < 19   ? 1
		         : i < 40 ? 2
		                  : 3);
	strcat(expected, A "plugin_latency_seconds_sum{direction=\"both\"} 62\n" A
	                   "plugin_latency_seconds_count{direction=\"both\"} 3\n");
	assert_lines(metrics, A "plugin_latency", expected);
	agent_metrics_observe_latency(metrics, AGENT_LATENCY_SCALING, AGENT_DIRECTION_INC, 1);
	agent_metrics_observe_latency(metrics, AGENT_LATENCY_MONITOR, AGENT_DIRECTION_DEC, 1);
	agent_metrics_observe_latency(metrics, AGENT_LATENCY_NEONVM, AGENT_DIRECTION_NONE, 1);
	assert_lines(metrics, A "scaling_latency_seconds_count",
	             A "scaling_latency_seconds_count{direction=\"inc\"} 1\n");
	assert_lines(metrics, A "monitor_latency_seconds_count",
	             A "monitor_latency_seconds_count{direction=\"dec\"} 1\n");
	assert_lines(metrics, A "neonvm_latency_seconds_count",
	             A "neonvm_latency_seconds_count{direction=\"none\"} 1\n");
	agent_metrics_destroy(metrics);
}

static void watches_are_counted(void **state)
{
	struct agent_metrics *metrics = create();

	(void)state;
	agent_metrics_count_watch_call(metrics, AGENT_WATCHER_VIRTUAL_MACHINES, WATCH_STORE_LIST);
	agent_metrics_count_watch_call(metrics, AGENT_WATCHER_SCHEDULER_POD, WATCH_STORE_WATCH);
	for (enum watch_store_event i = WATCH_STORE_ADDED; i <= WATCH_STORE_ERROR; i++)
		agent_metrics_count_watch_event(metrics, AGENT_WATCHER_SCHEDULER_POD, i);
	for (enum watch_store_error i = WATCH_STORE_ERROR_LIST; i <= WATCH_STORE_ERROR_EVENT; i++)
		agent_metrics_count_watch_error(metrics, AGENT_WATCHER_VIRTUAL_MACHINES, i);
	agent_metrics_set_watch_alive(metrics, AGENT_WATCHER_VIRTUAL_MACHINES, true);
	agent_metrics_set_watch_failing(metrics, AGENT_WATCHER_SCHEDULER_POD, true);
	assert_lines(metrics, A "watchers",
	             A "watchers_alive_current{watcher_instance=\"VirtualMachines\"} 1\n" A
	               "watchers_client_calls_total{method=\"List\",watcher_instance=\"VirtualMachines\"} 1\n" A
	               "watchers_client_calls_total{method=\"Watch\",watcher_instance=\"Scheduler Pod\"} 1\n" A
	               "watchers_errors_total{source=\"List\",watcher_instance=\"VirtualMachines\"} 1\n" A
	               "watchers_errors_total{source=\"Watch\",watcher_instance=\"VirtualMachines\"} 1\n" A
	               "watchers_errors_total{source=\"Watch.Event\",watcher_instance=\"VirtualMachines\"} 1\n" A
	               "watchers_events_total{type=\"ADDED\",watcher_instance=\"Scheduler Pod\"} 1\n" A
	               "watchers_events_total{type=\"BOOKMARK\",watcher_instance=\"Scheduler Pod\"} 1\n" A
	               "watchers_events_total{type=\"DELETED\",watcher_instance=\"Scheduler Pod\"} 1\n" A
	               "watchers_events_total{type=\"ERROR\",watcher_instance=\"Scheduler Pod\"} 1\n" A
	               "watchers_events_total{type=\"MODIFIED\",watcher_instance=\"Scheduler Pod\"} 1\n" A
	               "watchers_failing_current{watcher_instance=\"Scheduler Pod\"} 1\n" A
	               "watchers_failing_current{watcher_instance=\"VirtualMachines\"} 0\n");
	agent_metrics_destroy(metrics);
}

static void billing_and_senders_have_their_own(void **state)
{
	struct agent_metrics *metrics = create();

	(void)state;
	agent_metrics_count_billed_vm(metrics, true, false, SLICE("Running"));
	agent_metrics_reset_billed_vms(metrics);
	agent_metrics_count_billed_vm(metrics, true, true, SLICE(""));
	agent_metrics_count_billed_vm(metrics, true, true, SLICE(""));
	agent_metrics_set_queue_size(metrics, AGENT_SENDER_BILLING, "http", 7);
	agent_metrics_set_last_send_duration(metrics, AGENT_SENDER_BILLING, "http", 1e-06);
	agent_metrics_count_send_error(metrics, AGENT_SENDER_BILLING, "http", "HTTP code 500");
	agent_metrics_set_queue_size(metrics, AGENT_SENDER_SCALING_EVENTS, "s3", 0);
	agent_metrics_set_last_send_duration(metrics, AGENT_SENDER_SCALING_EVENTS, "s3", 0.5);
	agent_metrics_count_send_error(metrics, AGENT_SENDER_SCALING_EVENTS, "s3", "S3 error");
	assert_lines(
		metrics, A "billing",
		A
		"billing_last_send_duration_seconds{client=\"http\"} 0.000001\n" A
		"billing_queue_size{client=\"http\"} 7\n" A
		"billing_send_errors_total{cause=\"HTTP code 500\",client=\"http\"} 1\n" A
		"billing_vms_current{autoscaling_enabled=\"true\",is_endpoint=\"true\",phase=\"\"} 2\n" A
		"billing_vms_processed_total{autoscaling_enabled=\"false\",is_endpoint=\"true\",phase=\"Running\"} 1\n" A
		"billing_vms_processed_total{autoscaling_enabled=\"true\",is_endpoint=\"true\",phase=\"\"} 2\n");
	assert_lines(metrics, A "scalingevents",
	             A "scalingevents_last_send_duration_seconds{client=\"s3\"} 0.5\n" A
	               "scalingevents_queue_size{client=\"s3\"} 0\n" A
	               "scalingevents_send_errors_total{cause=\"S3 error\",client=\"s3\"} 1\n");
	agent_metrics_destroy(metrics);
}

static double number_behind(const char *page, const char *name)
{
	const char *at = strstr(page, name);
	double number = -1;

	assert_non_null(at);
	assert_int_equal(sscanf(at + strlen(name), "%lf", &number), 1);
	return number;
}

static void the_process_shows_itself(void **state)
{
	struct agent_metrics *metrics = create();
	struct buffer page;
	struct error err;

	(void)state;
	buffer_init(&page, PAGE_BYTES);
	assert_true(agent_metrics_print(metrics, &page, &err));
	buffer_append_char(&page, '\0');
	assert_true(number_behind(page.data, "\nprocess_resident_memory_bytes ") > 100e3);
	assert_true(number_behind(page.data, "\nprocess_virtual_memory_bytes ") > 100e3);
	assert_true(number_behind(page.data, "\nprocess_cpu_seconds_total ") >= 0);
	assert_true(number_behind(page.data, "\nprocess_open_fds ") >= 3);
	assert_true(number_behind(page.data, "\nprocess_max_fds ") >= 3);
	assert_true(number_behind(page.data, "\nprocess_start_time_seconds ") > 1.5e9);
	buffer_destroy(&page);
	agent_metrics_destroy(metrics);
}

static void creation_fails_cleanly_when_memory_is_short(void **state)
{
	struct agent_metrics *metrics = NULL;
	unsigned long step = 0;
	bool complete = false;

	(void)state;
	/* Families are needed; a series that finds no memory is merely not there yet. */
	while (!complete) {
		struct error err = { 0 };

		memory_fail_at(++step);
		metrics = agent_metrics_create(&err);
		complete = metrics != NULL && memory_allocation_count() < step;
		memory_fail_at(0);
		if (metrics == NULL)
			assert_int_equal(err.code, ERROR_NO_MEMORY);
		agent_metrics_destroy(metrics);
		assert_true(step < 1000);
	}
	assert_true(step > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_late_2023_a_new_page_has_other_families),
		cmocka_unit_test(in_late_2023_what_has_no_family_is_counted_nowhere),
		cmocka_unit_test(in_late_2023_billing_has_one_client_that_is_not_named),
		cmocka_unit_test(a_new_page_has_what_starts_at_zero),
		cmocka_unit_test(dropped_lines_of_the_log_are_shown),
		cmocka_unit_test(changes_are_counted_by_resource_and_direction),
		cmocka_unit_test(requests_are_counted_by_their_outcome),
		cmocka_unit_test(dropped_events_are_counted_by_subsystem_and_client),
		cmocka_unit_test(too_many_different_patch_results_become_one),
		cmocka_unit_test(runners_move_between_states),
		cmocka_unit_test(latencies_fall_into_the_buckets),
		cmocka_unit_test(watches_are_counted),
		cmocka_unit_test(billing_and_senders_have_their_own),
		cmocka_unit_test(the_process_shows_itself),
		cmocka_unit_test(creation_fails_cleanly_when_memory_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
