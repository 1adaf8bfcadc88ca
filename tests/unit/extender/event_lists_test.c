#include "api_scene.h"

#include "extender/event_lists.h"
#include "extender/process_limits.h"

#define JSON_FIELD "Content-Type: application/json\r\n"

struct scene {
	struct api_scene base;
	struct event_lists *lists;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof *scene);
	struct event_lists_options options;
	struct error err;

	api_scene_begin(&scene->base);
	options = (struct event_lists_options){
		.loop = scene->base.loop,
		.client = scene->base.fixture->client,
		.metrics = scene->base.metrics,
		.logger = fixture_logger(scene->base.fixture),
	};
	scene->lists = event_lists_create(&options, &err);
	assert_non_null(scene->lists);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	event_lists_destroy(scene->lists);
	api_scene_end(&scene->base);
	free(scene);
	return 0;
}

#define EVENT(reason, stamp) "{\"reason\":\"" reason "\",\"metadata\":{\"creationTimestamp\":\"" stamp "\"}}"

/* M4; now is 2026-01-01T01:00:00Z. */
static void times_follow_the_lists_order(void **state)
{
	static const int64_t NOW_NS = INT64_C(1767229200) * NS_PER_S;
	static const struct {
		const char *body;
		double since_last, first;
	} CASES[] = {
		{ "{}", 0, 0 },
		{ "{\"items\":[" EVENT("Scheduled", "2026-01-01T00:00:00Z") "]}", 0, 0 },
		{ "{\"items\":[" EVENT("FailedScheduling", "2026-01-01T00:50:00Z") "]}", 600, 600 },
		{ "{\"items\":[" EVENT("FailedScheduling", "2026-01-01T00:43:20Z") "," EVENT("Killing", "2026-01-01T00:45:00Z") "," EVENT(
			  "FailedScheduling",
			  "2026-01-01T00:50:00Z") "," EVENT("Scheduled",
		                                            "2026-01-01T00:51:00Z") "," EVENT("FailedScheduling",
		                                                                              "2026-01-01T00:58:00Z") "]}",
		  120, 600 },
		{ "{\"items\":[" EVENT("FailedScheduling",
		                       "2026-01-01T00:50:00Z") "," EVENT("Killing", "2026-01-01T00:51:00Z") "]}",
		  0, 0 },
		{ "{\"items\":[{\"reason\":\"FailedScheduling\",\"metadata\":{}}]}", 0, 0 },
	};
	struct schedule_times times;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		if (!event_lists_read(slice_of(CASES[i].body), NOW_NS, &times, &err))
			fail_msg("%s: %s", CASES[i].body, err.text);
		assert_true(times.since_last_seconds >= CASES[i].since_last &&
		            times.since_last_seconds <= CASES[i].since_last);
		assert_true(times.first_seconds >= CASES[i].first && times.first_seconds <= CASES[i].first);
	}
	assert_false(event_lists_read(SLICE("{\"items\":[{\"reason\":5}]}"), NOW_NS, &times, &err));
}

static void a_pod_is_asked_for_by_name(void **state)
{
	struct scene *scene = *state;
	struct scripted_request *request;

	extender_metrics_count_schedule(scene->base.metrics, SLICE("web-0"), 1);
	event_lists_ask(scene->lists, SLICE("shop"), SLICE("web-0"), 2 * (uint64_t)NS_PER_S);
	request = scripted_api_wait(scene->base.api, 1);
	assert_true(slice_equal_text(request->target,
	                             "/api/v1/namespaces/shop/events?fieldSelector=involvedObject.name%3Dweb-0"));
	scripted_reply(request, 200, JSON_FIELD, "{\"items\":[]}");
	event_lists_ask(scene->lists, SLICE(""), SLICE("x"), 0);
	request = scripted_api_wait(scene->base.api, 2);
	assert_true(slice_equal_text(request->target, "/api/v1/events?fieldSelector=involvedObject.name%3Dx"));
	assert_int_equal(
		api_scene_count(&scene->base,
	                        "schedule_total_time{pod_name=\"web-0\",source=\"MetricsWithCustomLabels\"} 2\n"),
		1);
	assert_int_equal(
		api_scene_count(&scene->base,
	                        "schedule_since_last_time{pod_name=\"web-0\",source=\"MetricsWithCustomLabels\"} 0\n"),
		1);
}

static void one_list_at_a_time(void **state)
{
	struct scene *scene = *state;

	for (int i = 0; i < 3; i++)
		event_lists_ask(scene->lists, SLICE("shop"), SLICE("web-0"), 0);
	scripted_api_wait(scene->base.api, 1);
	test_loop_spin(scene->base.loop, 30);
	assert_int_equal(scripted_api_request_count(scene->base.api), 1);
	scripted_reply(scripted_api_request(scene->base.api, 0), 403, JSON_FIELD,
	               "{\"kind\":\"Status\",\"message\":\"no\"}");
	scripted_api_wait(scene->base.api, 2);
}

static void too_many_are_left_out(void **state)
{
	struct scene *scene = *state;

	for (int i = 0; i < EXTENDER_EVENT_LISTS + 20; i++)
		event_lists_ask(scene->lists, SLICE("shop"), SLICE("web-0"), 0);
	for (size_t i = 1; i <= 5; i++) /* as many as the limiter lets pass at once are enough to see it going */
		scripted_reply(scripted_api_wait(scene->base.api, i), 200, JSON_FIELD, "{}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_follow_the_lists_order),
		cmocka_unit_test_setup_teardown(a_pod_is_asked_for_by_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_list_at_a_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many_are_left_out, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
