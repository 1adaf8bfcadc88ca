#include "tests/unit/kube/kube_fixture.h"

#include "agent/scheduler_tracking.h"
#include "kube/client.h"
#include "tests/support/agent_metrics_recorder.h"

#define PODS "/api/v1/namespaces/kube-system/pods?"

struct fixture {
	struct kube_fixture *kube;
	struct agent_metrics *metrics;
	struct scheduler_tracking *tracking;
	bool started;
	bool start_failed;
	struct error err;
	size_t seen;
	size_t log_seen;
	int changes;
};

static void on_started(void *context)
{
	struct fixture *fixture = context;

	fixture->started = true;
}

static void on_start_failed(void *context, const struct error *err)
{
	struct fixture *fixture = context;

	fixture->start_failed = true;
	fixture->err = *err;
}

static void on_changed(void *context)
{
	struct fixture *fixture = context;

	assert_true(fixture->started);
	fixture->changes++;
}

static int set_up_with(void **state, bool sticky)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	static const struct scheduler_tracking_handler handler = { .on_started = on_started,
		                                                   .on_start_failed = on_start_failed,
		                                                   .on_changed = on_changed };
	struct scheduler_tracking_options options;
	struct error err;

	fixture->kube = fixture_create();
	fixture->metrics = agent_metrics_recorder_create();
	options = (struct scheduler_tracking_options){
		.loop = fixture->kube->loop,
		.client = fixture->kube->client,
		.scheduler_name = "autoscale-scheduler",
		.sticky = sticky,
		.metrics = fixture->metrics,
		.log_sink = fixture->kube->sink,
	};
	fixture->tracking = scheduler_tracking_start(&options, &handler, fixture, &err);
	if (fixture->tracking == NULL)
		fail_msg("scheduler_tracking_start: %s", err.text);
	*state = fixture;
	return 0;
}

static int set_up(void **state)
{
	return set_up_with(state, false);
}

static int set_up_sticky(void **state)
{
	return set_up_with(state, true);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	scheduler_tracking_stop(fixture->tracking);
	agent_metrics_recorder_destroy(fixture->metrics);
	fixture_destroy(fixture->kube);
	free(fixture);
	return 0;
}

/* A pod as JSON; ready is "True", "False" or NULL for no such condition; ip may be NULL. */
static void append_pod(char *json, size_t size, const char *uid, const char *ip, const char *ready, const char *created)
{
	size_t used = strlen(json);

	used += (size_t)snprintf(
		json + used, size - used,
		"{\"metadata\":{\"name\":\"pod-%s\",\"namespace\":\"kube-system\",\"uid\":\"%s\",\"resourceVersion\":\"5\","
		"\"creationTimestamp\":\"2025-01-01T00:00:%sZ\",\"deletionTimestamp\":\"2025-01-01T01:00:00Z\"},\"status\":{",
		uid, uid, created);
	if (ip != NULL)
		used += (size_t)snprintf(json + used, size - used, "\"podIP\":\"%s\",", ip);
	used += (size_t)snprintf(
		json + used, size - used,
		"\"phase\":\"Failed\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"}");
	if (ready != NULL)
		used += (size_t)snprintf(
			json + used, size - used,
			",{\"type\":\"Ready\",\"status\":\"%s\"},{\"type\":\"Ready\",\"status\":\"%s\"}", ready,
			strcmp(ready, "True") == 0 ? "False" : "True");
	used += (size_t)snprintf(json + used, size - used, "]}}");
	assert_true(used < size);
}

static struct scripted_request *next_request(struct fixture *fixture)
{
	return scripted_api_wait(fixture->kube->api, ++fixture->seen);
}

/* Answers the list with the pods (JSON, joined by commas) and opens the watch. */
static struct scripted_request *start_with(struct fixture *fixture, const char *pods)
{
	char json[8192];
	struct scripted_request *watch;

