/*
 * A pod goes through waiting → attempting → binding → bound, and from the middle ones back to waiting. Observers may not write, so what they see
 * only makes a task run, which looks at the pods that are being bound.
 */
#include "sandbox/kube_scheduler.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/kube_scheduler_internal.h"
#include "sandbox/storage_objects.h"

static uint64_t scaled_ns(const struct kube_scheduler *scheduler, unsigned ms)
{
	return (uint64_t)(ms / scheduler->options.speed * NS_PER_MS);
}

/* ---- the queue ---- */

static void on_due(void *context);

/* Follows the pod that is due first, unless one is being attempted. */
static void follow_queue(struct kube_scheduler *scheduler)
{
	uint64_t now_ns = loop_now_ns(scheduler->loop), due_ns = UINT64_MAX;

	loop_timer_stop(scheduler->loop, &scheduler->timer);
	if (scheduler->attempt.pod != NULL)
		return;
	for (const struct scheduled_pod *pod = scheduler->pods; pod != NULL; pod = pod->next) {
		if (pod->state == SCHEDULED_WAITING && pod->due_ns < due_ns)
			due_ns = pod->due_ns;
	}
	if (due_ns != UINT64_MAX)
		loop_timer_start(scheduler->loop, &scheduler->timer, due_ns > now_ns ? due_ns - now_ns : 0, on_due,
		                 scheduler);
}

/* From 1 s doubling to 10 s (U7). */
static void put_off(struct kube_scheduler *scheduler, struct scheduled_pod *pod)
{
	unsigned delay_ms = KUBE_SCHEDULER_BACKOFF_MS;

	for (unsigned i = 0; i < pod->failures && delay_ms < KUBE_SCHEDULER_BACKOFF_MAX_MS; i++)
		delay_ms *= 2;
	if (delay_ms > KUBE_SCHEDULER_BACKOFF_MAX_MS)
		delay_ms = KUBE_SCHEDULER_BACKOFF_MAX_MS;
	pod->failures++;
	pod->state = SCHEDULED_WAITING;
	pod->due_ns = loop_now_ns(scheduler->loop) + scaled_ns(scheduler, delay_ms);
}

static void fail(struct kube_scheduler *scheduler, struct scheduled_pod *pod, const char *why)
{
	put_off(scheduler, pod);
	if (pod->gone)
		return;
	scheduler_pod_tell(scheduler, pod, "FailedScheduling", "0 nodes are available");
	if (scheduler->handler.on_unschedulable != NULL)
		scheduler->handler.on_unschedulable(scheduler->context, slice_of(pod->name_space), slice_of(pod->name),
		                                    why);
}

static void remove_pod(struct kube_scheduler *scheduler, struct scheduled_pod *pod)
{
	struct scheduled_pod **place = &scheduler->pods;

	while (*place != pod)
		place = &(*place)->next;
	*place = pod->next;
	memory_release(pod);
}

/* ---- an attempt ---- */

/* The next pod may be tried. */
static void end_attempt(struct kube_scheduler *scheduler)
{
	struct scheduled_pod *pod = scheduler->attempt.pod;

	scheduler->attempt.pod = NULL;
	arena_destroy(&scheduler->attempt.arena);
	scheduler->attempt.nodes = NULL;
	scheduler->attempt.node_count = 0;
	if (pod->gone)
		remove_pod(scheduler, pod);
	follow_queue(scheduler);
}

static void look_at_binding(void *context);

/* The best of them; one of several by chance. */
static void choose(struct kube_scheduler *scheduler)
{
	struct attempt *attempt = &scheduler->attempt;
	struct scheduled_pod *pod = attempt->pod;
	const struct node_choice *best = &attempt->nodes[0];
	unsigned equals = 1;
	struct error err;

	for (size_t i = 1; i < attempt->node_count; i++) {
		const struct node_choice *node = &attempt->nodes[i];

		if (node->score > best->score) {
			best = node;
			equals = 1;
		} else if (node->score == best->score && rng_between(loop_rng(scheduler->loop), 0, ++equals) == 0) {
			best = node;
		}
	}
	(void)snprintf(pod->seen.node, sizeof pod->seen.node, "%.*s", SLICE_ARGS(best->name));
	if (!pod->gone && !scheduler_pod_select_node(scheduler, pod, &err)) {
		fail(scheduler, pod, err.text);
	} else {
		pod->state = SCHEDULED_BINDING;
		pod->bind_until_ns = loop_now_ns(scheduler->loop) + scaled_ns(scheduler, KUBE_SCHEDULER_BIND_MS);
		loop_run_soon(scheduler->loop, &scheduler->task, look_at_binding, scheduler);
	}
	end_attempt(scheduler);
}

