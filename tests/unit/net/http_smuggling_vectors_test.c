/*
 * Messages that two readers might understand differently, against our server and client, through sockets
 * (tests/vectors/http_smuggling_*.txt).
 */
#include "http_vectors.h"

#include "http_site.h"

enum { SERVER_CASES = 118, CLIENT_CASES = 49, SHORT_NS = 200 * NS_PER_US, QUIET_TURNS = 12, SUMMARY_BYTES = 64 * 1024 };

static void turn_briefly(struct loop *loop)
{
	struct loop_timer timer = { 0 };
	struct error err;
	bool over = false;

	loop_timer_start(loop, &timer, SHORT_NS, too_late, &over);
	assert_true(loop_turn(loop, &err));
	loop_timer_stop(loop, &timer);
}

/* Turns until nothing has come for a while: on loopback, whatever is to come comes at once. */
static void turn_until_quiet(struct loop *loop, const struct peer *peer)
{
	size_t length = peer->received.length;
	int quiet = 0;

	while (quiet < QUIET_TURNS) {
		turn_briefly(loop);
		quiet = peer->received.length == length ? quiet + 1 : 0;
		length = peer->received.length;
	}
}

static void begin_line(struct buffer *summary)
{
	if (summary->length > 0)
		buffer_append_char(summary, '\n');
}

/* Line ends as in the files, so that a line stays one. */
static void append_escaped(struct buffer *summary, struct slice text)
{
	for (size_t i = 0; i < text.length; i++) {
		if (text.data[i] == '\r')
			buffer_append_text(summary, "\\r");
		else if (text.data[i] == '\n')
			buffer_append_text(summary, "\\n");
		else
			buffer_append_char(summary, text.data[i]);
	}
}

static void check_summary(const struct http_vector *vector, struct buffer *summary)
{
	buffer_append_char(summary, '\0');
	assert_false(summary->failed);
	if (strcmp(summary->data, vector->expected) != 0)
		fail_msg("%s:\n%s\ninstead of:\n%s", vector->name, summary->data, vector->expected);
	buffer_destroy(summary);
}

/* ---- the server ---- */

static void note_answers(struct slice bytes, struct buffer *summary)
{
	struct http_parser parser;
	enum http_parser_event event;
	struct slice body;
	struct error err;

	http_parser_init_response(&parser, false);
	do {
		event = http_parser_next(&parser, &bytes, &body, &err);
		if (event == HTTP_PARSER_HEAD) {
			begin_line(summary);
			buffer_append_format(summary, "%d", http_parser_status(&parser));
		} else if (event == HTTP_PARSER_BODY && http_parser_status(&parser) == 200) {
			buffer_append_char(summary, ' ');
			append_escaped(summary, body);
		} else if (event == HTTP_PARSER_DONE) {
			http_parser_reset(&parser);
		}
	} while (event != HTTP_PARSER_MORE && event != HTTP_PARSER_FAILED);
	assert_int_equal(event, HTTP_PARSER_MORE);
	http_parser_reset(&parser);
}

static void run_server_case(const struct http_vector *vector)
{
	struct loop *loop = new_loop();
	struct buffer summary;
	struct site site;
	struct peer peer;

	site_init(&site, loop);
	peer_connect_site(&peer, &site);
	TURN_UNTIL(loop, peer.opened == 1);
	peer_write(&peer, buffer_slice(&vector->input));
	turn_until_quiet(loop, &peer);
	buffer_init(&summary, SUMMARY_BYTES);
	note_answers(buffer_slice(&peer.received), &summary);
	if (peer.closed > 0) {
		begin_line(&summary);
		buffer_append_text(&summary, "closed");
	}
	peer_destroy(&peer);
	site_destroy(&site);
	loop_destroy(loop);
	check_summary(vector, &summary);
}

/* ---- the client ---- */

struct asking {
	struct buffer *summary;
	bool done;
};

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	static const char *const KINDS[] = {
		[ERROR_SYNTAX] = "syntax", [ERROR_LIMIT] = "limit", [ERROR_CLOSED] = "closed", [ERROR_ENDED] = "closed"
	};
	struct asking *asking = context;

	asking->done = true;
	if (asking->summary == NULL)
		return;
	if (err == NULL) {
		buffer_append_format(asking->summary, "%d \"", response->status);
		append_escaped(asking->summary, response->body);
		buffer_append_char(asking->summary, '"');
	} else {
		bool named = err->code < sizeof KINDS / sizeof KINDS[0] && KINDS[err->code] != NULL;

		buffer_append_text(asking->summary, named ? KINDS[err->code] : err->text);
	}
}

static void ask(struct http_client *client, const struct host *host, struct asking *asking)
{
	static const struct http_handler HANDLER = { .on_done = on_done };
	struct http_request request = {
		.origin = { .host = "127.0.0.1", .port = host->address.port },
		.method = SLICE("GET"),
		.target = SLICE("/"),
		.max_body_bytes = SITE_BODY_BYTES,
		.total_timeout_ns = 20 * (uint64_t)NS_PER_S,
	};
	struct error err;

	assert_non_null(http_client_send(client, &request, &HANDLER, asking, &err));
}

static void run_client_case(const struct http_vector *vector)
{
	struct loop *loop = new_loop();
	struct buffer summary;
	struct asking first = { .summary = &summary };
	struct asking second = { .summary = NULL };
	struct http_client *client;
	struct host host;
	struct error err;
	size_t asked;

	buffer_init(&summary, SUMMARY_BYTES);
	host_init(&host, loop, NULL);
	client = http_client_create(loop, &err);
	assert_non_null(client);
	ask(client, &host, &first);
	TURN_UNTIL(loop, host.peer.received.length > 0);
	asked = host.peer.received.length;
	peer_write(&host.peer, buffer_slice(&vector->input));
	turn_until_quiet(loop, &host.peer);
	if (!first.done && host.peer.stream != NULL) { /* it waits for more */
		stream_close(host.peer.stream);
		host.peer.stream = NULL;
	}
	TURN_UNTIL(loop, first.done);
	turn_until_quiet(loop, &host.peer);
	ask(client, &host, &second);
	TURN_UNTIL(loop, host.accepted == 2 || host.peer.received.length > asked);
	buffer_append_text(&summary, host.accepted == 2 ? "\nanew" : "\nagain");
	http_client_destroy(client);
	host_destroy(&host);
	loop_destroy(loop);
	check_summary(vector, &summary);
}

static void the_server_refuses_what_can_be_read_in_two_ways(void **state)
{
	(void)state;
	assert_int_equal(http_vectors_walk("http_smuggling_server.txt", run_server_case), SERVER_CASES);
}

static void the_client_refuses_what_can_be_read_in_two_ways(void **state)
{
	(void)state;
	assert_int_equal(http_vectors_walk("http_smuggling_client.txt", run_client_case), CLIENT_CASES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_server_refuses_what_can_be_read_in_two_ways),
		cmocka_unit_test(the_client_refuses_what_can_be_read_in_two_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