	(void)snprintf(
		json, sizeof json,
		"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}",
		pods);
	scripted_reply(next_request(fixture), 200, "", json);
	watch = next_request(fixture);
	scripted_begin(watch, 200, "");
	test_loop_until(fixture->kube->loop, &fixture->started);
	return watch;
}

static void send_event(struct fixture *fixture, struct scripted_request *watch, const char *type, const char *uid,
                       const char *ip, const char *ready, const char *created)
{
	char json[2048];

	(void)snprintf(json, sizeof json, "{\"type\":\"%s\",\"object\":", type);
	append_pod(json, sizeof json, uid, ip, ready, created);
	strcat(json, "}\n");
	scripted_chunk_text(watch, json);
	test_loop_spin(fixture->kube->loop, 20);
}

static void expect_current(struct fixture *fixture, const char *ip, size_t count)
{
	const struct scheduler_peer *current = scheduler_tracking_current(fixture->tracking);

	if (ip == NULL)
		assert_null(current);
	else
		assert_string_equal(current->ip, ip);
	assert_int_equal(scheduler_tracking_count(fixture->tracking), count);
}

/* What the selection (not the watch) has logged since the last call: "level message" lines. */
static void expect_log(struct fixture *fixture, const char *messages)
{
	const char *log = fixture_log(fixture->kube) + fixture->log_seen;
	char found[4096] = "";

	fixture->log_seen += strlen(log);
	while (*log != '\0') {
		const char *end = strchr(log, '\n');
		char *line = strndup(log, (size_t)(end - log));

		if (strstr(line, "\"logger\":\"autoscaler-agent.watch-schedulers\"") != NULL) {
			char level[16];
			char message[128];

			assert_int_equal(sscanf(line, "{\"level\":\"%15[^\"]", level), 1);
			assert_int_equal(sscanf(strstr(line, "\"msg\":\""), "\"msg\":\"%127[^\"]", message), 1);
			assert_non_null(strstr(line, "\"count\":"));
			(void)snprintf(found + strlen(found), sizeof found - strlen(found), "%s %s\n", level, message);
		}
		free(line);
		log = end + 1;
	}
	assert_string_equal(found, messages);
}

static void the_pods_are_listed_and_watched_by_name_label(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");
	char target[256];

	expect_slice(scripted_api_request(fixture->kube->api, 0)->target,
	             PODS "labelSelector=name%3Dautoscale-scheduler&limit=500");
	(void)snprintf(target, sizeof target, "%.*s", SLICE_ARGS(watch->target));
	assert_non_null(strstr(
		target, PODS
		"allowWatchBookmarks=true&labelSelector=name%3Dautoscale-scheduler&resourceVersion=10&timeoutSeconds="));
	expect_current(fixture, NULL, 0);
	expect_log(fixture, "");
	assert_int_equal(fixture_logged(fixture->kube, "\"logger\":\"autoscaler-agent.watch-schedulers.watch\""), 1);
}

/* Sync mode: what was listed is known before the watch is open. */
static void the_newest_of_the_listed_ready_pods_is_current(void **state)
{
	struct fixture *fixture = *state;
	char pods[4096] = "";

	append_pod(pods, sizeof pods, "a", "10.0.0.1", "True", "10");
	strcat(pods, ",");
	append_pod(pods, sizeof pods, "b", "10.0.0.2", "True", "30");
	strcat(pods, ",");
	append_pod(pods, sizeof pods, "c", "10.0.0.3", "False", "50");
	strcat(pods, ",");
	append_pod(pods, sizeof pods, "d", NULL, "True", "55");
	strcat(pods, ",");
	append_pod(pods, sizeof pods, "e", "10.0.0.5", NULL, "56");
	strcat(pods, ",");
	append_pod(pods, sizeof pods, "f", "10.0.0.6", "True", "20");
	start_with(fixture, pods);
	expect_current(fixture, "10.0.0.2", 3);
	expect_log(fixture,
	           "info Scheduler pod now available (there was none before)\ninfo Scheduler pod selection changed\n"
	           "info Scheduler pod selection is unchanged\n");
}

