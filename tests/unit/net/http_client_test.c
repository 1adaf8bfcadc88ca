#include "http_site.h"

#include <stdio.h>

#include "http_vectors.h"
#include "test_clock.h"

/* ---- an exchange that records what it is told ---- */

struct record {
	struct http_client *client;
	struct http_exchange *exchange; /* NULL once it is over */
	unsigned heads, pieces, done;
	int status;
	bool failed;
	struct error err;
	struct buffer body;
	/* What to do inside the callbacks. */
	bool cancel_in_head, cancel_in_body, destroy_in_head, destroy_in_body, destroy_in_done, pause_in_body;
	bool sends_again; /* the same request once more, from inside on_done */
	const struct http_request *request;
};

static void record_send(struct record *record, const struct http_request *request);

static void destroy_client(struct record *record)
{
	http_client_destroy(record->client);
	record->client = NULL;
	record->exchange = NULL;
}

static void on_head(void *context, const struct http_response *response)
{
	struct record *record = context;

	record->heads++;
	record->status = response->status;
	if (record->cancel_in_head)
		http_exchange_cancel(record->exchange);
	if (record->destroy_in_head)
		destroy_client(record);
}

static void on_body(void *context, struct slice bytes)
{
	struct record *record = context;

	record->pieces++;
	buffer_append_slice(&record->body, bytes);
	if (record->cancel_in_body)
		http_exchange_cancel(record->exchange);
	if (record->destroy_in_body)
		destroy_client(record);
	if (record->pause_in_body)
		http_exchange_pause(record->exchange);
}

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct record *record = context;

	record->done++;
	record->exchange = NULL;
	record->failed = err != NULL;
	if (err != NULL)
		record->err = *err;
	record->status = response != NULL ? response->status : 0;
	if (response != NULL)
		buffer_append_slice(&record->body, response->body);
	if (record->destroy_in_done)
		destroy_client(record);
	if (record->sends_again) {
		record->sends_again = false;
		record_send(record, record->request);
	}
}

static const struct http_handler COLLECTING = { .on_head = on_head, .on_done = on_done };
static const struct http_handler STREAMING = { .on_head = on_head, .on_body = on_body, .on_done = on_done };

static void record_init(struct record *record, struct http_client *client)
{
	*record = (struct record){ .client = client };
	buffer_init(&record->body, PEER_RECEIVED_BYTES);
}

static void record_send_with(struct record *record, const struct http_request *request,
                             const struct http_handler *handler)
{
	struct error err;

	record->request = request;
	record->exchange = http_client_send(record->client, request, handler, record, &err);
	if (record->exchange == NULL)
		fail_msg("%s", err.text);
}

static void record_send(struct record *record, const struct http_request *request)
{
	record_send_with(record, request, &COLLECTING);
}

static void record_destroy(struct record *record)
{
	buffer_destroy(&record->body);
}

static struct http_client *new_client(struct loop *loop)
{
	struct error err;
	struct http_client *client = http_client_create(loop, &err);

	assert_non_null(client);
	return client;
}

static struct http_request request_to(const struct address *address, const char *target)
{
	struct http_request request = {
		.origin = { .host = "127.0.0.1", .port = address->port },
		.method = SLICE("GET"),
		.target = slice_of(target),
		.max_body_bytes = 1000000,
	};

	return request;
}

static void check_record(const struct record *record, int status, const char *body)
{
	assert_int_equal(record->done, 1);
	if (record->failed)
		fail_msg("%s", record->err.text);
	assert_int_equal(record->status, status);
	assert_true(slice_equal_text(buffer_slice(&record->body), body));
}

static void check_failed(const struct record *record, enum error_code code, const char *root)
{
	assert_int_equal(record->done, 1);
	assert_true(record->failed);
	assert_string_equal(error_root(&record->err), root);
	assert_int_equal(record->err.code, code);
}

static bool has_request(const struct host *host)
{
	return slice_contains(buffer_slice(&host->peer.received), SLICE("\r\n\r\n"));
}

/* ---- vectors ---- */

static struct loop *vector_loop;

