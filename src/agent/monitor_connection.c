#include "agent/monitor_connection.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "agent/quoted.h"
#include "codec/duration_text.h"

static const char MONITOR_PATH[] = "/monitor";
static const char MESSAGE_HANDLER_TASK[] = "vm-monitor message handler";

enum { MESSAGE_TEXT_BYTES = 2048, CODE_BYTES = 128 };

static struct log_field task_field(void)
{
	return log_text("taskName", MESSAGE_HANDLER_TASK);
}

/* Late 2023's words are the newest ones' but for the first letter, of those that an agent puts in front. */
static void say_as_configured(const struct monitor_connection *connection, struct error *err)
{
	if (connection->capital_texts &&
	    (strncmp(err->text, "error ", 6) == 0 || strncmp(err->text, "monitor returned ", 17) == 0))
		err->text[0] = (char)toupper((unsigned char)err->text[0]);
}

/* ---- the end ---- */

static void dismantle(struct monitor_connection *connection)
{
	if (connection->state == MONITOR_ACTIVE)
		log_info(&connection->logger, "background worker ended normally", task_field());
	connection->state = MONITOR_ENDED;
	connection->websocket = NULL;
	loop_timer_stop(connection->loop, &connection->handshake_timer);
}

void monitor_connection_close(struct monitor_connection *connection, int code, struct slice reason)
{
	if (connection->state == MONITOR_ENDED)
		return;
	if (connection->state == MONITOR_CONNECTING)
		websocket_abort(connection->websocket);
	else
		websocket_detach_and_close(connection->websocket, code, reason);
	dismantle(connection);
}

static void end(struct monitor_connection *connection, const struct error *err)
{
	dismantle(connection);
	connection->handler.on_end(connection->handler.context, err);
}

/*
 * Nothing if the connection has ended: what was told of its failure before may have closed it, as failing health checks
 * do.
 */
static void close_and_end(struct monitor_connection *connection, int code, const char *reason, const struct error *err)
{
	if (connection->state == MONITOR_ENDED)
		return;
	monitor_connection_close(connection, code, slice_of(reason));
	connection->handler.on_end(connection->handler.context, err);
}

/* 11.4.4. */
static void log_handler_error(const struct monitor_connection *connection, const struct error *err)
{
	log_error(&connection->logger, "Error handling message, shutting down connection", task_field(),
	          log_error_field(err));
}

/* ---- calls ---- */

static void count_outbound(struct monitor_connection *connection, enum monitor_type type, const char *code)
{
	agent_metrics_count_monitor_outbound(connection->metrics, monitor_type_name(type), code);
}

static struct monitor_call *find_call(struct monitor_connection *connection, uint64_t id)
{
	for (size_t i = 0; i < AGENT_MONITOR_CALLS; i++) {
		if (connection->calls[i].id == id && id != 0)
			return &connection->calls[i];
	}
	return NULL;
}

/* Frees the call's place before telling, so that the one told may call again. */
static void finish_call(struct monitor_call *call, const char *code, const struct monitor_message *reply,
                        const struct error *err)
{
	struct monitor_connection *connection = call->connection;

	loop_timer_stop(connection->loop, &call->timer);
	call->id = 0;
	count_outbound(connection, call->type, code);
	call->callback(call->context, reply, err);
}

static void fail_call(struct monitor_call *call, const char *reason)
{
	char code[CODE_BYTES];
	struct error err;

	(void)snprintf(code, sizeof code, "[error: %s]", reason);
	error_set(&err, ERROR_REFUSED, "monitor experienced an internal error");
	finish_call(call, code, NULL, &err);
}

static void on_call_timeout(void *context)
{
	struct monitor_call *call = context;
	struct buffer wait;
	struct error err;

	buffer_init(&wait, CODE_BYTES);
	duration_print((int64_t)call->connection->config->response_timeout_ns, &wait);
	error_set(&err, ERROR_TIMEOUT, "timed out waiting %.*s for monitor response", SLICE_ARGS(buffer_slice(&wait)));
	buffer_destroy(&wait);
	finish_call(call, "[error: timed out waiting for response]", NULL, &err);
}

void monitor_connection_fail_calls(struct monitor_connection *connection)
{
	for (size_t i = 0; i < AGENT_MONITOR_CALLS; i++) {
		if (connection->calls[i].id != 0)
			on_call_timeout(&connection->calls[i]);
	}
}

