/*
 * The digits are put into limbs of nine, base 10^9, aligned at the decimal point: a decimal suffix or exponent only
 * says which limb a digit belongs to, a binary suffix is a multiplication of all limbs, and the value in nanos is read
 * off the limbs from the first one behind the point on. All of that is exact; what lies further behind the point rounds
 * up.
 */
#include "codec/quantity.h"

#include <stdint.h>
#include <string.h>

enum {
	TEXT_MOST_BYTES = 256,
	LIMB_DIGITS = 9,
	LIMB_BASE = 1000000000,
	NANOS_PER_UNIT = 1000000000,
	FRACTION_LIMBS = TEXT_MOST_BYTES / LIMB_DIGITS + 1, /* any fraction that a text can hold */
	WHOLE_LIMBS = 6,                                    /* 27 digits times 2^60 */
	WHOLE_DIGITS_MOST = 27,
	LIMBS = FRACTION_LIMBS + WHOLE_LIMBS,
	EXPONENT_MOST = 100000, /* beyond it every value but zero is far out of range, or far below a nano */
};

__extension__ typedef __int128 wide_int;
__extension__ typedef unsigned __int128 wide_unsigned;

/* The largest size of a quantity: 2^63 - 1 units. */
static const wide_int MOST_NANOS = (wide_int)INT64_MAX * NANOS_PER_UNIT;

static const char FORM_TEXT[] = "quantities must match the regular expression "
				"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
static const char SUFFIX_TEXT[] = "unable to parse quantity's suffix";

/* ---- the parts of the text ---- */

struct parts {
	bool negative;
	struct slice whole;    /* digits before the point */
	struct slice fraction; /* digits behind it */
	struct slice suffix;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static struct slice take_digits(struct slice *text)
{
	size_t length = 0;

	while (length < text->length && is_digit(text->data[length]))
		length++;

	struct slice digits = slice_from(text->data, length);

