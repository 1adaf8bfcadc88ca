#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "codec/json_blocks.h"
#include "codec/json_splitter.h"

enum { MAX_BYTES = 1024 * 1024, MAX_VALUES = 64 };

/* What a splitter gave, as one text: values, each followed by a newline. */
struct given {
	struct buffer text;
	size_t stop_after; /* the callback fails at this value; 0: never */
	size_t count;
	const char *feed_start; /* to see whether values were copied */
	const char *feed_end;
	size_t copied;
};

static struct given given;
static struct json_splitter splitter;
static struct error err;

static int set_up(void **state)
{
	(void)state;
	given = (struct given){ 0 };
	buffer_init(&given.text, MAX_BYTES);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	buffer_destroy(&given.text);
	return 0;
}

static bool take(void *context, struct slice value, struct error *error)
{
	struct given *to = context;

	if (value.data < to->feed_start || value.data >= to->feed_end)
		to->copied++;
	buffer_append_slice(&to->text, value);
	buffer_append_char(&to->text, '\n');
	to->count++;
	if (to->count == to->stop_after)
		return error_set(error, ERROR_REFUSED, "enough");
	return true;
}

/* Feeds text in pieces of `step` bytes, each a block of its own, so that reading beyond a piece is noticed. */
static bool feed(struct slice text, size_t step)
{
	for (size_t at = 0; at < text.length; at += step) {
		size_t length = text.length - at < step ? text.length - at : step;
		char *piece = memory_copy_text(text.data + at, length);
		bool ok;

		assert_non_null(piece);
		given.feed_start = piece;
		given.feed_end = piece + length;
		ok = json_splitter_feed(&splitter, slice_from(piece, length), &err);
		memory_release(piece);
		if (!ok)
			return false;
	}
	return true;
}

static bool split(enum json_splitter_mode mode, const char *key, struct slice text, size_t step, char *envelope,
                  size_t size)
{
	struct slice rest = { 0 };
	bool ok;

	buffer_clear(&given.text);
	given.count = 0;
	given.copied = 0;
	json_splitter_init(&splitter, mode, slice_of(key), MAX_BYTES, MAX_BYTES, take, &given);
	ok = feed(text, step) && json_splitter_finish(&splitter, &rest, &err);
	if (ok && envelope != NULL)
		snprintf(envelope, size, "%.*s", SLICE_ARGS(rest));
	json_splitter_destroy(&splitter);
	return ok;
}

static void assert_given(const char *expected)
{
	assert_true(slice_equal_text(buffer_slice(&given.text), expected));
}

static void values_come_one_by_one(void **state)
{
	static const char TEXT[] = " {\"a\":[1,\"}\"]}\n{}\n\n[]\"x\\\"y\" 12 true\nnull [{\"b\":\"\\\\\"}] -1.5e3";

	(void)state;
	for (size_t step = 1; step <= sizeof TEXT; step++) {
		assert_true(split(JSON_SPLITTER_VALUES, "", slice_of(TEXT), step, NULL, 0));
		assert_given("{\"a\":[1,\"}\"]}\n{}\n[]\n\"x\\\"y\"\n12\ntrue\nnull\n[{\"b\":\"\\\\\"}]\n-1.5e3\n");
	}
}

static void a_stream_of_values_may_be_empty_but_not_incomplete(void **state)
{
	static const char *const CUT[] = { "{", "{\"a\":1", "[\"x\"", "\"x", "\"x\\", "{} {" };

	(void)state;
	assert_true(split(JSON_SPLITTER_VALUES, "", SLICE(""), 1, NULL, 0));
	assert_true(split(JSON_SPLITTER_VALUES, "", SLICE(" \n"), 1, NULL, 0));
	for (size_t i = 0; i < sizeof CUT / sizeof CUT[0]; i++) {
		assert_false(split(JSON_SPLITTER_VALUES, "", slice_of(CUT[i]), 3, NULL, 0));
		assert_int_equal(err.code, ERROR_SYNTAX);
		assert_string_equal(err.text, "unexpected end of JSON input");
	}
}

static void stray_characters_between_values_are_an_error(void **state)
{
	static const char *const TEXTS[] = { "}", "{}}", "],", "{},{}", ":", "\x01{}" };

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++)
		assert_false(split(JSON_SPLITTER_VALUES, "", slice_of(TEXTS[i]), 1, NULL, 0));
}

