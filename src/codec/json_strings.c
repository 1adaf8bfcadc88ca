/*
 * What strings mean: escapes, and bytes that are no UTF-8. Most strings need none of it and stay where they are; the
 * others are copied to the arena, plain runs sixteen bytes at a time.
 */
#include <string.h>

#include "codec/json_internal.h"

enum { DECODE_SLACK = 16 };

bool json_needs_decoding(const struct json_reader *reader, const jsmntok_t *token)
{
	size_t length = (size_t)(token->end - token->start);

	if (reader->bad_text_offset < (size_t)token->end)
		return true;
	return reader->any_escape && length > 0 && memchr(reader->text.data + token->start, '\\', length) != NULL;
}

static unsigned read_hex(const char *at)
{
	unsigned unit = 0;

	for (int i = 0; i < 4; i++) {
		char c = at[i];

		unit = unit * 16 + (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return unit;
}

static char *put_code_point(char *to, unsigned code_point)
{
	if (code_point < 0x80) {
		*to++ = (char)code_point;
	} else if (code_point < 0x800) {
		*to++ = (char)(0xc0 | code_point >> 6);
		*to++ = (char)(0x80 | (code_point & 0x3f));
	} else if (code_point < 0x10000) {
		*to++ = (char)(0xe0 | code_point >> 12);
		*to++ = (char)(0x80 | (code_point >> 6 & 0x3f));
		*to++ = (char)(0x80 | (code_point & 0x3f));
	} else {
		*to++ = (char)(0xf0 | code_point >> 18);
		*to++ = (char)(0x80 | (code_point >> 12 & 0x3f));
		*to++ = (char)(0x80 | (code_point >> 6 & 0x3f));
		*to++ = (char)(0x80 | (code_point & 0x3f));
	}
	return to;
}

/* An escape that json_scan has passed; *at is on the backslash. Half a surrogate pair counts as bad text. */
static char *decode_escape(const char **at, const char *end, char *to, bool *bad)
{
	static const char MEANINGS[] = { ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
		                         ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t' };
	const char *from = *at;
	unsigned unit;

	if (from[1] != 'u') {
		*to++ = MEANINGS[(unsigned char)from[1]];
		*at = from + 2;
		return to;
	}
	unit = read_hex(from + 2);
	*at = from + 6;
	if (unit < 0xd800 || unit > 0xdfff)
		return put_code_point(to, unit);
	if (unit < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
		unsigned second = read_hex(*at + 2);

		if (second >= 0xdc00 && second <= 0xdfff) {
			*at += 6;
			return put_code_point(to, 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00));
		}
	}
	*bad = true;
	return put_code_point(to, 0xfffd);
}

/* Copies up to the next character that isn't plain; may write up to DECODE_SLACK bytes behind what it copies. */
static char *copy_plain(const char **at, const char *end, char *to)
{
	const char *from = *at;

#if defined(__SSE2__)
	while (end - from >= 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
		unsigned mask = plain_text_mask(bytes);

		_mm_storeu_si128((__m128i *)(void *)to, bytes);
		if (mask != 0) {
			*at = from + __builtin_ctz(mask);
			return to + __builtin_ctz(mask);
		}
		from += 16;
		to += 16;
	}
#endif
	while (from < end && plain_text_is(*from))
		*to++ = *from++;
	*at = from;
	return to;
}

/*
 * Writes what text means to `to`, with U+FFFD for each bad byte and half surrogate pair, and says whether there were
 * any. An escape never gets longer, a bad byte becomes three.
 */
static size_t decode_text(struct slice text, bool escapes, char *to, bool *ret_bad)
{
	const char *at = text.data;
	const char *end = at + text.length;
	char *start = to;

	*ret_bad = false;
	while (at < end) {
		size_t length;

		to = copy_plain(&at, end, to);
		if (at == end)
			break;
		if (escapes && *at == '\\') {
			to = decode_escape(&at, end, to, ret_bad);
			continue;
		}
		length = json_utf8_length(at, end);
		if (length == 0) {
			*ret_bad = true;
			to = put_code_point(to, 0xfffd);
			at++;
		}
		for (; length > 0; length--)
			*to++ = *at++;
	}
	return (size_t)(to - start);
}

/* Memory for decode_text. */
static char *allocate_decoded(struct json_reader *reader, size_t length, bool maybe_bad)
{
	return arena_allocate_raw(reader->arena, (maybe_bad ? 3 * length : length) + DECODE_SLACK, 1);
}

/* For a problem that isn't at the value at hand but at a key or value whose token is given. */
static bool fail_text(struct json_reader *reader, const jsmntok_t *token, struct error *err)
{
	struct json_problem problem = { .kind = JSON_PROBLEM_VALUE, .text = "invalid UTF-8 or half a surrogate pair" };

	return json_fail(reader, (int)((const struct json_token *)(const void *)token - reader->tokens), &problem, err);
}

bool json_decode_string(struct json_reader *reader, const jsmntok_t *token, struct slice *ret_text, struct error *err)
{
	struct slice text = json_token_text(reader, token);
	bool maybe_bad = reader->bad_text_offset < (size_t)token->end;
	bool bad;
	char *decoded;

	if (text.length == 0) {
		*ret_text = text;
		return true;
	}
	decoded = allocate_decoded(reader, text.length, maybe_bad);
	if (decoded == NULL)
		return json_fail_memory(reader, err);
	*ret_text = slice_from(decoded, decode_text(text, true, decoded, &bad));
	if (bad && !reader->bad_text_told && (reader->message == NULL || !reader->message->replace_bad_utf8))
		return fail_text(reader, token, err);
	return true;
}

bool json_reader_raw(struct json_reader *reader, struct slice *ret_value, struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	size_t start = json_token_offset(token);
	size_t end = (size_t)token->end + (token->type == JSMN_STRING ? 1 : 0);
	struct slice raw = slice_from(reader->text.data + start, end - start);
	bool bad;

	if (reader->field != NULL && reader->field->max_bytes != 0 && raw.length > reader->field->max_bytes)
		return json_fail_value(reader, err, "%zu bytes are more than %u", raw.length, reader->field->max_bytes);
	if (reader->bad_text_offset < end && !slice_is_utf8(raw)) {
		char *clean = allocate_decoded(reader, raw.length, true);

		if (clean == NULL)
			return json_fail_memory(reader, err);
		raw = slice_from(clean, decode_text(raw, false, clean, &bad));
	}
	json_skip(reader);
	*ret_value = raw;
	return true;
}
