#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/slice.h"

static const struct slice EMPTY = { .data = NULL, .length = 0 };

#define assert_slice(slice, text) assert_true(slice_equal_text((slice), (text)))

static void slices_are_equal_by_their_bytes(void **state)
{
	(void)state;
	assert_true(slice_equal(SLICE("abc"), slice_of("abc")));
	assert_false(slice_equal(SLICE("abc"), SLICE("abd")));
	assert_false(slice_equal(SLICE("abc"), SLICE("ab")));
	assert_true(slice_equal(EMPTY, SLICE("")));
	assert_true(slice_equal(slice_of(NULL), EMPTY));
	assert_false(slice_equal(SLICE("a\0b"), SLICE("a\0c")));
}

static void folding_concerns_ascii_letters_only(void **state)
{
	(void)state;
	assert_true(slice_equal_fold(SLICE("VCpus-1"), SLICE("vcPUS-1")));
	assert_false(slice_equal_fold(SLICE("a"), SLICE("b")));
	assert_false(slice_equal_fold(SLICE("@"), SLICE("`"))); /* 0x40 and 0x60 */
	assert_false(slice_equal_fold(SLICE("["), SLICE("{"))); /* 0x5b and 0x7b */
	assert_false(slice_equal_fold(SLICE("\xc3\xa9"), SLICE("\xc3\x89")));
	assert_false(slice_equal_fold(SLICE("ab"), SLICE("abc")));
}

static void order_is_bytewise_and_a_prefix_comes_first(void **state)
{
	(void)state;
	assert_true(slice_compare(SLICE("a"), SLICE("b")) < 0);
	assert_true(slice_compare(SLICE("\xff"), SLICE("a")) > 0);
	assert_true(slice_compare(SLICE("ab"), SLICE("abc")) < 0);
	assert_true(slice_compare(SLICE("abc"), SLICE("ab")) > 0);
	assert_true(slice_compare(SLICE("b"), SLICE("aa")) > 0);
	assert_int_equal(slice_compare(SLICE("abc"), SLICE("abc")), 0);
	assert_int_equal(slice_compare(EMPTY, SLICE("")), 0);
}

/* Whatever the words are that bytes are compared in. */
static void every_byte_of_a_text_counts(void **state)
{
	enum { LONGEST = 40 };
	char left[LONGEST];
	char right[LONGEST];

	(void)state;
	for (size_t length = 1; length <= LONGEST; length++) {
		memset(left, 'x', sizeof left);
		memset(right, 'x', sizeof right);
		assert_true(slice_equal(slice_from(left, length), slice_from(right, length)));
		for (size_t at = 0; at < length; at++) {
			right[at] = (char)0x80; /* above x as a byte, below it as a signed one */
			memset(right + at + 1, 'a', length - at - 1);
			assert_false(slice_equal(slice_from(left, length), slice_from(right, length)));
			assert_true(slice_compare(slice_from(left, length), slice_from(right, length)) < 0);
			assert_true(slice_compare(slice_from(right, length), slice_from(left, length)) > 0);
			memset(right, 'x', sizeof right);
		}
	}
}

static void parts_are_found(void **state)
{
	(void)state;
	assert_true(slice_starts_with(SLICE("bearer x"), SLICE("bearer ")));
	assert_true(slice_starts_with(SLICE("x"), EMPTY));
	assert_false(slice_starts_with(SLICE("be"), SLICE("bearer")));
	assert_true(slice_contains(SLICE("abcabd"), SLICE("abd")));
	assert_true(slice_contains(EMPTY, EMPTY));
	assert_false(slice_contains(SLICE("abcabd"), SLICE("abe")));
	assert_false(slice_contains(EMPTY, SLICE("a")));
}

static void trimming_takes_blanks_from_both_ends(void **state)
{
	(void)state;
	assert_slice(slice_trim(SLICE(" \t\r\na b\n\r\t ")), "a b");
	assert_slice(slice_trim(SLICE("\va\v")), "\va\v");
	assert_slice(slice_trim(SLICE("  ")), "");
	assert_slice(slice_trim(EMPTY), "");
}

static void an_offset_past_the_end_gives_the_empty_slice(void **state)
{
	(void)state;
	assert_slice(slice_from_offset(SLICE("abc"), 0), "abc");
	assert_slice(slice_from_offset(SLICE("abc"), 2), "c");
	assert_slice(slice_from_offset(SLICE("abc"), 3), "");
	assert_slice(slice_from_offset(SLICE("abc"), 99), "");
	assert_slice(slice_from_offset(EMPTY, 5), "");
}

static void taking_until_a_separator_leaves_the_rest(void **state)
{
	(void)state;
	struct slice text = SLICE("a,,bc");

	assert_slice(slice_take_until(&text, ','), "a");
	assert_slice(slice_take_until(&text, ','), "");
	assert_slice(text, "bc");
	assert_slice(slice_take_until(&text, ','), "bc");
	assert_slice(text, "");
	assert_slice(slice_take_until(&text, ','), "");
	text = EMPTY;
	assert_slice(slice_take_until(&text, ','), "");
}

static void only_whole_decimal_numbers_within_64_bits_are_read(void **state)
{
	(void)state;
	static const char *const WRONG[] = {
		"", "-1", "+1", " 1", "1 ", "0x1", "1.", "18446744073709551616", "99999999999999999999"
	};
	uint64_t value = 7;

	for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
		assert_false(slice_to_u64(slice_of(WRONG[i]), &value));
	assert_int_equal(value, 7);
	assert_true(slice_to_u64(SLICE("18446744073709551615"), &value));
	assert_int_equal(value, UINT64_MAX);
	assert_true(slice_to_u64(SLICE("007"), &value));
	assert_int_equal(value, 7);
}

