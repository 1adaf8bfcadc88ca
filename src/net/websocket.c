/*
 * The states follow the connection: shaking hands (clients only), open, closing (our close frame went first). Whatever
 * ends it leads to end(), which hands the stream to its background sending (stream_finish waits for the peer's end, so
 * nothing sent is lost to a reset) and tells the owner. A detached websocket goes the same way without an owner; the
 * loop keeps account of it.
 */
#include "net/websocket.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/http_parser.h"
#include "net/loop_internal.h"
#include "net/websocket_handshake.h"

enum state { STATE_HANDSHAKE, STATE_OPEN, STATE_CLOSING, STATE_OVER };

/* What only a client's handshake needs. */
struct handshake {
	struct http_parser parser;
	char key[WEBSOCKET_KEY_BYTES];
};

struct websocket {
	struct loop *loop;
	struct stream *stream; /* NULL once it is gone */
	enum state state;
	bool detached; /* no owner any more: no callbacks */
	struct websocket_handler handler;
	void *context;
	struct websocket_engine engine;
	struct handshake *handshake; /* NULL after it */
	struct buffer early;         /* server: what came right behind the request */
	bool failing;                /* the task is about to end the connection */
	struct error *failure;       /* why; NULL: no memory to say more */
	struct loop_timer timer;     /* handshake, then closing */
	struct loop_task task;
	struct loop_garbage garbage;
	struct loop_leftover leftover;
};

static const struct stream_handler STREAM_HANDLER;

static bool is_over(const struct websocket *websocket)
{
	return websocket->state == STATE_OVER;
}

/* ---- life ---- */

static bool fill_random(void *context, void *data, size_t length)
{
	return loop_random(context, data, length);
}

static struct websocket *create(struct loop *loop, enum websocket_role role, size_t max_message_bytes,
                                const struct websocket_handler *handler, void *context, struct error *err)
{
	struct websocket *websocket = memory_allocate(sizeof *websocket);

	if (websocket == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a websocket");
		return NULL;
	}
	websocket->loop = loop;
	websocket->handler = *handler;
	websocket->context = context;
	websocket_engine_init(&websocket->engine, role, max_message_bytes, fill_random, loop);
	buffer_init(&websocket->early, NET_TURN_READ_BYTES);
	return websocket;
}

static void drop_handshake(struct websocket *websocket)
{
	if (websocket->handshake != NULL)
		http_parser_reset(&websocket->handshake->parser);
	memory_release(websocket->handshake);
	websocket->handshake = NULL;
}

static void release_websocket(void *owner)
{
	struct websocket *websocket = owner;

	drop_handshake(websocket);
	websocket_engine_destroy(&websocket->engine);
	buffer_destroy(&websocket->early);
	memory_release(websocket->failure);
	memory_release(websocket);
}

/* ---- end ---- */

/* Lets go of the stream: what was written still goes out. */
static void drop_stream(struct websocket *websocket)
{
	struct stream *stream = websocket->stream;

	websocket->stream = NULL;
	if (stream == NULL)
		return;
	if (websocket->state != STATE_HANDSHAKE && stream_pending_bytes(stream) > 0)
		stream_finish(stream, (uint64_t)WEBSOCKET_CLOSE_REPLY_TIMEOUT_MS * NS_PER_MS);
	else
		stream_close(stream);
}

static void end_quietly(struct websocket *websocket)
{
	if (is_over(websocket))
		return;
	drop_stream(websocket);
	websocket->state = STATE_OVER;
	loop_timer_stop(websocket->loop, &websocket->timer);
	loop_task_cancel(websocket->loop, &websocket->task);
	loop_leftover_remove(websocket->loop, &websocket->leftover);
	loop_release_later(websocket->loop, &websocket->garbage, release_websocket, websocket);
}

static void end(struct websocket *websocket, int code, struct slice reason, const struct error *err)
{
	end_quietly(websocket);
	if (!websocket->detached)
		websocket->handler.on_close(websocket->context, code, reason, err);
}

