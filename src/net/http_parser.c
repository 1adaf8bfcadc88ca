/*
 * llhttp is a push parser with callbacks; what it is fed here stops at each event: its callbacks (in
 * http_parser_callbacks.c) note what came and pause it, and http_parser_next hands the note to its caller. So no caller
 * ever runs inside llhttp, and may drop the parser at any event.
 *
 * llhttp knows a fixed set of methods and fails in the middle of others. To tell "no such method" (501) from "not HTTP
 * at all" (400) whatever way the bytes are cut, the method is read here first and then fed as one piece.
 */
#include "net/http_parser.h"

#include <string.h>

#include "base/memory.h"
#include "net/http_parser_internal.h"

enum {
	LEADING_BYTES = 4,            /* empty lines before a request, RFC 9112 2.2 */
	FRAMING_BYTES_PER_CHUNK = 16, /* size line and line ends of a chunk, generously */
	FRAMING_BYTES_PER_BYTE = 2,
};

static const struct {
	enum error_code code;
	enum http_parser_fault fault;
	const char *text;
	int number; /* 0: the text is all */
	const char *unit;
} LIMITS[] = {
	[LIMIT_MEMORY] = { ERROR_NO_MEMORY, HTTP_FAULT_MEMORY, "no memory for the headers", 0, "" },
	[LIMIT_HEAD] = { ERROR_LIMIT, HTTP_FAULT_HEAD_TOO_LONG, "headers are over", HTTP_HEADER_BYTES, "bytes" },
	[LIMIT_TARGET] = { ERROR_LIMIT, HTTP_FAULT_TARGET_TOO_LONG, "target is over", HTTP_TARGET_BYTES, "bytes" },
	[LIMIT_FIELD_COUNT] = { ERROR_LIMIT, HTTP_FAULT_HEAD_TOO_LONG, "more than", HTTP_HEADER_COUNT,
	                        "header fields" },
	[LIMIT_EXTENSION] = { ERROR_LIMIT, HTTP_FAULT_MALFORMED, "chunk extension is over", HTTP_CHUNK_EXTENSION_BYTES,
	                      "bytes" },
	[LIMIT_FRAMING] = { ERROR_LIMIT, HTTP_FAULT_MALFORMED, "chunk sizes, extensions and trailers outweigh the body",
	                    0, "" },
	[LIMIT_VERSION] = { ERROR_SYNTAX, HTTP_FAULT_VERSION, "version is neither 1.0 nor 1.1", 0, "" },
	[LIMIT_CODING] = { ERROR_SYNTAX, HTTP_FAULT_CODING, "Transfer-Encoding is not chunked alone", 0, "" },
	[LIMIT_CODING_HTTP10] = { ERROR_SYNTAX, HTTP_FAULT_MALFORMED, "Transfer-Encoding in HTTP/1.0", 0, "" },
	[LIMIT_HOST_VALUE] = { ERROR_SYNTAX, HTTP_FAULT_MALFORMED, "the Host header field is no host", 0, "" },
	[LIMIT_HOST] = { ERROR_SYNTAX, HTTP_FAULT_MALFORMED, "not exactly one Host header field", 0, "" },
	[LIMIT_METHOD] = { ERROR_SYNTAX, HTTP_FAULT_METHOD, "method is not supported", 0, "" },
	[LIMIT_START] = { ERROR_SYNTAX, HTTP_FAULT_MALFORMED, "does not begin with a method", 0, "" },
	[LIMIT_BLANKS] = { ERROR_SYNTAX, HTTP_FAULT_MALFORMED, "more than one blank between method and target", 0, "" },
	[LIMIT_PROTOCOL] = { ERROR_SYNTAX, HTTP_FAULT_MALFORMED, "protocol is not HTTP", 0, "" },
	[LIMIT_STATUS] = { ERROR_SYNTAX, HTTP_FAULT_MALFORMED, "status is under 100", 0, "" },
};

/* ---- life ---- */

static void init(struct http_parser *parser, llhttp_type_t type)
{
	*parser = (struct http_parser){ 0 };
	buffer_init_secret(&parser->texts, HTTP_HEADER_BYTES);
	llhttp_init(&parser->llhttp, type, &HTTP_PARSER_SETTINGS);
	parser->llhttp.data = parser;
}

