/*
 * Objects, arrays and maps: what a schema says about keys, null, duplicates, limits, and where problems are said to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "codec/json_reader.h"

enum { ARENA_BYTES = 4 * 1024 * 1024 };

static struct arena arena;
static struct json_reader reader;
static struct json_problems problems;
static struct error err;

/* What the tests read, in the shape that protogen generates. */
struct item {
	struct slice name;
	uint16_t port;
};

struct thing {
	uint32_t count;
	bool has_item;
	struct item item;
	struct item *items;
	size_t items_count;
	struct json_pair *labels;
	size_t labels_count;
	enum json_presence maybe_presence;
	uint32_t maybe;
	struct json_member *unknown;
	size_t unknown_count;
};

/* Rules of the messages below; each test sets what it is about. */
static struct json_message rules;

static int set_up(void **state)
{
	(void)state;
	rules = (struct json_message){ 0 };
	arena_init(&arena, ARENA_BYTES);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_destroy(&arena);
	return 0;
}

static bool decode_item(struct item *ret_item)
{
	enum { FIELD_NAME, FIELD_PORT };
	static const struct json_field FIELDS[] = {
		[FIELD_NAME] = { .key = { "name", 4 }, .required = true, .max_bytes = 8 },
		[FIELD_PORT] = { .key = { "port", 4 }, .null = JSON_NULL_IS_ABSENT },
	};
	struct json_message message = rules;
	struct item item = { 0 };

	message.fields = FIELDS;
	message.field_count = 2;

	struct json_object object = json_object_begin(&reader, &message, &err);

	while (json_object_next(&reader, &object, &err)) {
		if (object.field == FIELD_NAME)
			object.ok = json_reader_string(&reader, &item.name, &err);
		else
			object.ok = json_reader_uint16(&reader, &item.port, &err);
	}
	if (!json_object_end(&reader, &object, &err))
		return false;
	*ret_item = item;
	return true;
}

static bool decode_items(struct thing *thing)
{
	struct json_array array = json_array_begin(&reader, sizeof(struct item), &err);
	struct item *items = array.items;

	while (json_array_next(&reader, &array))
		array.ok = decode_item(&items[array.index]);
	thing->items = items;
	thing->items_count = array.count;
	return array.ok;
}

static bool decode_thing(struct thing *thing)
{
	enum { FIELD_COUNT, FIELD_ITEM, FIELD_ITEMS, FIELD_LABELS, FIELD_MAYBE, FIELD_EXACT };
	static const struct json_field FIELDS[] = {
		[FIELD_COUNT] = { .key = { "count", 5 } },
		[FIELD_ITEM] = { .key = { "item", 4 }, .null = JSON_NULL_IS_ABSENT },
		[FIELD_ITEMS] = { .key = { "items", 5 }, .null = JSON_NULL_IS_ABSENT, .max_items = 4 },
		[FIELD_LABELS] = { .key = { "labels", 6 }, .null = JSON_NULL_IS_ABSENT, .max_items = 2000 },
		[FIELD_MAYBE] = { .key = { "maybe", 5 }, .null = JSON_NULL_IS_KEPT },
		[FIELD_EXACT] = { .key = { "id", 2 }, .exact = true },
	};
	struct json_message message = rules;

	message.fields = FIELDS;
	message.field_count = sizeof FIELDS / sizeof FIELDS[0];

	struct json_object object = json_object_begin(&reader, &message, &err);

	while (json_object_next(&reader, &object, &err)) {
		switch (object.field) {
		case FIELD_ITEM:
			thing->has_item = true;
			object.ok = decode_item(&thing->item);
			break;
		case FIELD_ITEMS:
			object.ok = decode_items(thing);
			break;
		case FIELD_LABELS:
			object.ok = json_reader_string_map(&reader, &thing->labels, &thing->labels_count, &err);
			break;
		case FIELD_MAYBE:
			thing->maybe_presence = json_reader_presence(&reader);
			object.ok =
				thing->maybe_presence == JSON_NULL || json_reader_uint32(&reader, &thing->maybe, &err);
			break;
		default:
			object.ok = json_reader_uint32(&reader, &thing->count, &err);
			break;
		}
	}
	thing->unknown = object.unknown;
	thing->unknown_count = object.unknown_count;
	return json_object_end(&reader, &object, &err);
}

