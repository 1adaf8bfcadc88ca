#include "protogen/parser.h"

#include <stdio.h>
#include <string.h>

/* Proto3 field numbers (language guide, "Assigning Field Numbers"). */
static const unsigned long MAX_FIELD_NUMBER = 536870911;

static const struct {
	const char *name;
	enum schema_type type;
} SCALARS[] = {
	{ "bool", SCHEMA_BOOL },     { "int32", SCHEMA_INT32 },   { "int64", SCHEMA_INT64 },
	{ "uint32", SCHEMA_UINT32 }, { "uint64", SCHEMA_UINT64 }, { "float", SCHEMA_FLOAT },
	{ "double", SCHEMA_DOUBLE }, { "string", SCHEMA_STRING }, { "bytes", SCHEMA_BYTES },
};

static const char *const OTHER_SCALARS[] = { "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64" };

bool parser_advance(struct parser *parser, struct error *err)
{
	return lexer_next(&parser->lexer, &parser->token, err);
}

bool parser_at(const struct parser *parser, const char *text)
{
	return (parser->token.kind == TOKEN_IDENTIFIER || parser->token.kind == TOKEN_SYMBOL) &&
	       slice_equal_text(parser->token.text, text);
}

static bool unexpected(const struct parser *parser, const char *wanted, struct error *err)
{
	if (parser->token.kind == TOKEN_END)
		return schema_error(parser->token.place, err, "expected %s, found the end of the file", wanted);
	return schema_error(parser->token.place, err, "expected %s, found \"%.*s\"", wanted,
	                    SLICE_ARGS(parser->token.text));
}

bool parser_expect(struct parser *parser, const char *symbol, struct error *err)
{
	char wanted[32];

	if (parser_at(parser, symbol))
		return parser_advance(parser, err);
	snprintf(wanted, sizeof wanted, "\"%s\"", symbol);
	return unexpected(parser, wanted, err);
}

bool parser_name(struct parser *parser, bool dotted, const char **ret_name, struct error *err)
{
	const char *name = "";

	if (dotted && parser_at(parser, ".")) {
		name = ".";
		if (!parser_advance(parser, err))
			return false;
	}
	for (;;) {
		if (parser->token.kind != TOKEN_IDENTIFIER)
			return unexpected(parser, "a name", err);
		name = schema_format(parser->schema, err, "%s%.*s", name, SLICE_ARGS(parser->token.text));
		if (name == NULL || !parser_advance(parser, err))
			return false;
		if (!dotted || !parser_at(parser, "."))
			break;
		name = schema_format(parser->schema, err, "%s.", name);
		if (name == NULL || !parser_advance(parser, err))
			return false;
	}
	*ret_name = name;
	return true;
}

bool parser_integer(struct parser *parser, unsigned long *ret_value, struct error *err)
{
	uint64_t value;

	if (parser->token.kind != TOKEN_INTEGER || !slice_to_u64(parser->token.text, &value) || value > UINT32_MAX)
		return unexpected(parser, "a number below 2^32", err);
	*ret_value = (unsigned long)value;
	return parser_advance(parser, err);
}

static bool read_string(struct parser *parser, const char **ret_text, struct error *err)
{
	if (parser->token.kind != TOKEN_STRING)
		return unexpected(parser, "a string", err);
	*ret_text = schema_text(parser->schema, parser->token.text, err);
	return *ret_text != NULL && parser_advance(parser, err);
}

/* Ends a declaration at ";" and takes the comment behind it. */
static bool end_line(struct parser *parser, const char **ret_trailing, struct error *err)
{
	if (!parser_expect(parser, ";", err))
		return false;
	*ret_trailing = schema_text(parser->schema, parser->token.trailing, err);
	return *ret_trailing != NULL;
}

