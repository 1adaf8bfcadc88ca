/*
 * Any head as either side's opening handshake: agreed to only with everything RFC 6455 asks for.
 */
#include "http_parsing.h"
#include "net/websocket_handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char KEY[] = "dGhlIHNhbXBsZSBub25jZQ==";
static const char ACCEPT[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

static void check_request(const struct http_parser *parser)
{
	struct http_fields fields = http_parser_fields(parser);
	char accept[WEBSOCKET_ACCEPT_BYTES];
	struct slice key;
	struct error err;

	if (!websocket_check_request(http_parser_method(parser), http_parser_is_http10(parser), fields, &key, &err)) {
		require(err.code != ERROR_NONE && err.text[0] != '\0');
		return;
	}
	require(slice_equal_text(http_parser_method(parser), "GET") && !http_parser_is_http10(parser));
	require(key.length == WEBSOCKET_KEY_BYTES - 1);
	require(http_fields_have_token(fields, "Upgrade", "websocket"));
	require(http_fields_have_token(fields, "Connection", "upgrade"));
	websocket_make_accept(key, accept);
	require(strlen(accept) == WEBSOCKET_ACCEPT_BYTES - 1);
}

static void check_response(const struct http_parser *parser)
{
	struct http_fields fields = http_parser_fields(parser);
	struct error err;

	if (!websocket_check_response(http_parser_status(parser), fields, KEY, &err)) {
		require(err.code != ERROR_NONE && err.text[0] != '\0');
		return;
	}
	require(http_parser_status(parser) == 101);
	require(slice_equal_text(http_fields_find(fields, "Sec-WebSocket-Accept"), ACCEPT));
}

static void read_head(struct http_parser *parser, struct slice bytes, void (*check)(const struct http_parser *parser))
{
	enum http_parser_event event;
	struct slice body;
	struct error err;

	do
		event = http_parser_next(parser, &bytes, &body, &err);
	while (event == HTTP_PARSER_BODY);
	if (event == HTTP_PARSER_HEAD)
		check(parser);
	http_parser_reset(parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_parser parser;

	http_parser_init_request(&parser);
	read_head(&parser, slice_from(data, size), check_request);
	http_parser_init_response(&parser, false);
	read_head(&parser, slice_from(data, size), check_response);
	return 0;
}
