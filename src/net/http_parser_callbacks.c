/*
 * The callbacks only note what came: http_parser_next has the last word.
 */
#include <string.h>

#include "base/memory.h"
#include "net/http_parser_internal.h"

enum { FIRST_FIELD_CAPACITY = 16 };

static struct http_parser *parser_of(llhttp_t *llhttp)
{
	return llhttp->data;
}

/* The callbacks of spans answer -1 to stop, those of events HPE_USER; both end in HTTP_PARSER_FAILED. */
static int stop(struct http_parser *parser, int limit)
{
	parser->limit_code = limit;
	return -1;
}

static int keep_text(struct http_parser *parser, const char *text, size_t length, size_t *counter)
{
	buffer_append(&parser->texts, text, length);
	if (parser->texts.failed)
		return stop(parser, LIMIT_MEMORY);
	*counter += length;
	return 0;
}

/* llhttp knows RTSP and ICE too. */
static int on_protocol(llhttp_t *llhttp, const char *text, size_t length)
{
	static const char NAME[] = "HTTP";
	struct http_parser *parser = parser_of(llhttp);

	for (size_t i = 0; i < length; i++)
		if (parser->protocol_length >= sizeof NAME - 1 || text[i] != NAME[parser->protocol_length++])
			return stop(parser, LIMIT_PROTOCOL);
	return 0;
}

static int on_url(llhttp_t *llhttp, const char *text, size_t length)
{
	struct http_parser *parser = parser_of(llhttp);

	if (length > HTTP_TARGET_BYTES - parser->target_length)
		return stop(parser, LIMIT_TARGET);
	return keep_text(parser, text, length, &parser->target_length);
}

static bool grow_fields(struct http_parser *parser)
{
	size_t capacity = parser->field_capacity > 0 ? 2 * parser->field_capacity : FIRST_FIELD_CAPACITY;
	struct http_field *fields = memory_resize(parser->fields, capacity * sizeof *fields);

	if (fields == NULL)
		return false;
	parser->fields = fields;
	parser->field_capacity = capacity;
	return true;
}

static int on_header_field(llhttp_t *llhttp, const char *text, size_t length)
{
	struct http_parser *parser = parser_of(llhttp);

	if (!parser->field_open) {
		if (parser->field_count + parser->trailer_count == HTTP_HEADER_COUNT)
			return stop(parser, LIMIT_FIELD_COUNT);
		parser->field_open = true;
		if (http_parser_in_trailers(llhttp)) {
			parser->trailer_count++;
			return 0;
		}
		if (parser->field_count == parser->field_capacity && !grow_fields(parser))
			return stop(parser, LIMIT_MEMORY);
		parser->fields[parser->field_count++] = (struct http_field){ 0 };
	}
	if (http_parser_in_trailers(llhttp))
		return 0;
	return keep_text(parser, text, length, &parser->fields[parser->field_count - 1].name.length);
}

static int on_header_field_complete(llhttp_t *llhttp)
{
	parser_of(llhttp)->field_open = false;
	return 0;
}

static int on_header_value(llhttp_t *llhttp, const char *text, size_t length)
{
	struct http_parser *parser = parser_of(llhttp);

	if (http_parser_in_trailers(llhttp))
		return 0;
	return keep_text(parser, text, length, &parser->fields[parser->field_count - 1].value.length);
}

/* Turns the lengths into slices, now that the texts don't move any more. */
static void place_fields(struct http_parser *parser)
{
	size_t at = parser->target_length;

	for (size_t i = 0; i < parser->field_count; i++) {
		struct http_field *field = &parser->fields[i];
		size_t value_length = field->value.length;

		field->name.data = parser->texts.data + at;
		at += field->name.length;
		field->value = slice_trim(slice_from(parser->texts.data + at, value_length));
		at += value_length;
	}
}

static void forget_head(struct http_parser *parser)
{
	buffer_clear(&parser->texts);
	parser->field_count = 0;
	parser->protocol_length = 0;
}

/* A host and perhaps a port, or nothing; another server in front might take a path or a user in it for something else. */
static bool is_host_value(struct slice value)
{
	for (size_t i = 0; i < value.length; i++)
		if (value.data[i] <= ' ' || value.data[i] >= 0x7f || strchr("/?#@\\", value.data[i]) != NULL)
			return false;
	return true;
}