static bool read(const char *text, struct thing *thing)
{
	*thing = (struct thing){ 0 };
	arena_reset(&arena);
	return json_reader_open(&reader, slice_of(text), &arena, &err) && decode_thing(thing) &&
	       json_reader_finish(&reader, &err);
}

static void assert_refused(const char *text, enum json_problem_kind kind, const char *message)
{
	struct thing thing;

	assert_false(read(text, &thing));
	assert_int_equal(reader.problem.kind, kind);
	assert_string_equal(err.text, message);
	assert_int_equal(err.code, ERROR_SYNTAX);
}

/* --- keys --- */

static void unknown_keys_are_skipped_with_all_that_is_in_them(void **state)
{
	struct thing thing;

	(void)state;
	assert_true(read("{\"x\":{\"count\":[1,{\"count\":7}]},\"count\":3,\"y\":[[],{}],\"z\":\"\"}", &thing));
	assert_int_equal(thing.count, 3);
}

static void unknown_keys_can_be_refused(void **state)
{
	(void)state;
	rules.unknown = JSON_UNKNOWN_REJECTED;
	assert_refused("{\"count\":3,\n\"item\":{\"name\":\"a\",\"extra\":{}}}", JSON_PROBLEM_UNKNOWN_KEY,
	               "line 2: field \"item.extra\": unknown key");
}

static void unknown_keys_can_be_kept(void **state)
{
	struct thing thing;

	(void)state;
	rules.unknown = JSON_UNKNOWN_KEPT;
	assert_true(read("{\"a\":1,\"count\":3,\"b\":{\"c\":[2]},\"d\":null}", &thing));
	assert_int_equal(thing.unknown_count, 3);
	assert_true(slice_equal_text(thing.unknown[1].key, "b"));
	assert_true(slice_equal_text(thing.unknown[1].value, "{\"c\":[2]}"));
	assert_true(slice_equal_text(thing.unknown[2].value, "null"));
}

static void keys_are_exact_unless_they_fold(void **state)
{
	struct thing thing;

	(void)state;
	assert_true(read("{\"Count\":3}", &thing));
	assert_int_equal(thing.count, 0);
	rules.fold_keys = true;
	assert_true(read("{\"COUNT\":3,\"iTeM\":{\"NAME\":\"a\"}}", &thing));
	assert_int_equal(thing.count, 3);
	assert_true(thing.has_item);
}

static void some_keys_are_exact_where_the_others_fold(void **state)
{
	struct thing thing;

	(void)state;
	rules.fold_keys = true;
	assert_true(read("{\"ID\":3}", &thing));
	assert_int_equal(thing.count, 0);
	assert_true(read("{\"id\":3}", &thing));
	assert_int_equal(thing.count, 3);
}

static void keys_may_be_escaped(void **state)
{
	struct thing thing;

	(void)state;
	assert_true(read("{\"co\\u0075nt\":3}", &thing));
	assert_int_equal(thing.count, 3);
}

static void duplicates_are_an_error_or_the_last_one_wins(void **state)
{
	struct thing thing;

	(void)state;
	assert_refused("{\"count\":1,\"count\":2}", JSON_PROBLEM_DUPLICATE_KEY,
	               "line 1: field \"count\": the key stands here for the second time");
	assert_refused("{\"count\":1,\"co\\u0075nt\":2}", JSON_PROBLEM_DUPLICATE_KEY,
	               "line 1: field \"co\\u0075nt\": the key stands here for the second time");
	rules.last_duplicate_wins = true;
	assert_true(read("{\"count\":1,\"count\":2}", &thing));
	assert_int_equal(thing.count, 2);
}

