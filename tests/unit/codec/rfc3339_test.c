#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codec/rfc3339.h"

static const int64_t SECOND = 1000000000;

static int64_t parse(const char *text)
{
	int64_t ns;
	struct error err;

	if (!rfc3339_parse(slice_of(text), &ns, &err))
		fail_msg("%s", err.text);
	return ns;
}

static void instants_are_read_in_any_zone(void **state)
{
	(void)state;
	assert_int_equal(parse("1970-01-01T00:00:00Z"), 0);
	assert_int_equal(parse("2025-03-04T05:06:07Z"), 1741064767 * SECOND);
	assert_int_equal(parse("2025-03-04T06:36:07+01:30"), 1741064767 * SECOND);
	assert_int_equal(parse("2025-03-03T23:06:07-06:00"), 1741064767 * SECOND);
	assert_int_equal(parse("2025-03-04T05:06:07+00:00"), 1741064767 * SECOND);
	assert_int_equal(parse("2025-03-04T05:06:07-00:00"), 1741064767 * SECOND);
	assert_int_equal(parse("1969-12-31T23:59:59Z"), -SECOND);
	assert_int_equal(parse("1970-01-01T00:00:00+23:59"), -(23 * 3600 + 59 * 60) * SECOND);
}

static void fractions_are_read_to_the_nanosecond(void **state)
{
	(void)state;
	assert_int_equal(parse("1970-01-01T00:00:00.5Z"), 500000000);
	assert_int_equal(parse("1970-01-01T00:00:00.000000001Z"), 1);
	assert_int_equal(parse("1970-01-01T00:00:00.0000000019Z"), 1);
	assert_int_equal(parse("1970-01-01T01:00:00.123456789+01:00"), 123456789);
	assert_int_equal(parse("1969-12-31T23:59:59.75Z"), -250000000);
}

static void the_calendar_is_gregorian(void **state)
{
	(void)state;
	assert_int_equal(parse("2024-02-29T00:00:00Z") + 86400 * SECOND, parse("2024-03-01T00:00:00Z"));
	assert_int_equal(parse("2023-02-28T00:00:00Z") + 86400 * SECOND, parse("2023-03-01T00:00:00Z"));
	assert_int_equal(parse("2000-02-29T00:00:00Z") + 86400 * SECOND, parse("2000-03-01T00:00:00Z"));
	assert_int_equal(parse("1900-02-28T00:00:00Z") + 86400 * SECOND, parse("1900-03-01T00:00:00Z"));
	assert_int_equal(parse("1999-12-31T23:59:59Z") + SECOND, parse("2000-01-01T00:00:00Z"));
}

static void other_texts_are_refused_and_change_nothing(void **state)
{
	(void)state;
	static const char *const WRONG[] = {
		"",
		"2025-03-04",
		"2025-03-04T05:06:07",
		"2025-03-04t05:06:07Z",
		"2025-03-04T05:06:07z",
		"2025-03-04 05:06:07Z",
		" 2025-03-04T05:06:07Z",
		"2025-03-04T05:06:07Z ",
		"2025-3-04T05:06:07Z",
		"25-03-04T05:06:07Z",
		"2025-00-04T05:06:07Z",
		"2025-13-04T05:06:07Z",
		"2025-03-00T05:06:07Z",
		"2025-03-32T05:06:07Z",
		"2025-04-31T05:06:07Z",
		"2025-02-29T05:06:07Z",
		"1900-02-29T05:06:07Z",
		"2025-03-04T24:00:00Z",
		"2025-03-04T05:60:07Z",
		"2025-03-04T05:06:60Z",
		"2025-03-04T05:06:07.Z",
		"2025-03-04T05:06:07,5Z",
		"2025-03-04T05:06:07+0100",
		"2025-03-04T05:06:07+01",
		"2025-03-04T05:06:07+24:00",
		"2025-03-04T05:06:07+01:60",
		"2025-03-04T05:06:07Zjunk",
		"2025-03-04T05:06:07.000000000000000000000000000000000000000000000Z",
		"+2025-03-04T05:06:07Z",
		"now",
	};
	int64_t ns = 7;
	struct error err;

	for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
		if (rfc3339_parse(slice_of(WRONG[i]), &ns, &err))
			fail_msg("\"%s\" was taken", WRONG[i]);
		assert_int_equal(err.code, ERROR_SYNTAX);
	}
	assert_false(rfc3339_parse(SLICE("2025-03-04T05:06:07Z\0"), &ns, &err));
	assert_int_equal(ns, 7);
	assert_false(rfc3339_parse(SLICE("now"), &ns, &err));
	assert_string_equal(err.text, "\"now\" is not an RFC 3339 time");
}

