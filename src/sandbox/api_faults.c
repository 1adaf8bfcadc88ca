/*
 * Requests of the stand-in API server that go wrong by design.
 */
#include "base/memory.h"
#include "sandbox/api_server_internal.h"

static const char CONFLICT[] =
	"Operation cannot be fulfilled: the object has been modified; please apply your changes to the "
	"latest version and try again";

struct slow_call {
	struct api_pending pending; /* first */
	struct loop_timer timer;
	void (*serve)(struct api_server *server, struct http_call *call);
};

static void release_slow(struct api_pending *pending)
{
	struct slow_call *slow = (struct slow_call *)(void *)pending;

	loop_timer_stop(pending->server->loop, &slow->timer);
	memory_release(slow);
}

static void on_time(void *context)
{
	struct slow_call *slow = context;
	void (*serve)(struct api_server * server, struct http_call * call) = slow->serve;
	struct api_server *server = slow->pending.server;
	struct http_call *call = slow->pending.call;

	api_pending_drop(&slow->pending);
	serve(server, call);
}

/* False without memory: then it is served at once. */
static bool serve_later(struct api_server *server, struct http_call *call,
                        void (*serve)(struct api_server *server, struct http_call *call))
{
	struct slow_call *slow = memory_allocate(sizeof *slow);

	if (slow == NULL)
		return false;
	slow->pending.release = release_slow;
	slow->serve = serve;
	api_pending_add(&slow->pending, server, call);
	loop_timer_start(server->loop, &slow->timer, faults_slow_ns(server->faults), on_time, slow);
	return true;
}

static enum fault_target target_of(struct slice method)
{
	return slice_equal_text(method, "PUT") || slice_equal_text(method, "PATCH") ? FAULTS_OF_API_WRITES
	                                                                            : FAULTS_OF_API_READS;
}

bool api_meet_fault(struct api_server *server, struct http_call *call,
                    void (*serve)(struct api_server *server, struct http_call *call))
{
	struct api_error error;

	if (server->faults == NULL)
		return false;
	switch (faults_draw(server->faults, target_of(http_call_method(call)))) {
	case FAULT_API_ERROR:
		api_error_set(&error, 500, "InternalError",
		              SLICE("Internal error occurred: etcdserver: leader changed"));
		break;
	case FAULT_API_TOO_MANY:
		api_error_too_many(&error);
		break;
	case FAULT_API_CONFLICT:
		api_error_set(&error, 409, "Conflict", slice_of(CONFLICT));
		break;
	case FAULT_API_SLOW:
		return serve_later(server, call, serve);
	case FAULT_API_CLOSED:
		http_call_abort(call, true);
		return true;
	default:
		return false;
	}
	api_answer_error(server, call, &error);
	return true;
}
