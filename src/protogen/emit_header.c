/*
 * The header: enums, structs in an order that C accepts, then the functions. A struct's lines are gathered first,
 * because comments behind consecutive members are aligned.
 */
#include <stdio.h>
#include <string.h>

#include "protogen/emit.h"

enum { MAX_LINES = 4 * SCHEMA_MAX_FIELDS, LINE_SIZE = 256, NOTE_SIZE = 512 };

/* One line of a struct: a member and what is said behind it, or a comment of its own (then member is ""). */
struct line {
	char member[LINE_SIZE];
	char note[NOTE_SIZE];
	const char *comment; /* above the member */
};

struct lines {
	struct line items[MAX_LINES];
	size_t count;
};

static struct line *add_line(struct lines *lines)
{
	struct line *line = &lines->items[lines->count];

	if (lines->count + 1 < MAX_LINES)
		lines->count++;
	*line = (struct line){ .comment = "" };
	return line;
}

static void add_note(struct line *line, const char *text)
{
	size_t length = strlen(line->note);

	snprintf(line->note + length, NOTE_SIZE - length, "%s%s", length > 0 ? "; " : "", text);
}

static void add_limit_note(struct line *line, uint32_t limit, const char *unit)
{
	char text[64];

	if (limit == 0)
		return;
	snprintf(text, sizeof text, "at most %u%s", limit, unit);
	add_note(line, text);
}

/* Unit or meaning that neither name nor type shows. */
static void describe(struct line *line, const struct schema_field *field)
{
	char key[LINE_SIZE];

	snprintf(key, sizeof key, "\"%s\"", field->json_name);
	if (field->json_name_given)
		add_note(line, key);
	if (field->trailing[0] != '\0')
		add_note(line, field->trailing);
	if (field->format == SCHEMA_RAW)
		add_note(line, "raw JSON; empty when absent");
	if ((field->format == SCHEMA_RFC3339 || field->format == SCHEMA_RFC3339_NANO) &&
	    field->presence == SCHEMA_NO_PRESENCE)
		add_note(line, "RFC3339_ZERO when absent or null");
	add_limit_note(line, field->max_bytes, " bytes");
	add_limit_note(line, field->max_items, "");
}

static void add_member(struct lines *lines, const struct schema_field *field)
{
	char type[LINE_SIZE / 2];
	struct line *line = add_line(lines);

	line->comment = field->comment;
	if (field->presence == SCHEMA_HAS) {
		snprintf(line->member, LINE_SIZE, "bool has_%s;", field->name);
		line = add_line(lines);
	} else if (field->presence == SCHEMA_KEPT) {
		snprintf(line->member, LINE_SIZE, "enum json_presence %s_presence;", field->name);
		line = add_line(lines);
	}
	emit_type(field, type, sizeof type);
	snprintf(line->member, LINE_SIZE, "%s %s%s;", type, emit_is_list(field) ? "*" : "", field->name);
	describe(line, field);
	if (emit_is_list(field)) {
		line = add_line(lines);
		snprintf(line->member, LINE_SIZE, "size_t %s_count;", field->name);
	}
}

static bool fits_behind(const struct line *line, size_t width)
{
	return line->note[0] != '\0' &&
	       EMIT_TAB + width + strlen(" /*  */") + emit_columns(slice_of(line->note)) <= EMIT_COLUMNS;
}

/* Width of the longest member among consecutive lines that have a note, from start on. */
static size_t run_width(const struct lines *lines, size_t start)
{
	size_t width = 0;

	for (size_t i = start; i < lines->count && lines->items[i].note[0] != '\0'; i++) {
		if (i > start && lines->items[i].comment[0] != '\0')
			break;
		if (strlen(lines->items[i].member) > width)
			width = strlen(lines->items[i].member);
	}
	return width;
}

static void print_lines(struct buffer *out, const struct lines *lines)
{
	size_t width = 0;
	bool in_run = false;

	for (size_t i = 0; i < lines->count; i++) {
		const struct line *line = &lines->items[i];

		if (line->note[0] == '\0' || line->comment[0] != '\0')
			in_run = false;
		if (line->note[0] != '\0' && !in_run) {
			width = run_width(lines, i);
			in_run = true;
		}
		emit_comment(out, "\t", line->comment);
		if (line->note[0] != '\0' && !fits_behind(line, width))
			emit_comment(out, "\t", line->note);
		if (fits_behind(line, width))
			buffer_append_format(out, "\t%-*s /* %s */\n", (int)width, line->member, line->note);
		else
			buffer_append_format(out, "\t%s\n", line->member);
	}
}

