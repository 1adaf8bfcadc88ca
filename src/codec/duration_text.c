#include "codec/duration_text.h"

#include <inttypes.h>

#include "base/clock.h"

__extension__ typedef unsigned __int128 wide_unsigned;

enum {
	FRACTION_DIGITS_MOST = 18, /* further digits of a fraction are below a nanosecond even for hours */
	SHOWN_BYTES = 64,          /* of a text in an error */
};

/* ---- printing ---- */

/* value / 10^digits with its fraction, zeros at the end removed. */
static void print_fraction(uint64_t value, int digits, struct buffer *out)
{
	uint64_t power = 1;

	for (int i = 0; i < digits; i++)
		power *= 10;

	uint64_t rest = value % power;

	buffer_append_format(out, "%" PRIu64, value / power);
	if (rest == 0)
		return;
	while (rest % 10 == 0) {
		rest /= 10;
		digits--;
	}
	buffer_append_format(out, ".%0*" PRIu64, digits, rest);
}

static void print_below_second(uint64_t ns, struct buffer *out)
{
	if (ns < NS_PER_US) {
		buffer_append_format(out, "%" PRIu64 "%s", ns, ns > 0 ? "ns" : "s");
	} else if (ns < NS_PER_MS) {
		print_fraction(ns, 3, out);
		buffer_append_text(out, "\xc2\xb5s"); /* U+00B5 */
	} else {
		print_fraction(ns, 6, out);
		buffer_append_text(out, "ms");
	}
}

void duration_print(int64_t ns, struct buffer *out)
{
	static const uint64_t NS_PER_MINUTE = (uint64_t)60 * NS_PER_S;
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	uint64_t minutes = size / NS_PER_MINUTE;

	if (ns < 0)
		buffer_append_char(out, '-');
	if (size < NS_PER_S) {
		print_below_second(size, out);
		return;
	}
	if (minutes >= 60)
		buffer_append_format(out, "%" PRIu64 "h", minutes / 60);
	if (minutes > 0)
		buffer_append_format(out, "%" PRIu64 "m", minutes % 60);
	print_fraction(size % NS_PER_MINUTE, 9, out);
	buffer_append_char(out, 's');
}

/* ---- reading ---- */

struct unit {
	const char *name;
	uint64_t ns;
};

static const struct unit UNITS[] = {
	{ "ns", 1 },
	{ "us", NS_PER_US },
	{ "\xc2\xb5s", NS_PER_US }, /* U+00B5, micro sign */
	{ "\xce\xbcs", NS_PER_US }, /* U+03BC, Greek mu */
	{ "ms", NS_PER_MS },
	{ "s", NS_PER_S },
	{ "m", (uint64_t)60 * NS_PER_S },
	{ "h", (uint64_t)3600 * NS_PER_S },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static struct slice take_while_digits(struct slice *text, bool digits)
{
	size_t length = 0;

	while (length < text->length && (is_digit(text->data[length]) || text->data[length] == '.') == digits)
		length++;

	struct slice taken = slice_from(text->data, length);

	*text = slice_from_offset(*text, length);
	return taken;
}

static const struct unit *find_unit(struct slice name)
{
	for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
		if (slice_equal_text(name, UNITS[i].name))
			return &UNITS[i];
	}
	return NULL;
}

/* A number such as "1.5", ".5" or "5." times the unit, cut to a nanosecond. False if it is none or doesn't fit. */
static bool multiply(struct slice number, uint64_t unit_ns, uint64_t *ret_ns)
{
	struct slice fraction = number;
	struct slice whole = slice_take_until(&fraction, '.');
	uint64_t units = 0, part = 0, ns;
	wide_unsigned power = 1;

	if (whole.length + fraction.length == 0)
		return false;
	if (whole.length > 0 && !slice_to_u64(whole, &units))
		return false;
	for (size_t i = 0; i < fraction.length; i++) {
		if (!is_digit(fraction.data[i]))
			return false; /* a second point */
		if (i < FRACTION_DIGITS_MOST) {
			part = 10 * part + (uint64_t)(fraction.data[i] - '0');
			power *= 10;
		}
	}
	if (__builtin_mul_overflow(units, unit_ns, &ns))
		return false;
	return !__builtin_add_overflow(ns, (uint64_t)(part * (wide_unsigned)unit_ns / power), ret_ns);
}

static bool refuse(struct slice text, const char *why, struct error *err)
{
	struct slice shown = text.length > SHOWN_BYTES ? slice_from(text.data, SHOWN_BYTES) : text;

	return error_set(err, ERROR_SYNTAX, "\"%.*s\"%s is not a duration: %s", SLICE_ARGS(shown),
	                 shown.length < text.length ? "\xe2\x80\xa6" : "", why);
}

bool duration_parse(struct slice text, int64_t *ret_ns, struct error *err)
{
	struct slice rest = text;
	bool negative = rest.length > 0 && rest.data[0] == '-';
	uint64_t total_ns = 0;

	if (negative || (rest.length > 0 && rest.data[0] == '+'))
		rest = slice_from_offset(rest, 1);
	if (slice_equal(rest, SLICE("0"))) {
		*ret_ns = 0;
		return true;
	}
	if (rest.length == 0)
		return refuse(text, "there is no number", err);
	while (rest.length > 0) {
		struct slice number = take_while_digits(&rest, true);
		struct slice name = take_while_digits(&rest, false);
		const struct unit *unit = find_unit(name);
		uint64_t ns;

		if (number.length == 0)
			return refuse(text, "a number is missing", err);
		if (unit == NULL)
			return refuse(text, "a number needs a unit: ns, us, ms, s, m or h", err);
		if (!multiply(number, unit->ns, &ns) || __builtin_add_overflow(total_ns, ns, &total_ns) ||
		    total_ns > INT64_MAX)
			return refuse(text, "a number is malformed or too large", err);
	}
	*ret_ns = negative ? -(int64_t)total_ns : (int64_t)total_ns;
	return true;
}
