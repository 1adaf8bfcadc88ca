/*
 * Shared by the parts of the reader: json_scan.c (is it JSON?), json_tokens.c (where is what?), json_reader.c (walking objects
 * and arrays), json_strings.c and json_values.c (single values), json_maps.c, json_tree_read.c, json_locate.c,
 * json_problem.c. Nobody else includes this.
 */
#ifndef BALLAST_CODEC_JSON_INTERNAL_H
#define BALLAST_CODEC_JSON_INTERNAL_H

#include "base/plain_text.h"
#include "codec/json_reader.h"

enum json_token_type { JSON_TOKEN_OBJECT, JSON_TOKEN_ARRAY, JSON_TOKEN_STRING, JSON_TOKEN_PRIMITIVE };

/* A value or a key, in the order of the text. */
struct json_token {
	enum json_token_type type;
	int start; /* offsets in the text; of a string without its quotes, else with the brackets */
	int end;
	int size;   /* members of an object, items of an array, 1 of a key, else 0 */
	int parent; /* index of the key that this is the value of, else of what this lies in; -1: neither */
};

/* What one pass over a text finds out. */
struct json_scan {
	enum json_problem_kind problem; /* JSON_PROBLEM_NONE: a value stands from the first non-blank to value_end */
	size_t problem_offset;
	char problem_text[128];
	size_t value_end;
	size_t value_start;
	int token_count;
	bool any_escape;
	size_t bad_text_offset; /* SIZE_MAX without invalid UTF-8 or lone surrogates */
};

/*
 * Checks that text begins with one JSON value (RFC 8259), apart from invalid UTF-8 and lone surrogates, which are only
 * noted. Only what passes may be tokenized.
 */
void json_scan(struct slice text, struct json_scan *ret_scan);

/* Length of the UTF-8 sequence at at, or 0 if it is invalid or cut off. */
static inline size_t json_utf8_length(const char *at, const char *end)
{
	uint32_t ignored;

	return slice_utf8_next((struct slice){ .data = at, .length = (size_t)(end - at) }, &ignored);
}

/* Makes the tokens of what json_scan has passed, as many as it counted. False if there are others: that is a bug. */
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
static inline const struct json_token *json_at(const struct json_reader *reader)
{
	return &reader->tokens[reader->position];
}

static inline bool json_is_null(const struct json_reader *reader, const struct json_token *token)
{
	return token->type == JSON_TOKEN_PRIMITIVE && reader->text.data[token->start] == 'n';
}

/* A token's text as it stands; a string without its quotes. */
static inline struct slice json_token_text(const struct json_reader *reader, const struct json_token *token)
{
	return (struct slice){ .data = reader->text.data + token->start,
		               .length = (size_t)(token->end - token->start) };
}

/* Where a token begins in the text, a string with its quote. */
static inline size_t json_token_offset(const struct json_token *token)
{
	return (size_t)token->start - (token->type == JSON_TOKEN_STRING ? 1 : 0);
}

/* Goes over the value at hand with all that is in it. */
void json_skip(struct json_reader *reader);

/* What a string token means. Fails only with JSON_PROBLEM_VALUE (bad text where it isn't replaced) or for memory. */
bool json_decode_string(struct json_reader *reader, const struct json_token *token, struct slice *ret_text,
                        struct error *err);
/* Whether a string token needs more than a slice. */
bool json_needs_decoding(const struct json_reader *reader, const struct json_token *token);

#endif
