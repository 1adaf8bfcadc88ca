/*
 * An exchange reads its response piece by piece and calls its owner between the pieces. The owner may cancel it, or
 * destroy the whole client, from inside any callback: `client` is NULL then, and the memory stays until the end of the
 * turn.
 */
#include "base/memory.h"
#include "net/http_client_internal.h"

enum { BELIEVED_BYTES = 128 * 1024 }; /* room made on the word of a Content-Length */

static bool is_over(const struct http_exchange *exchange)
{
	return exchange->client == NULL;
}

/* ---- end ---- */

void exchange_release(struct http_exchange *exchange)
{
	http_parser_reset(&exchange->parser);
	buffer_destroy(&exchange->request);
	buffer_destroy(&exchange->body);
	buffer_destroy(&exchange->waiting);
	memory_release(exchange);
}

static void release_exchange(void *owner)
{
	exchange_release(owner);
}

void exchange_detach(struct http_exchange *exchange)
{
	struct http_client *client = exchange->client;

	if (exchange->previous != NULL)
		exchange->previous->next = exchange->next;
	else
		client->exchanges = exchange->next;
	if (exchange->next != NULL)
		exchange->next->previous = exchange->previous;
	loop_timer_stop(client->loop, &exchange->total_timer);
	loop_timer_stop(client->loop, &exchange->phase_timer);
	loop_task_cancel(client->loop, &exchange->resume_task);
	exchange->client = NULL;
	exchange->connection = NULL;
	loop_release_later(client->loop, &exchange->garbage, release_exchange, exchange);
}

static struct http_response make_response(const struct http_exchange *exchange)
{
	return (struct http_response){
		.status = http_parser_status(&exchange->parser),
		.fields = http_parser_fields(&exchange->parser),
		.body = buffer_slice(&exchange->body),
	};
}

static void fail(struct http_exchange *exchange, const struct error *err)
{
	struct client_connection *connection = exchange->connection;
	struct http_response response = make_response(exchange);

	response.body = (struct slice){ 0 };
	exchange_detach(exchange);
	if (connection != NULL)
		client_connection_close(connection);
	exchange->handler.on_done(exchange->context, exchange->head_came ? &response : NULL, err);
}

/* The response is there; `clean`: and nothing behind it. */
static void complete(struct http_exchange *exchange, bool clean)
{
	struct client_connection *connection = exchange->connection;
	struct http_response response = make_response(exchange);

	exchange_detach(exchange);
	if (connection != NULL) {
		if (clean && !exchange->fresh_connection && http_parser_keep_alive(&exchange->parser) &&
		    stream_pending_bytes(connection->stream) == 0) {
			client_connection_keep(connection);
		} else {
			connection->exchange = NULL;
			client_connection_close(connection);
		}
	}
	exchange->handler.on_done(exchange->context, &response, NULL);
}

void http_exchange_cancel(struct http_exchange *exchange)
{
	struct client_connection *connection = exchange->connection;

	if (is_over(exchange))
		return;
	exchange_detach(exchange);
	if (connection != NULL)
		client_connection_close(connection);
}

/* ---- deadlines ---- */

static void fail_late(void *context)
{
	struct http_exchange *exchange = context;
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	error_wrap(&err, exchange->head_came ? "reading the response's body" : "waiting for the response");
	fail(exchange, &err);
}

void exchange_start_total_timer(struct http_exchange *exchange, uint64_t timeout_ns)
{
	if (timeout_ns > 0)
		loop_timer_start(exchange->client->loop, &exchange->total_timer, timeout_ns, fail_late, exchange);
}

static void start_phase_timer(struct http_exchange *exchange)
{
	uint64_t timeout_ns = exchange->head_came ? exchange->idle_timeout_ns : exchange->first_byte_timeout_ns;

	if (timeout_ns > 0 && !exchange->paused)
		loop_timer_start(exchange->client->loop, &exchange->phase_timer, timeout_ns, fail_late, exchange);
	else
		loop_timer_stop(exchange->client->loop, &exchange->phase_timer);
}

void exchange_connected(struct http_exchange *exchange)
{
	/* Comes again when the request has left altogether: the time counts from there. */
	if (!exchange->head_came)
		start_phase_timer(exchange);
}

/* ---- the response ---- */

static void fail_too_long(struct http_exchange *exchange)
{
	struct error err;

	error_set(&err, ERROR_LIMIT, "response body is over %zu bytes", exchange->max_body_bytes);
	fail(exchange, &err);
}

