/* Relists: what brings them about, what they change, how lists are read page by page. */
#include "watch_fixture.h"

#include "kube/watch_store.h"

/* Lets a watch live long enough for the next relist or reopening to be one out of good health. */
static void grow_healthy(struct watch_fixture *fixture)
{
	test_clock_skip((uint64_t)WATCH_STORE_HEALTHY_S * NS_PER_S);
	test_loop_spin(fixture->kube->loop, 1);
}

static void send_file(struct scripted_request *request, const char *path)
{
	size_t length;
	char *content = test_file_read(path, &length);

	scripted_chunk(request, slice_from(content, length));
	free(content);
}

/* ---- what relists change: vectors T24 … T26 ---- */

static void relist(struct watch_fixture *fixture, struct scripted_request *watch, const char *version,
                   const char *objects)
{
	send_file(watch, "data/kube/vm-watch-410-cache.ndjson");
	reply_list(next_list(fixture), version, objects);
}

static void t24_relist_vm_unchanged_updated(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");

	relist(fixture, watch, "20", "a@1");
	expect_calls(fixture, "update(a@1,a@1) ");
	next_watch(fixture, "20", NULL);
}

static void t25_relist_vm_missing_deleted_once(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1 b@2");

	relist(fixture, watch, "20", "b@2");
	expect_calls(fixture, "delete(a@1) update(b@2,b@2) ");
}

static void t26_added_twice_for_one_uid(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "");
	char messages[1024];

	send_event(watch, "ADDED a@11");
	send_event(watch, "ADDED a@12");
	expect_calls(fixture, "add(a@11) ");
	reply_list(next_list(fixture), "20", "a@12");
	expect_calls(fixture, "update(a@11,a@12) ");
	next_watch(fixture, "20", NULL);
	fixture_log_messages(fixture->kube, messages, sizeof messages);
	assert_string_equal(
		messages, "info All setup complete, entering event loop\nerror failed to handle event\ninfo Relisting\n"
			  "info Relist complete, restarting watcher\n");
	assert_int_equal(fixture_logged(fixture->kube, "\"UID\":\"a\""), 1);
	assert_int_equal(fixture_logged(fixture->kube, "\"name\":\"name-a\""), 1);
	assert_int_equal(fixture_logged(fixture->kube, "received add event for object we already have"), 1);
	/* It was an ADDED event, not an error of the watch. */
	assert_int_equal(fixture->events[WATCH_STORE_ADDED], 2);
	assert_int_equal(fixture->events[WATCH_STORE_ERROR], 0);
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_EVENT], 0);
}

static void events_for_unknown_objects_relist(void **state)
{
	static const struct {
		const char *event;
		const char *reason;
	} events[] = {
		{ "MODIFIED z@11", "received update event for object that's not present" },
		{ "DELETED z@11", "received delete event for object that's not present" },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct watch_fixture *fixture = watch_fixture_create();
		void *own_state = fixture;
		struct scripted_request *watch = start_with(fixture, "10", "a@1");

		send_event(watch, events[i].event);
		send_event(watch, "ADDED late@12"); /* in the same stream: no longer looked at */
		reply_list(next_list(fixture), "20", "a@1");
		expect_calls(fixture, "update(a@1,a@1) ");
		assert_int_equal(fixture_logged(fixture->kube, events[i].reason), 1);
		assert_true(watch->gone);
		watch_tear_down(&own_state);
	}
}

/* ---- what brings them about ---- */

static void an_expired_watch_is_a_warning(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	char messages[1024];

	relist(fixture, watch, "20", "a@1 b@2");
	next_watch(fixture, "20", NULL);
	expect_calls(fixture, "update(a@1,a@1) add(b@2) ");
	fixture_log_messages(fixture->kube, messages, sizeof messages);
	assert_string_equal(
		messages,
		"info Handling deferred adds\ninfo All setup complete, entering event loop\nwarn Received error event\n"
		"info Relisting\ninfo Relist complete, restarting watcher\n");
	assert_int_equal(fixture_logged(fixture->kube, "too old resource version: 1 (2"), 1);
	assert_int_equal(fixture->events[WATCH_STORE_ERROR], 1);
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_EVENT], 1);
	assert_int_equal(fixture->lists, 2);
	assert_int_equal(fixture->watches, 2);
}

