/*
 * The one place where jsmn's code is compiled.
 *
 * jsmn looks at each character of a string, which is most of the time that it takes. json_scan has already been there,
 * so jsmn runs up to a stretch of strings, their tokens are made here just as jsmn would make them, and jsmn goes on
 * behind: its parser is made to be resumed.
 */
#define JSON_WITH_JSMN_BODY
#define JSMN_STATIC
#include "codec/json_internal.h"

/* at: behind the opening quote. Returns the closing one, which json_scan has seen. */
static const char *find_quote(const char *at, const char *end)
{
	for (;;) {
		at = plain_text_skip(at, end);
		if (*at == '"')
			return at;
		at += *at == '\\' ? 2 : 1;
	}
}

/* Returns false if there is no room, which json_scan's count doesn't let happen. */
static bool add_strings(jsmn_parser *parser, jsmntok_t *tokens, int token_count, const char *text,
                        const struct json_stretch *stretch)
{
	int at = stretch->start;

	while (at < stretch->end) {
		int quote = stretch->end - 1;

		if (stretch->several)
			quote = (int)(find_quote(text + at + 1, text + stretch->end) - text);
		if (parser->toknext >= (unsigned)token_count)
			return false;
		tokens[parser->toknext++] = (jsmntok_t){
			.type = JSMN_STRING,
			.start = at + 1,
			.end = quote,
			.parent = parser->toksuper,
		};
		if (parser->toksuper >= 0)
			tokens[parser->toksuper].size++;
		at = quote + 2; /* to the next string, if there is one */
	}
	parser->pos = (unsigned)stretch->end;
	return true;
}

bool json_tokenize(struct slice text, const struct json_scan *scan, struct json_token *tokens)
{
	jsmn_parser parser;
	char first = text.data[scan->value_start];
	int count = 0;

	/* In strict mode jsmn refuses a number, bool or null that isn't within something. */
	if (first != '{' && first != '[' && first != '"') {
		tokens[0].jsmn = (jsmntok_t){
			.type = JSMN_PRIMITIVE,
			.start = (int)scan->value_start,
			.end = (int)scan->value_end,
			.parent = -1,
		};
		return true;
	}
	jsmn_init(&parser);
	for (size_t i = 0; i <= scan->stretch_count; i++) {
		bool last = i == scan->stretch_count;
		size_t stop = last ? scan->value_end : (size_t)scan->stretches[i].start;

		/* Before the end the answer is that the text isn't complete, which is no news. */
		count = jsmn_parse(&parser, text.data, stop, &tokens[0].jsmn, (unsigned)scan->token_count);
		if (parser.pos != stop)
			return false;
		if (!last && !add_strings(&parser, &tokens[0].jsmn, scan->token_count, text.data, &scan->stretches[i]))
			return false;
	}
	return parser.toknext == (unsigned)scan->token_count && (count >= 0 || first == '"');
}
