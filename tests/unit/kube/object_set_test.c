#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "kube/object_set.h"

/* An object is a text "uid=value". Handlers write down what they are told. */
struct fixture {
	struct object_set set;
	struct watch_store_type type;
	struct watch_store_handler handler;
	char calls[1024];
	int objects;          /* alive */
	const char *close_at; /* the call in which the handler closes the set */
};

static void note(struct fixture *fixture, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct fixture *fixture, const char *format, ...)
{
	size_t used = strlen(fixture->calls);
	const char *call = fixture->calls + used;
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(fixture->calls + used, sizeof fixture->calls - used, format, arguments);
	va_end(arguments);
	if (fixture->close_at != NULL && strcmp(call, fixture->close_at) == 0)
		object_set_close(&fixture->set);
}

static void on_add(void *context, void *object)
{
	note(context, "add(%s) ", (const char *)object);
}

static void on_update(void *context, void *before, void *after)
{
	note(context, "update(%s,%s) ", (const char *)before, (const char *)after);
}

static void on_delete(void *context, void *object)
{
	note(context, "delete(%s) ", (const char *)object);
}

static void release(void *context, void *object)
{
	struct fixture *fixture = context;

	fixture->objects--;
	free(object);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	fixture->type.release = release;
	fixture->handler =
		(struct watch_store_handler){ .on_add = on_add, .on_update = on_update, .on_delete = on_delete };
	object_set_init(&fixture->set, &fixture->type, &fixture->handler, fixture);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	object_set_close(&fixture->set);
	assert_int_equal(fixture->objects, 0);
	free(fixture);
	return 0;
}

static void *object_of(struct fixture *fixture, const char *text)
{
	fixture->objects++;
	return strdup(text);
}

static struct slice uid_of(const void *object)
{
	struct slice text = slice_of(object);

	return slice_take_until(&text, '=');
}

static void list(struct fixture *fixture, const char *text)
{
	void *object = object_of(fixture, text);
	struct error err;

	assert_true(object_set_list(&fixture->set, object, uid_of(object), &err));
}

static bool event(struct fixture *fixture, enum watch_store_event kind, const char *text, struct error *err)
{
	void *object = object_of(fixture, text);
	bool ok = object_set_apply_event(&fixture->set, kind, object, uid_of(object), err);

	if (!ok)
		release(fixture, object);
	return ok;
}

static void apply(struct fixture *fixture, enum watch_store_event kind, const char *text)
{
	struct error err;

	assert_true(event(fixture, kind, text, &err));
}

