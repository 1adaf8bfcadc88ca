/* Reading single values. Each function leaves the reader behind its value, also when it fails while collecting. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json_internal.h"
#include "codec/quantity.h"
#include "codec/rfc3339.h"

/* --- strings --- */

static bool read_text(struct json_reader *reader, const char *expected, struct slice *ret_text, struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	struct slice text = json_token_text(reader, token);

	if (token->type != JSMN_STRING) {
		*ret_text = slice_from(NULL, 0);
		return json_fail_type(reader, expected, false, err);
	}
	if (json_needs_decoding(reader, token) && !json_decode_string(reader, token, &text, err))
		return false;
	if (reader->field != NULL && reader->field->max_bytes != 0 && text.length > reader->field->max_bytes) {
		*ret_text = slice_from(NULL, 0);
		return json_fail_value(reader, err, "%zu bytes are more than %u", text.length,
		                       reader->field->max_bytes);
	}
	reader->position++;
	*ret_text = text;
	return true;
}

bool json_reader_string(struct json_reader *reader, struct slice *ret_value, struct error *err)
{
	struct slice text;

	if (!read_text(reader, "string", &text, err))
		return false;
	*ret_value = text;
	return true;
}

bool json_reader_choice(struct json_reader *reader, const struct slice *texts, size_t count, size_t *ret_index,
                        struct error *err)
{
	struct slice text;
	int token = reader->position;
	struct json_problem problem = { .kind = JSON_PROBLEM_VALUE };

	if (json_at(reader)->type != JSMN_STRING)
		return json_fail_type(reader, "string", false, err);
	if (!read_text(reader, "string", &text, err))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (slice_equal(texts[i], text)) {
			*ret_index = i;
			return true;
		}
	}
	snprintf(problem.text, sizeof problem.text, "\"%.*s\" is not one of", SLICE_ARGS(text));
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(problem.text);

		snprintf(problem.text + length, sizeof problem.text - length, "%s \"%.*s\"", i > 0 ? "," : "",
		         SLICE_ARGS(texts[i]));
	}
	return json_fail(reader, token, &problem, err);
}

/* --- bool and numbers --- */

bool json_reader_bool(struct json_reader *reader, bool *ret_value, struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	char first = reader->text.data[token->start];

	if (token->type != JSMN_PRIMITIVE || (first != 't' && first != 'f'))
		return json_fail_type(reader, "bool", false, err);
	*ret_value = first == 't';
	reader->position++;
	return true;
}

static bool is_number(const struct json_reader *reader, const jsmntok_t *token)
{
	char first = reader->text.data[token->start];

	return token->type == JSMN_PRIMITIVE && (first == '-' || (first >= '0' && first <= '9'));
}

/* Fractions and exponents are no integers, even where their value is one. */
static bool read_unsigned(struct json_reader *reader, uint64_t max, const char *name, uint64_t *ret_value,
                          struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	uint64_t value;

	if (!is_number(reader, token) || !slice_to_u64(json_token_text(reader, token), &value) || value > max)
		return json_fail_type(reader, name, true, err);
	*ret_value = value;
	reader->position++;
	return true;
}

/* max: the largest value; the smallest is -max - 1. */
static bool read_signed(struct json_reader *reader, int64_t max, const char *name, int64_t *ret_value,
                        struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	int64_t value;

	if (!is_number(reader, token) || !slice_to_i64(json_token_text(reader, token), &value) || value > max ||
	    value < -max - 1)
		return json_fail_type(reader, name, true, err);
	*ret_value = value;
	reader->position++;
	return true;
}

bool json_reader_int16(struct json_reader *reader, int16_t *ret_value, struct error *err)
{
	int64_t value = *ret_value;

	if (!read_signed(reader, INT16_MAX, "int16", &value, err))
		return false;
	*ret_value = (int16_t)value;
	return true;
}

bool json_reader_int32(struct json_reader *reader, int32_t *ret_value, struct error *err)
{
	int64_t value = *ret_value;

	if (!read_signed(reader, INT32_MAX, "int32", &value, err))
		return false;
	*ret_value = (int32_t)value;
	return true;
}

bool json_reader_int64(struct json_reader *reader, int64_t *ret_value, struct error *err)
{
	return read_signed(reader, INT64_MAX, "int64", ret_value, err);
}

bool json_reader_uint16(struct json_reader *reader, uint16_t *ret_value, struct error *err)
{
	uint64_t value = *ret_value;

	if (!read_unsigned(reader, UINT16_MAX, "uint16", &value, err))
		return false;
	*ret_value = (uint16_t)value;
	return true;
}

