/*
 * A state machine over bytes that can stop anywhere. Three kinds of places:
 *
 *	between values   VALUES: blanks. LIST: within the array, where only commas and its end may stand
 *	within a value   brackets are counted; it ends with a bracket, a quote, or before what can't belong to it
 *	envelope         LIST only: outside the array. Copied. Top-level keys are compared with list_key
 *
 * Within a value most of the way is gone by json_skip_blocks, sixty-four bytes at a time.
 */
#include "codec/json_splitter.h"

#include <string.h>

#include "codec/json_blocks.h"
#include "codec/json_reader.h"

enum state {
	BETWEEN_VALUES, /* VALUES */
	WITHIN_VALUE,
	ENVELOPE_BEFORE, /* LIST, from here on */
	ENVELOPE,
	ENVELOPE_ENDED,
	ARRAY_BEGUN,     /* an element or the end */
	ELEMENT_ENDED,   /* a comma or the end */
	ELEMENT_FOLLOWS, /* behind a comma */
};

enum { KEY_ARENA_BYTES = 64 * 1024 };

void json_splitter_init(struct json_splitter *splitter, enum json_splitter_mode mode, struct slice list_key,
                        size_t max_value_bytes, size_t max_envelope_bytes, json_splitter_callback *callback,
                        void *context)
{
	*splitter = (struct json_splitter){
		.mode = mode,
		.list_key = list_key,
		.max_value_bytes = max_value_bytes,
		.callback = callback,
		.context = context,
		.state = mode == JSON_SPLITTER_LIST ? ENVELOPE_BEFORE : BETWEEN_VALUES,
	};
	buffer_init(&splitter->value, max_value_bytes);
	buffer_init(&splitter->envelope, max_envelope_bytes);
}

void json_splitter_destroy(struct json_splitter *splitter)
{
	buffer_destroy(&splitter->value);
	buffer_destroy(&splitter->envelope);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && is_blank(*at))
		at++;
	return at;
}

/* at: within a string. Returns what is behind its closing quote, or end. */
static const char *scan_string(struct json_splitter *splitter, const char *at, const char *end)
{
	if (splitter->escaped && at < end) {
		splitter->escaped = false;
		at++;
	}
	while (at < end) {
		while (at < end && *at != '"' && *at != '\\')
			at++;
		if (at == end)
			break;
		if (*at == '"') {
			splitter->in_string = false;
			return at + 1;
		}
		if (end - at == 1) {
			splitter->escaped = true;
			return end;
		}
		at += 2;
	}
	return end;
}

/* --- values --- */

/* Whether a number, true, false or null can't go on with c. */
static bool ends_bare(char c)
{
	return is_blank(c) || c == ',' || c == ']' || c == '}' || c == '[' || c == '{' || c == '"' || c == ':';
}

static const char *scan_bare(const char *at, const char *end, bool *ret_complete)
{
	while (at < end && !ends_bare(*at))
		at++;
	*ret_complete = at < end;
	return at;
}

/* As scan_value, character by character. */
static const char *scan_characters(struct json_splitter *splitter, const char *at, const char *end, bool *ret_complete)
{
	bool complete = false;

	if (splitter->in_string) {
		at = scan_string(splitter, at, end);
		complete = !splitter->in_string && splitter->depth == 0;
	} else if (splitter->escaped && at < end) {
		splitter->escaped = false;
		at++;
	}
	while (at < end && !complete) {
		switch (*at++) {
		case '"':
			splitter->in_string = true;
			at = scan_string(splitter, at, end);
			complete = splitter->depth == 0 && !splitter->in_string;
			break;
		case '{':
		case '[':
			splitter->depth++;
			break;
		case '}':
		case ']':
			complete = --splitter->depth == 0;
			break;
		case '\\':
			/* No JSON, but json_skip_blocks takes it so too: the cuts mustn't depend on the feeds. */
			splitter->escaped = at == end;
			at += at < end;
			break;
		default:
			break;
		}
	}
	*ret_complete = complete;
	return at;
}

/* at: within a value. Returns what is behind it and sets *ret_complete, or returns end. */
static const char *scan_value(struct json_splitter *splitter, const char *at, const char *end, bool *ret_complete)
{
	*ret_complete = false;
	if (splitter->bare)
		return scan_bare(at, end, ret_complete);
	while (at < end && !*ret_complete) {
		at = json_skip_blocks(at, end, &splitter->depth, &splitter->in_string, &splitter->escaped);
		at = scan_characters(splitter, at, end - at > JSON_BLOCK_BYTES ? at + JSON_BLOCK_BYTES : end,
		                     ret_complete);
	}
	return at;
}

