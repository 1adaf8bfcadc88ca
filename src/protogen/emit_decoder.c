/* Decoders: a table of keys, then a loop with one case per field. */
#include <stdio.h>
#include <string.h>

#include "protogen/emit.h"

enum { TEXT_SIZE = EMIT_TEXT_SIZE };

/* "start" and the call that reads one value to where the targets point. */
static void print_decode_call(struct buffer *out, size_t tabs, const char *start, const struct schema_message *message,
                              const struct schema_field *field, const char *target, const char *count_target)
{
	char head[2 * TEXT_SIZE];
	const char *parameters[] = { "reader", target, "err", NULL };
	size_t count = 3;

	if (field->type == SCHEMA_MESSAGE)
		snprintf(head, sizeof head, "%s%s_decode", start, field->message->c_name);
	else if (field->type == SCHEMA_ENUM)
		snprintf(head, sizeof head, "%s%s_decode", start, field->enumeration->c_name);
	else
		snprintf(head, sizeof head, "%sjson_reader_%s", start, emit_reader_name(message, field));
	if (count_target != NULL) {
		parameters[2] = count_target;
		parameters[3] = "err";
		count = 4;
	}
	emit_call(out, tabs, head, parameters, count, 1);
	buffer_append_text(out, ";\n");
}

/*
 * What the function that reads a repeated field is called, behind "read_". It is static, so the package needn't be in
 * it.
 */
static const char *list_name(const struct schema_message *message, const struct schema_field *field, char *name)
{
	snprintf(name, TEXT_SIZE, "%s_%s", message->c_name + strlen(message->file->prefix) + 1, field->name);
	return name;
}

static void print_list_reader(struct buffer *out, const struct schema_message *message,
                              const struct schema_field *field)
{
	char type[TEXT_SIZE];
	char start[2 * TEXT_SIZE];
	char items[2 * TEXT_SIZE];
	char name[TEXT_SIZE];
	const char *parameters[] = { "struct json_reader *reader", items, "size_t *ret_count", "struct error *err" };

	emit_type(field, type, sizeof type);
	snprintf(start, sizeof start, "static bool read_%s", list_name(message, field, name));
	snprintf(items, sizeof items, "%s **ret_items", type);
	emit_call(out, 0, start, parameters, 4, 0);
	buffer_append_format(out,
	                     "\n{\n"
	                     "\tstruct json_array array = json_array_begin(reader, sizeof(%s), err);\n"
	                     "\t%s *items = array.items;\n\n"
	                     "\twhile (json_array_next(reader, &array))\n",
	                     type, type);
	print_decode_call(out, 2, "array.ok = ", message, field, "&items[array.index]", NULL);
	buffer_append_text(out, "\tif (!array.ok)\n"
	                        "\t\treturn false;\n"
	                        "\t*ret_items = items;\n"
	                        "\t*ret_count = array.count;\n"
	                        "\treturn true;\n"
	                        "}\n\n");
}

static const char *null_name(const struct schema_field *field)
{
	if (field->null == SCHEMA_NULL_IS_ABSENT)
		return "JSON_NULL_IS_ABSENT";
	return field->null == SCHEMA_NULL_IS_KEPT ? "JSON_NULL_IS_KEPT" : "JSON_NULL_IS_ERROR";
}

static void print_attribute(struct buffer *line, const char *separator, const char *name, const char *value)
{
	buffer_append_format(line, ",%s.%s = %s", separator, name, value);
}

/* What a field's table entry says, on one line or on several. */
static void print_attributes(struct buffer *line, const struct schema_field *field, const char *separator)
{
	char number[16];

	buffer_append_format(line, ".key = {\"%s\", %zu}", field->json_name, strlen(field->json_name));
	if (field->null != SCHEMA_NULL_IS_ERROR)
		print_attribute(line, separator, "null", null_name(field));
	if (field->required)
		print_attribute(line, separator, "required", "true");
	if (field->exact)
		print_attribute(line, separator, "exact", "true");
	snprintf(number, sizeof number, "%u", field->max_items);
	if (field->max_items != 0)
		print_attribute(line, separator, "max_items", number);
	snprintf(number, sizeof number, "%u", field->max_bytes);
	if (field->max_bytes != 0)
		print_attribute(line, separator, "max_bytes", number);
}

