/* Starting, events and their framing. */
#include "watch_fixture.h"

#include "base/token_bucket.h"
#include "kube/watch_store.h"

/* ---- the start ---- */

static void deferred_adds_wait_for_the_watch(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch;
	char messages[1024];

	start_watching(fixture);
	assert_int_equal(fixture->lists, 0); /* nothing happens inside the call */
	reply_list(next_list(fixture), "10", "b@1 a@2");
	watch = next_watch(fixture, "10", NULL);
	expect_calls(fixture, "");
	assert_int_equal(watch_store_count(fixture->store), 0);
	scripted_begin(watch, 200, "");
	expect_calls(fixture, "add(b@1) add(a@2) started ");
	assert_int_equal(watch_store_count(fixture->store), 2);
	assert_int_equal(fixture->lists, 1);
	assert_int_equal(fixture->watches, 1);
	assert_false(watch_store_failing(fixture->store));
	fixture_log_messages(fixture->kube, messages, sizeof messages);
	assert_string_equal(messages, "info Handling deferred adds\ninfo All setup complete, entering event loop\n");
}

static void without_objects_nothing_is_said_of_adds(void **state)
{
	struct watch_fixture *fixture = *state;
	char messages[1024];

	start_with(fixture, "10", "");
	fixture_log_messages(fixture->kube, messages, sizeof messages);
	assert_string_equal(messages, "info All setup complete, entering event loop\n");
}

static void in_sync_mode_adds_come_before_the_watch(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch;
	char messages[1024];

	fixture->options.deliver_before_watch = true;
	start_watching(fixture);
	reply_list(next_list(fixture), "10", "a@1");
	watch = next_watch(fixture, "10", NULL);
	expect_calls(fixture, "add(a@1) ");
	scripted_begin(watch, 200, "");
	expect_calls(fixture, "started ");
	fixture_log_messages(fixture->kube, messages, sizeof messages);
	assert_string_equal(messages, "info All setup complete, entering event loop\n");
}

static void the_scheduler_s_requests_carry_the_selector(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *request;
	char target[256];
	unsigned seconds;

	fixture->type.path = "/api/v1/namespaces/kube-system/pods";
	fixture->type.label_selector = "name=autoscale-scheduler";
	fixture->options.page_size = 0;
	start_watching(fixture);
	request = next_request(fixture);
	expect_slice(request->target, "/api/v1/namespaces/kube-system/pods?labelSelector=name%3Dautoscale-scheduler");
	reply_list(request, "10", "");
	request = next_request(fixture);
	(void)snprintf(target, sizeof target, "%.*s", SLICE_ARGS(request->target));
	assert_int_equal(
		sscanf(target,
	               "/api/v1/namespaces/kube-system/pods?allowWatchBookmarks=true&labelSelector=name%%3Dautoscale-scheduler&"
	               "resourceVersion=10&timeoutSeconds=%u&watch=true",
	               &seconds),
		1);
	assert_non_null(strstr(target, "&watch=true"));
}

static void the_timeout_asked_for_is_random_within_5_to_10_minutes(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "");
	unsigned least = UINT32_MAX;
	unsigned most = 0;

	for (int i = 0; i < 30; i++) {
		unsigned seconds;

		spin(fixture);
		test_clock_skip((uint64_t)2 * NS_PER_S);
		test_loop_spin(fixture->kube->loop, 1);
		scripted_end(watch);
		watch = next_watch(fixture, "10", &seconds);
		scripted_begin(watch, 200, "");
		least = seconds < least ? seconds : least;
		most = seconds > most ? seconds : most;
	}
	assert_true(least >= 300);
	assert_true(most <= 600);
	assert_true(most - least > 60);
}

static void a_first_list_that_fails_ends_it_all(void **state)
{
	struct watch_fixture *fixture = *state;

	start_watching(fixture);
	scripted_reply(next_list(fixture), 403, "",
	               "{\"kind\":\"Status\",\"message\":\"virtualmachines.vm.neon.tech is forbidden\"}");
	expect_calls(fixture, "start-failed ");
	assert_string_equal(fixture->start_error.text,
	                    "initial list failed: virtualmachines.vm.neon.tech is forbidden");
	assert_string_equal(error_root(&fixture->start_error), "virtualmachines.vm.neon.tech is forbidden");
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_LIST], 1);
	test_clock_skip((uint64_t)60 * NS_PER_S);
	expect_no_request(fixture);
}

