#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codec/json_locate.h"

static const char DOCUMENT[] = "{\n"
			       " \"a\": 1, \"b\": {\n"
			       "  \"c\": [ { \"a\": 2 } ],\n"
			       "  \"d\":\n"
			       "   { \"e\\u0066\": \"x\" }\n"
			       " },\n"
			       " \"d\": null\n"
			       "}\n";

static void assert_place(const char *path, bool present, unsigned line)
{
	struct arena arena;
	struct json_reader reader;
	struct json_place place;
	struct error err;

	arena_init(&arena, 65536);
	assert_true(json_reader_open(&reader, slice_of(DOCUMENT), &arena, &err));
	place = json_locate(&reader, slice_of(path));
	assert_int_equal(place.present, present);
	assert_int_equal(place.line, line);
	arena_destroy(&arena);
}

static void values_are_found_at_their_line(void **state)
{
	(void)state;
	assert_place("", true, 1);
	assert_place("a", true, 2);
	assert_place("b", true, 2);
	assert_place("b.c", true, 3);
	assert_place("b.d", true, 5); /* of the value, not of its key */
	assert_place("d", true, 7);
}

static void escaped_keys_are_found(void **state)
{
	(void)state;
	assert_place("b.d.ef", true, 5);
}

static void what_is_missing_has_the_line_of_the_object_it_is_missing_from(void **state)
{
	(void)state;
	assert_place("x", false, 1);
	assert_place("b.a", false, 2); /* there are others of that name, elsewhere */
	assert_place("b.d.x.y", false, 5);
	assert_place("b.c.a", false, 3);
	assert_place("d.x", false, 7);
	assert_place("a.x", false, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_found_at_their_line),
		cmocka_unit_test(escaped_keys_are_found),
		cmocka_unit_test(what_is_missing_has_the_line_of_the_object_it_is_missing_from),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
