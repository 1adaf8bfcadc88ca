/*
 * The one place where jsmn's code is compiled.
 *
 * jsmn looks at each character of a string, which is most of the time that it takes. json_scan has already been there,
 * so jsmn runs up to a long string, the string's token is made here just as jsmn would make it, and jsmn goes on
 * behind: its parser is made to be resumed.
 */
#define JSON_WITH_JSMN_BODY
#define JSMN_STATIC
#include "codec/json_internal.h"

static void add_string(jsmn_parser *parser, jsmntok_t *tokens, const struct json_long_string *string)
{
	tokens[parser->toknext++] = (jsmntok_t){
		.type = JSMN_STRING,
		.start = string->start + 1,
		.end = string->end,
		.parent = parser->toksuper,
	};
	if (parser->toksuper >= 0)
		tokens[parser->toksuper].size++;
	parser->pos = (unsigned)string->end + 1;
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
	for (size_t i = 0; i <= scan->long_string_count; i++) {
		bool last = i == scan->long_string_count;
		size_t stop = last ? scan->value_end : (size_t)scan->long_strings[i].start;

		/* Before the end the answer is that the text isn't complete, which is no news. */
		count = jsmn_parse(&parser, text.data, stop, &tokens[0].jsmn, (unsigned)scan->token_count);
		if (parser.pos != stop || (!last && parser.toknext >= (unsigned)scan->token_count))
			return false;
		if (!last)
			add_string(&parser, &tokens[0].jsmn, &scan->long_strings[i]);
	}
	return parser.toknext == (unsigned)scan->token_count && (count >= 0 || first == '"');
}
