/* Watches that end, can't be opened, or fall silent; an API server that is away. */
#include "watch_fixture.h"

#include "kube/watch_store.h"

static void expect_restart_at_once(struct watch_fixture *fixture, struct scripted_request *ended)
{
	struct scripted_request *next = next_watch(fixture, "11", NULL);

	assert_int_equal(fixture->lists, 1);
	assert_true(next->at_ns - ended->at_ns < NS_PER_S);
	assert_int_equal(fixture_logged(fixture->kube, "\"msg\":\"Watcher ended gracefully, restarting\""), 1);
	assert_int_equal(fixture_logged(fixture->kube, "\"level\":\"error\""), 0);
	expect_calls(fixture, "update(a@1,a@11) ");
}

static struct scripted_request *start_at_11(struct watch_fixture *fixture)
{
	struct scripted_request *watch = start_with(fixture, "10", "a@1");

	send_event(watch, "MODIFIED a@11");
	spin(fixture);
	return watch;
}

static void a_clean_end_reopens_at_once_from_the_last_version(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);

	scripted_end(watch);
	expect_restart_at_once(fixture, watch);
	assert_int_equal(scripted_api_connection_count(fixture->kube->api), 1);
}

static void a_connection_that_ends_within_an_event_does_too(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);

	scripted_chunk_text(
		watch, "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"uid\":\"a\",\"resourceVersion\":\"12\"}");
	spin(fixture);
	scripted_close(watch);
	expect_restart_at_once(fixture, watch);
}

static void a_reset_does_too(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);

	scripted_reset(watch);
	expect_restart_at_once(fixture, watch);
}

/* A peer that is gone without a word: nothing comes, not even the end that was asked for. */
static void silence_beyond_timeout_seconds_ends_a_watch(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch;
	unsigned seconds;

	start_watching(fixture);
	reply_list(next_list(fixture), "10", "a@1");
	watch = next_watch(fixture, "10", &seconds);
	scripted_begin(watch, 200, "");
	send_event(watch, "MODIFIED a@11");
	expect_calls(fixture, "add(a@1) started update(a@1,a@11) ");
	test_clock_skip((uint64_t)(seconds + 25) * NS_PER_S);
	expect_no_request(fixture);
	/* Any byte is a sign of life. */
	scripted_chunk_text(watch, "\n");
	spin(fixture);
	test_clock_skip((uint64_t)(seconds + 25) * NS_PER_S);
	expect_no_request(fixture);
	test_clock_skip((uint64_t)6 * NS_PER_S);
	next_watch(fixture, "11", NULL);
	spin(fixture);
	assert_true(watch->gone);
	assert_int_equal(fixture_logged(fixture->kube, "\"msg\":\"Watcher ended gracefully, restarting\""), 1);
	assert_int_equal(fixture->lists, 1);
}

static void a_server_that_ends_each_watch_at_once_meets_no_hot_loop(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	uint64_t begun_ns = loop_now_ns(fixture->kube->loop);
	unsigned reopened = 0;

	scripted_end(watch);
	/* A minute of it, in steps of a quarter of a second. */
	for (int i = 0; i < 240; i++) {
		test_loop_spin(fixture->kube->loop, 0);
		test_loop_spin(fixture->kube->loop, 0);
		while (scripted_api_request_count(fixture->kube->api) > fixture->seen) {
			watch = next_watch(fixture, "10", NULL);
			scripted_begin(watch, 200, "");
			scripted_end(watch);
			reopened++;
		}
		test_clock_skip(250 * NS_PER_MS);
	}
	assert_true(loop_now_ns(fixture->kube->loop) - begun_ns > (uint64_t)59 * NS_PER_S);
	assert_in_range(reopened, 8, 11); /* at once, then after 0.1 s, 0.2, 0.4 … 25.6 */
	assert_false(watch_store_failing(fixture->store));
	assert_int_equal(fixture->lists, 1);
}

/* Opens watch after watch, each with an event and a quick end, and returns how long it waits before the next. */
static uint64_t wait_after_short_watch(struct watch_fixture *fixture, struct scripted_request *watch, bool event)
{
	uint64_t before_ns = loop_now_ns(fixture->kube->loop);
	struct scripted_request *next;

	scripted_begin(watch, 200, "");
	if (event)
		send_event(watch, "MODIFIED a@10");
	scripted_end(watch);
	next = next_watch(fixture, "10", NULL);
	fixture->seen--;
	return next->at_ns - before_ns;
}

