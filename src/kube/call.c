/*
 * A call goes round: token of the limiter → its turn among the connections → an exchange → done, or a wait and the
 * same again. Every step runs from the loop (the first one from a task), so a failure at any point reaches on_done on
 * one path.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kube/client_internal.h"
#include "kube/error_reply.h"

static const char LIMITER_CONTEXT[] = "client rate limiter Wait returned an error";

static void take_token(void *context);
static void send_request(void *context);

/* ---- making and ending ---- */

static void append_part(struct kube_call *call, struct slice part, size_t *ret_offset)
{
	*ret_offset = call->text.length;
	buffer_append_slice(&call->text, part);
	buffer_append_char(&call->text, '\0');
}

/* Copies what the request points at into one block. */
static bool copy_request(struct kube_call *call, const struct kube_request *request, struct error *err)
{
	struct kube_request *copy = &call->request;
	struct slice parts[] = { request->method,
		                 request->path,
		                 request->query,
		                 request->content_type,
		                 request->name,
		                 slice_of(request->verb),
		                 slice_of(request->resource),
		                 request->body };
	size_t offsets[sizeof parts / sizeof *parts];

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		append_part(call, parts[i], &offsets[i]);
	if (!buffer_check(&call->text, "the request", err))
		return false;
	*copy = *request;
	copy->method.data = call->text.data + offsets[0];
	copy->path.data = call->text.data + offsets[1];
	copy->query.data = call->text.data + offsets[2];
	copy->content_type.data = call->text.data + offsets[3];
	copy->name.data = call->text.data + offsets[4];
	copy->verb = call->text.data + offsets[5];
	copy->resource = call->text.data + offsets[6];
	copy->body.data = call->text.data + offsets[7];
	return true;
}

static void give_turn(struct kube_call *call)
{
	if (!call->request.watch)
		call->client->in_flight++;
	call->has_turn = true;
}

static void give_turn_back(struct kube_call *call)
{
	struct kube_client *client = call->client;
	struct kube_call *next = client->first_call;

	if (!call->has_turn)
		return;
	call->has_turn = false;
	if (call->request.watch)
		return;
	client->in_flight--;
	while (next != NULL && next->state != KUBE_CALL_QUEUED)
		next = next->next;
	if (next == NULL || client->closing)
		return;
	/* From the loop, not from inside whatever ended this one. */
	next->state = KUBE_CALL_STARTING;
	give_turn(next);
	loop_run_soon(client->loop, &next->task, send_request, next);
}

static void unlink_call(struct kube_call *call)
{
	struct kube_client *client = call->client;

	if (call->previous != NULL)
		call->previous->next = call->next;
	else
		client->first_call = call->next;
	if (call->next != NULL)
		call->next->previous = call->previous;
	else
		client->last_call = call->previous;
	client->call_count--;
}

static void link_call(struct kube_call *call)
{
	struct kube_client *client = call->client;

	call->previous = client->last_call;
	if (client->last_call != NULL)
		client->last_call->next = call;
	else
		client->first_call = call;
	client->last_call = call;
	client->call_count++;
}

/* From here on nothing of the loop or the network knows the call. */
static void detach(struct kube_call *call)
{
	struct loop *loop = call->client->loop;

	loop_task_cancel(loop, &call->task);
	loop_timer_stop(loop, &call->deadline);
	loop_timer_stop(loop, &call->wait);
	if (call->exchange != NULL)
		http_exchange_cancel(call->exchange);
	call->exchange = NULL;
	unlink_call(call);
	give_turn_back(call);
}

static void free_call(struct kube_call *call)
{
	buffer_destroy(&call->text);
	buffer_destroy(&call->body);
	memory_release(call);
}

void kube_call_cancel(struct kube_call *call)
{
	detach(call);
	free_call(call);
}

uint64_t kube_call_retry_after_ns(const struct kube_call *call)
{
	return call->retry_after_ns;
}

struct slice kube_call_refusal(const struct kube_call *call)
{
	return buffer_slice(&call->body);
}

static bool is_success(const struct kube_call *call)
{
	/* What the reference takes for one (agent-runtime 12.4). */
	return call->request.watch ? call->status == 200 : call->status >= 200 && call->status <= 206;
}

static void finish(struct kube_call *call, const struct error *err)
{
	struct slice body = err == NULL ? buffer_slice(&call->body) : (struct slice){ 0 };

	detach(call);
	call->handler.on_done(call->context, call->status, body, err);
	free_call(call);
}

static void finish_broken(struct kube_call *call, struct error *err)
{
	/* A success whose body broke off keeps its status; that of an earlier try says nothing. */
	if (call->status != 0 && !is_success(call))
		call->status = 0;
	error_wrap(err, "%.*s %.*s", SLICE_ARGS(call->request.method), SLICE_ARGS(call->request.path));
	finish(call, err);
}

