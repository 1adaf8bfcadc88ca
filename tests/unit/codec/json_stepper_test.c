/* The stepper against the reader, which checks whole texts: the same verdict, wherever the text is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "codec/json_limits.h"
#include "codec/json_reader.h"
#include "codec/json_stepper.h"

enum { ARENA_BYTES = 1 << 20, LOG_BYTES = 1 << 16, EVENT_DEPTH = 2 };

static bool note(void *context, struct slice text, enum json_event event, int depth, size_t offset, struct error *err)
{
	static const char LETTERS[] = { 'k', 'K', 'v', 'V' };

	(void)text;
	(void)err;
	buffer_append_format(context, "%c%d@%zu ", LETTERS[event], depth, offset);
	return true;
}

/* Steps over text in pieces of some length; the events go into the log. */
static bool walk(struct slice text, size_t piece, struct buffer *log, struct error *err)
{
	struct json_stepper stepper;

	buffer_clear(log);
	json_stepper_init(&stepper, EVENT_DEPTH, note, log);
	for (size_t at = 0; at < text.length;) {
		at += text.length - at < piece ? text.length - at : piece;
		if (!json_stepper_step(&stepper, slice_from(text.data, at), err))
			return false;
	}
	return json_stepper_finish(&stepper, text, err);
}

static bool reader_takes(struct slice text)
{
	struct json_reader reader;
	struct arena arena;
	struct error err;
	bool ok;

	arena_init(&arena, ARENA_BYTES);
	ok = json_reader_open(&reader, text, &arena, &err);
	arena_destroy(&arena);
	return ok;
}

static void check_text(struct slice text)
{
	struct buffer whole;
	struct buffer cut;
	struct error err = { 0 };
	struct error cut_err = { 0 };
	bool ok;

	buffer_init(&whole, LOG_BYTES);
	buffer_init(&cut, LOG_BYTES);
	ok = walk(text, SIZE_MAX, &whole, &err);
	if (ok != reader_takes(text))
		fail_msg("%.*s: %s", SLICE_ARGS(text), ok ? "taken" : err.text);
	for (size_t piece = 1; piece <= 3; piece++) {
		if (walk(text, piece, &cut, &cut_err) != ok || strcmp(err.text, cut_err.text) != 0)
			fail_msg("%.*s in pieces of %zu: %s", SLICE_ARGS(text), piece, cut_err.text);
		if (!slice_equal(buffer_slice(&whole), buffer_slice(&cut)))
			fail_msg("%.*s in pieces of %zu: %.*s", SLICE_ARGS(text), piece,
			         SLICE_ARGS(buffer_slice(&cut)));
	}
	buffer_destroy(&whole);
	buffer_destroy(&cut);
}

static const char *const TEXTS[] = {
	"{}",
	"[]",
	" [ 1 , -2.5e+3 , 0 , 1E9,-0.1 ] ",
	"{\"a\":{\"b\":[{\"c\":\"\\\"}]\"},null,true,false]},\"d\" : \"\\u00e4\\n\xc3\xa4\"}",
	"\"text\" behind",
	"12 ",
	"12",
	"-",
	"1.",
	"1e",
	"01",
	"true",
	"tru",
	"trux",
	"nulll",
	"",
	"  ",
	"{",
	"{\"a\"",
	"{\"a\":",
	"{\"a\":1",
	"{\"a\":1,",
	"{\"a\":1,}",
	"{,}",
	"{1:2}",
	"{\"a\" 1}",
	"{\"a\":1 \"b\":2}",
	"[1,]",
	"[,1]",
	"[1 2]",
	"[1}",
	"{\"a\":1]",
	"]",
	"'a'",
	"\"a",
	"\"a\\",
	"\"a\\x\"",
	"\"\\u12",
	"\"\\u12g4\"",
	"\"a\x01\"",
	"[\"\\ud800\",\"\xff\"]",
	"+1",
	".5",
	"[0x1]",
	"[1.5.2]",
	"[-]",
	"[--1]",
	"{\"a\":{\"b\":{\"c\":[[[[]]]]}}} {",
};

static void takes_what_the_reader_takes_however_it_is_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
		struct slice text = slice_of(TEXTS[i]);

		for (size_t length = 0; length <= text.length; length++)
			check_text(slice_from(text.data, length));
	}
}

