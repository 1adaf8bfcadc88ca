#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "codec/json_tree.h"

static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, (size_t)64 * 1024 * 1024);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_destroy(&arena);
	return 0;
}

static struct json_node *parse(const char *text)
{
	struct json_node *root;
	struct error err;

	if (!json_tree_parse(slice_of(text), &arena, &root, &err))
		fail_msg("%s: %s", text, err.text);
	return root;
}

static void expect_print(const struct json_node *node, const char *expected)
{
	struct buffer text;
	struct error err;

	buffer_init(&text, (size_t)1024 * 1024);
	assert_true(json_tree_print(node, &text, &err));
	buffer_append_char(&text, '\0');
	assert_string_equal(text.data, expected);
	buffer_destroy(&text);
}

static void expect_slice(struct slice found, const char *expected)
{
	if (!slice_equal_text(found, expected))
		fail_msg("\"%.*s\" instead of \"%s\"", SLICE_ARGS(found), expected);
}

static void a_value_is_printed_as_it_was_read(void **state)
{
	static const char *const TEXTS[] = {
		"{}",
		"[]",
		"null",
		"true",
		"false",
		"0",
		"-1.50e+10",
		"\"\"",
		"\"a\\nb\"",
		"[[],{},[null]]",
		"{\"b\":1,\"a\":{\"c\":[1,\"x\",{\"d\":false}],\"e\":null},\"\":[]}",
		"[1.0,1,10000000000000000000000000]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
		expect_print(parse(TEXTS[i]), TEXTS[i]);
	expect_print(parse(" { \"a\" : [ 1 , 2 ] } "), "{\"a\":[1,2]}");
	expect_print(parse("\"<\\u003e&\\u00e9\\ud83d\\ude00\\/\""),
	             "\"\\u003c\\u003e\\u0026\xc3\xa9\xf0\x9f\x98\x80/\"");
}

static void deep_values_are_read_up_to_the_limit(void **state)
{
	char text[4 * JSON_MAX_DEPTH];
	struct json_node *root;
	struct error err;

	(void)state;
	for (size_t i = 0; i < JSON_MAX_DEPTH; i++) {
		text[i] = '[';
		text[JSON_MAX_DEPTH + i] = ']';
	}
	text[2 * JSON_MAX_DEPTH] = '\0';
	root = parse(text);
	assert_int_equal(json_tree_depth(root), JSON_MAX_DEPTH);
	expect_print(root, text);
	(void)snprintf(text, sizeof text, "%.*s[]%.*s", JSON_MAX_DEPTH,
	               "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", JSON_MAX_DEPTH,
	               "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
	assert_false(json_tree_parse(slice_of(text), &arena, &root, &err));
}

static void text_that_is_no_single_value_is_refused(void **state)
{
	static const char *const TEXTS[] = { "",    " ",         "{",   "[1,]", "{\"a\":1,}",
		                             "1 2", "{\"a\" 1}", "nul", "\"a",  "{} x" };
	struct json_node *root = NULL;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
		if (json_tree_parse(slice_of(TEXTS[i]), &arena, &root, &err))
			fail_msg("\"%s\" is taken", TEXTS[i]);
		assert_int_equal(err.code, ERROR_SYNTAX);
		assert_null(root);
	}
}

static void of_equal_keys_the_last_one_counts(void **state)
{
	(void)state;
	expect_print(parse("{\"a\":1,\"b\":2,\"a\":{\"c\":3}}"), "{\"a\":{\"c\":3},\"b\":2}");
}

static void bad_utf8_becomes_the_replacement_character(void **state)
{
	(void)state;
	expect_print(parse("{\"a\xff\":\"x\x80\\ud800\"}"), "{\"a\xef\xbf\xbd\":\"x\xef\xbf\xbd\xef\xbf\xbd\"}");
}

static void objects_with_too_many_keys_are_refused(void **state)
{
	struct json_node *root;
	struct buffer text;
	struct error err;

	(void)state;
	buffer_init(&text, (size_t)1024 * 1024);
	for (int i = 0; i <= JSON_TREE_MEMBERS; i++)
		buffer_append_format(&text, "%c\"%d\":0", i == 0 ? '{' : ',', i);
	buffer_append_char(&text, '}');
	assert_false(json_tree_parse(buffer_slice(&text), &arena, &root, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	buffer_destroy(&text);
}

static void values_are_found_by_pointer(void **state)
{
	struct json_node *root = parse("{\"a\":{\"b/c\":[10,{\"~\":true}],\"\":\"empty\"},\"n\":null}");
	int64_t value;

	(void)state;
	assert_ptr_equal(json_tree_find(root, ""), root);
	assert_true(json_tree_integer(json_tree_find(root, "/a/b~1c/0"), &value));
	assert_int_equal(value, 10);
	assert_true(json_tree_find(root, "/a/b~1c/1/~0")->truth);
	expect_slice(json_tree_text(json_tree_find(root, "/a/")), "empty");
	assert_int_equal(json_tree_find(root, "/n")->kind, JSON_KIND_NULL);
	assert_null(json_tree_find(root, "/a/b~1c/2"));
	assert_null(json_tree_find(root, "/a/b~1c/x"));
	assert_null(json_tree_find(root, "/a/b~1c/0/x"));
	assert_null(json_tree_find(root, "/b"));
	assert_null(json_tree_find(NULL, "/b"));
	assert_null(json_tree_member(NULL, SLICE("a")));
	assert_int_equal(json_tree_text(json_tree_find(root, "/a")).length, 0);
}

static void only_whole_numbers_within_64_bits_are_integers(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t value;
	} CASES[] = {
		{ "0", true, 0 },      { "-5", true, -5 },   { "9223372036854775807", true, INT64_MAX },
		{ "1.0", false, 0 },   { "1e3", false, 0 },  { "9223372036854775808", false, 0 },
		{ "\"1\"", false, 0 }, { "true", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
		int64_t value = 0;

		assert_int_equal(json_tree_integer(parse(CASES[i].text), &value), CASES[i].ok);
		assert_int_equal(value, CASES[i].value);
	}
	assert_false(json_tree_integer(NULL, &(int64_t){ 0 }));
}

static void equality_ignores_the_order_of_keys_alone(void **state)
{
	struct json_node *root = parse("{\"a\":[1,{\"b\":true,\"c\":\"x\"}],\"d\":null}");

	(void)state;
	assert_true(json_tree_equal(root, parse("{\"d\":null,\"a\":[1,{\"c\":\"x\",\"b\":true}]}")));
	assert_false(json_tree_equal(root, parse("{\"d\":null,\"a\":[{\"c\":\"x\",\"b\":true},1]}")));
	assert_false(json_tree_equal(root, parse("{\"a\":[1,{\"b\":true,\"c\":\"x\"}]}")));
	assert_false(json_tree_equal(root, parse("{\"a\":[1,{\"b\":true,\"c\":\"x\"}],\"d\":null,\"e\":null}")));
	assert_false(json_tree_equal(root, parse("{\"a\":[1,{\"b\":false,\"c\":\"x\"}],\"d\":null}")));
	assert_false(json_tree_equal(parse("{\"a\":1,\"b\":1}"), parse("{\"a\":1,\"c\":1}")));
	assert_false(json_tree_equal(parse("1"), parse("\"1\"")));
	assert_false(json_tree_equal(parse("1"), parse("1.0")));
	assert_true(json_tree_equal(parse("[]"), parse("[]")));
	assert_false(json_tree_equal(parse("[]"), parse("{}")));
	assert_true(json_tree_equal(parse("null"), json_tree_null(&arena)));
	assert_true(json_tree_equal(parse("true"), json_tree_bool(&arena, true)));
	assert_true(json_tree_equal(NULL, NULL));
	assert_false(json_tree_equal(root, NULL));
}

static void members_are_set_replaced_and_removed_in_place(void **state)
{
	struct json_node *root = parse("{\"a\":1,\"b\":2,\"c\":3}");

	(void)state;
	assert_true(json_tree_set(root, SLICE("b"), json_tree_string(&arena, SLICE("x"))));
	assert_true(json_tree_set(root, SLICE("d"), json_tree_number(&arena, INT64_MIN)));
	expect_print(root, "{\"a\":1,\"b\":\"x\",\"c\":3,\"d\":-9223372036854775808}");
	assert_true(json_tree_remove(root, SLICE("d")));
	assert_true(json_tree_remove(root, SLICE("a")));
	assert_false(json_tree_remove(root, SLICE("a")));
	assert_true(json_tree_set(root, SLICE("e"), json_tree_bool(&arena, true)));
	expect_print(root, "{\"b\":\"x\",\"c\":3,\"e\":true}");
	assert_false(json_tree_set(root, SLICE("f"), NULL));
	assert_false(json_tree_set(NULL, SLICE("f"), json_tree_null(&arena)));
	assert_non_null(json_tree_ensure(&arena, root, SLICE("c")));
	assert_true(json_tree_set_text(&arena, json_tree_ensure(&arena, root, SLICE("g")), SLICE("h"), SLICE("i")));
	assert_true(json_tree_set_text(&arena, json_tree_ensure(&arena, root, SLICE("g")), SLICE("j"), SLICE("k")));
	expect_print(root, "{\"b\":\"x\",\"c\":{},\"e\":true,\"g\":{\"h\":\"i\",\"j\":\"k\"}}");
}

static void items_are_inserted_replaced_and_removed(void **state)
{
	struct json_node *root = json_tree_array(&arena);

	(void)state;
	assert_true(json_tree_append(root, json_tree_number(&arena, 2)));
	assert_true(json_tree_insert(root, 0, json_tree_number(&arena, 1)));
	assert_true(json_tree_insert(root, 2, json_tree_number(&arena, 3)));
	assert_false(json_tree_insert(root, 4, json_tree_number(&arena, 9)));
	assert_true(json_tree_replace_item(root, 2, json_tree_number(&arena, 0)));
	assert_false(json_tree_replace_item(root, 3, json_tree_number(&arena, 9)));
	expect_print(root, "[1,2,0]");
	assert_true(json_tree_remove_item(root, 2));
	assert_false(json_tree_remove_item(root, 2));
	assert_true(json_tree_append(root, json_tree_null(&arena)));
	assert_true(json_tree_remove_item(root, 0));
	expect_print(root, "[2,null]");
	assert_int_equal(root->count, 2);
}

static void a_copy_is_independent(void **state)
{
	struct json_node *root = parse("{\"a\":{\"b\":[1,2]}}");
	struct json_node *copy = json_tree_copy(&arena, root);

	(void)state;
	assert_true(json_tree_remove_item(json_tree_find(copy, "/a/b"), 0));
	expect_print(copy, "{\"a\":{\"b\":[2]}}");
	expect_print(root, "{\"a\":{\"b\":[1,2]}}");
	assert_null(json_tree_copy(&arena, NULL));
}

static int compare_first(struct slice a, struct slice b)
{
	return (int)a.data[0] - (int)b.data[0];
}

static void keys_are_sorted_at_every_level(void **state)
{
	struct json_node *root = parse("{\"b\":[{\"z\":1,\"y\":{\"2\":0,\"10\":0}}],\"aa\":1,\"B\":2,\"a\":3}");

	(void)state;
	json_tree_sort(root);
	expect_print(root, "{\"B\":2,\"a\":3,\"aa\":1,\"b\":[{\"y\":{\"10\":0,\"2\":0},\"z\":1}]}");
	assert_true(json_tree_set(root, SLICE("c"), json_tree_null(&arena))); /* the last one is known */
	expect_print(root, "{\"B\":2,\"a\":3,\"aa\":1,\"b\":[{\"y\":{\"10\":0,\"2\":0},\"z\":1}],\"c\":null}");
}

static void ordering_keeps_equal_ones_as_they_were(void **state)
{
	struct json_node *root = parse("{\"b3\":0,\"a2\":0,\"b1\":0,\"a9\":0,\"c\":0,\"b2\":0,\"a1\":0}");

	(void)state;
	json_tree_order(root, compare_first);
	expect_print(root, "{\"a2\":0,\"a9\":0,\"a1\":0,\"b3\":0,\"b1\":0,\"b2\":0,\"c\":0}");
	json_tree_order(NULL, compare_first);
}

static void pointers_are_cut_part_by_part(void **state)
{
	struct slice rest = SLICE("/a//b~1~0c/~2");
	struct slice part;
	struct error err;
	static const char *const PARTS[] = { "a", "", "b/~c", "~2" };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_true(json_pointer_next(&rest, &arena, &part, &err));
		expect_slice(part, PARTS[i]);
	}
	assert_int_equal(rest.length, 0);
}

static void running_out_of_memory_is_told(void **state)
{
	static const char TEXT[] = "{\"a\":[1,2,{\"b\":\"c\\n\"}],\"d\":{}}";
	unsigned long needed;

	(void)state;
	memory_fail_at(0);
	for (unsigned long i = 1;; i++) {
		struct json_node *root = NULL;
		struct arena small;
		struct error err;
		bool ok;

		arena_init(&small, (size_t)1024 * 1024);
		memory_fail_at(i);
		ok = json_tree_parse(slice_of(TEXT), &small, &root, &err);
		needed = memory_allocation_count();
		memory_fail_at(0);
		arena_destroy(&small);
		if (ok)
			break;
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		assert_null(root);
	}
	assert_true(needed >= 1);
}

enum { SHAPES_BYTES = 1024 * 1024, SHAPES_ITEMS_MOST = 12, SHAPES_NESTED_MOST = 4 };

/* A string of up to 99 characters, most of them plain. */
static void append_any_string(struct buffer *text, struct rng *rng)
{
	static const char *const PARTS[] = { "\\\"", "\\\\", "\\n", ",", "[", "}", ":", "\xc3\xa4" };
	uint64_t length = rng_between(rng, 0, rng_between(rng, 0, 4) == 0 ? 100 : 12);

	buffer_append_char(text, '"');
	for (uint64_t i = 0; i < length; i++)
		buffer_append_text(text, rng_between(rng, 0, 10) == 0 ? PARTS[rng_between(rng, 0, 8)] : "x");
	buffer_append_char(text, '"');
}

static void append_any_value(struct buffer *text, struct rng *rng, int depth)
{
	uint64_t kind = rng_between(rng, 0, 10);
	uint64_t items = rng_between(rng, 0, SHAPES_ITEMS_MOST);
	bool object = kind == 0;

	if (depth == SHAPES_NESTED_MOST || kind > 2) {
		if (kind == 9)
			buffer_append_text(text, "17");
		else
			append_any_string(text, rng);
		return;
	}
	buffer_append_char(text, object ? '{' : '[');
	for (uint64_t i = 0; i < items; i++) {
		if (i > 0)
			buffer_append_char(text, ',');
		if (object)
			buffer_append_format(text, "\"key%d\":", (int)i);
		append_any_value(text, rng, depth + 1);
	}
	buffer_append_char(text, object ? '}' : ']');
}

/* Long strings, and many in a row, are read by a way of their own; the more so the first of them. */
static void strings_of_every_length_come_back_wherever_they_stand(void **state)
{
	enum { COUNT = 50, VALUES = 100 };
	struct buffer text;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 1);
	buffer_init(&text, SHAPES_BYTES);
	for (int i = 0; i < COUNT; i++) {
		buffer_clear(&text);
		buffer_append_char(&text, '[');
		for (int k = 0; k < VALUES; k++) {
			append_any_value(&text, &rng, 0);
			buffer_append_char(&text, ',');
		}
		buffer_append_text(&text, "{}]");
		buffer_append_char(&text, '\0');
		assert_false(text.failed);
		expect_print(parse(text.data), text.data);
		arena_reset(&arena);
	}
	buffer_destroy(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_value_is_printed_as_it_was_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(strings_of_every_length_come_back_wherever_they_stand, set_up,
		                                tear_down),
		cmocka_unit_test_setup_teardown(deep_values_are_read_up_to_the_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(text_that_is_no_single_value_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_equal_keys_the_last_one_counts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_utf8_becomes_the_replacement_character, set_up, tear_down),
		cmocka_unit_test_setup_teardown(objects_with_too_many_keys_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(values_are_found_by_pointer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_whole_numbers_within_64_bits_are_integers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(equality_ignores_the_order_of_keys_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(members_are_set_replaced_and_removed_in_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(items_are_inserted_replaced_and_removed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_copy_is_independent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keys_are_sorted_at_every_level, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ordering_keeps_equal_ones_as_they_were, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pointers_are_cut_part_by_part, set_up, tear_down),
		cmocka_unit_test_setup_teardown(running_out_of_memory_is_told, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
