#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "codec/json_reader.h"

enum { ARENA_BYTES = 1024 * 1024 };

/* Everything that a test reads lives here. */
static struct arena arena;
static struct json_reader reader;
static struct error err;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, ARENA_BYTES);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_destroy(&arena);
	return 0;
}

static bool is_json(struct slice text)
{
	arena_reset(&arena);
	return json_reader_open(&reader, text, &arena, &err) && json_reader_finish(&reader, &err);
}

static bool open(const char *text)
{
	arena_reset(&arena);
	return json_reader_open(&reader, slice_of(text), &arena, &err);
}

static void what_rfc_8259_allows_is_read(void **state)
{
	static const char *const TEXTS[] = {
		"{}",
		"[]",
		"0",
		"-0",
		"12",
		"-1.5e+10",
		"1E5",
		"0.1",
		"\"\"",
		"true",
		"false",
		"null",
		" [ 1 , 2 ] ",
		"\t\r\n{\"a\" : 1}\n",
		"{\"a\":{\"b\":[{},[],\"\"]},\"a\":2}",
		"[1]",
		"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\"",
		"\"\x7f\"",
		"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
		"[\"\\u0000\"]",
		"[1,[2,[3,[]]],{\"\":0}]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
		if (!is_json(slice_of(TEXTS[i])))
			fail_msg("%s: %s", TEXTS[i], err.text);
	}
}

static void everything_else_is_refused(void **state)
{
	static const char *const TEXTS[] = {
		"",
		" ",
		"[1,]",
		"[,1]",
		"[1 2]",
		"{\"a\":1,}",
		"{\"a\":}",
		"{\"a\"}",
		"{a:1}",
		"{1:2}",
		"{,}",
		"[",
		"{",
		"[1",
		"{\"a\":1",
		"]",
		"}",
		"[1]]",
		"[1}",
		"{\"a\":1]",
		"01",
		"-",
		"-01",
		"+1",
		".5",
		"1.",
		"1.e5",
		"1e",
		"1e+",
		"0x1",
		"1a",
		"NaN",
		"Infinity",
		"tru",
		"True",
		"nul",
		"truee",
		"\"",
		"\"a",
		"\"\\",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\u12g4\"",
		"\"a\nb\"",
		"\"\t\"",
		"'a'",
		"1 2",
		"{} {}",
		"[1] x",
		"\xef\xbb\xbf[]",
		"//",
		"/**/1",
		"[1]\v",
		"{\"a\":1 \"b\":2}",
		"{\"a\" 1}",
		"{\"a\":1,,\"b\":2}",
		"[[],]",
		"{\"a\":{},}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
		if (is_json(slice_of(TEXTS[i])))
			fail_msg("%s was accepted", TEXTS[i]);
		assert_int_equal(err.code, ERROR_SYNTAX);
	}
}

static void a_nul_byte_is_no_json_but_an_escaped_one_is_a_character(void **state)
{
	struct slice text;

	(void)state;
	assert_false(is_json(SLICE("[1\0]")));
	assert_false(is_json(SLICE("\"a\0b\"")));
	assert_false(is_json(SLICE("1\0")));
	assert_true(open("\"a\\u0000b\""));
	assert_true(json_reader_string(&reader, &text, &err));
	assert_true(slice_equal(text, SLICE("a\0b")));
}

static void a_text_needs_no_nul_behind_it(void **state)
{
	static const char TEXT[] = "[12]34";
	uint32_t value;

	(void)state;
	assert_true(is_json(slice_from(TEXT, 4)));
	assert_false(is_json(slice_from(TEXT, 3)));
	assert_true(json_reader_open(&reader, slice_from(TEXT + 4, 1), &arena, &err));
	assert_true(json_reader_uint32(&reader, &value, &err));
	assert_int_equal(value, 3);
}

static void depth_is_bounded(void **state)
{
	char text[2 * (JSON_MAX_DEPTH + 1)];

	(void)state;
	memset(text, '[', JSON_MAX_DEPTH);
	memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
	assert_true(is_json(slice_from(text, 2 * JSON_MAX_DEPTH)));
	memset(text, '[', JSON_MAX_DEPTH + 1);
	memset(text + JSON_MAX_DEPTH + 1, ']', JSON_MAX_DEPTH + 1);
	assert_false(is_json(slice_from(text, sizeof text)));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "line 1: nested deeper than 64");
	assert_int_equal(reader.problem.kind, JSON_PROBLEM_RESOURCE);
}