void http_parser_init_request(struct http_parser *parser)
{
	init(parser, HTTP_REQUEST);
}

void http_parser_init_response(struct http_parser *parser, bool to_head_request)
{
	init(parser, HTTP_RESPONSE);
	parser->head_request = to_head_request;
}

void http_parser_reset(struct http_parser *parser)
{
	bool head_request = parser->head_request;

	buffer_destroy(&parser->texts);
	memory_release(parser->fields);
	init(parser, parser->llhttp.type);
	parser->head_request = head_request;
}

/* ---- reading ---- */

static enum http_parser_event fail(struct http_parser *parser, struct error *err)
{
	int limit = parser->limit_code;

	parser->failed = true;
	if (limit == LIMIT_NONE) {
		const char *reason = llhttp_get_error_reason(&parser->llhttp);
		bool version =
			llhttp_get_errno(&parser->llhttp) == HPE_INVALID_VERSION && !http_parser_is_our_version(parser);

		parser->fault = version ? HTTP_FAULT_VERSION : HTTP_FAULT_MALFORMED;
		error_set(err, ERROR_SYNTAX, "%s", reason != NULL ? reason : "unknown fault");
	} else {
		parser->fault = LIMITS[limit].fault;
		if (LIMITS[limit].number > 0)
			error_set(err, LIMITS[limit].code, "%s %d %s", LIMITS[limit].text, LIMITS[limit].number,
			          LIMITS[limit].unit);
		else
			error_set(err, LIMITS[limit].code, "%s", LIMITS[limit].text);
	}
	error_wrap(err, "%sHTTP %s", err->code == ERROR_SYNTAX ? "malformed " : "",
	           parser->llhttp.type == HTTP_REQUEST ? "request" : "response");
	return HTTP_PARSER_FAILED;
}

static enum http_parser_event fail_limit(struct http_parser *parser, int limit, struct error *err)
{
	parser->limit_code = limit;
	return fail(parser, err);
}

static bool is_supported_method(struct slice method)
{
	static const char *const METHODS[] = {
#define METHOD_TEXT(number, name, text) #text,
		HTTP_METHOD_MAP(METHOD_TEXT)
#undef METHOD_TEXT
	};

	for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0]; i++)
		if (slice_equal_text(method, METHODS[i]))
			return !slice_equal(method, SLICE("CONNECT")); /* asks for a tunnel */
	return false;
}

/* Reads a request's method and the blank behind it. */
static int read_method(struct http_parser *parser, struct slice *bytes)
{
	while (bytes->length > 0 && !parser->method_known) {
		char c = bytes->data[0];

		if (c == ' ' && parser->method_length > 0) {
			struct slice method = slice_from(parser->method, parser->method_length);

			if (!is_supported_method(method))
				return LIMIT_METHOD;
			llhttp_execute(&parser->llhttp, method.data, method.length);
			llhttp_execute(&parser->llhttp, " ", 1);
			parser->method_known = true;
			*bytes = slice_from_offset(*bytes, 1);
			parser->head_bytes++;
			return LIMIT_NONE;
		}
		if (parser->method_length == 0 && parser->head_bytes < LEADING_BYTES &&
		    c == "\r\n"[parser->head_bytes % 2]) {
			/* an empty line before the request */
		} else if (!http_is_token(slice_from(&c, 1)) ||
		           (parser->method_length == 0 && parser->head_bytes % 2 == 1)) {
			return LIMIT_START;
		} else if (parser->method_length == sizeof parser->method) {
			return LIMIT_METHOD;
		} else {
			parser->method[parser->method_length++] = c;
		}
		parser->head_bytes++;
		*bytes = slice_from_offset(*bytes, 1);
	}
	return LIMIT_NONE;
}

/*
 * Whether sizes, extensions and trailers stay within what honest chunks need: else a peer could keep us busy with no
 * content at all.
 */
static bool framing_is_fair(const struct http_parser *parser)
{
	uint64_t fair = HTTP_CHUNK_EXTENSION_BYTES + FRAMING_BYTES_PER_CHUNK * parser->chunk_count +
	                FRAMING_BYTES_PER_BYTE * parser->body_bytes;

	if (http_parser_in_trailers(&parser->llhttp))
		fair += HTTP_HEADER_BYTES;
	return parser->framing_bytes <= fair;
}