/* Summarises what the client says of a hostile server's bytes, in the vectors' words. */
static void check_vector(const struct http_vector *vector)
{
	struct loop *loop = vector_loop;
	struct http_client *client = new_client(loop);
	struct host host;
	struct record record, second;
	char summary[1024];
	bool more = strcmp(vector->expected, "more") == 0;

	host_init(&host, loop, NULL);
	record_init(&record, client);

	struct http_request request = request_to(&host.address, "/");

	record_send(&record, &request);
	TURN_UNTIL(loop, has_request(&host));
	peer_write(&host.peer, buffer_slice(&vector->input));
	if (vector->eof) {
		stream_finish(host.peer.stream, NS_PER_S);
		host.peer.stream = NULL;
	}
	if (more) {
		turn_for(loop, 5);
		assert_int_equal(record.done, 0);
		http_exchange_cancel(record.exchange);
		goto out;
	}
	TURN_UNTIL_OR_FAIL(loop, record.done > 0, vector->name);
	if (!record.failed) {
		/* Whether the connection is kept shows in the next request. */
		record_init(&second, client);
		buffer_clear(&host.peer.received);
		record_send(&second, &request);
		TURN_UNTIL(loop, has_request(&host));
		snprintf(summary, sizeof summary, "%d %s \"%.*s\"", record.status,
		         host.accepted == 1 ? "keep" : "close", (int)record.body.length,
		         record.body.data != NULL ? record.body.data : "");
		http_exchange_cancel(second.exchange);
	} else if (record.err.code == ERROR_CLOSED) {
		snprintf(summary, sizeof summary, "%s", error_root(&record.err));
	} else {
		snprintf(summary, sizeof summary, "%s",
		         record.err.code == ERROR_SYNTAX  ? "syntax"
		         : record.err.code == ERROR_LIMIT ? "limit"
		                                          : "?");
	}

	const char *expected =
		record.err.code == ERROR_SYNTAX && vector->expected[0] == '1' ? "syntax" : vector->expected; /* 101 */

	if (strcmp(summary, expected) != 0)
		fail_msg("%s: %s (%s) instead of %s", vector->name, summary, record.err.text, expected);
out:
	record_destroy(&record);
	host_destroy(&host);
	http_client_destroy(client);
}

static void responses_are_taken_or_refused_as_the_vectors_say(void **state)
{
	(void)state;
	vector_loop = new_loop();
	assert_true(http_vectors_walk("http_responses.txt", check_vector) > 40);
	loop_destroy(vector_loop);
}

/* ---- requests ---- */

/* `start` and `rest` are what comes before and after the port in the request's text. */
static void check_request_text(const struct http_request *request, const char *start, const char *rest)
{
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct host host;
	struct record record;
	struct http_request copy = *request;
	char text[500];

	host_init(&host, loop, NULL);
	copy.origin = (struct http_origin){ .host = "127.0.0.1", .port = host.address.port };
	record_init(&record, client);
	record_send(&record, &copy);
	TURN_UNTIL(loop, has_request(&host));
	turn_for(loop, 2);
	snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s", start, host.address.port, rest);
	assert_true(slice_equal_text(buffer_slice(&host.peer.received), text));
	http_client_destroy(client);
	record_destroy(&record);
	host_destroy(&host);
	loop_destroy(loop);
}

static void requests_are_written_as_they_should(void **state)
{
	(void)state;
	const struct http_field fields[] = { { SLICE("Accept"), SLICE("text/plain") },
		                             { SLICE("X-Empty"), SLICE("") } };

	check_request_text(&(struct http_request){ .method = SLICE("GET"),
	                                           .target = SLICE("/metrics?a=b"),
	                                           .fields = { fields, 2 } },
	                   "GET /metrics?a=b", "Accept: text/plain\r\nX-Empty: \r\n\r\n");
	check_request_text(
		&(struct http_request){ .method = SLICE("POST"), .target = SLICE("/"), .body = SLICE("abc") }, "POST /",
		"Content-Length: 3\r\n\r\nabc");
	check_request_text(&(struct http_request){ .method = SLICE("PATCH"), .target = SLICE("/") }, "PATCH /",
	                   "Content-Length: 0\r\n\r\n");
	check_request_text(&(struct http_request){ .method = SLICE("GET"), .target = SLICE("/"), .body = SLICE("{}") },
	                   "GET /", "Content-Length: 2\r\n\r\n{}");
	check_request_text(
		&(struct http_request){ .method = SLICE("GET"), .target = SLICE("/"), .fresh_connection = true },
		"GET /", "Connection: close\r\n\r\n");
}

/* What a request to the host says of it; false where its address can't be listened on. */
static bool host_field_is(struct stream_listener_options options, const char *name, const char *field)
{
	struct loop *loop = new_loop();
	struct host host;
	struct error err;
	struct stream_listener *probe = stream_listen(loop, &options, host_accept, &host, &err);

	if (probe == NULL) {
		loop_destroy(loop);
		return false;
	}
	stream_listener_close(probe);
	host_init_with(&host, loop, &options);

	struct http_client *client = new_client(loop);
	struct http_request request = request_to(&host.address, "/");
	struct record record;
	char text[100];

	strcpy(request.origin.host, name);
	record_init(&record, client);
	record_send(&record, &request);
	TURN_UNTIL(loop, has_request(&host));
	if (options.address.port == 0)
		snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s:%u\r\n\r\n", field, host.address.port);
	else
		snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", field);
	assert_true(slice_equal_text(buffer_slice(&host.peer.received), text));
	http_client_destroy(client);
	record_destroy(&record);
	host_destroy(&host);
	loop_destroy(loop);
	return true;
}

static void an_ipv6_address_gets_brackets(void **state)
{
	(void)state;
	struct stream_listener_options options = { .address = { .is_ipv6 = true, .bytes = { [15] = 1 } } };

	if (!host_field_is(options, "::1", "[::1]"))
		skip(); /* a machine without IPv6 */
}

