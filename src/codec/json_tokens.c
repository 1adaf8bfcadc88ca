/*
 * json_scan has checked the grammar, so a character says what it is wherever it stands outside of a string, and strings
 * are passed over as fast as their end can be found. What is open needs no stack: it is the chain of parents.
 */
#include "codec/json_internal.h"

struct tokenizer {
	const char *text;
	const char *end;
	struct json_token *tokens;
	int count;
	int most;
	int within; /* the object, array or key that the next token belongs to; -1: none */
};

/* Returns false if there is no room, which json_scan's count doesn't let happen. */
static inline bool add(struct tokenizer *tokenizer, enum json_token_type type, const char *start, const char *end)
{
	if (tokenizer->count == tokenizer->most)
		return false;
	tokenizer->tokens[tokenizer->count++] = (struct json_token){
		.type = type,
		.start = (int)(start - tokenizer->text),
		.end = (int)(end - tokenizer->text),
		.parent = tokenizer->within,
	};
	if (tokenizer->within >= 0)
		tokenizer->tokens[tokenizer->within].size++;
	return true;
}

/* Behind a member's value: from its key to the object. */
static void leave_key(struct tokenizer *tokenizer)
{
	if (tokenizer->within >= 0 && tokenizer->tokens[tokenizer->within].type == JSON_TOKEN_STRING)
		tokenizer->within = tokenizer->tokens[tokenizer->within].parent;
}

static bool close_one(struct tokenizer *tokenizer, const char *end)
{
	leave_key(tokenizer);
	if (tokenizer->within < 0)
		return false;

	struct json_token *token = &tokenizer->tokens[tokenizer->within];

	token->end = (int)(end - tokenizer->text);
	tokenizer->within = token->parent;
	return true;
}

/* at: behind the opening quote. Returns the closing one. */
static const char *find_quote(const char *at, const char *end)
{
	for (;;) {
		at = plain_text_skip(at, end);
		if (at == end || *at == '"')
			return at;
		at += *at == '\\' && end - at > 1 ? 2 : 1;
	}
}

static const char *skip_primitive(const char *at, const char *end)
{
	while (at < end && *at != ',' && *at != '}' && *at != ']' && (unsigned char)*at > ' ')
		at++;
	return at;
}

/* One character outside of strings, or what begins there. Returns what is behind it, or NULL. */
static inline const char *take(struct tokenizer *tokenizer, const char *at)
{
	const char *behind;

	switch (*at) {
	case '{':
	case '[':
		if (!add(tokenizer, *at == '{' ? JSON_TOKEN_OBJECT : JSON_TOKEN_ARRAY, at, at))
			return NULL;
		tokenizer->within = tokenizer->count - 1;
		return at + 1;
	case '}':
	case ']':
		return close_one(tokenizer, at + 1) ? at + 1 : NULL;
	case '"':
		behind = find_quote(at + 1, tokenizer->end);
		return behind < tokenizer->end && add(tokenizer, JSON_TOKEN_STRING, at + 1, behind) ? behind + 1 : NULL;
	case ':':
		tokenizer->within = tokenizer->count - 1;
		return at + 1;
	case ',':
		leave_key(tokenizer);
		return at + 1;
	case ' ':
	case '\n':
	case '\r':
	case '\t':
		return at + 1;
	default:
		behind = skip_primitive(at, tokenizer->end);
		return add(tokenizer, JSON_TOKEN_PRIMITIVE, at, behind) ? behind : NULL;
	}
}

bool json_tokenize(struct slice text, const struct json_scan *scan, struct json_token *tokens)
{
	struct tokenizer tokenizer = {
		.text = text.data,
		.end = text.data + scan->value_end,
		.tokens = tokens,
		.most = scan->token_count,
		.within = -1,
	};
	const char *at = text.data + scan->value_start;

	while (at != NULL && at < tokenizer.end)
		at = take(&tokenizer, at);
	return at != NULL && tokenizer.count == scan->token_count && tokenizer.within < 0;
}