/* The whole answer of a real server whose store was compacted: 200, one ERROR event, a clean end. */
static void a_recorded_expiry_is_understood(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	size_t length;
	char *recorded = test_file_read("data/kube/vm-watch-410-etcd.http", &length);

	grow_healthy(fixture);
	scripted_end(watch);
	scripted_raw(next_watch(fixture, "10", NULL), slice_from(recorded, length));
	free(recorded);
	reply_list(next_list(fixture), "20", "a@3");
	expect_calls(fixture, "update(a@1,a@3) ");
	next_watch(fixture, "20", NULL);
}

static void other_error_events_and_what_is_no_event_are_errors(void **state)
{
	static const char *const frames[] = {
		"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"message\":\"boom\",\"reason\":\"InternalError\",\"code\":500}}\n",
		"{\"type\":\"ERROR\",\"object\":\"not a status\"}\n",
		"{\"type\":\"ERROR\"}\n",
		"{\"type\":\"RENAMED\",\"object\":{\"metadata\":{\"uid\":\"a\",\"resourceVersion\":\"11\"}}}\n",
		"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"resourceVersion\":\"11\"}}}\n",
		"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"uid\":\"a\"}}}\n",
		"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"uid\":7,\"resourceVersion\":\"11\"}}}\n",
		"{\"type\":\"MODIFIED\"}\n",
		"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}\n",
		"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"uid\":\"a\",}}}\n",
		"<html>no JSON at all</html>\n",
		"]\n",
		"7\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
		struct watch_fixture *fixture = watch_fixture_create();
		void *own_state = fixture;
		struct scripted_request *watch = start_with(fixture, "10", "a@1");

		scripted_chunk_text(watch, frames[i]);
		reply_list(next_list(fixture), "20", "a@2");
		expect_calls(fixture, "update(a@1,a@2) ");
		assert_int_equal(fixture->events[WATCH_STORE_ERROR], 1);
		assert_int_equal(fixture->events[WATCH_STORE_MODIFIED], 0);
		assert_int_equal(fixture->events[WATCH_STORE_BOOKMARK], 0);
		assert_int_equal(fixture->errors[WATCH_STORE_ERROR_EVENT], 1);
		assert_int_equal(fixture_logged(fixture->kube, "{\"level\":\"error\""), 1);
		assert_int_equal(fixture_logged(fixture->kube, "Received error event"), 1);
		watch_tear_down(&own_state);
	}
}

static void an_event_over_4_mib_is_an_error(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	size_t size = WATCH_STORE_ELEMENT_BYTES;
	char *json = malloc(size);

	memset(json, 'x', size);
	scripted_chunk_text(watch, "{\"type\":\"");
	scripted_chunk(watch, slice_from(json, size));
	free(json);
	reply_list(next_list(fixture), "20", "a@2");
	expect_calls(fixture, "update(a@1,a@2) ");
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_EVENT], 1);
}

static void a_410_when_reopening_relists(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	char messages[1024];

	scripted_end(watch);
	watch = next_watch(fixture, "10", NULL);
	scripted_reply(
		watch, 410, "",
		"{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"too old\",\"reason\":\"Expired\",\"code\":410}");
	reply_list(next_list(fixture), "20", "a@1");
	expect_calls(fixture, "failing well update(a@1,a@1) ");
	next_watch(fixture, "20", NULL);
	fixture_log_messages(fixture->kube, messages, sizeof messages);
	assert_string_equal(messages,
	                    "info Handling deferred adds\ninfo All setup complete, entering event loop\n"
	                    "info Watcher ended gracefully, restarting\nerror Re-watch failed\ninfo Relisting\n"
	                    "info Relist complete, restarting watcher\n");
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_WATCH], 1);
}

static void grow_calm(struct watch_fixture *fixture)
{
	test_clock_skip((uint64_t)WATCH_STORE_CALM_S * NS_PER_S);
	test_loop_spin(fixture->kube->loop, 1);
}

/* Expires the watch; its relist must come without a wait. */
static void expect_at_once(struct watch_fixture *fixture, struct scripted_request *watch)
{
	uint64_t before_ns = loop_now_ns(fixture->kube->loop);
	struct scripted_request *list;

	send_file(watch, "data/kube/vm-watch-410-cache.ndjson");
	list = next_list(fixture);
	assert_true(list->at_ns - before_ns < (uint64_t)300 * NS_PER_MS);
	fixture->seen--; /* for open_after_list */
}

/* Answers the list that comes, and opens the watch that follows. */
static struct scripted_request *open_after_list(struct watch_fixture *fixture, const char *objects)
{
	struct scripted_request *watch;

	reply_list(next_list(fixture), "20", objects);
	watch = next_watch(fixture, "20", NULL);
	scripted_begin(watch, 200, "");
	spin(fixture);
	return watch;
}

