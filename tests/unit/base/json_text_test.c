#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_text.h"
#include "base/rng.h"

static const char *string_of(struct buffer *buffer, struct slice text, bool escape_html)
{
	buffer_clear(buffer);
	json_text_append_string(buffer, text, escape_html);
	buffer_append_char(buffer, '\0');
	return buffer->data;
}

static const char *number_of(struct buffer *buffer, double value, bool single)
{
	buffer_clear(buffer);
	assert_true(json_text_append_number(buffer, value, single));
	buffer_append_char(buffer, '\0');
	return buffer->data;
}

static void strings_are_quoted_and_escaped(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 1000);
	assert_string_equal(string_of(&buffer, SLICE(""), true), "\"\"");
	assert_string_equal(string_of(&buffer, SLICE("plain \xc3\xa9 \x7f"), true), "\"plain \xc3\xa9 \x7f\"");
	assert_string_equal(string_of(&buffer, SLICE("a\"b\\c/d"), true), "\"a\\\"b\\\\c/d\"");
	assert_string_equal(string_of(&buffer, SLICE("\b\f\n\r\t"), false), "\"\\b\\f\\n\\r\\t\"");
	assert_string_equal(string_of(&buffer, SLICE("\0\x01\x1f"), false), "\"\\u0000\\u0001\\u001f\"");
	buffer_destroy(&buffer);
}

static void html_characters_are_escaped_on_request(void **state)
{
	(void)state;
	struct buffer buffer;
	struct slice text = SLICE("<a&b> \xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa");

	buffer_init(&buffer, 1000);
	assert_string_equal(string_of(&buffer, text, true), "\"\\u003ca\\u0026b\\u003e \\u2028\\u2029\xe2\x80\xaa\"");
	assert_string_equal(string_of(&buffer, text, false), "\"<a&b> \xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\"");
	buffer_destroy(&buffer);
}

enum { PLACES = 36 };

/* A text of so many p, and one other character among them, comes out with `written` in that place. */
static void assert_written(struct buffer *buffer, size_t length, size_t at, char character, const char *written,
                           bool escape_html)
{
	static const char PLAIN[] = "pppppppppppppppppppppppppppppppppppp";
	char text[PLACES];
	char expected[4 * PLACES];

	memset(text, 'p', length);
	text[at] = character;
	(void)snprintf(expected, sizeof expected, "\"%.*s%s%.*s\"", (int)at, PLAIN, written, (int)(length - at - 1),
	               PLAIN);
	assert_string_equal(string_of(buffer, slice_from(text, length), escape_html), expected);
}

/* Wherever it stands in the blocks that plain text is copied in. */
static void a_special_character_is_found_at_any_place(void **state)
{
	static const struct {
		char character;
		const char *html;
		const char *text;
	} CASES[] = {
		{ '"', "\\\"", "\\\"" }, { '\\', "\\\\", "\\\\" }, { '\n', "\\n", "\\n" },
		{ '<', "\\u003c", "<" }, { '>', "\\u003e", ">" },  { '&', "\\u0026", "&" },
		{ '=', "=", "=" },       { '$', "$", "$" },        { '\x7f', "\x7f", "\x7f" },
	};
	struct buffer buffer;

	(void)state;
	buffer_init(&buffer, 4096);
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		for (size_t length = 1; length <= PLACES; length++) {
			for (size_t at = 0; at < length; at++) {
				assert_written(&buffer, length, at, CASES[i].character, CASES[i].html, true);
				assert_written(&buffer, length, at, CASES[i].character, CASES[i].text, false);
			}
		}
	}
	buffer_destroy(&buffer);
}

static void each_byte_that_is_no_utf8_becomes_the_replacement_character(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 1000);
	assert_string_equal(string_of(&buffer, SLICE("a\xff\xc3z"), false), "\"a\\ufffd\\ufffdz\"");
	assert_string_equal(string_of(&buffer, SLICE("\xed\xa0\x80"), false), "\"\\ufffd\\ufffd\\ufffd\"");
	assert_string_equal(string_of(&buffer, SLICE("cut \xe2\x82"), false), "\"cut \\ufffd\\ufffd\"");
	buffer_destroy(&buffer);
}