static bool fail_length(const struct json_splitter *splitter, struct error *err)
{
	return error_set(err, ERROR_LIMIT, "a JSON value is longer than %zu bytes", splitter->max_value_bytes);
}

static bool give(struct json_splitter *splitter, struct slice value, struct error *err)
{
	if (value.length > splitter->max_value_bytes)
		return fail_length(splitter, err);
	splitter->state = splitter->mode == JSON_SPLITTER_LIST ? ELEMENT_ENDED : BETWEEN_VALUES;
	splitter->count++;
	return splitter->callback(splitter->context, value, err);
}

static bool keep_for_next_feed(struct json_splitter *splitter, const char *start, const char *end, struct error *err)
{
	size_t length = (size_t)(end - start);

	if (length > splitter->max_value_bytes - splitter->value.length)
		return fail_length(splitter, err);
	buffer_append(&splitter->value, start, length);
	return buffer_check(&splitter->value, "a JSON value", err);
}

static bool feed_value(struct json_splitter *splitter, const char **at, const char *end, struct error *err)
{
	const char *start = *at;
	bool complete;

	*at = scan_value(splitter, start, end, &complete);
	if (complete && splitter->value.length == 0)
		return give(splitter, slice_from(start, (size_t)(*at - start)), err);
	if (!keep_for_next_feed(splitter, start, *at, err))
		return false;
	if (!complete)
		return true;

	bool going_on = give(splitter, buffer_slice(&splitter->value), err);

	buffer_release(&splitter->value);
	return going_on;
}

/* at: on the first character of a value. */
static bool begin_value(struct json_splitter *splitter, char first, struct error *err)
{
	bool bare = first != '{' && first != '[' && first != '"';

	if (bare && (ends_bare(first) || (unsigned char)first < ' '))
		return error_set(err, ERROR_SYNTAX, "unexpected character '%c' where a JSON value should begin", first);
	splitter->state = WITHIN_VALUE;
	splitter->depth = 0;
	splitter->in_string = false;
	splitter->escaped = false;
	splitter->bare = bare;
	return true;
}

/* --- the array of a list --- */

static bool feed_array(struct json_splitter *splitter, const char **at, const char *end, struct error *err)
{
	*at = skip_blanks(*at, end);
	if (*at == end)
		return true;
	if (**at == ']' && splitter->state != ELEMENT_FOLLOWS) {
		splitter->state = ENVELOPE; /* which copies the bracket */
		splitter->depth = 2;
		return true;
	}
	if (splitter->state != ELEMENT_ENDED)
		return begin_value(splitter, **at, err);
	if (**at != ',')
		return error_set(err, ERROR_SYNTAX, "unexpected character '%c' behind an item of \"%.*s\"", **at,
		                 SLICE_ARGS(splitter->list_key));
	splitter->state = ELEMENT_FOLLOWS;
	(*at)++;
	return true;
}

/* --- the envelope --- */

/* Whether a top-level key, as it stands in the text, means list_key. */
static bool is_list_key(const struct json_splitter *splitter, struct slice raw, bool *ret_equal, struct error *err)
{
	struct arena arena;
	struct json_reader reader;
	struct slice key;
	bool ok;

	if (memchr(raw.data, '\\', raw.length) == NULL) {
		*ret_equal = slice_equal(slice_from(raw.data + 1, raw.length - 2), splitter->list_key);
		return true;
	}
	arena_init(&arena, KEY_ARENA_BYTES);
	ok = json_reader_open(&reader, raw, &arena, err) && json_reader_string(&reader, &key, err);
	if (ok)
		*ret_equal = slice_equal(key, splitter->list_key);
	arena_destroy(&arena);
	return ok;
}

/* The envelope ends in a complete top-level key. */
static bool end_key(struct json_splitter *splitter, struct error *err)
{
	struct slice raw = slice_from_offset(buffer_slice(&splitter->envelope), splitter->key_start);

	splitter->in_key = false;
	if (!is_list_key(splitter, raw, &splitter->list_follows, err))
		return false;
	if (splitter->list_follows && splitter->list_seen)
		return error_set(err, ERROR_SYNTAX, "key \"%.*s\" stands there twice", SLICE_ARGS(splitter->list_key));
	return true;
}