void scheduler_prioritized(struct kube_scheduler *scheduler)
{
	choose(scheduler);
}

void scheduler_filtered(struct kube_scheduler *scheduler, const struct error *failure)
{
	struct attempt *attempt = &scheduler->attempt;
	struct error err;

	if (failure != NULL && scheduler->options.strict) {
		fail(scheduler, attempt->pod, failure->text);
		end_attempt(scheduler);
		return;
	}
	attempt->pod->seen.unchecked = failure != NULL;
	/* Otherwise a failed call leaves all nodes (U4). */
	if (attempt->node_count == 0) {
		fail(scheduler, attempt->pod, "the extender left no node");
		end_attempt(scheduler);
		return;
	}
	if (attempt->node_count == 1 || !scheduler_call_prioritize(scheduler, &err))
		choose(scheduler);
}

static void begin_attempt(struct kube_scheduler *scheduler, struct scheduled_pod *pod)
{
	struct attempt *attempt = &scheduler->attempt;
	struct error err;

	pod->state = SCHEDULED_ATTEMPTING;
	*attempt = (struct attempt){ .pod = pod };
	arena_init(&attempt->arena, STORAGE_ARENA_BYTES);
	if (!scheduler_pod_begin(scheduler, attempt, &err)) {
		fail(scheduler, pod, err.text);
		end_attempt(scheduler);
	} else if (!scheduler_call_filter(scheduler, &err)) {
		scheduler->counters.failed_filter_calls++;
		scheduler_filtered(scheduler, &err);
	}
}

static void on_due(void *context)
{
	struct kube_scheduler *scheduler = context;
	uint64_t now_ns = loop_now_ns(scheduler->loop);
	struct scheduled_pod *first = NULL;

	for (struct scheduled_pod *pod = scheduler->pods; pod != NULL; pod = pod->next) {
		if (pod->state == SCHEDULED_WAITING && pod->due_ns <= now_ns &&
		    (first == NULL || pod->due_ns < first->due_ns))
			first = pod;
	}
	if (first != NULL)
		begin_attempt(scheduler, first);
	else
		follow_queue(scheduler);
}

/* ---- pods with a node, whose volumes are being made ---- */

static void go_on_binding(struct kube_scheduler *scheduler, struct scheduled_pod *pod)
{
	enum claims_state state = scheduler_pod_claims(scheduler, pod);
	struct error err;

	if (state == CLAIMS_PENDING && loop_now_ns(scheduler->loop) < pod->bind_until_ns)
		return;
	if (state != CLAIMS_BOUND) {
		scheduler_pod_unselect_node(scheduler, pod);
		fail(scheduler, pod, "its volumes couldn't be made on the node");
		return;
	}
	if (!scheduler_pod_bind(scheduler, pod, &err)) {
		fail(scheduler, pod, err.text);
		return;
	}
	pod->state = SCHEDULED_BOUND;
	pod->seen.bound = true;
	pod->seen.bound_ns = loop_now_ns(scheduler->loop);
	scheduler->counters.bound++;
	scheduler_pod_tell(scheduler, pod, "Scheduled", "Successfully assigned");
	if (scheduler->handler.on_bound != NULL)
		scheduler->handler.on_bound(scheduler->context, slice_of(pod->name_space), slice_of(pod->name),
		                            pod->seen.node);
}

static void look_at_binding(void *context)
{
	struct kube_scheduler *scheduler = context;

	for (struct scheduled_pod *pod = scheduler->pods; pod != NULL; pod = pod->next) {
		if (pod->state == SCHEDULED_BINDING && !pod->gone)
			go_on_binding(scheduler, pod);
	}
	follow_queue(scheduler);
}

/* ---- what the store tells ---- */

static struct scheduled_pod *find(const struct kube_scheduler *scheduler, struct slice name_space, struct slice name)
{
	for (struct scheduled_pod *pod = scheduler->pods; pod != NULL; pod = pod->next) {
		if (!pod->gone && slice_equal_text(name_space, pod->name_space) && slice_equal_text(name, pod->name))
			return pod;
	}
	return NULL;
}

static bool is_for_us(const struct stored_object *object)
{
	struct json_node *root;
	struct arena arena;
	struct error err;
	bool ours;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	ours = storage_parse(object, &arena, &root, &err) &&
	       slice_equal_text(storage_text(root, "/spec/schedulerName"), KUBE_SCHEDULER_NAME) &&
	       storage_text(root, "/spec/nodeName").length == 0;
	arena_destroy(&arena);
	return ours;
}