static void a_missing_key_is_reported_at_its_object(void **state)
{
	(void)state;
	assert_refused("{\"count\":1,\n\"items\":[{\"name\":\"a\"},\n{\"port\":1\n}]}", JSON_PROBLEM_MISSING_KEY,
	               "line 3: field \"items[1].name\": required but missing");
}

/* --- null --- */

static void null_is_absent_kept_or_an_error(void **state)
{
	struct thing thing;

	(void)state;
	assert_true(read("{\"item\":null,\"items\":null,\"labels\":null,\"maybe\":null}", &thing));
	assert_false(thing.has_item);
	assert_int_equal(thing.items_count, 0);
	assert_int_equal(thing.maybe_presence, JSON_NULL);
	assert_true(read("{}", &thing));
	assert_int_equal(thing.maybe_presence, JSON_ABSENT);
	assert_true(read("{\"maybe\":5}", &thing));
	assert_int_equal(thing.maybe_presence, JSON_VALUE);
	assert_int_equal(thing.maybe, 5);
	assert_refused("{\"count\":null}", JSON_PROBLEM_TYPE, "line 1: field \"count\": expected uint32, found null");
}

static void a_null_document_is_empty_where_the_message_allows_it(void **state)
{
	struct thing thing;

	(void)state;
	assert_refused("null", JSON_PROBLEM_TYPE, "line 1: expected object, found null");
	rules.null_is_empty = true;
	assert_true(read("null", &thing));
	assert_int_equal(thing.count, 0);
}

static void null_items_are_zero_where_null_is_absent(void **state)
{
	struct thing thing;

	(void)state;
	assert_true(read("{\"items\":[null,{\"name\":\"a\"},null],\"labels\":{\"k\":null}}", &thing));
	assert_int_equal(thing.items_count, 3);
	assert_int_equal(thing.items[0].name.length, 0);
	assert_true(slice_equal_text(thing.items[1].name, "a"));
	assert_int_equal(thing.labels_count, 1);
	assert_int_equal(thing.labels[0].value.length, 0);
}

/* --- arrays, maps, limits --- */

static void empty_arrays_and_maps_have_no_items(void **state)
{
	struct thing thing;

	(void)state;
	assert_true(read("{\"items\":[],\"labels\":{}}", &thing));
	assert_int_equal(thing.items_count, 0);
	assert_int_equal(thing.labels_count, 0);
}

static void limits_of_counts_and_lengths_are_kept(void **state)
{
	struct thing thing;

	(void)state;
	assert_true(read("{\"item\":{\"name\":\"12345678\"}}", &thing));
	assert_refused("{\"item\":{\"name\":\"123456789\"}}", JSON_PROBLEM_VALUE,
	               "line 1: field \"item.name\": 9 bytes are more than 8");
	assert_refused("{\"items\":[null,null,null,null,null]}", JSON_PROBLEM_VALUE,
	               "line 1: field \"items\": 5 items are more than 4");
}

static void wrong_types_are_named(void **state)
{
	(void)state;
	assert_refused("[]", JSON_PROBLEM_TYPE, "line 1: expected object, found array");
	assert_refused("{\"items\":{}}", JSON_PROBLEM_TYPE, "line 1: field \"items\": expected array, found object");
	assert_refused("{\"labels\":[]}", JSON_PROBLEM_TYPE, "line 1: field \"labels\": expected map, found array");
	assert_refused("{\"labels\":{\"a\":1}}", JSON_PROBLEM_TYPE,
	               "line 1: field \"labels.a\": expected string, found number");
	assert_refused("{\"item\":{\"name\":true}}", JSON_PROBLEM_TYPE,
	               "line 1: field \"item.name\": expected string, found bool");
	assert_refused("{\"items\":[{\"name\":\"a\",\"port\":70000}]}", JSON_PROBLEM_TYPE,
	               "line 1: field \"items[0].port\": expected uint16, found number 70000");
}

