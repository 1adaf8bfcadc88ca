/*
 * Numbers. A double has a shortest decimal of at most 17 significant digits, a float of at most 9; up to 15 (6) digits
 * any decimal survives the way through binary, so the search starts there, asks the C library for that many digits, and
 * takes the first that reads back as the same value. Trailing zeros then go. Two kinds of values need more care:
 * subnormals, whose shortest form may be shorter than 15 digits without zeros behind it (5e-324), and powers of two,
 * below which numbers lie twice as dense as above: there the nearest decimal may read back as the neighbour below while
 * the next one up is right.
 */
#include "base/json_text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain_text.h"

/* ---- strings ---- */

static const char HEX_DIGITS[] = "0123456789abcdef";

static void append_code_unit(struct buffer *buffer, uint32_t unit)
{
	char escape[6] = { '\\', 'u' };

	for (size_t i = 0; i < 4; i++)
		escape[2 + i] = HEX_DIGITS[unit >> (12 - 4 * i) & 0xf];
	buffer_append(buffer, escape, sizeof escape);
}

static void append_control(struct buffer *buffer, unsigned char c)
{
	switch (c) {
	case '\b':
		buffer_append_text(buffer, "\\b");
		break;
	case '\f':
		buffer_append_text(buffer, "\\f");
		break;
	case '\n':
		buffer_append_text(buffer, "\\n");
		break;
	case '\r':
		buffer_append_text(buffer, "\\r");
		break;
	case '\t':
		buffer_append_text(buffer, "\\t");
		break;
	default:
		append_code_unit(buffer, c);
	}
}

static bool is_html(unsigned char c)
{
	return c == '<' || c == '>' || c == '&';
}

/* Eight bytes at a time: each test yields a high bit for a byte that matches, and none if no byte does. */
static const uint64_t LOW_BITS = 0x0101010101010101;
static const uint64_t HIGH_BITS = 0x8080808080808080;

static uint64_t bytes_equal(uint64_t word, char c)
{
	uint64_t rest = word ^ (LOW_BITS * (unsigned char)c);

	return (rest - LOW_BITS) & ~rest & HIGH_BITS;
}

static bool is_plain_word(const char *text, bool escape_html)
{
	uint64_t word;
	uint64_t special;

	memcpy(&word, text, sizeof word);
	special = word & HIGH_BITS;                      /* beyond ASCII */
	special |= (word - LOW_BITS * 0x20) & HIGH_BITS; /* below the blank */
	special |= bytes_equal(word, '"') | bytes_equal(word, '\\');
	if (escape_html)
		special |= bytes_equal(word, '<') | bytes_equal(word, '>') | bytes_equal(word, '&');
	return special == 0;
}

#if defined(__SSE2__)

enum { BLOCK_BYTES = 16 };

/* Copies a block, and returns one bit for each of its bytes that doesn't stand for itself. */
static unsigned copy_block(char *to, const char *from, bool escape_html)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
	unsigned special = plain_text_mask(bytes);

	if (escape_html) {
		__m128i raised = _mm_or_si128(bytes, _mm_set1_epi8(2)); /* makes < the same as > */
		__m128i html = _mm_or_si128(_mm_cmpeq_epi8(raised, _mm_set1_epi8('>')),
		                            _mm_cmpeq_epi8(bytes, _mm_set1_epi8('&')));

		special |= (unsigned)_mm_movemask_epi8(html);
	}
	_mm_storeu_si128((__m128i *)(void *)to, bytes);
	return special;
}

/* As copy_plain, for a block or more: the last block overlaps the one before. */
static size_t copy_plain_blocks(char *to, struct slice text, bool escape_html)
{
	size_t last = text.length - BLOCK_BYTES;

	for (size_t at = 0;; at = at + BLOCK_BYTES < last ? at + BLOCK_BYTES : last) {
		unsigned mask = copy_block(to + at, text.data + at, escape_html);

		if (mask != 0)
			return at + (size_t)__builtin_ctz(mask);
		if (at == last)
			return text.length;
	}
}

#endif

