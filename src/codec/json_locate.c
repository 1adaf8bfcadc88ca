#include "codec/json_locate.h"

#include "codec/json_internal.h"

static unsigned line_of(const struct json_reader *reader, int token)
{
	return json_line_at(reader->text, json_token_offset(&reader->tokens[token].jsmn));
}

static bool key_is(struct json_reader *reader, const jsmntok_t *token, struct slice key)
{
	struct slice text = json_token_text(reader, token);
	struct error ignored;

	if (json_needs_decoding(reader, token) && !json_decode_string(reader, token, &text, &ignored))
		return false;
	return slice_equal(text, key);
}

/* The token of the value that an object has under key, or -1. */
static int find_member(struct json_reader *reader, int object, struct slice key)
{
	const jsmntok_t *parent = &reader->tokens[object].jsmn;

	if (parent->type != JSMN_OBJECT)
		return -1;
	for (int i = object + 1; i < reader->token_count && reader->tokens[i].jsmn.start < parent->end; i++) {
		const jsmntok_t *token = &reader->tokens[i].jsmn;

		/* Parent links lead a value to its key, and a key to its object. */
		if (token->parent == object && key_is(reader, token, key))
			return i + 1;
	}
	return -1;
}

struct json_place json_locate(struct json_reader *reader, struct slice path)
{
	int at = 0;

	while (path.length > 0) {
		int member = find_member(reader, at, slice_take_until(&path, '.'));

		if (member < 0)
			return (struct json_place){ .present = false, .line = line_of(reader, at) };
		at = member;
	}
	return (struct json_place){ .present = true, .line = line_of(reader, at) };
}