static bool print_struct(struct schema_message *message, struct lines *lines, struct buffer *out, struct error *err);

/* Messages held by value must be complete before their holder. */
static bool print_needed_structs(struct schema_message *message, struct lines *lines, struct buffer *out,
                                 struct error *err)
{
	for (struct schema_field *field = message->fields; field != NULL; field = field->next) {
		if (field->type != SCHEMA_MESSAGE || field->message->file != message->file)
			continue;
		if (field->message->open)
			return schema_error(field->place, err, "message %s would contain itself",
			                    field->message->full_name);
		if (!print_struct(field->message, lines, out, err))
			return false;
	}
	return true;
}

static bool print_struct(struct schema_message *message, struct lines *lines, struct buffer *out, struct error *err)
{
	if (message->struct_owner != NULL)
		return message->struct_owner->file != message->file ||
		       print_struct(message->struct_owner, lines, out, err);
	if (message->printed)
		return true;
	message->open = true;
	if (!print_needed_structs(message, lines, out, err))
		return false;
	message->open = false;
	message->printed = true;
	lines->count = 0;
	for (const struct schema_field *field = message->fields; field != NULL; field = field->next)
		add_member(lines, field);
	if (message->rules.unknown == SCHEMA_KEEP) {
		snprintf(add_line(lines)->member, LINE_SIZE, "struct json_member *unknown;");
		add_note(&lines->items[lines->count - 1],
		         "keys that the schema doesn't know, written back behind the others");
		snprintf(add_line(lines)->member, LINE_SIZE, "size_t unknown_count;");
	}
	if (lines->count == 0)
		snprintf(add_line(lines)->member, LINE_SIZE, "char nothing; /* C wants a member */");
	emit_comment(out, "", message->comment);
	buffer_append_format(out, "struct %s {\n", message->c_name);
	print_lines(out, lines);
	buffer_append_text(out, "};\n\n");
	return true;
}

static void print_enum(struct buffer *out, const struct schema_file *file, const struct schema_enum *enumeration)
{
	char upper[LINE_SIZE];

	emit_comment(out, "", enumeration->comment);
	buffer_append_format(out, "enum %s {\n", enumeration->c_name);
	emit_upper(file->prefix, upper, sizeof upper);
	for (const struct schema_value *value = enumeration->values; value != NULL; value = value->next) {
		emit_comment(out, "\t", value->comment);
		buffer_append_format(out, "\t%s_%s, /* \"%s\"%s%s */\n", upper, value->name, value->text,
		                     value->trailing[0] != '\0' ? "; " : "", value->trailing);
	}
	buffer_append_text(out, "};\n\n");
}

/* One prototype: type and name, then parameters; "…" is printed with the message's names by the caller. */
static void print_prototype(struct buffer *out, const char *c_name, const char *suffix, const char *result,
                            const char *const *parameters, size_t count)
{
	char start[LINE_SIZE];

	snprintf(start, sizeof start, "%s %s_%s", result, c_name, suffix);
	emit_call(out, 0, start, parameters, count, 1);
	buffer_append_text(out, ";\n");
}

static void print_decoder(struct buffer *out, const char *type, const char *c_name, const char *variable)
{
	char ret[2 * LINE_SIZE];
	const char *parameters[] = { "struct json_reader *reader", ret, "struct error *err" };

	snprintf(ret, sizeof ret, "%s *ret_%s", type, variable);
	print_prototype(out, c_name, "decode", "bool", parameters, 3);
}

static void print_enum_decoder(struct buffer *out, const struct schema_enum *enumeration)
{
	char type[LINE_SIZE];

	snprintf(type, sizeof type, "enum %s", enumeration->c_name);
	print_decoder(out, type, enumeration->c_name, "value");
}

static void print_message_decoder(struct buffer *out, const struct schema_message *message)
{
	char type[LINE_SIZE];

	snprintf(type, sizeof type, "struct %s", message->c_struct);
	print_decoder(out, type, message->c_name, message->variable);
}

