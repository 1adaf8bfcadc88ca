/*
 * Options are read into the schema by name: one table per kind of declaration says which option goes where and what
 * values it may have. The names are those of proto/options.proto.
 */
#include "protogen/parser.h"

#include <stddef.h>
#include <string.h>

enum option_kind { OPTION_BOOL, OPTION_NUMBER, OPTION_ENUM, OPTION_TEXT };

struct option_value {
	const char *name;
	int value;
};

struct option {
	const char *name;
	enum option_kind kind;
	size_t offset; /* of a bool, uint32_t, enum or const char * within the declaration */
	const struct option_value *values;
};

static const struct option_value NULLS[] = {
	{ "NULL_IS_ERROR", SCHEMA_NULL_IS_ERROR },
	{ "NULL_IS_ABSENT", SCHEMA_NULL_IS_ABSENT },
	{ "NULL_IS_KEPT", SCHEMA_NULL_IS_KEPT },
	{ NULL, 0 },
};

static const struct option_value FORMATS[] = {
	{ "PLAIN", SCHEMA_PLAIN },
	{ "QUANTITY", SCHEMA_QUANTITY },
	{ "MILLI_CPU", SCHEMA_MILLI_CPU },
	{ "RFC3339", SCHEMA_RFC3339 },
	{ "RFC3339_NANO", SCHEMA_RFC3339_NANO },
	{ "RAW", SCHEMA_RAW },
	{ "FLOAT_OR_NAME", SCHEMA_FLOAT_OR_NAME },
	{ "QUANTITY_STRING", SCHEMA_QUANTITY_STRING },
	{ "MILLI_CPU_STRING", SCHEMA_MILLI_CPU_STRING },
	{ NULL, 0 },
};

static const struct option_value KEYS[] = { { "EXACT", SCHEMA_EXACT },
	                                    { "ASCII_FOLD", SCHEMA_ASCII_FOLD },
	                                    { NULL, 0 } };

static const struct option_value UNKNOWNS[] = {
	{ "IGNORE", SCHEMA_IGNORE }, { "REJECT", SCHEMA_REJECT }, { "KEEP", SCHEMA_KEEP }, { NULL, 0 }
};

static const struct option FIELD_OPTIONS[] = {
	{ "required", OPTION_BOOL, offsetof(struct schema_field, required), NULL },
	{ "null", OPTION_ENUM, offsetof(struct schema_field, null), NULLS },
	{ "omit_empty", OPTION_BOOL, offsetof(struct schema_field, omit_empty), NULL },
	{ "format", OPTION_ENUM, offsetof(struct schema_field, format), FORMATS },
	{ "max_items", OPTION_NUMBER, offsetof(struct schema_field, max_items), NULL },
	{ "max_bytes", OPTION_NUMBER, offsetof(struct schema_field, max_bytes), NULL },
	{ "always", OPTION_BOOL, offsetof(struct schema_field, always), NULL },
	{ "bits", OPTION_NUMBER, offsetof(struct schema_field, bits), NULL },
	{ "exact", OPTION_BOOL, offsetof(struct schema_field, exact), NULL },
	{ NULL, OPTION_BOOL, 0, NULL },
};

static const struct option RULES[] = {
	{ "keys", OPTION_ENUM, offsetof(struct schema_rules, keys), KEYS },
	{ "unknown", OPTION_ENUM, offsetof(struct schema_rules, unknown), UNKNOWNS },
	{ "last_duplicate_wins", OPTION_BOOL, offsetof(struct schema_rules, last_duplicate_wins), NULL },
	{ "replace_bad_utf8", OPTION_BOOL, offsetof(struct schema_rules, replace_bad_utf8), NULL },
	{ "null", OPTION_ENUM, offsetof(struct schema_rules, null), NULLS },
	{ "whole_numbers_from_double", OPTION_BOOL, offsetof(struct schema_rules, whole_numbers_from_double), NULL },
	{ "same_struct_as", OPTION_TEXT, offsetof(struct schema_rules, same_struct_as), NULL },
	{ NULL, OPTION_BOOL, 0, NULL },
};

static bool read_bool(struct parser *parser, const struct option *option, void *declaration, struct error *err)
{
	bool value = parser_at(parser, "true");

	if (!value && !parser_at(parser, "false"))
		return schema_error(parser->token.place, err, "option \"%s\" must be true or false", option->name);
	memcpy((char *)declaration + option->offset, &value, sizeof value);
	return parser_advance(parser, err);
}

static bool read_number(struct parser *parser, const struct option *option, void *declaration, struct error *err)
{
	unsigned long number;

	if (parser->token.kind != TOKEN_INTEGER)
		return schema_error(parser->token.place, err, "option \"%s\" must be a number", option->name);
	if (!parser_integer(parser, &number, err))
		return false;

	uint32_t value = (uint32_t)number;

	memcpy((char *)declaration + option->offset, &value, sizeof value);
	return true;
}

