#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "metrics/text_float.h"

static bool read_text(const char *text, size_t *ret_length, double *ret_value)
{
	const unsigned char *start = (const unsigned char *)text;
	const unsigned char *end;

	if (!metrics_text_float_read(start, &end, ret_value))
		return false;
	*ret_length = (size_t)(end - start);
	return true;
}

/* The C library rounds correctly too, and the tests never leave the C locale. */
static void check_as_strtod(const char *text)
{
	size_t length;
	double value;
	double expected = strtod(text, NULL);

	if (!read_text(text, &length, &value))
		fail_msg("%s isn't read", text);
	assert_int_equal(length, strlen(text));
	if (memcmp(&value, &expected, sizeof value) != 0)
		fail_msg("%s: %.17g is not %.17g", text, value, expected);
}

static void hard_numbers_are_rounded_correctly(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"9007199254740992",
		"9007199254740993",
		"9007199254740993.0000000000000000000000000000000000000001",
		"1e22",
		"1e23",
		"123456789012345678e-3",
		"9007199254740992e22",
		"5e-324",
		"2.4703282292062327208e-324",
		"2.4703282292062328e-324",
		"2.2250738585072011e-308",
		"1.7976931348623157e308",
		"1.7976931348623158e308",
		"0.1",
		"0.3",
		"1.7e-5",
		"18446744073709551615",
		"18446744073709551616",
		"0000000000000000000000000000000000000000000000000000000001.5",
		"0.00000000000000000000000000000000000000000000000000000000015",
		"100000000000000000000000000000000000000000000000000000000e-55",
		"1.6848392384e+09",
		"-0",
		"-0.0e5",
		"0e99999999999999999999",
		"1e-99999999999999999999",
		"1.00000000000000011102230246251565404236316680908203125",
		"1.00000000000000011102230246251565404236316680908203124",
		"1.00000000000000011102230246251565404236316680908203126",
	};

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		check_as_strtod(texts[i]);
}

static void random_numbers_are_rounded_correctly(void **state)
{
	(void)state;
	struct rng rng;
	char text[64];

	rng_seed(&rng, 1);
	for (int i = 0; i < 200000; i++) {
		uint64_t bits = rng_next(&rng);
		double value;

		memcpy(&value, &bits, sizeof value);
		if (!(value - value == 0))
			continue;
		snprintf(text, sizeof text, "%.*g", (int)(bits % 21), value);
		if (strtod(text, NULL) - strtod(text, NULL) == 0)
			check_as_strtod(text);
		snprintf(text, sizeof text, "%u.%ue%d", (unsigned)(bits >> 40), (unsigned)bits % 100000,
		         (int)(bits % 50) - 25);
		check_as_strtod(text);
	}
}

static void a_halfway_case_is_decided_by_the_last_of_many_digits(void **state)
{
	(void)state;
	enum { ZEROS = 5000 };
	static char text[ZEROS + 128];
	const char *halfway = "9007199254740993."; /* between two doubles: to even, unless something follows */
	size_t length = strlen(halfway);

	memcpy(text, halfway, length);
	memset(text + length, '0', ZEROS);
	text[length + ZEROS] = '\0';
	check_as_strtod(text);
	text[length + ZEROS - 1] = '1';
	check_as_strtod(text);
}

static void reading_stops_where_the_number_ends(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t length;
	} cases[] = {
		{ "1e", 1 },       { "1e+", 1 },        { "1.5.5", 3 }, { "1 2", 1 },
		{ "0x10", 1 },     { "1_0", 1 },        { "inf\n", 3 }, { "infinit", 3 },
		{ "infinity", 8 }, { "-Infinity1", 9 }, { "nano", 3 },  { "1.e5\"", 4 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		size_t length = 0;
		double value;

		assert_true(read_text(cases[i].text, &length, &value));
		assert_int_equal(length, cases[i].length);
	}
}

static void what_is_no_number_or_too_large_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = { "",  " 1", "+",  "-",    ".",    "e5",    ".e5",
		                             "x", "in", "na", "+nan", "-nan", "1e309", "1e99999999999999999999" };
	size_t length = 99;
	double value = 17;

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		assert_false(read_text(texts[i], &length, &value));
	assert_int_equal(length, 99);
	assert_true(value == 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hard_numbers_are_rounded_correctly),
		cmocka_unit_test(random_numbers_are_rounded_correctly),
		cmocka_unit_test(a_halfway_case_is_decided_by_the_last_of_many_digits),
		cmocka_unit_test(reading_stops_where_the_number_ends),
		cmocka_unit_test(what_is_no_number_or_too_large_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
