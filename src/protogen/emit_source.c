#include <stdio.h>
#include <string.h>

#include "protogen/emit.h"

enum { TEXT_SIZE = 512 };

/* "resources->cpu_milli" or "resources.cpu_milli" */
static void field_access(const struct schema_message *message, const struct schema_field *field, const char *operator,
                         char * text)
{
	snprintf(text, TEXT_SIZE, "%s%s%s", message->variable, operator, field->name);
}

/* --- decoding --- */

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

/* What the function that reads a repeated field is called, behind "read_". It is static, so the package needn't be in it. */
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
	field_access(message, field, ".", access);
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

static void print_decoder(struct buffer *out, const struct schema_message *message)
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

static void print_from_json(struct buffer *out, const struct schema_message *message)
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

/* --- encoding --- */

/* What decides whether a key is written; "" for always. */
static void condition(const struct schema_message *message, const struct schema_field *field, char *text)
{
	char access[TEXT_SIZE];

	text[0] = '\0';
	field_access(message, field, "->", access);
	if (field->presence == SCHEMA_HAS && !field->always)
		snprintf(text, TEXT_SIZE, "%s->has_%s", message->variable, field->name);
	else if (field->presence == SCHEMA_KEPT)
		snprintf(text, 2 * TEXT_SIZE, "%s_presence != JSON_ABSENT", access);
	else if (field->format == SCHEMA_RAW && !field->always && field->label != SCHEMA_REPEATED)
		snprintf(text, 2 * TEXT_SIZE, "%s.length > 0", access);
	else if (!field->omit_empty)
		return;
	else if (emit_is_list(field))
		snprintf(text, 2 * TEXT_SIZE, "%s_count > 0", access);
	else if (field->type == SCHEMA_STRING)
		snprintf(text, 2 * TEXT_SIZE, "%s.length > 0", access);
	else if (field->format == SCHEMA_RFC3339 || field->format == SCHEMA_RFC3339_NANO)
		snprintf(text, 2 * TEXT_SIZE, "%s != RFC3339_ZERO", access);
	else if (field->type == SCHEMA_BOOL)
		snprintf(text, 2 * TEXT_SIZE, "%s", access);
	else
		snprintf(text, 2 * TEXT_SIZE, "%s != 0", access);
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
	bool braces = field->label == SCHEMA_REPEATED;

	condition(message, field, when);
	field_access(message, field, "->", access);
	if (when[0] != '\0') {
		buffer_append_format(out, "\tif (%s) {\n", when);
		tabs = 2;
	}
	buffer_append_format(out, "%sjson_writer_key(writer, SLICE(\"%s\"));\n", "\t\t" + (2 - tabs), field->json_name);
	if (field->presence == SCHEMA_KEPT)
		snprintf(null_when, sizeof null_when, "%s_presence == JSON_NULL", access);
	else if (field->presence == SCHEMA_HAS && field->always)
		snprintf(null_when, sizeof null_when, "!%s->has_%s", message->variable, field->name);
	if (null_when[0] != '\0') {
		const char *indent = "\t\t" + (2 - tabs);

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

static void print_encoder(struct buffer *out, const struct schema_message *message)
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

static void print_to_json(struct buffer *out, const struct schema_message *message)
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

/* --- enums --- */

static void print_enum(struct buffer *out, const struct schema_file *file, const struct schema_enum *enumeration)
{
	char prefix[TEXT_SIZE];
	char table[TEXT_SIZE];
	char start[TEXT_SIZE];
	char ret[TEXT_SIZE];
	const char *parameters[] = { "struct json_reader *reader", ret, "struct error *err" };

	emit_upper(file->prefix, prefix, sizeof prefix);
	emit_upper(enumeration->c_name, table, sizeof table);
	buffer_append_format(out, "static const struct slice %s_TEXTS[] = {\n", table);
	for (const struct schema_value *value = enumeration->values; value != NULL; value = value->next)
		buffer_append_format(out, "\t[%s_%s] = {\"%s\", %zu},\n", prefix, value->name, value->text,
		                     strlen(value->text));
	buffer_append_text(out, "};\n\n");
	snprintf(start, sizeof start, "bool %s_decode", enumeration->c_name);
	snprintf(ret, sizeof ret, "enum %s *ret_value", enumeration->c_name);
	emit_call(out, 0, start, parameters, 3, 0);
	buffer_append_format(out,
	                     "\n{\n"
	                     "\tconst size_t count = sizeof %s_TEXTS / sizeof %s_TEXTS[0];\n"
	                     "\tsize_t index = 0;\n\n"
	                     "\tif (!json_reader_choice(reader, %s_TEXTS, count, &index, err))\n"
	                     "\t\treturn false;\n"
	                     "\t*ret_value = (enum %s)index;\n"
	                     "\treturn true;\n"
	                     "}\n\n"
	                     "void %s_encode(struct json_writer *writer, enum %s value)\n"
	                     "{\n"
	                     "\tjson_writer_string(writer, %s_TEXTS[value]);\n"
	                     "}\n\n",
	                     table, table, table, enumeration->c_name, enumeration->c_name, enumeration->c_name, table);
}

void emit_source(const struct schema_file *file, struct buffer *out)
{
	buffer_append_format(
		out,
		"/* Generated by protogen from proto/%s.proto. Don't edit: change the schema and build the target `regen`. */\n"
		"#include \"gen/%s.gen.h\"\n\n",
		file->name, file->name);
	for (const struct schema_enum *enumeration = file->enums; enumeration != NULL; enumeration = enumeration->next)
		print_enum(out, file, enumeration);
	for (const struct schema_message *message = file->messages; message != NULL; message = message->next) {
		print_decoder(out, message);
		print_from_json(out, message);
		print_encoder(out, message);
		print_to_json(out, message);
		if (message->next != NULL)
			buffer_append_char(out, '\n');
	}
}