static void print_from_json(struct buffer *out, const struct schema_message *message)
{
	char ret[LINE_SIZE];
	const char *parameters[] = { "struct slice text", "struct arena *arena", ret, "struct error *err" };

	snprintf(ret, sizeof ret, "struct %s *ret_%s", message->c_struct, message->variable);
	print_prototype(out, message->c_name, "from_json", "bool", parameters, 4);
}

static void print_encoder(struct buffer *out, const struct schema_message *message)
{
	char value[LINE_SIZE];
	const char *parameters[] = { "struct json_writer *writer", value };

	snprintf(value, sizeof value, "const struct %s *%s", message->c_struct, message->variable);
	print_prototype(out, message->c_name, "encode", "void", parameters, 2);
}

static void print_to_json(struct buffer *out, const struct schema_message *message)
{
	char value[LINE_SIZE];
	const char *parameters[] = { value, "struct buffer *buffer", "struct error *err" };

	snprintf(value, sizeof value, "const struct %s *%s", message->c_struct, message->variable);
	print_prototype(out, message->c_name, "to_json", "bool", parameters, 3);
}

static void print_functions(struct buffer *out, const struct schema_file *file)
{
	emit_comment(
		out, "",
		"Read one JSON value. Strings are slices of the input, or of the reader's arena where they had escapes; both must\n"
		"outlive *ret_…. On failure *ret_… is untouched and *err names the JSON path and line.");
	for (const struct schema_enum *enumeration = file->enums; enumeration != NULL; enumeration = enumeration->next)
		print_enum_decoder(out, enumeration);
	for (const struct schema_message *message = file->messages; message != NULL; message = message->next)
		print_message_decoder(out, message);
	buffer_append_char(out, '\n');
	emit_comment(out, "",
	             "Read a text that is one JSON value and nothing else; text and arena must outlive *ret_….");
	for (const struct schema_message *message = file->messages; message != NULL; message = message->next)
		print_from_json(out, message);
	buffer_append_char(out, '\n');
	emit_comment(
		out, "",
		"Append compact JSON, keys in schema order. The writer remembers running out of room; ask it once at the end.");
	for (const struct schema_enum *enumeration = file->enums; enumeration != NULL; enumeration = enumeration->next)
		buffer_append_format(out, "void %s_encode(struct json_writer *writer, enum %s value);\n",
		                     enumeration->c_name, enumeration->c_name);
	for (const struct schema_message *message = file->messages; message != NULL; message = message->next)
		print_encoder(out, message);
	buffer_append_char(out, '\n');
	emit_comment(out, "", "The same, asking at once: false if there was no room, or a number that JSON can't say.");
	for (const struct schema_message *message = file->messages; message != NULL; message = message->next)
		print_to_json(out, message);
}

bool emit_header(struct schema_file *file, struct buffer *out, struct error *err)
{
	static struct lines lines; /* large; protogen is a program of one thread */
	char upper[LINE_SIZE];

	emit_upper(file->name, upper, sizeof upper);
	buffer_append_format(
		out,
		"/* Generated by protogen from proto/%s.proto. Don't edit: change the schema and build the target `regen`. */\n",
		file->name);
	emit_comment(out, "", file->comment);
	buffer_append_format(out, "#ifndef BALLAST_GEN_%s_H\n#define BALLAST_GEN_%s_H\n\n", upper, upper);
	buffer_append_text(out, "#include \"codec/json_reader.h\"\n#include \"codec/json_writer.h\"\n");
	for (const struct schema_import *import = file->imports; import != NULL; import = import->next) {
		if (import->file != NULL)
			buffer_append_format(out, "#include \"gen/%s.gen.h\"\n", import->file->name);
	}
	buffer_append_char(out, '\n');
	for (const struct schema_enum *enumeration = file->enums; enumeration != NULL; enumeration = enumeration->next)
		print_enum(out, file, enumeration);
	for (struct schema_message *message = file->messages; message != NULL; message = message->next) {
		if (!print_struct(message, &lines, out, err))
			return false;
	}
	print_functions(out, file);
	buffer_append_text(out, "\n#endif\n");
	return true;
}