static void years_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	static const char *const WRONG[] = { "1677-01-01T00:00:00Z", "2263-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
		                             "0000-01-01T00:00:00Z", "0001-01-01T00:00:01Z" };
	int64_t ns = 7;
	struct error err;

	for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
		assert_false(rfc3339_parse(slice_of(WRONG[i]), &ns, &err));
		assert_int_equal(err.code, ERROR_LIMIT);
	}
	assert_int_equal(ns, 7);
	assert_true(parse("1678-01-01T00:00:00Z") < 0);
	assert_true(parse("2261-12-31T23:59:59.999999999Z") > 0);
}

static void the_zero_instant_goes_both_ways(void **state)
{
	(void)state;
	struct buffer buffer;

	assert_int_equal(parse("0001-01-01T00:00:00Z"), RFC3339_ZERO);
	buffer_init(&buffer, 100);
	rfc3339_print_seconds(RFC3339_ZERO, &buffer);
	rfc3339_print_nanoseconds(RFC3339_ZERO, &buffer);
	assert_true(slice_equal_text(buffer_slice(&buffer), "0001-01-01T00:00:00Z0001-01-01T00:00:00Z"));
	buffer_destroy(&buffer);
}

static void instants_are_printed_in_utc(void **state)
{
	(void)state;
	static const struct {
		int64_t ns;
		const char *seconds, *nanoseconds;
	} CASES[] = {
		{ 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z" },
		{ 1741064767500000000, "2025-03-04T05:06:07Z", "2025-03-04T05:06:07.5Z" },
		{ 1741064767000000001, "2025-03-04T05:06:07Z", "2025-03-04T05:06:07.000000001Z" },
		{ 1741064767012300000, "2025-03-04T05:06:07Z", "2025-03-04T05:06:07.0123Z" },
		{ 1709164800000000000, "2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z" },
		{ 951868799000000000, "2000-02-29T23:59:59Z", "2000-02-29T23:59:59Z" },
		{ -1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999999Z" },
		{ -9223372036854775807, "1677-09-21T00:12:43Z", "1677-09-21T00:12:43.145224193Z" },
		{ 9223372036854775807, "2262-04-11T23:47:16Z", "2262-04-11T23:47:16.854775807Z" },
	};

	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct buffer buffer;

		buffer_init(&buffer, 100);
		rfc3339_print_seconds(CASES[i].ns, &buffer);
		assert_true(slice_equal_text(buffer_slice(&buffer), CASES[i].seconds));
		buffer_clear(&buffer);
		rfc3339_print_nanoseconds(CASES[i].ns, &buffer);
		assert_true(slice_equal_text(buffer_slice(&buffer), CASES[i].nanoseconds));
		buffer_destroy(&buffer);
	}
}

static void each_day_of_centuries_is_read_as_printed(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 100);
	for (int64_t day = -100000; day < 100000; day++) {
		buffer_clear(&buffer);
		rfc3339_print_seconds(day * 86400 * SECOND, &buffer);
		buffer_append_char(&buffer, '\0');
		assert_int_equal(parse(buffer.data), day * 86400 * SECOND);
	}
	buffer_destroy(&buffer);
}

static void expect_at(int64_t ns, int32_t offset_s, const char *expected)
{
	struct buffer out;

	buffer_init(&out, 64);
	rfc3339_print_nanoseconds_at(ns, offset_s, &out);
	assert_true(slice_equal_text(buffer_slice(&out), expected));
	buffer_destroy(&out);
}

static void instants_are_printed_in_a_zone(void **state)
{
	const int64_t ns = parse("2025-03-06T23:30:00.000001Z");

	(void)state;
	expect_at(ns, 0, "2025-03-06T23:30:00.000001Z");
	expect_at(ns, 3600, "2025-03-07T00:30:00.000001+01:00");
	expect_at(ns, -(3 * 3600 + 1800), "2025-03-06T20:00:00.000001-03:30");
	expect_at(ns, 14 * 3600, "2025-03-07T13:30:00.000001+14:00");
	expect_at(parse("2024-12-31T23:59:59Z"), 60, "2025-01-01T00:00:59+00:01");
	expect_at(RFC3339_ZERO, 3600, "0001-01-01T00:00:00Z");
	/* What a zone would carry beyond the range stays in UTC. */
	expect_at(INT64_MAX, 3600, "2262-04-11T23:47:16.854775807Z");
	assert_int_equal(parse("2025-03-07T00:30:00.000001+01:00"), ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instants_are_read_in_any_zone),
		cmocka_unit_test(fractions_are_read_to_the_nanosecond),
		cmocka_unit_test(the_calendar_is_gregorian),
		cmocka_unit_test(other_texts_are_refused_and_change_nothing),
		cmocka_unit_test(years_that_do_not_fit_are_refused),
		cmocka_unit_test(the_zero_instant_goes_both_ways),
		cmocka_unit_test(instants_are_printed_in_utc),
		cmocka_unit_test(each_day_of_centuries_is_read_as_printed),
		cmocka_unit_test(instants_are_printed_in_a_zone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
