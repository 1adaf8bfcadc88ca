#include "http_site.h"

#include <stdio.h>

#include "http_vectors.h"
#include "test_clock.h"

/* ---- vectors ---- */

/* The answers a peer got, in the vectors' words. */
static void summarise(const struct peer *peer, struct buffer *summary)
{
	struct http_parser parser;
	struct buffer body;
	struct slice bytes = buffer_slice(&peer->received);
	struct slice piece;
	struct error err;

	buffer_init(&body, PEER_RECEIVED_BYTES);
	http_parser_init_response(&parser, false);
	for (;;) {
		enum http_parser_event event = http_parser_next(&parser, &bytes, &piece, &err);

		if (event == HTTP_PARSER_MORE)
			break;
		if (event == HTTP_PARSER_FAILED)
			fail_msg("the server's answer: %s", err.text);
		if (event == HTTP_PARSER_BODY)
			buffer_append_slice(&body, piece);
		if (event != HTTP_PARSER_DONE)
			continue;
		if (summary->length > 0)
			buffer_append_char(summary, '\n');
		if (http_parser_status(&parser) == 200) {
			struct slice rest = buffer_slice(&body);
			struct slice method = slice_take_until(&rest, ' ');
			struct slice target = slice_take_until(&rest, ' ');

			buffer_append_format(summary, "%.*s ", SLICE_ARGS(method));
			if (target.length > 100)
				buffer_append_format(summary, "/…%zu", target.length);
			else
				buffer_append_slice(summary, target);
			buffer_append_format(summary, " %s ", http_parser_keep_alive(&parser) ? "keep" : "close");
			buffer_append_slice(summary, rest);
		} else {
			assert_false(http_parser_keep_alive(&parser));
			buffer_append_format(summary, "%d", http_parser_status(&parser));
		}
		buffer_clear(&body);
		http_parser_reset(&parser);
	}
	buffer_append_char(summary, '\0');
	http_parser_reset(&parser);
	buffer_destroy(&body);
}

static struct site *vector_site;

/* What the server makes of the case's bytes: as the parser, and it closes after a refusal or when asked to. */
static void check_vector(const struct http_vector *vector)
{
	struct site *site = vector_site;
	struct peer peer;
	struct buffer summary;
	const char *last_line =
		strrchr(vector->expected, '\n') != NULL ? strrchr(vector->expected, '\n') + 1 : vector->expected;
	bool stays_open = strstr(last_line, " keep ") != NULL || strcmp(last_line, "more") == 0;
	char expected[sizeof vector->expected];

	if (strstr(vector->expected, "http://a/b?c") != NULL)
		return; /* the handler sees the path alone */
	snprintf(expected, sizeof expected, "%s", strcmp(vector->expected, "more") == 0 ? "" : vector->expected);
	buffer_init(&summary, PEER_RECEIVED_BYTES);
	peer_connect_site(&peer, site);
	peer_write(&peer, buffer_slice(&vector->input));
	if (!stays_open)
		TURN_UNTIL_OR_FAIL(site->loop, peer.closed > 0, vector->name);
	for (int i = 0; i < 1000; i++) {
		turn_for(site->loop, i == 0 ? 2 : 5);
		buffer_clear(&summary);
		summarise(&peer, &summary);
		if (strcmp(summary.data, expected) == 0)
			break;
	}
	if (strcmp(summary.data, expected) != 0)
		fail_msg("%s: %s\ninstead of\n%s", vector->name, summary.data, expected);
	assert_int_equal(peer.closed, stays_open ? 0 : 1);
	buffer_destroy(&summary);
	peer_destroy(&peer);
}

static void requests_are_answered_or_refused_as_the_vectors_say(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;

	site_init(&site, loop);
	vector_site = &site;
	assert_true(http_vectors_walk("http_requests.txt", check_vector) > 90);
	TURN_UNTIL(loop, http_server_connection_count(site.server) == 0);
	assert_true(site.requests > 20);
	assert_int_equal(site.requests + site.aborts, site.heads); /* whatever the handler saw, it saw the end of */
	site_destroy(&site);
	loop_destroy(loop);
}

/* ---- answers ---- */