static void pods_come_and_go(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");

	send_event(fixture, watch, "ADDED", "a", NULL, NULL, "10");
	expect_current(fixture, NULL, 0);
	expect_log(fixture, "");
	send_event(fixture, watch, "MODIFIED", "a", "10.0.0.1", "False", "10");
	expect_current(fixture, NULL, 0);
	send_event(fixture, watch, "MODIFIED", "a", "10.0.0.1", "True", "10");
	expect_current(fixture, "10.0.0.1", 1);
	expect_log(fixture, "info Scheduler pod now available (there was none before)\n");
	send_event(fixture, watch, "ADDED", "b", "10.0.0.2", "True", "20");
	expect_current(fixture, "10.0.0.2", 2);
	expect_log(fixture, "info Scheduler pod selection changed\n");
	send_event(fixture, watch, "ADDED", "c", "10.0.0.3", "True", "05");
	expect_current(fixture, "10.0.0.2", 3);
	expect_log(fixture, "info Scheduler pod selection is unchanged\n");
	send_event(fixture, watch, "MODIFIED", "b", "10.0.0.2", "False", "20");
	expect_current(fixture, "10.0.0.1", 2);
	expect_log(fixture, "info Scheduler pod selection changed\n");
	send_event(fixture, watch, "DELETED", "b", "10.0.0.2", "False", "20");
	expect_current(fixture, "10.0.0.1", 2);
	expect_log(fixture, "");
	send_event(fixture, watch, "DELETED", "c", "10.0.0.3", "True", "05");
	expect_log(fixture, "info Scheduler pod selection is unchanged\n");
	send_event(fixture, watch, "DELETED", "a", "10.0.0.1", "True", "10");
	expect_current(fixture, NULL, 0);
	expect_log(fixture, "warn No scheduler pod available anymore\n");
}

static void an_active_pod_s_new_address_is_not_noticed(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");

	send_event(fixture, watch, "ADDED", "a", "10.0.0.1", "True", "10");
	send_event(fixture, watch, "MODIFIED", "a", "10.0.0.9", "True", "10");
	expect_current(fixture, "10.0.0.1", 1);
	expect_log(fixture, "info Scheduler pod now available (there was none before)\n");
	/* Not even when another pod makes it choose anew, but after it was inactive. */
	send_event(fixture, watch, "ADDED", "b", "10.0.0.2", "True", "05");
	expect_current(fixture, "10.0.0.1", 2);
	send_event(fixture, watch, "MODIFIED", "a", "10.0.0.9", "False", "10");
	send_event(fixture, watch, "MODIFIED", "a", "10.0.0.9", "True", "10");
	expect_current(fixture, "10.0.0.9", 2);
}

/* A deletion may come with a last state in which the pod is no longer ready. */
static void a_pod_deleted_while_not_ready_is_removed_once(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");

	send_event(fixture, watch, "ADDED", "a", "10.0.0.1", "True", "10");
	send_event(fixture, watch, "DELETED", "a", "10.0.0.1", "False", "10");
	expect_current(fixture, NULL, 0);
	expect_log(
		fixture,
		"info Scheduler pod now available (there was none before)\nwarn No scheduler pod available anymore\n");
}

static void a_relist_keeps_what_is_still_there(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");
	char pods[1024] = "";
	char json[2048];

	send_event(fixture, watch, "ADDED", "a", "10.0.0.1", "True", "10");
	send_event(fixture, watch, "ADDED", "b", "10.0.0.2", "True", "20");
	scripted_chunk_text(
		watch, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"reason\":\"Expired\",\"code\":410}}\n");
	append_pod(pods, sizeof pods, "a", "10.0.0.1", "True", "10");
	(void)snprintf(json, sizeof json, "{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[%s]}", pods);
	scripted_reply(next_request(fixture), 200, "", json);
	next_request(fixture);
	test_loop_spin(fixture->kube->loop, 20);
	expect_current(fixture, "10.0.0.1", 1);
	expect_log(fixture,
	           "info Scheduler pod now available (there was none before)\ninfo Scheduler pod selection changed\n"
	           "info Scheduler pod selection changed\n");
}