static void short_watches_that_bring_something_are_reopened_after_a_constant_small_wait(void **state)
{
	struct watch_fixture *fixture = *state;

	scripted_end(start_with(fixture, "10", "a@1"));
	for (int i = 0; i < 8; i++) {
		uint64_t wait_ns = wait_after_short_watch(fixture, next_watch(fixture, "10", NULL), true);

		assert_in_range(wait_ns, 100 * NS_PER_MS, 350 * NS_PER_MS);
	}
}

static void ten_seconds_of_a_watch_end_the_waits_after_short_ones(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch;

	scripted_end(start_with(fixture, "10", "a@1"));
	for (uint64_t least_ns = 100 * NS_PER_MS; least_ns < NS_PER_S; least_ns *= 2)
		assert_true(wait_after_short_watch(fixture, next_watch(fixture, "10", NULL), false) >= least_ns);
	watch = next_watch(fixture, "10", NULL);
	scripted_begin(watch, 200, "");
	spin(fixture);
	test_clock_skip((uint64_t)10 * NS_PER_S);
	spin(fixture);
	scripted_end(watch);
	assert_true(wait_after_short_watch(fixture, next_watch(fixture, "10", NULL), false) < 100 * NS_PER_MS);
}

static void a_watch_that_cannot_be_opened_is_tried_for_ever_from_the_same_version(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);
	static const uint64_t LEAST_MS[] = { 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000 };
	static const uint64_t MOST_MS[] = { 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000 };
	char messages[4096];

	test_clock_skip((uint64_t)3 * NS_PER_S);
	spin(fixture);
	scripted_end(watch);
	watch = next_watch(fixture, "11", NULL);
	for (size_t i = 0; i < sizeof LEAST_MS / sizeof *LEAST_MS; i++) {
		uint64_t before_ns;

		scripted_reply(watch, 500, "", "");
		spin(fixture);
		before_ns = loop_now_ns(fixture->kube->loop);
		test_clock_skip((LEAST_MS[i] - 300) * NS_PER_MS);
		expect_no_request(fixture);
		test_clock_skip((MOST_MS[i] - LEAST_MS[i] + 300) * NS_PER_MS);
		watch = next_watch(fixture, "11", NULL);
		assert_true(watch->at_ns - before_ns <= (MOST_MS[i] + 500) * NS_PER_MS);
	}
	assert_true(watch_store_failing(fixture->store));
	scripted_begin(watch, 200, "");
	send_event(watch, "MODIFIED a@12");
	expect_calls(fixture, "update(a@1,a@11) failing well update(a@11,a@12) ");
	assert_false(watch_store_failing(fixture->store));
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_WATCH], 8);
	assert_int_equal(fixture->lists, 1);
	fixture_log_messages(fixture->kube, messages, sizeof messages);
	assert_string_equal(
		messages, "info Handling deferred adds\ninfo All setup complete, entering event loop\n"
			  "info Watcher ended gracefully, restarting\nerror Re-watch failed\nerror Re-watch failed\n"
			  "error Re-watch failed\nerror Re-watch failed\nerror Re-watch failed\nerror Re-watch failed\n"
			  "error Re-watch failed\nerror Re-watch failed\n");
}

static void two_minutes_of_health_end_the_growth_of_waits(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);

	test_clock_skip((uint64_t)3 * NS_PER_S);
	spin(fixture);
	scripted_end(watch);
	for (int i = 0; i < 5; i++) {
		scripted_reply(next_watch(fixture, "11", NULL), 500, "", "");
		spin(fixture);
		test_clock_skip((uint64_t)30 * NS_PER_S);
	}
	watch = next_watch(fixture, "11", NULL);
	scripted_begin(watch, 200, "");
	spin(fixture);
	test_clock_skip((uint64_t)121 * NS_PER_S);
	spin(fixture);
	scripted_end(watch);
	scripted_reply(next_watch(fixture, "11", NULL), 500, "", "");
	spin(fixture);
	test_clock_skip((uint64_t)1 * NS_PER_S);
	next_watch(fixture, "11", NULL);
}

