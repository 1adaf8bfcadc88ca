/*
 * A connection takes one request after the other: the next one is looked at only when the one before is answered and
 * most of the answer has left. Until then what comes waits in `input`, and the stream is paused as soon as anything
 * waits there: that is the back-pressure.
 *
 * Handlers may do anything from inside their callbacks: answer, cut the connection, destroy the server. Closed
 * connections and calls that are gone keep their memory until the end of the turn, with `server` or `connection` NULL,
 * and each callback is followed by a look at that.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "net/http_server_internal.h"

static void on_data(void *context, struct slice bytes);
static void on_drained(void *context);
static void on_close(void *context, const struct error *err);

static const struct stream_handler STREAM_HANDLER = {
	.on_data = on_data,
	.on_drained = on_drained,
	.on_close = on_close,
};

static bool is_open(const struct server_connection *connection)
{
	return connection->server != NULL;
}

/* ---- end ---- */

static void release_connection(void *owner)
{
	struct server_connection *connection = owner;

	http_parser_reset(&connection->parser);
	buffer_destroy(&connection->input);
	memory_release(connection);
}

static void end_stream(struct server_connection *connection, enum connection_end end)
{
	switch (end) {
	case END_FINISH:
		stream_finish(connection->stream, (uint64_t)HTTP_SERVER_LINGER_MS * NS_PER_MS);
		break;
	case END_CLOSE:
		stream_close(connection->stream);
		break;
	case END_RESET:
		stream_abort(connection->stream);
		break;
	case END_KEEP:
		break;
	}
	connection->stream = NULL;
}

void server_connection_end(struct server_connection *connection, enum connection_end end, bool tell)
{
	struct http_server *server = connection->server;
	struct http_call *call = connection->call;

	if (!is_open(connection))
		return;
	server_remove_connection(connection);
	loop_timer_stop(server->loop, &connection->read_timer);
	loop_timer_stop(server->loop, &connection->write_timer);
	loop_task_cancel(server->loop, &connection->task);
	end_stream(connection, end);
	loop_release_later(server->loop, &connection->garbage, release_connection, connection);
	if (call == NULL)
		return;
	/* The call can still be looked at while the handler is told. */
	if (tell && call->seen && server->handler.on_abort != NULL)
		server->handler.on_abort(server->context, call);
	server_call_drop(call, server->loop);
}

/* Answers a request that can't be served and closes; an answer that has begun already is cut, lest it look complete. */
static void refuse(struct server_connection *connection, int status, const char *reason)
{
	bool begun = connection->call != NULL && connection->call->begun;

	if (!begun)
		server_write_refusal(connection, status, reason);
	server_connection_end(connection, begun ? END_RESET : END_FINISH, true);
}

bool server_connection_is_idle(const struct server_connection *connection)
{
	return connection->call == NULL && !connection->parser.begun && connection->input.length == 0;
}

/* Whether the request's body, or its end, is still to be read, and may be now. */
static bool awaits_body(const struct http_call *call)
{
	return !call->request_complete && !call->refused && !call->body_paused;
}

/* ---- deadlines ---- */

static void read_late(void *context)
{
	struct server_connection *connection = context;

	if (connection->phase == READ_PHASE_HEAD && connection->parser.begun)
		refuse(connection, 408, "the request's headers didn't come in time");
	else if (connection->phase == READ_PHASE_BODY)
		refuse(connection, 408, "the request's body didn't come in time");
	else
		server_connection_end(connection, END_FINISH, false);
}

static enum read_phase current_phase(const struct server_connection *connection)
{
	const struct http_call *call = connection->call;

	if (call != NULL)
		return awaits_body(call) ? READ_PHASE_BODY : READ_PHASE_NONE;
	if (connection->parser.begun || !connection->served)
		return READ_PHASE_HEAD;
	/* While the peer still takes answers, the time for the next request doesn't run yet. */
	return stream_pending_bytes(connection->stream) > 0 ? READ_PHASE_NONE : READ_PHASE_IDLE;
}

static void update_deadline(struct server_connection *connection)
{
	struct http_server *server = connection->server;
	enum read_phase phase = current_phase(connection);

	if (phase == connection->phase)
		return;
	connection->phase = phase;
	if (phase == READ_PHASE_NONE) {
		loop_timer_stop(server->loop, &connection->read_timer);
		return;
	}

	uint64_t timeout_ns = phase == READ_PHASE_IDLE   ? server->idle_timeout_ns
	                      : phase == READ_PHASE_HEAD ? server->header_timeout_ns
	                                                 : server->body_timeout_ns;

	loop_timer_start(server->loop, &connection->read_timer, timeout_ns, read_late, connection);
}

