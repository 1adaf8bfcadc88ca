/*
 * Any bytes as a chunked body, of a request and of a response: both parsers come to the same content and verdict,
 * however the bytes are cut, and another message never begins inside what was refused.
 */
#include "http_parsing.h"

enum { BODY_BYTES = 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the body is, "done" or "failed" behind it; or "more". The rest stays unread. */
static void read_body(struct http_parser *parser, const char *head, struct slice rest, size_t step, struct buffer *out)
{
	struct slice piece = slice_of(head);
	enum http_parser_event event;
	struct slice body;
	struct error err;

	for (;;) {
		event = http_parser_next(parser, &piece, &body, &err);
		if (event == HTTP_PARSER_BODY) {
			buffer_append_slice(out, body);
		} else if (event == HTTP_PARSER_MORE && rest.length > 0) {
			piece = slice_from(rest.data, rest.length < step ? rest.length : step);
			rest = slice_from_offset(rest, piece.length);
		} else if (event != HTTP_PARSER_HEAD) {
			break;
		}
	}
	require(out->length <= BODY_BYTES);
	buffer_append_text(out, event == HTTP_PARSER_DONE ? "done" : event == HTTP_PARSER_FAILED ? "failed" : "more");
	if (event == HTTP_PARSER_DONE) /* what is left belongs to the next message */
		buffer_append_format(out, "%zu", piece.length + rest.length);
	http_parser_reset(parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t STEPS[] = { SIZE_MAX, 1, 5 };
	struct slice bytes = slice_from(data, size);
	struct buffer outs[6];

	if (size > BODY_BYTES)
		return 0;
	for (size_t i = 0; i < 6; i++) {
		struct http_parser parser;

		buffer_init(&outs[i], SIZE_MAX);
		if (i < 3)
			http_parser_init_request(&parser);
		else
			http_parser_init_response(&parser, false);
		read_body(&parser,
		          i < 3 ? "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		                : "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		          bytes, STEPS[i % 3], &outs[i]);
		require(slice_equal(buffer_slice(&outs[i]), buffer_slice(&outs[0])));
	}
	for (size_t i = 0; i < 6; i++)
		buffer_destroy(&outs[i]);
	return 0;
}