static void what_follows_the_value_is_the_callers_choice(void **state)
{
	bool value;

	(void)state;
	assert_true(open("true  {garbage"));
	assert_true(json_reader_bool(&reader, &value, &err));
	assert_true(slice_equal_text(json_reader_rest(&reader), "  {garbage"));
	assert_false(json_reader_finish(&reader, &err));
	assert_int_equal(reader.problem.kind, JSON_PROBLEM_TRAILING);
	assert_int_equal(reader.problem.offset, 6);
	assert_true(open("true \n\t"));
	assert_true(json_reader_bool(&reader, &value, &err));
	assert_true(json_reader_finish(&reader, &err));
}

static void an_end_and_an_empty_text_are_told_apart_from_bad_syntax(void **state)
{
	(void)state;
	assert_false(open(" \n"));
	assert_int_equal(reader.problem.kind, JSON_PROBLEM_EMPTY);
	assert_false(open("{\"a\":[1,2"));
	assert_int_equal(reader.problem.kind, JSON_PROBLEM_END);
	assert_false(open("[1.]"));
	assert_int_equal(reader.problem.kind, JSON_PROBLEM_SYNTAX);
	assert_int_equal(reader.problem.offset, 3);
	assert_string_equal(reader.problem.text, "invalid character ']' after decimal point in numeric literal");
}

/* --- numbers --- */

static void integers_are_exact_within_their_type(void **state)
{
	int16_t i16 = 0;
	int32_t i32 = 0;
	int64_t i64 = 0;
	uint16_t u16 = 0;
	uint32_t u32 = 0;
	uint64_t u64 = 0;

	(void)state;
	assert_true(open("65535") && json_reader_uint16(&reader, &u16, &err));
	assert_int_equal(u16, 65535);
	assert_true(open("4294967295") && json_reader_uint32(&reader, &u32, &err));
	assert_true(u32 == UINT32_MAX);
	assert_true(open("18446744073709551615") && json_reader_uint64(&reader, &u64, &err));
	assert_true(u64 == UINT64_MAX);
	assert_true(open("-32768") && json_reader_int16(&reader, &i16, &err));
	assert_int_equal(i16, INT16_MIN);
	assert_true(open("-2147483648") && json_reader_int32(&reader, &i32, &err));
	assert_int_equal(i32, INT32_MIN);
	assert_true(open("-9223372036854775808") && json_reader_int64(&reader, &i64, &err));
	assert_true(i64 == INT64_MIN);
	assert_true(open("9223372036854775807") && json_reader_int64(&reader, &i64, &err));
	assert_true(i64 == INT64_MAX);
	assert_true(open("9007199254740993") && json_reader_uint64(&reader, &u64, &err)); /* no double knows it */
	assert_true(u64 == 9007199254740993);
	assert_true(open("-0") && json_reader_int64(&reader, &i64, &err));
	assert_true(i64 == 0);
}