static bool send_message(struct monitor_connection *connection, const struct buffer *message, struct error *err)
{
	if (connection->websocket == NULL)
		return error_set(err, ERROR_CLOSED, "the connection has ended");
	return buffer_check(message, "message to vm-monitor", err) &&
	       websocket_send(connection->websocket, buffer_slice(message), true, err);
}

static bool send_call(struct monitor_connection *connection, enum monitor_type type, uint64_t id,
                      struct resources resources, struct error *err)
{
	struct buffer message;
	bool sent;

	buffer_init(&message, MESSAGE_TEXT_BYTES);
	if (type == MONITOR_DOWNSCALE_REQUEST)
		monitor_write_downscale_request(&message, id, resources);
	else if (type == MONITOR_UPSCALE_NOTIFICATION)
		monitor_write_upscale_notification(&message, id, resources);
	else
		monitor_write_health_check(&message, id);
	sent = send_message(connection, &message, err);
	buffer_destroy(&message);
	return sent;
}

static struct monitor_call *free_call(struct monitor_connection *connection)
{
	for (size_t i = 0; i < AGENT_MONITOR_CALLS; i++) {
		if (connection->calls[i].id == 0)
			return &connection->calls[i];
	}
	return NULL;
}

void monitor_connection_call(struct monitor_connection *connection, enum monitor_type type, struct resources resources,
                             monitor_reply_callback *callback, void *context)
{
	struct monitor_call *call = free_call(connection);
	struct error err;

	if (call == NULL) {
		count_outbound(connection, type, "[error: failed to send]");
		error_set(&err, ERROR_LIMIT, "more than %d calls at once", AGENT_MONITOR_CALLS);
		callback(context, NULL, &err);
		return;
	}
	/* Registered before it is sent: a reply can't come too early. */
	connection->last_id += 2;
	call->connection = connection;
	call->id = connection->last_id;
	call->type = type;
	call->callback = callback;
	call->context = context;
	if (!send_call(connection, type, call->id, resources, &err)) {
		finish_call(call, "[error: failed to send]", NULL, &err);
		return;
	}
	loop_timer_start(connection->loop, &call->timer, connection->config->response_timeout_ns, on_call_timeout,
	                 call);
}

/* ---- messages ---- */

/* False if that couldn't be sent; the connection has then ended. */
static bool reply_invalid(struct monitor_connection *connection, uint64_t id, struct slice text)
{
	struct buffer message;
	struct error err;
	bool sent;

	buffer_init(&message, 8 * (sizeof err.text + MESSAGE_TEXT_BYTES));
	monitor_write_invalid_message(&message, id, text);
	sent = send_message(connection, &message, &err);
	buffer_destroy(&message);
	if (sent)
		return true;
	log_handler_error(connection, &err);
	close_and_end(connection, WEBSOCKET_INTERNAL_ERROR, error_root(&err), &err);
	return false;
}

/* Fails the call that waits for this id, if there is one. Who is told of it may end the connection. */
static void fail_waiting(struct monitor_connection *connection, uint64_t id, const char *reason)
{
	struct monitor_call *call = find_call(connection, id);

	if (call != NULL)
		fail_call(call, reason);
}

static void on_unknown_type(struct monitor_connection *connection, const struct monitor_message *message)
{
	struct buffer quoted;
	struct error text;

	quoted_init(&quoted, message->type_text);
	error_set(&text, ERROR_SYNTAX, "Received message of unknown type: %.*s", SLICE_ARGS(buffer_slice(&quoted)));
	buffer_destroy(&quoted);
	log_warn(&connection->logger, text.text, task_field());
	if (find_call(connection, message->id) == NULL)
		agent_metrics_touch_monitor_inbound(connection->metrics, monitor_type_name(MONITOR_UNKNOWN_TYPE),
		                                    "[error: received unknown message type]");
	if (reply_invalid(connection, message->id, slice_of(text.text)))
		fail_waiting(connection, message->id, "received unknown message type");
}

static void on_bad_fields(struct monitor_connection *connection, const struct monitor_message *message,
                          const struct error *err)
{
	if (find_call(connection, message->id) == NULL)
		agent_metrics_touch_monitor_inbound(connection->metrics, monitor_type_name(message->type),
		                                    "[error: failed unmarshaling JSON]");
	log_handler_error(connection, err);
	if (!reply_invalid(connection, message->id, slice_of(err->text)))
		return;
	/* The call first: what happened to it is more than that its connection ended. */
	fail_waiting(connection, message->id, "failed unmarshaling JSON");
	close_and_end(connection, WEBSOCKET_INTERNAL_ERROR, error_root(err), err);
}