/* The connection broke, without a word from the peer. */
static void end_broken(struct websocket *websocket, const struct error *err)
{
	end(websocket, WEBSOCKET_ABNORMAL, (struct slice){ 0 }, err);
}

static void fail_from_task(void *context)
{
	struct websocket *websocket = context;
	struct error err;

	error_set(&err, ERROR_NO_MEMORY, "no memory for the websocket");
	end_broken(websocket, websocket->failure != NULL ? websocket->failure : &err);
}

/* Ends the connection, but not from inside the owner's call. */
static void fail_soon(struct websocket *websocket, const struct error *err)
{
	websocket->failing = true;
	websocket->failure = memory_allocate(sizeof *err);
	if (websocket->failure != NULL)
		*websocket->failure = *err;
	loop_task_cancel(websocket->loop, &websocket->task);
	loop_run_soon(websocket->loop, &websocket->task, fail_from_task, websocket);
}

/* ---- bytes ---- */

/* Gives the engine's frames to the stream, all of them or none. */
static bool flush(struct websocket *websocket, struct error *err)
{
	struct buffer *output = &websocket->engine.output;
	bool written = output->length == 0 || websocket->stream == NULL ||
	               stream_write(websocket->stream, buffer_slice(output), err);

	buffer_release(output);
	return written;
}

/* What came is over: the peer's close frame, or a fault of its. */
static void end_by_event(struct websocket *websocket, enum websocket_event event,
                         const struct websocket_details *details)
{
	struct error ignored;

	(void)flush(websocket, &ignored); /* best effort: it is over either way */
	end(websocket, details->code, details->payload, event == WEBSOCKET_EVENT_FAULT ? &details->err : NULL);
}

static void take_frames(struct websocket *websocket, struct slice bytes)
{
	struct websocket_details details;
	struct error err;

	while (!is_over(websocket)) {
		enum websocket_event event = websocket_engine_next(&websocket->engine, &bytes, &details);

		if (event == WEBSOCKET_EVENT_MORE)
			break;
		if (event == WEBSOCKET_EVENT_MESSAGE) {
			if (!websocket->detached)
				websocket->handler.on_message(websocket->context, details.payload, details.is_text);
		} else {
			end_by_event(websocket, event, &details);
		}
	}
	if (!is_over(websocket) && !flush(websocket, &err))
		end_broken(websocket, &err);
}

/* ---- the client's handshake ---- */

/* Reads the response. True when the websocket is open, and *bytes has what follows. */
static bool take_response(struct websocket *websocket, struct slice *bytes)
{
	struct http_parser *parser = &websocket->handshake->parser;
	struct slice ignored;
	struct error err;

	switch (http_parser_next(parser, bytes, &ignored, &err)) {
	case HTTP_PARSER_MORE:
		return false;
	case HTTP_PARSER_HEAD:
		/* A 101 has no body: DONE is next, with nothing more to learn from it. */
		if (websocket_check_response(http_parser_status(parser), http_parser_fields(parser),
		                             websocket->handshake->key, &err))
			break;
		error_wrap(&err, "websocket handshake");
		end_broken(websocket, &err);
		return false;
	default:
		end_broken(websocket, &err);
		return false;
	}
	drop_handshake(websocket);
	loop_timer_stop(websocket->loop, &websocket->timer);
	websocket->state = STATE_OPEN;
	if (websocket->handler.on_open != NULL)
		websocket->handler.on_open(websocket->context);
	return !is_over(websocket);
}

static void handshake_late(void *context)
{
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	error_wrap(&err, "websocket handshake");
	end_broken(context, &err);
}

static bool write_request(struct websocket *websocket, const struct websocket_connect_options *options,
                          struct error *err)
{
	bool brackets = strchr(options->stream.host, ':') != NULL;
	unsigned char nonce[WEBSOCKET_NONCE_BYTES];
	struct buffer request;