static void a_default_port_isnt_named(void **state)
{
	(void)state;
	struct stream_listener_options options = { .address = { .bytes = { 127, 0, 0, 1 }, .port = 80 } };

	if (!host_field_is(options, "127.0.0.1", "127.0.0.1"))
		skip(); /* port 80 needs rights, and may be taken */
}

static void requests_that_would_inject_are_refused(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	const struct http_field injecting = { SLICE("X"), SLICE("a\r\nHost: b") };
	const struct http_field host = { SLICE("host"), SLICE("a") };
	const struct http_field length = { SLICE("Content-Length"), SLICE("1") };
	const struct http_field coding = { SLICE("transfer-encoding"), SLICE("chunked") };
	const struct http_field connection = { SLICE("Connection"), SLICE("close") };
	const struct http_origin origin = { .host = "127.0.0.1", .port = 1 };
	const struct http_request bad[] = {
		{ .origin = origin, .method = SLICE("GET"), .target = SLICE("/a b") },
		{ .origin = origin, .method = SLICE("GET"), .target = SLICE("/a\r\nX: y") },
		{ .origin = origin, .method = SLICE("GET"), .target = SLICE("a") },
		{ .origin = origin, .method = SLICE("GET"), .target = SLICE("") },
		{ .origin = origin, .method = SLICE("GET / HTTP/1.1\r\nX:"), .target = SLICE("/") },
		{ .origin = origin, .method = SLICE(""), .target = SLICE("/") },
		{ .origin = origin, .method = SLICE("GET"), .target = SLICE("/"), .fields = { &injecting, 1 } },
		{ .origin = origin, .method = SLICE("GET"), .target = SLICE("/"), .fields = { &host, 1 } },
		{ .origin = origin, .method = SLICE("GET"), .target = SLICE("/"), .fields = { &length, 1 } },
		{ .origin = origin, .method = SLICE("GET"), .target = SLICE("/"), .fields = { &coding, 1 } },
		{ .origin = origin, .method = SLICE("GET"), .target = SLICE("/"), .fields = { &connection, 1 } },
		{ .origin = { .host = "a\r\nX: y", .port = 1 }, .method = SLICE("GET"), .target = SLICE("/") },
		{ .origin = { .host = "", .port = 1 }, .method = SLICE("GET"), .target = SLICE("/") },
		{ .origin = { .host = "a", .port = 0 }, .method = SLICE("GET"), .target = SLICE("/") },
	};
	struct error err;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_null(http_client_send(client, &bad[i], &COLLECTING, NULL, &err));
		assert_int_equal(err.code, ERROR_SYNTAX);
	}

	struct http_request secure = { .origin = origin, .method = SLICE("GET"), .target = SLICE("/") };

	secure.origin.secure = true;
	assert_null(http_client_send(client, &secure, &COLLECTING, NULL, &err));
	assert_string_equal(err.text, "https without TLS settings");
	http_client_destroy(client);
	loop_destroy(loop);
}

/* ---- connections ---- */

static void connections_are_reused_one_after_the_other_and_not_shared(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct site site;
	struct record records[20];

	site_init(&site, loop);

	struct http_request request = request_to(&site.address, "/a");

	for (size_t i = 0; i < 5; i++) {
		record_init(&records[i], client);
		record_send(&records[i], &request);
		TURN_UNTIL(loop, records[i].done > 0);
		check_record(&records[i], 200, "GET /a \"\"");
		record_destroy(&records[i]);
		assert_int_equal(http_server_connection_count(site.server), 1);
	}
	/* Twenty at once need twenty connections; eight of them are kept. */
	for (size_t i = 0; i < 20; i++) {
		record_init(&records[i], client);
		record_send(&records[i], &request);
	}
	for (size_t i = 0; i < 20; i++) {
		TURN_UNTIL(loop, records[i].done > 0);
		check_record(&records[i], 200, "GET /a \"\"");
		record_destroy(&records[i]);
	}
	TURN_UNTIL(loop, http_server_connection_count(site.server) == HTTP_IDLE_CONNECTIONS_PER_ORIGIN);
	http_client_close_idle(client);
	TURN_UNTIL(loop, http_server_connection_count(site.server) == 0);
	http_client_destroy(client);
	site_destroy(&site);
	loop_destroy(loop);
}

