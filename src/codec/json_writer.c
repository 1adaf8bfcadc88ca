#include "codec/json_writer.h"

#include <inttypes.h>
#include <math.h>

#include "base/json_text.h"
#include "codec/json_reader.h"
#include "codec/quantity.h"
#include "codec/rfc3339.h"

void json_writer_init(struct json_writer *writer, struct buffer *buffer)
{
	*writer = (struct json_writer){ .buffer = buffer, .escape_html = true };
}

/* Before a value or key: the comma that the one before it left owing. */
static void separate(struct json_writer *writer)
{
	if (writer->need_comma)
		buffer_append_char(writer->buffer, ',');
	writer->need_comma = true;
}

static void begin(struct json_writer *writer, char bracket)
{
	separate(writer);
	buffer_append_char(writer->buffer, bracket);
	writer->need_comma = false;
}

static void end(struct json_writer *writer, char bracket)
{
	buffer_append_char(writer->buffer, bracket);
	writer->need_comma = true;
}

void json_writer_object_begin(struct json_writer *writer)
{
	begin(writer, '{');
}

void json_writer_object_end(struct json_writer *writer)
{
	end(writer, '}');
}

void json_writer_array_begin(struct json_writer *writer)
{
	begin(writer, '[');
}

void json_writer_array_end(struct json_writer *writer)
{
	end(writer, ']');
}

void json_writer_key(struct json_writer *writer, struct slice key)
{
	separate(writer);
	json_text_append_string(writer->buffer, key, writer->escape_html);
	buffer_append_char(writer->buffer, ':');
	writer->need_comma = false;
}

static void append_text(struct json_writer *writer, const char *text)
{
	separate(writer);
	buffer_append_text(writer->buffer, text);
}

void json_writer_null(struct json_writer *writer)
{
	append_text(writer, "null");
}

void json_writer_bool(struct json_writer *writer, bool value)
{
	append_text(writer, value ? "true" : "false");
}

void json_writer_int(struct json_writer *writer, int64_t value)
{
	separate(writer);
	buffer_append_format(writer->buffer, "%" PRId64, value);
}

void json_writer_uint(struct json_writer *writer, uint64_t value)
{
	separate(writer);
	buffer_append_format(writer->buffer, "%" PRIu64, value);
}

static void write_number(struct json_writer *writer, double value, bool single)
{
	separate(writer);
	if (!json_text_append_number(writer->buffer, value, single))
		writer->not_a_number = true;
}

void json_writer_double(struct json_writer *writer, double value)
{
	write_number(writer, value, false);
}

void json_writer_float(struct json_writer *writer, float value)
{
	write_number(writer, (double)value, true);
}

void json_writer_string(struct json_writer *writer, struct slice text)
{
	separate(writer);
	json_text_append_string(writer->buffer, text, writer->escape_html);
}

void json_writer_raw(struct json_writer *writer, struct slice json)
{
	separate(writer);
	if (json.length > 0)
		buffer_append_slice(writer->buffer, json);
	else
		buffer_append_text(writer->buffer, "null");
}

static void write_number_or_name(struct json_writer *writer, double value, bool single)
{
	if (isnan(value))
		append_text(writer, "\"NaN\"");
	else if (isinf(value))
		append_text(writer, value > 0 ? "\"Inf\"" : "\"-Inf\"");
	else
		write_number(writer, value, single);
}

void json_writer_double_or_name(struct json_writer *writer, double value)
{
	write_number_or_name(writer, value, false);
}

void json_writer_float_or_name(struct json_writer *writer, float value)
{
	write_number_or_name(writer, (double)value, true);
}

void json_writer_quantity_string(struct json_writer *writer, uint64_t bytes)
{
	separate(writer);
	buffer_append_char(writer->buffer, '"');
	bytes_print(bytes, writer->buffer);
	buffer_append_char(writer->buffer, '"');
}

void json_writer_quantity(struct json_writer *writer, uint64_t bytes)
{
	if (bytes < 1024)
		json_writer_uint(writer, bytes);
	else
		json_writer_quantity_string(writer, bytes);
}

void json_writer_milli_cpu_string(struct json_writer *writer, uint32_t milli)
{
	separate(writer);
	buffer_append_char(writer->buffer, '"');
	milli_cpu_print_quantity(milli, writer->buffer);
	buffer_append_char(writer->buffer, '"');
}

void json_writer_milli_cpu(struct json_writer *writer, uint32_t milli)
{
	if (milli % 1000 == 0) {
		json_writer_uint(writer, milli / 1000);
		return;
	}
	separate(writer);
	buffer_append_format(writer->buffer, "\"%" PRIu32 "m\"", milli);
}

static void write_instant(struct json_writer *writer, int64_t ns, void (*print)(int64_t ns, struct buffer *out))
{
	if (ns == RFC3339_ZERO) {
		json_writer_null(writer);
		return;
	}
	separate(writer);
	buffer_append_char(writer->buffer, '"');
	print(ns, writer->buffer);
	buffer_append_char(writer->buffer, '"');
}

void json_writer_instant(struct json_writer *writer, int64_t ns)
{
	write_instant(writer, ns, rfc3339_print_seconds);
}

void json_writer_instant_nanoseconds(struct json_writer *writer, int64_t ns)
{
	write_instant(writer, ns, rfc3339_print_nanoseconds);
}

void json_writer_string_map(struct json_writer *writer, const struct json_pair *pairs, size_t count)
{
	json_writer_object_begin(writer);
	for (size_t i = 0; i < count; i++) {
		json_writer_key(writer, pairs[i].key);
		json_writer_string(writer, pairs[i].value);
	}
	json_writer_object_end(writer);
}

void json_writer_members(struct json_writer *writer, const struct json_member *members, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		json_writer_key(writer, members[i].key);
		json_writer_raw(writer, members[i].value);
	}
}

bool json_writer_check(const struct json_writer *writer, const char *what, struct error *err)
{
	if (writer->not_a_number)
		return error_set(err, ERROR_SYNTAX, "%s: a NaN or an infinity can't be written as JSON", what);
	return buffer_check(writer->buffer, what, err);
}
