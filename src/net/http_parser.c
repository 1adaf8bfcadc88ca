/*
 * llhttp is a push parser with callbacks; what it is fed here stops at each event: its callbacks note what came and
 * pause it, and http_parser_next hands the note to its caller. So no caller ever runs inside llhttp, and may drop the
 * parser at any event.
 *
 * llhttp knows a fixed set of methods and fails in the middle of others. To tell "no such method" (501) from "not HTTP
 * at all" (400) whatever way the bytes are cut, the method is read here first and then fed as one piece.
 */
#include "net/http_parser.h"

#include <string.h>

#include "base/memory.h"

enum {
	FIRST_FIELD_CAPACITY = 16,
	LEADING_BYTES = 4,            /* empty lines before a request, RFC 9112 2.2 */
	FRAMING_BYTES_PER_CHUNK = 16, /* size line and line ends of a chunk, generously */
	FRAMING_BYTES_PER_BYTE = 2,
};

/* Our own checks; they index LIMITS. */
enum {
	LIMIT_NONE,
	LIMIT_MEMORY,
	LIMIT_HEAD,
	LIMIT_TARGET,
	LIMIT_FIELD_COUNT,
	LIMIT_EXTENSION,
	LIMIT_FRAMING,
	LIMIT_VERSION,
	LIMIT_CODING,
	LIMIT_CODING_HTTP10,
	LIMIT_HOST,
	LIMIT_HOST_VALUE,
	LIMIT_METHOD,
	LIMIT_START,
	LIMIT_BLANKS,
	LIMIT_PROTOCOL,
	LIMIT_STATUS,
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

static struct http_parser *parser_of(llhttp_t *llhttp)
{
	return llhttp->data;
}

/* ---- what llhttp calls ---- */

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

/* Trailers are counted but not kept: nobody here may act on fields that come after the body. */
static bool is_trailer(const llhttp_t *llhttp)
{
	return (llhttp->flags & F_TRAILING) != 0;
}

static int on_header_field(llhttp_t *llhttp, const char *text, size_t length)
{
	struct http_parser *parser = parser_of(llhttp);

	if (!parser->field_open) {
		if (parser->field_count + parser->trailer_count == HTTP_HEADER_COUNT)
			return stop(parser, LIMIT_FIELD_COUNT);
		parser->field_open = true;
		if (is_trailer(llhttp)) {
			parser->trailer_count++;
			return 0;
		}
		if (parser->field_count == parser->field_capacity && !grow_fields(parser))
			return stop(parser, LIMIT_MEMORY);
		parser->fields[parser->field_count++] = (struct http_field){ 0 };
	}
	if (is_trailer(llhttp))
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

	if (is_trailer(llhttp))
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

static bool is_our_version(const struct http_parser *parser)
{
	return parser->llhttp.http_major == 1 && parser->llhttp.http_minor <= 1;
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

	if (!is_our_version(parser))
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

static const llhttp_settings_t SETTINGS = {
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

/* ---- life ---- */

static void init(struct http_parser *parser, llhttp_type_t type)
{
	*parser = (struct http_parser){ 0 };
	buffer_init_secret(&parser->texts, HTTP_HEADER_BYTES);
	llhttp_init(&parser->llhttp, type, &SETTINGS);
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
		bool version = llhttp_get_errno(&parser->llhttp) == HPE_INVALID_VERSION && !is_our_version(parser);

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

	if (is_trailer(&parser->llhttp))
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
