#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/http_server_internal.h"

enum { DATE_BYTES = 64, CHUNK_SIZE_BYTES = 24 };

/* ---- life ---- */

struct http_call *server_call_create(struct server_connection *connection)
{
	struct http_call *call = memory_allocate(sizeof *call);

	if (call == NULL)
		return NULL;
	call->connection = connection;
	buffer_init(&call->body, connection->server->max_body_bytes);
	connection->call = call;
	return call;
}

static void release_call(void *owner)
{
	struct http_call *call = owner;

	buffer_destroy(&call->body);
	memory_release(call);
}

void server_call_drop(struct http_call *call, struct loop *loop)
{
	if (call->connection->call == call)
		call->connection->call = NULL;
	call->connection = NULL;
	loop_release_later(loop, &call->garbage, release_call, call);
}

/* Whether there is still somebody to answer: not after the end, nor inside on_abort. */
static bool is_answerable(const struct http_call *call)
{
	return call->connection != NULL && call->connection->server != NULL;
}

/* ---- what was asked ---- */

struct slice http_call_method(const struct http_call *call)
{
	return http_parser_method(&call->connection->parser);
}

struct slice http_call_path(const struct http_call *call)
{
	return call->path;
}

struct slice http_call_query(const struct http_call *call)
{
	return call->query;
}

struct http_fields http_call_fields(const struct http_call *call)
{
	return http_parser_fields(&call->connection->parser);
}

struct slice http_call_body(const struct http_call *call)
{
	return buffer_slice(&call->body);
}

bool http_call_is_http10(const struct http_call *call)
{
	return http_parser_is_http10(&call->connection->parser);
}

bool http_call_peer(const struct http_call *call, struct address *ret_address)
{
	return is_answerable(call) && stream_peer_address(call->connection->stream, ret_address);
}

void http_call_set_context(struct http_call *call, void *context)
{
	call->context = context;
}

void *http_call_context(const struct http_call *call)
{
	return call->context;
}

void http_call_pause_body(struct http_call *call)
{
	call->body_paused = true;
}

void http_call_resume_body(struct http_call *call)
{
	if (!call->body_paused)
		return;
	call->body_paused = false;
	if (is_answerable(call))
		server_connection_continue(call->connection);
}

/* ---- the head of an answer ---- */