/* A map of count keys "k0" …; with duplicate, the first key again at the end. */
static const char *map_text(size_t count, bool duplicate)
{
	static char text[64 * 1024];
	size_t length = (size_t)snprintf(text, sizeof text, "{\"labels\":{");

	for (size_t i = 0; i < count; i++)
		length += (size_t)snprintf(text + length, sizeof text - length, "%s\"k%zu\":\"v%zu\"", i > 0 ? "," : "",
		                           i, i);
	if (duplicate)
		length += (size_t)snprintf(text + length, sizeof text - length, ",\"k0\":\"again\"");
	snprintf(text + length, sizeof text - length, "}}");
	return text;
}

static void maps_of_any_size_find_their_duplicates(void **state)
{
	static const size_t COUNTS[] = { 1, 15, 16, 17, 1000 };
	struct thing thing;

	(void)state;
	for (size_t i = 0; i < sizeof COUNTS / sizeof COUNTS[0]; i++) {
		rules.last_duplicate_wins = false;
		assert_true(read(map_text(COUNTS[i], false), &thing));
		assert_int_equal(thing.labels_count, COUNTS[i]);
		assert_false(read(map_text(COUNTS[i], true), &thing));
		assert_int_equal(reader.problem.kind, JSON_PROBLEM_DUPLICATE_KEY);
		rules.last_duplicate_wins = true;
		assert_true(read(map_text(COUNTS[i], true), &thing));
		assert_int_equal(thing.labels_count, COUNTS[i]);
		assert_true(slice_equal_text(thing.labels[0].value, "again"));
	}
	assert_false(read(map_text(2001, false), &thing));
}

static void a_pair_is_found_by_its_key(void **state)
{
	const struct slice *value;
	struct thing thing;

	(void)state;
	assert_true(read(map_text(20, false), &thing));
	value = json_pairs_find(thing.labels, thing.labels_count, SLICE("k7"));
	assert_non_null(value);
	assert_true(slice_equal_text(*value, "v7"));
	assert_null(json_pairs_find(thing.labels, thing.labels_count, SLICE("k20")));
	assert_null(json_pairs_find(NULL, 0, SLICE("k")));
}

/* --- problems --- */

static void collecting_finds_every_problem(void **state)
{
	static const char TEXT[] = "{\"count\":-1,\n"
				   "\"item\":{\"port\":99999},\n"
				   "\"items\":[1,{\"name\":\"much too long\"},{\"name\":\"a\",\"nope\":1}],\n"
				   "\"labels\":{\"a\":1,\"b\":\"2\",\"a\":\"3\"},\"maybe\":\"x\",\"count\":2}";
	static const char *const EXPECTED[] = {
		"line 1: field \"count\": expected uint32, found number -1",
		"line 2: field \"item.port\": expected uint16, found number 99999",
		"line 2: field \"item.name\": required but missing",
		"line 3: field \"items[0]\": expected object, found number",
		"line 3: field \"items[1].name\": 13 bytes are more than 8",
		"line 3: field \"items[2].nope\": unknown key",
		"line 4: field \"labels.a\": expected string, found number",
		"line 4: field \"labels.a\": the key stands here for the second time",
		"line 4: field \"maybe\": expected uint32, found string",
		"line 4: field \"count\": the key stands here for the second time",
	};
	struct thing thing = { 0 };

	(void)state;
	rules.unknown = JSON_UNKNOWN_REJECTED;
	assert_true(json_reader_open_collecting(&reader, slice_of(TEXT), &arena, &problems, &err));
	assert_true(decode_thing(&thing));
	assert_false(json_reader_finish(&reader, &err));
	assert_string_equal(err.text, EXPECTED[0]);
	assert_int_equal(problems.count, sizeof EXPECTED / sizeof EXPECTED[0]);
	for (size_t i = 0; i < problems.count; i++) {
		char text[600];

		json_problem_describe(&problems.items[i], text, sizeof text);
		assert_string_equal(text, EXPECTED[i]);
	}
	/* What was fine is there all the same. */
	assert_int_equal(thing.items_count, 3);
	assert_true(slice_equal_text(*json_pairs_find(thing.labels, thing.labels_count, SLICE("b")), "2"));
}