static void an_answer_has_length_type_date_and_the_connection_stays(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	for (unsigned i = 1; i <= 3; i++) {
		buffer_clear(&peer.received);
		peer_write(&peer, SLICE("GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"));
		TURN_UNTIL(loop, received_at_end(&peer, "\r\n\r\nGET /a?b=c \"\""));
		assert_true(received(&peer, "HTTP/1.1 200 OK\r\nDate: "));
		assert_true(received(&peer, " GMT\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\n"));
		assert_int_equal(site.requests, i);
	}
	assert_int_equal(http_server_connection_count(site.server), 1);
	assert_int_equal(peer.closed, 0);
	peer_destroy(&peer);
	TURN_UNTIL(loop, http_server_connection_count(site.server) == 0);
	site_destroy(&site);
	loop_destroy(loop);
}

static void an_answer_to_head_has_the_length_but_no_body(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, received_at_end(&peer, "GET /b \"\""));
	assert_true(received(&peer, "Content-Length: 10\r\n\r\nHTTP/1.1 200 OK\r\n"));
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void answer_204(struct site *site, struct http_call *call)
{
	(void)site;
	http_call_respond(call, 204, NULL, SLICE("not to be sent"));
}

static void a_status_without_body_has_none(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	site.on_request = answer_204;
	ask_and_close(&peer, &site, SLICE("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
	assert_true(received_at_end(&peer, " GMT\r\nConnection: close\r\n\r\n"));
	assert_false(received(&peer, "Content-Length"));
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void http10_is_closed_unless_kept_alive(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	ask_and_close(&peer, &site, SLICE("GET /a HTTP/1.0\r\n\r\n"));
	assert_true(received_at_end(&peer, "Connection: close\r\n\r\nGET /a \"\""));
	peer_destroy(&peer);

	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
	TURN_UNTIL(loop, received_at_end(&peer, "Connection: keep-alive\r\n\r\nGET /a \"\""));
	assert_int_equal(peer.closed, 0);

	/* Piece by piece, the end of the connection ends the body. */
	buffer_clear(&peer.received);
	peer_write(&peer, SLICE("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	assert_true(http_call_is_http10(site.call));
	assert_true(http_call_write(site.call, SLICE("abc")));
	assert_true(http_call_write(site.call, SLICE("def")));
	http_call_end(site.call);
	TURN_UNTIL(loop, peer.closed > 0);
	assert_true(received_at_end(&peer, " GMT\r\nConnection: close\r\n\r\nabcdef"));
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_streamed_answer_comes_in_chunks_as_they_are_written(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /stream HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, received_at_end(&peer, "Transfer-Encoding: chunked\r\n\r\n"));
	assert_true(http_call_write(site.call, SLICE("{\"a\":1}\n")));
	TURN_UNTIL(loop, received_at_end(&peer, "8\r\n{\"a\":1}\n\r\n"));
	assert_true(http_call_write(site.call, SLICE("")));
	assert_true(http_call_write(site.call, SLICE("0123456789abcdef")));
	TURN_UNTIL(loop, received_at_end(&peer, "8\r\n{\"a\":1}\n\r\n10\r\n0123456789abcdef\r\n"));
	assert_int_equal(site.requests, 1); /* the next request waits for the end of this answer */
	http_call_end(site.call);
	TURN_UNTIL(loop, received_at_end(&peer, "GET /next \"\""));
	assert_true(received(&peer, "\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"));
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void begin_with_length(struct site *site, struct http_call *call)
{
	const struct http_field field = { SLICE("content-length"), SLICE("5") };

	site->call = call;
	http_call_begin(call, 200, (struct http_fields){ &field, 1 });
}

static void a_streamed_answer_may_have_a_length(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	site.on_request = begin_with_length;
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	assert_true(http_call_write(site.call, SLICE("abc")));
	assert_true(http_call_write(site.call, SLICE("de")));
	assert_false(http_call_write(site.call, SLICE("f")));
	http_call_abort(site.call, true);
	TURN_UNTIL(loop, peer.closed > 0);
	peer_destroy(&peer);

	site.call = NULL;
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	assert_true(http_call_write(site.call, SLICE("abcde")));
	http_call_end(site.call);
	TURN_UNTIL(loop, received_at_end(&peer, "Content-Length: 5\r\n\r\nabcde"));
	assert_int_equal(peer.closed, 0);

	/* One that ends short must not look complete. */
	site.call = NULL;
	peer_write(&peer, SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	assert_true(http_call_write(site.call, SLICE("abcd")));
	http_call_end(site.call);
	TURN_UNTIL(loop, peer.closed > 0);
	assert_string_equal(error_root(&peer.err), "connection reset by peer");
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void answer_with_injection(struct site *site, struct http_call *call)
{
	const struct http_field field = { SLICE("X-Name"), SLICE("a\r\nSet-Cookie: b") };

	(void)site;
	if (slice_equal(http_call_path(call), SLICE("/whole"))) {
		http_call_respond_with(call, 200, (struct http_fields){ &field, 1 }, SLICE("body"));
	} else if (slice_equal(http_call_path(call), SLICE("/type"))) {
		http_call_respond(call, 200, "text/plain\r\nSet-Cookie: b", SLICE("body"));
	} else {
		http_call_begin(call, 200, (struct http_fields){ &field, 1 });
		assert_true(http_call_write(call, SLICE("body")));
		http_call_end(call);
	}
}

static void fields_that_would_inject_become_a_500(void **state)
{
	(void)state;
	static const char *const PATHS[] = { "whole", "type", "begun" };
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	site.on_request = answer_with_injection;
	for (size_t i = 0; i < 3; i++) {
		char request[100];

		snprintf(request, sizeof request, "GET /%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", PATHS[i]);
		ask_and_close(&peer, &site, slice_of(request));
		assert_true(received(&peer, "HTTP/1.1 500 Internal Server Error\r\n"));
		assert_false(received(&peer, "Set-Cookie"));
		assert_false(received(&peer, "body"));
		peer_destroy(&peer);
	}
	site_destroy(&site);
	loop_destroy(loop);
}

static void answer_with_own_fields(struct site *site, struct http_call *call)
{
	const struct http_field fields[] = {
		{ SLICE("allow"), SLICE("GET,HEAD") },
		{ SLICE("Content-Length"), SLICE("999") },
		{ SLICE("Transfer-Encoding"), SLICE("chunked") },
		{ SLICE("Connection"), SLICE("close") },
	};

	(void)site;
	http_call_respond_with(call, 405, (struct http_fields){ fields, 4 }, SLICE("no"));
}

static void framing_fields_are_the_servers_own(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	site.on_request = answer_with_own_fields;
	ask_and_close(&peer, &site, SLICE("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
	assert_true(
		received_at_end(&peer, " GMT\r\nallow: GET,HEAD\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"));
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_body_beyond_the_streams_write_limit_is_sent_whole(void **state)
{
	(void)state;
	enum { BIG_BYTES = 20 * 1024 * 1024 };
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;
	char *big = pattern(BIG_BYTES);

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	http_call_respond(site.call, 200, NULL, slice_from(big, BIG_BYTES));
	TURN_UNTIL(loop, peer.received.length > BIG_BYTES);
	assert_memory_equal(peer.received.data + peer.received.length - BIG_BYTES, big, BIG_BYTES);
	memory_release(big);
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

/* ---- order ---- */

static void pipelined_requests_wait_for_the_answer_before(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(
		&peer,
		SLICE("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"
	              "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET /c HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	turn_for(loop, 20);
	assert_int_equal(site.requests, 1);
	assert_int_equal(peer.received.length, 0);
	http_call_respond(site.call, 200, NULL, SLICE("first"));
	TURN_UNTIL(loop, received_at_end(&peer, "GET /c \"\""));
	assert_true(received(&peer, "\r\n\r\nfirstHTTP/1.1 200 OK\r\n"));
	assert_true(received(&peer, "\r\n\r\nPOST /b \"abc\"HTTP/1.1 200 OK\r\n"));
	assert_int_equal(site.requests, 3);
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void answer_big(struct site *site, struct http_call *call)
{
	static const char BIG[16 * 1024];

	(void)site;
	http_call_respond(call, 200, NULL, slice_from(BIG, sizeof BIG));
}

static void thousands_of_pipelined_requests_dont_pile_up_answers(void **state)
{
	(void)state;
	enum { COUNT = 3000 }; /* the kernel's buffers take a few hundred of their answers */
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;
	struct buffer requests;

	site_init(&site, loop);
	site.on_request = answer_big;
	peer_connect_site(&peer, &site);
	buffer_init(&requests, 8 << 20);
	for (int i = 0; i < COUNT; i++)
		buffer_append_text(&requests, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	stream_pause(peer.stream); /* takes no answers */
	peer_write(&peer, buffer_slice(&requests));
	buffer_destroy(&requests);
	turn_for(loop, 200);
	assert_true(site.requests < COUNT);
	stream_resume(peer.stream);
	TURN_UNTIL(loop, site.requests == COUNT && stream_pending_bytes(peer.stream) == 0);
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_client_that_ends_its_side_gets_the_answer_it_asked_for(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, received_at_end(&peer, "GET /a \"\""));
	peer_destroy(&peer);
	TURN_UNTIL(loop, http_server_connection_count(site.server) == 0);
	site_destroy(&site);
	loop_destroy(loop);
}

/* ---- bodies ---- */

static void a_body_over_the_cap_is_refused(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;
	struct buffer request;

	site_init(&site, loop);
	ask_and_close(&peer, &site, SLICE("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n"));
	assert_true(received(&peer, "HTTP/1.1 413 Request Entity Too Large\r\n"));
	peer_destroy(&peer);
	assert_int_equal(site.heads, 0);

	buffer_init(&request, 1 << 20);
	buffer_append_text(&request, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 101; i++) {
		buffer_append_text(&request, "3e8\r\n");
		for (int k = 0; k < 1000; k++)
			buffer_append_char(&request, 'x');
		buffer_append_text(&request, "\r\n");
	}
	ask_and_close(&peer, &site, buffer_slice(&request));
	assert_true(received(&peer, "HTTP/1.1 413 Request Entity Too Large\r\n"));
	assert_int_equal(site.requests, 0);
	assert_int_equal(site.heads, 1);
	assert_int_equal(site.aborts, 1); /* the handler had seen its head */
	buffer_destroy(&request);
	peer_destroy(&peer);

	/* As long as allowed is fine. */
	peer_connect_site(&peer, &site);
	buffer_init(&request, 1 << 20);
	buffer_append_text(&request, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
	for (int i = 0; i < 100000; i++)
		buffer_append_char(&request, 'x');
	peer_write(&peer, buffer_slice(&request));
	TURN_UNTIL(loop, received_at_end(&peer, "xxx\""));
	buffer_destroy(&request);
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_sender_that_goes_on_after_the_refusal_still_gets_to_read_it(void **state)
{
	(void)state;
	enum { UPLOAD_BYTES = 4 * 1024 * 1024 };
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;
	char *upload = pattern(UPLOAD_BYTES);

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4194304\r\n\r\n"));
	peer_write(&peer, slice_from(upload, UPLOAD_BYTES));
	TURN_UNTIL(loop, received(&peer, "HTTP/1.1 413"));
	memory_release(upload);
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_client_that_asks_first_is_told_to_go_on(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n"));
	TURN_UNTIL(loop, received_at_end(&peer, "HTTP/1.1 100 Continue\r\n\r\n"));
	peer_write(&peer, SLICE("abc"));
	TURN_UNTIL(loop, received_at_end(&peer, "POST /a \"abc\""));
	peer_destroy(&peer);

	ask_and_close(&peer, &site,
	              SLICE("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\nExpect: 100-continue\r\n\r\n"));
	assert_true(received(&peer, "HTTP/1.1 413"));
	assert_false(received(&peer, "100 Continue"));
	peer_destroy(&peer);

	ask_and_close(&peer, &site,
	              SLICE("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: miracles\r\n\r\n"));
	assert_true(received(&peer, "HTTP/1.1 417 Expectation Failed\r\n"));
	peer_destroy(&peer);

	/* HTTP/1.0 doesn't know of it, and a request without a body has nothing to go on with. */
	ask_and_close(&peer, &site, SLICE("POST /a HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc"));
	assert_false(received(&peer, "100 Continue"));
	assert_true(received_at_end(&peer, "POST /a \"abc\""));
	peer_destroy(&peer);
	ask_and_close(&peer, &site,
	              SLICE("POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n"));
	assert_false(received(&peer, "100 Continue"));
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static bool refuse_in_head(struct site *site, struct http_call *call)
{
	(void)site;
	if (slice_equal(http_call_path(call), SLICE("/silent")))
		return false;
	http_call_respond(call, 401, NULL, SLICE("who are you?"));
	return false;
}

static void a_handler_may_refuse_by_the_head_alone(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	site.on_head = refuse_in_head;
	/* With a body under way the connection can't go on. */
	ask_and_close(&peer, &site, SLICE("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab"));
	assert_true(received_at_end(&peer, "Connection: close\r\n\r\nwho are you?"));
	peer_destroy(&peer);
	/* Without, it can. */
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /silent HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, received(&peer, "who are you?HTTP/1.1 500 Internal Server Error\r\n"));
	assert_int_equal(site.requests, 0);
	assert_int_equal(site.heads, 3);
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static const struct http_server_handler STREAMING = { .on_body = site_on_body,
	                                              .on_request = site_on_request,
	                                              .on_abort = site_on_abort };

static void a_streamed_body_waits_while_paused(void **state)
{
	(void)state;
	enum { UPLOAD_BYTES = 4 * 1024 * 1024 };
	struct loop *loop = new_loop();
	struct http_server_options options = site_options();
	struct site site;
	struct peer peer;
	char *upload = pattern(UPLOAD_BYTES);

	options.max_body_bytes = UPLOAD_BYTES;
	site_init_with(&site, loop, &options, &STREAMING);
	site.pauses = true;
	peer_connect_site(&peer, &site);
	stream_set_write_limit(peer.stream, 2 * UPLOAD_BYTES);
	peer_write(&peer, SLICE("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4194304\r\n\r\n"));
	peer_write(&peer, slice_from(upload, UPLOAD_BYTES));
	peer_write(&peer, SLICE("GET /next HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.streamed.length > 0);
	skip_time_ms(10 * HTTP_SERVER_BODY_TIMEOUT_MS); /* which doesn't run while paused */
	turn_for(loop, 20);
	assert_true(site.streamed.length <= NET_READ_CHUNK_BYTES);
	for (int i = 0; i < 10; i++) {
		size_t before = site.streamed.length;

		http_call_resume_body(site.call);
		assert_int_equal(site.streamed.length, before); /* not from inside the call */
		TURN_UNTIL(loop, site.streamed.length > before);
		assert_true(site.streamed.length <= before + NET_READ_CHUNK_BYTES);
	}
	site.pauses = false;
	http_call_resume_body(site.call);
	TURN_UNTIL(loop, received_at_end(&peer, "GET /next \"\""));
	assert_int_equal(site.streamed.length, UPLOAD_BYTES);
	assert_memory_equal(site.streamed.data, upload, UPLOAD_BYTES);
	memory_release(upload);
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

/* ---- deadlines ---- */

static void slow_senders_are_dropped(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer silent, head, body, idle;

	site_init(&site, loop);
	peer_connect_site(&silent, &site);
	peer_connect_site(&head, &site);
	peer_connect_site(&body, &site);
	peer_connect_site(&idle, &site);
	peer_write(&head, SLICE("GET / HTTP/1.1\r\nX"));
	peer_write(&body, SLICE("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"));
	peer_write(&idle, SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.heads == 2 && received_at_end(&idle, "GET /a \"\""));
	turn_for(loop, 10);

	/* A byte now and then doesn't help. */
	skip_time_ms(HTTP_SERVER_HEADER_TIMEOUT_MS - 2000);
	peer_write(&head, SLICE("X"));
	peer_write(&body, SLICE("y"));
	turn_for(loop, 10);
	assert_int_equal(silent.closed + head.closed + body.closed + idle.closed, 0);
	skip_time_ms(2000);
	TURN_UNTIL(loop, silent.closed == 1 && head.closed == 1);
	assert_int_equal(silent.received.length, 0);
	assert_true(received(&head, "HTTP/1.1 408 Request Timeout\r\n"));

	skip_time_ms(HTTP_SERVER_BODY_TIMEOUT_MS - HTTP_SERVER_HEADER_TIMEOUT_MS - 2000);
	peer_write(&body, SLICE("y"));
	turn_for(loop, 10);
	assert_int_equal(body.closed + idle.closed, 0);
	skip_time_ms(2000);
	TURN_UNTIL(loop, body.closed == 1);
	assert_true(received(&body, "HTTP/1.1 408 Request Timeout\r\n"));
	assert_int_equal(site.aborts, 1);

	skip_time_ms(HTTP_SERVER_IDLE_TIMEOUT_MS - HTTP_SERVER_BODY_TIMEOUT_MS - 2000);
	turn_for(loop, 10);
	assert_int_equal(idle.closed, 0);
	skip_time_ms(2000);
	TURN_UNTIL(loop, idle.closed == 1);
	assert_true(received_at_end(&idle, "GET /a \"\""));
	peer_destroy(&silent);
	peer_destroy(&head);
	peer_destroy(&body);
	peer_destroy(&idle);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_reader_that_takes_nothing_is_dropped(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;
	char *data = pattern(1 << 20);

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	stream_pause(peer.stream);
	while (http_call_write(site.call, slice_from(data, 1 << 20)))
		assert_true(http_call_pending_bytes(site.call) <= NET_STREAM_WRITE_BYTES);
	assert_true(http_call_pending_bytes(site.call) > NET_STREAM_WRITE_BYTES / 2);
	turn_for(loop, 100); /* the kernel takes some of it */
	skip_time_ms(HTTP_SERVER_WRITE_TIMEOUT_MS);
	turn_for(loop, 10); /* which counts as progress, once */
	skip_time_ms(HTTP_SERVER_WRITE_TIMEOUT_MS);
	TURN_UNTIL(loop, site.aborts == 1);
	assert_int_equal(http_server_connection_count(site.server), 0);
	memory_release(data);
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_slow_but_steady_reader_isnt_dropped(void **state)
{
	(void)state;
	enum { BIG_BYTES = 30 * 1024 * 1024 };
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;
	char *data = pattern(BIG_BYTES);

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	http_call_respond(site.call, 200, NULL, slice_from(data, BIG_BYTES));
	for (int i = 0; i < 6; i++) {
		size_t wanted = peer.received.length + 1024 * 1024;

		skip_time_ms(HTTP_SERVER_WRITE_TIMEOUT_MS * 3 / 4);
		stream_resume(peer.stream);
		TURN_UNTIL(loop, peer.received.length >= wanted || peer.closed > 0);
		assert_int_equal(peer.closed, 0);
		stream_pause(peer.stream);
		turn_for(loop, 10);
	}
	stream_resume(peer.stream);
	TURN_UNTIL(loop, peer.received.length > BIG_BYTES);
	memory_release(data);
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

/* ---- ends ---- */

static void the_handler_hears_when_the_client_goes_away(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	peer_destroy(&peer);
	TURN_UNTIL(loop, site.aborts == 1);
	assert_null(site.call);

	/* Not for calls it hasn't seen, or has ended. */
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HT"));
	TURN_UNTIL(loop, received_at_end(&peer, "GET /a \"\""));
	peer_destroy(&peer);
	TURN_UNTIL(loop, http_server_connection_count(site.server) == 0);
	assert_int_equal(site.aborts, 1);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_handler_may_cut_the_connection(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	ask_and_close(&peer, &site, SLICE("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n"));
	assert_string_equal(peer.err.text, "EOF");
	peer_destroy(&peer);
	ask_and_close(&peer, &site, SLICE("GET /reset HTTP/1.1\r\nHost: x\r\n\r\n"));
	assert_string_equal(error_root(&peer.err), "connection reset by peer");
	peer_destroy(&peer);

	/* What was written before the cut arrives: a watch that just ends. */
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	assert_true(http_call_write(site.call, SLICE("event")));
	http_call_abort(site.call, false);
	TURN_UNTIL(loop, peer.closed > 0);
	assert_true(received_at_end(&peer, "5\r\nevent\r\n"));
	assert_int_equal(site.aborts, 0);
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

static void the_server_may_be_destroyed_from_inside_a_handler(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer asking, other;

	site_init(&site, loop);
	peer_connect_site(&other, &site);
	peer_write(&other, SLICE("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	peer_connect_site(&asking, &site);
	peer_write(&asking, SLICE("GET /destroy HTTP/1.1\r\nHost: x\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, asking.closed > 0 && other.closed > 0);
	assert_int_equal(site.aborts, 0);
	peer_destroy(&asking);
	peer_destroy(&other);
	site_destroy(&site);
	loop_destroy(loop);
}

static void connections_beyond_the_cap_wait(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_server_options options = site_options();
	static const struct http_server_handler HANDLER = { .on_request = site_on_request };
	struct site site;
	struct peer peers[3];

	options.max_connections = 2;
	site_init_with(&site, loop, &options, &HANDLER);
	for (size_t i = 0; i < 3; i++) {
		peer_connect_site(&peers[i], &site);
		peer_write(&peers[i], SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	}
	TURN_UNTIL(loop, site.requests == 2);
	turn_for(loop, 50);
	assert_int_equal(http_server_connection_count(site.server), 2);
	assert_int_equal(site.requests, 2);
	for (size_t i = 0; i < 3; i++)
		if (peers[i].received.length > 0) {
			peer_destroy(&peers[i]);
			peer_init(&peers[i], loop);
			break;
		}
	TURN_UNTIL(loop, site.requests == 3);
	for (size_t i = 0; i < 3; i++)
		peer_destroy(&peers[i]);
	site_destroy(&site);
	loop_destroy(loop);
}

static void note(void *context)
{
	(*(unsigned *)context)++;
}

static void draining_answers_what_is_open_and_takes_nothing_new(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer idle, busy, late;
	unsigned drained = 0;

	site_init(&site, loop);
	peer_connect_site(&idle, &site);
	peer_connect_site(&busy, &site);
	peer_write(&idle, SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	peer_write(&busy, SLICE("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL && idle.received.length > 0);
	http_server_drain(site.server, 60 * (uint64_t)NS_PER_S, note, &drained);
	peer_connect_site(&late, &site);
	TURN_UNTIL(loop, idle.closed > 0 && late.closed > 0);
	assert_string_equal(error_root(&late.err), "connection refused");
	turn_for(loop, 20);
	assert_int_equal(drained, 0);
	assert_int_equal(busy.closed, 0);
	http_call_respond(site.call, 200, NULL, SLICE("done"));
	TURN_UNTIL(loop, drained == 1 && busy.closed > 0);
	assert_true(received_at_end(&busy, "Connection: close\r\n\r\ndone"));
	turn_for(loop, 20);
	assert_int_equal(drained, 1);
	peer_destroy(&idle);
	peer_destroy(&busy);
	peer_destroy(&late);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_drain_that_takes_too_long_closes_the_rest(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer busy;
	unsigned drained = 0;

	site_init(&site, loop);
	peer_connect_site(&busy, &site);
	peer_write(&busy, SLICE("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, site.call != NULL);
	http_server_drain(site.server, 50 * NS_PER_MS, note, &drained);
	TURN_UNTIL(loop, drained == 1);
	assert_int_equal(site.aborts, 1);
	peer_destroy(&busy);
	site_destroy(&site);

	/* Nothing open: drained at once, but not from inside the call. */
	site_init(&site, loop);
	drained = 0;
	http_server_drain(site.server, 50 * NS_PER_MS, note, &drained);
	assert_int_equal(drained, 0);
	TURN_UNTIL(loop, drained == 1);
	site_destroy(&site);
	loop_destroy(loop);
}

/* ---- upgrade ---- */

struct upgraded {
	struct peer peer;
	char extra[16];
	struct error err;
};

static struct upgraded *upgraded;

static void upgrade(struct site *site, struct http_call *call)
{
	const struct http_field fields[] = { { SLICE("Connection"), SLICE("Upgrade") },
		                             { SLICE("Upgrade"), SLICE("echo") } };
	struct slice extra;

	peer_init(&upgraded->peer, site->loop);
	upgraded->peer.stream = http_call_upgrade(call, (struct http_fields){ fields, 2 }, &extra, &upgraded->err);
	if (upgraded->peer.stream == NULL) {
		http_call_respond(call, 426, NULL, SLICE(""));
		return;
	}
	memcpy(upgraded->extra, extra.data, extra.length);
	stream_set_handler(upgraded->peer.stream, &PEER_HANDLER, &upgraded->peer);
}

static void an_upgrade_hands_the_stream_over(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct upgraded storage = { 0 };
	struct site site;
	struct peer peer;

	upgraded = &storage;
	site_init(&site, loop);
	site.on_request = upgrade;
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nextra"));
	TURN_UNTIL(loop, received_at_end(&peer, "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n"));
	assert_true(received(&peer, "HTTP/1.1 101 Switching Protocols\r\n"));
	assert_string_equal(storage.extra, "extra");
	assert_int_equal(http_server_connection_count(site.server), 0);
	storage.peer.echoes = true;
	peer_write(&peer, SLICE("hello"));
	TURN_UNTIL(loop, received_at_end(&peer, "hello"));
	site_destroy(&site); /* the stream is no longer the server's */
	peer_write(&peer, SLICE("again"));
	TURN_UNTIL(loop, received_at_end(&peer, "again"));
	peer_destroy(&peer);
	peer_destroy(&storage.peer);

	site_init(&site, loop);
	site.on_request = upgrade;
	ask_and_close(&peer, &site, SLICE("GET /a HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"));
	assert_true(received(&peer, "HTTP/1.1 426 Upgrade Required\r\n"));
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

/* ---- memory ---- */

/* Two requests on one connection, the second with a streamed answer; gives up after a while. */
static void ask_once(struct site *site, struct peer *peer)
{
	static const char REQUESTS[] =
		"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET /stream HTTP/1.1\r\nHost: x\r\n\r\n";
	struct stream_connect_options options = { .host = "127.0.0.1", .port = site->address.port };
	struct error err;

	site->call = NULL;
	peer_init(peer, site->loop);
	peer->stream = stream_connect(site->loop, &options, &PEER_HANDLER, peer, &err);
	if (peer->stream == NULL || !stream_write(peer->stream, slice_of(REQUESTS), &err))
		return;
	/* Accepting may pause for NET_ACCEPT_PAUSE_MS. */
	for (int i = 0; i < 3 * NET_ACCEPT_PAUSE_MS && peer->closed == 0 && !received_at_end(peer, "0\r\n\r\n"); i++) {
		if (site->call != NULL) {
			struct http_call *call = site->call;

			site->call = NULL;
			(void)http_call_write(call, SLICE("data"));
			http_call_end(call);
		}
		turn_for(site->loop, 1);
	}
}

static void every_failing_allocation_is_survived(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	size_t descriptors = open_descriptors();
	bool failed = true;
	unsigned complete = 0;

	for (unsigned long n = 1; failed; n++) {
		struct site site;
		struct peer peer;

		site_init(&site, loop);
		memory_fail_at(n);
		ask_once(&site,
		         &peer); /* the test's own side may fail as well; it is the server's survival that counts */
		complete += received_at_end(&peer, "4\r\ndata\r\n0\r\n\r\n");
		failed = memory_allocation_count() >= n;
		memory_fail_at(0);
		peer_destroy(&peer);

		/* The server still works. */
		ask_once(&site, &peer);
		assert_true(received_at_end(&peer, "4\r\ndata\r\n0\r\n\r\n"));
		peer_destroy(&peer);
		site_destroy(&site);
		turn_for(loop, 1);
		assert_int_equal(open_descriptors(), descriptors);
	}
	assert_true(complete > 0);
	loop_destroy(loop);
}

static void an_idle_connection_holds_little_memory(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	peer_write(&peer, SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(loop, received_at_end(&peer, "GET /a \"\""));
	turn_for(loop, 5);
	/* A request's head and body, and the answer, are gone: only what stands in struct server_connection is left. */
	memory_fail_at(0);
	peer_write(&peer, SLICE("GET /a HTTP/1.1\r\nHost: x\r\n\r\n"));
	turn_for(loop, 5);
	assert_true(memory_allocation_count() > 0); /* so they are made anew */
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_answered_or_refused_as_the_vectors_say),
		cmocka_unit_test(an_answer_has_length_type_date_and_the_connection_stays),
		cmocka_unit_test(an_answer_to_head_has_the_length_but_no_body),
		cmocka_unit_test(a_status_without_body_has_none),
		cmocka_unit_test(http10_is_closed_unless_kept_alive),
		cmocka_unit_test(a_streamed_answer_comes_in_chunks_as_they_are_written),
		cmocka_unit_test(a_streamed_answer_may_have_a_length),
		cmocka_unit_test(fields_that_would_inject_become_a_500),
		cmocka_unit_test(framing_fields_are_the_servers_own),
		cmocka_unit_test(a_body_beyond_the_streams_write_limit_is_sent_whole),
		cmocka_unit_test(pipelined_requests_wait_for_the_answer_before),
		cmocka_unit_test(thousands_of_pipelined_requests_dont_pile_up_answers),
		cmocka_unit_test(a_client_that_ends_its_side_gets_the_answer_it_asked_for),
		cmocka_unit_test(a_body_over_the_cap_is_refused),
		cmocka_unit_test(a_sender_that_goes_on_after_the_refusal_still_gets_to_read_it),
		cmocka_unit_test(a_client_that_asks_first_is_told_to_go_on),
		cmocka_unit_test(a_handler_may_refuse_by_the_head_alone),
		cmocka_unit_test(a_streamed_body_waits_while_paused),
		cmocka_unit_test(slow_senders_are_dropped),
		cmocka_unit_test(a_reader_that_takes_nothing_is_dropped),
		cmocka_unit_test(a_slow_but_steady_reader_isnt_dropped),
		cmocka_unit_test(the_handler_hears_when_the_client_goes_away),
		cmocka_unit_test(a_handler_may_cut_the_connection),
		cmocka_unit_test(the_server_may_be_destroyed_from_inside_a_handler),
		cmocka_unit_test(connections_beyond_the_cap_wait),
		cmocka_unit_test(draining_answers_what_is_open_and_takes_nothing_new),
		cmocka_unit_test(a_drain_that_takes_too_long_closes_the_rest),
		cmocka_unit_test(an_upgrade_hands_the_stream_over),
		cmocka_unit_test(every_failing_allocation_is_survived),
		cmocka_unit_test(an_idle_connection_holds_little_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
