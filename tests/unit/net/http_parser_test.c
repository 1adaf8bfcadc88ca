#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "http_vectors.h"
#include "net/http_parser.h"

enum { BODY_LIMIT_BYTES = 1024 * 1024, SHORT_INPUT_BYTES = 400 };

/* What a parser made of some bytes so far, as the vectors write it. */
struct reading {
	struct http_parser parser;
	struct buffer body;
	struct buffer summary;
	bool over;
	bool to_head_request;
};

static int status_of_fault(enum http_parser_fault fault)
{
	static const int STATUSES[] = {
		[HTTP_FAULT_MALFORMED] = 400, [HTTP_FAULT_TARGET_TOO_LONG] = 414, [HTTP_FAULT_HEAD_TOO_LONG] = 431,
		[HTTP_FAULT_METHOD] = 501,    [HTTP_FAULT_CODING] = 501,          [HTTP_FAULT_VERSION] = 505,
		[HTTP_FAULT_MEMORY] = 503,
	};

	return STATUSES[fault];
}

static void begin_line(struct reading *reading)
{
	if (reading->summary.length > 0)
		buffer_append_char(&reading->summary, '\n');
}

static void note_message(struct reading *reading)
{
	struct http_parser *parser = &reading->parser;

	begin_line(reading);
	if (parser->llhttp.type == HTTP_REQUEST) {
		struct slice target = http_parser_target(parser);

		buffer_append_format(&reading->summary, "%.*s ", SLICE_ARGS(http_parser_method(parser)));
		if (target.length > 100)
			buffer_append_format(&reading->summary, "/…%zu", target.length);
		else
			buffer_append_slice(&reading->summary, target);
	} else {
		buffer_append_format(&reading->summary, "%d", http_parser_status(parser));
	}
	buffer_append_format(&reading->summary, " %s \"%.*s\"", http_parser_keep_alive(parser) ? "keep" : "close",
	                     (int)reading->body.length, reading->body.data != NULL ? reading->body.data : "");
	buffer_clear(&reading->body);
}

static void note_failure(struct reading *reading, const struct error *err)
{
	begin_line(reading);
	if (reading->parser.llhttp.type == HTTP_REQUEST)
		buffer_append_format(&reading->summary, "%d", status_of_fault(reading->parser.fault));
	else
		buffer_append_text(&reading->summary, err->code == ERROR_SYNTAX  ? "syntax"
		                                      : err->code == ERROR_LIMIT ? "limit"
		                                                                 : "?");
	assert_string_not_equal(error_root(err), "");
	reading->over = true;
}

static void feed(struct reading *reading, struct slice bytes)
{
	struct slice body;
	struct error err;

	while (!reading->over) {
		switch (http_parser_next(&reading->parser, &bytes, &body, &err)) {
		case HTTP_PARSER_MORE:
			assert_int_equal(bytes.length, 0);
			return;
		case HTTP_PARSER_HEAD:
			break;
		case HTTP_PARSER_BODY:
			assert_true(body.length > 0);
			buffer_append_slice(&reading->body, body);
			break;
		case HTTP_PARSER_DONE:
			note_message(reading);
			reading->over = reading->parser.llhttp.type == HTTP_RESPONSE;
			http_parser_reset(&reading->parser);
			break;
		case HTTP_PARSER_FAILED:
			note_failure(reading, &err);
			break;
		}
	}
}

static void end(struct reading *reading, bool eof)
{
	struct error err;

	if (!reading->over && eof) {
		if (http_parser_finish(&reading->parser, &err)) {
			note_message(reading);
		} else {
			begin_line(reading);
			buffer_append_text(&reading->summary, error_root(&err));
		}
	} else if (!reading->over && reading->parser.begun) {
		begin_line(reading);
		buffer_append_text(&reading->summary, "more");
	}
	buffer_append_char(&reading->summary, '\0');
	assert_false(reading->body.failed || reading->summary.failed);
}