static void a_list_gives_its_items_and_keeps_the_rest(void **state)
{
	static const struct {
		const char *text;
		const char *items;
		const char *envelope;
	} CASES[] = {
		{ "{\"kind\":\"L\",\"items\":[{\"a\":1},{\"b\":[2,\"]\"]}],\"metadata\":{}}",
		  "{\"a\":1}\n{\"b\":[2,\"]\"]}\n", "{\"kind\":\"L\",\"items\":[],\"metadata\":{}}" },
		{ "{\"items\":[{}],\"metadata\":{\"items\":[1,2]}}", "{}\n",
		  "{\"items\":[],\"metadata\":{\"items\":[1,2]}}" },
		{ "{\"metadata\":{\"items\":[1]},\"x\":[\"items\",[2]],\"items\":[3 , \"4\",[5] ,null ]}",
		  "3\n\"4\"\n[5]\nnull\n", "{\"metadata\":{\"items\":[1]},\"x\":[\"items\",[2]],\"items\":[]}" },
		{ "{\"a\":\"items\",\"items\":null,\"b\":[1]}", "", "{\"a\":\"items\",\"items\":null,\"b\":[1]}" },
		{ "{\"items\":{\"x\":[1]},\"b\":2}", "", "{\"items\":{\"x\":[1]},\"b\":2}" },
		{ "{\"items\":\"[1]\"}", "", "{\"items\":\"[1]\"}" },
		{ "{\"a\":[7]}", "", "{\"a\":[7]}" },
		{ " { \"it\\u0065ms\" : [ 1 ] } ", "1\n", "{ \"it\\u0065ms\" : [] }" },
		{ "{\"a\\\"items\":[0],\"items\":[]}\n", "", "{\"a\\\"items\":[0],\"items\":[]}" },
		{ "{}", "", "{}" },
		{ "{\"items\":[1]}", "1\n", "{\"items\":[]}" },
	};
	char envelope[256];

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		for (size_t step = 1; step <= strlen(CASES[i].text) + 1; step++) {
			assert_true(split(JSON_SPLITTER_LIST, "items", slice_of(CASES[i].text), step, envelope,
			                  sizeof envelope));
			assert_given(CASES[i].items);
			assert_string_equal(envelope, CASES[i].envelope);
		}
	}
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const TEXTS[] = {
		"",
		" ",
		"[1]",
		"1",
		"{\"items\":[1,]}",
		"{\"items\":[,1]}",
		"{\"items\":[1 2]}",
		"{\"items\":[{} {}]}",
		"{\"items\":[1:2]}",
		"{\"items\":[}",
		"{\"items\":[1",
		"{\"items\":[1]",
		"{\"items\":[]} {}",
		"{\"items\":[]}]",
		"{\"items\":[1],\"items\":[2]}",
		"{\"a\":1",
		"{\"it\\ems\":[1]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
		for (size_t step = 1; step <= strlen(TEXTS[i]) + 1; step++) {
			if (split(JSON_SPLITTER_LIST, "items", slice_of(TEXTS[i]), step, NULL, 0))
				fail_msg("%s was accepted", TEXTS[i]);
			assert_int_equal(err.code, ERROR_SYNTAX);
		}
	}
}

static void only_values_that_span_feeds_are_copied(void **state)
{
	static const char TEXT[] = "{\"a\":1}{\"b\":2}{\"c\":3}";

	(void)state;
	assert_true(split(JSON_SPLITTER_VALUES, "", slice_of(TEXT), sizeof TEXT, NULL, 0));
	assert_int_equal(given.count, 3);
	assert_int_equal(given.copied, 0);
	assert_true(split(JSON_SPLITTER_VALUES, "", slice_of(TEXT), 10, NULL, 0));
	assert_int_equal(given.count, 3);
	assert_int_equal(given.copied, 2);
}