static void collecting_a_sound_document_finds_nothing(void **state)
{
	struct thing thing = { 0 };

	(void)state;
	assert_true(json_reader_open_collecting(&reader, SLICE("{\"count\":1}"), &arena, &problems, &err));
	assert_true(decode_thing(&thing));
	assert_true(json_reader_finish(&reader, &err));
	assert_int_equal(problems.count, 0);
}

static void collecting_has_an_end(void **state)
{
	char text[4096] = "{";
	struct thing thing = { 0 };
	size_t length = 1;

	(void)state;
	rules.unknown = JSON_UNKNOWN_REJECTED;
	for (int i = 0; i < JSON_MAX_PROBLEMS + 5; i++)
		length += (size_t)snprintf(text + length, sizeof text - length, "%s\"x%d\":0", i > 0 ? "," : "", i);
	snprintf(text + length, sizeof text - length, "}");
	assert_true(json_reader_open_collecting(&reader, slice_of(text), &arena, &problems, &err));
	assert_true(decode_thing(&thing));
	assert_int_equal(problems.count, JSON_MAX_PROBLEMS);
	assert_int_equal(problems.dropped, 5);
	assert_false(json_reader_finish(&reader, &err));
}

static void bad_text_is_collected_once_and_read_on(void **state)
{
	struct thing thing = { 0 };

	(void)state;
	/* Many bad bytes and an escape in one key: what it means is longer than what stands there. */
	assert_true(json_reader_open_collecting(
		&reader, SLICE("{\"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\\n\":1,\n\"count\":2,\"\xfe\":3}"),
		&arena, &problems, &err));
	assert_true(decode_thing(&thing));
	assert_false(json_reader_finish(&reader, &err));
	assert_int_equal(problems.count, 1);
	assert_int_equal(problems.items[0].offset, 2);
	assert_int_equal(thing.count, 2);
}

static void a_syntax_error_is_collected_too(void **state)
{
	(void)state;
	assert_false(json_reader_open_collecting(&reader, SLICE("{\n\"a\":}"), &arena, &problems, &err));
	assert_int_equal(problems.count, 1);
	assert_int_equal(problems.items[0].line, 2);
	assert_string_equal(problems.items[0].text, "invalid character '}' looking for beginning of value");
}

static void the_reference_has_its_own_words(void **state)
{
	static const struct {
		const char *text;
		bool stream;
		const char *words;
	} CASES[] = {
		{ "", true, "EOF" },
		{ "  ", false, "unexpected end of JSON input" },
		{ "{\"count\":", true, "unexpected EOF" },
		{ "{\"count\":", false, "unexpected end of JSON input" },
		{ "{\"extra\":1}", true, "json: unknown field \"extra\"" },
		{ "{\"item\":{\"name\":\"a\",\"port\":70000}}", true,
		  "json: cannot unmarshal number 70000 into Go struct field item.port of type uint16" },
		{ "{\"item\":{\"name\":\"a\",\"port\":\"1\"}}", true,
		  "json: cannot unmarshal string into Go struct field item.port of type uint16" },
		{ "[]", false, "json: cannot unmarshal array into Go value of type object" },
		{ "{\"count\":1", false, "unexpected end of JSON input" },
		{ "{x", false, "invalid character 'x' looking for beginning of object key string" },
	};
	struct thing thing;
	char words[256];

	(void)state;
	rules.unknown = JSON_UNKNOWN_REJECTED;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		assert_false(read(CASES[i].text, &thing));
		json_problem_reference_text(&reader.problem, CASES[i].stream, words, sizeof words);
		assert_string_equal(words, CASES[i].words);
	}
}