static void print_field_entry(struct buffer *out, const struct schema_field *field)
{
	char upper[TEXT_SIZE];
	size_t start;

	emit_upper(field->name, upper, sizeof upper);
	buffer_append_format(out, "\t\t[FIELD_%s] = {", upper);
	start = out->length;
	print_attributes(out, field, " ");
	if (2 * EMIT_TAB + strlen("[FIELD_] = {},") + strlen(upper) + out->length - start <= EMIT_COLUMNS) {
		buffer_append_text(out, "},\n");
		return;
	}
	out->length = start; /* too long: again, on several lines */
	buffer_append_text(out, "\n\t\t\t");
	print_attributes(out, field, "\n\t\t\t");
	buffer_append_text(out, ",\n\t\t},\n");
}

static void print_field_table(struct buffer *out, const struct schema_message *message)
{
	char upper[TEXT_SIZE];

	buffer_append_text(out, "\tenum {\n");
	for (const struct schema_field *field = message->fields; field != NULL; field = field->next) {
		emit_upper(field->name, upper, sizeof upper);
		buffer_append_format(out, "\t\tFIELD_%s,\n", upper);
	}
	buffer_append_text(out, "\t};\n\tstatic const struct json_field FIELDS[] = {\n");
	for (const struct schema_field *field = message->fields; field != NULL; field = field->next)
		print_field_entry(out, field);
	buffer_append_text(out, "\t};\n");
}

static void print_message_table(struct buffer *out, const struct schema_message *message)
{
	buffer_append_text(out, "\tstatic const struct json_message MESSAGE = {\n");
	if (message->fields != NULL)
		buffer_append_text(out,
		                   "\t\t.fields = FIELDS,\n\t\t.field_count = sizeof FIELDS / sizeof FIELDS[0],\n");
	else
		buffer_append_text(out, "\t\t.field_count = 0,\n");
	if (message->rules.unknown == SCHEMA_REJECT)
		buffer_append_text(out, "\t\t.unknown = JSON_UNKNOWN_REJECTED,\n");
	if (message->rules.unknown == SCHEMA_KEEP)
		buffer_append_text(out, "\t\t.unknown = JSON_UNKNOWN_KEPT,\n");
	if (message->rules.keys == SCHEMA_ASCII_FOLD)
		buffer_append_text(out, "\t\t.fold_keys = true,\n");
	if (message->rules.last_duplicate_wins)
		buffer_append_text(out, "\t\t.last_duplicate_wins = true,\n");
	if (message->rules.replace_bad_utf8)
		buffer_append_text(out, "\t\t.replace_bad_utf8 = true,\n");
	if (message->rules.null == SCHEMA_NULL_IS_ABSENT)
		buffer_append_text(out, "\t\t.null_is_empty = true,\n");
	buffer_append_text(out, "\t};\n");
}

/* Instants that aren't there must read as RFC3339_ZERO, also within messages held by value. */
static void print_initial_values(struct buffer *out, const struct schema_message *message, const char *path, bool *any)
{
	for (const struct schema_field *field = message->fields; field != NULL; field = field->next) {
		char inner[TEXT_SIZE];

		if (emit_is_list(field) || field->presence != SCHEMA_NO_PRESENCE)
			continue;
		snprintf(inner, sizeof inner, "%s.%s", path, field->name);
		if (field->type == SCHEMA_MESSAGE)
			print_initial_values(out, field->message, inner, any);
		if (field->format != SCHEMA_RFC3339 && field->format != SCHEMA_RFC3339_NANO)
			continue;
		buffer_append_format(out, "%s\t\t%s = RFC3339_ZERO,\n", *any ? "" : "\n", inner);
		*any = true;
	}
}