	if (!http_is_target(slice_of(options->path)) || !http_is_host(options->stream.host) ||
	    !http_is_field_value(slice_of(options->user_agent)))
		return error_set(err, ERROR_SYNTAX, "path, host or user agent has characters that can't be sent");
	if (!loop_random(websocket->loop, nonce, sizeof nonce))
		return error_set(err, ERROR_SYSTEM, "the system has no random bytes for a websocket key");
	websocket_make_key(nonce, websocket->handshake->key);
	buffer_init(&request, HTTP_HEADER_BYTES);
	buffer_append_format(&request, brackets ? "GET %s HTTP/1.1\r\nHost: [%s]" : "GET %s HTTP/1.1\r\nHost: %s",
	                     options->path, options->stream.host);
	if (options->stream.port != (options->stream.tls != NULL ? 443 : 80))
		buffer_append_format(&request, ":%u", options->stream.port);
	buffer_append_format(&request,
	                     "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
	                     "Sec-WebSocket-Key: %s\r\n",
	                     websocket->handshake->key);
	if (options->user_agent != NULL)
		buffer_append_format(&request, "User-Agent: %s\r\n", options->user_agent);
	buffer_append_text(&request, "\r\n");

	bool written = buffer_check(&request, "the websocket request", err) &&
	               stream_write(websocket->stream, buffer_slice(&request), err);

	buffer_destroy(&request);
	return written;
}

struct websocket *websocket_connect(struct loop *loop, const struct websocket_connect_options *options,
                                    const struct websocket_handler *handler, void *context, struct error *err)
{
	struct websocket *websocket = create(loop, WEBSOCKET_CLIENT, options->max_message_bytes, handler, context, err);

	if (websocket == NULL)
		return NULL;
	websocket->handshake = memory_allocate(sizeof *websocket->handshake);
	if (websocket->handshake == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a websocket handshake");
		goto fail;
	}
	http_parser_init_response(&websocket->handshake->parser, false);
	websocket->stream = stream_connect(loop, &options->stream, &STREAM_HANDLER, websocket, err);
	if (websocket->stream == NULL)
		goto fail;
	if (!write_request(websocket, options, err)) {
		stream_close(websocket->stream);
		goto fail;
	}
	if (options->handshake_timeout_ns > 0)
		loop_timer_start(loop, &websocket->timer, options->handshake_timeout_ns, handshake_late, websocket);
	return websocket;

fail:
	release_websocket(websocket);
	return NULL;
}

/* ---- the stream's callbacks ---- */

/* Server: first what came behind the request. */
static void take_early(void *context)
{
	struct websocket *websocket = context;
	struct buffer early = websocket->early;

	buffer_init(&websocket->early, NET_TURN_READ_BYTES);
	take_frames(websocket, buffer_slice(&early));
	buffer_destroy(&early);
}

static void on_data(void *context, struct slice bytes)
{
	struct websocket *websocket = context;

	if (websocket->failing)
		return;
	if (websocket->state == STATE_HANDSHAKE && !take_response(websocket, &bytes))
		return;
	if (websocket->early.length > 0)
		take_early(websocket);
	take_frames(websocket, bytes);
}

static void close_late(void *context)
{
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	error_wrap(&err, "closing the websocket");
	end_broken(context, &err);
}

/* Our close frame has left: now the peer's time runs. */
static void on_drained(void *context)
{
	struct websocket *websocket = context;

	if (websocket->state == STATE_CLOSING)
		loop_timer_start(websocket->loop, &websocket->timer,
		                 (uint64_t)WEBSOCKET_CLOSE_REPLY_TIMEOUT_MS * NS_PER_MS, close_late, websocket);
}

static void on_close(void *context, const struct error *err)
{
	struct websocket *websocket = context;
	struct error failure = *err;

	websocket->stream = NULL;
	if (websocket->early.length > 0)
		take_early(websocket);
	if (is_over(websocket))
		return;
	if (websocket->state == STATE_HANDSHAKE) {
		if (err->code == ERROR_ENDED)
			(void)http_parser_finish(&websocket->handshake->parser, &failure);
		error_wrap(&failure, "websocket handshake");
	}
	end_broken(websocket, &failure);
}

static const struct stream_handler STREAM_HANDLER = {
	.on_data = on_data,
	.on_drained = on_drained,
	.on_close = on_close,
};