/* The checks that llhttp leaves to its user; LIMIT_NONE when all is well. */
static int check_head(const struct http_parser *parser)
{
	struct http_fields fields = http_parser_fields(parser);
	size_t hosts = 0;
	size_t codings = 0;

	if (!http_parser_is_our_version(parser))
		return LIMIT_VERSION;
	if (parser->llhttp.type == HTTP_RESPONSE && parser->llhttp.status_code < 100)
		return LIMIT_STATUS;
	for (size_t i = 0; i < fields.count; i++) {
		if (slice_equal_fold(fields.items[i].name, SLICE("Host"))) {
			hosts++;
			if (parser->llhttp.type == HTTP_REQUEST && !is_host_value(fields.items[i].value))
				return LIMIT_HOST_VALUE;
		}
		if (!slice_equal_fold(fields.items[i].name, SLICE("Transfer-Encoding")))
			continue;
		if (http_parser_is_http10(parser))
			return LIMIT_CODING_HTTP10; /* RFC 9112 6.1: such framing is faulty */
		if (!slice_equal_fold(fields.items[i].value, SLICE("chunked")))
			return LIMIT_CODING;
		codings++;
	}
	/* With a tab around the name llhttp takes another view than we do, and what follows would be another message. */
	if (codings > 0 && (parser->llhttp.flags & F_CHUNKED) == 0)
		return LIMIT_CODING;
	if (parser->llhttp.type == HTTP_REQUEST && (hosts > 1 || (hosts == 0 && !http_parser_is_http10(parser))))
		return LIMIT_HOST;
	return LIMIT_NONE;
}

static int on_headers_complete(llhttp_t *llhttp)
{
	struct http_parser *parser = parser_of(llhttp);

	place_fields(parser);

	int limit = check_head(parser);

	if (limit != LIMIT_NONE)
		return stop(parser, limit);

	int status = llhttp->type == HTTP_RESPONSE ? llhttp->status_code : 0;

	if (status >= 100 && status < 200 && status != 101) {
		llhttp->flags |= F_SKIPBODY; /* an interim response: llhttp goes on with the next */
		parser->interim = true;
		forget_head(parser);
		return 0;
	}
	if (parser->head_request)
		llhttp->flags |=
			F_SKIPBODY; /* what answering 1 would do; but here the answer is needed for the pause */

	bool bodyless = (llhttp->flags & F_SKIPBODY) != 0 || status == 101 || status == 204 || status == 304;

	parser->has_length = (llhttp->flags & F_CONTENT_LENGTH) != 0;
	parser->length = llhttp->content_length;
	parser->until_close = !bodyless && llhttp_message_needs_eof(llhttp) != 0;
	parser->chunked = !bodyless && (llhttp->flags & F_CHUNKED) != 0;
	parser->has_body = parser->until_close || parser->chunked || (!bodyless && parser->length > 0);
	parser->keep_alive = llhttp_should_keep_alive(llhttp) != 0;
	parser->head_complete = true;
	parser->event_head = true;
	return HPE_PAUSED;
}

static int on_body(llhttp_t *llhttp, const char *text, size_t length)
{
	struct http_parser *parser = parser_of(llhttp);

	if (parser->piece.length > 0)
		return -1; /* can't be: nothing is fed beyond a chunk's content */
	parser->piece = slice_from(text, length);
	parser->body_bytes += length;
	parser->chunk_left -= length; /* doesn't matter without chunks */
	return 0;
}

static int on_chunk_extension(llhttp_t *llhttp, const char *text, size_t length)
{
	struct http_parser *parser = parser_of(llhttp);

	(void)text;
	if (length > HTTP_CHUNK_EXTENSION_BYTES - parser->extension_bytes)
		return stop(parser, LIMIT_EXTENSION);
	parser->extension_bytes += length;
	return 0;
}

static int on_chunk_header(llhttp_t *llhttp)
{
	struct http_parser *parser = parser_of(llhttp);

	parser->extension_bytes = 0;
	parser->chunk_count++;
	parser->chunk_left = llhttp->content_length;
	return 0;
}

static int on_message_complete(llhttp_t *llhttp)
{
	struct http_parser *parser = parser_of(llhttp);

	if (parser->interim) {
		parser->interim = false;
		return 0;
	}
	parser->event_done = true;
	return HPE_PAUSED;
}

const llhttp_settings_t HTTP_PARSER_SETTINGS = {
	.on_protocol = on_protocol,
	.on_url = on_url,
	.on_header_field = on_header_field,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value = on_header_value,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_chunk_extension_name = on_chunk_extension,
	.on_chunk_extension_value = on_chunk_extension,
	.on_chunk_header = on_chunk_header,
	.on_message_complete = on_message_complete,
};