/* Copies the bytes from the start that stand for themselves, and returns how many those are. */
static size_t copy_plain(char *to, struct slice text, bool escape_html)
{
	size_t at = 0;

#if defined(__SSE2__)
	if (text.length >= BLOCK_BYTES)
		return copy_plain_blocks(to, text, escape_html);
#endif
	for (; text.length - at >= sizeof(uint64_t) && is_plain_word(text.data + at, escape_html);
	     at += sizeof(uint64_t))
		memcpy(to + at, text.data + at, sizeof(uint64_t));
	for (; at < text.length; at++) {
		if (!plain_text_is(text.data[at]) || (escape_html && is_html((unsigned char)text.data[at])))
			break;
		to[at] = text.data[at];
	}
	return at;
}

/* Writes the one character at the start, which isn't plain, and returns its length. */
static size_t append_special(struct buffer *buffer, struct slice text, bool escape_html)
{
	uint32_t code_point;
	size_t length = slice_utf8_next(text, &code_point);

	if (length == 0) {
		append_code_unit(buffer, 0xfffd);
		return 1;
	}
	if (code_point == '"' || code_point == '\\') {
		buffer_append_char(buffer, '\\');
		buffer_append_char(buffer, (char)code_point);
	} else if (code_point < 0x20) {
		append_control(buffer, (unsigned char)code_point);
	} else if (escape_html && (code_point < 0x80 || code_point == 0x2028 || code_point == 0x2029)) {
		append_code_unit(buffer, code_point);
	} else {
		buffer_append(buffer, text.data, length);
	}
	return length;
}

void json_text_append_string(struct buffer *buffer, struct slice text, bool escape_html)
{
	char *room = buffer_reserve(buffer, text.length + 2);
	size_t plain;

	if (room == NULL)
		return;
	*room = '"';
	buffer_advance(buffer, 1);
	while (text.length > 0) {
		room = buffer_reserve(buffer, text.length + 1);
		if (room == NULL)
			return;
		plain = copy_plain(room, text, escape_html);
		buffer_advance(buffer, plain);
		text = slice_from_offset(text, plain);
		if (text.length > 0)
			text = slice_from_offset(text, append_special(buffer, text, escape_html));
	}
	buffer_append_char(buffer, '"');
}

/* ---- numbers ---- */

enum { MOST_DIGITS = 17 };

/* 0.d1d2d3… times 10^point, without zeros at the end. */
struct decimal {
	char digits[MOST_DIGITS + 1];
	int count;
	int point;
};

/* Rounds correctly to count digits. Takes the digits alone out of the text, whatever the locale's decimal point is. */
static void decimal_from(double value, int count, struct decimal *ret_decimal)
{
	char text[MOST_DIGITS + 16];
	const char *at = text;

	snprintf(text, sizeof text, "%.*e", count - 1, value);
	ret_decimal->count = 0;
	for (; *at != 'e'; at++) {
		if (*at >= '0' && *at <= '9')
			ret_decimal->digits[ret_decimal->count++] = *at;
	}
	ret_decimal->point = (int)strtol(at + 1, NULL, 10) + 1;
}

/* One more in the last place. */
static void decimal_increment(struct decimal *decimal)
{
	int at = decimal->count - 1;

	while (at >= 0 && decimal->digits[at] == '9')
		decimal->digits[at--] = '0';
	if (at >= 0) {
		decimal->digits[at]++;
	} else {
		decimal->digits[0] = '1'; /* 999 became 1000; the last zero is left off */
		decimal->point++;
	}
}