static void watch_writing(struct server_connection *connection);

static void write_late(void *context)
{
	struct server_connection *connection = context;
	uint64_t taken_bytes = connection->written_bytes - stream_pending_bytes(connection->stream);

	if (taken_bytes > connection->taken_bytes)
		watch_writing(connection);
	else
		server_connection_end(connection, END_RESET, true);
}

static void watch_writing(struct server_connection *connection)
{
	connection->taken_bytes = connection->written_bytes - stream_pending_bytes(connection->stream);
	loop_timer_start(connection->server->loop, &connection->write_timer, connection->server->write_timeout_ns,
	                 write_late, connection);
}

bool server_connection_write(struct server_connection *connection, struct slice bytes)
{
	struct error err;

	if (!stream_write(connection->stream, bytes, &err))
		return false;
	connection->written_bytes += bytes.length;
	if (!loop_timer_running(&connection->write_timer))
		watch_writing(connection);
	return true;
}

static void on_drained(void *context)
{
	struct server_connection *connection = context;
	struct http_server *server = connection->server;
	struct http_call *call = connection->call;

	loop_timer_stop(server->loop, &connection->write_timer);
	if (call != NULL && call->begun && !call->failed && server->handler.on_drained != NULL)
		server->handler.on_drained(server->context, call);
	else if (call == NULL && connection->input.length > 0)
		server_connection_continue(connection);
	else
		update_deadline(connection);
}

/* ---- requests ---- */

/* Path and query of a target in origin form, absolute form, or "*" (RFC 9112 3.2). */
static bool split_target(struct http_call *call, struct slice target)
{
	struct slice rest = target;

	if (target.length > 0 && target.data[0] != '/' && !slice_equal(target, SLICE("*"))) {
		slice_take_until(&rest, ':'); /* scheme://authority/path */
		if (!slice_starts_with(rest, SLICE("//")))
			return false;
		rest = slice_from_offset(rest, 2);
		while (rest.length > 0 && rest.data[0] != '/' && rest.data[0] != '?')
			rest = slice_from_offset(rest, 1);
	}
	call->path = slice_take_until(&rest, '?');
	call->query = rest;
	if (call->path.length == 0)
		call->path = SLICE("/");
	return true;
}

/* The status and reason with which a request is refused by its head alone; 0: it isn't. */
static int check_head(struct server_connection *connection, const char **ret_reason)
{
	struct slice expect = http_fields_find(http_parser_fields(&connection->parser), "Expect");
	uint64_t length = 0;

	if (!split_target(connection->call, http_parser_target(&connection->parser))) {
		*ret_reason = "malformed request target";
		return 400;
	}
	if (http_parser_length(&connection->parser, &length) && length > connection->server->max_body_bytes) {
		*ret_reason = "the body is too long";
		return 413;
	}
	if (expect.data != NULL && !http_call_is_http10(connection->call) &&
	    !slice_equal_fold(expect, SLICE("100-continue"))) {
		*ret_reason = "unknown expectation";
		return 417;
	}
	*ret_reason = NULL;
	return 0;
}

/* The head is there: makes the call and asks the handler whether it wants the body. */
static void begin_request(struct server_connection *connection)
{
	struct http_server *server = connection->server;
	struct http_call *call = server_call_create(connection);
	const char *reason;

	if (call == NULL) {
		refuse(connection, 503, "out of memory");
		return;
	}

	int status = check_head(connection, &reason);

	if (status != 0) {
		refuse(connection, status, reason);
		return;
	}
	call->request_complete = !http_parser_has_body(&connection->parser);
	if (server->handler.on_head != NULL) {
		call->seen = true;
		call->refused = !server->handler.on_head(server->context, call);
		if (call->refused && call->connection != NULL && !call->begun)
			http_call_respond(call, 500, NULL, SLICE(""));
		if (call->connection == NULL || call->refused)
			return;
	}

	struct slice expect = http_fields_find(http_parser_fields(&connection->parser), "Expect");

	if (expect.data != NULL && !call->request_complete && !call->begun && !http_call_is_http10(call) &&
	    !server_connection_write(connection, SLICE("HTTP/1.1 100 Continue\r\n\r\n")))
		server_connection_end(connection, END_CLOSE, true);
}

static void take_body(struct server_connection *connection, struct slice bytes)
{
	struct http_server *server = connection->server;
	struct http_call *call = connection->call;

	if (bytes.length > server->max_body_bytes - call->body_bytes) {
		refuse(connection, 413, "the body is too long");
		return;
	}
	call->body_bytes += bytes.length;
	if (server->handler.on_body != NULL) {
		call->seen = true;
		server->handler.on_body(server->context, call, bytes);
		return;
	}
	buffer_append_slice(&call->body, bytes);
	if (call->body.failed)
		refuse(connection, 503, "out of memory");
}

