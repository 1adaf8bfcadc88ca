#include "sandbox/event_receiver.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "net/http_server.h"
#include "sandbox/event_keys.h"
#include "sandbox/gunzip.h"

enum {
	BODY_BYTES_MAX = 8 * 1024 * 1024,
	UNPACKED_BYTES_MAX = 64 * 1024 * 1024,
	ARENA_BYTES_MAX = 16 * BODY_BYTES_MAX,
	EVENT_BYTES_MAX = 64 * 1024,
	TRACE_ID_BYTES = 22, /* seldom a little less (K1) */
	TRACE_ID_LEAST_BYTES = 13,
};

static const char OBJECT_PATH[] = "/" EVENT_RECEIVER_BUCKET "/" EVENT_RECEIVER_PREFIX "/";

struct event_receiver {
	struct loop *loop;
	struct address address;
	struct event_receiver_handler handler;
	void *context;
	struct http_server *server; /* NULL during an outage */
	struct event_keys keys;
	struct event_receiver_counters counters;
};

/* ---- checks ---- */

static bool has_field(struct http_fields fields, const char *name, const char *value, struct error *err)
{
	struct slice found = http_fields_find(fields, name);

	return slice_equal_text(found, value) ||
	       error_set(err, ERROR_SYNTAX, "%s is \"%.*s\" instead of \"%s\"", name, SLICE_ARGS(found), value);
}

/* K1. */
static bool is_id(struct slice text)
{
	const struct slice alphabet = SLICE("23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz");

	for (size_t i = 0; i < text.length; i++) {
		if (!slice_contains(alphabet, slice_from(text.data + i, 1)))
			return false;
	}
	return text.length >= TRACE_ID_LEAST_BYTES && text.length <= TRACE_ID_BYTES;
}

static bool check_billing_head(const struct http_call *call, struct error *err)
{
	struct http_fields fields = http_call_fields(call);
	struct slice id = http_fields_find(fields, "X-Trace-Id");

	if (http_call_query(call).length > 0)
		return error_set(err, ERROR_SYNTAX, "a query");
	if (!is_id(id))
		return error_set(err, ERROR_SYNTAX, "X-Trace-Id \"%.*s\" is no id", SLICE_ARGS(id));
	return has_field(fields, "Content-Type", "application/json", err);
}

static bool check_object_head(const struct http_call *call, struct error *err)
{
	struct http_fields fields = http_call_fields(call);

	if (!slice_starts_with(http_call_path(call), slice_of(OBJECT_PATH)))
		return error_set(err, ERROR_SYNTAX, "the path is %.*s", SLICE_ARGS(http_call_path(call)));
	if (!slice_starts_with(http_fields_find(fields, "Authorization"), SLICE("AWS4-HMAC-SHA256 Credential=")))
		return error_set(err, ERROR_SYNTAX, "no signature");
	if (http_fields_find(fields, "Content-Encoding").data != NULL)
		return error_set(err, ERROR_SYNTAX, "a Content-Encoding, which makes clients unpack the object");
	return has_field(fields, "Content-Type", "application/octet-stream", err);
}

/* ---- billing ---- */

static bool take_billing_event(struct event_receiver *receiver, const struct events_billing_event *event,
                               struct error *err)
{
	int64_t start_ns = 0, stop_ns = 0;
	enum event_sight sight = EVENT_NEW;
	struct buffer content;
	bool ok;

	if (!slice_equal_text(event->type, "incremental"))
		return error_set(err, ERROR_SYNTAX, "type is \"%.*s\"", SLICE_ARGS(event->type));
	if (!rfc3339_parse(event->start_time, &start_ns, err) || !rfc3339_parse(event->stop_time, &stop_ns, err))
		return false;
	if (start_ns >= stop_ns)
		return error_set(err, ERROR_SYNTAX, "a window from %.*s to %.*s", SLICE_ARGS(event->start_time),
		                 SLICE_ARGS(event->stop_time));
	buffer_init(&content, EVENT_BYTES_MAX);
	ok = events_billing_event_to_json(event, &content, err) &&
	     event_keys_see(&receiver->keys, event->idempotency_key, buffer_slice(&content), &sight, err);
	buffer_destroy(&content);
	if (!ok)
		return false;
	if (sight == EVENT_CHANGED)
		return error_set(err, ERROR_SYNTAX, "another event had the key %.*s",
		                 SLICE_ARGS(event->idempotency_key));
	if (sight == EVENT_REPEATED) {
		receiver->counters.duplicates++;
		receiver->handler.on_duplicate(receiver->context, event->idempotency_key);
		return true;
	}
	receiver->counters.billing_events++;
	receiver->handler.on_billing_event(receiver->context, event, start_ns, stop_ns);
	return true;
}

static bool take_billing(struct event_receiver *receiver, const struct http_call *call, struct error *err)
{
	struct events_billing_batch batch;
	struct arena arena;
	bool ok;

	arena_init(&arena, ARENA_BYTES_MAX);
	ok = check_billing_head(call, err) && events_billing_batch_from_json(http_call_body(call), &arena, &batch, err);
	if (ok && batch.events_count == 0)
		ok = error_set(err, ERROR_SYNTAX, "a batch without events");
	for (size_t i = 0; ok && i < batch.events_count; i++)
		ok = take_billing_event(receiver, &batch.events[i], err);
	arena_destroy(&arena);
	receiver->counters.billing_pushes += ok;
	return ok || error_wrap(err, "billing push");
}

