#include "net/http_message.h"

#include <string.h>

static bool is_alphanumeric(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- fields ---- */

struct slice http_fields_find(struct http_fields fields, const char *name)
{
	for (size_t i = 0; i < fields.count; i++)
		if (slice_equal_fold(fields.items[i].name, slice_of(name)))
			return fields.items[i].value.data != NULL ? fields.items[i].value : SLICE("");
	return (struct slice){ 0 };
}

bool http_fields_have_token(struct http_fields fields, const char *name, const char *token)
{
	for (size_t i = 0; i < fields.count; i++) {
		struct slice rest = fields.items[i].value;

		if (!slice_equal_fold(fields.items[i].name, slice_of(name)))
			continue;
		while (rest.length > 0)
			if (slice_equal_fold(slice_trim(slice_take_until(&rest, ',')), slice_of(token)))
				return true;
	}
	return false;
}

bool http_is_token(struct slice text)
{
	for (size_t i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (!is_alphanumeric(c) && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
			return false;
	}
	return text.length > 0;
}

bool http_is_field_value(struct slice text)
{
	for (size_t i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool http_is_target(struct slice text)
{
	if (slice_equal_text(text, "*"))
		return true;
	for (size_t i = 0; i < text.length; i++)
		if (text.data[i] <= ' ' || text.data[i] >= 0x7f || text.data[i] == '#')
			return false;
	return text.length > 0 && text.data[0] == '/';
}

bool http_is_host(const char *text)
{
	for (const char *c = text; *c != '\0'; c++)
		if (*c <= ' ' || *c >= 0x7f || strchr("/?#@[]\\", *c) != NULL)
			return false;
	return text[0] != '\0';
}

bool http_fields_check(struct http_fields fields, struct error *err)
{
	for (size_t i = 0; i < fields.count; i++) {
		if (!http_is_token(fields.items[i].name))
			return error_set(err, ERROR_SYNTAX,
			                 "a header field's name is empty or has characters that names can't have");
		if (!http_is_field_value(fields.items[i].value))
			return error_set(err, ERROR_SYNTAX, "header field %.*s has a control character in its value",
			                 SLICE_ARGS(fields.items[i].name));
	}
	return true;
}

void http_append_fields(struct buffer *buffer, struct http_fields fields)
{
	for (size_t i = 0; i < fields.count; i++) {
		buffer_append_slice(buffer, fields.items[i].name);
		buffer_append_text(buffer, ": ");
		buffer_append_slice(buffer, fields.items[i].value);
		buffer_append_text(buffer, "\r\n");
	}
}

/* ---- status ---- */

const char *http_status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} TEXTS[] = {
		{ 100, "Continue" },
		{ 101, "Switching Protocols" },
		{ 102, "Processing" },
		{ 103, "Early Hints" },
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 203, "Non-Authoritative Information" },
		{ 204, "No Content" },
		{ 205, "Reset Content" },
		{ 206, "Partial Content" },
		{ 300, "Multiple Choices" },
		{ 301, "Moved Permanently" },
		{ 302, "Found" },
		{ 303, "See Other" },
		{ 304, "Not Modified" },
		{ 307, "Temporary Redirect" },
		{ 308, "Permanent Redirect" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 402, "Payment Required" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 410, "Gone" },
		{ 411, "Length Required" },
		{ 412, "Precondition Failed" },
		{ 413, "Request Entity Too Large" },
		{ 414, "Request URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 417, "Expectation Failed" },
		{ 421, "Misdirected Request" },
		{ 422, "Unprocessable Entity" },
		{ 426, "Upgrade Required" },
		{ 428, "Precondition Required" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++)
		if (TEXTS[i].status == status)
			return TEXTS[i].text;
	return "Unknown";
}

/* ---- escapes ---- */

void http_append_escaped(struct buffer *buffer, struct slice text)
{
	static const char DIGITS[] = "0123456789ABCDEF";

	for (size_t i = 0; i < text.length; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (is_alphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~') {
			buffer_append_char(buffer, (char)c);
			continue;
		}

		char escape[3] = { '%', DIGITS[c >> 4], DIGITS[c & 15] };

		buffer_append(buffer, escape, sizeof escape);
	}
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool http_unescape(struct slice text, bool plus_is_space, struct buffer *out)
{
	for (size_t i = 0; i < text.length; i++) {
		char c = text.data[i];

		if (c == '%') {
			int high = text.length - i > 2 ? hex_value(text.data[i + 1]) : -1;
			int low = text.length - i > 2 ? hex_value(text.data[i + 2]) : -1;

			if (high < 0 || low < 0)
				return false;
			c = (char)(16 * high + low);
			i += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		buffer_append_char(out, c);
	}
	return true;
}

struct slice http_query_find(struct slice query, const char *key)
{
	while (query.length > 0) {
		struct slice value = slice_take_until(&query, '&');
		struct slice name = slice_take_until(&value, '=');

		if (slice_equal_text(name, key))
			return value.data != NULL ? value : SLICE("");
	}
	return (struct slice){ 0 };
}
