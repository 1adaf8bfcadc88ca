#include "agent/vm_watch.h"

#include "agent/vm_watch_events.h"
#include "agent/vm_watch_object.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "kube/limits.h"
#include "kube/watch_store.h"

enum {
	ARENA_BYTES = 16 * WATCH_STORE_ELEMENT_BYTES,
	RETRY_LOW_MS = 500, /* 4.7 */
	RETRY_HIGH_MS = 1000,
	PAGE_SIZE = 500,
	REFUSED_WAIT_MS = 1000,
	DELIVERED_PER_TURN = 4, /* a runner starts in some 50 us, longer when its log is slow */
};

struct vm_watch {
	struct loop *loop;
	struct watch_store *store;
	struct vm_watch_filter filter;
	struct vm_watch_events events;
	struct vm_watch_handler handler;
	void *context;
	struct agent_metrics *metrics;
	struct arena arena; /* for the object being decoded */
	struct loop_task delivery;
	struct loop_timer again; /* after an event that the handler had no memory for */
};

/* ---- objects ---- */

static void *decode_vm(void *context, struct slice json, struct slice *ret_uid, struct slice *ret_name,
                       struct error *err)
{
	struct vm_watch *watch = context;
	struct watched_vm *vm = watched_vm_decode(json, &watch->filter, &watch->arena, ret_name, err);

	if (vm == NULL)
		return NULL;
	*ret_uid = vm->uid;
	return vm;
}

static void release_vm(void *context, void *object)
{
	(void)context;
	watched_vm_release(object);
}

static void deliver_some(void *context);

static void try_refused_later(struct vm_watch *watch)
{
	if (!watch->events.refused)
		return;
	watch->events.refused = false;
	loop_timer_start(watch->loop, &watch->again, (uint64_t)REFUSED_WAIT_MS * NS_PER_MS, deliver_some, watch);
}

static void on_add(void *context, void *object)
{
	struct vm_watch *watch = context;

	vm_watch_events_add(&watch->events, object);
	try_refused_later(watch);
}

static void on_update(void *context, void *before, void *after)
{
	struct vm_watch *watch = context;

	vm_watch_events_update(&watch->events, before, after);
	try_refused_later(watch);
}

static void on_delete(void *context, void *object)
{
	struct vm_watch *watch = context;

	vm_watch_events_delete(&watch->events, object);
}

/* ---- the watch itself ---- */

static void on_started(void *context)
{
	struct vm_watch *watch = context;

	agent_metrics_set_watch_alive(watch->metrics, AGENT_WATCHER_VIRTUAL_MACHINES, true);
	watch->handler.on_started(watch->context);
}

static void on_start_failed(void *context, const struct error *err)
{
	struct vm_watch *watch = context;

	watch->handler.on_start_failed(watch->context, err);
}

static void on_call(void *context, enum watch_store_call call)
{
	struct vm_watch *watch = context;

	agent_metrics_count_watch_call(watch->metrics, AGENT_WATCHER_VIRTUAL_MACHINES, call);
}

static void on_event(void *context, enum watch_store_event event)
{
	struct vm_watch *watch = context;

	agent_metrics_count_watch_event(watch->metrics, AGENT_WATCHER_VIRTUAL_MACHINES, event);
}

static void on_error(void *context, enum watch_store_error error)
{
	struct vm_watch *watch = context;

	agent_metrics_count_watch_error(watch->metrics, AGENT_WATCHER_VIRTUAL_MACHINES, error);
}

static void on_failing(void *context, bool failing)
{
	struct vm_watch *watch = context;

	agent_metrics_set_watch_failing(watch->metrics, AGENT_WATCHER_VIRTUAL_MACHINES, failing);
}

static struct watch_store *start_store(struct vm_watch *watch, const struct vm_watch_options *options,
                                       struct error *err)
{
	static const struct watch_store_type type = {
		.path = "/apis/vm.neon.tech/v1/virtualmachines",
		.resource = "virtualmachines.vm.neon.tech",
		.decode = decode_vm,
		.release = release_vm,
	};
	static const struct watch_store_handler handler = {
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_started = on_started,
		.on_start_failed = on_start_failed,
		.on_call = on_call,
		.on_event = on_event,
		.on_error = on_error,
		.on_failing = on_failing,
	};
	const struct watch_store_options settings = {
		.retry_unit_ns = NS_PER_MS,
		.retry_low = RETRY_LOW_MS,
		.retry_high = RETRY_HIGH_MS,
		.page_size = PAGE_SIZE,
		.limiter = options->limiter,
		.logger = { .sink = options->log_sink, .name = "autoscaler-agent.vm-watch.watch", .context_json = "" },
	};