/* ---- scaling events ---- */

static bool take_scaling_event(struct event_receiver *receiver, struct slice line, struct error *err)
{
	struct events_scaling_event event;
	struct arena arena;
	int64_t instant_ns;
	bool ok;

	arena_init(&arena, ARENA_BYTES_MAX);
	ok = events_scaling_event_from_json(line, &arena, &event, err) &&
	     rfc3339_parse(event.timestamp, &instant_ns, err);
	if (ok && event.has_goal_components != slice_equal_text(event.kind, "hypothetical"))
		ok = error_set(err, ERROR_SYNTAX, "kind is \"%.*s\", goalComponents are%s there",
		               SLICE_ARGS(event.kind), event.has_goal_components ? "" : "n't");
	if (ok) {
		receiver->counters.scaling_events++;
		receiver->handler.on_scaling_event(receiver->context, &event);
	}
	arena_destroy(&arena);
	return ok;
}

static bool take_lines(struct event_receiver *receiver, struct slice rest, struct error *err)
{
	if (rest.length == 0 || rest.data[rest.length - 1] != '\n')
		return error_set(err, ERROR_SYNTAX, "an object that doesn't end with a line");
	while (rest.length > 0) {
		if (!take_scaling_event(receiver, slice_take_until(&rest, '\n'), err))
			return false;
	}
	return true;
}

static bool take_object(struct event_receiver *receiver, const struct http_call *call, struct error *err)
{
	struct buffer lines;
	bool ok;

	buffer_init(&lines, UNPACKED_BYTES_MAX);
	ok = check_object_head(call, err) && gunzip(http_call_body(call), &lines, err) &&
	     take_lines(receiver, buffer_slice(&lines), err);
	buffer_destroy(&lines);
	receiver->counters.scaling_pushes += ok;
	return ok || error_wrap(err, "scaling events");
}

/* ---- the server ---- */

static void on_request(void *context, struct http_call *call)
{
	struct event_receiver *receiver = context;
	struct slice method = http_call_method(call);
	struct slice path = http_call_path(call);
	struct error err;
	bool ok;

	if (slice_equal_text(method, "POST") && slice_equal_text(path, EVENT_RECEIVER_BILLING_PATH "/usage_events"))
		ok = take_billing(receiver, call, &err);
	else if (slice_equal_text(method, "PUT"))
		ok = take_object(receiver, call, &err);
	else
		ok = error_set(&err, ERROR_SYNTAX, "%.*s %.*s means nothing here", SLICE_ARGS(method),
		               SLICE_ARGS(path));
	if (!ok) {
		receiver->counters.refused++;
		receiver->handler.on_problem(receiver->context, &err);
	}
	http_call_respond(call, ok ? 200 : 400, NULL, SLICE(""));
}

static void on_accept_error(void *context, const struct error *err)
{
	const struct event_receiver *receiver = context;

	if (receiver->handler.on_accept_error != NULL)
		receiver->handler.on_accept_error(receiver->context, err);
}

static bool open_server(struct event_receiver *receiver, struct error *err)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request };
	const struct http_server_options options = { .address = receiver->address,
		                                     .max_body_bytes = BODY_BYTES_MAX,
		                                     .on_error = on_accept_error };

	receiver->server = http_server_start(receiver->loop, &options, &HANDLER, receiver, err);
	if (receiver->server == NULL)
		return error_wrap(err, "event receiver");
	/* A free port, once taken, stays ours over an outage. */
	return http_server_address(receiver->server, &receiver->address) ||
	       error_set(err, ERROR_SYSTEM, "event receiver: its own address is unknown");
}

static void close_server(struct event_receiver *receiver)
{
	http_server_destroy(receiver->server);
	receiver->server = NULL;
}

struct event_receiver *event_receiver_start(struct loop *loop, const struct address *address,
                                            const struct event_receiver_handler *handler, void *context,
                                            struct error *err)
{
	struct event_receiver *receiver = memory_allocate(sizeof *receiver);

	if (receiver == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the event receiver");
		return NULL;
	}
	receiver->loop = loop;
	receiver->address = *address;
	receiver->handler = *handler;
	receiver->context = context;
	event_keys_init(&receiver->keys);
	if (!open_server(receiver, err)) {
		event_receiver_destroy(receiver);
		return NULL;
	}
	return receiver;
}

bool event_receiver_address(const struct event_receiver *receiver, struct address *ret_address)
{
	*ret_address = receiver->address;
	return receiver->server != NULL;
}

struct event_receiver_counters event_receiver_counters(const struct event_receiver *receiver)
{
	return receiver->counters;
}

size_t event_receiver_missing(const struct event_receiver *receiver)
{
	return event_keys_missing(&receiver->keys);
}

bool event_receiver_set_available(struct event_receiver *receiver, bool available, struct error *err)
{
	if (available == (receiver->server != NULL))
		return true;
	if (available)
		return open_server(receiver, err);
	close_server(receiver);
	return true;
}

void event_receiver_destroy(struct event_receiver *receiver)
{
	if (receiver == NULL)
		return;
	if (receiver->server != NULL)
		close_server(receiver);
	event_keys_destroy(&receiver->keys);
	memory_release(receiver);
}