static bool read_enum_value(struct parser *parser, const struct option *option, void *declaration, struct error *err)
{
	for (const struct option_value *value = option->values; value->name != NULL; value++) {
		if (!parser_at(parser, value->name))
			continue;
		/* All these enums are unsigned int to the compiler. */
		_Static_assert(sizeof(enum schema_null) == sizeof(int) && sizeof(enum schema_format) == sizeof(int),
		               "enums are as wide as int");
		memcpy((char *)declaration + option->offset, &value->value, sizeof value->value);
		return parser_advance(parser, err);
	}
	return schema_error(parser->token.place, err, "option \"%s\" has no value \"%.*s\"", option->name,
	                    SLICE_ARGS(parser->token.text));
}

static bool read_text(struct parser *parser, const char **ret_text, struct error *err)
{
	if (parser->token.kind != TOKEN_STRING)
		return schema_error(parser->token.place, err, "expected a string");
	for (size_t i = 0; i < parser->token.text.length; i++) {
		if ((unsigned char)parser->token.text.data[i] < ' ' ||
		    (unsigned char)parser->token.text.data[i] >= 0x7f)
			return schema_error(parser->token.place, err, "names must be printable ASCII");
	}
	*ret_text = schema_text(parser->schema, parser->token.text, err);
	return *ret_text != NULL && parser_advance(parser, err);
}

static bool read_text_option(struct parser *parser, const struct option *option, void *declaration, struct error *err)
{
	const char *text;

	if (!read_text(parser, &text, err))
		return false;
	memcpy((char *)declaration + option->offset, &text, sizeof text);
	return true;
}

static bool read_option(struct parser *parser, const struct option *options, void *declaration, struct error *err)
{
	const struct option *option = options;

	while (option->name != NULL && !parser_at(parser, option->name))
		option++;
	if (option->name == NULL)
		return schema_error(parser->token.place, err, "unknown option \"%.*s\"",
		                    SLICE_ARGS(parser->token.text));
	if (!parser_advance(parser, err) || !parser_expect(parser, ":", err))
		return false;
	switch (option->kind) {
	case OPTION_BOOL:
		return read_bool(parser, option, declaration, err);
	case OPTION_NUMBER:
		return read_number(parser, option, declaration, err);
	case OPTION_TEXT:
		return read_text_option(parser, option, declaration, err);
	default:
		return read_enum_value(parser, option, declaration, err);
	}
}

/* "{a: b, c: d}" */
static bool read_aggregate(struct parser *parser, const struct option *options, void *declaration, struct error *err)
{
	if (!parser_expect(parser, "{", err))
		return false;
	while (!parser_at(parser, "}")) {
		if (!read_option(parser, options, declaration, err))
			return false;
		if (parser_at(parser, ",") && !parser_advance(parser, err))
			return false;
	}
	return parser_advance(parser, err);
}

/* "(ballast.json.json)" */
static bool read_extension_name(struct parser *parser, const char *wanted, struct error *err)
{
	struct schema_place place = parser->token.place;
	const char *name;

	if (!parser_expect(parser, "(", err) || !parser_name(parser, true, &name, err) ||
	    !parser_expect(parser, ")", err))
		return false;
	if (strcmp(name, wanted) != 0)
		return schema_error(place, err, "unknown option (%s), expected (%s)", name, wanted);
	return true;
}

static bool read_field_option(struct parser *parser, struct schema_field *field, struct error *err)
{
	if (parser_at(parser, "json_name")) {
		field->json_name_given = true;
		return parser_advance(parser, err) && parser_expect(parser, "=", err) &&
		       read_text(parser, &field->json_name, err);
	}
	if (!parser_at(parser, "("))
		return schema_error(parser->token.place, err, "unknown option \"%.*s\"",
		                    SLICE_ARGS(parser->token.text));
	return read_extension_name(parser, "ballast.json.json", err) && parser_expect(parser, "=", err) &&
	       read_aggregate(parser, FIELD_OPTIONS, field, err);
}

bool parser_field_options(struct parser *parser, struct schema_field *field, struct error *err)
{
	do {
		if (!parser_advance(parser, err) || !read_field_option(parser, field, err))
			return false;
	} while (parser_at(parser, ","));
	return parser_expect(parser, "]", err);
}

bool parser_value_options(struct parser *parser, struct schema_value *value, struct error *err)
{
	return parser_advance(parser, err) && read_extension_name(parser, "ballast.json.text", err) &&
	       parser_expect(parser, "=", err) && read_text(parser, &value->text, err) &&
	       parser_expect(parser, "]", err);
}

bool parser_rules(struct parser *parser, const char *extension, struct schema_rules *rules, struct error *err)
{
	return parser_advance(parser, err) && read_extension_name(parser, extension, err) &&
	       parser_expect(parser, "=", err) && read_aggregate(parser, RULES, rules, err) &&
	       parser_expect(parser, ";", err);
}