static bool read_type(struct parser *parser, struct schema_field *field, struct error *err)
{
	struct schema_place place = parser->token.place;

	if (!parser_name(parser, true, &field->type_name, err))
		return false;
	field->type = SCHEMA_MESSAGE; /* or an enum: schema_resolve finds out */
	for (size_t i = 0; i < sizeof SCALARS / sizeof SCALARS[0]; i++) {
		if (strcmp(field->type_name, SCALARS[i].name) == 0)
			field->type = SCALARS[i].type;
	}
	for (size_t i = 0; i < sizeof OTHER_SCALARS / sizeof OTHER_SCALARS[0]; i++) {
		if (strcmp(field->type_name, OTHER_SCALARS[i]) == 0)
			return schema_error(place, err, "type %s isn't supported: JSON knows no such encoding",
			                    field->type_name);
	}
	return true;
}

/* "<string, string>", the only map there is. */
static bool read_map_type(struct parser *parser, struct schema_field *field, struct error *err)
{
	struct schema_place place = parser->token.place;

	if (!parser_expect(parser, "<", err))
		return false;
	for (int i = 0; i < 2; i++) {
		if (!parser_at(parser, "string"))
			return schema_error(parser->token.place, err, "only map<string, string> is supported");
		if (!parser_advance(parser, err) || !parser_expect(parser, i == 0 ? "," : ">", err))
			return false;
	}
	if (field->label != SCHEMA_SINGLE)
		return schema_error(place, err, "a map can't be optional or repeated");
	field->type = SCHEMA_STRING_MAP;
	field->type_name = "map";
	return true;
}

static bool read_label(struct parser *parser, struct schema_field *field, struct error *err)
{
	field->label = SCHEMA_SINGLE;
	if (parser_at(parser, "optional"))
		field->label = SCHEMA_OPTIONAL;
	else if (parser_at(parser, "repeated"))
		field->label = SCHEMA_REPEATED;
	else
		return true;
	return parser_advance(parser, err);
}

static bool read_field(struct parser *parser, struct schema_message *message, struct error *err)
{
	struct schema_field *field = schema_allocate(parser->schema, sizeof *field, err);
	struct schema_field **last = &message->fields;

	if (field == NULL)
		return false;
	field->comment = schema_text(parser->schema, parser->token.leading, err);
	if (field->comment == NULL || !read_label(parser, field, err))
		return false;

	bool is_map = parser_at(parser, "map");

	if (is_map ? !parser_advance(parser, err) || !read_map_type(parser, field, err)
	           : !read_type(parser, field, err))
		return false;
	field->place = parser->token.place;
	if (!parser_name(parser, false, &field->name, err) || !parser_expect(parser, "=", err))
		return false;
	if (parser->token.kind != TOKEN_INTEGER)
		return unexpected(parser, "a field number", err);

	struct schema_place number_place = parser->token.place;

	if (!parser_integer(parser, &field->number, err))
		return false;
	if (field->number == 0 || field->number > MAX_FIELD_NUMBER)
		return schema_error(number_place, err, "field numbers go from 1 to %lu", MAX_FIELD_NUMBER);
	if (parser_at(parser, "[") && !parser_field_options(parser, field, err))
		return false;
	if (!end_line(parser, &field->trailing, err))
		return false;
	while (*last != NULL)
		last = &(*last)->next;
	*last = field;
	message->field_count++;
	return true;
}

/* Full name, and the C name: the package's last part and the message names, in snake case. */
static bool name_type(struct parser *parser, const struct schema_message *outer, const char *name,
                      const char **ret_full, const char **ret_c_name, struct error *err)
{
	const char *snake = schema_snake(parser->schema, name, err);
	const char *scope = outer != NULL ? outer->full_name : parser->file->package;
	const char *prefix = outer != NULL ? outer->c_name : parser->file->prefix;

	if (snake == NULL)
		return false;
	*ret_full = schema_format(parser->schema, err, "%s.%s", scope, name);
	*ret_c_name = schema_format(parser->schema, err, "%s_%s", prefix, snake);
	return *ret_full != NULL && *ret_c_name != NULL;
}