	return watch_store_start(options->loop, options->client, &type, &settings, &handler, watch, err);
}

struct vm_watch *vm_watch_start(const struct vm_watch_options *options, const struct vm_watch_handler *handler,
                                void *context, struct error *err)
{
	struct vm_watch *watch = memory_allocate(sizeof *watch);

	if (watch == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the VM watch");
		return NULL;
	}
	watch->loop = options->loop;
	watch->filter.node_name = slice_of(options->node_name);
	watch->filter.scheduler_name = slice_of(options->scheduler_name);
	watch->filter.generation = options->generation;
	watch->handler = *handler;
	watch->context = context;
	watch->metrics = options->metrics;
	watch->events = (struct vm_watch_events){
		.vm_metrics = options->vm_metrics,
		.deliver = handler->on_event,
		.context = context,
		.logger = { .sink = options->log_sink, .name = "autoscaler-agent.vm-watch", .context_json = "" },
	};
	arena_init(&watch->arena, ARENA_BYTES);
	watch->store = start_store(watch, options, err);
	if (watch->store == NULL) {
		vm_watch_stop(watch);
		return NULL;
	}
	return watch;
}

/* From the start each time: a position means nothing once the store has changed. */
static void deliver_some(void *context)
{
	struct vm_watch *watch = context;
	size_t position = 0;
	int delivered = 0;
	struct watched_vm *vm;

	while ((vm = watch_store_next(watch->store, &position)) != NULL) {
		if (vm->here == NULL || !vm->here->waiting)
			continue;
		if (delivered++ == DELIVERED_PER_TURN) {
			loop_run_soon(watch->loop, &watch->delivery, deliver_some, watch);
			break;
		}
		vm->here->waiting = false;
		vm_watch_events_announce(&watch->events, vm);
		if (watch->events.refused)
			break;
	}
	try_refused_later(watch);
}

void vm_watch_deliver(struct vm_watch *watch)
{
	size_t position = 0;
	struct watched_vm *vm;

	watch->events.delivering = true;
	/* A VM that changes from here on is another object, which doesn't wait. */
	while ((vm = watch_store_next(watch->store, &position)) != NULL) {
		if (vm->here != NULL)
			vm->here->waiting = vm->here->ours;
	}
	loop_run_soon(watch->loop, &watch->delivery, deliver_some, watch);
}

bool vm_watch_failing(const struct vm_watch *watch)
{
	return watch_store_failing(watch->store);
}

void vm_watch_stop(struct vm_watch *watch)
{
	if (watch == NULL)
		return;
	loop_task_cancel(watch->loop, &watch->delivery);
	loop_timer_stop(watch->loop, &watch->again);
	agent_metrics_set_watch_alive(watch->metrics, AGENT_WATCHER_VIRTUAL_MACHINES, false);
	watch_store_destroy(watch->store);
	arena_destroy(&watch->arena);
	memory_release(watch);
}

bool vm_watch_next(const struct vm_watch *watch, size_t *position, struct vm_watch_vm *ret_vm)
{
	const struct watched_vm *vm;

	while ((vm = watch_store_next(watch->store, position)) != NULL) {
		if (vm->here == NULL)
			continue;
		*ret_vm = (struct vm_watch_vm){
			.uid = vm->uid,
			.namespace = vm->here->namespace,
			.name = vm->here->name,
			.phase = vm->here->phase,
			.autoscaling_enabled = vm->here->autoscaling_enabled,
			.has_status_cpu = vm->here->has_status_cpu,
			.status_cpu_milli = vm->here->status_cpu_milli,
			.has_billing_endpoint_id = vm->here->has_billing_endpoint_id,
			.billing_endpoint_id = vm->here->billing_endpoint_id,
		};
		return true;
	}
	return false;
}