/* Reads the case's bytes in pieces: `first` bytes, then `step` at a time. */
static void read_in_pieces(const struct http_vector *vector, bool requests, size_t first, size_t step)
{
	struct reading reading = { 0 };
	struct slice rest = buffer_slice(&vector->input);

	buffer_init(&reading.body, BODY_LIMIT_BYTES);
	buffer_init(&reading.summary, BODY_LIMIT_BYTES);
	if (requests)
		http_parser_init_request(&reading.parser);
	else
		http_parser_init_response(&reading.parser, false);
	for (size_t length = first; rest.length > 0; length = step) {
		if (length > rest.length)
			length = rest.length;
		feed(&reading, slice_from(rest.data, length));
		rest = slice_from_offset(rest, length);
	}
	end(&reading, vector->eof);
	if (strcmp(reading.summary.data, vector->expected) != 0)
		fail_msg("%s (%zu, then %zu bytes at a time):\n%s\ninstead of\n%s", vector->name, first, step,
		         reading.summary.data, vector->expected);
	http_parser_reset(&reading.parser);
	buffer_destroy(&reading.body);
	buffer_destroy(&reading.summary);
}

static void check_vector(const struct http_vector *vector, bool requests)
{
	size_t length = vector->input.length;

	read_in_pieces(vector, requests, length + 1, length + 1);
	read_in_pieces(vector, requests, 1, 1);
	read_in_pieces(vector, requests, 7, 7);
	for (size_t cut = 1; length <= SHORT_INPUT_BYTES && cut < length; cut++)
		read_in_pieces(vector, requests, cut, length);
}

static void check_request_vector(const struct http_vector *vector)
{
	check_vector(vector, true);
}

static void check_response_vector(const struct http_vector *vector)
{
	check_vector(vector, false);
}

static void requests_are_read_or_refused_however_they_are_cut(void **state)
{
	(void)state;
	assert_true(http_vectors_walk("http_requests.txt", check_request_vector) > 90);
}

static void responses_are_read_or_refused_however_they_are_cut(void **state)
{
	(void)state;
	assert_true(http_vectors_walk("http_responses.txt", check_response_vector) > 40);
}

static void fields_come_without_the_blanks_around_them(void **state)
{
	(void)state;
	struct http_parser parser;
	struct slice bytes = SLICE("GET / HTTP/1.1\r\nHost: a\r\nX-A:   b c \t \r\nX-Empty:\r\nx-a:second\r\n\r\n");
	struct slice body;
	struct error err;

	http_parser_init_request(&parser);
	assert_int_equal(http_parser_next(&parser, &bytes, &body, &err), HTTP_PARSER_HEAD);

	struct http_fields fields = http_parser_fields(&parser);

	assert_int_equal(fields.count, 4);
	assert_true(slice_equal(http_fields_find(fields, "x-A"), SLICE("b c")));
	assert_true(slice_equal(fields.items[3].value, SLICE("second")));
	assert_int_equal(http_fields_find(fields, "X-Empty").length, 0);
	assert_non_null(http_fields_find(fields, "X-Empty").data);
	assert_null(http_fields_find(fields, "X-None").data);
	http_parser_reset(&parser);
}

