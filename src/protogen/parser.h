/*
 * Reads one schema file: the part of proto3 that we use (spec: protobuf's language guide, proto3). Files are syntax,
 * package, imports, messages (nested too) and enums; fields are scalars, messages, enums, repeated ones and map<string,
 * string>, with json_name and the options of proto/options.proto. Everything else is an error that says so.
 */
#ifndef BALLAST_PROTOGEN_PARSER_H
#define BALLAST_PROTOGEN_PARSER_H

#include "protogen/lexer.h"
#include "protogen/schema.h"

struct parser {
	struct lexer lexer;
	struct token token; /* not yet consumed */
	struct schema *schema;
	struct schema_file *file;
};

/* text must be NUL-terminated behind its length. NULL on failure. Names of other messages aren't looked up yet. */
struct schema_file *parser_read(struct schema *schema, const char *path, struct slice text, struct error *err);

/* Shared between parser.c and parser_options.c. */
bool parser_advance(struct parser *parser, struct error *err);
bool parser_at(const struct parser *parser, const char *text);
bool parser_expect(struct parser *parser, const char *symbol, struct error *err);
/* An identifier, or several joined by dots when dotted. */
bool parser_name(struct parser *parser, bool dotted, const char **ret_name, struct error *err);
bool parser_integer(struct parser *parser, unsigned long *ret_value, struct error *err);

/* "[…]" behind a field or an enum value. */
bool parser_field_options(struct parser *parser, struct schema_field *field, struct error *err);
bool parser_value_options(struct parser *parser, struct schema_value *value, struct error *err);
/* "option (…) = …;" within a message or a file. */
bool parser_rules(struct parser *parser, const char *extension, struct schema_rules *rules, struct error *err);

#endif
