#include "extender/storage_size.h"

#include "codec/json_reader.h"
#include "codec/quantity.h"
#include "extender/limits.h"

enum { QUANTITY_MAX_BYTES = 256 }; /* as codec/quantity.h says */

bool storage_size_from_quantity(struct slice raw, int64_t *ret_bytes, struct error *err)
{
	struct quantity quantity;
	struct slice text = slice_trim(raw);
	enum json_kind kind = json_kind_of(text);

	if (kind == JSON_KIND_NONE || kind == JSON_KIND_NULL) {
		*ret_bytes = 0;
		return true;
	}
	if (kind != JSON_KIND_STRING && kind != JSON_KIND_NUMBER)
		return error_set(err, ERROR_SYNTAX, "storage is neither a string nor a number");
	/* No quantity has an escape in it, so one in the text makes it none. */
	if (kind == JSON_KIND_STRING)
		text = slice_from(text.data + 1, text.length - 2);
	if (text.length > QUANTITY_MAX_BYTES)
		return error_set(err, ERROR_LIMIT, "storage \"%.*s…\" is too long", 32, text.data);
	if (quantity_parse(text, &quantity, err)) {
		*ret_bytes = quantity_value(quantity);
		return true;
	}
	if (err->code != ERROR_LIMIT)
		return error_wrap(err, "storage \"%.*s\"", SLICE_ARGS(text));
	/* Too much for an int64, and not of the binary family, which is capped (spec G11). */
	*ret_bytes = slice_trim(text).data[0] == '-' ? INT64_MIN : INT64_MAX;
	return true;
}

/* --- inline volumes --- */

enum { FRACTION_DIGITS = 18 }; /* more make no difference of a byte */

__extension__ typedef unsigned __int128 wide_unsigned;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool take_character(struct slice *text, char c)
{
	if (text->length == 0 || text->data[0] != c)
		return false;
	*text = slice_from_offset(*text, 1);
	return true;
}

/* The power of two of a unit; false if it is none (spec L2). */
static bool unit_shift(struct slice unit, unsigned *ret_shift)
{
	static const struct {
		struct slice text;
		unsigned shift;
	} UNITS[] = {
		{ SLICE_INIT("b"), 0 },    { SLICE_INIT("k"), 10 },   { SLICE_INIT("kb"), 10 },
		{ SLICE_INIT("ki"), 10 },  { SLICE_INIT("kib"), 10 }, { SLICE_INIT("e3"), 10 },
		{ SLICE_INIT("m"), 20 },   { SLICE_INIT("mb"), 20 },  { SLICE_INIT("mi"), 20 },
		{ SLICE_INIT("mib"), 20 }, { SLICE_INIT("e6"), 20 },  { SLICE_INIT("g"), 30 },
		{ SLICE_INIT("gb"), 30 },  { SLICE_INIT("gi"), 30 },  { SLICE_INIT("gib"), 30 },
		{ SLICE_INIT("e9"), 30 },  { SLICE_INIT("t"), 40 },   { SLICE_INIT("tb"), 40 },
		{ SLICE_INIT("ti"), 40 },  { SLICE_INIT("tib"), 40 }, { SLICE_INIT("e12"), 40 },
	};

	for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
		if (slice_equal_fold(unit, UNITS[i].text)) {
			*ret_shift = UNITS[i].shift;
			return true;
		}
	}
	return false;
}

bool storage_size_from_inline(struct slice text, int64_t *ret_bytes)
{
	wide_unsigned whole = 0;
	wide_unsigned fraction = 0;
	wide_unsigned scale = 1;
	bool any_digit = false;
	unsigned shift;

	text = slice_trim(text);
	if (text.length > EXTENDER_INLINE_SIZE_BYTES)
		return false;
	for (; text.length > 0 && is_digit(text.data[0]); text = slice_from_offset(text, 1), any_digit = true) {
		if (whole <= INT64_MAX)
			whole = whole * 10 + (unsigned)(text.data[0] - '0');
	}
	if (take_character(&text, '.')) {
		for (int i = 0; text.length > 0 && is_digit(text.data[0]); text = slice_from_offset(text, 1), i++) {
			any_digit = true;
			if (i >= FRACTION_DIGITS)
				continue;
			fraction = fraction * 10 + (unsigned)(text.data[0] - '0');
			scale *= 10;
		}
	}
	if (!any_digit || !unit_shift(slice_trim(text), &shift))
		return false;

	wide_unsigned bytes = (whole << shift) + (fraction << shift) / scale;

	*ret_bytes = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
	return true;
}