static bool read_value(struct parser *parser, struct schema_value **last, struct error *err)
{
	struct schema_value *value = schema_allocate(parser->schema, sizeof *value, err);

	if (value == NULL)
		return false;
	value->comment = schema_text(parser->schema, parser->token.leading, err);
	value->place = parser->token.place;
	if (value->comment == NULL || !parser_name(parser, false, &value->name, err) ||
	    !parser_expect(parser, "=", err) || !parser_integer(parser, &value->number, err))
		return false;
	value->text = value->name;
	if (parser_at(parser, "[") && !parser_value_options(parser, value, err))
		return false;
	*last = value;
	return end_line(parser, &value->trailing, err);
}

static bool read_enum(struct parser *parser, const struct schema_message *outer, struct error *err)
{
	struct schema_enum *enumeration = schema_allocate(parser->schema, sizeof *enumeration, err);
	struct schema_enum **last = &parser->file->enums;

	if (enumeration == NULL)
		return false;
	enumeration->comment = schema_text(parser->schema, parser->token.leading, err);
	if (enumeration->comment == NULL || !parser_advance(parser, err))
		return false;
	enumeration->place = parser->token.place;
	if (!parser_name(parser, false, &enumeration->name, err) ||
	    !name_type(parser, outer, enumeration->name, &enumeration->full_name, &enumeration->c_name, err) ||
	    !parser_expect(parser, "{", err))
		return false;

	struct schema_value **last_value = &enumeration->values;

	while (!parser_at(parser, "}")) {
		if (!read_value(parser, last_value, err))
			return false;
		last_value = &(*last_value)->next;
	}
	while (*last != NULL)
		last = &(*last)->next;
	*last = enumeration;
	return parser_advance(parser, err);
}

static bool read_message(struct parser *parser, const struct schema_message *outer, struct error *err);

static bool read_member(struct parser *parser, struct schema_message *message, struct error *err)
{
	static const char *const UNSUPPORTED[] = { "oneof", "reserved", "extensions", "extend", "group" };

	if (parser_at(parser, "message"))
		return read_message(parser, message, err);
	if (parser_at(parser, "enum"))
		return read_enum(parser, message, err);
	if (parser_at(parser, "option"))
		return parser_rules(parser, "ballast.json.json_message", &message->rules, err);
	for (size_t i = 0; i < sizeof UNSUPPORTED / sizeof UNSUPPORTED[0]; i++) {
		if (parser_at(parser, UNSUPPORTED[i]))
			return schema_error(parser->token.place, err, "%s isn't supported", UNSUPPORTED[i]);
	}
	return read_field(parser, message, err);
}

/* Other names that generated functions use. */
static bool is_parameter(const char *name)
{
	static const char *const NAMES[] = { "reader", "writer", "text", "arena", "buffer", "err", "object" };

	for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
		if (strcmp(name, NAMES[i]) == 0)
			return true;
	}
	return false;
}

static bool read_message(struct parser *parser, const struct schema_message *outer, struct error *err)
{
	struct schema_message *message = schema_allocate(parser->schema, sizeof *message, err);
	struct schema_message **last = &parser->file->messages;

	if (message == NULL)
		return false;
	message->file = parser->file;
	message->rules = parser->file->rules;
	message->comment = schema_text(parser->schema, parser->token.leading, err);
	if (message->comment == NULL || !parser_advance(parser, err))
		return false;
	message->place = parser->token.place;
	if (!parser_name(parser, false, &message->name, err) ||
	    !name_type(parser, outer, message->name, &message->full_name, &message->c_name, err) ||
	    !parser_expect(parser, "{", err))
		return false;

	const char *snake = schema_snake(parser->schema, message->name, err);
	const char *last_word = snake != NULL ? strrchr(snake, '_') : NULL;

	if (snake == NULL)
		return false;
	message->c_struct = message->c_name;
	message->variable = last_word != NULL ? last_word + 1 : snake;
	if (schema_is_c_keyword(message->variable) || is_parameter(message->variable))
		message->variable = "message";
	while (!parser_at(parser, "}")) {
		if (!read_member(parser, message, err))
			return false;
	}
	while (*last != NULL)
		last = &(*last)->next;
	*last = message;
	return parser_advance(parser, err);
}