static void a_string_over_the_limit_fails_the_buffer(void **state)
{
	(void)state;
	struct buffer buffer;
	char text[300];

	memset(text, '\x01', sizeof text);
	buffer_init(&buffer, 600);
	json_text_append_string(&buffer, slice_from(text, sizeof text), false);
	assert_true(buffer.failed);
	buffer_destroy(&buffer);
}

struct number_case {
	double value;
	const char *text;
};

/* Spec protocols 1.2.3, 5.2 and its vectors P28–P32, P34. */
static const struct number_case DOUBLES[] = {
	{ 0, "0" },
	{ -0.0, "-0" },
	{ 1, "1" },
	{ -1, "-1" },
	{ 100, "100" },
	{ 0.25, "0.25" },
	{ 0.1, "0.1" },
	{ 0.3, "0.3" },
	{ 0.1 + 0.2, "0.30000000000000004" },
	{ 700 * 0.001, "0.7000000000000001" },
	{ 1001 * 0.001, "1.0010000000000001" },
	{ 2300 * 0.001, "2.3000000000000003" },
	{ 4700 * 0.001, "4.7" },
	{ 9 * 0.001, "0.009000000000000001" },
	{ 123456.789, "123456.789" },
	{ 1e-6, "0.000001" },
	{ 1.5e-6, "0.0000015" },
	{ 9.999999999999997e-7, "9.999999999999997e-7" },
	{ 1e-7, "1e-7" },
	{ -1.25e-7, "-1.25e-7" },
	{ 1e-10, "1e-10" },
	{ 1e20, "100000000000000000000" },
	{ 123456789012345680000.0, "123456789012345680000" },
	{ 999999999999999900000.0, "999999999999999900000" },
	{ 1e21, "1e+21" },
	{ 1.2345e22, "1.2345e+22" },
	{ 1e100, "1e+100" },
	{ 9007199254740991, "9007199254740991" },
	{ 9007199254740992, "9007199254740992" },
	{ 9007199254740994, "9007199254740994" },
	{ 18446744073709551616.0, "18446744073709552000" },
	{ 0x1p-44, "5.684341886080802e-14" }, /* powers of two, where the gap below is half as wide */
	{ 0x1p-1022, "2.2250738585072014e-308" },
	{ 9.5367431640625e-7, "9.5367431640625e-7" },
	{ 2.225073858507201e-308, "2.225073858507201e-308" }, /* the largest subnormal */
	{ 5e-324, "5e-324" },
	{ 1e-323, "1e-323" },
	{ 1.7976931348623157e+308, "1.7976931348623157e+308" },
	{ -1.7976931348623157e+308, "-1.7976931348623157e+308" },
	{ 5e-324 * 4503599627370497, "2.225073858507202e-308" },
	{ 1700000000.123456, "1700000000.123456" },
};

static const struct number_case SINGLES[] = {
	{ 0.1F, "0.1" },
	{ 0.37F, "0.37" },
	{ 1e-7F, "1e-7" },
	{ 1e-6F, "0.000001" },
	{ -0.0F, "-0" },
	{ 16777216.0F, "16777216" },
	{ 123456789012.0F, "123456790000" },
	{ 1e21F, "1e+21" },
	{ 1e20F, "100000000000000000000" },
	{ 3.4028234663852886e38F, "3.4028235e+38" },
	{ 1e-45F, "1e-45" },
	{ 1.17549435e-38F, "1.1754944e-38" },
	{ 0.33333334F, "0.33333334" },
	{ 8388608.5F, "8388608" },
	{ 0x1p-126F, "1.1754944e-38" },
	{ 0x1p90F, "1.2379401e+27" },
};

