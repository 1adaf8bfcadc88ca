/*
 * Most numbers have at most 19 digits and a small exponent: such a number is an integer that fits a double exactly,
 * times or divided by a power of ten that does too, so one multiplication or division gives the correctly rounded
 * result (Clinger). The others are written anew, without a point, for strtod, which then meets nothing that depends on
 * a locale.
 */
#include "metrics/text_float.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	MANTISSA_DIGITS_MAX = 19, /* always fit 64 bits */
	EXACT_POWER_MAX = 22,     /* 10^22 is the largest power of ten that a double holds exactly */
	SLOW_DIGITS_MAX = 800,    /* no double's shortest or halfway decimal has more than 767 */
	EXPONENT_MAX = 100000000, /* far beyond any double; keeps sums small */
};

static const uint64_t EXACT_MANTISSA_MAX = UINT64_C(1) << 53;

static const double POWERS[EXACT_POWER_MAX + 1] = {
	1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/* A number's parts: value = digits of [start, end), without the point, times 10^exponent. */
struct decimal {
	const unsigned char *start;
	const unsigned char *end;
	uint64_t mantissa; /* the same digits, if there are few enough */
	bool exact;        /* mantissa holds them all */
	int64_t exponent;
};

static bool is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

/* Reads "e-12", if that is what stands there. */
static const unsigned char *read_exponent(const unsigned char *cursor, int64_t *exponent)
{
	const unsigned char *p = cursor;

	if (*p != 'e' && *p != 'E')
		return cursor;
	p++;

	bool negative = *p == '-';

	if (*p == '-' || *p == '+')
		p++;
	if (!is_digit(*p))
		return cursor;

	int64_t value = 0;

	for (; is_digit(*p); p++)
		if (value < EXPONENT_MAX)
			value = value * 10 + (*p - '0');
	*exponent += negative ? -value : value;
	return p;
}

/* Reads digits with an optional point; NULL when there is no digit. */
static const unsigned char *read_decimal(const unsigned char *cursor, struct decimal *ret_decimal)
{
	const unsigned char *p = cursor;
	struct decimal decimal = { .start = cursor };
	uint64_t mantissa = 0;
	size_t digits = 0;

	for (; is_digit(*p); p++) {
		mantissa = mantissa * 10 + (uint64_t)(*p - '0');
		digits++;
	}
	if (*p == '.') {
		const unsigned char *fraction = ++p;

		for (; is_digit(*p); p++)
			mantissa = mantissa * 10 + (uint64_t)(*p - '0');
		digits += (size_t)(p - fraction);
		decimal.exponent = -(p - fraction);
	}
	if (digits == 0)
		return NULL;
	decimal.end = p;
	decimal.mantissa = mantissa;
	decimal.exact = digits <= MANTISSA_DIGITS_MAX;
	p = read_exponent(p, &decimal.exponent);
	*ret_decimal = decimal;
	return p;
}

/* Any number of digits. What is beyond SLOW_DIGITS_MAX only tells whether something non-zero is there. */
static double convert_slowly(const struct decimal *decimal)
{
	char text[SLOW_DIGITS_MAX + 32];
	size_t length = 0;
	int64_t exponent = decimal->exponent;
	bool more = false;

	for (const unsigned char *p = decimal->start; p < decimal->end; p++) {
		if (*p == '.' || (*p == '0' && length == 0))
			continue;
		if (length < SLOW_DIGITS_MAX) {
			text[length++] = (char)*p;
		} else {
			exponent++;
			more = more || *p != '0';
		}
	}
	if (length == 0)
		return 0;
	if (more) {
		text[length++] = '1';
		exponent--;
	}
	if (exponent > EXPONENT_MAX)
		exponent = EXPONENT_MAX;
	if (exponent < -EXPONENT_MAX)
		exponent = -EXPONENT_MAX;
	snprintf(text + length, sizeof text - length, "e%d", (int)exponent);
	return strtod(text, NULL);
}

static double convert(const struct decimal *decimal)
{
	if (decimal->exact && decimal->mantissa <= EXACT_MANTISSA_MAX) {
		double value = (double)decimal->mantissa;

		if (decimal->exponent >= 0 && decimal->exponent <= EXACT_POWER_MAX)
			return value * POWERS[decimal->exponent];
		if (decimal->exponent < 0 && decimal->exponent >= -EXACT_POWER_MAX)
			return value / POWERS[-decimal->exponent];
	}
	return convert_slowly(decimal);
}

/* Whether word (lower case) stands at p, in any letter case. */
static bool stands_at(const unsigned char *p, const char *word)
{
	for (; *word != '\0'; p++, word++)
		if ((*p | 0x20) != (unsigned char)*word)
			return false;
	return true;
}

/* inf, infinity, nan; a sign before nan isn't allowed. */
static const unsigned char *read_name(const unsigned char *p, bool has_sign, double *ret_value)
{
	enum { INFINITY_LENGTH = 8, SHORT_LENGTH = 3 };

	if (stands_at(p, "inf")) {
		*ret_value = INFINITY;
		return stands_at(p, "infinity") ? p + INFINITY_LENGTH : p + SHORT_LENGTH;
	}
	if (!has_sign && stands_at(p, "nan")) {
		*ret_value = NAN;
		return p + SHORT_LENGTH;
	}
	return NULL;
}

bool metrics_text_float_read(const unsigned char *start, const unsigned char **ret_end, double *ret_value)
{
	const unsigned char *p = start;
	bool negative = *p == '-';
	bool has_sign = negative || *p == '+';
	struct decimal decimal;
	double value;

	if (has_sign)
		p++;

	const unsigned char *end = read_decimal(p, &decimal);

	if (end != NULL) {
		value = convert(&decimal);
		if (isinf(value))
			return false;
	} else {
		end = read_name(p, has_sign, &value);
		if (end == NULL)
			return false;
	}
	*ret_end = end;
	*ret_value = negative ? -value : value;
	return true;
}
