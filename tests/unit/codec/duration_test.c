#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codec/duration_text.h"

struct duration_case {
	int64_t ns;
	const char *text;
};

/* Spec agent-runtime 0.4, and the corners of the same form. */
static const struct duration_case PRINTED[] = {
	{ 0, "0s" },
	{ 1, "1ns" },
	{ 999, "999ns" },
	{ 1500, "1.5\xc2\xb5s" },
	{ 250000000, "250ms" },
	{ 1000001, "1.000001ms" },
	{ 5000000000, "5s" },
	{ 30000000000, "30s" },
	{ 1500000000, "1.5s" },
	{ 59999999999, "59.999999999s" },
	{ 60000000000, "1m0s" },
	{ 90000000000, "1m30s" },
	{ 3600000000000, "1h0m0s" },
	{ 3661001000000, "1h1m1.001s" },
	{ 360000000000000, "100h0m0s" },
	{ -90000000000, "-1m30s" },
	{ -1, "-1ns" },
	{ INT64_MAX, "2562047h47m16.854775807s" },
	{ INT64_MIN, "-2562047h47m16.854775808s" },
};

static void durations_are_printed_for_people(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof PRINTED / sizeof PRINTED[0]; i++) {
		struct buffer buffer;

		buffer_init(&buffer, 100);
		duration_print(PRINTED[i].ns, &buffer);
		if (!slice_equal_text(buffer_slice(&buffer), PRINTED[i].text))
			fail_msg("%s: got %.*s", PRINTED[i].text, SLICE_ARGS(buffer_slice(&buffer)));
		buffer_destroy(&buffer);
	}
}

static void durations_are_read_as_printed_and_in_other_forms(void **state)
{
	(void)state;
	static const struct duration_case OTHERS[] = {
		{ 40000000000, "40s" },
		{ 5400000000000, "1.5h" },
		{ 500000000, ".5s" },
		{ 5000000000, "5.s" },
		{ 5000000000, "+5s" },
		{ -5000000000, "-5s" },
		{ 0, "0" },
		{ 0, "-0" },
		{ 0, "0h" },
		{ 1500, "1.5us" },
		{ 1500, "1.5\xce\xbcs" },
		{ 90000000000, "30s1m" },
		{ 2000000000, "1s1s" },
		{ 1, "1.9ns" },
		{ 12, "0.0000000000034h" },
		{ 333333333, "0.33333333333333333333333333s" },
	};
	int64_t ns;
	struct error err;

	for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++) {
		assert_true(duration_parse(slice_of(OTHERS[i].text), &ns, &err));
		assert_int_equal(ns, OTHERS[i].ns);
	}
	for (size_t i = 0; i < sizeof PRINTED / sizeof PRINTED[0]; i++) {
		if (PRINTED[i].ns == INT64_MIN)
			continue;
		assert_true(duration_parse(slice_of(PRINTED[i].text), &ns, &err));
		assert_int_equal(ns, PRINTED[i].ns);
	}
}

static void other_texts_are_refused_and_change_nothing(void **state)
{
	(void)state;
	static const char *const WRONG[] = {
		"",
		"5",
		"-",
		"+",
		"s",
		".s",
		"5d",
		"5S",
		"5 s",
		" 5s",
		"5s ",
		"1h30",
		"1..5s",
		"1.5.5s",
		"--5s",
		"5s-3s",
		"00",
		"1e3s",
		"9223372036854775808ns",
		"18446744073709551616ns",
		"2562048h",
		"9223372036s9223372036s",
		"-9223372036854775809ns",
	};
	int64_t ns = 7;
	struct error err;

	for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
		if (duration_parse(slice_of(WRONG[i]), &ns, &err))
			fail_msg("\"%s\" was taken", WRONG[i]);
		assert_int_equal(err.code, ERROR_SYNTAX);
	}
	assert_int_equal(ns, 7);
	assert_false(duration_parse(SLICE("5"), &ns, &err));
	assert_string_equal(err.text, "\"5\" is not a duration: a number needs a unit: ns, us, ms, s, m or h");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_are_printed_for_people),
		cmocka_unit_test(durations_are_read_as_printed_and_in_other_forms),
		cmocka_unit_test(other_texts_are_refused_and_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
