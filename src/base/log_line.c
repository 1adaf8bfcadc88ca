#include "base/log_line.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_text.h"

static const char *const LEVEL_NAMES[] = {
	[LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error", [LOG_PANIC] = "panic",
};

static const char *const LEVEL_COLUMNS[] = {
	[LOG_DEBUG] = "DEBUG", [LOG_INFO] = "INFO ", [LOG_WARN] = "WARN ", [LOG_ERROR] = "ERROR", [LOG_PANIC] = "PANIC",
};

/* At most limit bytes, without half a UTF-8 sequence at the end. */
static struct slice cut_text(struct slice text, size_t limit)
{
	if (text.length <= limit)
		return text;
	while (limit > 0 && ((unsigned char)text.data[limit] & 0xc0) == 0x80)
		limit--;
	return slice_from(text.data, limit);
}

static void append_cut_string(struct buffer *out, struct slice text, size_t limit)
{
	struct slice shown = cut_text(text, limit);

	json_text_append_string(out, shown, false);
	if (shown.length == text.length || out->failed)
		return;
	out->length--; /* the quote */
	buffer_append_format(out, "\xe2\x80\xa6 (%zu bytes left out)\"", text.length - shown.length);
}

/* A line break may only stand between the tokens of JSON, where a blank does as well. */
static void append_json_value(struct buffer *out, struct slice json, size_t limit)
{
	if (json.length == 0) {
		buffer_append_text(out, "null");
		return;
	}
	if (json.length > limit) {
		buffer_append_format(out, "\"(%zu bytes left out)\"", json.length);
		return;
	}
	while (json.length > 0) {
		size_t plain = 0;

		while (plain < json.length && json.data[plain] != '\n' && json.data[plain] != '\r')
			plain++;
		buffer_append(out, json.data, plain);
		if (plain < json.length)
			buffer_append_char(out, ' ');
		json = slice_from_offset(json, plain + 1);
	}
}

/* JSON has no names for these; a string is what the reference's logger writes. */
static void append_float(struct buffer *out, double number)
{
	if (json_text_append_number(out, number, false))
		return;
	if (isnan(number))
		buffer_append_text(out, "\"NaN\"");
	else
		buffer_append_text(out, number > 0 ? "\"+Inf\"" : "\"-Inf\"");
}

static void append_value(struct buffer *out, const struct log_field *field, size_t limit)
{
	switch (field->kind) {
	case LOG_FIELD_TEXT:
		append_cut_string(out, field->text, limit);
		break;
	case LOG_FIELD_INT:
		buffer_append_format(out, "%" PRId64, field->integer);
		break;
	case LOG_FIELD_UINT:
		buffer_append_format(out, "%" PRIu64, field->unsigned_integer);
		break;
	case LOG_FIELD_FLOAT:
		append_float(out, field->number);
		break;
	case LOG_FIELD_BOOL:
		buffer_append_text(out, field->integer != 0 ? "true" : "false");
		break;
	case LOG_FIELD_DURATION:
		append_float(out, (double)field->integer / NS_PER_S);
		break;
	case LOG_FIELD_JSON:
		append_json_value(out, field->text, limit);
		break;
	}
}

static void append_stamp(struct buffer *out, int64_t wall_ns)
{
	int64_t rest_ns = (wall_ns % NS_PER_S + NS_PER_S) % NS_PER_S;
	time_t seconds = (time_t)(wall_ns / NS_PER_S - (wall_ns % NS_PER_S < 0));
	struct tm utc = { 0 };
	char text[32];

	gmtime_r(&seconds, &utc);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
	buffer_append_format(out, "%s.%03" PRId64 "Z", text, rest_ns / NS_PER_MS);
}

static void append_time_member(struct buffer *out, const struct log_line *line)
{
	uint64_t size_ns = line->wall_ns < 0 ? -(uint64_t)line->wall_ns : (uint64_t)line->wall_ns;

	if (line->rfc3339) {
		buffer_append_text(out, "\"time\":\"");
		append_stamp(out, line->wall_ns);
		buffer_append_char(out, '"');
		return;
	}
	buffer_append_format(out, "\"ts\":%s%" PRIu64 ".%06" PRIu64, line->wall_ns < 0 ? "-" : "", size_ns / NS_PER_S,
	                     size_ns % NS_PER_S / NS_PER_US);
}

void log_line_append_json(struct buffer *out, const struct log_line *line)
{
	buffer_append_format(out, "{\"level\":\"%s\",", LEVEL_NAMES[line->level]);
	append_time_member(out, line);
	buffer_append_text(out, ",\"logger\":");
	json_text_append_string(out, slice_of(line->name), false);
	buffer_append_text(out, ",\"msg\":");
	append_cut_string(out, line->message, line->value_limit_bytes);
	if (line->context_json[0] != '\0') {
		buffer_append_char(out, ',');
		append_json_value(out, slice_of(line->context_json), SIZE_MAX);
	}
	for (size_t i = 0; i < line->field_count; i++) {
		buffer_append_char(out, ',');
		json_text_append_string(out, slice_of(line->fields[i].key), false);
		buffer_append_char(out, ':');
		append_value(out, &line->fields[i], line->value_limit_bytes);
	}
	buffer_append_text(out, "}\n");
}

/* ---- for people ---- */

/* Whether a text can stand without quotes: blanks are allowed in a message, not in a value. */
static bool is_bare(struct slice text, bool blanks)
{
	if (text.length == 0)
		return blanks;
	for (size_t i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c < 0x20 || c == 0x7f || (!blanks && (c == ' ' || c == '"' || c == '=')))
			return false;
	}
	return slice_is_utf8(text);
}

/* Bytes up to the next comma outside strings and brackets: one `"key":value` of the context. */
static size_t context_part_length(struct slice context)
{
	int depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < context.length; i++) {
		char c = context.data[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (c == '}' || c == ']') {
			depth--;
		} else if (c == ',' && depth == 0) {
			return i;
		}
	}
	return context.length;
}

/* `"pod":"a","restarts":3` as ` pod="a" restarts=3`. Keys of a context are plain names. */
static void append_context_text(struct buffer *out, struct slice context)
{
	while (context.length > 0) {
		struct slice value = slice_from(context.data, context_part_length(context));
		size_t length = value.length;
		struct slice key = slice_take_until(&value, ':');

		if (key.length >= 2)
			key = slice_from(key.data + 1, key.length - 2);
		buffer_append_char(out, ' ');
		buffer_append_slice(out, key);
		buffer_append_char(out, '=');
		append_json_value(out, value, SIZE_MAX);
		context = slice_from_offset(context, length + 1);
	}
}

void log_line_append_text(struct buffer *out, const struct log_line *line)
{
	append_stamp(out, line->wall_ns);
	buffer_append_format(out, " %s %s  ", LEVEL_COLUMNS[line->level], line->name);
	if (is_bare(line->message, true) && line->message.length <= line->value_limit_bytes)
		buffer_append_slice(out, line->message);
	else
		append_cut_string(out, line->message, line->value_limit_bytes);
	if (line->context_json[0] != '\0' || line->field_count > 0)
		buffer_append_char(out, ' ');
	append_context_text(out, slice_of(line->context_json));
	for (size_t i = 0; i < line->field_count; i++) {
		const struct log_field *field = &line->fields[i];

		buffer_append_format(out, " %s=", field->key);
		if (field->kind == LOG_FIELD_TEXT && is_bare(field->text, false) &&
		    field->text.length <= line->value_limit_bytes)
			buffer_append_slice(out, field->text);
		else
			append_value(out, field, line->value_limit_bytes);
	}
	buffer_append_char(out, '\n');
}