static void relists_that_follow_each_other_are_spaced(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	uint64_t last_ns = 0;

	/* The first one is immediate. Then 0.5 to 1 s, and twice as long each time: the sixth waits 8 to 16 s. */
	for (unsigned i = 0; i < 6; i++) {
		struct scripted_request *list;
		uint64_t before_ns = loop_now_ns(fixture->kube->loop);
		uint64_t least_ns = i == 0 ? 0 : ((uint64_t)500 * NS_PER_MS) << (i - 1);

		send_file(watch, "data/kube/vm-watch-410-cache.ndjson");
		if (i > 0) {
			test_loop_spin(fixture->kube->loop, 10);
			test_clock_skip(least_ns - 300 * NS_PER_MS);
			expect_no_request(fixture);
			test_clock_skip(least_ns + 300 * NS_PER_MS);
		}
		list = next_list(fixture);
		if (i > 0)
			assert_true(list->at_ns - before_ns >= least_ns);
		assert_true(list->at_ns > last_ns);
		last_ns = list->at_ns;
		reply_list(list, "20", "a@1");
		watch = next_watch(fixture, "20", NULL);
		scripted_begin(watch, 200, "");
		spin(fixture);
	}
	/* A watch that has lived for ten seconds ends the growth. */
	grow_calm(fixture);
	expect_at_once(fixture, watch);
	watch = open_after_list(fixture, "a@1");
	expect_at_once(fixture, watch);
}

static void a_relist_waits_only_for_the_watch_that_led_to_it(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");

	/* Short watches that needed no relist, and failed attempts at lists and watches, don't count. */
	scripted_end(watch);
	watch = next_watch(fixture, "10", NULL);
	scripted_begin(watch, 200, "");
	scripted_end(watch);
	watch = next_watch(fixture, "10", NULL);
	scripted_reply(watch, 500, "", "");
	spin(fixture);
	test_clock_skip(NS_PER_S);
	watch = next_watch(fixture, "10", NULL);
	scripted_begin(watch, 200, "");
	spin(fixture);
	expect_at_once(fixture, watch);
	/* Nor do watches that lived for a second, however many. */
	for (int i = 0; i < 5; i++) {
		watch = open_after_list(fixture, "a@1");
		test_clock_skip((uint64_t)1100 * NS_PER_MS);
		spin(fixture);
		expect_at_once(fixture, watch);
	}
}

static void a_410_at_each_reopening_is_spaced_too(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");

	scripted_end(watch);
	scripted_reply(next_watch(fixture, "10", NULL), 410, "", "");
	for (unsigned i = 0; i < 7; i++) {
		/* 0.5 to 1 s, then twice as long each time, and half a minute at last. */
		uint64_t least_ms = i < 6 ? 500U << i : 30000;

		reply_list(next_list(fixture), "20", "a@1");
		scripted_reply(next_watch(fixture, "20", NULL), 410, "", "");
		spin(fixture);
		test_clock_skip((least_ms - 300) * NS_PER_MS);
		expect_no_request(fixture);
		test_clock_skip((least_ms + 300) * NS_PER_MS);
	}
	next_list(fixture);
}

/* An event that fits before each one that doesn't: the waits don't grow, but stay. */
static void events_in_short_watches_keep_the_waits_before_relists_short(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");

	send_event(watch, "MODIFIED a@11");
	spin(fixture);
	expect_at_once(fixture, watch);
	for (unsigned i = 0; i < 5; i++) {
		watch = open_after_list(fixture, "a@12");
		send_event(watch, "MODIFIED a@21");
		send_event(watch, "MODIFIED nobody@22");
		spin(fixture);
		test_clock_skip((uint64_t)200 * NS_PER_MS);
		expect_no_request(fixture);
		test_clock_skip((uint64_t)800 * NS_PER_MS);
	}
	/* What fits and lives for a second ends them. */
	watch = open_after_list(fixture, "a@12");
	scripted_chunk_text(watch, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"30\"}}}\n");
	spin(fixture);
	test_clock_skip((uint64_t)1100 * NS_PER_MS);
	expect_at_once(fixture, watch);
}

/* ---- how they go ---- */