static void the_scheduler_s_first_wait_is_4_s(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch;

	fixture->options.retry_unit_ns = NS_PER_S;
	fixture->options.retry_low = 4;
	fixture->options.retry_high = 5;
	watch = start_at_11(fixture);
	test_clock_skip((uint64_t)3 * NS_PER_S);
	spin(fixture);
	scripted_end(watch);
	scripted_reply(next_watch(fixture, "11", NULL), 500, "", "");
	spin(fixture);
	test_clock_skip((uint64_t)3700 * NS_PER_MS);
	expect_no_request(fixture);
	test_clock_skip((uint64_t)300 * NS_PER_MS);
	next_watch(fixture, "11", NULL);
}

static void an_api_server_that_was_away_is_found_again(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);

	test_clock_skip((uint64_t)300 * NS_PER_S);
	spin(fixture);
	scripted_api_stop_listening(fixture->kube->api);
	scripted_reset(watch);
	for (int i = 0; i < 20; i++) {
		test_loop_spin(fixture->kube->loop, 10);
		test_clock_skip((uint64_t)5 * NS_PER_S);
	}
	assert_true(watch_store_failing(fixture->store));
	assert_true(fixture->errors[WATCH_STORE_ERROR_WATCH] >= 6);
	assert_int_equal(fixture_logged(fixture->kube, "connection refused"), fixture->errors[WATCH_STORE_ERROR_WATCH]);
	scripted_api_listen_again(fixture->kube->api);
	test_clock_skip((uint64_t)30 * NS_PER_S);
	scripted_begin(next_watch(fixture, "11", NULL), 200, "");
	expect_calls(fixture, "update(a@1,a@11) failing well ");
	assert_int_equal(fixture->lists, 1);
}

/* As long as nobody is there, the next attempt isn't far: what is billed meanwhile is lost. */
static void a_refused_connection_is_tried_again_within_5_s_at_most(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);
	unsigned errors;

	test_clock_skip((uint64_t)3 * NS_PER_S);
	spin(fixture);
	scripted_api_stop_listening(fixture->kube->api);
	scripted_reset(watch);
	for (int i = 0; i < 40; i++) {
		test_loop_spin(fixture->kube->loop, 10);
		test_clock_skip((uint64_t)1 * NS_PER_S);
	}
	errors = fixture->errors[WATCH_STORE_ERROR_WATCH];
	assert_in_range(errors, 9, 14); /* after 0.5 s, 1, 2, 4, 5, 5, 5 … */
	/* Nor does it make the waits after other failures begin at their longest. */
	scripted_api_listen_again(fixture->kube->api);
	test_clock_skip((uint64_t)5 * NS_PER_S);
	scripted_reply(next_watch(fixture, "11", NULL), 503, "", "");
	spin(fixture);
	test_clock_skip((uint64_t)10 * NS_PER_S);
	scripted_begin(next_watch(fixture, "11", NULL), 200, "");
	expect_calls(fixture, "update(a@1,a@11) failing well ");
}

/* As a real one does after a restart: the version is one that it has never seen. */
static void an_api_server_that_comes_back_without_its_history_is_listed_at_once(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);

	test_clock_skip((uint64_t)3 * NS_PER_S);
	spin(fixture);
	scripted_end(watch);
	for (int i = 0; i < 4; i++) {
		scripted_reply(next_watch(fixture, "11", NULL), 500, "", "");
		spin(fixture);
		test_clock_skip((uint64_t)30 * NS_PER_S);
	}
	watch = next_watch(fixture, "11", NULL);
	scripted_begin(watch, 200, "");
	scripted_chunk_text(
		watch, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"reason\":\"Expired\",\"code\":410}}\n");
	reply_list(next_list(fixture), "20", "a@20");
	expect_calls(fixture, "update(a@1,a@11) failing well update(a@11,a@20) ");
}

static void a_server_that_is_too_busy_is_given_the_time_it_asks_for(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);

	test_clock_skip((uint64_t)3 * NS_PER_S);
	spin(fixture);
	scripted_end(watch);
	/* The client's own ten retries, and then the store's. */
	for (int i = 0; i < 12; i++) {
		scripted_reply(next_watch(fixture, "11", NULL), 429, "Retry-After: 17\r\n", "");
		spin(fixture);
		test_clock_skip((uint64_t)16700 * NS_PER_MS);
		expect_no_request(fixture);
		assert_int_equal(watch_store_failing(fixture->store), i >= 10);
		test_clock_skip((uint64_t)300 * NS_PER_MS);
	}
	scripted_begin(next_watch(fixture, "11", NULL), 200, "");
	expect_calls(fixture, "update(a@1,a@11) failing well ");
}