static void a_value_that_is_too_long_is_refused_however_it_comes(void **state)
{
	static const char TEXT[] = "{\"a\":\"0123456789\"}";
	const size_t length = sizeof TEXT - 1;

	(void)state;
	for (size_t step = 1; step <= length; step++) {
		json_splitter_init(&splitter, JSON_SPLITTER_VALUES, SLICE(""), length, 0, take, &given);
		assert_true(feed(slice_of(TEXT), step));
		json_splitter_destroy(&splitter);
		json_splitter_init(&splitter, JSON_SPLITTER_VALUES, SLICE(""), length - 1, 0, take, &given);
		assert_false(feed(slice_of(TEXT), step));
		assert_int_equal(err.code, ERROR_LIMIT);
		json_splitter_destroy(&splitter);
	}
}

static void an_envelope_that_is_too_long_is_refused(void **state)
{
	static const char TEXT[] = "{\"items\":[{\"long\":\"0123456789012345678901234567890123456789\"}]}";

	(void)state;
	json_splitter_init(&splitter, JSON_SPLITTER_LIST, SLICE("items"), MAX_BYTES, 12, take, &given);
	assert_true(feed(slice_of(TEXT), 7));
	json_splitter_destroy(&splitter);
	json_splitter_init(&splitter, JSON_SPLITTER_LIST, SLICE("items"), MAX_BYTES, 11, take, &given);
	assert_false(feed(slice_of(TEXT), 7));
	assert_int_equal(err.code, ERROR_LIMIT);
	json_splitter_destroy(&splitter);
}

static void the_callback_can_stop_the_feed(void **state)
{
	(void)state;
	given.stop_after = 2;
	json_splitter_init(&splitter, JSON_SPLITTER_VALUES, SLICE(""), MAX_BYTES, 0, take, &given);
	assert_false(feed(SLICE("{}{}{}"), 6));
	assert_int_equal(err.code, ERROR_REFUSED);
	assert_string_equal(err.text, "enough");
	assert_int_equal(given.count, 2);
	json_splitter_destroy(&splitter);
}

/* --- real captures --- */

static void read_file(const char *path, struct buffer *text)
{
	FILE *file = fopen(path, "rb");
	char *room = buffer_reserve(text, MAX_BYTES / 2);

	assert_non_null(file);
	assert_non_null(room);
	buffer_advance(text, fread(room, 1, MAX_BYTES / 2, file));
	fclose(file);
}

/* Cut in two at every position, a capture gives the same as in one piece. */
static void assert_same_at_every_cut(enum json_splitter_mode mode, const char *path, size_t expected_count)
{
	struct buffer text;
	struct buffer whole;
	struct slice rest;

	buffer_init(&text, MAX_BYTES);
	buffer_init(&whole, MAX_BYTES);
	read_file(path, &text);
	assert_true(split(mode, "items", buffer_slice(&text), text.length, NULL, 0));
	assert_int_equal(given.count, expected_count);
	buffer_append_slice(&whole, buffer_slice(&given.text));
	for (size_t cut = 0; cut <= text.length; cut++) {
		buffer_clear(&given.text);
		json_splitter_init(&splitter, mode, SLICE("items"), MAX_BYTES, MAX_BYTES, take, &given);
		assert_true(json_splitter_feed(&splitter, slice_from(text.data, cut), &err));
		assert_true(json_splitter_feed(&splitter, slice_from_offset(buffer_slice(&text), cut), &err));
		assert_true(json_splitter_finish(&splitter, &rest, &err));
		json_splitter_destroy(&splitter);
		assert_true(slice_equal(buffer_slice(&given.text), buffer_slice(&whole)));
	}
	assert_true(split(mode, "items", buffer_slice(&text), 1, NULL, 0));
	assert_true(slice_equal(buffer_slice(&given.text), buffer_slice(&whole)));
	buffer_destroy(&text);
	buffer_destroy(&whole);
}

static void a_real_list_is_the_same_at_every_cut(void **state)
{
	(void)state;
	assert_same_at_every_cut(JSON_SPLITTER_LIST, TESTS_DIR "/data/kube/vm-list.json", 3);
}

static void a_real_watch_is_the_same_at_every_cut(void **state)
{
	(void)state;
	assert_same_at_every_cut(JSON_SPLITTER_VALUES, TESTS_DIR "/data/kube/vm-watch.ndjson", 8);
}

/* --- blocks --- */