static void on_deadline(void *context)
{
	struct kube_call *call = context;
	struct error err;

	error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	finish_broken(call, &err);
}

/* ---- the reply ---- */

static void read_retry_after(struct kube_call *call, struct slice value)
{
	uint64_t seconds;

	call->has_retry_after = slice_to_u64(slice_trim(value), &seconds);
	if (!call->has_retry_after)
		return;
	if (seconds > KUBE_RETRY_AFTER_MAX_S)
		seconds = KUBE_RETRY_AFTER_MAX_S;
	call->retry_after_ns = seconds * NS_PER_S;
}

static void note_head(struct kube_call *call, const struct http_response *response)
{
	struct slice content_type = http_fields_find(response->fields, "Content-Type");

	call->status = response->status;
	read_retry_after(call, http_fields_find(response->fields, "Retry-After"));
	if (content_type.length > sizeof call->content_type_text)
		content_type.length = sizeof call->content_type_text;
	if (content_type.length > 0)
		memcpy(call->content_type_text, content_type.data, content_type.length);
	call->content_type = slice_from(call->content_type_text, content_type.length);
	buffer_init(&call->body, is_success(call) ? call->request.max_body_bytes : KUBE_ERROR_BODY_BYTES);
}

static void on_head(void *context, const struct http_response *response)
{
	struct kube_call *call = context;

	note_head(call, response);
	if (is_success(call) && call->handler.on_open != NULL)
		call->handler.on_open(call->context);
}

static void on_body(void *context, struct slice bytes)
{
	struct kube_call *call = context;
	size_t room;

	if (is_success(call) && call->handler.on_body != NULL) {
		call->handler.on_body(call->context, bytes);
		return;
	}
	if (!is_success(call)) {
		room = call->body.limit_bytes - call->body.length;
		if (bytes.length > room)
			bytes.length = room;
	}
	buffer_append_slice(&call->body, bytes);
}

static void retry(struct kube_call *call, uint64_t delay_ns)
{
	call->retries++;
	call->state = KUBE_CALL_STARTING;
	give_turn_back(call);
	loop_timer_start(call->client->loop, &call->wait, delay_ns, take_token, call);
}

/* A connection that broke before the head came (9.3.2). */
static bool may_repeat_broken(const struct kube_call *call, const struct error *err)
{
	if (!slice_equal_text(call->request.method, "GET") || call->retries >= KUBE_RETRIES)
		return false;
	return err->code == ERROR_CLOSED || (call->request.watch && err->code == ERROR_TIMEOUT);
}

static void handle_broken(struct kube_call *call, const struct error *err)
{
	struct error own = *err;

	/* It may have been a handshake with a server that has a new CA. */
	kube_client_refresh_ca(call->client);
	if (may_repeat_broken(call, err))
		retry(call, (uint64_t)KUBE_RETRY_BROKEN_MS * NS_PER_MS);
	else
		finish_broken(call, &own);
}

static void handle_success(struct kube_call *call, const struct error *err)
{
	struct error own;

	if (err != NULL) {
		own = *err;
		finish_broken(call, &own);
	} else if (!buffer_check(&call->body, "the reply", &own)) {
		finish_broken(call, &own);
	} else {
		finish(call, NULL);
	}
}

/* Whether the token it was refused with is no longer the newest; that gives one more try. */
static bool has_other_token(struct kube_call *call)
{
	if (call->asked_again)
		return false;
	if (call->token_number == call->client->token_number)
		kube_client_refresh(call->client, true);
	return call->token_number != call->client->token_number;
}

static void handle_refusal(struct kube_call *call)
{
	struct error_reply reply = {
		.status = call->status,
		.content_type = call->content_type,
		.body = buffer_slice(&call->body),
		.verb = call->request.verb,
		.resource = call->request.resource,
		.name = call->request.name,
	};
	bool busy = call->status == 429 || (call->status >= 500 && call->status <= 599);
	struct error err;

	if (call->status == 401 && has_other_token(call)) {
		call->asked_again = true;
		call->state = KUBE_CALL_STARTING;
		loop_run_soon(call->client->loop, &call->task, send_request, call);
		return;
	}
	if (busy && call->has_retry_after && call->retries < KUBE_RETRIES) {
		retry(call, call->retry_after_ns);
		return;
	}
	(void)error_reply_describe(&reply, &err);
	finish(call, &err);
}

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct kube_call *call = context;

	call->exchange = NULL;
	/* A body announced as too long: the head comes with the end. */
	if (call->status == 0 && response != NULL)
		note_head(call, response);
	if (call->status == 0)
		handle_broken(call, err);
	else if (is_success(call))
		handle_success(call, err);
	else
		handle_refusal(call);
}