static void nothing_changes_until_the_list_is_whole(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1 b@2");
	struct scripted_request *list;
	char json[4096];
	size_t length;

	send_file(watch, "data/kube/vm-watch-410-cache.ndjson");
	list = next_list(fixture);
	length = strlen(list_json("20", "c@3 a@4", json, sizeof json));
	scripted_begin(list, 200, "");
	scripted_chunk(list, slice_from(json, length - 40));
	expect_calls(fixture, "");
	assert_int_equal(watch_store_count(fixture->store), 2);
	scripted_chunk_text(list, json + length - 40);
	scripted_end(list);
	expect_calls(fixture, "delete(b@2) add(c@3) update(a@1,a@4) ");
}

static void a_list_that_breaks_off_changes_nothing(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *watch = start_with(fixture, "10", "a@1");
	struct scripted_request *list;
	char json[4096];

	send_file(watch, "data/kube/vm-watch-410-cache.ndjson");
	list = next_list(fixture);
	list_json("20", "c@3 d@4", json, sizeof json);
	scripted_begin(list, 200, "");
	scripted_chunk(list, slice_from(json, strlen(json) - 40));
	spin(fixture);
	scripted_close(list);
	expect_calls(fixture, "failing ");
	assert_true(watch_store_failing(fixture->store));
	assert_int_equal(fixture->objects, 1);
	test_clock_skip((uint64_t)2 * NS_PER_S);
	reply_list(next_list(fixture), "21", "a@1");
	expect_calls(fixture, "well update(a@1,a@1) ");
	assert_false(watch_store_failing(fixture->store));
	assert_int_equal(fixture->errors[WATCH_STORE_ERROR_LIST], 1);
	assert_int_equal(fixture_logged(fixture->kube, "Relist failed"), 1);
	assert_int_equal(fixture_logged(fixture->kube, "\"msg\":\"Relisting\""), 1);
}

static void lists_that_cannot_be_read_fail(void **state)
{
	static const char *const lists[] = {
		"",
		"{",
		"[]",
		"null",
		"{\"items\":[{\"metadata\":{\"uid\":\"a\"}},],\"metadata\":{\"resourceVersion\":\"1\"}}",
		"{\"items\":[{\"metadata\":{}}],\"metadata\":{\"resourceVersion\":\"1\"}}",
		"{\"items\":[],\"metadata\":{}}",
		"{\"items\":[]}",
		"{\"items\":7,\"metadata\":{\"resourceVersion\":\"1\"}}",
		"{\"items\":[{\"metadata\":{\"uid\":\"a\"}}],\"metadata\":{\"resourceVersion\":7}}",
		"<html></html>",
	};

	(void)state;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		struct watch_fixture *fixture = watch_fixture_create();
		void *own_state = fixture;

		start_watching(fixture);
		scripted_reply(next_list(fixture), 200, "", lists[i]);
		expect_calls(fixture, "start-failed ");
		assert_memory_equal(fixture->start_error.text, "initial list failed: ", 21);
		watch_tear_down(&own_state);
	}
}

static void items_may_be_null_or_missing(void **state)
{
	static const char *const lists[] = {
		"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":null}",
		"{\"metadata\":{\"resourceVersion\":\"10\"}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		struct watch_fixture *fixture = watch_fixture_create();
		void *own_state = fixture;

		start_watching(fixture);
		scripted_reply(next_list(fixture), 200, "", lists[i]);
		scripted_begin(next_watch(fixture, "10", NULL), 200, "");
		expect_calls(fixture, "started ");
		watch_tear_down(&own_state);
	}
}

/* ---- pages ---- */

static void recorded_pages_make_one_list(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *page;
	struct kube_list list;
	struct error err;
	struct arena arena;
	struct slice target;
	size_t length;
	char *first = test_file_read("data/kube/vm-list-limit1.json", &length);
	char *second = test_file_read("data/kube/vm-list-limit1-page2.json", &length);
	char *token;

	arena_init(&arena, 1 << 20);
	assert_true(kube_list_from_json(slice_of(first), &arena, &list, &err));
	assert_true(list.metadata.continue_token.length > 0);
	start_watching(fixture);
	scripted_reply(next_list(fixture), 200, "", first);
	page = next_request(fixture);
	/* The token comes back as it was given, whatever is in it. */
	target = page->target;
	assert_true(slice_starts_with(target, SLICE(VM_PATH "?continue=")));
	target = slice_from_offset(target, strlen(VM_PATH "?continue="));
	token = strndup(list.metadata.continue_token.data, list.metadata.continue_token.length);
	expect_slice(slice_take_until(&target, '&'), token);
	expect_slice(target, "limit=500");
	assert_int_equal(watch_store_count(fixture->store), 0);
	scripted_reply(page, 200, "", second);
	page = next_request(fixture);
	assert_true(slice_starts_with(page->target, SLICE(VM_PATH "?continue=")));
	assert_false(slice_equal(page->target, scripted_api_request(fixture->kube->api, 1)->target));
	reply_list(page, "381", "last@3");
	scripted_begin(next_watch(fixture, "381", NULL), 200, "");
	test_loop_until(fixture->kube->loop, &fixture->started);
	assert_int_equal(watch_store_count(fixture->store), 3);
	assert_int_equal(fixture->lists, 1);
	arena_destroy(&arena);
	free(token);
	free(first);
	free(second);
}