/*
 * How much of the bytes llhttp gets at once: of the head, what is allowed; of chunks, their content in one piece but
 * what is around it byte by byte, so that framing_is_fair comes to the same verdict however the bytes were cut.
 */
static size_t next_length(const struct http_parser *parser, size_t length)
{
	size_t most = SIZE_MAX;

	if (!parser->head_complete)
		most = HTTP_HEADER_BYTES - parser->head_bytes;
	else if (parser->chunked)
		most = parser->chunk_left > 0 ? (size_t)parser->chunk_left : 1;
	return length < most ? length : most;
}

/*
 * Runs llhttp over the front of *bytes until something came or all is taken. False: failed, limit_code or llhttp says
 * why.
 */
static bool advance(struct http_parser *parser, struct slice *bytes)
{
	bool in_head = !parser->head_complete;
	size_t length = next_length(parser, bytes->length);

	if (parser->llhttp.type == HTTP_REQUEST && parser->target_length == 0 && bytes->data[0] == ' ') {
		parser->limit_code = LIMIT_BLANKS;
		return false;
	}
	if (length == 0) {
		parser->limit_code = LIMIT_HEAD;
		return false;
	}

	llhttp_errno_t result = llhttp_execute(&parser->llhttp, bytes->data, length);

	if (result == HPE_PAUSED || result == HPE_PAUSED_UPGRADE) {
		length = (size_t)(llhttp_get_error_pos(&parser->llhttp) - bytes->data);
		llhttp_resume(&parser->llhttp);
	} else if (result != HPE_OK) {
		return false;
	}
	*bytes = slice_from_offset(*bytes, length);
	if (in_head) {
		parser->head_bytes += length;
		return true;
	}
	parser->framing_bytes += length - parser->piece.length;
	if (!framing_is_fair(parser)) {
		parser->limit_code = LIMIT_FRAMING;
		return false;
	}
	return true;
}

enum http_parser_event http_parser_next(struct http_parser *parser, struct slice *bytes, struct slice *ret_body,
                                        struct error *err)
{
	if (parser->failed)
		return fail(parser, err);
	if (bytes->length > 0)
		parser->begun = true;
	if (parser->llhttp.type == HTTP_REQUEST && !parser->method_known) {
		int limit = read_method(parser, bytes);

		if (limit != LIMIT_NONE)
			return fail_limit(parser, limit, err);
	}
	for (;;) {
		if (parser->event_head) {
			parser->event_head = false;
			return HTTP_PARSER_HEAD;
		}
		if (parser->piece.length > 0) {
			*ret_body = parser->piece;
			parser->piece = (struct slice){ 0 };
			return HTTP_PARSER_BODY;
		}
		if (parser->event_done || (parser->head_complete && !parser->has_body))
			return HTTP_PARSER_DONE;
		if (bytes->length == 0)
			return HTTP_PARSER_MORE;
		if (!advance(parser, bytes))
			return fail(parser, err);
	}
}

bool http_parser_finish(struct http_parser *parser, struct error *err)
{
	if (parser->until_close && !parser->failed)
		return true;
	return error_set(err, ERROR_CLOSED, parser->begun ? "unexpected EOF" : "EOF");
}

/* ---- the message ---- */

struct slice http_parser_method(const struct http_parser *parser)
{
	return slice_from(parser->method, parser->method_length);
}

struct slice http_parser_target(const struct http_parser *parser)
{
	return slice_from(parser->texts.data, parser->target_length);
}

struct http_fields http_parser_fields(const struct http_parser *parser)
{
	return (struct http_fields){ .items = parser->fields, .count = parser->field_count };
}

int http_parser_status(const struct http_parser *parser)
{
	return parser->llhttp.status_code;
}

bool http_parser_is_http10(const struct http_parser *parser)
{
	return parser->llhttp.http_minor == 0;
}

bool http_parser_has_body(const struct http_parser *parser)
{
	return parser->has_body;
}

bool http_parser_length(const struct http_parser *parser, uint64_t *ret_length)
{
	if (!parser->has_length)
		return false;
	*ret_length = parser->length;
	return true;
}

bool http_parser_keep_alive(const struct http_parser *parser)
{
	return parser->keep_alive;
}