/* Each byte of the valid ones replaced by what might upset a parser. */
static void takes_what_the_reader_takes_with_a_byte_changed(void **state)
{
	static const char BYTES[] = "{}[],:\"\\ 0-.eEtx\n\x01\xff";
	char changed[128];

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
		size_t length = strlen(TEXTS[i]);

		for (size_t at = 0; at < length; at++) {
			for (size_t j = 0; j < sizeof BYTES - 1; j++) {
				memcpy(changed, TEXTS[i], length + 1);
				changed[at] = BYTES[j];
				check_text(slice_from(changed, length));
			}
		}
	}
}

static void tells_where_keys_and_values_are(void **state)
{
	struct buffer log;
	struct error err;

	(void)state;
	buffer_init(&log, LOG_BYTES);
	assert_true(walk(SLICE("{\"a\":[1,{\"b\":[]}],\"c\":null}"), SIZE_MAX, &log, &err));
	buffer_append_char(&log, '\0');
	assert_string_equal(log.data, "v0@0 k1@1 K1@4 v1@5 v2@6 V2@7 v2@8 V2@16 V1@17 k1@18 K1@21 v1@22 V1@26 V0@27 ");
	buffer_destroy(&log);
}

static void says_why_a_text_is_no_value(void **state)
{
	static const struct {
		const char *text;
		enum error_code code;
		const char *error;
	} CASES[] = {
		{ "", ERROR_ENDED, "EOF" },
		{ " \n", ERROR_ENDED, "EOF" },
		{ "{", ERROR_CLOSED, "unexpected EOF" },
		{ "tr", ERROR_CLOSED, "unexpected EOF" },
		{ "-", ERROR_CLOSED, "unexpected EOF" },
		{ "\"", ERROR_CLOSED, "unexpected EOF" },
		{ "x", ERROR_SYNTAX, "invalid character 'x' looking for beginning of value" },
		{ "{'", ERROR_SYNTAX, "invalid character '\\'' looking for beginning of object key string" },
		{ "[1\x01", ERROR_SYNTAX, "invalid character '\\x01' after array element" },
	};
	struct buffer log;
	struct error err;

	(void)state;
	buffer_init(&log, LOG_BYTES);
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		assert_false(walk(slice_of(CASES[i].text), SIZE_MAX, &log, &err));
		assert_int_equal(err.code, CASES[i].code);
		assert_string_equal(err.text, CASES[i].error);
	}
	buffer_destroy(&log);
}

static void bounds_depth_and_numbers(void **state)
{
	char text[JSON_MAX_NUMBER_BYTES + 2];
	struct buffer log;
	struct error err;

	(void)state;
	buffer_init(&log, LOG_BYTES);
	memset(text, '[', sizeof text);
	assert_false(walk(slice_from(text, JSON_MAX_DEPTH), SIZE_MAX, &log, &err));
	assert_string_equal(err.text, "unexpected EOF");
	assert_false(walk(slice_from(text, JSON_MAX_DEPTH + 1), SIZE_MAX, &log, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	memset(text, '1', sizeof text);
	assert_true(walk(slice_from(text, JSON_MAX_NUMBER_BYTES), 1, &log, &err));
	assert_false(walk(slice_from(text, JSON_MAX_NUMBER_BYTES + 1), 1, &log, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	buffer_destroy(&log);
}

static bool refuse(void *context, struct slice text, enum json_event event, int depth, size_t offset, struct error *err)
{
	(void)context;
	(void)text;
	(void)depth;
	(void)offset;
	return event != JSON_EVENT_END || error_set(err, ERROR_REFUSED, "enough");
}

static void stops_where_the_callback_says_so(void **state)
{
	struct json_stepper stepper;
	struct error err;

	(void)state;
	json_stepper_init(&stepper, 1, refuse, NULL);
	assert_false(json_stepper_step(&stepper, SLICE("[1,2]"), &err));
	assert_int_equal(err.code, ERROR_REFUSED);
	assert_false(json_stepper_step(&stepper, SLICE("[1,2]"), &err));
	assert_int_equal(err.code, ERROR_SYNTAX);
	assert_false(json_stepper_done(&stepper));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_the_reader_takes_however_it_is_cut),
		cmocka_unit_test(takes_what_the_reader_takes_with_a_byte_changed),
		cmocka_unit_test(tells_where_keys_and_values_are),
		cmocka_unit_test(says_why_a_text_is_no_value),
		cmocka_unit_test(bounds_depth_and_numbers),
		cmocka_unit_test(stops_where_the_callback_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
