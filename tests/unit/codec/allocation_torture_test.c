/*
 * Everything of the codec that takes memory, while each allocation fails once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codec/duration_text.h"
#include "codec/go_quote.h"
#include "codec/json_locate.h"
#include "codec/json_splitter.h"
#include "codec/json_tree.h"
#include "codec/json_writer.h"
#include "codec/quantity.h"
#include "codec/rfc3339.h"
#include "codec/yaml.h"
#include "tests/support/failing_calls.h"

enum { LIMIT_BYTES = 1024 * 1024 };

static const char DOCUMENT[] =
	"{\"metadata\":{\"name\":\"a\\u00e4\\n\",\"labels\":{\"x\\\\y\":\"1\",\"z\":\"2\"}},\n \"items\":[1,-2.5e3,true,"
	"null,\"t\\\"\",[],{}],\"long\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}";

static bool parse_and_print(void *context, struct error *err)
{
	struct json_node *root;
	struct arena arena;
	struct buffer out;
	bool ok;

	(void)context;
	arena_init(&arena, LIMIT_BYTES);
	buffer_init(&out, LIMIT_BYTES);
	torture_mark(&root, sizeof root);
	ok = json_tree_parse(slice_of(DOCUMENT), &arena, &root, err);
	if (!ok)
		assert_true(torture_untouched(&root, sizeof root));
	ok = ok && json_tree_print(root, &out, err);
	if (ok)
		assert_true(slice_contains(buffer_slice(&out), SLICE("\"t\\\"\"")));
	buffer_destroy(&out);
	arena_destroy(&arena);
	return ok;
}

/* The makers of nodes have no errors of their own: NULL is for want of memory. */
static bool without_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for a node");
}

static bool edit_tree(void *context, struct error *err)
{
	struct json_node *root, *array, *copy = NULL;
	struct arena arena;
	struct slice part, rest = SLICE("/a~1b");
	bool ok;

	(void)context;
	arena_init(&arena, LIMIT_BYTES);
	root = json_tree_object(&arena);
	array = root != NULL ? json_tree_array(&arena) : NULL;
	ok = array != NULL && json_tree_set(root, SLICE("array"), array) &&
	     json_tree_append(array, json_tree_number(&arena, 7)) &&
	     json_tree_append(array, json_tree_string(&arena, SLICE("text"))) &&
	     json_tree_insert(array, 0, json_tree_bool(&arena, true)) &&
	     json_tree_replace_item(array, 0, json_tree_null(&arena)) &&
	     json_tree_set_text(&arena, root, SLICE("name"), SLICE("value")) &&
	     json_tree_ensure(&arena, json_tree_ensure(&arena, root, SLICE("labels")), SLICE("deep")) != NULL &&
	     (copy = json_tree_copy(&arena, root)) != NULL;
	if (ok)
		assert_true(json_tree_equal(root, copy) && array->count == 3);
	else
		without_memory(err);
	ok = ok && json_pointer_next(&rest, &arena, &part, err);
	if (ok)
		assert_true(slice_equal_text(part, "a/b"));
	arena_destroy(&arena);
	return ok;
}

static bool open_collecting(void *context, struct error *err)
{
	struct json_reader reader;
	struct json_problems problems;
	struct json_place place;
	struct arena arena;
	bool ok;

	(void)context;
	arena_init(&arena, LIMIT_BYTES);
	ok = json_reader_open_collecting(&reader, slice_of(DOCUMENT), &arena, &problems, err);
	if (ok) {
		place = json_locate(&reader, SLICE("metadata.labels"));
		assert_true(place.present || place.line == 1);
	}
	arena_destroy(&arena);
	return ok;
}

static bool count_value(void *context, struct slice value, struct error *err)
{
	(void)err;
	assert_true(value.length > 0);
	++*(unsigned *)context;
	return true;
}

static bool split(enum json_splitter_mode mode, const char *text, unsigned expected, struct error *err)
{
	struct json_splitter splitter;
	struct slice envelope = SLICE("");
	unsigned values = 0;
	bool ok = true;

	json_splitter_init(&splitter, mode, SLICE("items"), LIMIT_BYTES, LIMIT_BYTES, count_value, &values);
	for (size_t i = 0; ok && i < strlen(text); i += 3)
		ok = json_splitter_feed(&splitter, slice_from(text + i, strlen(text + i) < 3 ? strlen(text + i) : 3),
		                        err);
	ok = ok && json_splitter_finish(&splitter, &envelope, err);
	if (ok)
		assert_int_equal(values, expected);
	json_splitter_destroy(&splitter);
	return ok;
}

static bool split_list(void *context, struct error *err)
{
	(void)context;
	return split(JSON_SPLITTER_LIST, DOCUMENT, 7, err);
}

static bool split_values(void *context, struct error *err)
{
	(void)context;
	return split(JSON_SPLITTER_VALUES, "{\"a\":[1,2,{\"b\":3}]}\n\"second\" 3 [] ", 4, err);
}

static bool convert_yaml(void *context, struct error *err)
{
	struct buffer json;
	bool ok;

	(void)context;
	buffer_init(&json, LIMIT_BYTES);
	ok = yaml_to_json(SLICE("a: &x [1, two, \"th\\tree\"]\nb:\n  - c: |\n      lines\n      of text\n    d: null\n"
	                        "e: {f: 1.5, g: true}\n"),
	                  &json, err);
	if (ok)
		assert_true(slice_contains(buffer_slice(&json), SLICE("lines\\nof text\\n")));
	buffer_destroy(&json);
	return ok;
}

static bool write_scalars(void *context, struct error *err)
{
	struct buffer out;
	struct json_writer writer;
	struct json_pair pair = { SLICE("k"), SLICE("v") };
	bool ok;

	(void)context;
	buffer_init(&out, LIMIT_BYTES);
	json_writer_init(&writer, &out);
	json_writer_array_begin(&writer);
	for (unsigned i = 0; i < 100; i++) {
		json_writer_double(&writer, 1e-7 * i);
		json_writer_quantity(&writer, UINT64_C(1) << i % 60);
		json_writer_milli_cpu(&writer, 250 * i);
		json_writer_instant(&writer, INT64_C(1700000000123456789));
		json_writer_string(&writer, SLICE("a \"text\" <&>\n"));
		json_writer_string_map(&writer, &pair, 1);
	}
	json_writer_array_end(&writer);
	duration_print(INT64_C(3723000000001), &out);
	go_quote_append(&out, SLICE("quoted \xff\n"));
	rfc3339_print_nanoseconds_at(INT64_C(1700000000123456789), 3600, &out);
	ok = json_writer_check(&writer, "scalars", err);
	buffer_destroy(&out);
	return ok;
}

static void each_failed_allocation_is_an_error(void **state)
{
	static const struct torture_case CASES[] = {
		{ "json_tree_parse, _print", parse_and_print, 15 },    { "json_tree makers", edit_tree, 12 },
		{ "json_reader_open_collecting", open_collecting, 1 }, { "json_splitter, list", split_list, 2 },
		{ "json_splitter, values", split_values, 1 },          { "yaml_to_json", convert_yaml, 1 },
		{ "json_writer, scalars", write_scalars, 3 },
	};

	(void)state;
	torture_each_case(CASES, sizeof CASES / sizeof CASES[0], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_failed_allocation_is_an_error) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