static void a_sign_may_stand_before_a_number_within_63_bits(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t value;
	} RIGHT[] = {
		{ "0", 0 },
		{ "-0", 0 },
		{ "+42", 42 },
		{ "-42", -42 },
		{ "9223372036854775807", INT64_MAX },
		{ "-9223372036854775808", INT64_MIN },
	};
	static const char *const WRONG[] = { "",
		                             "-",
		                             "+",
		                             "--1",
		                             "+-1",
		                             "- 1",
		                             "1.0",
		                             "9223372036854775808",
		                             "-9223372036854775809",
		                             "-18446744073709551616" };
	int64_t value = 7;

	for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
		assert_false(slice_to_i64(slice_of(WRONG[i]), &value));
	assert_int_equal(value, 7);
	for (size_t i = 0; i < sizeof RIGHT / sizeof RIGHT[0]; i++) {
		assert_true(slice_to_i64(slice_of(RIGHT[i].text), &value));
		assert_true(value == RIGHT[i].value);
	}
}

static void utf8_is_checked_as_rfc_3629_says(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool valid;
	} CASES[] = {
		{ "", true },
		{ "a long text of plain ASCII, and a tail", true },
		{ "eight by\xc3\xa9te", true },
		{ "\x7f", true },
		{ "\xc2\x80", true },
		{ "\xdf\xbf", true },
		{ "\xe0\xa0\x80", true },
		{ "\xed\x9f\xbf", true },
		{ "\xee\x80\x80", true },
		{ "\xef\xbf\xbf", true },
		{ "\xf0\x90\x80\x80", true },
		{ "\xf4\x8f\xbf\xbf", true },
		{ "\x80", false },             /* continuation alone */
		{ "\xc0\x80", false },         /* overlong */
		{ "\xc1\xbf", false },         /* overlong */
		{ "\xe0\x9f\xbf", false },     /* overlong */
		{ "\xf0\x8f\xbf\xbf", false }, /* overlong */
		{ "\xed\xa0\x80", false },     /* surrogate */
		{ "\xed\xbf\xbf", false },     /* surrogate */
		{ "\xf4\x90\x80\x80", false }, /* over U+10FFFF */
		{ "\xf5\x80\x80\x80", false },
		{ "\xff", false },
		{ "\xc3", false },         /* cut */
		{ "\xe2\x82", false },     /* cut */
		{ "\xf0\x9f\x98", false }, /* cut */
		{ "\xe2(\xa1", false },
		{ "\xe2\x82(", false },
		{ "12345678\xc3", false },
		{ "1234567\xff"
		  "90123456",
		  false },
	};

	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
		assert_int_equal(slice_is_utf8(slice_of(CASES[i].text)), CASES[i].valid);
}

static void the_next_character_has_its_length_and_code_point(void **state)
{
	(void)state;
	uint32_t code_point = 1;

	assert_int_equal(slice_utf8_next(EMPTY, &code_point), 0);
	assert_int_equal(slice_utf8_next(SLICE("\xc3"), &code_point), 0);
	assert_int_equal(code_point, 1);
	assert_int_equal(slice_utf8_next(SLICE("ab"), &code_point), 1);
	assert_int_equal(code_point, 'a');
	assert_int_equal(slice_utf8_next(SLICE("\xc3\xa9x"), &code_point), 2);
	assert_int_equal(code_point, 0xe9);
	assert_int_equal(slice_utf8_next(SLICE("\xe2\x82\xacx"), &code_point), 3);
	assert_int_equal(code_point, 0x20ac);
	assert_int_equal(slice_utf8_next(SLICE("\xf0\x9f\x98\x80x"), &code_point), 4);
	assert_int_equal(code_point, 0x1f600);
}

static void hashes_differ_where_texts_do(void **state)
{
	(void)state;
	char text[24] = { 0 };
	uint64_t hashes[sizeof text * 8 + sizeof text];
	size_t count = 0;

	for (size_t length = 0; length < sizeof text; length++) /* zeros of different length … */
		hashes[count++] = slice_hash(slice_from(text, length));
	for (size_t bit = 0; bit < sizeof text * 8; bit++) { /* … and each single bit */
		text[bit / 8] = (char)(1 << bit % 8);
		hashes[count++] = slice_hash(slice_from(text, sizeof text));
		text[bit / 8] = 0;
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t j = i + 1; j < count; j++)
			assert_true(hashes[i] != hashes[j]);
	}
	assert_true(slice_hash(SLICE("same")) == slice_hash(slice_of("same")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_are_equal_by_their_bytes),
		cmocka_unit_test(folding_concerns_ascii_letters_only),
		cmocka_unit_test(order_is_bytewise_and_a_prefix_comes_first),
		cmocka_unit_test(every_byte_of_a_text_counts),
		cmocka_unit_test(parts_are_found),
		cmocka_unit_test(trimming_takes_blanks_from_both_ends),
		cmocka_unit_test(an_offset_past_the_end_gives_the_empty_slice),
		cmocka_unit_test(taking_until_a_separator_leaves_the_rest),
		cmocka_unit_test(only_whole_decimal_numbers_within_64_bits_are_read),
		cmocka_unit_test(a_sign_may_stand_before_a_number_within_63_bits),
		cmocka_unit_test(utf8_is_checked_as_rfc_3629_says),
		cmocka_unit_test(the_next_character_has_its_length_and_code_point),
		cmocka_unit_test(hashes_differ_where_texts_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
