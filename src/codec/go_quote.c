#include "codec/go_quote.h"

#include <stddef.h>
#include <stdint.h>

struct range {
	uint32_t first, last;
};

/* Not printable: controls, blanks but the space, formatting characters, private use, noncharacters. */
static const struct range UNPRINTABLE[] = {
	{ 0x0000, 0x001f },   { 0x007f, 0x00a0 },   { 0x00ad, 0x00ad },   { 0x0600, 0x0605 },    { 0x061c, 0x061c },
	{ 0x06dd, 0x06dd },   { 0x070f, 0x070f },   { 0x0890, 0x0891 },   { 0x08e2, 0x08e2 },    { 0x1680, 0x1680 },
	{ 0x180e, 0x180e },   { 0x2000, 0x200f },   { 0x2028, 0x202f },   { 0x205f, 0x206f },    { 0x3000, 0x3000 },
	{ 0xe000, 0xf8ff },   { 0xfdd0, 0xfdef },   { 0xfeff, 0xfeff },   { 0xfff0, 0xfffb },    { 0xfffe, 0xffff },
	{ 0x110bd, 0x110bd }, { 0x110cd, 0x110cd }, { 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 },  { 0x1d173, 0x1d17a },
	{ 0x1fffe, 0x1ffff }, { 0x2fffe, 0x2ffff }, { 0x3fffe, 0xe00ff }, { 0xe01f0, 0x10ffff },
};

static bool is_printable(uint32_t code_point)
{
	size_t count = sizeof UNPRINTABLE / sizeof UNPRINTABLE[0];

	for (size_t i = 0; i < count && code_point >= UNPRINTABLE[i].first; i++) {
		if (code_point <= UNPRINTABLE[i].last)
			return false;
	}
	return true;
}

/* The letter behind the backslash, or 0. */
static char short_escape(uint32_t code_point)
{
	switch (code_point) {
	case '"':
	case '\\':
		return (char)code_point;
	case '\a':
		return 'a';
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	case '\v':
		return 'v';
	default:
		return 0;
	}
}

static void append_escape(struct buffer *buffer, uint32_t code_point)
{
	char letter = short_escape(code_point);

	if (letter != 0)
		buffer_append_format(buffer, "\\%c", letter);
	else if (code_point < 0x80)
		buffer_append_format(buffer, "\\x%02x", code_point);
	else if (code_point < 0x10000)
		buffer_append_format(buffer, "\\u%04x", code_point);
	else
		buffer_append_format(buffer, "\\U%08x", code_point);
}

void go_quote_append(struct buffer *buffer, struct slice text)
{
	buffer_append_char(buffer, '"');
	while (text.length > 0) {
		uint32_t code_point;
		size_t length = slice_utf8_next(text, &code_point);

		if (length == 0) {
			length = 1; /* one byte that is no UTF-8 */
			buffer_append_format(buffer, "\\x%02x", (unsigned char)text.data[0]);
		} else if (short_escape(code_point) != 0 || !is_printable(code_point)) {
			append_escape(buffer, code_point);
		} else {
			buffer_append(buffer, text.data, length);
		}
		text = slice_from_offset(text, length);
	}
	buffer_append_char(buffer, '"');
}