/* Without memory for it, a pod is never noticed; the run's judge will. */
static void add_pod(struct kube_scheduler *scheduler, const struct stored_object *object)
{
	struct scheduled_pod **place = &scheduler->pods;
	struct scheduled_pod *pod;

	if (!is_for_us(object))
		return;
	pod = memory_allocate(sizeof *pod);
	if (pod == NULL)
		return;
	(void)snprintf(pod->name_space, sizeof pod->name_space, "%.*s", SLICE_ARGS(object->name_space));
	(void)snprintf(pod->name, sizeof pod->name, "%.*s", SLICE_ARGS(object->name));
	pod->due_ns = pod->seen.created_ns = loop_now_ns(scheduler->loop);
	while (*place != NULL)
		place = &(*place)->next;
	*place = pod;
	follow_queue(scheduler);
}

static void delete_pod(struct kube_scheduler *scheduler, const struct stored_object *object)
{
	struct scheduled_pod *pod = find(scheduler, object->name_space, object->name);

	if (pod == NULL)
		return;
	if (pod == scheduler->attempt.pod)
		pod->gone = true;
	else
		remove_pod(scheduler, pod);
}

static void on_change(void *context, const struct object_change *change)
{
	struct kube_scheduler *scheduler = context;
	const struct resource_kind *kind = change->after->kind;

	if (kind == resource_kind(RESOURCE_CLAIMS))
		loop_run_soon(scheduler->loop, &scheduler->task, look_at_binding, scheduler);
	else if (kind == resource_kind(RESOURCE_PODS) && change->type == OBJECT_ADDED)
		add_pod(scheduler, change->after);
	else if (kind == resource_kind(RESOURCE_PODS) && change->type == OBJECT_DELETED)
		delete_pod(scheduler, change->after);
}

/* Those that came before the scheduler did. */
static void add_present(struct kube_scheduler *scheduler)
{
	const struct object_store *store = scheduler->options.store;
	const struct resource_kind *kind = resource_kind(RESOURCE_PODS);

	for (size_t i = 0; i < object_store_count(store, kind); i++)
		add_pod(scheduler, object_store_at(store, kind, i));
}

/* ---- life ---- */

struct kube_scheduler *kube_scheduler_create(struct loop *loop, const struct kube_scheduler_options *options,
                                             const struct kube_scheduler_handler *handler, void *context,
                                             struct error *err)
{
	struct kube_scheduler *scheduler = memory_allocate(sizeof *scheduler);

	if (scheduler == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a scheduler");
		return NULL;
	}
	scheduler->client = http_client_create(loop, err);
	if (scheduler->client == NULL) {
		memory_release(scheduler);
		return NULL;
	}
	scheduler->loop = loop;
	scheduler->options = *options;
	scheduler->handler = *handler;
	scheduler->context = context;
	scheduler->observer = (struct object_observer){ .on_change = on_change, .context = scheduler };
	object_store_observe(options->store, &scheduler->observer);
	add_present(scheduler);
	return scheduler;
}

void kube_scheduler_stop(struct kube_scheduler *scheduler)
{
	object_store_ignore(&scheduler->observer);
	loop_timer_stop(scheduler->loop, &scheduler->timer);
	loop_task_cancel(scheduler->loop, &scheduler->task);
	if (scheduler->attempt.exchange != NULL)
		http_exchange_cancel(scheduler->attempt.exchange);
	scheduler->attempt.exchange = NULL;
}

void kube_scheduler_destroy(struct kube_scheduler *scheduler)
{
	if (scheduler == NULL)
		return;
	kube_scheduler_stop(scheduler);
	http_client_destroy(scheduler->client);
	arena_destroy(&scheduler->attempt.arena);
	while (scheduler->pods != NULL)
		remove_pod(scheduler, scheduler->pods);
	memory_release(scheduler);
}

bool kube_scheduler_find(const struct kube_scheduler *scheduler, struct slice name_space, struct slice name,
                         struct kube_scheduler_pod *ret_pod)
{
	const struct scheduled_pod *pod = find(scheduler, name_space, name);

	if (pod == NULL)
		return false;
	*ret_pod = pod->seen;
	return true;
}

struct kube_scheduler_counters kube_scheduler_counters(const struct kube_scheduler *scheduler)
{
	return scheduler->counters;
}