static void an_idle_connection_goes_after_a_minute(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct site site;
	struct record record;

	site_init(&site, loop);
	record_init(&record, client);

	struct http_request request = request_to(&site.address, "/a");

	record_send(&record, &request);
	TURN_UNTIL(loop, record.done > 0);
	turn_for(loop, 2);
	skip_time_ms(59000);
	turn_for(loop, 2);
	assert_int_equal(http_server_connection_count(site.server), 1);
	skip_time_ms(1000);
	TURN_UNTIL(loop, http_server_connection_count(site.server) == 0);
	http_client_destroy(client);
	record_destroy(&record);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_fresh_connection_neither_comes_from_the_pool_nor_goes_there(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct host host;
	struct record record;

	host_init(&host, loop, NULL);

	struct http_request request = request_to(&host.address, "/a");

	for (unsigned i = 1; i <= 4; i++) {
		request.fresh_connection = i >= 2 && i <= 3;
		record_init(&record, client);
		record_send(&record, &request);
		TURN_UNTIL(loop, has_request(&host));
		peer_write(&host.peer, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
		TURN_UNTIL(loop, record.done > 0);
		check_record(&record, 200, "hi");
		if (request.fresh_connection)
			TURN_UNTIL(loop, host.peer.stream == NULL);
		buffer_clear(&host.peer.received);
		record_destroy(&record);
		assert_int_equal(host.accepted, i);
		if (i == 1) { /* the host keeps one peer: this one must not be closed by the next */
			stream_close(host.peer.stream);
			host.peer.stream = NULL;
			turn_for(loop, 2);
		}
	}
	http_client_destroy(client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void unasked_bytes_end_an_idle_connection(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct host host;
	struct record record;

	host_init(&host, loop, NULL);

	struct http_request request = request_to(&host.address, "/a");

	record_init(&record, client);
	record_send(&record, &request);
	TURN_UNTIL(loop, has_request(&host));
	peer_write(&host.peer, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
	TURN_UNTIL(loop, record.done > 0);
	peer_write(&host.peer, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"));
	TURN_UNTIL(loop, host.peer.stream == NULL);

	/* Right behind a response: the response counts, the connection doesn't stay. */
	buffer_clear(&host.peer.received);
	record_destroy(&record);
	record_init(&record, client);
	record_send(&record, &request);
	TURN_UNTIL(loop, has_request(&host));
	peer_write(&host.peer, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
	                             "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"));
	TURN_UNTIL(loop, record.done > 0 && host.peer.stream == NULL);
	check_record(&record, 200, "hi");
	record_destroy(&record);
	http_client_destroy(client);
	host_destroy(&host);
	loop_destroy(loop);
}

/* Fills the pool with one connection, which the server then drops when the next request comes. */
static void check_dropped_connection(const char *method, bool reset, bool some_bytes, unsigned retries)
{
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct host host;
	struct record record;

	host_init(&host, loop, NULL);

	struct http_request request = request_to(&host.address, "/a");

	record_init(&record, client);
	record_send(&record, &request);
	TURN_UNTIL(loop, has_request(&host));
	peer_write(&host.peer, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
	TURN_UNTIL(loop, record.done > 0);
	record_destroy(&record);

	request.method = slice_of(method);
	record_init(&record, client);
	for (unsigned i = 0; i <= retries; i++) {
		buffer_clear(&host.peer.received);
		if (i == 0)
			record_send(&record, &request);
		TURN_UNTIL(loop, has_request(&host));
		assert_int_equal(host.accepted, i + 1);
		if (some_bytes)
			peer_write(&host.peer, SLICE("HTTP/1.1 2"));
		turn_for(loop, 2);
		if (reset)
			stream_abort(host.peer.stream);
		else
			stream_finish(host.peer.stream, NS_PER_S);
		host.peer.stream = NULL;
	}
	TURN_UNTIL(loop, record.done > 0);
	if (reset)
		check_failed(&record, ERROR_CLOSED, "connection reset by peer");
	else
		check_failed(&record, ERROR_CLOSED, some_bytes ? "unexpected EOF" : "EOF");
	assert_int_equal(host.accepted, retries + 1);
	record_destroy(&record);
	http_client_destroy(client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_request_on_a_dropped_idle_connection_is_sent_once_more_if_it_may(void **state)
{
	(void)state;
	check_dropped_connection("GET", false, false, 1);
	check_dropped_connection("PUT", false, false, 1);
	check_dropped_connection("GET", true, false, 1);
	check_dropped_connection("POST", false, false, 0);
	check_dropped_connection("PATCH", true, false, 0);
	check_dropped_connection("GET", false, true, 0); /* the response had begun */
}

/* A body without a length ends with the connection, but not with a reset. */
static void a_body_until_the_end_is_whole_only_if_the_end_is_in_good_order(void **state)
{
	(void)state;
	for (int reset = 0; reset < 2; reset++) {
		struct loop *loop = new_loop();
		struct http_client *client = new_client(loop);
		struct host host;
		struct record record;

		host_init(&host, loop, NULL);

		struct http_request request = request_to(&host.address, "/a");

		record_init(&record, client);
		record_send(&record, &request);
		TURN_UNTIL(loop, has_request(&host));
		peer_write(&host.peer, SLICE("HTTP/1.1 200 OK\r\n\r\nhi"));
		TURN_UNTIL(loop, record.heads > 0);
		if (reset)
			stream_abort(host.peer.stream);
		else
			stream_finish(host.peer.stream, NS_PER_S);
		host.peer.stream = NULL;
		TURN_UNTIL(loop, record.done > 0);
		if (reset)
			check_failed(&record, ERROR_CLOSED, "connection reset by peer");
		else
			check_record(&record, 200, "hi");
		record_destroy(&record);
		http_client_destroy(client);
		host_destroy(&host);
		loop_destroy(loop);
	}
}

static void the_second_try_succeeds_like_any_other(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct host host;
	struct record record;

	host_init(&host, loop, NULL);

	struct http_request request = request_to(&host.address, "/a");

	request.method = SLICE("PUT");
	request.body = SLICE("the body, too");
	for (unsigned i = 0; i < 2; i++) {
		record_init(&record, client);
		buffer_clear(&host.peer.received);
		record_send(&record, &request);
		TURN_UNTIL(loop, has_request(&host));
		if (i == 1) {
			stream_close(host.peer.stream);
			host.peer.stream = NULL;
			buffer_clear(&host.peer.received);
			TURN_UNTIL(loop, received_at_end(&host.peer, "the body, too"));
		}
		peer_write(&host.peer, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
		TURN_UNTIL(loop, record.done > 0);
		check_record(&record, 200, "hi");
		record_destroy(&record);
	}
	assert_int_equal(host.accepted, 2);
	http_client_destroy(client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_paused_exchange_stays_paused_over_a_second_try(void **state)
{
	(void)state;
	enum { BIG_BYTES = 600000 }; /* more than may wait behind a pause */
	char *big = pattern(BIG_BYTES);
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct host host;
	struct record record;

	host_init(&host, loop, NULL);

	struct http_request request = request_to(&host.address, "/a");

	record_init(&record, client);
	record_send(&record, &request);
	TURN_UNTIL(loop, has_request(&host));
	peer_write(&host.peer, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"));
	TURN_UNTIL(loop, record.done > 0);
	record_destroy(&record);

	/* Before the client hears of the reset, it writes. */
	stream_abort(host.peer.stream);
	host.peer.stream = NULL;
	buffer_clear(&host.peer.received);
	record_init(&record, client);
	record_send(&record, &request);
	http_exchange_pause(record.exchange);
	TURN_UNTIL(loop, has_request(&host));
	assert_int_equal(host.accepted, 2);
	peer_write(&host.peer, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 600000\r\n\r\n"));
	peer_write(&host.peer, slice_from(big, BIG_BYTES));
	turn_for(loop, 20);
	assert_int_equal(record.heads, 0);
	http_exchange_resume(record.exchange);
	TURN_UNTIL(loop, record.done > 0);
	assert_false(record.failed);
	assert_int_equal(record.body.length, BIG_BYTES);
	assert_memory_equal(record.body.data, big, BIG_BYTES);
	memory_release(big);
	record_destroy(&record);
	http_client_destroy(client);
	host_destroy(&host);
	loop_destroy(loop);
}

/* ---- failures ---- */

static void a_refused_connection_is_told(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct host host;
	struct record record;

	host_init(&host, loop, NULL);

	struct http_request request = request_to(&host.address, "/a");

	host_destroy(&host);
	record_init(&record, client);
	record_send(&record, &request);
	assert_int_equal(record.done, 0);
	TURN_UNTIL(loop, record.done > 0);
	check_failed(&record, ERROR_SYSTEM, "connection refused");
	assert_int_equal(record.status, 0);
	record_destroy(&record);
	http_client_destroy(client);
	loop_destroy(loop);
}

static void each_deadline_ends_the_exchange(void **state)
{
	(void)state;
	static const struct {
		const char *sent;
		bool first_byte, idle; /* else the total */
		int status;
	} CASES[] = {
		{ "", true, false, 0 },
		{ "HTTP/1.1 200 OK\r\nContent-", true, false, 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", false, true, 200 },
		{ "", false, false, 0 },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", false, false, 200 },
	};
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);

	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct host host;
		struct record record;

		host_init(&host, loop, NULL);

		struct http_request request = request_to(&host.address, "/a");

		request.first_byte_timeout_ns = CASES[i].first_byte ? 10 * (uint64_t)NS_PER_S : 0;
		request.idle_timeout_ns = CASES[i].idle ? 10 * (uint64_t)NS_PER_S : 0;
		request.total_timeout_ns = CASES[i].first_byte || CASES[i].idle ? 0 : 10 * (uint64_t)NS_PER_S;
		record_init(&record, client);
		record_send(&record, &request);
		TURN_UNTIL(loop, has_request(&host));
		peer_write(&host.peer, slice_of(CASES[i].sent));
		TURN_UNTIL(loop, record.heads == (CASES[i].status != 0 ? 1 : 0));
		turn_for(loop, 10);
		skip_time_ms(8000);
		turn_for(loop, 10);
		assert_int_equal(record.done, 0);
		skip_time_ms(2000);
		TURN_UNTIL(loop, record.done > 0);
		check_failed(&record, ERROR_TIMEOUT, "context deadline exceeded");
		assert_int_equal(record.status, CASES[i].status);
		TURN_UNTIL(loop, host.peer.stream == NULL);
		record_destroy(&record);
		host_destroy(&host);
	}
	http_client_destroy(client);
	loop_destroy(loop);
}

static void the_idle_deadline_counts_from_the_last_byte_and_the_total_from_the_start(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);

	for (int with_total = 0; with_total < 2; with_total++) {
		struct host host;
		struct record record;

		host_init(&host, loop, NULL);

		struct http_request request = request_to(&host.address, "/a");

		request.idle_timeout_ns = 10 * (uint64_t)NS_PER_S;
		request.total_timeout_ns = with_total ? 30 * (uint64_t)NS_PER_S : 0;
		record_init(&record, client);
		record_send_with(&record, &request, &STREAMING);
		TURN_UNTIL(loop, has_request(&host));
		peer_write(&host.peer, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"));
		TURN_UNTIL(loop, record.heads == 1);
		for (unsigned i = 1; i <= 6 && record.done == 0; i++) {
			skip_time_ms(7000);
			peer_write(&host.peer, SLICE("x"));
			TURN_UNTIL(loop, record.pieces == i || record.done > 0);
		}
		TURN_UNTIL(loop, record.done > 0);
		if (with_total)
			check_failed(&record, ERROR_TIMEOUT, "context deadline exceeded");
		else
			check_record(&record, 200, "xxxxxx");
		record_destroy(&record);
		host_destroy(&host);
	}
	http_client_destroy(client);
	loop_destroy(loop);
}

static void bodies_over_the_cap_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *response;
		size_t cap;
		bool fits;
	} CASES[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", 5, false }, /* before the body comes */
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 5, true },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n", 5, false },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 5, true },
		{ "HTTP/1.1 200 OK\r\n\r\nhello!", 5, false },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", 0, false },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", 5, false },
	};
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);

	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
		for (int streaming = 0; streaming < 2; streaming++) {
			struct host host;
			struct record record;

			host_init(&host, loop, NULL);

			struct http_request request = request_to(&host.address, "/a");

			request.max_body_bytes = CASES[i].cap;
			record_init(&record, client);
			record_send_with(&record, &request, streaming ? &STREAMING : &COLLECTING);
			TURN_UNTIL(loop, has_request(&host));
			peer_write(&host.peer, slice_of(CASES[i].response));
			TURN_UNTIL(loop, record.done > 0);
			assert_int_equal(record.failed, !CASES[i].fits);
			if (!CASES[i].fits) {
				char root[64];

				snprintf(root, sizeof root, "response body is over %zu bytes", CASES[i].cap);
				check_failed(&record, ERROR_LIMIT, root);
				TURN_UNTIL(loop, host.peer.stream == NULL);
			}
			record_destroy(&record);
			host_destroy(&host);
		}
	http_client_destroy(client);
	loop_destroy(loop);
}

static void redirects_are_not_followed(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct host host;
	struct record record;

	host_init(&host, loop, NULL);

	struct http_request request = request_to(&host.address, "/a");

	record_init(&record, client);
	record_send(&record, &request);
	TURN_UNTIL(loop, has_request(&host));
	peer_write(&host.peer,
	           SLICE("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"));
	TURN_UNTIL(loop, record.done > 0);
	check_record(&record, 302, "");
	record_destroy(&record);
	http_client_destroy(client);
	host_destroy(&host);
	loop_destroy(loop);
}

static void a_response_to_head_leaves_the_connection_usable(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct site site;
	struct record record;

	site_init(&site, loop);

	struct http_request request = request_to(&site.address, "/a");

	for (int i = 0; i < 3; i++) {
		request.method = i % 2 == 0 ? SLICE("HEAD") : SLICE("GET");
		request.max_body_bytes = i % 2 == 0 ? 0 : 100;
		record_init(&record, client);
		record_send(&record, &request);
		TURN_UNTIL(loop, record.done > 0);
		check_record(&record, 200, i % 2 == 0 ? "" : "GET /a \"\"");
		record_destroy(&record);
	}
	assert_int_equal(http_server_connection_count(site.server), 1);
	http_client_destroy(client);
	site_destroy(&site);
	loop_destroy(loop);
}

/* ---- streaming ---- */

static void a_watch_gets_its_events_as_they_come(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct site site;
	struct record record;

	site_init(&site, loop);

	struct http_request request = request_to(&site.address, "/stream");

	record_init(&record, client);
	record_send_with(&record, &request, &STREAMING);
	TURN_UNTIL(loop, record.heads > 0);
	assert_int_equal(record.status, 200);
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(http_call_write(site.call, SLICE("event\n")));
		TURN_UNTIL(loop, record.pieces == i);
	}
	assert_int_equal(record.done, 0);
	http_call_end(site.call);
	TURN_UNTIL(loop, record.done > 0);
	check_record(&record, 200, "event\nevent\nevent\n");
	record_destroy(&record);

	/* One that is cut ends in an error. */
	site.call = NULL;
	record_init(&record, client);
	record_send_with(&record, &request, &STREAMING);
	TURN_UNTIL(loop, record.heads > 0);
	assert_true(http_call_write(site.call, SLICE("event\n")));
	http_call_abort(site.call, false);
	TURN_UNTIL(loop, record.done > 0);
	check_failed(&record, ERROR_CLOSED, "unexpected EOF");
	assert_int_equal(record.pieces, 1);
	record_destroy(&record);
	http_client_destroy(client);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_paused_exchange_takes_nothing_until_resumed(void **state)
{
	(void)state;
	enum { BIG_BYTES = 3 * 1024 * 1024 };
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct site site;
	struct record record, next;
	char *big = pattern(BIG_BYTES);

	site_init(&site, loop);

	struct http_request request = request_to(&site.address, "/hold");

	request.max_body_bytes = BIG_BYTES;
	request.idle_timeout_ns = 10 * (uint64_t)NS_PER_S;
	record_init(&record, client);
	record.pause_in_body = true;
	record_send_with(&record, &request, &STREAMING);
	TURN_UNTIL(loop, site.call != NULL);
	http_call_respond(site.call, 200, NULL, slice_from(big, BIG_BYTES));
	TURN_UNTIL(loop, record.pieces == 1);
	skip_time_ms(50000); /* the idle deadline doesn't run while paused, and the server's for writing is longer */
	turn_for(loop, 20);
	assert_int_equal(record.pieces, 1);
	for (unsigned i = 2; i <= 10; i++) {
		http_exchange_resume(record.exchange);
		assert_int_equal(record.pieces, i - 1); /* not from inside the call */
		TURN_UNTIL(loop, record.pieces == i);
	}
	turn_for(loop, 20);
	assert_int_equal(record.pieces, 10);
	/* Pausing again before the resume took effect wins. */
	http_exchange_resume(record.exchange);
	http_exchange_pause(record.exchange);
	turn_for(loop, 20);
	assert_int_equal(record.pieces, 10);
	record.pause_in_body = false;
	http_exchange_resume(record.exchange);
	TURN_UNTIL(loop, record.done > 0);
	assert_false(record.failed);
	assert_int_equal(record.body.length, BIG_BYTES);
	assert_memory_equal(record.body.data, big, BIG_BYTES);
	memory_release(big);
	record_destroy(&record);

	/* The connection is as good as any other afterwards. */
	request = request_to(&site.address, "/a");
	record_init(&next, client);
	record_send(&next, &request);
	TURN_UNTIL(loop, next.done > 0);
	check_record(&next, 200, "GET /a \"\"");
	assert_int_equal(http_server_connection_count(site.server), 1);
	record_destroy(&next);
	http_client_destroy(client);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_pause_at_the_last_byte_delays_the_end(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct site site;
	struct record record;

	site_init(&site, loop);

	struct http_request request = request_to(&site.address, "/a");

	for (int i = 0; i < 2; i++) {
		record_init(&record, client);
		record.pause_in_body = true;
		record_send_with(&record, &request, &STREAMING);
		TURN_UNTIL(loop, record.pieces == 1);
		turn_for(loop, 20);
		assert_int_equal(record.done, 0);
		http_exchange_resume(record.exchange);
		TURN_UNTIL(loop, record.done == 1);
		check_record(&record, 200, "GET /a \"\"");
		record_destroy(&record);
	}
	assert_int_equal(http_server_connection_count(site.server), 1);
	http_client_destroy(client);
	site_destroy(&site);
	loop_destroy(loop);
}

static void a_large_body_is_sent_whole(void **state)
{
	(void)state;
	enum { BIG_BYTES = 20 * 1024 * 1024 };
	static const struct http_server_handler HANDLER = { .on_body = site_on_body, .on_request = site_on_request };
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct http_server_options options = site_options();
	struct site site;
	struct record record;
	char *big = pattern(BIG_BYTES);

	options.max_body_bytes = BIG_BYTES;
	site_init_with(&site, loop, &options, &HANDLER);

	struct http_request request = request_to(&site.address, "/a");

	request.method = SLICE("POST");
	request.body = slice_from(big, BIG_BYTES);
	record_init(&record, client);
	record_send(&record, &request);
	TURN_UNTIL(loop, record.done > 0);
	check_record(&record, 200, "POST /a \"\"");
	assert_int_equal(site.streamed.length, BIG_BYTES);
	assert_memory_equal(site.streamed.data, big, BIG_BYTES);
	memory_release(big);
	record_destroy(&record);
	http_client_destroy(client);
	site_destroy(&site);
	loop_destroy(loop);
}

/* ---- cancelling ---- */

static void cancelling_closes_the_connection_and_is_silent(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct site site;
	struct record record;

	site_init(&site, loop);

	struct http_request request = request_to(&site.address, "/hold");

	/* At once, before anything is connected. */
	record_init(&record, client);
	record_send(&record, &request);
	http_exchange_cancel(record.exchange);
	turn_for(loop, 10);
	assert_int_equal(record.done, 0);

	record_send(&record, &request);
	TURN_UNTIL(loop, site.call != NULL);
	http_exchange_cancel(record.exchange);
	TURN_UNTIL(loop, http_server_connection_count(site.server) == 0);
	assert_int_equal(site.aborts, 1);
	assert_int_equal(record.done, 0);
	record_destroy(&record);
	http_client_destroy(client);
	site_destroy(&site);
	loop_destroy(loop);
}

static void cancelling_and_destroying_inside_callbacks_is_fine(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct site site;

	site_init(&site, loop);

	struct http_request request = request_to(&site.address, "/a");

	for (int which = 0; which < 5; which++) {
		struct http_client *client = new_client(loop);
		struct record record, other;

		record_init(&record, client);
		record_init(&other, client);
		record.cancel_in_head = which == 0;
		record.cancel_in_body = which == 1;
		record.destroy_in_head = which == 2;
		record.destroy_in_body = which == 3;
		record.destroy_in_done = which == 4;

		struct http_request hold = request_to(&site.address, "/hold");

		record_send(&other, &hold); /* under way when the client goes */
		record_send_with(&record, &request, &STREAMING);
		TURN_UNTIL(loop, which == 4 ? record.done == 1 : record.heads == 1);
		turn_for(loop, 10);
		assert_int_equal(record.done, which == 4 ? 1 : 0);
		assert_int_equal(record.pieces, which == 0 || which == 2 ? 0 : 1);
		assert_int_equal(other.done, 0);
		if (which < 2)
			http_client_destroy(client);
		TURN_UNTIL(loop, http_server_connection_count(site.server) == 0);
		record_destroy(&record);
		record_destroy(&other);
	}
	site_destroy(&site);
	loop_destroy(loop);
}

static void the_next_request_may_be_sent_from_inside_on_done(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	struct http_client *client = new_client(loop);
	struct site site;
	struct record record;

	site_init(&site, loop);

	struct http_request request = request_to(&site.address, "/a");

	record_init(&record, client);
	record.sends_again = true;
	record_send(&record, &request);
	TURN_UNTIL(loop, record.done == 2);
	assert_int_equal(http_server_connection_count(site.server), 1); /* and it uses the same connection */
	assert_true(slice_equal(buffer_slice(&record.body), SLICE("GET /a \"\"GET /a \"\"")));
	record_destroy(&record);
	http_client_destroy(client);
	site_destroy(&site);
	loop_destroy(loop);
}

/* ---- memory ---- */

static void every_failing_allocation_is_survived(void **state)
{
	(void)state;
	struct loop *loop = new_loop();
	size_t descriptors = open_descriptors();
	unsigned failures = 0;
	bool failed = true;

	for (unsigned long n = 1; failed; n++) {
		struct http_client *client = new_client(loop);
		struct site site;
		struct record record;
		struct error err;

		site_init(&site, loop);

		struct http_request request = request_to(&site.address, "/a");

		record_init(&record, client);
		memory_fail_at(n);
		record.exchange = http_client_send(client, &request, &COLLECTING, &record, &err);
		if (record.exchange == NULL)
			assert_int_equal(err.code, ERROR_NO_MEMORY);
		else
			TURN_UNTIL(loop, record.done > 0); /* with whatever */
		failed = memory_allocation_count() >= n;
		memory_fail_at(0);
		failures += record.failed || record.exchange != NULL;
		record_destroy(&record);

		record_init(&record, client);
		record_send(&record, &request);
		TURN_UNTIL(loop, record.done > 0);
		check_record(&record, 200, "GET /a \"\"");
		record_destroy(&record);
		http_client_destroy(client);
		site_destroy(&site);
		turn_for(loop, 1);
		assert_int_equal(open_descriptors(), descriptors);
	}
	assert_true(failures > 0);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(responses_are_taken_or_refused_as_the_vectors_say),
		cmocka_unit_test(requests_are_written_as_they_should),
		cmocka_unit_test(an_ipv6_address_gets_brackets),
		cmocka_unit_test(a_default_port_isnt_named),
		cmocka_unit_test(requests_that_would_inject_are_refused),
		cmocka_unit_test(connections_are_reused_one_after_the_other_and_not_shared),
		cmocka_unit_test(an_idle_connection_goes_after_a_minute),
		cmocka_unit_test(a_fresh_connection_neither_comes_from_the_pool_nor_goes_there),
		cmocka_unit_test(unasked_bytes_end_an_idle_connection),
		cmocka_unit_test(a_request_on_a_dropped_idle_connection_is_sent_once_more_if_it_may),
		cmocka_unit_test(a_body_until_the_end_is_whole_only_if_the_end_is_in_good_order),
		cmocka_unit_test(the_second_try_succeeds_like_any_other),
		cmocka_unit_test(a_paused_exchange_stays_paused_over_a_second_try),
		cmocka_unit_test(a_refused_connection_is_told),
		cmocka_unit_test(each_deadline_ends_the_exchange),
		cmocka_unit_test(the_idle_deadline_counts_from_the_last_byte_and_the_total_from_the_start),
		cmocka_unit_test(bodies_over_the_cap_are_refused),
		cmocka_unit_test(redirects_are_not_followed),
		cmocka_unit_test(a_response_to_head_leaves_the_connection_usable),
		cmocka_unit_test(a_watch_gets_its_events_as_they_come),
		cmocka_unit_test(a_paused_exchange_takes_nothing_until_resumed),
		cmocka_unit_test(a_pause_at_the_last_byte_delays_the_end),
		cmocka_unit_test(a_large_body_is_sent_whole),
		cmocka_unit_test(cancelling_closes_the_connection_and_is_silent),
		cmocka_unit_test(cancelling_and_destroying_inside_callbacks_is_fine),
		cmocka_unit_test(the_next_request_may_be_sent_from_inside_on_done),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
