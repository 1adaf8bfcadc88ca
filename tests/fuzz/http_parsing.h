/*
 * What the fuzz targets of HTTP parsing share: a parser is fed the same bytes in two ways and must make the same of
 * them, whatever it makes.
 */
#ifndef BALLAST_TESTS_FUZZ_HTTP_PARSING_H
#define BALLAST_TESTS_FUZZ_HTTP_PARSING_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "net/http_parser.h"

static inline void require(bool condition)
{
	if (!condition)
		abort();
}

static inline void note_fields(struct buffer *log, struct http_fields fields)
{
	require(fields.count <= HTTP_HEADER_COUNT);
	for (size_t i = 0; i < fields.count; i++) {
		require(http_is_token(fields.items[i].name));
		require(http_is_field_value(fields.items[i].value)); /* so that it can be sent on */
		buffer_append_slice(log, fields.items[i].name);
		buffer_append_char(log, ':');
		buffer_append_slice(log, fields.items[i].value);
		buffer_append_char(log, '\n');
	}
}

static inline void note_head(struct buffer *log, const struct http_parser *parser)
{
	uint64_t length = 0;

	require(parser->head_bytes <= HTTP_HEADER_BYTES);
	require(http_parser_target(parser).length <= HTTP_TARGET_BYTES);
	buffer_append_format(log, "head %d %d %d %d %d ", http_parser_status(parser), http_parser_is_http10(parser),
	                     http_parser_has_body(parser), http_parser_keep_alive(parser),
	                     http_parser_length(parser, &length));
	buffer_append_format(log, "%llu ", (unsigned long long)length);
	buffer_append_slice(log, http_parser_method(parser));
	buffer_append_char(log, ' ');
	buffer_append_slice(log, http_parser_target(parser));
	buffer_append_char(log, '\n');
	note_fields(log, http_parser_fields(parser));
}

/* Feeds the bytes, `step` at a time. Messages follow one another if `many`. */
static inline void parse_logged(struct http_parser *parser, struct slice bytes, size_t step, bool many,
                                struct buffer *log)
{
	struct slice body;
	struct error err;
	bool over = false;

	while (bytes.length > 0 && !over) {
		struct slice piece = slice_from(bytes.data, bytes.length < step ? bytes.length : step);
		enum http_parser_event event;

		bytes = slice_from_offset(bytes, piece.length);
		do {
			size_t before = piece.length;

			event = http_parser_next(parser, &piece, &body, &err);
			require(piece.length <= before);
			if (event == HTTP_PARSER_HEAD) {
				note_head(log, parser);
			} else if (event == HTTP_PARSER_BODY) {
				require(body.length > 0);
				buffer_append_slice(log, body);
			} else if (event == HTTP_PARSER_DONE) {
				buffer_append_text(log, "done\n");
				http_parser_reset(parser);
				over = !many;
			} else if (event == HTTP_PARSER_FAILED) {
				/* With two things wrong, the cut may decide which is seen first. */
				require(err.code == ERROR_SYNTAX || err.code == ERROR_LIMIT);
				buffer_append_text(log, "failed\n");
				over = true;
			}
		} while (event != HTTP_PARSER_MORE && !over);
	}
	if (!over)
		buffer_append_format(log, "end %d %s\n", http_parser_finish(parser, &err),
		                     parser->until_close ? "" : err.text);
	http_parser_reset(parser);
}

static inline void compare_cuts(const uint8_t *data, size_t size, void (*init)(struct http_parser *parser), bool many)
{
	static const size_t STEPS[] = { SIZE_MAX, 1, 7 };
	struct buffer logs[3];

	for (size_t i = 0; i < 3; i++) {
		struct http_parser parser;

		buffer_init(&logs[i], SIZE_MAX);
		init(&parser);
		parse_logged(&parser, slice_from(data, size), STEPS[i], many, &logs[i]);
		require(slice_equal(buffer_slice(&logs[i]), buffer_slice(&logs[0])));
	}
	for (size_t i = 0; i < 3; i++)
		buffer_destroy(&logs[i]);
}

#endif