static void a_relist_that_fails_is_repeated_with_growing_waits(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);
	static const uint64_t LEAST_MS[] = { 500, 1000, 2000 };

	scripted_chunk_text(
		watch, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"reason\":\"Expired\",\"code\":410}}\n");
	for (size_t i = 0; i < 3; i++) {
		scripted_reply(next_list(fixture), 500, "", "");
		spin(fixture);
		assert_true(watch_store_failing(fixture->store));
		test_clock_skip((LEAST_MS[i] - 300) * NS_PER_MS);
		expect_no_request(fixture);
		test_clock_skip((LEAST_MS[i] + 300) * NS_PER_MS);
	}
	reply_list(next_list(fixture), "20", "a@20");
	expect_calls(fixture, "update(a@1,a@11) failing well update(a@11,a@20) ");
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_LIST], 3);
	assert_int_equal(fixture_logged(fixture->kube, "\"msg\":\"Relist failed\""), 3);
	assert_int_equal(fixture_logged(fixture->kube, "\"msg\":\"Relist complete, restarting watcher\""), 1);
}

/* The list's head stays away, then its body stops half-way. */
static void a_list_that_falls_silent_fails(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);
	struct scripted_request *list;

	scripted_chunk_text(
		watch, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"reason\":\"Expired\",\"code\":410}}\n");
	next_list(fixture);
	test_clock_skip((uint64_t)WATCH_STORE_ANSWER_TIMEOUT_S * NS_PER_S);
	spin(fixture);
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_LIST], 1);
	test_clock_skip((uint64_t)2 * NS_PER_S);
	list = next_list(fixture);
	scripted_begin(list, 200, "");
	scripted_chunk_text(list, "{\"items\":[");
	spin(fixture);
	test_clock_skip((uint64_t)WATCH_STORE_LIST_IDLE_S * NS_PER_S);
	spin(fixture);
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_LIST], 2);
	test_clock_skip((uint64_t)4 * NS_PER_S);
	reply_list(next_list(fixture), "20", "a@20");
	expect_calls(fixture, "update(a@1,a@11) failing well update(a@11,a@20) ");
}

/* A 401 within a long life: the client reads the token again, the store notices nothing. */
static void a_rotated_token_does_not_disturb_the_store(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_at_11(fixture);

	fixture_write(fixture->kube, "token", SLICE("second-token"));
	scripted_end(watch);
	watch = next_watch(fixture, "11", NULL);
	expect_slice(scripted_field(watch, "Authorization"), "Bearer first-token");
	scripted_reply(watch, 401, "", "");
	watch = next_watch(fixture, "11", NULL);
	expect_slice(scripted_field(watch, "Authorization"), "Bearer second-token");
	scripted_begin(watch, 200, "");
	expect_calls(fixture, "update(a@1,a@11) ");
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_WATCH], 0);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, watch_set_up, watch_tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(a_clean_end_reopens_at_once_from_the_last_version),
		WITH_FIXTURE(a_connection_that_ends_within_an_event_does_too),
		WITH_FIXTURE(a_reset_does_too),
		WITH_FIXTURE(silence_beyond_timeout_seconds_ends_a_watch),
		WITH_FIXTURE(a_server_that_ends_each_watch_at_once_meets_no_hot_loop),
		WITH_FIXTURE(short_watches_that_bring_something_are_reopened_after_a_constant_small_wait),
		WITH_FIXTURE(ten_seconds_of_a_watch_end_the_waits_after_short_ones),
		WITH_FIXTURE(a_watch_that_cannot_be_opened_is_tried_for_ever_from_the_same_version),
		WITH_FIXTURE(two_minutes_of_health_end_the_growth_of_waits),
		WITH_FIXTURE(the_scheduler_s_first_wait_is_4_s),
		WITH_FIXTURE(an_api_server_that_was_away_is_found_again),
		WITH_FIXTURE(a_refused_connection_is_tried_again_within_5_s_at_most),
		WITH_FIXTURE(an_api_server_that_comes_back_without_its_history_is_listed_at_once),
		WITH_FIXTURE(a_server_that_is_too_busy_is_given_the_time_it_asks_for),
		WITH_FIXTURE(a_relist_that_fails_is_repeated_with_growing_waits),
		WITH_FIXTURE(a_list_that_falls_silent_fails),
		WITH_FIXTURE(a_rotated_token_does_not_disturb_the_store),
	};

	return cmocka_run_group_tests_name("watch_retry", tests, NULL, NULL);
}