static void a_response_to_head_has_no_body_whatever_it_says(void **state)
{
	(void)state;
	struct http_parser parser;
	struct slice bytes = SLICE(
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	struct slice body;
	struct error err;
	uint64_t length = 0;

	http_parser_init_response(&parser, true);
	assert_int_equal(http_parser_next(&parser, &bytes, &body, &err), HTTP_PARSER_HEAD);
	assert_true(http_parser_length(&parser, &length));
	assert_int_equal(length, 5);
	assert_false(http_parser_has_body(&parser));
	assert_true(http_parser_keep_alive(&parser));
	assert_int_equal(http_parser_next(&parser, &bytes, &body, &err), HTTP_PARSER_DONE);
	http_parser_reset(&parser);
	assert_int_equal(http_parser_next(&parser, &bytes, &body, &err), HTTP_PARSER_HEAD);
	assert_false(http_parser_has_body(&parser));
	assert_int_equal(http_parser_next(&parser, &bytes, &body, &err), HTTP_PARSER_DONE);
	assert_int_equal(bytes.length, 0);
	http_parser_reset(&parser);
}

static void what_follows_a_message_is_left_to_the_caller(void **state)
{
	(void)state;
	struct http_parser parser;
	struct slice bytes = SLICE(
		"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi");
	struct slice body;
	struct error err;

	http_parser_init_response(&parser, false);
	assert_int_equal(http_parser_next(&parser, &bytes, &body, &err), HTTP_PARSER_HEAD);
	assert_int_equal(http_parser_status(&parser), 101);
	assert_int_equal(http_parser_next(&parser, &bytes, &body, &err), HTTP_PARSER_DONE);
	assert_true(slice_equal(bytes, SLICE("\x81\x02hi")));
	http_parser_reset(&parser);
}

static void errors_name_what_is_wrong(void **state)
{
	(void)state;
	struct http_parser parser;
	struct slice bytes = SLICE("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n");
	struct slice body;
	struct error err;

	http_parser_init_response(&parser, false);
	assert_int_equal(http_parser_next(&parser, &bytes, &body, &err), HTTP_PARSER_FAILED);
	assert_string_equal(err.text,
	                    "malformed HTTP response: Transfer-Encoding can't be present with Content-Length");
	assert_int_equal(http_parser_next(&parser, &bytes, &body, &err), HTTP_PARSER_FAILED);
	http_parser_reset(&parser);

	bytes = SLICE("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n");
	assert_int_equal(http_parser_next(&parser, &bytes, &body, &err), HTTP_PARSER_FAILED);
	assert_string_equal(err.text, "malformed HTTP response: Transfer-Encoding is not chunked alone");
	http_parser_reset(&parser);
}

static void every_failing_allocation_is_survived(void **state)
{
	(void)state;
	unsigned long failures = 0;

	for (unsigned long n = 1;; n++) {
		struct http_parser parser;
		struct slice bytes =
			SLICE("POST /a/long/path/so/that/the/texts/have/to/grow HTTP/1.1\r\nHost: a\r\n"
		              "A: 1\r\nB: 2\r\nC: 3\r\n"
		              "D: 4\r\nE: 5\r\nF: 6\r\nG: 7\r\nH: 8\r\nI: 9\r\nJ: 10\r\nK: 11\r\nL: 12\r\nM: 13\r\n"
		              "N: 14\r\nO: 15\r\nP: 16\r\nQ: 17\r\nContent-Length: 3\r\n"
		              "R: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n"
		              "T: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n"
		              "S: 0123456789012345678901234567890123456789012345678901234567890123456789\r\n\r\nabc");
		struct slice body;
		struct error err;

		memory_fail_at(n);
		http_parser_init_request(&parser);

		enum http_parser_event event = http_parser_next(&parser, &bytes, &body, &err);

		memory_fail_at(0);
		if (event == HTTP_PARSER_HEAD) {
			http_parser_reset(&parser);
			break;
		}
		assert_int_equal(event, HTTP_PARSER_FAILED);
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		assert_int_equal(parser.fault, HTTP_FAULT_MEMORY);
		failures++;
		http_parser_reset(&parser);
	}
	assert_true(failures >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_read_or_refused_however_they_are_cut),
		cmocka_unit_test(responses_are_read_or_refused_however_they_are_cut),
		cmocka_unit_test(fields_come_without_the_blanks_around_them),
		cmocka_unit_test(a_response_to_head_has_no_body_whatever_it_says),
		cmocka_unit_test(what_follows_a_message_is_left_to_the_caller),
		cmocka_unit_test(errors_name_what_is_wrong),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