static void what_is_no_integer_of_the_type_is_a_wrong_type(void **state)
{
	static const struct {
		const char *text;
		const char *found;
	} CASES[] = {
		{ "70000", "number 70000" }, { "-1", "number -1" },
		{ "-0", "number -0" },       { "5.0", "number 5.0" },
		{ "1e2", "number 1e2" },     { "99999999999999999999", "number 99999999999999999999" },
		{ "\"1\"", "string" },       { "true", "bool" },
		{ "null", "null" },          { "[]", "array" },
		{ "{}", "object" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		uint16_t value = 7;

		assert_true(open(CASES[i].text));
		assert_false(json_reader_uint16(&reader, &value, &err));
		assert_int_equal(reader.problem.kind, JSON_PROBLEM_TYPE);
		assert_string_equal(reader.problem.found, CASES[i].found);
		assert_string_equal(reader.problem.expected, "uint16");
		assert_int_equal(value, 7);
	}
}

static void integers_one_beyond_their_type_are_refused(void **state)
{
	int16_t i16;
	int32_t i32;
	int64_t i64;
	uint32_t u32;
	uint64_t u64;

	(void)state;
	assert_false(open("32768") && json_reader_int16(&reader, &i16, &err));
	assert_false(open("-32769") && json_reader_int16(&reader, &i16, &err));
	assert_false(open("2147483648") && json_reader_int32(&reader, &i32, &err));
	assert_false(open("-2147483649") && json_reader_int32(&reader, &i32, &err));
	assert_false(open("9223372036854775808") && json_reader_int64(&reader, &i64, &err));
	assert_false(open("-9223372036854775809") && json_reader_int64(&reader, &i64, &err));
	assert_false(open("4294967296") && json_reader_uint32(&reader, &u32, &err));
	assert_false(open("18446744073709551616") && json_reader_uint64(&reader, &u64, &err));
}

static void doubles_are_the_nearest_and_finite(void **state)
{
	double value = 0;
	float single = 0;

	(void)state;
	assert_true(open("0.1") && json_reader_double(&reader, &value, &err));
	assert_true(value == 0.1);
	assert_true(open("1.7976931348623157e308") && json_reader_double(&reader, &value, &err));
	assert_true(value == 1.7976931348623157e308);
	assert_true(open("5e-324") && json_reader_double(&reader, &value, &err));
	assert_true(value == 5e-324);
	assert_true(open("1e-400") && json_reader_double(&reader, &value, &err));
	assert_true(value == 0);
	assert_false(open("1e400") && json_reader_double(&reader, &value, &err));
	assert_string_equal(reader.problem.found, "number 1e400");
	assert_true(open("16777217.0") && json_reader_float(&reader, &single, &err));
	assert_true(single == 16777216.0F);
	assert_false(open("1e39") && json_reader_float(&reader, &single, &err));
	assert_false(open("\"1\"") && json_reader_double(&reader, &value, &err));
}

static void named_floats_are_read_where_the_format_has_them(void **state)
{
	double value = 0;
	float single = 0;

	(void)state;
	assert_true(open("\"NaN\"") && json_reader_double_or_name(&reader, &value, &err));
	assert_true(isnan(value));
	assert_true(open("\"-Inf\"") && json_reader_double_or_name(&reader, &value, &err));
	assert_true(isinf(value) && value < 0);
	assert_true(open("\"Inf\"") && json_reader_float_or_name(&reader, &single, &err));
	assert_true(isinf(single) && single > 0);
	assert_true(open("-1.5") && json_reader_double_or_name(&reader, &value, &err));
	assert_true(value == -1.5);
	assert_false(open("\"nan\"") && json_reader_double_or_name(&reader, &value, &err));
	assert_false(open("\"NaN\"") && json_reader_double(&reader, &value, &err));
}

static void ids_of_vm_monitor_are_any_number_truncated(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} CASES[] = {
		{ "7", 7 },
		{ "7.9", 7 },
		{ "1e3", 1000 },
		{ "0", 0 },
		{ "-1", UINT64_MAX },
		{ "1e30", (uint64_t)1 << 63 },
		{ "18446744073709549568", 18446744073709549568U },
	};
	uint64_t value = 0;

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		assert_true(open(CASES[i].text));
		assert_true(json_reader_whole_number(&reader, &value, &err));
		assert_true(value == CASES[i].value);
	}
	assert_false(open("\"7\"") && json_reader_whole_number(&reader, &value, &err));
}

/* --- strings --- */

static void strings_without_escapes_are_slices_of_the_text(void **state)
{
	static const char TEXT[] = "\"caf\xc3\xa9\"";
	struct slice text;

	(void)state;
	assert_true(open(TEXT));
	assert_true(json_reader_string(&reader, &text, &err));
	assert_ptr_equal(text.data, TEXT + 1);
	assert_int_equal(text.length, 5);
}