/* What json_skip_blocks claims to have gone over, done one character at a time. */
static void walk(const char *at, const char *end, int *depth, bool *in_string, bool *escaped)
{
	for (; at < end; at++) {
		if (*escaped) {
			*escaped = false;
		} else if (*at == '\\') {
			*escaped = true;
		} else if (*at == '"') {
			*in_string = !*in_string;
		} else if (!*in_string) {
			*depth += *at == '{' || *at == '[';
			*depth -= *at == '}' || *at == ']';
		}
	}
}

static void blocks_agree_with_single_steps(void **state)
{
	static const char ALPHABET[] = "{}[]\"\\a,: \xe2";
	struct rng rng;
	char text[512];
	size_t skipped = 0;

	(void)state;
	rng_seed(&rng, 11);
	for (int round = 0; round < 20000; round++) {
		int depth = (int)rng_between(&rng, 0, 40);
		bool in_string = rng_between(&rng, 0, 2) == 1;
		bool escaped = in_string && rng_between(&rng, 0, 2) == 1;
		int expected_depth = depth;
		bool expected_string = in_string;
		bool expected_escaped = escaped;
		/* Mostly backslashes now and then: long runs of them are the hard part. */
		size_t letters = rng_between(&rng, 0, 4) == 0 ? 6 : sizeof ALPHABET - 1;
		const char *stop;

		for (size_t i = 0; i < sizeof text; i++)
			text[i] = letters == 6 && rng_between(&rng, 0, 2) == 0
			                  ? '\\'
			                  : ALPHABET[rng_between(&rng, 0, letters)];
		stop = json_skip_blocks(text, text + sizeof text, &depth, &in_string, &escaped);
		assert_true((stop - text) % JSON_BLOCK_BYTES == 0);
		skipped += (size_t)(stop - text);
		walk(text, stop, &expected_depth, &expected_string, &expected_escaped);
		assert_int_equal(depth, expected_depth);
		assert_int_equal(in_string, expected_string);
		assert_int_equal(escaped, expected_escaped);
	}
	assert_true(skipped > 100000);
}

static void cuts_do_not_depend_on_the_feeds_even_in_what_is_no_json(void **state)
{
	static const char ALPHABET[] = "{}[]\"\\a,: ";
	struct buffer whole;
	struct rng rng;
	char text[300];

	(void)state;
	buffer_init(&whole, MAX_BYTES);
	rng_seed(&rng, 12);
	for (int round = 0; round < 2000; round++) {
		bool expected;

		for (size_t i = 0; i < sizeof text; i++)
			text[i] = i < 100 ? '[' : ALPHABET[rng_between(&rng, 0, sizeof ALPHABET - 1)];
		expected = split(JSON_SPLITTER_VALUES, "", slice_from(text, sizeof text), sizeof text, NULL, 0);
		buffer_clear(&whole);
		buffer_append_slice(&whole, buffer_slice(&given.text));
		assert_int_equal(
			split(JSON_SPLITTER_VALUES, "", slice_from(text, sizeof text), 1 + (size_t)round % 97, NULL, 0),
			expected);
		assert_true(slice_equal(buffer_slice(&given.text), buffer_slice(&whole)));
	}
	buffer_destroy(&whole);
}

static void failing_memory_is_an_error(void **state)
{
	(void)state;
	json_splitter_init(&splitter, JSON_SPLITTER_VALUES, SLICE(""), MAX_BYTES, 0, take, &given);
	memory_fail_at(1);
	assert_false(json_splitter_feed(&splitter, SLICE("{\"a\":"), &err));
	memory_fail_at(0);
	assert_int_equal(err.code, ERROR_NO_MEMORY);
	json_splitter_destroy(&splitter);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values_come_one_by_one),
		TEST(a_stream_of_values_may_be_empty_but_not_incomplete),
		TEST(stray_characters_between_values_are_an_error),
		TEST(a_list_gives_its_items_and_keeps_the_rest),
		TEST(what_is_no_list_is_refused),
		TEST(only_values_that_span_feeds_are_copied),
		TEST(a_value_that_is_too_long_is_refused_however_it_comes),
		TEST(an_envelope_that_is_too_long_is_refused),
		TEST(the_callback_can_stop_the_feed),
		TEST(a_real_list_is_the_same_at_every_cut),
		TEST(a_real_watch_is_the_same_at_every_cut),
		TEST(blocks_agree_with_single_steps),
		TEST(cuts_do_not_depend_on_the_feeds_even_in_what_is_no_json),
		TEST(failing_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
