/*
 * The scanner decides whether a text has the form, with each field in its range; as all but the fraction is of fixed
 * width, the fields are then read at their places. Days are counted on the proleptic Gregorian calendar, in eras of 400
 * years that begin on the 1st of March, so that a leap day is the last of its year.
 */
#include "codec/rfc3339.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
	TEXT_MOST_BYTES = 64,
	SHOWN_BYTES = 64, /* of a text in an error */
	FRACTION_AT = 19, /* where the point would be */
	OFFSET_BYTES = 6, /* "+01:00" */
	FRACTION_DIGITS = 9,
	SECONDS_PER_DAY = 86400,
	DAYS_PER_ERA = 146097,
	EPOCH_DAY = 719468, /* from 0000-03-01 to 1970-01-01 */
};

static const char ZERO_TEXT[] = "0001-01-01T00:00:00Z";

/* text ends in NUL. */
static bool has_form(const unsigned char *text, size_t length)
{
	const unsigned char *cursor = text;
	const unsigned char *marker;

	/*!re2c
	re2c:define:YYCTYPE = "unsigned char";
	re2c:define:YYCURSOR = cursor;
	re2c:define:YYMARKER = marker;
	re2c:yyfill:enable = 0;

	digit  = [0-9];
	month  = "0" [1-9] | "1" [0-2];
	day    = "0" [1-9] | [12] digit | "3" [01];
	hour   = [01] digit | "2" [0-3];
	minute = [0-5] digit;
	date   = digit{4} "-" month "-" day;
	time   = hour ":" minute ":" minute ("." digit+)?;
	zone   = "Z" | [+-] hour ":" minute;

	date "T" time zone [\x00] { return cursor == text + length + 1; }
	*                         { return false; }
	*/
}

static int number_at(const char *text, size_t at, size_t length)
{
	int number = 0;

	for (size_t i = at; i < at + length; i++)
		number = 10 * number + (text[i] - '0');
	return number;
}

