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

static void what_cannot_be_taken_is_named_with_its_line(void **state)
{
	static const struct pair PAIRS[] = {
		{ "a: &x 1\nb: *x\n", "line 2: an alias (*name), which isn't supported" },
		{ "a: 1\n---\nb: 2\n", "line 2: a second document" },
		{ "? [1]\n: 2\n", "line 1: a key that isn't a scalar" },
		{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "line 1: nested too deeply" },
		{ "a: [1, 2\n", "line 2: did not find expected ',' or ']'" },
		{ "a: b\n\tc: d\n", "line 2: found a tab character that violates indentation" },
		{ "a: \xff\n", "byte 3: invalid leading UTF-8 octet" },
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
		cmocka_unit_test(what_cannot_be_taken_is_named_with_its_line),
		cmocka_unit_test(a_result_over_the_limit_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