static void on_reply(struct monitor_connection *connection, const struct monitor_message *message)
{
	struct monitor_call *call = find_call(connection, message->id);
	const char *name = message->type == MONITOR_INTERNAL_ERROR ? "MonitorError" : monitor_type_name(message->type);
	struct error text;

	if (call != NULL && message->type == MONITOR_INTERNAL_ERROR) {
		log_warn(&connection->logger, "vm-monitor experienced an internal error", task_field(),
		         log_slice("error", message->error));
		fail_call(call, "vm-monitor internal error");
	} else if (call != NULL) {
		finish_call(call, "ok", message, NULL);
	} else {
		error_set(&text, ERROR_SYNTAX, "Received %s with id %llu but %s", name, (unsigned long long)message->id,
		          connection->capital_texts ? "no record of previous message with that id"
		                                    : "id is unknown or already timed out waiting for a reply");
		log_warn(&connection->logger, text.text, task_field());
		(void)reply_invalid(connection, message->id, slice_of(text.text));
	}
}

static void dispatch(struct monitor_connection *connection, const struct monitor_message *message)
{
	switch (message->type) {
	case MONITOR_UPSCALE_REQUEST:
		agent_metrics_count_monitor_inbound(connection->metrics, monitor_type_name(message->type), "ok");
		connection->handler.on_upscale_request(connection->handler.context);
		fail_waiting(connection, message->id, "unknown");
		break;
	case MONITOR_INVALID_MESSAGE:
		log_warn(&connection->logger, "Received notification we sent an invalid message", task_field(),
		         log_uint("id", message->id), log_slice("error", message->error));
		fail_waiting(connection, message->id, "unknown");
		break;
	default:
		on_reply(connection, message);
		break;
	}
}

static void handle_message(struct monitor_connection *connection, struct slice text)
{
	struct monitor_message message;
	enum monitor_reading reading;
	struct arena arena;
	struct error err;

	arena_init(&arena, MONITOR_ARENA_BYTES);
	reading = monitor_read_message(text, &arena, &message, &err);
	if (reading == MONITOR_BAD_FORM || reading == MONITOR_BAD_FIELDS)
		say_as_configured(connection, &err);
	switch (reading) {
	case MONITOR_READ:
		dispatch(connection, &message);
		break;
	case MONITOR_TYPE_UNKNOWN:
		on_unknown_type(connection, &message);
		break;
	case MONITOR_BAD_FIELDS:
		on_bad_fields(connection, &message, &err);
		break;
	case MONITOR_BAD_FORM:
		log_handler_error(connection, &err);
		close_and_end(connection, WEBSOCKET_INTERNAL_ERROR, error_root(&err), &err);
		break;
	case MONITOR_NOT_JSON:
		log_handler_error(connection, &err);
		close_and_end(connection, WEBSOCKET_INVALID_DATA, "failed to unmarshal JSON", &err);
		break;
	}
	arena_destroy(&arena);
}

/* ---- handshake ---- */

static void wrap_handshake_error(const struct monitor_connection *connection, struct error *err)
{
	switch (connection->state) {
	case MONITOR_CONNECTING:
		error_wrap(err, "error establishing websocket connection to %s", connection->url);
		break;
	case MONITOR_AGREEING:
		error_wrap(err, "error reading vm-monitor response during protocol handshake");
		say_as_configured(connection, err);
		break;
	case MONITOR_ACTIVE:
	case MONITOR_ENDED:
		break;
	}
}

/* No close frame: the peer may be hung (11.2.5). */
static void on_handshake_timeout(void *context)
{
	struct monitor_connection *connection = context;
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	wrap_handshake_error(connection, &err);
	websocket_abort(connection->websocket);
	end(connection, &err);
}

static void handle_protocol_response(struct monitor_connection *connection, struct slice text)
{
	struct arena arena;
	struct error err;
	bool agreed;

	arena_init(&arena, MONITOR_ARENA_BYTES);
	agreed = monitor_read_protocol_response(text, &arena, &err);
	arena_destroy(&arena);
	if (agreed) {
		loop_timer_stop(connection->loop, &connection->handshake_timer);
		connection->state = MONITOR_ACTIVE;
		log_info(&connection->logger, "background worker started", task_field());
		connection->handler.on_active(connection->handler.context);
	} else if (err.code == ERROR_REFUSED) {
		say_as_configured(connection, &err);
		close_and_end(connection, WEBSOCKET_PROTOCOL_ERROR, err.text, &err);
	} else {
		wrap_handshake_error(connection, &err);
		close_and_end(connection, WEBSOCKET_INVALID_DATA, "failed to unmarshal JSON", &err);
	}
}

