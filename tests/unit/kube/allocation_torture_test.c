/*
 * A watch store that lists and watches while the n-th allocation fails, for every n: it ends up with the right objects
 * by itself, or says that it couldn't start.
 */
#include "watch_fixture.h"

#include "tests/support/failing_calls.h"

enum { TRIES = 40 };

static unsigned refused_starts;

/* Answers whatever is asked: lists with both objects, watches with an event that brings a third. */
static void answer(struct watch_fixture *fixture, struct scripted_request *request)
{
	if (is_watch(request)) {
		scripted_begin(request, 200, "");
		send_event(request, "ADDED c@12");
	} else {
		reply_list(request, "10", "a@1 b@2");
	}
	(void)fixture;
}

static bool has_all(const struct watch_fixture *fixture)
{
	return fixture->store != NULL && watch_store_count(fixture->store) == 3;
}

static bool list_and_watch(void *context)
{
	struct watch_fixture *fixture = watch_fixture_create();
	struct error err;
	bool ok;

	(void)context;
	torture_arm();
	fixture->store = watch_store_start(fixture->kube->loop, fixture->kube->client, &fixture->type,
	                                   &fixture->options, &WATCHED_HANDLER, fixture, &err);
	if (fixture->store == NULL)
		assert_int_equal(err.code, ERROR_NO_MEMORY);
	for (int i = 0; fixture->store != NULL && i < TRIES && !has_all(fixture) && !fixture->start_failed; i++) {
		test_loop_spin(fixture->kube->loop, 2);
		while (fixture->seen < scripted_api_request_count(fixture->kube->api))
			answer(fixture, scripted_api_request(fixture->kube->api, fixture->seen++));
		if (i > 3)
			test_clock_skip((uint64_t)2 * NS_PER_S); /* a wait before another try */
	}
	torture_disarm();
	if (fixture->start_failed) {
		assert_string_not_equal(fixture->start_error.text, "");
		refused_starts++;
	}
	ok = has_all(fixture);
	/* Once started, no failure is for good. */
	assert_true(ok || fixture->store == NULL || fixture->start_failed || !fixture->started);
	watch_store_destroy(fixture->store);
	assert_int_equal(fixture->objects, 0);
	fixture_destroy(fixture->kube);
	arena_destroy(&fixture->arena);
	free(fixture);
	return ok;
}

static void a_store_survives_every_failing_allocation(void **state)
{
	(void)state;
	unsigned long count = torture_allocations(list_and_watch, NULL);

	print_message("%lu failing allocations, %u refused starts\n", count, refused_starts);
	assert_true(count >= 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_store_survives_every_failing_allocation) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
