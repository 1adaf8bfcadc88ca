/* Encoders: one statement or two per field, in schema order. */
#include <stdio.h>
#include <string.h>

#include "protogen/emit.h"

enum { TEXT_SIZE = EMIT_TEXT_SIZE };

/* How C says that a field without presence isn't empty; access is "vm->name". */
static void emptiness(const struct schema_field *field, const char *access, char *text)
{
	const char *test = " != 0";

	if (emit_is_list(field))
		test = "_count > 0";
	else if (field->type == SCHEMA_STRING || field->type == SCHEMA_BYTES)
		test = ".length > 0";
	else if (field->format == SCHEMA_RFC3339 || field->format == SCHEMA_RFC3339_NANO)
		test = " != RFC3339_ZERO";
	else if (field->type == SCHEMA_BOOL)
		test = "";
	snprintf(text, 2 * TEXT_SIZE, "%s%s", access, test);
}

/* What decides whether a key is written; "" for always. */
static void condition(const struct schema_message *message, const struct schema_field *field, char *text)
{
	bool raw = field->format == SCHEMA_RAW && field->label != SCHEMA_REPEATED;
	char access[TEXT_SIZE];

	text[0] = '\0';
	emit_access(message, field, "->", access);
	if (field->presence == SCHEMA_HAS && !field->always)
		snprintf(text, 2 * TEXT_SIZE, "%s->has_%s", message->variable, field->name);
	else if (field->presence == SCHEMA_KEPT)
		snprintf(text, 2 * TEXT_SIZE, "%s_presence != JSON_ABSENT", access);
	else if (field->omit_empty || (raw && !field->always))
		emptiness(field, access, text);
}

/* The call that writes one value. */
static void print_encode_call(struct buffer *out, size_t tabs, const struct schema_field *field, const char *value)
{
	char head[TEXT_SIZE];
	char reference[TEXT_SIZE + 16];
	char count[TEXT_SIZE + 16];
	const char *parameters[] = { "writer", value, count };

	if (field->type == SCHEMA_MESSAGE) {
		snprintf(head, sizeof head, "%s_encode", field->message->c_name);
		snprintf(reference, sizeof reference, "&%s", value);
		parameters[1] = reference;
	} else if (field->type == SCHEMA_ENUM) {
		snprintf(head, sizeof head, "%s_encode", field->enumeration->c_name);
	} else {
		snprintf(head, sizeof head, "json_writer_%s", emit_writer_name(field));
	}
	snprintf(count, sizeof count, "%s_count", value);
	emit_call(out, tabs, head, parameters, emit_is_map(field) ? 3 : 2, 1);
	buffer_append_text(out, ";\n");
}

static void print_value(struct buffer *out, size_t tabs, const struct schema_field *field, const char *access)
{
	char indent[8] = "\t\t\t\t\t";
	char item[TEXT_SIZE + 8];

	if (field->label != SCHEMA_REPEATED) {
		print_encode_call(out, tabs, field, access);
		return;
	}
	indent[tabs] = '\0';
	snprintf(item, sizeof item, "%s[i]", access);
	buffer_append_format(out,
	                     "%sjson_writer_array_begin(writer);\n"
	                     "%sfor (size_t i = 0; i < %s_count; i++)\n",
	                     indent, indent, access);
	print_encode_call(out, tabs + 1, field, item);
	buffer_append_format(out, "%sjson_writer_array_end(writer);\n", indent);
}

static void print_encode_field(struct buffer *out, const struct schema_message *message,
                               const struct schema_field *field)
{
	char when[2 * TEXT_SIZE];
	char null_when[2 * TEXT_SIZE] = "";
	char access[TEXT_SIZE];
	size_t tabs = 1;
	const char *indent = "\t";
	bool braces = field->label == SCHEMA_REPEATED;

	condition(message, field, when);
	emit_access(message, field, "->", access);
	if (when[0] != '\0') {
		buffer_append_format(out, "\tif (%s) {\n", when);
		tabs = 2;
		indent = "\t\t";
	}
	buffer_append_format(out, "%sjson_writer_key(writer, SLICE(\"%s\"));\n", indent, field->json_name);
	if (field->presence == SCHEMA_KEPT)
		snprintf(null_when, sizeof null_when, "%s_presence == JSON_NULL", access);
	else if (field->presence == SCHEMA_HAS && field->always)
		snprintf(null_when, sizeof null_when, "!%s->has_%s", message->variable, field->name);
	if (null_when[0] != '\0') {
		buffer_append_format(out, "%sif (%s)%s\n%s\tjson_writer_null(writer);\n", indent, null_when,
		                     braces ? " {" : "", indent);
		buffer_append_format(out, "%s%selse%s\n", indent, braces ? "} " : "", braces ? " {" : "");
		print_value(out, tabs + 1, field, access);
		if (braces)
			buffer_append_format(out, "%s}\n", indent);
	} else {
		print_value(out, tabs, field, access);
	}
	if (when[0] != '\0')
		buffer_append_text(out, "\t}\n");
}

void emit_encoder(struct buffer *out, const struct schema_message *message)
{
	char start[TEXT_SIZE];
	char value[TEXT_SIZE];
	const char *parameters[] = { "struct json_writer *writer", value };

	snprintf(start, sizeof start, "void %s_encode", message->c_name);
	snprintf(value, sizeof value, "const struct %s *%s", message->c_struct, message->variable);
	emit_call(out, 0, start, parameters, 2, 0);
	buffer_append_text(out, "\n{\n");
	if (message->fields == NULL && message->rules.unknown != SCHEMA_KEEP)
		buffer_append_format(out, "\t(void)%s;\n", message->variable);
	buffer_append_text(out, "\tjson_writer_object_begin(writer);\n");
	for (const struct schema_field *field = message->fields; field != NULL; field = field->next)
		print_encode_field(out, message, field);
	if (message->rules.unknown == SCHEMA_KEEP)
		buffer_append_format(out, "\tjson_writer_members(writer, %s->unknown, %s->unknown_count);\n",
		                     message->variable, message->variable);
	buffer_append_text(out, "\tjson_writer_object_end(writer);\n}\n\n");
}

void emit_to_json(struct buffer *out, const struct schema_message *message)
{
	char start[TEXT_SIZE];
	char value[TEXT_SIZE];
	const char *parameters[] = { value, "struct buffer *buffer", "struct error *err" };

	snprintf(start, sizeof start, "bool %s_to_json", message->c_name);
	snprintf(value, sizeof value, "const struct %s *%s", message->c_struct, message->variable);
	emit_call(out, 0, start, parameters, 3, 0);
	buffer_append_format(out,
	                     "\n{\n"
	                     "\tstruct json_writer writer;\n\n"
	                     "\tjson_writer_init(&writer, buffer);\n"
	                     "\t%s_encode(&writer, %s);\n"
	                     "\treturn json_writer_check(&writer, \"%s\", err);\n"
	                     "}\n",
	                     message->c_name, message->variable, message->name);
}
