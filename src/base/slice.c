#include "base/slice.h"

#include <string.h>

struct slice slice_of(const char *text)
{
	return slice_from(text, text != NULL ? strlen(text) : 0);
}

/*
 * Names and ids have some dozen bytes: comparing words in place costs less than a call. From eight bytes up the last
 * word overlaps the one before, rather than that single bytes are left.
 */
bool slice_equal(struct slice a, struct slice b)
{
	uint64_t a_word;
	uint64_t b_word;
	size_t at = 0;

	if (a.length != b.length)
		return false;
	if (a.length >= sizeof a_word) {
		size_t last = a.length - sizeof a_word;

		for (; at < last; at += sizeof a_word) {
			memcpy(&a_word, a.data + at, sizeof a_word);
			memcpy(&b_word, b.data + at, sizeof b_word);
			if (a_word != b_word)
				return false;
		}
		memcpy(&a_word, a.data + last, sizeof a_word);
		memcpy(&b_word, b.data + last, sizeof b_word);
		return a_word == b_word;
	}
	for (; at < a.length; at++) {
		if (a.data[at] != b.data[at])
			return false;
	}
	return true;
}

bool slice_equal_text(struct slice a, const char *text)
{
	return slice_equal(a, slice_of(text));
}

static unsigned char ascii_lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool slice_equal_fold(struct slice a, struct slice b)
{
	if (a.length != b.length)
		return false;
	for (size_t i = 0; i < a.length; i++) {
		if (ascii_lower(a.data[i]) != ascii_lower(b.data[i]))
			return false;
	}
	return true;
}

int slice_compare(struct slice a, struct slice b)
{
	size_t common = a.length < b.length ? a.length : b.length;
	uint64_t a_word;
	uint64_t b_word;
	size_t at = 0;

	/* Where the words are the same; which of two others is the lesser is left to single bytes. */
	for (; common - at >= sizeof a_word; at += sizeof a_word) {
		memcpy(&a_word, a.data + at, sizeof a_word);
		memcpy(&b_word, b.data + at, sizeof b_word);
		if (a_word != b_word)
			break;
	}
	for (; at < common; at++) {
		if (a.data[at] != b.data[at])
			return (unsigned char)a.data[at] < (unsigned char)b.data[at] ? -1 : 1;
	}
	return (a.length > b.length) - (a.length < b.length);
}

bool slice_starts_with(struct slice text, struct slice prefix)
{
	return text.length >= prefix.length && slice_equal(slice_from(text.data, prefix.length), prefix);
}

bool slice_contains(struct slice text, struct slice part)
{
	return part.length == 0 ||
	       (text.length >= part.length && memmem(text.data, text.length, part.data, part.length) != NULL);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct slice slice_trim(struct slice text)
{
	while (text.length > 0 && is_blank(text.data[text.length - 1]))
		text.length--;
	while (text.length > 0 && is_blank(text.data[0]))
		text = slice_from_offset(text, 1);
	return text;
}

struct slice slice_from_offset(struct slice text, size_t start)
{
	if (start >= text.length)
		start = text.length;
	if (start == 0)
		return text;
	return slice_from(text.data + start, text.length - start);
}

struct slice slice_take_until(struct slice *text, char separator)
{
	const char *found = text->length > 0 ? memchr(text->data, separator, text->length) : NULL;
	struct slice before = *text;

	if (found == NULL) {
		*text = slice_from_offset(*text, text->length);
		return before;
	}
	before.length = (size_t)(found - text->data);
	*text = slice_from_offset(*text, before.length + 1);
	return before;
}

bool slice_to_u64(struct slice text, uint64_t *ret_value)
{
	enum { SAFE_DIGITS = 19 }; /* so many always fit */
	uint64_t value = 0;

	if (text.length == 0)
		return false;
	for (size_t i = 0; i < text.length; i++) {
		unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';

		if (digit > 9)
			return false;
		if (i < SAFE_DIGITS)
			value = value * 10 + digit;
		else if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret_value = value;
	return true;
}

bool slice_to_i64(struct slice text, int64_t *ret_value)
{
	bool negative = text.length > 0 && text.data[0] == '-';
	bool has_sign = negative || (text.length > 0 && text.data[0] == '+');
	uint64_t size;

	if (!slice_to_u64(slice_from_offset(text, has_sign), &size) || size > (uint64_t)INT64_MAX + negative)
		return false;
	*ret_value = (int64_t)(negative ? 0 - size : size);
	return true;
}

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Well-formed sequences are those of RFC 3629 section 4: no overlong forms, no surrogates, nothing over U+10FFFF. */
size_t slice_utf8_next(struct slice text, uint32_t *ret_code_point)
{
	const unsigned char *bytes = (const unsigned char *)text.data;
	unsigned char first = text.length > 0 ? bytes[0] : 0xff;

	if (first < 0x80) {
		*ret_code_point = first;
		return 1;
	}

	size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;

	if (length == 0 || text.length < length)
		return 0;

	uint32_t code_point = first & (0x7fU >> length);

	for (size_t i = 1; i < length; i++) {
		if (!is_continuation(bytes[i]))
			return 0;
		code_point = code_point << 6 | (bytes[i] & 0x3fU);
	}

	bool overlong = (length == 3 && code_point < 0x800) || (length == 4 && code_point < 0x10000);
	bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;

	if (overlong || surrogate || code_point > 0x10ffff)
		return 0;
	*ret_code_point = code_point;
	return length;
}

bool slice_is_utf8(struct slice text)
{
	static const uint64_t HIGH_BITS = 0x8080808080808080;

	for (size_t at = 0; at < text.length;) {
		uint64_t eight;
		uint32_t code_point;

		if (text.length - at >= sizeof eight) {
			memcpy(&eight, text.data + at, sizeof eight);
			if ((eight & HIGH_BITS) == 0) {
				at += sizeof eight;
				continue;
			}
		}

		size_t length = slice_utf8_next(slice_from_offset(text, at), &code_point);

		if (length == 0)
			return false;
		at += length;
	}
	return true;
}

/* Eight bytes at a time: xor, multiply by an odd constant (2^64 / golden ratio), fold the well-mixed high half down. */
static uint64_t hash_step(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15;
	return hash ^ (hash >> 32);
}

uint64_t slice_hash(struct slice text)
{
	uint64_t hash = hash_step(0x243f6a8885a308d3, text.length);
	uint64_t word;
	size_t at = 0;

	if (text.length >= sizeof word) {
		size_t last = text.length - sizeof word;

		for (; at < last; at += sizeof word) {
			memcpy(&word, text.data + at, sizeof word);
			hash = hash_step(hash, word);
		}
		memcpy(&word, text.data + last, sizeof word); /* may overlap the one before */
		hash = hash_step(hash, word);
	} else if (text.length > 0) {
		for (word = 0; at < text.length; at++)
			word = word << 8 | (unsigned char)text.data[at];
		hash = hash_step(hash, word);
	}
	return hash_step(hash, hash >> 29);
}
