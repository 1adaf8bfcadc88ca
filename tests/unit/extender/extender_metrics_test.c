#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "extender/extender_metrics.h"
#include "extender/process_limits.h"

static struct extender_metrics *metrics;
static char page[1024 * 1024];

static int set_up(void **state)
{
	struct error err;

	(void)state;
	metrics = extender_metrics_create(&err);
	return metrics != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	extender_metrics_destroy(metrics);
	return 0;
}

static bool page_has(const char *text)
{
	struct buffer buffer;
	struct error err;

	buffer_init(&buffer, sizeof page - 1);
	assert_true(extender_metrics_print(metrics, &buffer, &err));
	memcpy(page, buffer.data, buffer.length);
	page[buffer.length] = '\0';
	buffer_destroy(&buffer);
	return strstr(page, text) != NULL;
}

static uint64_t seconds(uint64_t count)
{
	return count * NS_PER_S;
}

static void series_have_the_references_names(void **state)
{
	(void)state;
	extender_metrics_count_schedule(metrics, SLICE("web-0"), seconds(1));
	extender_metrics_count_schedule(metrics, SLICE("web-0"), seconds(2));
	extender_metrics_set_schedule_times(metrics, SLICE("web-0"), 120, 600.5);
	extender_metrics_observe_kube(metrics, EXTENDER_KUBE_UPDATE, 0.03);
	assert_true(page_has("# HELP schedule_counter schedule counter for pod\n# TYPE schedule_counter counter\n"
	                     "schedule_counter{pod_name=\"web-0\",source=\"CounterWithCustomLabels\"} 2\n"));
	assert_true(page_has("# HELP schedule_since_last_time schedule interval since last time\n"
	                     "# TYPE schedule_since_last_time gauge\n"
	                     "schedule_since_last_time{pod_name=\"web-0\",source=\"MetricsWithCustomLabels\"} 120\n"));
	assert_true(page_has("# HELP schedule_total_time total schedule time cose for pod\n"
	                     "# TYPE schedule_total_time gauge\n"
	                     "schedule_total_time{pod_name=\"web-0\",source=\"MetricsWithCustomLabels\"} 600.5\n"));
	assert_true(page_has("# HELP kubeclient_execution_duration_seconds duration of kubeclient method\n"
	                     "# TYPE kubeclient_execution_duration_seconds histogram\n"
	                     "kubeclient_execution_duration_seconds_bucket{method=\"UpdateCR\",le=\"0.005\"} 0\n"));
	assert_true(page_has("kubeclient_execution_duration_seconds_bucket{method=\"UpdateCR\",le=\"0.05\"} 1\n"));
	assert_true(page_has("\nprocess_open_fds "));
	assert_false(page_has("ReadCR"));
}

static void a_placed_pods_series_go_after_three_minutes(void **state)
{
	(void)state;
	extender_metrics_count_schedule(metrics, SLICE("web-0"), seconds(1));
	extender_metrics_note_placed(metrics, SLICE("web-0"), seconds(10));
	/* Another call changes nothing about it, nor does being placed again. */
	extender_metrics_count_schedule(metrics, SLICE("web-0"), seconds(100));
	extender_metrics_note_placed(metrics, SLICE("web-0"), seconds(100));
	extender_metrics_sweep(metrics, seconds(10 + EXTENDER_METRICS_PLACED_S) - 1);
	assert_true(page_has("web-0"));
	extender_metrics_sweep(metrics, seconds(10 + EXTENDER_METRICS_PLACED_S));
	assert_false(page_has("web-0"));
	/* What comes late doesn't bring them back. */
	extender_metrics_set_schedule_times(metrics, SLICE("web-0"), 1, 2);
	extender_metrics_note_placed(metrics, SLICE("web-0"), seconds(300));
	assert_false(page_has("web-0"));
	extender_metrics_count_schedule(metrics, SLICE("web-0"), seconds(301));
	assert_true(page_has("schedule_counter{pod_name=\"web-0\",source=\"CounterWithCustomLabels\"} 1\n"));
}

static void a_pod_that_is_not_seen_for_an_hour_is_forgotten(void **state)
{
	(void)state;
	extender_metrics_count_schedule(metrics, SLICE("a"), seconds(1));
	extender_metrics_count_schedule(metrics, SLICE("b"), seconds(1));
	extender_metrics_count_schedule(metrics, SLICE("b"), seconds(2000));
	extender_metrics_sweep(metrics, seconds(1 + EXTENDER_METRICS_UNSEEN_S));
	assert_false(page_has("pod_name=\"a\""));
	assert_true(page_has("pod_name=\"b\""));
}

static void the_number_of_pods_is_capped(void **state)
{
	char name[32];

	(void)state;
	for (unsigned i = 0; i <= EXTENDER_METRICS_PODS; i++) {
		(void)snprintf(name, sizeof name, "pod-%u", i);
		extender_metrics_count_schedule(metrics, slice_of(name), seconds(i == 0 ? 5 : 10 + i));
	}
	assert_false(page_has("pod_name=\"pod-0\""));
	assert_true(page_has("pod_name=\"pod-1\""));
	(void)snprintf(name, sizeof name, "\"pod-%d\"", EXTENDER_METRICS_PODS);
	assert_true(page_has(name));
}

static void a_failing_watch_shows(void **state)
{
	(void)state;
	extender_metrics_set_watch_failing(metrics, "nodes", true);
	assert_true(page_has("ballast_extender_watch_failing{resource=\"nodes\"} 1\n"));
	extender_metrics_set_watch_failing(metrics, "nodes", false);
	assert_true(page_has("ballast_extender_watch_failing{resource=\"nodes\"} 0\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(series_have_the_references_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_placed_pods_series_go_after_three_minutes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pod_that_is_not_seen_for_an_hour_is_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_number_of_pods_is_capped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_failing_watch_shows, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