static void escapes_are_decoded(void **state)
{
	static const struct {
		const char *json;
		const char *text;
	} CASES[] = {
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
		{ "\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac" },
		{ "\"\\ud83d\\uDE00!\"", "\xf0\x9f\x98\x80!" },
		{ "\"\\uDBFF\\uDFFF\\uE000\"", "\xf4\x8f\xbf\xbf\xee\x80\x80" },
		{ "\"a long run of plain text before \\n and one behind it\"",
		  "a long run of plain text before \n and one behind it" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct slice text = { 0 };

		assert_true(open(CASES[i].json));
		assert_true(json_reader_string(&reader, &text, &err));
		assert_true(slice_equal_text(text, CASES[i].text));
	}
}

/* A message with one string, whose bad text is an error or replaced. */
static bool read_message(const char *json, bool replace, struct slice *ret_text)
{
	static const struct json_field FIELDS[] = { { .key = { "s", 1 } } };
	const struct json_message message = { .fields = FIELDS, .field_count = 1, .replace_bad_utf8 = replace };
	struct json_object object;

	if (!open(json))
		return false;
	object = json_object_begin(&reader, &message, &err);
	while (json_object_next(&reader, &object, &err))
		object.ok = json_reader_string(&reader, ret_text, &err);
	return json_object_end(&reader, &object, &err) && json_reader_finish(&reader, &err);
}

static void bad_text_is_an_error_or_replaced_as_the_message_says(void **state)
{
	static const struct {
		const char *json;
		const char *replaced;
	} CASES[] = {
		{ "{\"s\":\"a\xff"
		  "b\"}",
		  "a\xef\xbf\xbd"
		  "b" },
		{ "{\"s\":\"\xc3\"}", "\xef\xbf\xbd" },
		{ "{\"s\":\"\xc0\x80\"}", "\xef\xbf\xbd\xef\xbf\xbd" },                 /* overlong */
		{ "{\"s\":\"\xed\xa0\x80\"}", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* a surrogate */
		{ "{\"s\":\"\xf4\x90\x80\x80\"}", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "{\"s\":\"\xe2\x82\"}", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "{\"s\":\"\\ud800\"}", "\xef\xbf\xbd" },
		{ "{\"s\":\"\\udc00x\"}", "\xef\xbf\xbdx" },
		{ "{\"s\":\"\\ud800\\u0041\"}", "\xef\xbf\xbd"
		                                "A" },
		{ "{\"s\":\"\\ud800\\ud83d\\ude00\"}", "\xef\xbf\xbd\xf0\x9f\x98\x80" },
		{ "{\"other\":\"\xff\",\"s\":\"fine\"}", "fine" },
		{ "{\"\xff\":1,\"s\":\"fine\"}", "fine" },
	};
	struct slice text;

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		assert_false(read_message(CASES[i].json, false, &text));
		assert_int_equal(reader.problem.kind, JSON_PROBLEM_VALUE);
		assert_true(read_message(CASES[i].json, true, &text));
		if (!slice_equal_text(text, CASES[i].replaced))
			fail_msg("%s gave %.*s", CASES[i].json, SLICE_ARGS(text));
	}
}

static void raw_values_keep_their_text(void **state)
{
	static const char *const TEXTS[] = { "1.50", "\"a\\u0041\"", "{ \"a\" : [ ] }", "null", "\"\"" };
	struct slice raw;

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
		assert_true(open(TEXTS[i]));
		assert_true(json_reader_raw(&reader, &raw, &err));
		assert_true(slice_equal_text(raw, TEXTS[i]));
	}
	assert_true(open("[\"\xff\"]"));
	assert_true(json_reader_raw(&reader, &raw, &err));
	assert_true(slice_equal_text(raw, "[\"\xef\xbf\xbd\"]"));
}

static void the_kind_of_a_raw_value_is_seen_from_its_first_character(void **state)
{
	(void)state;
	assert_int_equal(json_kind_of(SLICE("")), JSON_KIND_NONE);
	assert_int_equal(json_kind_of(SLICE("null")), JSON_KIND_NULL);
	assert_int_equal(json_kind_of(SLICE("false")), JSON_KIND_BOOL);
	assert_int_equal(json_kind_of(SLICE(" -1")), JSON_KIND_NUMBER);
	assert_int_equal(json_kind_of(SLICE("\"x\"")), JSON_KIND_STRING);
	assert_int_equal(json_kind_of(SLICE("[]")), JSON_KIND_ARRAY);
	assert_int_equal(json_kind_of(SLICE("{}")), JSON_KIND_OBJECT);
}

/* --- formats --- */