static bool decimal_reads_back(const struct decimal *decimal, double value, bool single)
{
	char text[MOST_DIGITS + 16];

	snprintf(text, sizeof text, "%.*se%d", decimal->count, decimal->digits, decimal->point - decimal->count);
	return single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/* Of a normal double: all bits of its fraction are zero. */
static bool is_power_of_two(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits << 12 == 0;
}

/* value is positive and finite. */
static struct decimal shortest_decimal(double value, bool single)
{
	bool subnormal = value < (single ? (double)FLT_MIN : DBL_MIN);
	int most = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
	int count = subnormal ? 1 : single ? FLT_DIG : DBL_DIG;
	struct decimal decimal;

	for (;; count++) {
		decimal_from(value, count, &decimal);
		if (count == most || decimal_reads_back(&decimal, value, single))
			break;
		if (is_power_of_two(value)) {
			decimal_increment(&decimal);
			if (decimal_reads_back(&decimal, value, single))
				break;
		}
	}
	while (decimal.count > 1 && decimal.digits[decimal.count - 1] == '0')
		decimal.count--;
	return decimal;
}

static void append_zeros(struct buffer *buffer, int count)
{
	for (int i = 0; i < count; i++)
		buffer_append_char(buffer, '0');
}

static void append_plain(struct buffer *buffer, const struct decimal *decimal)
{
	size_t count = (size_t)decimal->count;

	if (decimal->point <= 0) {
		buffer_append_text(buffer, "0.");
		append_zeros(buffer, -decimal->point);
		buffer_append(buffer, decimal->digits, count);
	} else if (decimal->point >= decimal->count) {
		buffer_append(buffer, decimal->digits, count);
		append_zeros(buffer, decimal->point - decimal->count);
	} else {
		size_t whole = (size_t)decimal->point;

		buffer_append(buffer, decimal->digits, whole);
		buffer_append_char(buffer, '.');
		buffer_append(buffer, decimal->digits + whole, count - whole);
	}
}

static void append_exponent_form(struct buffer *buffer, const struct decimal *decimal)
{
	buffer_append_char(buffer, decimal->digits[0]);
	if (decimal->count > 1)
		buffer_append_char(buffer, '.');
	buffer_append(buffer, decimal->digits + 1, (size_t)decimal->count - 1);
	buffer_append_format(buffer, "e%+d", decimal->point - 1);
}

enum { DIGITS_ROOM = 32 };

/* Writes the digits in front of `end`, and returns where they begin. */
static size_t put_whole(char digits[DIGITS_ROOM], size_t end, uint64_t value)
{
	do
		digits[--end] = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	return end;
}

static void append_whole(struct buffer *buffer, uint64_t value)
{
	char digits[DIGITS_ROOM];
	size_t at = put_whole(digits, sizeof digits, value);

	buffer_append(buffer, digits + at, sizeof digits - at);
}

/*
 * Most fractions have a few decimals: times in seconds, whole milli- or nanoseconds. If value is the double nearest to a
 * decimal of at most 15 digits, no other decimal of so few digits reads back as it, so this one without its zeros is
 * the shortest. The division is the test: both its numbers are exact, so it rounds once, as reading the decimal does.
 */
static bool append_short_fraction(struct buffer *buffer, double value)
{
	enum { DECIMALS = 9 };
	static const uint64_t SCALE = 1000000000;
	static const double LEAST = 1e-6, MOST = 1e6; /* below, digits are fewer than 16; plain form */
	char digits[DIGITS_ROOM];
	size_t at = sizeof digits;
	int decimals = DECIMALS;
	uint64_t scaled;

	if (value < LEAST || value >= MOST)
		return false;
	scaled = (uint64_t)(value * (double)SCALE + 0.5);
	if ((double)scaled / (double)SCALE != value)
		return false;
	for (; scaled % 10 == 0; scaled /= 10)
		decimals--;
	for (; decimals > 0; decimals--, scaled /= 10)
		digits[--at] = (char)('0' + scaled % 10);
	digits[--at] = '.';
	at = put_whole(digits, at, scaled);
	buffer_append(buffer, digits + at, sizeof digits - at);
	return true;
}

bool json_text_append_number(struct buffer *buffer, double value, bool single)
{
	/* Whole numbers below are their own shortest decimal. */
	const double exact_limit = single ? 0x1p24 : 0x1p53;
	double size = fabs(value);

	if (!isfinite(value))
		return false;
	if (signbit(value))
		buffer_append_char(buffer, '-');
	if (size < exact_limit && size == (double)(uint64_t)size) {
		append_whole(buffer, (uint64_t)size);
		return true;
	}
	if (!single && append_short_fraction(buffer, size))
		return true;

	struct decimal decimal = shortest_decimal(size, single);
	bool plain = single ? (float)size >= 1e-6F && (float)size < 1e21F : size >= 1e-6 && size < 1e21;

	if (plain)
		append_plain(buffer, &decimal);
	else
		append_exponent_form(buffer, &decimal);
	return true;
}
