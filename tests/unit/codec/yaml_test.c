#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "codec/yaml.h"

struct pair {
	const char *yaml;
	const char *expected; /* JSON, or the error's text */
};

/* The line ends between tokens have a test of their own; those within strings are escaped. */
static void remove_line_ends(struct buffer *json)
{
	size_t length = 0;

	for (size_t i = 0; i < json->length; i++)
		if (json->data[i] != '\n')
			json->data[length++] = json->data[i];
	json->length = length;
}

static void check(const struct pair *pairs, size_t count, bool expect_success)
{
	for (size_t i = 0; i < count; i++) {
		struct buffer json;
		struct error err = { 0 };
		bool ok;

		buffer_init(&json, 65536);
		ok = yaml_to_json(slice_of(pairs[i].yaml), &json, &err);
		if (ok != expect_success)
			fail_msg("%s: %s", pairs[i].yaml, ok ? "accepted" : err.text);
		remove_line_ends(&json);
		buffer_append_char(&json, '\0');
		assert_string_equal(ok ? json.data : err.text, pairs[i].expected);
		buffer_destroy(&json);
	}
}

static void plain_scalars_have_types_and_quoted_ones_are_strings(void **state)
{
	static const struct pair PAIRS[] = {
		{ "a: true\nb: Yes\nc: on\nd: OFF\ne: no\nf: FALSE\n",
		  "{\"a\":true,\"b\":true,\"c\":true,\"d\":false,\"e\":false,\"f\":false}" },
		{ "a: \"true\"\nb: 'no'\nc: tRUE\nd: y\n", "{\"a\":\"true\",\"b\":\"no\",\"c\":\"tRUE\",\"d\":\"y\"}" },
		{ "a: ~\nb: null\nc:\nd: 'null'\n", "{\"a\":null,\"b\":null,\"c\":null,\"d\":\"null\"}" },
		{ "[1, -2, 3.50, 1e3, 1.5E-3, 0, -0.1]", "[1,-2,3.50,1e3,1.5E-3,0,-0.1]" },
		{ "[007, 0x1F, 1_000, 1., .5, '1', 1.2.3, -, +1, 1e, 10.0.0.1]",
		  "[\"007\",\"0x1F\",\"1_000\",\"1.\",\".5\",\"1\",\"1.2.3\",\"-\",\"+1\",\"1e\",\"10.0.0.1\"]" },
		{ "!!str 5", "\"5\"" },
		{ "<a&b>", "\"<a&b>\"" },
	};

	(void)state;
	check(PAIRS, sizeof PAIRS / sizeof *PAIRS, true);
}

static void block_and_flow_style_give_the_same(void **state)
{
	static const struct pair PAIRS[] = {
		{ "nodes:\n    - node_name: cp-1\n      restarted: true\n    - node_name: \"7\"\n",
		  "{\"nodes\":[{\"node_name\":\"cp-1\",\"restarted\":true},{\"node_name\":\"7\"}]}" },
		{ "{\"nodes\":[{\"node_name\":\"cp-1\",\"restarted\":true},{\"node_name\":\"7\"}]}",
		  "{\"nodes\":[{\"node_name\":\"cp-1\",\"restarted\":true},{\"node_name\":\"7\"}]}" },
		{ "nodes: []\n", "{\"nodes\":[]}" },
		{ "a:\n- b\n- [c, {d: e}]\n", "{\"a\":[\"b\",[\"c\",{\"d\":\"e\"}]]}" },
		{ "a: |\n  one\n  two\nb: >\n  three\n  four\n", "{\"a\":\"one\\ntwo\\n\",\"b\":\"three four\\n\"}" },
		{ "# nothing but a remark\n", "null" },
		{ "", "null" },
		{ "---\na: 1\n...\n", "{\"a\":1}" },
	};

	(void)state;
	check(PAIRS, sizeof PAIRS / sizeof *PAIRS, true);
}

static void each_token_stands_on_its_line(void **state)
{
	static const char YAML[] =
		"# a remark\na: 1\n\nb:\n- |\n  one\n  two\n- {c: d,\n   e: f}\r\ng: \"h\n  i\"\nj: k\n";
	static const char JSON[] = "\n{\"a\":1\n\n,\"b\":\n[\"one\\ntwo\\n\"\n\n\n,{\"c\":\"d\"\n,\"e\":\"f\"}"
				   "\n],\"g\":\"h i\"\n\n,\"j\":\"k\"\n}";
	struct buffer json;
	struct error err;

	(void)state;
	buffer_init(&json, 65536);
	assert_true(yaml_to_json(slice_of(YAML), &json, &err));
	buffer_append_char(&json, '\0');
	assert_string_equal(json.data, JSON);
	buffer_destroy(&json);
}

static void a_byte_order_mark_tells_the_encoding(void **state)
{
	static const char *const TEXTS[] = {
		"\xef\xbb\xbf"
		"a: \xc3\xa9\n",
		"\xff\xfe"
		"a\0:\0 \0\xe9\0\n\0",
		"\xfe\xff"
		"\0a\0:\0 \0\xe9\0\n",
	};
	static const size_t LENGTHS[] = { 9, 12, 12 };

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
		struct buffer json;
		struct error err = { 0 };

		buffer_init(&json, 65536);
		if (!yaml_to_json(slice_from(TEXTS[i], LENGTHS[i]), &json, &err))
			fail_msg("text %zu: %s", i, err.text);
		remove_line_ends(&json);
		assert_true(slice_equal_text(buffer_slice(&json), "{\"a\":\"\xc3\xa9\"}"));
		buffer_destroy(&json);
	}
}

static void what_cannot_be_taken_is_named_with_its_line(void **state)
{
	static const struct pair PAIRS[] = {
		{ "a: &x 1\nb: *x\n", "line 2: an alias (*name), which isn't supported" },
		{ "a: 1\n---\nb: 2\n", "line 2: a second document" },
		{ "? [1]\n: 2\n", "line 1: a key that isn't a scalar" },
		{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "line 1: nested too deeply" },
		{ "a: [1, 2\n", "line 2: did not find expected ',' or ']'" },
		{ "a: b\n\tc: d\n", "line 2: a tab, where only blanks may stand" },
		{ "a:\n\t- b\n", "line 2: a tab, where only blanks may stand" },
		{ "a:\n  @b\n", "line 2: found character that cannot start any token" },
		{ "a: \xff\n", "line 1: byte 3: invalid leading UTF-8 octet" },
		{ "a: b\n# \x01\n", "line 2: byte 7: control characters are not allowed" },
		{ "a: &x {b: c}\nd:\n  <<: *x\n", "line 3: a merge key (<<), which isn't supported" },
	};

	(void)state;
	check(PAIRS, sizeof PAIRS / sizeof *PAIRS, false);
}

static void a_result_over_the_limit_is_an_error(void **state)
{
	struct buffer json;
	struct error err;

	(void)state;
	buffer_init(&json, 8);
	assert_false(yaml_to_json(SLICE("a: 123456789"), &json, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	buffer_destroy(&json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_scalars_have_types_and_quoted_ones_are_strings),
		cmocka_unit_test(block_and_flow_style_give_the_same),
		cmocka_unit_test(each_token_stands_on_its_line),
		cmocka_unit_test(a_byte_order_mark_tells_the_encoding),
		cmocka_unit_test(what_cannot_be_taken_is_named_with_its_line),
		cmocka_unit_test(a_result_over_the_limit_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
