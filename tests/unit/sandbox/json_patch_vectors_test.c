/*
 * The tables tests/vectors/sandbox/{json_patch,merge_patch}.txt.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "sandbox/json_patch.h"
#include "tests/support/vector_file.h"

enum { ARENA_BYTES = 16 * 1024 * 1024 };

static struct json_node *parse(struct arena *arena, const char *text)
{
	struct json_node *root;
	struct error err;

	if (!json_tree_parse(slice_of(text), arena, &root, &err))
		fail_msg("%s: %s", text, err.text);
	return root;
}

static void expect_document(const struct json_node *root, const char *expected, size_t line)
{
	struct buffer text;
	struct error err;

	buffer_init(&text, 64 * 1024);
	assert_true(json_tree_print(root, &text, &err));
	buffer_append_char(&text, '\0');
	if (strcmp(text.data, expected) != 0)
		fail_msg("line %zu: %s instead of %s", line, text.data, expected);
	buffer_destroy(&text);
}

static const char *outcome_name(enum json_patch_outcome outcome)
{
	static const char *const NAMES[] = { [JSON_PATCH_DONE] = "done",
		                             [JSON_PATCH_MALFORMED] = "malformed",
		                             [JSON_PATCH_FAILED] = "failed",
		                             [JSON_PATCH_TOO_LONG] = "too long",
		                             [JSON_PATCH_RESOURCE] = "resource" };

	return NAMES[outcome];
}

static void use_json_patch(const struct vector_row *row)
{
	const char *expected = row->count > 3 ? row->fields[3] : "";
	struct arena arena;
	struct json_node *root;
	enum json_patch_outcome outcome;
	struct error err = { .text = "" };

	arena_init(&arena, ARENA_BYTES);
	root = parse(&arena, row->fields[0]);
	outcome = json_patch_apply(slice_of(row->fields[1]), root, &arena, &err);
	if (strcmp(outcome_name(outcome), row->fields[2]) != 0)
		fail_msg("line %zu: %s instead of %s (%s)", row->line, outcome_name(outcome), row->fields[2], err.text);
	if (outcome == JSON_PATCH_DONE)
		expect_document(root, expected, row->line);
	if (outcome == JSON_PATCH_MALFORMED && strcmp(err.text, expected) != 0)
		fail_msg("line %zu: \"%s\" instead of \"%s\"", row->line, err.text, expected);
	arena_destroy(&arena);
}

static void json_patches_do_as_the_api_server(void **state)
{
	(void)state;
	assert_in_range(vector_table_walk("vectors/sandbox/json_patch.txt", use_json_patch), 45, 60);
}

static void use_merge_patch(const struct vector_row *row)
{
	struct arena arena;
	struct json_node *root;
	enum json_patch_outcome outcome;
	struct error err = { .text = "" };
	bool malformed = strcmp(row->fields[2], "malformed") == 0;

	arena_init(&arena, ARENA_BYTES);
	root = parse(&arena, row->fields[0]);
	outcome = json_merge_patch_apply(slice_of(row->fields[1]), root, &arena, &err);
	if (outcome != (malformed ? JSON_PATCH_MALFORMED : JSON_PATCH_DONE))
		fail_msg("line %zu: %s (%s)", row->line, outcome_name(outcome), err.text);
	if (malformed)
		assert_string_equal(err.text, "Invalid JSON Patch");
	else
		expect_document(root, row->fields[2], row->line);
	arena_destroy(&arena);
}

static void merge_patches_do_as_their_rfc(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/sandbox/merge_patch.txt", use_merge_patch), 15);
}

static void too_many_operations_are_refused(void **state)
{
	struct arena arena;
	struct buffer patch;
	struct error err;

	(void)state;
	arena_init(&arena, (size_t)4 * ARENA_BYTES);
	buffer_init(&patch, (size_t)1024 * 1024);
	for (int i = 0; i <= JSON_PATCH_OPERATIONS; i++)
		buffer_append_text(&patch, i == 0 ? "[{\"op\":\"test\"}" : ",{\"op\":\"test\"}");
	buffer_append_char(&patch, ']');
	assert_int_equal(json_patch_apply(buffer_slice(&patch), parse(&arena, "{}"), &arena, &err),
	                 JSON_PATCH_TOO_LONG);
	assert_string_equal(err.text, "The allowed maximum operations in a JSON patch is 10000, got 10001");
	buffer_destroy(&patch);
	arena_destroy(&arena);
}

static void a_patch_cant_make_an_object_deeper_than_can_be_read(void **state)
{
	struct arena arena;
	struct json_node *root;
	struct json_node *again;
	enum json_patch_outcome outcome = JSON_PATCH_DONE;
	struct buffer text;
	struct error err;
	int copies = 0;

	(void)state;
	arena_init(&arena, ARENA_BYTES);
	root = parse(&arena, "{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}");
	/* Each copy makes it four levels deeper. */
	for (; outcome == JSON_PATCH_DONE && copies < JSON_MAX_DEPTH; copies++)
		outcome = json_patch_apply(SLICE("[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},"
		                                 "{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/a/a/a/a/a\"}]"),
		                           root, &arena, &err);
	assert_int_equal(outcome, JSON_PATCH_RESOURCE);
	assert_in_range(copies, 2, 20);
	buffer_init(&text, (size_t)1024 * 1024);
	assert_true(json_tree_print(root, &text, &err));
	assert_true(json_tree_parse(buffer_slice(&text), &arena, &again, &err));
	buffer_destroy(&text);
	arena_destroy(&arena);
}

static void running_out_of_memory_is_told(void **state)
{
	static const char PATCH[] =
		"[{\"op\":\"add\",\"path\":\"/a~1b\",\"value\":{\"c\":[1,\"\\n\"]}},{\"op\":\"copy\",\"from\":\"/a~1b\",\"path\":\"/d\"}]";
	size_t limit = 64;
	enum json_patch_outcome outcome;

	(void)state;
	do {
		struct arena arena;
		struct arena small;
		struct json_node *root;
		struct error err;

		arena_init(&arena, ARENA_BYTES);
		arena_init(&small, limit);
		root = parse(&arena, "{}");
		outcome = json_patch_apply(slice_of(PATCH), root, &small, &err);
		if (outcome != JSON_PATCH_DONE)
			assert_int_equal(outcome, JSON_PATCH_RESOURCE);
		arena_destroy(&small);
		arena_destroy(&arena);
		limit += 64;
	} while (outcome != JSON_PATCH_DONE && limit < 64 * 1024);
	assert_int_equal(outcome, JSON_PATCH_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_patches_do_as_the_api_server),
		cmocka_unit_test(merge_patches_do_as_their_rfc),
		cmocka_unit_test(too_many_operations_are_refused),
		cmocka_unit_test(a_patch_cant_make_an_object_deeper_than_can_be_read),
		cmocka_unit_test(running_out_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