	*text = slice_from_offset(*text, length);
	return digits;
}

static bool take_sign(struct slice *text, bool *ret_negative)
{
	if (text->length == 0 || (text->data[0] != '+' && text->data[0] != '-'))
		return false;
	*ret_negative = text->data[0] == '-';
	*text = slice_from_offset(*text, 1);
	return true;
}

/* A suffix is letters of the list, perhaps a sign, perhaps digits; whether it means something is seen later. */
static bool split(struct slice text, struct parts *ret_parts, struct error *err)
{
	struct parts parts = { 0 };
	bool ignored;

	if (text.length == 0)
		return error_set(err, ERROR_SYNTAX, "%s", FORM_TEXT);
	take_sign(&text, &parts.negative);
	parts.whole = take_digits(&text);
	if (text.length > 0 && text.data[0] == '.') {
		text = slice_from_offset(text, 1);
		parts.fraction = take_digits(&text);
	}
	parts.suffix = text;
	while (text.length > 0 && strchr("eEinumkKMGTP", text.data[0]) != NULL && text.data[0] != '\0')
		text = slice_from_offset(text, 1);
	take_sign(&text, &ignored);
	take_digits(&text);
	if (text.length > 0)
		return error_set(err, ERROR_SYNTAX, "%s", FORM_TEXT);
	*ret_parts = parts;
	return true;
}

/* ---- the suffix ---- */

struct scale {
	int tens;  /* times 10^tens */
	int kibis; /* times 1024^kibis */
	enum quantity_format format;
};

struct named_scale {
	char name[3];
	struct scale scale;
};

static const struct named_scale NAMED_SCALES[] = {
	{ "", { 0, 0, QUANTITY_DECIMAL } },   { "n", { -9, 0, QUANTITY_DECIMAL } },
	{ "u", { -6, 0, QUANTITY_DECIMAL } }, { "m", { -3, 0, QUANTITY_DECIMAL } },
	{ "k", { 3, 0, QUANTITY_DECIMAL } },  { "M", { 6, 0, QUANTITY_DECIMAL } },
	{ "G", { 9, 0, QUANTITY_DECIMAL } },  { "T", { 12, 0, QUANTITY_DECIMAL } },
	{ "P", { 15, 0, QUANTITY_DECIMAL } }, { "E", { 18, 0, QUANTITY_DECIMAL } },
	{ "Ki", { 0, 1, QUANTITY_BINARY } },  { "Mi", { 0, 2, QUANTITY_BINARY } },
	{ "Gi", { 0, 3, QUANTITY_BINARY } },  { "Ti", { 0, 4, QUANTITY_BINARY } },
	{ "Pi", { 0, 5, QUANTITY_BINARY } },  { "Ei", { 0, 6, QUANTITY_BINARY } },
};

enum { NAMED_SCALE_COUNT = sizeof NAMED_SCALES / sizeof NAMED_SCALES[0] };

/* The number behind e or E: it must fit 64 bits, as in the reference; beyond EXPONENT_MOST all are alike. */
static bool parse_exponent(struct slice text, int *ret_exponent)
{
	int64_t exponent;

	if (!slice_to_i64(text, &exponent))
		return false;
	if (exponent > EXPONENT_MOST)
		exponent = EXPONENT_MOST;
	else if (exponent < -EXPONENT_MOST)
		exponent = -EXPONENT_MOST;
	*ret_exponent = (int)exponent;
	return true;
}

static bool parse_suffix(struct slice suffix, struct scale *ret_scale, struct error *err)
{
	struct scale scale = { .format = QUANTITY_EXPONENT };

	for (size_t i = 0; i < NAMED_SCALE_COUNT; i++) {
		if (slice_equal_text(suffix, NAMED_SCALES[i].name)) {
			*ret_scale = NAMED_SCALES[i].scale;
			return true;
		}
	}
	if ((suffix.data[0] != 'e' && suffix.data[0] != 'E') ||
	    !parse_exponent(slice_from_offset(suffix, 1), &scale.tens))
		return error_set(err, ERROR_SYNTAX, "%s", SUFFIX_TEXT);
	*ret_scale = scale;
	return true;
}

/* ---- the value ---- */

struct fixed_point {
	uint32_t limbs[LIMBS]; /* least significant first; the point lies before limb FRACTION_LIMBS */
	bool too_large;        /* digits beyond the first limb … */
	bool more;             /* … and behind the last one */
};

/* power: of ten, that the last of the digits counts. */
static void place_digits(struct fixed_point *value, struct slice digits, int power)
{
	static const uint32_t POWERS_OF_TEN[LIMB_DIGITS] = { 1,      10,      100,      1000,     10000,
		                                             100000, 1000000, 10000000, 100000000 };

	for (size_t i = digits.length; i > 0; i--, power++) {
		uint32_t digit = (uint32_t)(digits.data[i - 1] - '0');
		int place = power + FRACTION_LIMBS * LIMB_DIGITS;

		if (digit == 0)
			continue;
		if (power >= WHOLE_DIGITS_MOST)
			value->too_large = true;
		else if (place < 0)
			value->more = true;
		else
			value->limbs[place / LIMB_DIGITS] += digit * POWERS_OF_TEN[place % LIMB_DIGITS];
	}
}

static void multiply_by_1024(struct fixed_point *value)
{
	uint64_t carry = 0;

	for (size_t i = 0; i < LIMBS; i++) {
		uint64_t product = (uint64_t)value->limbs[i] * 1024 + carry;

		value->limbs[i] = (uint32_t)(product % LIMB_BASE);
		carry = product / LIMB_BASE;
	}
}

/* Size in nanos, rounded up; MOST_NANOS + 1 for all that is larger than MOST_NANOS. */
static wide_int to_nanos(const struct fixed_point *value)
{
	bool more = value->more;
	wide_int nanos = 0;

	if (value->too_large)
		return MOST_NANOS + 1;
	for (size_t i = 0; i < FRACTION_LIMBS - 1; i++)
		more = more || value->limbs[i] != 0;
	for (size_t i = LIMBS; i-- > FRACTION_LIMBS - 1;) {
		nanos = nanos * LIMB_BASE + value->limbs[i];
		if (nanos > MOST_NANOS)
			return MOST_NANOS + 1;
	}
	return nanos + more;
}

/* The reference trims all that Unicode calls a space; of these only ASCII's are worth the code. */
static struct slice trim(struct slice text)
{
	static const char BLANKS[] = " \t\n\v\f\r";

