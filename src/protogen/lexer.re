/*
 * One token per call. Comments are gathered on the way: a // comment on the line of the previous token belongs to that
 * token, and the // lines right above a token, without an empty line between, belong to the token. Block comments are
 * skipped.
 */
#include "protogen/lexer.h"

#include <string.h>

/* What lies between two tokens. */
struct gap {
	unsigned newlines; /* since the last comment or token */
	bool any_newline;
	struct slice leading;
	struct slice trailing;
};

void lexer_init(struct lexer *lexer, struct schema *schema, const char *path, struct slice text)
{
	*lexer = (struct lexer){
		.cursor = text.data,
		.end = text.data + text.length,
		.line_start = text.data,
		.place = {.file = path, .line = 1, .column = 1},
		.schema = schema,
	};
}

/* Appends a line to a block of comments. */
static bool join_lines(struct lexer *lexer, struct slice *block, struct slice line, struct error *err)
{
	if (block->length == 0) {
		*block = line;
		return true;
	}

	char *text = schema_allocate(lexer->schema, block->length + 1 + line.length + 1, err);

	if (text == NULL)
		return false;
	memcpy(text, block->data, block->length);
	text[block->length] = '\n';
	if (line.length > 0)
		memcpy(text + block->length + 1, line.data, line.length);
	*block = slice_from(text, block->length + 1 + line.length);
	return true;
}

static bool add_comment(struct lexer *lexer, struct gap *gap, const char *start, struct error *err)
{
	struct slice line = slice_from(start + 2, (size_t)(lexer->cursor - start) - 2);

	if (line.length > 0 && line.data[0] == ' ')
		line = slice_from_offset(line, 1);
	while (line.length > 0 && (line.data[line.length - 1] == ' ' || line.data[line.length - 1] == '\r'))
		line.length--;
	if (!gap->any_newline) {
		gap->trailing = line;
		return true;
	}
	if (gap->newlines > 1)
		gap->leading = slice_of("");
	gap->newlines = 0;
	return join_lines(lexer, &gap->leading, line, err);
}

static void count_newlines(struct lexer *lexer, struct gap *gap, const char *start)
{
	for (const char *at = start; at < lexer->cursor; at++) {
		if (*at != '\n')
			continue;
		lexer->place.line++;
		lexer->line_start = at + 1;
		gap->newlines++;
		gap->any_newline = true;
	}
}

static bool take(struct lexer *lexer, enum token_kind kind, const char *start, const struct gap *gap,
                 struct token *ret_token)
{
	struct slice text = slice_from(start, (size_t)(lexer->cursor - start));

	if (kind == TOKEN_STRING)
		text = slice_from(start + 1, text.length - 2);
	*ret_token = (struct token){
		.kind = kind,
		.text = text,
		.place = lexer->place,
		.leading = gap->newlines > 1 ? slice_of("") : gap->leading,
		.trailing = gap->trailing,
	};
	return true;
}

bool lexer_next(struct lexer *lexer, struct token *ret_token, struct error *err)
{
	struct gap gap = {.any_newline = lexer->place.line == 1 && lexer->cursor == lexer->line_start};
	const char *YYCURSOR = lexer->cursor;
	const char *YYMARKER;

	for (;;) {
		const char *start = YYCURSOR;

		lexer->place.column = (unsigned)(start - lexer->line_start) + 1;
		/*!re2c
			re2c:define:YYCTYPE = "unsigned char";
			re2c:yych:conversion = 1;
			re2c:yyfill:enable = 0;

			identifier = [A-Za-z_] [A-Za-z_0-9]*;
			integer    = [0-9]+;
			string     = ["] [^"\\\x00\n]* ["];

			[ \t\r\n]+ {
				lexer->cursor = YYCURSOR;
				count_newlines(lexer, &gap, start);
				continue;
			}
			"//" [^\n\x00]* {
				lexer->cursor = YYCURSOR;
				if (!add_comment(lexer, &gap, start, err))
					return false;
				continue;
			}
			"/*" ([^*\x00] | [*]+ [^*/\x00])* [*]+ "/" {
				lexer->cursor = YYCURSOR;
				count_newlines(lexer, &gap, start);
				continue;
			}
			identifier {
				lexer->cursor = YYCURSOR;
				return take(lexer, TOKEN_IDENTIFIER, start, &gap, ret_token);
			}
			integer {
				lexer->cursor = YYCURSOR;
				return take(lexer, TOKEN_INTEGER, start, &gap, ret_token);
			}
			string {
				lexer->cursor = YYCURSOR;
				return take(lexer, TOKEN_STRING, start, &gap, ret_token);
			}
			[{}()[\]<>=;:,.-] {
				lexer->cursor = YYCURSOR;
				return take(lexer, TOKEN_SYMBOL, start, &gap, ret_token);
			}
			[\x00] {
				if (start < lexer->end)
					return schema_error(lexer->place, err, "NUL byte");
				lexer->cursor = start;
				return take(lexer, TOKEN_END, start, &gap, ret_token);
			}
			["] {
				return schema_error(lexer->place, err,
				                    "a string must end on its line and hold no backslash");
			}
			"/*" { return schema_error(lexer->place, err, "comment without end"); }
			* { return schema_error(lexer->place, err, "unexpected character '%c'", *start); }
		*/
	}
}