static void a_bare_number_is_a_quantity_by_its_text(void **state)
{
	uint64_t bytes = 0;
	uint32_t milli = 0;

	(void)state;
	assert_true(open("\"1.1Ki\"") && json_reader_quantity(&reader, &bytes, &err));
	assert_true(bytes == 1127);
	assert_true(open("9007199254740993") && json_reader_quantity(&reader, &bytes, &err));
	assert_true(bytes == 9007199254740993);
	assert_true(open("2.5e-1") && json_reader_milli_cpu(&reader, &milli, &err));
	assert_int_equal(milli, 250);
	assert_true(open("-1") && json_reader_milli_cpu(&reader, &milli, &err));
	assert_true(milli == UINT32_MAX - 999);
	assert_true(open("-1") && json_reader_quantity(&reader, &bytes, &err));
	assert_true(bytes == UINT64_MAX);
}

static void what_is_no_quantity_has_the_quantitys_own_text(void **state)
{
	static const char E1[] =
		"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
	static const char *const TEXTS[] = { "\"\"", "\"abc\"", "\"1 Gi\"", "true", "{}", "[]" };
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
		assert_true(open(TEXTS[i]));
		assert_false(json_reader_quantity(&reader, &bytes, &err));
		assert_int_equal(reader.problem.kind, JSON_PROBLEM_VALUE);
		assert_string_equal(reader.problem.text, E1);
	}
	assert_true(open("\"1K\""));
	assert_false(json_reader_quantity(&reader, &bytes, &err));
	assert_string_equal(reader.problem.text, "unable to parse quantity's suffix");
}

static void instants_are_nanoseconds(void **state)
{
	int64_t ns = 0;

	(void)state;
	assert_true(open("\"1970-01-01T01:00:01.5+01:00\"") && json_reader_instant(&reader, &ns, &err));
	assert_true(ns == 1500000000);
	assert_false(open("\"yesterday\"") && json_reader_instant(&reader, &ns, &err));
	assert_int_equal(reader.problem.kind, JSON_PROBLEM_VALUE);
	assert_false(open("5") && json_reader_instant(&reader, &ns, &err));
	assert_int_equal(reader.problem.kind, JSON_PROBLEM_TYPE);
}

/* --- memory --- */

static void an_arena_that_is_too_small_is_an_error(void **state)
{
	struct arena small;

	(void)state;
	arena_init(&small, 64);
	assert_false(json_reader_open(&reader, SLICE("[1,2,3,4,5,6,7,8]"), &small, &err));
	assert_int_equal(err.code, ERROR_NO_MEMORY);
	assert_int_equal(reader.problem.kind, JSON_PROBLEM_RESOURCE);
	arena_destroy(&small);
}

static void failing_memory_is_an_error(void **state)
{
	struct slice text;

	(void)state;
	arena_destroy(&arena);
	arena_init(&arena, ARENA_BYTES);
	memory_fail_at(1);
	assert_false(json_reader_open(&reader, SLICE("[1]"), &arena, &err));
	memory_fail_at(0);
	assert_int_equal(err.code, ERROR_NO_MEMORY);
	assert_true(read_message("{\"s\":\"a\\n\"}", false, &text));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_rfc_8259_allows_is_read),
		TEST(everything_else_is_refused),
		TEST(a_nul_byte_is_no_json_but_an_escaped_one_is_a_character),
		TEST(a_text_needs_no_nul_behind_it),
		TEST(depth_is_bounded),
		TEST(what_follows_the_value_is_the_callers_choice),
		TEST(an_end_and_an_empty_text_are_told_apart_from_bad_syntax),
		TEST(integers_are_exact_within_their_type),
		TEST(what_is_no_integer_of_the_type_is_a_wrong_type),
		TEST(integers_one_beyond_their_type_are_refused),
		TEST(doubles_are_the_nearest_and_finite),
		TEST(named_floats_are_read_where_the_format_has_them),
		TEST(ids_of_vm_monitor_are_any_number_truncated),
		TEST(strings_without_escapes_are_slices_of_the_text),
		TEST(escapes_are_decoded),
		TEST(bad_text_is_an_error_or_replaced_as_the_message_says),
		TEST(raw_values_keep_their_text),
		TEST(the_kind_of_a_raw_value_is_seen_from_its_first_character),
		TEST(a_bare_number_is_a_quantity_by_its_text),
		TEST(what_is_no_quantity_has_the_quantitys_own_text),
		TEST(instants_are_nanoseconds),
		TEST(an_arena_that_is_too_small_is_an_error),
		TEST(failing_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