static void on_open(void *context)
{
	struct monitor_connection *connection = context;
	struct buffer message;
	struct error err;
	bool sent;

	connection->state = MONITOR_AGREEING;
	buffer_init(&message, MESSAGE_TEXT_BYTES);
	monitor_write_protocol_range(&message);
	sent = send_message(connection, &message, &err);
	buffer_destroy(&message);
	if (sent)
		return;
	error_wrap(&err, "error sending protocol range to monitor");
	close_and_end(connection, WEBSOCKET_INTERNAL_ERROR, error_root(&err), &err);
}

static bool is_too_busy(struct monitor_connection *connection)
{
	uint64_t now_ns = loop_now_ns(connection->loop);

	if (token_bucket_wait(&connection->allowed_messages, now_ns) > 0)
		return true;
	(void)token_bucket_take(&connection->allowed_messages, now_ns);
	return false;
}

static void on_message(void *context, struct slice message, bool is_text)
{
	struct monitor_connection *connection = context;
	struct error err;

	(void)is_text; /* both are accepted (11.3.2) */
	if (connection->state != MONITOR_ACTIVE) {
		handle_protocol_response(connection, message);
	} else if (is_too_busy(connection)) {
		error_set(&err, ERROR_LIMIT, "more than %d messages per second", AGENT_MONITOR_MESSAGES_PER_S);
		log_handler_error(connection, &err);
		close_and_end(connection, WEBSOCKET_POLICY, err.text, &err);
	} else {
		handle_message(connection, message);
	}
}

static void on_close(void *context, int code, struct slice reason, const struct error *failure)
{
	struct monitor_connection *connection = context;
	struct buffer quoted;
	struct error err;

	connection->websocket = NULL;
	if (failure != NULL) {
		err = *failure;
	} else {
		quoted_init(&quoted, reason);
		error_set(&err, ERROR_CLOSED, "received close frame: status = %d and reason = %.*s", code,
		          SLICE_ARGS(buffer_slice(&quoted)));
		buffer_destroy(&quoted);
	}
	if (connection->state == MONITOR_ACTIVE)
		log_handler_error(connection, &err);
	else
		wrap_handshake_error(connection, &err);
	end(connection, &err);
}

void monitor_connection_start(struct monitor_connection *connection)
{
	static const struct websocket_handler HANDLER = {
		.on_open = on_open,
		.on_message = on_message,
		.on_close = on_close,
	};
	const struct websocket_connect_options options = {
		.stream = { .host = connection->host, .port = connection->config->server_port },
		.path = MONITOR_PATH,
		/* One deadline over the version exchange too (11.2): that is ours. */
		.handshake_timeout_ns = connection->config->connection_timeout_ns,
		.max_message_bytes = AGENT_MONITOR_MESSAGE_BYTES,
	};
	struct error err;

	connection->last_id = 0;
	connection->state = MONITOR_CONNECTING;
	(void)token_bucket_init(&connection->allowed_messages, AGENT_MONITOR_MESSAGES_PER_S,
	                        AGENT_MONITOR_MESSAGES_BURST, loop_now_ns(connection->loop), &err);
	connection->websocket = websocket_connect(connection->loop, &options, &HANDLER, connection, &err);
	if (connection->websocket == NULL) {
		wrap_handshake_error(connection, &err);
		end(connection, &err);
		return;
	}
	loop_timer_start(connection->loop, &connection->handshake_timer, connection->config->connection_timeout_ns,
	                 on_handshake_timeout, connection);
}

void monitor_connection_init(struct monitor_connection *connection, const struct monitor_connection *settings)
{
	*connection = *settings;
	url_text(connection->url, "ws", settings->host, settings->config->server_port, MONITOR_PATH);
	connection->state = MONITOR_ENDED;
	connection->websocket = NULL;
	connection->last_id = 0;
	memset(connection->calls, 0, sizeof connection->calls);
	connection->handshake_timer = (struct loop_timer){ 0 };
}