static void take_head(struct http_exchange *exchange)
{
	struct http_response response = make_response(exchange);
	uint64_t length = 0;
	struct error err;

	exchange->head_came = true;
	if (response.status == 101) {
		error_set(&err, ERROR_SYNTAX, "malformed HTTP response: status 101 without a request for it");
		fail(exchange, &err);
		return;
	}
	if (http_parser_has_body(&exchange->parser) && http_parser_length(&exchange->parser, &length) &&
	    length > exchange->max_body_bytes) {
		fail_too_long(exchange);
		return;
	}
	start_phase_timer(exchange);
	/* At once what the peer announces, up to a size that is no risk to believe: a body that grows is copied each time. */
	if (exchange->handler.on_body == NULL && length > 0)
		(void)buffer_reserve(&exchange->body, length < BELIEVED_BYTES ? (size_t)length : BELIEVED_BYTES);
	if (exchange->handler.on_head != NULL)
		exchange->handler.on_head(exchange->context, &response);
}

static void take_body(struct http_exchange *exchange, struct slice bytes)
{
	struct error err;

	if (bytes.length > exchange->max_body_bytes - exchange->body_bytes) {
		fail_too_long(exchange);
		return;
	}
	exchange->body_bytes += bytes.length;
	if (exchange->handler.on_body != NULL) {
		exchange->handler.on_body(exchange->context, bytes);
		return;
	}
	buffer_append_slice(&exchange->body, bytes);
	if (!buffer_check(&exchange->body, "the response body", &err))
		fail(exchange, &err);
}

/* Makes of *bytes what can be made until the exchange is over or paused. */
static void parse(struct http_exchange *exchange, struct slice *bytes)
{
	while (!is_over(exchange) && !exchange->paused) {
		struct slice body;
		struct error err;

		switch (http_parser_next(&exchange->parser, bytes, &body, &err)) {
		case HTTP_PARSER_MORE:
			return;
		case HTTP_PARSER_HEAD:
			take_head(exchange);
			break;
		case HTTP_PARSER_BODY:
			take_body(exchange, body);
			break;
		case HTTP_PARSER_DONE:
			complete(exchange, bytes->length == 0);
			break;
		case HTTP_PARSER_FAILED:
			fail(exchange, &err);
			break;
		}
	}
}

static void take_bytes(struct http_exchange *exchange, struct slice bytes)
{
	struct error err;

	parse(exchange, &bytes);
	if (is_over(exchange))
		return;
	buffer_append_slice(&exchange->waiting, bytes);
	if (!buffer_check(&exchange->waiting, "what waits behind a pause", &err))
		fail(exchange, &err);
	else if (exchange->head_came)
		start_phase_timer(exchange);
}

void exchange_data(struct http_exchange *exchange, struct slice bytes)
{
	buffer_release(&exchange->request); /* with the first byte of the response it can't be sent again */
	take_bytes(exchange, bytes);
}

/* ---- pause ---- */

void http_exchange_pause(struct http_exchange *exchange)
{
	if (is_over(exchange))
		return;
	exchange->paused = true;
	loop_timer_stop(exchange->client->loop, &exchange->phase_timer);
	loop_task_cancel(exchange->client->loop, &exchange->resume_task);
	if (exchange->connection != NULL)
		stream_pause(exchange->connection->stream);
}

static void resume(void *context)
{
	struct http_exchange *exchange = context;
	struct buffer waiting = exchange->waiting;

	buffer_init(&exchange->waiting, NET_TURN_READ_BYTES);
	exchange->paused = false;
	stream_resume(exchange->connection->stream); /* first, for the connection may be another's afterwards */
	take_bytes(exchange, buffer_slice(&waiting));
	buffer_destroy(&waiting);
}

void http_exchange_resume(struct http_exchange *exchange)
{
	if (!is_over(exchange) && exchange->paused)
		loop_run_soon(exchange->client->loop, &exchange->resume_task, resume, exchange);
}

/* ---- a lost connection ---- */

/* Whether the peer just dropped a connection that had been idle, see http_client.h. */
static bool may_retry(const struct http_exchange *exchange, const struct client_connection *connection,
                      const struct error *err)
{
	return connection->reused && exchange->idempotent && !exchange->parser.begun &&
	       (err->code == ERROR_ENDED || err->code == ERROR_CLOSED);
}

void exchange_lost(struct http_exchange *exchange, const struct error *err)
{
	struct client_connection *connection = exchange->connection;
	bool retry = may_retry(exchange, connection, err);
	bool ended = err->code == ERROR_ENDED;
	struct error failure;

	exchange->connection = NULL;
	client_connection_close(connection);
	if (retry) {
		/* Once only: that connection will not be a reused one. */
		if (!client_start_exchange(exchange, false, &failure))
			fail(exchange, &failure);
	} else if (ended && http_parser_finish(&exchange->parser, &failure)) {
		complete(exchange, false);
	} else {
		fail(exchange, ended ? &failure : err);
	}
}