static void complete_request(struct server_connection *connection)
{
	struct http_server *server = connection->server;
	struct http_call *call = connection->call;

	call->request_complete = true;
	call->seen = true;
	server->handler.on_request(server->context, call);
}

static void refuse_malformed(struct server_connection *connection, const struct error *err)
{
	static const int STATUSES[] = {
		[HTTP_FAULT_MALFORMED] = 400, [HTTP_FAULT_TARGET_TOO_LONG] = 414, [HTTP_FAULT_HEAD_TOO_LONG] = 431,
		[HTTP_FAULT_METHOD] = 501,    [HTTP_FAULT_CODING] = 501,          [HTTP_FAULT_VERSION] = 505,
		[HTTP_FAULT_MEMORY] = 503,
	};

	refuse(connection, STATUSES[connection->parser.fault], error_root(err));
}

/* ---- reading ---- */

static bool may_parse(const struct server_connection *connection)
{
	if (!is_open(connection))
		return false;
	if (connection->call != NULL)
		return awaits_body(connection->call);
	return stream_pending_bytes(connection->stream) <= HTTP_SERVER_AHEAD_BYTES;
}

/* Makes of *bytes what can be made now. */
static void parse(struct server_connection *connection, struct slice *bytes)
{
	struct slice body;
	struct error err;

	connection->unparsed = bytes;
	while (may_parse(connection)) {
		enum http_parser_event event = http_parser_next(&connection->parser, bytes, &body, &err);

		if (event == HTTP_PARSER_MORE)
			break;
		if (event == HTTP_PARSER_HEAD)
			begin_request(connection);
		else if (event == HTTP_PARSER_BODY)
			take_body(connection, body);
		else if (event == HTTP_PARSER_DONE)
			complete_request(connection);
		else
			refuse_malformed(connection, &err);
		/* Without a body the request is complete with its head. */
		if (event == HTTP_PARSER_HEAD && is_open(connection) && connection->call != NULL &&
		    connection->call->request_complete && !connection->call->refused)
			complete_request(connection);
	}
	connection->unparsed = NULL;
}

/* Parses, keeps what must wait, and reads on only if nothing waits. */
static void take_bytes(struct server_connection *connection, struct slice bytes)
{
	parse(connection, &bytes);
	if (!is_open(connection))
		return;
	buffer_append_slice(&connection->input, bytes);
	if (connection->input.failed) {
		server_connection_end(connection, END_CLOSE, true);
		return;
	}
	if (connection->input.length > 0 || (connection->call != NULL && connection->call->body_paused))
		stream_pause(connection->stream);
	else
		stream_resume(connection->stream);
	update_deadline(connection);
}

static void on_data(void *context, struct slice bytes)
{
	struct server_connection *connection = context;

	if (connection->input.length > 0) {
		buffer_append_slice(&connection->input, bytes);
		if (connection->input.failed)
			server_connection_end(connection, END_CLOSE, true);
		return;
	}
	take_bytes(connection, bytes);
}

static void continue_reading(void *context)
{
	struct server_connection *connection = context;
	struct buffer waiting = connection->input;

	if (connection->call != NULL && connection->call->failed) {
		server_connection_end(connection, END_RESET, true);
		return;
	}
	buffer_init_secret(&connection->input, NET_TURN_READ_BYTES);
	take_bytes(connection, buffer_slice(&waiting));
	buffer_destroy(&waiting);
}

void server_connection_continue(struct server_connection *connection)
{
	connection->phase = READ_PHASE_NONE;
	loop_timer_stop(connection->server->loop, &connection->read_timer);
	loop_run_soon(connection->server->loop, &connection->task, continue_reading, connection);
}

static void on_close(void *context, const struct error *err)
{
	(void)err;
	server_connection_end(context, END_KEEP, true);
}

void server_connection_start(struct http_server *server, struct stream *stream)
{
	struct server_connection *connection = memory_allocate(sizeof *connection);

	if (connection == NULL) {
		stream_close(stream);
		return;
	}
	*connection = (struct server_connection){
		.server = server,
		.next = server->connections,
		.stream = stream,
	};
	buffer_init_secret(&connection->input, NET_TURN_READ_BYTES);
	http_parser_init_request(&connection->parser);
	if (server->connections != NULL)
		server->connections->previous = connection;
	server->connections = connection;
	server->connection_count++;
	stream_set_handler(stream, &STREAM_HANDLER, connection);
	update_deadline(connection);
}