static void print_decode_case(struct buffer *out, const struct schema_message *message,
                              const struct schema_field *field)
{
	char upper[TEXT_SIZE];
	char access[TEXT_SIZE];
	char target[TEXT_SIZE + 8];
	char count_target[TEXT_SIZE + 16];
	char start[2 * TEXT_SIZE];

	emit_upper(field->name, upper, sizeof upper);
	emit_access(message, field, ".", access);
	snprintf(target, sizeof target, "&%s", access);
	snprintf(count_target, sizeof count_target, "&%s_count", access);
	buffer_append_format(out, "\t\tcase FIELD_%s:\n", upper);
	if (field->presence == SCHEMA_HAS)
		buffer_append_format(out, "\t\t\t%s.has_%s = true;\n", message->variable, field->name);
	snprintf(start, sizeof start, "object.ok = ");
	if (field->presence == SCHEMA_KEPT) {
		buffer_append_format(out, "\t\t\t%s_presence = json_reader_presence(reader);\n", access);
		buffer_append_format(out, "\t\t\tobject.ok = %s_presence == JSON_NULL ||\n", access);
		snprintf(start, sizeof start, "            ");
	}
	if (field->label == SCHEMA_REPEATED) {
		const char *parameters[] = { "reader", target, count_target, "err" };
		char name[TEXT_SIZE];
		size_t length = strlen(start);

		snprintf(start + length, sizeof start - length, "read_%s", list_name(message, field, name));
		emit_call(out, 3, start, parameters, 4, 1);
		buffer_append_text(out, ";\n");
	} else {
		print_decode_call(out, 3, start, message, field, target, emit_is_map(field) ? count_target : NULL);
	}
	buffer_append_text(out, "\t\t\tbreak;\n");
}

static void print_decoder_head(struct buffer *out, const struct schema_message *message)
{
	char start[TEXT_SIZE];
	char ret[TEXT_SIZE];
	const char *parameters[] = { "struct json_reader *reader", ret, "struct error *err" };

	snprintf(start, sizeof start, "bool %s_decode", message->c_name);
	snprintf(ret, sizeof ret, "struct %s *ret_%s", message->c_struct, message->variable);
	emit_call(out, 0, start, parameters, 3, 0);
	buffer_append_text(out, "\n{\n");
}

void emit_decoder(struct buffer *out, const struct schema_message *message)
{
	bool any = false;

	for (const struct schema_field *field = message->fields; field != NULL; field = field->next) {
		if (field->label == SCHEMA_REPEATED)
			print_list_reader(out, message, field);
	}
	print_decoder_head(out, message);
	if (message->fields != NULL)
		print_field_table(out, message);
	print_message_table(out, message);
	buffer_append_format(out, "\tstruct %s %s = {", message->c_struct, message->variable);
	print_initial_values(out, message, "", &any);
	buffer_append_text(out, any ? "\t};\n" : "0};\n");
	buffer_append_text(out, "\tstruct json_object object = json_object_begin(reader, &MESSAGE, err);\n\n");
	if (message->fields != NULL) {
		buffer_append_text(out,
		                   "\twhile (json_object_next(reader, &object, err)) {\n\t\tswitch (object.field) {\n");
		for (const struct schema_field *field = message->fields; field != NULL; field = field->next)
			print_decode_case(out, message, field);
		buffer_append_text(out, "\t\t}\n\t}\n");
	} else {
		buffer_append_text(out, "\twhile (json_object_next(reader, &object, err))\n\t\tcontinue;\n");
	}
	buffer_append_text(out, "\tif (!json_object_end(reader, &object, err))\n\t\treturn false;\n");
	if (message->rules.unknown == SCHEMA_KEEP)
		buffer_append_format(out,
		                     "\t%s.unknown = object.unknown;\n\t%s.unknown_count = object.unknown_count;\n",
		                     message->variable, message->variable);
	buffer_append_format(out, "\t*ret_%s = %s;\n\treturn true;\n}\n\n", message->variable, message->variable);
}

void emit_from_json(struct buffer *out, const struct schema_message *message)
{
	char start[TEXT_SIZE];
	char ret[TEXT_SIZE];
	const char *parameters[] = { "struct slice text", "struct arena *arena", ret, "struct error *err" };
	const char *variable = message->variable;

	snprintf(start, sizeof start, "bool %s_from_json", message->c_name);
	snprintf(ret, sizeof ret, "struct %s *ret_%s", message->c_struct, variable);
	emit_call(out, 0, start, parameters, 4, 0);
	buffer_append_format(out,
	                     "\n{\n"
	                     "\tstruct json_reader reader;\n"
	                     "\tstruct %s %s;\n\n"
	                     "\tif (!json_reader_open(&reader, text, arena, err) ||\n"
	                     "\t    !%s_decode(&reader, &%s, err) ||\n"
	                     "\t    !json_reader_finish(&reader, err))\n"
	                     "\t\treturn false;\n"
	                     "\t*ret_%s = %s;\n"
	                     "\treturn true;\n"
	                     "}\n\n",
	                     message->c_struct, variable, message->c_name, variable, variable, variable);
}