static void a_first_watch_that_fails_ends_it_all(void **state)
{
	struct watch_fixture *fixture = *state;

	start_watching(fixture);
	reply_list(next_list(fixture), "10", "a@1");
	scripted_reply(next_watch(fixture, "10", NULL), 410, "",
	               "{\"kind\":\"Status\",\"message\":\"too old\",\"code\":410}");
	expect_calls(fixture, "start-failed ");
	assert_string_equal(fixture->start_error.text, "initial watch failed: too old");
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_WATCH], 1);
	assert_int_equal(fixture->objects, 0);
	test_clock_skip((uint64_t)60 * NS_PER_S);
	expect_no_request(fixture);
}

static void only_the_first_page_of_a_list_takes_a_token(void **state)
{
	struct watch_fixture *fixture = *state;
	struct token_bucket bucket;
	struct error err;

	assert_true(token_bucket_init(&bucket, 1, 2, loop_now_ns(fixture->kube->loop), &err));
	fixture->options.limiter = &bucket;
	start_watching(fixture);
	scripted_reply(next_list(fixture), 200, "",
	               "{\"items\":[],\"metadata\":{\"continue\":\"abc\",\"resourceVersion\":\"10\"}}");
	for (int i = 0; i < 3; i++)
		scripted_reply(next_request(fixture), 200, "",
		               "{\"items\":[],\"metadata\":{\"continue\":\"abc\",\"resourceVersion\":\"10\"}}");
	reply_list(next_request(fixture), "10", "");
	scripted_begin(next_watch(fixture, "10", NULL), 200, "");
	expect_calls(fixture, "started ");
	assert_int_equal(token_bucket_wait(&bucket, loop_now_ns(fixture->kube->loop)), 0);
	(void)token_bucket_take(&bucket, loop_now_ns(fixture->kube->loop));
	assert_true(token_bucket_wait(&bucket, loop_now_ns(fixture->kube->loop)) > 0);
}

/* ---- events: the table of agent-runtime 4.3; contradictions are in watch_relist_test ---- */

static void events_come_through_and_move_the_version(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");

	send_event(watch, "ADDED b@11");
	send_event(watch, "MODIFIED a@12");
	send_event(watch, "DELETED b@13");
	expect_calls(fixture, "add(b@11) update(a@1,a@12) update(b@11,b@13) delete(b@13) ");
	assert_int_equal(fixture->events[WATCH_STORE_ADDED], 1);
	assert_int_equal(fixture->events[WATCH_STORE_MODIFIED], 1);
	assert_int_equal(fixture->events[WATCH_STORE_DELETED], 1);
	assert_int_equal(watch_store_count(fixture->store), 1);
	scripted_end(watch);
	next_watch(fixture, "13", NULL);
}

static void a_bookmark_moves_the_version_alone(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");

	scripted_chunk_text(
		watch,
		"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"396\","
		"\"creationTimestamp\":null},\"spec\":{\"containers\":null},\"status\":{}}}\n");
	expect_calls(fixture, "");
	assert_int_equal(fixture->events[WATCH_STORE_BOOKMARK], 1);
	scripted_end(watch);
	next_watch(fixture, "396", NULL);
	assert_int_equal(fixture->lists, 1);
}

static void versions_are_opaque(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "");

	scripted_chunk_text(watch,
	                    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"a/b&c=d\"}}}");
	spin(fixture);
	scripted_end(watch);
	next_watch(fixture, "a%2Fb%26c%3Dd", NULL);
}

/* ---- framing ---- */