#define PAGE \
	"{\"items\":[{\"metadata\":{\"uid\":\"a\",\"resourceVersion\":\"1\"}}],\"metadata\":{\"continue\":\"abc\",\"resourceVersion\":\"10\"}}"

static void an_expired_continue_token_starts_the_list_again(void **state)
{
	struct watch_fixture *fixture = *state;
	struct scripted_request *page;
	size_t length;
	char *expired = test_file_read("data/kube/vm-list-410-continue.json", &length);

	start_watching(fixture);
	for (int i = 0; i < WATCH_STORE_LIST_RESTARTS; i++) {
		scripted_reply(next_list(fixture), 200, "", PAGE);
		page = next_request(fixture);
		expect_slice(page->target, VM_PATH "?continue=abc&limit=500");
		scripted_reply(page, 410, "", expired);
	}
	reply_list(next_list(fixture), "30", "b@2");
	scripted_begin(next_watch(fixture, "30", NULL), 200, "");
	expect_calls(fixture, "add(b@2) started ");
	free(expired);
}

static void a_continue_token_that_always_expires_fails_the_list(void **state)
{
	struct watch_fixture *fixture = *state;
	size_t length;
	char *expired = test_file_read("data/kube/vm-list-410-continue.json", &length);

	start_watching(fixture);
	for (int i = 0; i < WATCH_STORE_LIST_RESTARTS + 1; i++) {
		scripted_reply(next_list(fixture), 200, "", PAGE);
		scripted_reply(next_request(fixture), 410, "", expired);
	}
	expect_calls(fixture, "start-failed ");
	assert_int_equal(fixture->objects, 0);
	free(expired);
}

static void a_relist_may_be_destroyed_half_way(void **state)
{
	static const char *const calls[] = { "delete(a@1) ", "add(c@3) ", "update(b@2,b@4) " };

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		struct watch_fixture *fixture = watch_fixture_create();
		void *own_state = fixture;
		struct scripted_request *watch = start_with(fixture, "10", "a@1 b@2");

		fixture->destroy_at = calls[i];
		relist(fixture, watch, "20", "c@3 b@4 d@5");
		test_loop_until(fixture->kube->loop, &fixture->destroyed);
		assert_int_equal(fixture->objects, 0);
		expect_no_request(fixture);
		watch_tear_down(&own_state);
	}
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, watch_set_up, watch_tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(t24_relist_vm_unchanged_updated),
		WITH_FIXTURE(t25_relist_vm_missing_deleted_once),
		WITH_FIXTURE(t26_added_twice_for_one_uid),
		cmocka_unit_test(events_for_unknown_objects_relist),
		WITH_FIXTURE(an_expired_watch_is_a_warning),
		WITH_FIXTURE(a_recorded_expiry_is_understood),
		cmocka_unit_test(other_error_events_and_what_is_no_event_are_errors),
		WITH_FIXTURE(an_event_over_4_mib_is_an_error),
		WITH_FIXTURE(a_410_when_reopening_relists),
		WITH_FIXTURE(relists_that_follow_each_other_are_spaced),
		WITH_FIXTURE(a_relist_waits_only_for_the_watch_that_led_to_it),
		WITH_FIXTURE(a_410_at_each_reopening_is_spaced_too),
		WITH_FIXTURE(events_in_short_watches_keep_the_waits_before_relists_short),
		WITH_FIXTURE(nothing_changes_until_the_list_is_whole),
		WITH_FIXTURE(a_list_that_breaks_off_changes_nothing),
		cmocka_unit_test(lists_that_cannot_be_read_fail),
		cmocka_unit_test(items_may_be_null_or_missing),
		WITH_FIXTURE(recorded_pages_make_one_list),
		WITH_FIXTURE(an_expired_continue_token_starts_the_list_again),
		WITH_FIXTURE(a_continue_token_that_always_expires_fails_the_list),
		cmocka_unit_test(a_relist_may_be_destroyed_half_way),
	};

	return cmocka_run_group_tests_name("watch_relist", tests, NULL, NULL);
}