static void the_place_of_a_problem_is_a_line_and_an_offset(void **state)
{
	struct thing thing;

	(void)state;
	assert_false(read("{\n\n  \"count\": \"three\"}", &thing));
	assert_int_equal(reader.problem.line, 3);
	assert_int_equal(reader.problem.offset, 14);
	assert_string_equal(reader.problem.path, "count");
}

static void a_long_path_is_cut_not_overrun(void **state)
{
	char text[1024] = "{\"";
	struct thing thing;

	(void)state;
	rules.unknown = JSON_UNKNOWN_REJECTED;
	memset(text + 2, 'k', 600);
	snprintf(text + 602, sizeof text - 602, "\":1}");
	assert_false(read(text, &thing));
	assert_int_equal(strlen(reader.problem.path), sizeof reader.problem.path - 1);
}

static void failing_memory_at_any_point_is_an_error(void **state)
{
	static const char TEXT[] = "{\"items\":[{\"name\":\"a\\n\"}],\"labels\":{\"a\":\"b\\n\"},\"x\":1}";
	struct thing thing;
	unsigned long failures = 0;

	(void)state;
	rules.unknown = JSON_UNKNOWN_KEPT;
	for (unsigned long n = 1;; n++) {
		bool ok;

		arena_destroy(&arena);
		arena_init(&arena, ARENA_BYTES);
		memory_fail_at(n);
		thing = (struct thing){ 0 };
		ok = json_reader_open(&reader, slice_of(TEXT), &arena, &err) && decode_thing(&thing);
		memory_fail_at(0);
		if (ok)
			break;
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		failures++;
	}
	assert_true(failures > 0);
	assert_int_equal(thing.items_count, 1);
}

static void an_arena_that_fills_up_anywhere_is_an_error(void **state)
{
	static const char TEXT[] = "{\"items\":[{\"name\":\"a\\n\"}],\"labels\":{\"a\":\"b\\n\"},\"x\":1}";
	struct thing thing;
	size_t limit = 0;
	bool ok = false;

	(void)state;
	rules.unknown = JSON_UNKNOWN_KEPT;
	for (; !ok && limit < ARENA_BYTES; limit += 16) {
		arena_destroy(&arena);
		arena_init(&arena, limit);
		thing = (struct thing){ 0 };
		ok = json_reader_open(&reader, slice_of(TEXT), &arena, &err) && decode_thing(&thing);
		if (!ok)
			assert_int_equal(err.code, ERROR_NO_MEMORY);
	}
	assert_true(ok && limit > 256);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(unknown_keys_are_skipped_with_all_that_is_in_them),
		TEST(unknown_keys_can_be_refused),
		TEST(unknown_keys_can_be_kept),
		TEST(keys_are_exact_unless_they_fold),
		TEST(some_keys_are_exact_where_the_others_fold),
		TEST(keys_may_be_escaped),
		TEST(duplicates_are_an_error_or_the_last_one_wins),
		TEST(a_missing_key_is_reported_at_its_object),
		TEST(null_is_absent_kept_or_an_error),
		TEST(a_null_document_is_empty_where_the_message_allows_it),
		TEST(null_items_are_zero_where_null_is_absent),
		TEST(empty_arrays_and_maps_have_no_items),
		TEST(limits_of_counts_and_lengths_are_kept),
		TEST(wrong_types_are_named),
		TEST(maps_of_any_size_find_their_duplicates),
		TEST(a_pair_is_found_by_its_key),
		TEST(collecting_finds_every_problem),
		TEST(collecting_a_sound_document_finds_nothing),
		TEST(collecting_has_an_end),
		TEST(bad_text_is_collected_once_and_read_on),
		TEST(a_syntax_error_is_collected_too),
		TEST(the_reference_has_its_own_words),
		TEST(the_place_of_a_problem_is_a_line_and_an_offset),
		TEST(a_long_path_is_cut_not_overrun),
		TEST(failing_memory_at_any_point_is_an_error),
		TEST(an_arena_that_fills_up_anywhere_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