static void refuse(struct fixture *fixture, enum watch_store_event kind, const char *text, const char *reason)
{
	struct error err;

	assert_false(event(fixture, kind, text, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_string_equal(err.text, reason);
}

static void expect_calls(struct fixture *fixture, const char *calls)
{
	assert_string_equal(fixture->calls, calls);
	fixture->calls[0] = '\0';
}

static void expect_objects(struct fixture *fixture, const char *objects)
{
	char found[256] = "";
	size_t position = 0;
	const char *object;

	while ((object = object_set_next(&fixture->set, &position)) != NULL) {
		strcat(found, object);
		strcat(found, " ");
	}
	assert_string_equal(found, objects);
}

static void a_first_list_adds_in_list_order(void **state)
{
	struct fixture *fixture = *state;

	list(fixture, "b=1");
	list(fixture, "a=1");
	expect_calls(fixture, "");
	expect_objects(fixture, "");
	assert_int_equal(object_set_listed_count(&fixture->set), 2);
	assert_int_equal(fixture->set.count, 0);
	object_set_apply_list(&fixture->set);
	expect_calls(fixture, "add(b=1) add(a=1) ");
	expect_objects(fixture, "b=1 a=1 ");
	assert_int_equal(fixture->set.count, 2);
	assert_int_equal(object_set_listed_count(&fixture->set), 0);
}

static void a_later_list_deletes_then_updates_everything_and_adds(void **state)
{
	struct fixture *fixture = *state;

	list(fixture, "a=1");
	list(fixture, "b=1");
	list(fixture, "c=1");
	object_set_apply_list(&fixture->set);
	expect_calls(fixture, "add(a=1) add(b=1) add(c=1) ");

	list(fixture, "d=2");
	list(fixture, "c=1");
	list(fixture, "a=2");
	expect_objects(fixture, "a=1 b=1 c=1 ");
	object_set_apply_list(&fixture->set);
	expect_calls(fixture, "delete(b=1) add(d=2) update(c=1,c=1) update(a=1,a=2) ");
	expect_objects(fixture, "a=2 c=1 d=2 ");
	assert_int_equal(fixture->set.count, 3);
}

static void a_dropped_list_leaves_no_trace(void **state)
{
	struct fixture *fixture = *state;

	list(fixture, "a=1");
	object_set_apply_list(&fixture->set);
	list(fixture, "b=1");
	object_set_drop_list(&fixture->set);
	expect_objects(fixture, "a=1 ");
	expect_calls(fixture, "add(a=1) ");
	assert_int_equal(fixture->objects, 1);

	/* Nor does a mark on what it had listed: a is missing from the next list, so it goes. */
	list(fixture, "a=2");
	object_set_drop_list(&fixture->set);
	list(fixture, "b=2");
	object_set_apply_list(&fixture->set);
	expect_calls(fixture, "delete(a=1) add(b=2) ");
}

static void one_uid_twice_in_a_list_is_an_add_and_an_update(void **state)
{
	struct fixture *fixture = *state;

	list(fixture, "a=1");
	list(fixture, "a=2");
	object_set_apply_list(&fixture->set);
	expect_calls(fixture, "add(a=1) update(a=1,a=2) ");
	expect_objects(fixture, "a=2 ");
}

/* The table of agent-runtime 4.3. */
static void events_have_the_effects_of_the_table(void **state)
{
	struct fixture *fixture = *state;

	apply(fixture, WATCH_STORE_ADDED, "a=1");
	expect_calls(fixture, "add(a=1) ");
	apply(fixture, WATCH_STORE_MODIFIED, "a=2");
	expect_calls(fixture, "update(a=1,a=2) ");
	apply(fixture, WATCH_STORE_DELETED, "a=3");
	expect_calls(fixture, "update(a=2,a=3) delete(a=3) ");
	expect_objects(fixture, "");
	assert_int_equal(fixture->set.count, 0);
	apply(fixture, WATCH_STORE_ADDED, "a=4");
	expect_calls(fixture, "add(a=4) ");
}

static void events_that_contradict_the_state_are_refused(void **state)
{
	struct fixture *fixture = *state;

	apply(fixture, WATCH_STORE_ADDED, "a=1");
	refuse(fixture, WATCH_STORE_ADDED, "a=2", "received add event for object we already have");
	refuse(fixture, WATCH_STORE_MODIFIED, "b=1", "received update event for object that's not present");
	refuse(fixture, WATCH_STORE_DELETED, "b=1", "received delete event for object that's not present");
	expect_calls(fixture, "add(a=1) ");
	expect_objects(fixture, "a=1 ");
}

static void a_handler_may_close_the_set_in_any_call(void **state)
{
	static const char *const calls[] = { "delete(b=1) ",     "add(d=2) ",        "update(c=1,c=2) ",
		                             "update(a=1,a=2) ", "update(a=2,a=3) ", "delete(a=3) " };

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		struct fixture *fixture;
		void *own_state;

		set_up(&own_state);
		fixture = own_state;
		list(fixture, "a=1");
		list(fixture, "b=1");
		list(fixture, "c=1");
		object_set_apply_list(&fixture->set);
		list(fixture, "d=2");
		list(fixture, "c=2");
		list(fixture, "a=2");
		fixture->close_at = calls[i];
		object_set_apply_list(&fixture->set);
		if (!object_set_closed(&fixture->set))
			apply(fixture, WATCH_STORE_DELETED, "a=3");
		assert_true(object_set_closed(&fixture->set));
		assert_int_equal(fixture->objects, 0);
		assert_memory_equal(fixture->calls + strlen(fixture->calls) - strlen(calls[i]), calls[i],
		                    strlen(calls[i]));
		expect_objects(fixture, "");
		tear_down(&own_state);
	}
}

static void each_failing_allocation_leaves_the_state_as_it_was(void **state)
{
	struct fixture *fixture = *state;
	unsigned failures = 0;

	list(fixture, "a=1");
	object_set_apply_list(&fixture->set);
	for (unsigned long at = 1;; at++) {
		bool ok = true;
		struct error err;

		memory_fail_at(at);
		for (int i = 0; i < 40 && ok; i++) {
			char text[16];
			void *object;

			(void)snprintf(text, sizeof text, "n%d=1", i);
			object = object_of(fixture, text);
			ok = object_set_list(&fixture->set, object, uid_of(object), &err);
		}
		memory_fail_at(0);
		object_set_drop_list(&fixture->set);
		expect_objects(fixture, "a=1 ");
		if (ok)
			break;
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		failures++;
	}
	assert_true(failures > 40);
	for (unsigned long at = 1; at <= 2; at++) {
		struct error err;
		bool ok;

		memory_fail_at(at);
		ok = event(fixture, WATCH_STORE_ADDED, "z=1", &err);
		memory_fail_at(0);
		assert_false(ok);
		assert_int_equal(err.code, ERROR_NO_MEMORY);
	}
	expect_objects(fixture, "a=1 ");
}

static void thousands_of_objects_are_relisted(void **state)
{
	struct fixture *fixture = *state;
	char text[32];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 5000; i++) {
			(void)snprintf(text, sizeof text, "%d=%d", i + round * 1000, round);
			list(fixture, text);
		}
		fixture->calls[0] = '\0';
		object_set_apply_list(&fixture->set);
		assert_int_equal(fixture->set.count, 5000);
		assert_int_equal(fixture->objects, 5000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_first_list_adds_in_list_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_later_list_deletes_then_updates_everything_and_adds, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(a_dropped_list_leaves_no_trace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_uid_twice_in_a_list_is_an_add_and_an_update, set_up, tear_down),
		cmocka_unit_test_setup_teardown(events_have_the_effects_of_the_table, set_up, tear_down),
		cmocka_unit_test_setup_teardown(events_that_contradict_the_state_are_refused, set_up, tear_down),
		cmocka_unit_test(a_handler_may_close_the_set_in_any_call),
		cmocka_unit_test_setup_teardown(each_failing_allocation_leaves_the_state_as_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(thousands_of_objects_are_relisted, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("object_set", tests, NULL, NULL);
}