static void an_event_may_be_cut_into_chunks_anywhere(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	char json[1024];
	size_t length = strlen(event_json("MODIFIED a@2", json, sizeof json));

	for (size_t cut = 1; cut < length; cut++) {
		scripted_chunk(watch, slice_from(json, cut));
		test_loop_spin(fixture->kube->loop, 0);
		scripted_chunk(watch, slice_from(json + cut, length - cut));
		test_loop_spin(fixture->kube->loop, 0);
	}
	spin(fixture);
	assert_int_equal(fixture->events[WATCH_STORE_MODIFIED], length - 1);
	assert_int_equal(fixture->events[WATCH_STORE_ERROR], 0);
}

static void an_event_may_come_byte_by_byte(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	char json[1024];

	event_json("MODIFIED a@2", json, sizeof json);
	for (const char *byte = json; *byte != '\0'; byte++) {
		scripted_chunk(watch, slice_from(byte, 1));
		test_loop_spin(fixture->kube->loop, 0);
	}
	expect_calls(fixture, "update(a@1,a@2) ");
}

static void several_events_may_share_a_chunk(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	char json[4096];
	size_t used;
	size_t third;

	event_json("MODIFIED a@2", json, sizeof json);
	used = strlen(json);
	json[used - 1] = ' '; /* a line feed isn't needed between them */
	event_json("ADDED b@3", json + used, sizeof json - used);
	used = strlen(json);
	event_json("DELETED a@4", json + used, sizeof json - used);
	third = strlen(json) - used;
	scripted_chunk(watch, slice_from(json, used + third / 2));
	expect_calls(fixture, "update(a@1,a@2) add(b@3) ");
	scripted_chunk_text(watch, json + used + third / 2);
	expect_calls(fixture, "update(a@2,a@4) delete(a@4) ");
}

static void an_event_may_be_megabytes(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	size_t size = (size_t)1500 * 1024;
	char *json = malloc(size + 1024);
	size_t used =
		(size_t)sprintf(json, "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"annotations\":{\"big\":\"");

	memset(json + used, 'x', size);
	(void)sprintf(json + used + size, "\"},\"resourceVersion\":\"2\",\"uid\":\"a\"}}}\n");
	scripted_chunk_text(watch, json);
	free(json);
	expect_calls(fixture, "update(a@1,a@2) ");
}

/* A real server's traffic, in pieces of all sizes. */
static void a_recorded_watch_is_understood_in_pieces(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch;
	size_t length;
	char *recorded = test_file_read("data/kube/vm-watch.http", &length);
	size_t at = 0;

	start_watching(fixture);
	reply_list(next_list(fixture), "380", "");
	watch = next_watch(fixture, "380", NULL);
	for (size_t piece = 1; at < length; piece = piece % 97 + 1) {
		size_t part = piece < length - at ? piece : length - at;

		scripted_raw(watch, slice_from(recorded + at, part));
		test_loop_spin(fixture->kube->loop, 0);
		at += part;
	}
	free(recorded);
	spin(fixture);
	assert_int_equal(fixture->events[WATCH_STORE_ERROR], 0);
	assert_true(fixture->events[WATCH_STORE_ADDED] > 0);
	assert_true(fixture->events[WATCH_STORE_MODIFIED] > 0);
	assert_true(fixture->events[WATCH_STORE_DELETED] > 0);
	assert_true(fixture->started);
	assert_int_equal(fixture->lists, 1);
	/* The recording ends cleanly, so the watch is opened again from where it ended. */
	next_request(fixture);
	assert_true(is_watch(scripted_api_request(fixture->kube->api, fixture->seen - 1)));
}

static void a_recorded_list_is_understood(void **state)
{
	struct watch_fixture *fixture = *state;
	size_t length;
	char *recorded = test_file_read("data/kube/vm-list.http", &length);

	start_watching(fixture);
	scripted_raw(next_list(fixture), slice_from(recorded, length));
	free(recorded);
	scripted_begin(next_request(fixture), 200, "");
	test_loop_until(fixture->kube->loop, &fixture->started);
	assert_int_equal(watch_store_count(fixture->store), 3);
}

/* ---- walking and ending ---- */