	while (text.length > 0 && memchr(BLANKS, text.data[0], sizeof BLANKS - 1) != NULL)
		text = slice_from_offset(text, 1);
	while (text.length > 0 && memchr(BLANKS, text.data[text.length - 1], sizeof BLANKS - 1) != NULL)
		text.length--;
	return text;
}

bool quantity_parse(struct slice text, struct quantity *ret_quantity, struct error *err)
{
	struct fixed_point value = { 0 };
	struct parts parts;
	struct scale scale;

	text = trim(text);
	if (!split(text, &parts, err) || !parse_suffix(parts.suffix, &scale, err))
		return false;
	if (text.length > TEXT_MOST_BYTES)
		return error_set(err, ERROR_LIMIT, "a quantity of %zu characters is over %d", text.length,
		                 TEXT_MOST_BYTES);

	place_digits(&value, parts.whole, scale.tens);
	place_digits(&value, parts.fraction, scale.tens - (int)parts.fraction.length);
	for (int i = 0; i < scale.kibis; i++)
		multiply_by_1024(&value);

	wide_int nanos = to_nanos(&value);

	if (nanos > MOST_NANOS) {
		if (scale.format != QUANTITY_BINARY)
			return error_set(err, ERROR_LIMIT, "quantity \"%.*s\" is over 2^63 - 1", SLICE_ARGS(text));
		nanos = MOST_NANOS;
	}
	*ret_quantity = (struct quantity){ .nanos = parts.negative ? -nanos : nanos, .format = scale.format };
	return true;
}

/* ---- whole numbers of it ---- */

/* Away from zero, and saturating. */
static int64_t divide_up(wide_int nanos, int64_t divisor)
{
	wide_int quotient = nanos / divisor;

	if (nanos % divisor != 0)
		quotient += nanos > 0 ? 1 : -1;
	if (quotient > INT64_MAX)
		return INT64_MAX;
	return quotient < INT64_MIN ? INT64_MIN : (int64_t)quotient;
}

int64_t quantity_value(struct quantity quantity)
{
	return divide_up(quantity.nanos, NANOS_PER_UNIT);
}

int64_t quantity_milli_value(struct quantity quantity)
{
	return divide_up(quantity.nanos, NANOS_PER_UNIT / 1000);
}

struct quantity quantity_from_bytes(uint64_t bytes)
{
	return (struct quantity){ .nanos = (wide_int)bytes * NANOS_PER_UNIT, .format = QUANTITY_BINARY };
}

/* ---- printing ---- */

static void print_integer(wide_unsigned value, struct buffer *out)
{
	char digits[40];
	size_t at = sizeof digits;

	do {
		digits[--at] = (char)('0' + (int)(value % 10));
		value /= 10;
	} while (value > 0);
	buffer_append(out, digits + at, sizeof digits - at);
}

/* The name of 10^tens or 1024^kibis; one of both is 0. */
static const char *scale_name(int tens, int kibis)
{
	for (size_t i = 0; i < NAMED_SCALE_COUNT; i++) {
		if (NAMED_SCALES[i].scale.tens == tens && NAMED_SCALES[i].scale.kibis == kibis)
			return NAMED_SCALES[i].name;
	}
	return "";
}

static void print_binary(wide_unsigned value, struct buffer *out)
{
	int kibis = 0;

	while (kibis < 6 && value % 1024 == 0) {
		value /= 1024;
		kibis++;
	}
	print_integer(value, out);
	buffer_append_text(out, scale_name(0, kibis));
}

static void print_decimal(wide_unsigned nanos, enum quantity_format format, struct buffer *out)
{
	int tens = -9;

	while (tens < 18 && nanos % 1000 == 0) {
		nanos /= 1000;
		tens += 3;
	}
	print_integer(nanos, out);
	if (format != QUANTITY_EXPONENT)
		buffer_append_text(out, scale_name(tens, 0));
	else if (tens != 0)
		buffer_append_format(out, "e%d", tens);
}

void quantity_print(struct quantity quantity, struct buffer *out)
{
	bool negative = quantity.nanos < 0;
	wide_unsigned nanos = negative ? -(wide_unsigned)quantity.nanos : (wide_unsigned)quantity.nanos;
	bool whole = nanos % NANOS_PER_UNIT == 0;

	if (nanos == 0) {
		buffer_append_char(out, '0');
		return;
	}
	if (negative)
		buffer_append_char(out, '-');
	if (quantity.format == QUANTITY_BINARY && whole && nanos / NANOS_PER_UNIT >= 1024)
		print_binary(nanos / NANOS_PER_UNIT, out);
	else
		print_decimal(nanos, quantity.format, out);
}

void milli_cpu_print(uint32_t milli, struct buffer *out)
{
	uint32_t rest = milli % 1000;

	buffer_append_format(out, "%u", milli / 1000);
	if (rest % 100 == 0 && rest != 0)
		buffer_append_format(out, ".%u", rest / 100);
	else if (rest % 10 == 0 && rest != 0)
		buffer_append_format(out, ".%02u", rest / 10);
	else if (rest != 0)
		buffer_append_format(out, ".%03u", rest);
}

void milli_cpu_print_quantity(uint32_t milli, struct buffer *out)
{
	quantity_print((struct quantity){ .nanos = (wide_int)milli * 1000000, .format = QUANTITY_DECIMAL }, out);
}

void bytes_print(uint64_t bytes, struct buffer *out)
{
	quantity_print(quantity_from_bytes(bytes), out);
}