static void a_recorded_watch_of_pods_is_understood(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");
	size_t length;
	char *recorded = test_file_read("data/kube/pod-watch.ndjson", &length);

	scripted_chunk(watch, slice_from(recorded, length));
	free(recorded);
	test_loop_spin(fixture->kube->loop, 50);
	expect_current(fixture, NULL, 0);
	expect_log(
		fixture,
		"info Scheduler pod now available (there was none before)\nwarn No scheduler pod available anymore\n");
}

static void the_watch_is_counted_as_scheduler_pod(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");

	send_event(fixture, watch, "ADDED", "a", "10.0.0.1", "True", "10");
	assert_true(agent_metrics_recorder_value(
			    fixture->metrics,
			    "watchers_client_calls_total{watcher_instance=\"Scheduler Pod\",method=\"List\"}") == 1);
	assert_true(agent_metrics_recorder_value(
			    fixture->metrics,
			    "watchers_client_calls_total{watcher_instance=\"Scheduler Pod\",method=\"Watch\"}") == 1);
	assert_true(agent_metrics_recorder_value(
			    fixture->metrics,
			    "watchers_events_total{watcher_instance=\"Scheduler Pod\",type=\"ADDED\"}") == 1);
	assert_true(agent_metrics_recorder_value(fixture->metrics,
	                                         "watchers_alive_current{watcher_instance=\"Scheduler Pod\"}") == 1);
}

static void a_list_that_fails_fails_the_start(void **state)
{
	struct fixture *fixture = *state;

	scripted_reply(next_request(fixture), 403, "", "{\"kind\":\"Status\",\"message\":\"pods is forbidden\"}");
	test_loop_until(fixture->kube->loop, &fixture->start_failed);
	assert_string_equal(fixture->err.text, "initial list failed: pods is forbidden");
	assert_false(fixture->started);
}

/* 4.7: rand(1 s, 4, 5) is always 4 s. */
static void a_watch_that_cannot_be_reopened_is_tried_again_after_4_s(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");

	test_clock_skip((uint64_t)5 * NS_PER_S);
	test_loop_spin(fixture->kube->loop, 5);
	scripted_end(watch);
	scripted_reply(next_request(fixture), 500, "", "");
	test_loop_spin(fixture->kube->loop, 20);
	test_clock_skip((uint64_t)3700 * NS_PER_MS);
	test_loop_spin(fixture->kube->loop, 20);
	assert_int_equal(scripted_api_request_count(fixture->kube->api), fixture->seen);
	test_clock_skip((uint64_t)300 * NS_PER_MS);
	next_request(fixture);
}

/* ---- keeping to one (generations 4.1) ---- */

static void pass(struct fixture *fixture, uint64_t ms)
{
	test_clock_skip(ms * NS_PER_MS);
	test_loop_spin(fixture->kube->loop, 20);
}

static void s10_the_next_is_taken_5_s_after_the_last_was(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");

	send_event(fixture, watch, "ADDED", "x", "10.0.0.1", "True", "10");
	expect_current(fixture, "10.0.0.1", 1);
	assert_int_equal(fixture->changes, 1);
	/* A newer one doesn't matter. */
	send_event(fixture, watch, "ADDED", "y", "10.0.0.2", "True", "20");
	expect_current(fixture, "10.0.0.1", 2);
	pass(fixture, 2000);
	send_event(fixture, watch, "MODIFIED", "x", "10.0.0.1", "False", "10");
	expect_current(fixture, NULL, 1);
	assert_int_equal(fixture->changes, 2);
	pass(fixture, 2500);
	expect_current(fixture, NULL, 1);
	pass(fixture, 600);
	expect_current(fixture, "10.0.0.2", 1);
	assert_int_equal(fixture->changes, 3);
	expect_log(fixture, "info Scheduler pod now available (there was none before)\n"
	                    "info Scheduler pod selection is unchanged\n"
	                    "warn No scheduler pod available anymore\n"
	                    "info Scheduler pod now available (there was none before)\n");
}