static void numbers_are_the_shortest_that_read_back(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 100);
	for (size_t i = 0; i < sizeof DOUBLES / sizeof DOUBLES[0]; i++)
		assert_string_equal(number_of(&buffer, DOUBLES[i].value, false), DOUBLES[i].text);
	for (size_t i = 0; i < sizeof SINGLES / sizeof SINGLES[0]; i++)
		assert_string_equal(number_of(&buffer, SINGLES[i].value, true), SINGLES[i].text);
	buffer_destroy(&buffer);
}

static void any_number_reads_back_as_itself(void **state)
{
	(void)state;
	struct buffer buffer;
	struct rng rng;

	buffer_init(&buffer, 100);
	rng_seed(&rng, 1);
	for (int i = 0; i < 20000; i++) {
		uint64_t bits = rng_next(&rng);
		double value;

		memcpy(&value, &bits, sizeof value);
		if (!isfinite(value))
			continue;
		assert_true(strtod(number_of(&buffer, value, false), NULL) == value);

		uint32_t half = (uint32_t)bits;
		float single;

		memcpy(&single, &half, sizeof single);
		if (isfinite(single))
			assert_true(strtof(number_of(&buffer, single, true), NULL) == single);
	}
	buffer_destroy(&buffer);
}

/* Decimals of up to 15 digits come back as they were. */
static void a_short_decimal_comes_back_as_it_was(void **state)
{
	enum { COUNT = 20000, DECIMALS_MOST = 9 };
	struct buffer buffer;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 2);
	buffer_init(&buffer, 1024);
	for (int i = 0; i < COUNT; i++) {
		unsigned decimals = (unsigned)rng_between(&rng, 1, DECIMALS_MOST + 1);
		char text[32];
		size_t length;

		(void)snprintf(text, sizeof text, "%llu.",
		               (unsigned long long)rng_between(&rng, 0, i % 2 == 0 ? 1000 : 3000000));
		for (unsigned k = 0; k + 1 < decimals; k++) {
			length = strlen(text);
			(void)snprintf(text + length, sizeof text - length, "%u", (unsigned)rng_between(&rng, 0, 10));
		}
		length = strlen(text);
		(void)snprintf(text + length, sizeof text - length, "%u", (unsigned)rng_between(&rng, 1, 10));
		if (strlen(text) > 15 || strtod(text, NULL) < 1e-6)
			continue;
		assert_string_equal(number_of(&buffer, strtod(text, NULL), false), text);
	}
	buffer_destroy(&buffer);
}

static void what_json_has_no_number_for_appends_nothing(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 100);
	assert_false(json_text_append_number(&buffer, (double)NAN, false));
	assert_false(json_text_append_number(&buffer, (double)INFINITY, false));
	assert_false(json_text_append_number(&buffer, -(double)INFINITY, true));
	assert_int_equal(buffer.length, 0);
	assert_false(buffer.failed);
	buffer_destroy(&buffer);
}

static void the_locale_does_not_matter(void **state)
{
	(void)state;
	struct buffer buffer;
	const char *changed = setlocale(LC_NUMERIC, "de_DE.UTF-8");

	buffer_init(&buffer, 100);
	if (changed == NULL)
		changed = setlocale(LC_NUMERIC, "de_DE");
	assert_string_equal(number_of(&buffer, 0.7000000000000001, false), "0.7000000000000001");
	setlocale(LC_NUMERIC, "C");
	buffer_destroy(&buffer);
	if (changed == NULL)
		skip(); /* no such locale on this machine */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_quoted_and_escaped),
		cmocka_unit_test(html_characters_are_escaped_on_request),
		cmocka_unit_test(a_special_character_is_found_at_any_place),
		cmocka_unit_test(each_byte_that_is_no_utf8_becomes_the_replacement_character),
		cmocka_unit_test(a_string_over_the_limit_fails_the_buffer),
		cmocka_unit_test(numbers_are_the_shortest_that_read_back),
		cmocka_unit_test(any_number_reads_back_as_itself),
		cmocka_unit_test(a_short_decimal_comes_back_as_it_was),
		cmocka_unit_test(what_json_has_no_number_for_appends_nothing),
		cmocka_unit_test(the_locale_does_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
