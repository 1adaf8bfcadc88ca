#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/memory.h"
#include "sandbox/event_keys.h"

static enum event_sight see(struct event_keys *keys, const char *key, const char *content)
{
	enum event_sight sight;
	struct error err;

	if (!event_keys_see(keys, slice_of(key), slice_of(content), &sight, &err))
		fail_msg("%s", err.text);
	return sight;
}

static void an_event_is_new_once(void **state)
{
	struct event_keys keys;

	(void)state;
	event_keys_init(&keys);
	assert_int_equal(see(&keys, "2025-03-07T09:05:04Z-host-1/2", "a"), EVENT_NEW);
	assert_int_equal(see(&keys, "2025-03-07T09:05:04Z-host-1/2", "a"), EVENT_REPEATED);
	assert_int_equal(see(&keys, "2025-03-07T09:05:04Z-host-1/2", "b"), EVENT_CHANGED);
	assert_int_equal(see(&keys, "2025-03-07T09:05:04Z-host-2/2", "b"), EVENT_NEW);
	/* Another host, another instant, another number of events: another drain. */
	assert_int_equal(see(&keys, "2025-03-07T09:05:04Z-host-b-1/2", "a"), EVENT_NEW);
	assert_int_equal(see(&keys, "2025-03-07T09:05:05Z-host-1/2", "a"), EVENT_NEW);
	assert_int_equal(see(&keys, "2025-03-07T09:05:04Z-host-1/4", "a"), EVENT_NEW);
	event_keys_destroy(&keys);
}

static void what_others_of_a_drain_speak_of_is_missing(void **state)
{
	struct event_keys keys;

	(void)state;
	event_keys_init(&keys);
	assert_int_equal(event_keys_missing(&keys), 0);
	see(&keys, "t-h-1/4", "a");
	assert_int_equal(event_keys_missing(&keys), 3);
	see(&keys, "t-h-1/4", "a");
	assert_int_equal(event_keys_missing(&keys), 3);
	see(&keys, "t-h-4/4", "b");
	see(&keys, "u-h-1/1", "c");
	assert_int_equal(event_keys_missing(&keys), 2);
	event_keys_destroy(&keys);
}

static void old_drains_are_forgotten_but_not_what_they_miss(void **state)
{
	struct event_keys keys;
	char key[64];

	(void)state;
	event_keys_init(&keys);
	see(&keys, "first-h-2/3", "a");
	for (int i = 0; i < EVENT_KEYS_DRAINS; i++) {
		(void)snprintf(key, sizeof key, "%d-h-1/1", i);
		see(&keys, key, "a");
	}
	assert_int_equal(keys.drains.count, EVENT_KEYS_DRAINS);
	assert_int_equal(event_keys_missing(&keys), 2);
	event_keys_destroy(&keys);
}

static void other_texts_are_no_keys(void **state)
{
	static const char *const TEXTS[] = { "",        "-",       "1/2",      "-1/2",     "t-h-0/2",      "t-h-3/2",
		                             "t-h-1",   "t-h-/2",  "t-h-1/",   "t-h-a/2",  "t-h-1/2/3",    "t-h-+1/2",
		                             "t-h-1/0", "t-h1/2x", "t-h-1/ 2", "t-h- 1/2", "t-h-1/1000000" };
	struct event_keys keys;
	enum event_sight sight;
	struct error err;

	(void)state;
	event_keys_init(&keys);
	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
		if (event_keys_see(&keys, slice_of(TEXTS[i]), SLICE("a"), &sight, &err))
			fail_msg("\"%s\" is a key", TEXTS[i]);
		assert_int_equal(err.code, ERROR_SYNTAX);
	}
	event_keys_destroy(&keys);
}

static void without_memory_nothing_is_remembered(void **state)
{
	struct event_keys keys;
	enum event_sight sight;
	struct error err;
	unsigned long failures = 0;

	(void)state;
	event_keys_init(&keys);
	for (unsigned long i = 1; i < 20; i++) {
		bool seen;

		memory_fail_at(i);
		seen = event_keys_see(&keys, SLICE("t-h-1/2"), SLICE("a"), &sight, &err);
		memory_fail_at(0);
		if (seen)
			break;
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		failures++;
	}
	assert_true(failures > 0 && failures < 19);
	assert_int_equal(sight, EVENT_NEW);
	event_keys_destroy(&keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_new_once),
		cmocka_unit_test(what_others_of_a_drain_speak_of_is_missing),
		cmocka_unit_test(old_drains_are_forgotten_but_not_what_they_miss),
		cmocka_unit_test(other_texts_are_no_keys),
		cmocka_unit_test(without_memory_nothing_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
