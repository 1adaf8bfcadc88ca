#include "extender/reservation_calls.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "extender/limits.h"
#include "extender/process_limits.h"
#include "gen/kube.gen.h"
#include "net/http_message.h"

#define COLLECTION "/apis/csi-baremetal.dell.com/v1/availablecapacityreservations"

enum { STATUS_ARENA_BYTES = 1024 * 1024 };

struct reservation_call {
	const struct reservation_calls *calls;
	enum extender_kube_method method;
	struct buffer path, body;
	char *name;
	uint64_t started_ns, deadline_ns;
	unsigned tries;
	struct kube_call *call;
	struct loop_timer wait;
	reservation_callback *callback;
	void *context;
};

/* ---- the end ---- */

static void free_call(struct reservation_call *call)
{
	loop_timer_stop(call->calls->loop, &call->wait);
	buffer_destroy(&call->path);
	buffer_destroy(&call->body);
	memory_release(call->name);
	memory_release(call);
}

void reservation_call_cancel(struct reservation_call *call)
{
	if (call == NULL)
		return;
	if (call->call != NULL)
		kube_call_cancel(call->call);
	free_call(call);
}

static void finish(struct reservation_call *call, int status, struct slice body, const struct error *err)
{
	reservation_callback *callback = call->callback;
	void *context = call->context;
	uint64_t took_ns = loop_now_ns(call->calls->loop) - call->started_ns;

	extender_metrics_observe_kube(call->calls->metrics, call->method, (double)took_ns / NS_PER_S);
	free_call(call);
	callback(context, status, body, err);
}

/* ---- what an answer means ---- */

static bool has_reason(struct slice refusal, const char *wanted)
{
	struct kube_status status;
	struct arena arena;
	struct error ignored;
	bool equal;

	arena_init(&arena, STATUS_ARENA_BYTES);
	equal = kube_status_from_json(refusal, &arena, &status, &ignored) && slice_equal_text(status.reason, wanted);
	arena_destroy(&arena);
	return equal;
}

/* F26. The reasons Timeout and TooManyRequests come with 504 and 429. */
static bool may_retry(int status, struct slice refusal)
{
	return status == 429 || status == 504 || (status == 500 && has_reason(refusal, "ServerTimeout"));
}

static void send_call(void *context);

static bool retry(struct reservation_call *call, int status)
{
	static const uint64_t WAITS_MS[EXTENDER_CALL_TRIES - 1] = { 10, 50, 250 };
	struct loop *loop = call->calls->loop;
	uint64_t wait_ns;

	if (call->tries >= EXTENDER_CALL_TRIES || !may_retry(status, kube_call_refusal(call->call)))
		return false;
	wait_ns = WAITS_MS[call->tries - 1] * NS_PER_MS;
	wait_ns += rng_between(loop_rng(loop), 0, wait_ns / 10);
	if (loop_now_ns(loop) + wait_ns >= call->deadline_ns)
		return false;
	loop_timer_start(loop, &call->wait, wait_ns, send_call, call);
	return true;
}

static void on_done(void *context, int status, struct slice body, const struct error *err)
{
	struct reservation_call *call = context;

	if (err != NULL && retry(call, status)) {
		call->call = NULL;
		return;
	}
	call->call = NULL;
	finish(call, status, body, err);
}

/* ---- the beginning ---- */

static bool start(struct reservation_call *call, struct error *err)
{
	static const struct kube_handler HANDLER = { .on_done = on_done };
	static const char *const METHODS[] = {
		[EXTENDER_KUBE_READ] = "GET",
		[EXTENDER_KUBE_CREATE] = "POST",
		[EXTENDER_KUBE_UPDATE] = "PUT",
	};
	static const char *const VERBS[] = {
		[EXTENDER_KUBE_READ] = "get",
		[EXTENDER_KUBE_CREATE] = "post",
		[EXTENDER_KUBE_UPDATE] = "put",
	};
	uint64_t now_ns = loop_now_ns(call->calls->loop);
	const struct kube_request request = {
		.method = slice_of(METHODS[call->method]),
		.path = buffer_slice(&call->path),
		.content_type = SLICE("application/json"),
		.body = buffer_slice(&call->body),
		.limiter = call->calls->limiter,
		.timeout_ns = call->deadline_ns > now_ns ? call->deadline_ns - now_ns : 1,
		.max_body_bytes = EXTENDER_RESERVATION_BYTES,
		.verb = VERBS[call->method],
		.resource = "availablecapacityreservations.csi-baremetal.dell.com",
		.name = slice_of(call->name),
	};

	call->tries++;
	call->call = kube_client_send(call->calls->client, &request, &HANDLER, call, err);
	return call->call != NULL;
}

static void send_call(void *context)
{
	struct reservation_call *call = context;
	struct error err;

	if (!start(call, &err))
		finish(call, 0, (struct slice){ 0 }, &err);
}

static struct reservation_call *make(const struct reservation_calls *calls, enum extender_kube_method method,
                                     struct slice name, struct slice body, uint64_t deadline_ns, struct error *err)
{
	struct reservation_call *call = memory_allocate(sizeof *call);

	if (call == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a call to the API server");
		return NULL;
	}
	call->calls = calls;
	call->method = method;
	call->started_ns = loop_now_ns(calls->loop);
	call->deadline_ns = deadline_ns;
	buffer_init(&call->path, EXTENDER_PATH_BYTES);
	buffer_init(&call->body, EXTENDER_RESERVATION_BYTES);
	buffer_append_text(&call->path, COLLECTION);
	if (method != EXTENDER_KUBE_CREATE) {
		buffer_append_char(&call->path, '/');
		http_append_escaped(&call->path, name);
	}
	buffer_append_slice(&call->body, body);
	call->name = memory_copy_text(name.data, name.length);
	if (call->name == NULL)
		error_set(err, ERROR_NO_MEMORY, "no memory for a call to the API server");
	else if (buffer_check(&call->path, "the reservation's path", err) &&
	         buffer_check(&call->body, "the reservation", err))
		return call;
	free_call(call);
	return NULL;
}

static struct reservation_call *begin(const struct reservation_calls *calls, enum extender_kube_method method,
                                      struct slice name, struct slice body, uint64_t deadline_ns,
                                      reservation_callback *callback, void *context, struct error *err)
{
	struct reservation_call *call = make(calls, method, name, body, deadline_ns, err);

	if (call == NULL)
		return NULL;
	call->callback = callback;
	call->context = context;
	if (!start(call, err)) {
		free_call(call);
		return NULL;
	}
	return call;
}

struct reservation_call *reservation_read(const struct reservation_calls *calls, struct slice name,
                                          uint64_t deadline_ns, reservation_callback *callback, void *context,
                                          struct error *err)
{
	return begin(calls, EXTENDER_KUBE_READ, name, (struct slice){ 0 }, deadline_ns, callback, context, err);
}

struct reservation_call *reservation_create(const struct reservation_calls *calls, struct slice name, struct slice body,
                                            uint64_t deadline_ns, reservation_callback *callback, void *context,
                                            struct error *err)
{
	return begin(calls, EXTENDER_KUBE_CREATE, name, body, deadline_ns, callback, context, err);
}

struct reservation_call *reservation_replace(const struct reservation_calls *calls, struct slice name,
                                             struct slice body, uint64_t deadline_ns, reservation_callback *callback,
                                             void *context, struct error *err)
{
	return begin(calls, EXTENDER_KUBE_UPDATE, name, body, deadline_ns, callback, context, err);
}