/* ---- the server's handshake ---- */

struct websocket *websocket_accept(struct loop *loop, struct http_call *call, size_t max_message_bytes,
                                   const struct websocket_handler *handler, void *context, struct error *err)
{
	char accept[WEBSOCKET_ACCEPT_BYTES];
	struct http_field fields[] = {
		{ .name = SLICE("connection"), .value = SLICE("upgrade") },
		{ .name = SLICE("upgrade"), .value = SLICE("websocket") },
		{ .name = SLICE("sec-websocket-accept"),
		  .value = { .data = accept, .length = WEBSOCKET_ACCEPT_BYTES - 1 } },
	};
	struct slice key;
	struct slice extra;
	struct websocket *websocket;
	struct error failure;

	if (!websocket_check_request(http_call_method(call), http_call_is_http10(call), http_call_fields(call), &key,
	                             err))
		return NULL;
	websocket_make_accept(key, accept);
	websocket = create(loop, WEBSOCKET_SERVER, max_message_bytes, handler, context, err);
	if (websocket == NULL)
		return NULL;
	websocket->stream = http_call_upgrade(
		call, (struct http_fields){ .items = fields, .count = sizeof fields / sizeof fields[0] }, &extra, err);
	if (websocket->stream == NULL) {
		release_websocket(websocket);
		return NULL;
	}
	websocket->state = STATE_OPEN;
	stream_set_handler(websocket->stream, &STREAM_HANDLER, websocket);
	buffer_append_slice(&websocket->early, extra);
	if (!buffer_check(&websocket->early, "what came behind the websocket request", &failure))
		fail_soon(websocket,
		          &failure); /* the call is answered, so this is the websocket's end, not the call's */
	else if (extra.length > 0)
		loop_run_soon(loop, &websocket->task, take_early, websocket);
	return websocket;
}

/* ---- the owner's calls ---- */

bool websocket_send(struct websocket *websocket, struct slice message, bool is_text, struct error *err)
{
	if (websocket->state != STATE_OPEN)
		return error_set(err, ERROR_CLOSED, "the websocket is not open");
	return websocket_engine_send(&websocket->engine, message, is_text, err) && flush(websocket, err);
}

bool websocket_ping(struct websocket *websocket, struct slice payload, struct error *err)
{
	if (websocket->state != STATE_OPEN)
		return error_set(err, ERROR_CLOSED, "the websocket is not open");
	return websocket_engine_ping(&websocket->engine, payload, err) && flush(websocket, err);
}

/* Sends the close frame and starts waiting. False with *err when that can't be. */
static bool start_closing(struct websocket *websocket, int code, struct slice reason, struct error *err)
{
	if (websocket->state == STATE_HANDSHAKE)
		return error_set(err, ERROR_CANCELLED, "context canceled");
	if (!websocket_engine_close(&websocket->engine, code, reason, err) || !flush(websocket, err))
		return false;
	websocket->state = STATE_CLOSING;
	loop_timer_start(websocket->loop, &websocket->timer, (uint64_t)WEBSOCKET_CLOSE_WRITE_TIMEOUT_MS * NS_PER_MS,
	                 close_late, websocket);
	return true;
}

void websocket_close(struct websocket *websocket, int code, struct slice reason)
{
	struct error err;

	if (is_over(websocket) || websocket->state == STATE_CLOSING || websocket->failing)
		return;
	if (!start_closing(websocket, code, reason, &err))
		fail_soon(websocket, &err);
}

static void end_leftover(void *owner)
{
	end_quietly(owner);
}

void websocket_detach_and_close(struct websocket *websocket, int code, struct slice reason)
{
	struct error ignored;

	if (is_over(websocket))
		return;
	websocket->detached = true;
	if (!websocket->failing &&
	    (websocket->state == STATE_CLOSING || start_closing(websocket, code, reason, &ignored)))
		loop_leftover_add(websocket->loop, &websocket->leftover, end_leftover, websocket);
	else
		end_quietly(websocket);
}

void websocket_abort(struct websocket *websocket)
{
	websocket->detached = true;
	end_quietly(websocket);
}