bool json_reader_uint32(struct json_reader *reader, uint32_t *ret_value, struct error *err)
{
	uint64_t value = *ret_value;

	if (!read_unsigned(reader, UINT32_MAX, "uint32", &value, err))
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

bool json_reader_uint64(struct json_reader *reader, uint64_t *ret_value, struct error *err)
{
	return read_unsigned(reader, UINT64_MAX, "uint64", ret_value, err);
}

/* A number's text with a NUL behind it, as strtod wants it. */
static bool copy_number(const struct json_reader *reader, const jsmntok_t *token, char text[JSON_MAX_NUMBER_BYTES + 1])
{
	struct slice literal = json_token_text(reader, token);

	if (!is_number(reader, token) || literal.length > JSON_MAX_NUMBER_BYTES)
		return false;
	memcpy(text, literal.data, literal.length);
	text[literal.length] = '\0';
	return true;
}

bool json_reader_double(struct json_reader *reader, double *ret_value, struct error *err)
{
	char text[JSON_MAX_NUMBER_BYTES + 1];
	double value;

	if (!copy_number(reader, json_at(reader), text))
		return json_fail_type(reader, "float64", true, err);
	value = strtod(text, NULL);
	if (!isfinite(value))
		return json_fail_type(reader, "float64", true, err);
	*ret_value = value;
	reader->position++;
	return true;
}

bool json_reader_float(struct json_reader *reader, float *ret_value, struct error *err)
{
	char text[JSON_MAX_NUMBER_BYTES + 1];
	float value;

	if (!copy_number(reader, json_at(reader), text))
		return json_fail_type(reader, "float32", true, err);
	value = strtof(text, NULL);
	if (!isfinite(value))
		return json_fail_type(reader, "float32", true, err);
	*ret_value = value;
	reader->position++;
	return true;
}

bool json_reader_whole_number(struct json_reader *reader, uint64_t *ret_value, struct error *err)
{
	static const double TWO_TO_63 = 9223372036854775808.0;
	double number = 0;

	if (!json_reader_double(reader, &number, err))
		return false;
	if (number >= 0 && number < 2 * TWO_TO_63)
		*ret_value = (uint64_t)number;
	else if (number < 0 && number > -TWO_TO_63)
		*ret_value = (uint64_t)(int64_t)number;
	else
		*ret_value = (uint64_t)1 << 63;
	return true;
}

/* Whether the value at hand is one of the names, which has then been read. */
static bool read_number_name(struct json_reader *reader, double *ret_value)
{
	const jsmntok_t *token = json_at(reader);
	struct slice text = json_token_text(reader, token);

	if (token->type != JSMN_STRING)
		return false;
	if (slice_equal_text(text, "NaN"))
		*ret_value = NAN;
	else if (slice_equal_text(text, "Inf"))
		*ret_value = INFINITY;
	else if (slice_equal_text(text, "-Inf"))
		*ret_value = -INFINITY;
	else
		return false;
	reader->position++;
	return true;
}

bool json_reader_double_or_name(struct json_reader *reader, double *ret_value, struct error *err)
{
	return read_number_name(reader, ret_value) || json_reader_double(reader, ret_value, err);
}

bool json_reader_float_or_name(struct json_reader *reader, float *ret_value, struct error *err)
{
	double value;

	if (!read_number_name(reader, &value))
		return json_reader_float(reader, ret_value, err);
	*ret_value = (float)value;
	return true;
}

/* --- formats --- */

/* The text of a quantity, whatever kind of value it is: what isn't one has no quantity's text (protocols 2.3). */
static bool read_quantity(struct json_reader *reader, struct quantity *quantity, struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	struct slice text = json_token_text(reader, token);
	struct error cause;

	if (token->type == JSMN_STRING && json_needs_decoding(reader, token) &&
	    !json_decode_string(reader, token, &text, err))
		return false;
	if (json_is_null(reader, token))
		return json_fail_type(reader, "quantity", false, err);
	if (!quantity_parse(text, quantity, &cause))
		return json_fail_value(reader, err, "%s", error_root(&cause));
	reader->position++;
	return true;
}

bool json_reader_quantity(struct json_reader *reader, uint64_t *ret_bytes, struct error *err)
{
	struct quantity quantity = { 0 };

	if (!read_quantity(reader, &quantity, err))
		return false;
	*ret_bytes = (uint64_t)quantity_value(quantity);
	return true;
}

bool json_reader_milli_cpu(struct json_reader *reader, uint32_t *ret_milli, struct error *err)
{
	struct quantity quantity = { 0 };

	if (!read_quantity(reader, &quantity, err))
		return false;
	*ret_milli = (uint32_t)(uint64_t)quantity_milli_value(quantity);
	return true;
}

bool json_reader_instant(struct json_reader *reader, int64_t *ret_ns, struct error *err)
{
	const jsmntok_t *token = json_at(reader);
	struct slice text = json_token_text(reader, token);
	struct error cause;
	int64_t ns;

	if (token->type != JSMN_STRING)
		return json_fail_type(reader, "time", false, err);
	if (json_needs_decoding(reader, token) && !json_decode_string(reader, token, &text, err))
		return false;
	if (!rfc3339_parse(text, &ns, &cause))
		return json_fail_value(reader, err, "%s", error_root(&cause));
	reader->position++;
	*ret_ns = ns;
	return true;
}