static void objects_are_walked_in_the_order_of_arrival(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "c@1 a@2");
	struct watched_object *object;
	size_t position = 0;
	char found[256] = "";

	send_event(watch, "ADDED b@11");
	send_event(watch, "MODIFIED c@12");
	spin(fixture);
	while ((object = watch_store_next(fixture->store, &position)) != NULL) {
		strcat(found, object->text);
		strcat(found, " ");
	}
	assert_string_equal(found, "c@12 a@2 b@11 ");
}

static void the_store_may_be_destroyed_inside_any_handler(void **state)
{
	static const char *const calls[] = { "add(a@1) ",     "started ",   "update(a@1,a@12) ",
		                             "delete(a@12) ", "add(c@13) ", "start-failed " };

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		struct watch_fixture *fixture = watch_fixture_create();
		struct scripted_request *watch;
		void *own_state = fixture;

		fixture->destroy_at = calls[i];
		start_watching(fixture);
		if (strcmp(calls[i], "start-failed ") == 0) {
			scripted_reply(next_list(fixture), 404, "", "");
		} else {
			reply_list(next_list(fixture), "10", "a@1 b@2");
			watch = next_watch(fixture, "10", NULL);
			scripted_begin(watch, 200, "");
			send_event(watch, "DELETED a@12");
			send_event(watch, "ADDED c@13");
			send_event(watch, "ADDED d@14");
		}
		test_loop_until(fixture->kube->loop, &fixture->destroyed);
		spin(fixture);
		assert_int_equal(fixture->objects, 0);
		assert_memory_equal(fixture->calls + strlen(fixture->calls) - strlen(calls[i]), calls[i],
		                    strlen(calls[i]));
		watch_tear_down(&own_state);
	}
}

static void the_store_may_be_destroyed_at_any_stage(void **state)
{
	(void)state;
	for (int stage = 0; stage < 5; stage++) {
		struct watch_fixture *fixture = watch_fixture_create();
		void *own_state = fixture;

		start_watching(fixture);
		if (stage >= 1)
			next_list(fixture);
		if (stage >= 2)
			reply_list(scripted_api_request(fixture->kube->api, 0), "10", "a@1 b@2");
		if (stage >= 3)
			next_watch(fixture, "10", NULL);
		if (stage >= 4) {
			scripted_begin(scripted_api_request(fixture->kube->api, 1), 200, "");
			test_loop_until(fixture->kube->loop, &fixture->started);
		}
		watch_tear_down(&own_state);
	}
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, watch_set_up, watch_tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(deferred_adds_wait_for_the_watch),
		WITH_FIXTURE(without_objects_nothing_is_said_of_adds),
		WITH_FIXTURE(in_sync_mode_adds_come_before_the_watch),
		WITH_FIXTURE(the_scheduler_s_requests_carry_the_selector),
		WITH_FIXTURE(the_timeout_asked_for_is_random_within_5_to_10_minutes),
		WITH_FIXTURE(a_first_list_that_fails_ends_it_all),
		WITH_FIXTURE(a_first_watch_that_fails_ends_it_all),
		WITH_FIXTURE(only_the_first_page_of_a_list_takes_a_token),
		WITH_FIXTURE(events_come_through_and_move_the_version),
		WITH_FIXTURE(a_bookmark_moves_the_version_alone),
		WITH_FIXTURE(versions_are_opaque),
		WITH_FIXTURE(an_event_may_be_cut_into_chunks_anywhere),
		WITH_FIXTURE(an_event_may_come_byte_by_byte),
		WITH_FIXTURE(several_events_may_share_a_chunk),
		WITH_FIXTURE(an_event_may_be_megabytes),
		WITH_FIXTURE(a_recorded_watch_is_understood_in_pieces),
		WITH_FIXTURE(a_recorded_list_is_understood),
		WITH_FIXTURE(objects_are_walked_in_the_order_of_arrival),
		cmocka_unit_test(the_store_may_be_destroyed_inside_any_handler),
		cmocka_unit_test(the_store_may_be_destroyed_at_any_stage),
	};

	return cmocka_run_group_tests_name("watch_store", tests, NULL, NULL);
}