static void the_one_that_is_active_longest_is_next(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");

	send_event(fixture, watch, "ADDED", "x", "10.0.0.1", "True", "10");
	send_event(fixture, watch, "ADDED", "y", "10.0.0.2", "True", "20");
	send_event(fixture, watch, "ADDED", "z", "10.0.0.3", "True", "30");
	/* y begins anew, behind z. */
	send_event(fixture, watch, "MODIFIED", "y", "10.0.0.2", "False", "20");
	send_event(fixture, watch, "MODIFIED", "y", "10.0.0.2", "True", "20");
	assert_int_equal(fixture->changes, 1);
	pass(fixture, 6000);
	send_event(fixture, watch, "DELETED", "x", "10.0.0.1", "True", "10");
	expect_current(fixture, "10.0.0.3", 2);
	assert_int_equal(fixture->changes, 2);
}

static void one_that_comes_after_5_s_is_taken_at_once(void **state)
{
	struct fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "");

	send_event(fixture, watch, "ADDED", "x", "10.0.0.1", "True", "10");
	send_event(fixture, watch, "DELETED", "x", "10.0.0.1", "True", "10");
	pass(fixture, 6000);
	expect_current(fixture, NULL, 0);
	send_event(fixture, watch, "ADDED", "x2", "10.0.0.9", "True", "40");
	expect_current(fixture, "10.0.0.9", 1);
	assert_string_equal(scheduler_tracking_current(fixture->tracking)->uid, "x2");
	assert_string_equal(scheduler_tracking_current(fixture->tracking)->name, "pod-x2");
}

static void of_several_at_the_start_the_newest_is_kept(void **state)
{
	struct fixture *fixture = *state;
	char pods[4096] = "";

	append_pod(pods, sizeof pods, "a", "10.0.0.1", "True", "10");
	strcat(pods, ",");
	append_pod(pods, sizeof pods, "b", "10.0.0.2", "True", "30");
	strcat(pods, ",");
	append_pod(pods, sizeof pods, "c", "10.0.0.3", "True", "20");
	strcat(pods, ",");
	append_pod(pods, sizeof pods, "d", NULL, "True", "55");
	start_with(fixture, pods);
	expect_current(fixture, "10.0.0.2", 3);
	assert_int_equal(fixture->changes, 0);
	expect_log(fixture, "info Scheduler pod now available (there was none before)\n");
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(the_pods_are_listed_and_watched_by_name_label),
		WITH_FIXTURE(the_newest_of_the_listed_ready_pods_is_current),
		WITH_FIXTURE(pods_come_and_go),
		WITH_FIXTURE(an_active_pod_s_new_address_is_not_noticed),
		WITH_FIXTURE(a_pod_deleted_while_not_ready_is_removed_once),
		WITH_FIXTURE(a_relist_keeps_what_is_still_there),
		WITH_FIXTURE(a_recorded_watch_of_pods_is_understood),
		WITH_FIXTURE(the_watch_is_counted_as_scheduler_pod),
		WITH_FIXTURE(a_list_that_fails_fails_the_start),
		WITH_FIXTURE(a_watch_that_cannot_be_reopened_is_tried_again_after_4_s),
		cmocka_unit_test_setup_teardown(s10_the_next_is_taken_5_s_after_the_last_was, set_up_sticky, tear_down),
		cmocka_unit_test_setup_teardown(the_one_that_is_active_longest_is_next, set_up_sticky, tear_down),
		cmocka_unit_test_setup_teardown(one_that_comes_after_5_s_is_taken_at_once, set_up_sticky, tear_down),
		cmocka_unit_test_setup_teardown(of_several_at_the_start_the_newest_is_kept, set_up_sticky, tear_down),
	};

	return cmocka_run_group_tests_name("scheduler_tracking", tests, NULL, NULL);
}