static bool read_import(struct parser *parser, struct error *err)
{
	struct schema_import *import = schema_allocate(parser->schema, sizeof *import, err);
	struct schema_import **last = &parser->file->imports;

	if (import == NULL || !parser_advance(parser, err))
		return false;
	import->place = parser->token.place;
	if (parser_at(parser, "public") || parser_at(parser, "weak"))
		return schema_error(import->place, err, "only plain imports are supported");
	if (!read_string(parser, &import->path, err))
		return false;
	while (*last != NULL)
		last = &(*last)->next;
	*last = import;
	return parser_expect(parser, ";", err);
}

static bool read_package(struct parser *parser, struct error *err)
{
	struct schema_file *file = parser->file;
	struct schema_place place = parser->token.place;
	const char *last_dot;

	if (!parser_advance(parser, err) || !parser_name(parser, true, &file->package, err))
		return false;
	if (file->prefix != NULL)
		return schema_error(place, err, "the package was already named");
	last_dot = strrchr(file->package, '.');
	file->prefix = last_dot != NULL ? last_dot + 1 : file->package;
	return parser_expect(parser, ";", err);
}

static bool read_file_option(struct parser *parser, struct error *err)
{
	if (parser->file->messages != NULL)
		return schema_error(parser->token.place, err, "the file's options must come before its messages");
	return parser_rules(parser, "ballast.json.json_defaults", &parser->file->rules, err);
}

static bool read_declaration(struct parser *parser, struct error *err)
{
	static const char *const UNSUPPORTED[] = { "extend", "service", "syntax" };

	if (parser_at(parser, ";"))
		return parser_advance(parser, err);
	if (parser_at(parser, "import"))
		return read_import(parser, err);
	if (parser_at(parser, "package"))
		return read_package(parser, err);
	if (parser_at(parser, "option"))
		return read_file_option(parser, err);
	for (size_t i = 0; i < sizeof UNSUPPORTED / sizeof UNSUPPORTED[0]; i++) {
		if (parser_at(parser, UNSUPPORTED[i]))
			return schema_error(parser->token.place, err, "%s isn't supported here", UNSUPPORTED[i]);
	}
	if (!parser_at(parser, "message") && !parser_at(parser, "enum"))
		return unexpected(parser, "import, package, message or enum", err);
	if (parser->file->prefix == NULL)
		return schema_error(parser->token.place, err, "the package must be named before the first message");
	return parser_at(parser, "message") ? read_message(parser, NULL, err) : read_enum(parser, NULL, err);
}

/* `syntax = "proto3";` must come first; the comment above it is the file's. */
static bool read_syntax(struct parser *parser, struct error *err)
{
	struct schema_place place = parser->token.place;
	const char *version = "";

	parser->file->comment = schema_text(parser->schema, parser->token.leading, err);
	if (parser->file->comment == NULL)
		return false;
	if (!parser_at(parser, "syntax"))
		return schema_error(place, err, "the file must begin with syntax = \"proto3\"");
	if (!parser_advance(parser, err) || !parser_expect(parser, "=", err) || !read_string(parser, &version, err))
		return false;
	if (strcmp(version, "proto3") != 0)
		return schema_error(place, err, "syntax \"%s\" isn't supported, only proto3", version);
	return parser_expect(parser, ";", err);
}

struct schema_file *parser_read(struct schema *schema, const char *path, struct slice text, struct error *err)
{
	struct schema_file *file = schema_allocate(schema, sizeof *file, err);
	struct parser parser = { .schema = schema, .file = file };
	const char *base = strrchr(path, '/');
	const char *extension;

	if (file == NULL)
		return NULL;
	file->path = path;
	base = base != NULL ? base + 1 : path;
	extension = strrchr(base, '.');
	file->name = schema_text(schema,
	                         slice_from(base, extension != NULL ? (size_t)(extension - base) : strlen(base)), err);
	lexer_init(&parser.lexer, schema, path, text);
	if (file->name == NULL || !parser_advance(&parser, err) || !read_syntax(&parser, err))
		return NULL;
	while (parser.token.kind != TOKEN_END) {
		if (!read_declaration(&parser, err))
			return NULL;
	}
	return file;
}