static void append_date(struct buffer *head, int64_t wall_ns)
{
	static const char DAYS[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char MONTHS[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
		                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm date;

	if (gmtime_r(&seconds, &date) == NULL)
		return;
	buffer_append_format(head, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n", DAYS[date.tm_wday], date.tm_mday,
	                     MONTHS[date.tm_mon], date.tm_year + 1900, date.tm_hour, date.tm_min, date.tm_sec);
}

static void append_start(struct buffer *head, struct server_connection *connection, int status)
{
	buffer_append_format(head, "HTTP/1.1 %d %s\r\n", status, http_status_text(status));
	append_date(head, loop_wall_ns(connection->server->loop));
}

static bool is_ours(struct slice name)
{
	return slice_equal_fold(name, SLICE("Content-Length")) || slice_equal_fold(name, SLICE("Transfer-Encoding")) ||
	       slice_equal_fold(name, SLICE("Connection"));
}

static void append_handler_fields(struct buffer *head, struct http_fields fields)
{
	for (size_t i = 0; i < fields.count; i++)
		if (!is_ours(fields.items[i].name))
			http_append_fields(head, (struct http_fields){ .items = &fields.items[i], .count = 1 });
}

static void append_connection(struct buffer *head, const struct http_call *call)
{
	if (call->connection->close_after)
		buffer_append_text(head, "Connection: close\r\n");
	else if (http_call_is_http10(call))
		buffer_append_text(head, "Connection: keep-alive\r\n");
}

static bool has_no_body(const struct http_call *call, int status)
{
	return status == 204 || status == 304 || status < 200 || slice_equal(http_call_method(call), SLICE("HEAD"));
}

/* Decides how the answer's body is delimited, and whether the connection can go on afterwards. */
static void plan_answer(struct http_call *call, int status, struct http_fields fields, bool has_length)
{
	struct server_connection *connection = call->connection;

	if (has_no_body(call, status))
		call->answer_body = ANSWER_NONE;
	else if (has_length)
		call->answer_body = ANSWER_LENGTH;
	else
		call->answer_body = http_call_is_http10(call) ? ANSWER_UNTIL_CLOSE : ANSWER_CHUNKED;
	if (!http_parser_keep_alive(&connection->parser) || !call->request_complete || connection->server->draining ||
	    call->answer_body == ANSWER_UNTIL_CLOSE || http_fields_have_token(fields, "Connection", "close"))
		connection->close_after = true;
}

/* False when memory is short or the fields are too long. */
static bool write_head(struct http_call *call, int status, struct http_fields fields, const char *content_type)
{
	struct buffer head;
	bool has_length =
		call->answer_body == ANSWER_LENGTH || (call->answer_body == ANSWER_NONE && call->answer_left > 0);

	buffer_init(&head, HTTP_HEADER_BYTES);
	append_start(&head, call->connection, status);
	append_handler_fields(&head, fields);
	if (content_type != NULL)
		buffer_append_format(&head, "Content-Type: %s\r\n", content_type);
	if (has_length && status != 204)
		buffer_append_format(&head, "Content-Length: %llu\r\n", (unsigned long long)call->answer_left);
	else if (call->answer_body == ANSWER_CHUNKED)
		buffer_append_text(&head, "Transfer-Encoding: chunked\r\n");
	append_connection(&head, call);
	buffer_append_text(&head, "\r\n");
	call->begun = true;

	call->failed = head.failed || !server_connection_write(call->connection, buffer_slice(&head));
	buffer_destroy(&head);
	return !call->failed;
}

/* ---- answers ---- */

/* Lets the whole of an answer wait: it is in memory anyway. */
static void make_room(struct http_call *call, size_t body_length)
{
	size_t needed = stream_pending_bytes(call->connection->stream) + HTTP_HEADER_BYTES;

	needed = body_length < SIZE_MAX - needed ? needed + body_length : SIZE_MAX;
	stream_set_write_limit(call->connection->stream,
	                       needed > NET_STREAM_WRITE_BYTES ? needed : NET_STREAM_WRITE_BYTES);
}

/* The answer is written: ends the call, and the connection if it must not go on. */
static void end_answer(struct http_call *call)
{
	struct server_connection *connection = call->connection;

	if (call->answer_body == ANSWER_CHUNKED && !call->failed)
		call->failed = !server_connection_write(connection, SLICE("0\r\n\r\n"));
	if (call->failed || (call->answer_body == ANSWER_LENGTH && call->answer_left > 0)) {
		http_call_abort(call, true); /* the peer must not take it for complete */
		return;
	}
	if (connection->close_after || connection->server->draining) {
		server_connection_end(connection, END_FINISH, false);
		return;
	}
	server_call_drop(call, connection->server->loop);
	connection->served = true;
	http_parser_reset(&connection->parser);
	server_connection_continue(connection);
}

static void respond(struct http_call *call, int status, struct http_fields fields, const char *content_type,
                    struct slice body)
{
	struct error err;

	if (!is_answerable(call) || call->begun)
		return;
	if (!http_fields_check(fields, &err) ||
	    (content_type != NULL && !http_is_field_value(slice_of(content_type)))) {
		status = 500;
		fields = (struct http_fields){ 0 };
		content_type = NULL;
		body = (struct slice){ 0 };
	}
	plan_answer(call, status, fields, true);
	call->answer_left = body.length;
	make_room(call, body.length);
	if (write_head(call, status, fields, content_type) && call->answer_body == ANSWER_LENGTH)
		call->failed = !server_connection_write(call->connection, body);
	call->answer_left = 0;
	end_answer(call);
}

void http_call_respond(struct http_call *call, int status, const char *content_type, struct slice body)
{
	respond(call, status, (struct http_fields){ 0 }, content_type, body);
}

void http_call_respond_with(struct http_call *call, int status, struct http_fields fields, struct slice body)
{
	respond(call, status, fields, NULL, body);
}

void server_write_refusal(struct server_connection *connection, int status, const char *reason)
{
	struct buffer answer;
	struct slice method = http_parser_method(&connection->parser);
	size_t length = strlen(http_status_text(status)) + strlen(reason) + sizeof "400 : \n" - 1;

	buffer_init(&answer, HTTP_HEADER_BYTES);
	append_start(&answer, connection, status);
	buffer_append_format(
		&answer, "Content-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		length);
	if (!slice_equal(method, SLICE("HEAD")))
		buffer_append_format(&answer, "%d %s: %s\n", status, http_status_text(status), reason);
	if (!answer.failed)
		(void)server_connection_write(connection, buffer_slice(&answer)); /* the connection ends either way */
	buffer_destroy(&answer);
}

void http_call_begin(struct http_call *call, int status, struct http_fields fields)
{
	struct error err;
	uint64_t length = 0;

	if (!is_answerable(call) || call->begun)
		return;
	call->broken = !http_fields_check(fields, &err);
	if (call->broken) {
		status = 500;
		fields = (struct http_fields){ 0 };
	}

	bool has_length = call->broken || slice_to_u64(http_fields_find(fields, "Content-Length"), &length);

	plan_answer(call, status, fields, has_length);
	call->answer_left = length;
	make_room(call, 0);
	if (!write_head(call, status, fields, NULL))
		server_connection_continue(call->connection); /* which tells the handler, but not from in here */
}

static bool write_chunk(struct server_connection *connection, struct slice bytes)
{
	char size[CHUNK_SIZE_BYTES];
	int length = snprintf(size, sizeof size, "%zx\r\n", bytes.length);

	/* All or nothing: half a chunk would be worse than none. */
	if (stream_pending_bytes(connection->stream) + bytes.length + sizeof size > NET_STREAM_WRITE_BYTES)
		return false;
	return server_connection_write(connection, slice_from(size, (size_t)length)) &&
	       server_connection_write(connection, bytes) && server_connection_write(connection, SLICE("\r\n"));
}

bool http_call_write(struct http_call *call, struct slice bytes)
{
	struct server_connection *connection = call->connection;

	if (!is_answerable(call) || call->failed)
		return false;
	if (call->broken || call->answer_body == ANSWER_NONE || bytes.length == 0)
		return true;
	if (call->answer_body == ANSWER_CHUNKED) {
		call->failed = !write_chunk(connection, bytes);
	} else if (call->answer_body == ANSWER_LENGTH && bytes.length > call->answer_left) {
		call->failed = true;
	} else {
		call->failed = !server_connection_write(connection, bytes);
		call->answer_left -= call->answer_body == ANSWER_LENGTH ? bytes.length : 0;
	}
	return !call->failed;
}

size_t http_call_pending_bytes(const struct http_call *call)
{
	return is_answerable(call) ? stream_pending_bytes(call->connection->stream) : 0;
}

void http_call_end(struct http_call *call)
{
	if (!is_answerable(call))
		return;
	if (call->begun)
		end_answer(call);
	else
		http_call_respond(call, 200, NULL, SLICE(""));
}

void http_call_abort(struct http_call *call, bool reset)
{
	if (is_answerable(call))
		server_connection_end(call->connection, reset ? END_RESET : END_FINISH, false);
}

/* ---- upgrade ---- */

struct stream *http_call_upgrade(struct http_call *call, struct http_fields fields, struct slice *ret_extra,
                                 struct error *err)
{
	struct server_connection *connection = call->connection;
	struct stream *stream = is_answerable(call) ? connection->stream : NULL;
	struct buffer head;

	if (stream == NULL || call->begun) {
		error_set(err, ERROR_CLOSED, "the call is answered or gone");
		return NULL;
	}
	if (http_call_is_http10(call) || !call->request_complete) {
		error_set(err, ERROR_SYNTAX, "only a complete HTTP/1.1 request can be upgraded");
		return NULL;
	}
	if (!http_fields_check(fields, err))
		return NULL;
	/* What came behind the request stays readable until the connection's memory goes. */
	if (connection->unparsed != NULL)
		buffer_append_slice(&connection->input, *connection->unparsed);
	buffer_init(&head, HTTP_HEADER_BYTES);
	append_start(&head, connection, 101);
	http_append_fields(&head, fields);
	buffer_append_text(&head, "\r\n");

	bool written = !connection->input.failed && buffer_check(&head, "the head of the answer", err) &&
	               stream_write(stream, buffer_slice(&head), err);

	buffer_destroy(&head);
	if (connection->input.failed)
		error_set(err, ERROR_NO_MEMORY, "no memory for what came behind the request");
	if (!written) {
		if (connection->unparsed != NULL)
			buffer_release(&connection->input);
		return NULL;
	}
	*ret_extra = buffer_slice(&connection->input);
	stream_set_handler(stream, &(struct stream_handler){ 0 }, NULL);
	stream_resume(stream);
	server_connection_end(connection, END_KEEP, false);
	return stream;
}