static void open_bracket(struct json_splitter *splitter, char c)
{
	if (c == '[' && splitter->list_follows && splitter->depth == 1) {
		splitter->state = ARRAY_BEGUN;
		splitter->list_seen = true;
	}
	splitter->depth++;
	splitter->key_expected = c == '{' && splitter->depth == 1;
}

/* One character outside strings. *ret_stop: what is before it must be put into the envelope first. */
static void take_character(struct json_splitter *splitter, char c, bool *ret_stop)
{
	*ret_stop = false;
	switch (c) {
	case '"':
		splitter->in_string = true;
		splitter->in_key = splitter->key_expected && splitter->depth == 1;
		splitter->key_expected = false;
		*ret_stop = splitter->in_key;
		break;
	case '{':
	case '[':
		open_bracket(splitter, c);
		*ret_stop = splitter->state == ARRAY_BEGUN;
		break;
	case '}':
	case ']':
		splitter->depth--;
		*ret_stop = splitter->depth == 0;
		break;
	case ',':
		splitter->key_expected = splitter->depth == 1;
		break;
	default:
		break;
	}
	if (c != ':' && !is_blank(c))
		splitter->list_follows = false;
}

static bool feed_envelope(struct json_splitter *splitter, const char **at, const char *end, struct error *err)
{
	const char *start = *at;
	bool stop = false;

	while (*at < end && !stop) {
		if (splitter->in_string) {
			*at = scan_string(splitter, *at, end);
			stop = splitter->in_key && !splitter->in_string;
		} else {
			take_character(splitter, *(*at)++, &stop);
		}
	}
	buffer_append(&splitter->envelope, start, (size_t)(*at - start));
	if (!buffer_check(&splitter->envelope, "what is around the items of a JSON list", err))
		return false;
	if (splitter->depth == 0)
		splitter->state = ENVELOPE_ENDED;
	if (!splitter->in_key || !stop)
		return true;
	if (!splitter->in_string)
		return end_key(splitter, err);
	splitter->key_start = splitter->envelope.length - 1;
	return true;
}

/* Before the list's object, and behind it. */
static bool feed_outside(struct json_splitter *splitter, const char **at, const char *end, struct error *err)
{
	*at = skip_blanks(*at, end);
	if (*at == end)
		return true;
	if (splitter->state == ENVELOPE_ENDED || **at != '{')
		return error_set(err, ERROR_SYNTAX, "unexpected character '%c' outside of a JSON object", **at);
	splitter->state = ENVELOPE;
	return true;
}

static bool feed_between(struct json_splitter *splitter, const char **at, const char *end, struct error *err)
{
	*at = skip_blanks(*at, end);
	return *at == end || begin_value(splitter, **at, err);
}

bool json_splitter_feed(struct json_splitter *splitter, struct slice bytes, struct error *err)
{
	const char *at = bytes.data;
	const char *end = bytes.length > 0 ? at + bytes.length : at;
	bool ok = true;

	while (ok && at < end) {
		switch (splitter->state) {
		case BETWEEN_VALUES:
			ok = feed_between(splitter, &at, end, err);
			break;
		case WITHIN_VALUE:
			ok = feed_value(splitter, &at, end, err);
			break;
		case ENVELOPE:
			ok = feed_envelope(splitter, &at, end, err);
			break;
		case ENVELOPE_BEFORE:
		case ENVELOPE_ENDED:
			ok = feed_outside(splitter, &at, end, err);
			break;
		default:
			ok = feed_array(splitter, &at, end, err);
			break;
		}
	}
	return ok;
}

bool json_splitter_finish(struct json_splitter *splitter, struct slice *ret_envelope, struct error *err)
{
	if (splitter->state == WITHIN_VALUE && splitter->mode == JSON_SPLITTER_VALUES && splitter->bare) {
		/* Only the end of the stream says that a number is over. */
		if (!give(splitter, buffer_slice(&splitter->value), err))
			return false;
		buffer_release(&splitter->value);
	}
	if (splitter->state != BETWEEN_VALUES && splitter->state != ENVELOPE_ENDED)
		return error_set(err, ERROR_SYNTAX, "unexpected end of JSON input");
	*ret_envelope = buffer_slice(&splitter->envelope);
	return true;
}
