#include <stdio.h>
#include <string.h>

#include "protogen/emit.h"

bool emit_is_map(const struct schema_field *field)
{
	return field->type == SCHEMA_STRING_MAP;
}

bool emit_is_list(const struct schema_field *field)
{
	return field->label == SCHEMA_REPEATED || emit_is_map(field);
}

void emit_type(const struct schema_field *field, char *text, size_t size)
{
	static const char *const NAMES[] = {
		[SCHEMA_BOOL] = "bool",          [SCHEMA_INT32] = "int32_t",
		[SCHEMA_INT64] = "int64_t",      [SCHEMA_UINT32] = "uint32_t",
		[SCHEMA_UINT64] = "uint64_t",    [SCHEMA_FLOAT] = "float",
		[SCHEMA_DOUBLE] = "double",      [SCHEMA_STRING] = "struct slice",
		[SCHEMA_BYTES] = "struct slice", [SCHEMA_STRING_MAP] = "struct json_pair",
	};

	if (field->type == SCHEMA_MESSAGE)
		snprintf(text, size, "struct %s", field->message->c_struct);
	else if (field->type == SCHEMA_ENUM)
		snprintf(text, size, "enum %s", field->enumeration->c_name);
	else if (field->bits == 16)
		snprintf(text, size, "%s", field->type == SCHEMA_INT32 ? "int16_t" : "uint16_t");
	else
		snprintf(text, size, "%s", NAMES[field->type]);
}

static const char *name_of_format(enum schema_format format, enum schema_type type, bool writer)
{
	switch (format) {
	case SCHEMA_QUANTITY:
		return "quantity";
	case SCHEMA_QUANTITY_STRING:
		return writer ? "quantity_string" : "quantity";
	case SCHEMA_MILLI_CPU:
		return "milli_cpu";
	case SCHEMA_MILLI_CPU_STRING:
		return writer ? "milli_cpu_string" : "milli_cpu";
	case SCHEMA_RFC3339:
		return "instant";
	case SCHEMA_RFC3339_NANO:
		return writer ? "instant_nanoseconds" : "instant";
	case SCHEMA_RAW:
		return "raw";
	case SCHEMA_FLOAT_OR_NAME:
		return type == SCHEMA_FLOAT ? "float_or_name" : "double_or_name";
	case SCHEMA_PLAIN:
		break;
	}
	return NULL;
}

const char *emit_reader_name(const struct schema_message *message, const struct schema_field *field)
{
	static const char *const NAMES[] = {
		[SCHEMA_BOOL] = "bool",     [SCHEMA_INT32] = "int32",   [SCHEMA_INT64] = "int64",
		[SCHEMA_UINT32] = "uint32", [SCHEMA_UINT64] = "uint64", [SCHEMA_FLOAT] = "float",
		[SCHEMA_DOUBLE] = "double", [SCHEMA_STRING] = "string", [SCHEMA_STRING_MAP] = "string_map",
	};
	const char *name = name_of_format(field->format, field->type, false);

	if (name != NULL)
		return name;
	if (message->rules.whole_numbers_from_double && field->type == SCHEMA_UINT64)
		return "whole_number";
	if (field->bits == 16)
		return field->type == SCHEMA_INT32 ? "int16" : "uint16";
	return NAMES[field->type];
}

const char *emit_writer_name(const struct schema_field *field)
{
	static const char *const NAMES[] = {
		[SCHEMA_BOOL] = "bool",     [SCHEMA_INT32] = "int",     [SCHEMA_INT64] = "int",
		[SCHEMA_UINT32] = "uint",   [SCHEMA_UINT64] = "uint",   [SCHEMA_FLOAT] = "float",
		[SCHEMA_DOUBLE] = "double", [SCHEMA_STRING] = "string", [SCHEMA_STRING_MAP] = "string_map",
	};
	const char *name = name_of_format(field->format, field->type, true);

	return name != NULL ? name : NAMES[field->type];
}

static void append_tabs(struct buffer *out, size_t tabs)
{
	for (size_t i = 0; i < tabs; i++)
		buffer_append_char(out, '\t');
}

void emit_call(struct buffer *out, size_t tabs, const char *start, const char *const *parameters, size_t count,
               size_t columns_behind)
{
	size_t indent = strlen(start) + 1;
	size_t column = EMIT_TAB * tabs + indent;
	size_t widest = 0;

	for (size_t i = 0; i < count; i++) {
		if (strlen(parameters[i]) > widest)
			widest = strlen(parameters[i]);
	}

	/* Where the parameters can't stand behind the bracket, they go one tab further in. */
	bool hang = column + widest + 1 + columns_behind > EMIT_COLUMNS;

	append_tabs(out, tabs);
	buffer_append_format(out, "%s(", start);
	if (hang) {
		indent = 0;
		tabs++;
	}
	for (size_t i = 0; i < count; i++) {
		size_t needed = strlen(parameters[i]) + (i + 1 < count ? 1 : 1 + columns_behind);

		if ((i == 0 && hang) || (i > 0 && column + 1 + needed > EMIT_COLUMNS)) {
			buffer_append_char(out, '\n');
			append_tabs(out, tabs);
			buffer_append_format(out, "%*s", (int)indent, "");
			column = EMIT_TAB * tabs + indent;
		} else if (i > 0) {
			buffer_append_char(out, ' ');
			column++;
		}
		buffer_append_format(out, "%s%s", parameters[i], i + 1 < count ? "," : ")");
		column += strlen(parameters[i]) + 1;
	}
}

size_t emit_columns(struct slice text)
{
	size_t columns = 0;

	for (size_t i = 0; i < text.length; i++) {
		if (((unsigned char)text.data[i] & 0xc0) != 0x80)
			columns++;
	}
	return columns;
}

/* Prints a line of a comment block, in several where it is too long. */
static void print_wrapped(struct buffer *out, const char *indent, struct slice line)
{
	size_t width = EMIT_COLUMNS - strlen(" * ") - EMIT_TAB * strlen(indent);

	while (emit_columns(line) > width) {
		size_t cut = line.length;

		while (cut > 0 && (line.data[cut - 1] != ' ' || emit_columns(slice_from(line.data, cut - 1)) > width))
			cut--;
		if (cut == 0)
			break;
		buffer_append_format(out, "%s * %.*s\n", indent, (int)cut - 1, line.data);
		line = slice_from_offset(line, cut);
	}
	buffer_append_format(out, "%s *%s%.*s\n", indent, line.length > 0 ? " " : "", SLICE_ARGS(line));
}

void emit_comment(struct buffer *out, const char *indent, const char *text)
{
	struct slice rest = slice_of(text);

	if (rest.length == 0)
		return;
	if (strchr(text, '\n') == NULL &&
	    EMIT_TAB * strlen(indent) + emit_columns(rest) + strlen("/*  */") <= EMIT_COLUMNS) {
		buffer_append_format(out, "%s/* %s */\n", indent, text);
		return;
	}
	buffer_append_format(out, "%s/*\n", indent);
	while (rest.length > 0)
		print_wrapped(out, indent, slice_take_until(&rest, '\n'));
	buffer_append_format(out, "%s */\n", indent);
}

void emit_upper(const char *text, char *upper, size_t size)
{
	size_t i = 0;

	for (; text[i] != '\0' && i + 1 < size; i++)
		upper[i] = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 'a' + 'A') : text[i];
	upper[i] = '\0';
}

void emit_access(const struct schema_message *message, const struct schema_field *field, const char *arrow, char *text)
{
	snprintf(text, EMIT_TEXT_SIZE, "%s%s%s", message->variable, arrow, field->name);
}
