/*
 * Shared by the parts of the reader: json_scan.c (is it JSON?), json_tokens.c (jsmn), json_reader.c (walking objects
 * and arrays), json_strings.c and json_values.c (single values), json_maps.c, json_tree_read.c, json_locate.c,
 * json_problem.c. Nobody else includes this.
 */
#ifndef BALLAST_CODEC_JSON_INTERNAL_H
#define BALLAST_CODEC_JSON_INTERNAL_H

#include "base/plain_text.h"
#include "codec/json_reader.h"

#define JSMN_STRICT
#define JSMN_PARENT_LINKS
#ifndef JSON_WITH_JSMN_BODY
#define JSMN_HEADER
#endif
#include <jsmn.h>

/* jsmn's token, under a name that can be declared without its header. */
struct json_token {
	jsmntok_t jsmn;
};

/*
 * Strings worth telling jsmn about, so that it needn't go through them: a long one, or items of an array with nothing
 * but commas between them. Offsets of the first quote and behind the last.
 */
struct json_stretch {
	int start;
	int end;
	bool several;
};

enum { JSON_STRETCH_BYTES = 48, JSON_STRETCHES = 64 };

/* What one pass over a text finds out. */
struct json_scan {
	enum json_problem_kind problem; /* JSON_PROBLEM_NONE: a value stands from the first non-blank to value_end */
	size_t problem_offset;
	char problem_text[128];
	size_t value_end;
	size_t value_start;
	int token_count; /* as jsmn will count them */
	bool any_escape;
	size_t bad_text_offset; /* SIZE_MAX without invalid UTF-8 or lone surrogates */
	size_t stretch_count;
	struct json_stretch stretches[JSON_STRETCHES]; /* the first of them, in order */
};

/*
 * Checks that text begins with one JSON value (RFC 8259), apart from invalid UTF-8 and lone surrogates, which are only
 * noted. Depth is bounded, so what passes can be given to jsmn.
 */
void json_scan(struct slice text, struct json_scan *ret_scan);

/* Length of the UTF-8 sequence at at, or 0 if it is invalid or cut off. */
static inline size_t json_utf8_length(const char *at, const char *end)
{
	uint32_t ignored;

	return slice_utf8_next((struct slice){ .data = at, .length = (size_t)(end - at) }, &ignored);
}

/* Tokenizes what json_scan has passed. False if jsmn disagrees, which would be a bug. */
bool json_tokenize(struct slice text, const struct json_scan *scan, struct json_token *tokens);

/*
 * A problem at a token (or, with token < 0, at an offset): fills reader->problem if it is the first, and *err. Returns
 * whether decoding goes on, which is so while collecting; then the value at hand has been skipped.
 */
bool json_fail(struct json_reader *reader, int token, struct json_problem *problem, struct error *err);
bool json_fail_type(struct json_reader *reader, const char *expected, bool number_wanted, struct error *err);
bool json_fail_value(struct json_reader *reader, struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The line, from 1, in which an offset lies. */
unsigned json_line_at(struct slice text, size_t offset);
/* The path of a key that isn't there. */
void json_problem_place(const struct json_reader *reader, int object, struct slice key, struct json_problem *problem);
/* Ends decoding also while collecting. */
bool json_fail_memory(struct json_reader *reader, struct error *err);

/* The token at hand. */
static inline const jsmntok_t *json_at(const struct json_reader *reader)
{
	return &reader->tokens[reader->position].jsmn;
}

static inline bool json_is_null(const struct json_reader *reader, const jsmntok_t *token)
{
	return token->type == JSMN_PRIMITIVE && reader->text.data[token->start] == 'n';
}

/* A token's text as it stands; a string without its quotes. */
static inline struct slice json_token_text(const struct json_reader *reader, const jsmntok_t *token)
{
	return (struct slice){ .data = reader->text.data + token->start,
		               .length = (size_t)(token->end - token->start) };
}

/* Where a token begins in the text, a string with its quote. */
static inline size_t json_token_offset(const jsmntok_t *token)
{
	return (size_t)token->start - (token->type == JSMN_STRING ? 1 : 0);
}

/* Goes over the value at hand with all that is in it. */
void json_skip(struct json_reader *reader);

/* What a string token means. Fails only with JSON_PROBLEM_VALUE (bad text where it isn't replaced) or for memory. */
bool json_decode_string(struct json_reader *reader, const jsmntok_t *token, struct slice *ret_text, struct error *err);
/* Whether a string token needs more than a slice. */
bool json_needs_decoding(const struct json_reader *reader, const jsmntok_t *token);

#endif
