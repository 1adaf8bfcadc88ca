/*
 * Cuts a schema file into tokens and keeps its comments.
 */
#ifndef BALLAST_PROTOGEN_LEXER_H
#define BALLAST_PROTOGEN_LEXER_H

#include <stdbool.h>

#include "protogen/schema.h"

enum token_kind { TOKEN_END, TOKEN_IDENTIFIER, TOKEN_INTEGER, TOKEN_STRING, TOKEN_SYMBOL };

struct token {
	enum token_kind kind;
	struct slice text; /* of a string: without its quotes, which may hold no escapes */
	struct schema_place place;
	struct slice leading;  /* the block of // comments right above */
	struct slice trailing; /* the // comment behind the previous token, on the same line */
};

struct lexer {
	const char *cursor; /* ends in NUL */
	const char *end;
	const char *line_start;
	struct schema_place place;
	struct schema *schema; /* for comment texts */
};

/* text must be NUL-terminated (behind its length) and outlive the tokens, as must path. */
void lexer_init(struct lexer *lexer, struct schema *schema, const char *path, struct slice text);
/* Reads the next token; after the last one TOKEN_END for ever. */
bool lexer_next(struct lexer *lexer, struct token *ret_token, struct error *err);

#endif