/* ---- the request ---- */

static bool start_exchange(struct kube_call *call, struct buffer *target, struct error *err)
{
	static const struct http_handler handler = { .on_head = on_head, .on_body = on_body, .on_done = on_done };
	struct kube_client *client = call->client;
	const struct kube_request *request = &call->request;
	struct http_field fields[4];
	size_t count = 0;

	buffer_append_text(target, client->path_prefix);
	buffer_append_slice(target, request->path);
	if (request->query.length > 0) {
		buffer_append_char(target, '?');
		buffer_append_slice(target, request->query);
	}
	if (!buffer_check(target, "the request's target", err))
		return false;
	fields[count++] = (struct http_field){ SLICE("Accept"), SLICE("application/json, */*") };
	if (request->body.length > 0)
		fields[count++] = (struct http_field){ SLICE("Content-Type"), request->content_type };
	fields[count++] = (struct http_field){ SLICE("User-Agent"), slice_of(client->user_agent) };
	if (client->authorization.length > 0)
		fields[count++] = (struct http_field){ SLICE("Authorization"), buffer_slice(&client->authorization) };

	struct http_request message = {
		.origin = client->origin,
		.method = request->method,
		.target = buffer_slice(target),
		.fields = { .items = fields, .count = count },
		.body = request->body,
		.first_byte_timeout_ns = request->answer_timeout_ns,
		.idle_timeout_ns = request->idle_timeout_ns,
		/* The head may turn out to be an error's. */
		.max_body_bytes = request->max_body_bytes > KUBE_ERROR_BODY_BYTES ? request->max_body_bytes
		                                                                  : KUBE_ERROR_BODY_BYTES,
	};

	call->exchange = http_client_send(client->http, &message, &handler, call, err);
	return call->exchange != NULL;
}

static void send_request(void *context)
{
	struct kube_call *call = context;
	struct buffer target;
	struct error err;
	bool started;

	kube_client_refresh(call->client, false);
	call->token_number = call->client->token_number;
	call->state = KUBE_CALL_SENT;
	call->status = 0;
	call->has_retry_after = false;
	call->retry_after_ns = 0;
	buffer_destroy(&call->body);
	buffer_init(&target, KUBE_REQUEST_TEXT_BYTES);
	started = start_exchange(call, &target, &err);
	buffer_destroy(&target);
	if (!started)
		finish_broken(call, &err);
}

static void take_turn(void *context)
{
	struct kube_call *call = context;

	if (!call->request.watch && call->client->in_flight >= KUBE_REQUESTS_IN_FLIGHT) {
		call->state = KUBE_CALL_QUEUED;
		return;
	}
	give_turn(call);
	send_request(call);
}

static void take_token(void *context)
{
	struct kube_call *call = context;
	struct token_bucket *limiter = call->request.limiter;
	uint64_t now_ns = loop_now_ns(call->client->loop);
	uint64_t wait_ns = limiter != NULL ? token_bucket_wait(limiter, now_ns) : 0;
	struct error err;

	if (call->deadline_ns != 0 && now_ns + wait_ns > call->deadline_ns) {
		error_set(&err, ERROR_TIMEOUT, "rate: Wait(n=1) would exceed context deadline");
		error_wrap(&err, "%s", LIMITER_CONTEXT);
		finish_broken(call, &err);
		return;
	}
	if (limiter != NULL)
		token_bucket_take(limiter, now_ns);
	if (wait_ns > 0)
		loop_timer_start(call->client->loop, &call->wait, wait_ns, take_turn, call);
	else
		take_turn(call);
}

struct kube_call *kube_client_send(struct kube_client *client, const struct kube_request *request,
                                   const struct kube_handler *handler, void *context, struct error *err)
{
	struct kube_call *call;

	if (client->call_count >= KUBE_CALLS) {
		error_set(err, ERROR_LIMIT, "more than %d calls to the API server under way", KUBE_CALLS);
		return NULL;
	}
	call = memory_allocate(sizeof *call);
	if (call == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a call to the API server");
		return NULL;
	}
	call->client = client;
	call->handler = *handler;
	call->context = context;
	call->state = KUBE_CALL_STARTING;
	buffer_init(&call->text, (size_t)KUBE_REQUEST_TEXT_BYTES + KUBE_REQUEST_BODY_BYTES);
	if (!copy_request(call, request, err)) {
		free_call(call);
		return NULL;
	}
	link_call(call);
	if (request->timeout_ns > 0) {
		call->deadline_ns = loop_now_ns(client->loop) + request->timeout_ns;
		loop_timer_start(client->loop, &call->deadline, request->timeout_ns, on_deadline, call);
	}
	loop_run_soon(client->loop, &call->task, take_token, call);
	return call;
}