static bool is_leap_year(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in_month(int year, int month)
{
	static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return month == 2 && is_leap_year(year) ? 29 : DAYS[month - 1];
}

/* The whole part of the division, rounded down. */
static int64_t divide_down(int64_t value, int64_t divisor)
{
	return value / divisor - (value % divisor < 0);
}

/* Days since 1970-01-01. */
static int64_t days_from_date(int year, int month, int day)
{
	int64_t march_year = month > 2 ? year : year - 1;
	int64_t era = divide_down(march_year, 400);
	int64_t year_of_era = march_year - era * 400;
	int64_t day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
	int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

	return era * DAYS_PER_ERA + day_of_era - EPOCH_DAY;
}

static void date_from_days(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	days += EPOCH_DAY;

	int64_t era = divide_down(days, DAYS_PER_ERA);
	int64_t day_of_era = days - era * DAYS_PER_ERA;
	int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	int64_t march_month = (5 * day_of_year + 2) / 153;

	*ret_day = (int)(day_of_year - (153 * march_month + 2) / 5 + 1);
	*ret_month = (int)(march_month < 10 ? march_month + 3 : march_month - 9);
	*ret_year = (int)(year_of_era + era * 400 + (*ret_month <= 2));
}

/* What the digits behind the point at `at` are worth. */
static int64_t fraction_ns(const char *text, size_t at)
{
	int64_t ns = 0;
	size_t digits = 0;

	for (at++; digits < FRACTION_DIGITS && text[at] >= '0' && text[at] <= '9'; at++, digits++)
		ns = 10 * ns + (text[at] - '0');
	for (; digits < FRACTION_DIGITS; digits++)
		ns *= 10;
	return ns;
}

/* How far the zone at the end is ahead of UTC. */
static int64_t offset_seconds(const char *text, size_t length)
{
	if (text[length - 1] == 'Z')
		return 0;

	size_t at = length - OFFSET_BYTES;
	int64_t seconds = number_at(text, at + 1, 2) * 3600 + number_at(text, at + 4, 2) * 60;

	return text[at] == '-' ? -seconds : seconds;
}

static bool refuse(struct slice text, enum error_code code, const char *why, struct error *err)
{
	struct slice shown = text.length > SHOWN_BYTES ? slice_from(text.data, SHOWN_BYTES) : text;

	return error_set(err, code, "\"%.*s\"%s %s", SLICE_ARGS(shown),
	                 shown.length < text.length ? "\xe2\x80\xa6" : "", why);
}

bool rfc3339_parse(struct slice text, int64_t *ret_ns, struct error *err)
{
	unsigned char bytes[TEXT_MOST_BYTES + 1] = {0};
	const char *copy = (const char *)bytes;
	int64_t ns;

	if (text.length > TEXT_MOST_BYTES)
		return refuse(text, ERROR_SYNTAX, "is too long for an RFC 3339 time", err);
	if (text.length > 0)
		memcpy(bytes, text.data, text.length);
	if (!has_form(bytes, text.length))
		return refuse(text, ERROR_SYNTAX, "is not an RFC 3339 time", err);
	if (slice_equal_text(text, ZERO_TEXT)) {
		*ret_ns = RFC3339_ZERO;
		return true;
	}

	int year = number_at(copy, 0, 4), month = number_at(copy, 5, 2), day = number_at(copy, 8, 2);

	if (day > days_in_month(year, month))
		return refuse(text, ERROR_SYNTAX, "is not an RFC 3339 time: the month has no such day", err);

	int64_t seconds = days_from_date(year, month, day) * SECONDS_PER_DAY + number_at(copy, 11, 2) * 3600 +
	                  number_at(copy, 14, 2) * 60 + number_at(copy, 17, 2) - offset_seconds(copy, text.length);
	int64_t fraction = copy[FRACTION_AT] == '.' ? fraction_ns(copy, FRACTION_AT) : 0;

	if (__builtin_mul_overflow(seconds, (int64_t)NS_PER_S, &ns) || __builtin_add_overflow(ns, fraction, &ns))
		return refuse(text, ERROR_LIMIT, "is not within the years 1678 and 2261", err);
	*ret_ns = ns;
	return true;
}

/* Without the zone; returns what is left behind the second. */
static int64_t print_to_second(int64_t ns, struct buffer *out)
{
	int64_t seconds = divide_down(ns, NS_PER_S);
	int64_t days = divide_down(seconds, SECONDS_PER_DAY);
	int of_day = (int)(seconds - days * SECONDS_PER_DAY);
	int year, month, day;

	date_from_days(days, &year, &month, &day);
	buffer_append_format(out, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, of_day / 3600, of_day / 60 % 60,
	                     of_day % 60);
	return (ns % NS_PER_S + NS_PER_S) % NS_PER_S;
}

void rfc3339_print_seconds(int64_t ns, struct buffer *out)
{
	if (ns == RFC3339_ZERO) {
		buffer_append_text(out, ZERO_TEXT);
		return;
	}
	print_to_second(ns, out);
	buffer_append_char(out, 'Z');
}

/* "Z", "+01:00". */
static void print_zone(int32_t offset_s, struct buffer *out)
{
	int minutes = abs(offset_s) / 60;

	if (offset_s == 0)
		buffer_append_char(out, 'Z');
	else
		buffer_append_format(out, "%c%02d:%02d", offset_s < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

void rfc3339_print_nanoseconds_at(int64_t ns, int32_t offset_s, struct buffer *out)
{
	int64_t local_ns;

	if (ns == RFC3339_ZERO) {
		buffer_append_text(out, ZERO_TEXT);
		return;
	}
	if (__builtin_add_overflow(ns, (int64_t)offset_s * NS_PER_S, &local_ns)) {
		local_ns = ns;
		offset_s = 0;
	}

	int rest = (int)print_to_second(local_ns, out);
	int digits = FRACTION_DIGITS;

	while (rest > 0 && rest % 10 == 0) {
		rest /= 10;
		digits--;
	}
	if (rest > 0)
		buffer_append_format(out, ".%0*d", digits, rest);
	print_zone(offset_s, out);
}

void rfc3339_print_nanoseconds(int64_t ns, struct buffer *out)
{
	rfc3339_print_nanoseconds_at(ns, 0, out);
}
