/*
 * The watch store holds one struct known_pod per pod. What is tracked of an active pod hangs on it, and moves on to
 * its successor as long as the pod stays active: so an address that changes meanwhile isn't noticed, as in the
 * reference (agent-runtime 9.3).
 */
#include "agent/scheduler_tracking.h"

#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "gen/pod.gen.h"
#include "kube/watch_store.h"

enum {
	POD_DECODE_BYTES = 16 * 1024 * 1024,
	SELECTOR_BYTES = 512,
	RETRY_LOW_S = 4, /* 4.7 */
	RETRY_HIGH_S = 5,
	PAGE_SIZE = 500,
};

static const uint64_t RETRY_UNIT_NS = 1000000000;

struct tracked_pod {
	int64_t created_ns;
	const char *uid, *name, *ip; /* in text */
	char text[];
};

struct known_pod {
	struct tracked_pod *tracked; /* NULL: not active */
	struct slice uid, name;      /* in text */
	char text[];
};

struct scheduler_tracking {
	struct watch_store *store;
	struct watch_store_type type;
	struct buffer selector;
	struct arena arena;
	struct agent_metrics *metrics;
	struct logger logger;
	struct scheduler_tracking_handler handler;
	void *context;
	const struct tracked_pod *current;
	size_t count;
};

/* ---- pods ---- */

/* Copies text and a NUL to *at, moves *at on, returns the copy. */
static const char *put(char **at, struct slice text)
{
	char *copy = *at;

	if (text.length > 0)
		memcpy(copy, text.data, text.length);
	copy[text.length] = '\0';
	*at += text.length + 1;
	return copy;
}

/* 9.2: deletionTimestamp and phase are ignored. */
static bool is_active(const struct pod_pod *pod)
{
	if (pod->status.pod_ip.length == 0)
		return false;
	for (size_t i = 0; i < pod->status.conditions_count; i++)
		if (slice_equal_text(pod->status.conditions[i].type, "Ready"))
			return slice_equal_text(pod->status.conditions[i].status, "True");
	return false;
}

static struct tracked_pod *tracked_create(const struct pod_pod *pod)
{
	const struct kube_object_meta *meta = &pod->metadata;
	size_t length = meta->uid.length + meta->name.length + pod->status.pod_ip.length + 3;
	struct tracked_pod *tracked = memory_allocate(sizeof *tracked + length);
	char *at;

	if (tracked == NULL)
		return NULL;
	at = tracked->text;
	tracked->created_ns = meta->creation_timestamp_ns;
	tracked->uid = put(&at, meta->uid);
	tracked->name = put(&at, meta->name);
	tracked->ip = put(&at, pod->status.pod_ip);
	return tracked;
}

static void release_pod(void *context, void *object)
{
	struct known_pod *pod = object;

	(void)context;
	memory_release(pod->tracked);
	memory_release(pod);
}

static struct known_pod *known_create(const struct pod_pod *pod, struct error *err)
{
	const struct kube_object_meta *meta = &pod->metadata;
	struct known_pod *known = memory_allocate(sizeof *known + meta->uid.length + meta->name.length + 2);
	char *at;

	if (known != NULL && is_active(pod)) {
		known->tracked = tracked_create(pod);
		if (known->tracked == NULL) {
			memory_release(known);
			known = NULL;
		}
	}
	if (known == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a scheduler pod");
		return NULL;
	}
	at = known->text;
	known->uid = slice_from(put(&at, meta->uid), meta->uid.length);
	known->name = slice_from(put(&at, meta->name), meta->name.length);
	return known;
}

static void *decode_pod(void *context, struct slice json, struct slice *ret_uid, struct slice *ret_name,
                        struct error *err)
{
	struct scheduler_tracking *tracking = context;
	struct known_pod *known;
	struct pod_pod pod;

	arena_reset(&tracking->arena);
	if (!pod_pod_from_json(json, &tracking->arena, &pod, err))
		return NULL;
	if (pod.metadata.uid.length == 0) {
		error_set(err, ERROR_SYNTAX, "a pod without uid");
		return NULL;
	}
	known = known_create(&pod, err);
	if (known == NULL)
		return NULL;
	*ret_uid = known->uid;
	*ret_name = known->name;
	return known;
}

/* ---- the choice ---- */

static const struct tracked_pod *newest(const struct scheduler_tracking *tracking)
{
	const struct tracked_pod *best = NULL;
	size_t position = 0;
	const struct known_pod *pod;

	while ((pod = watch_store_next(tracking->store, &position)) != NULL)
		if (pod->tracked != NULL && (best == NULL || pod->tracked->created_ns > best->created_ns))
			best = pod->tracked;
	return best;
}

/* 9.4. */
static void choose(struct scheduler_tracking *tracking)
{
	const struct tracked_pod *before = tracking->current;
	const struct tracked_pod *now = newest(tracking);
	const struct logger *logger = &tracking->logger;

	tracking->current = now;
	if (now == NULL)
		log_warn(logger,
		         before != NULL ? "No scheduler pod available anymore" : "No scheduler pod available (still)",
		         log_uint("count", tracking->count));
	else if (before == NULL)
		log_info(logger, "Scheduler pod now available (there was none before)",
		         log_uint("count", tracking->count), log_text("name", now->name), log_text("ip", now->ip));
	else
		log_info(logger,
		         now != before ? "Scheduler pod selection changed" : "Scheduler pod selection is unchanged",
		         log_uint("count", tracking->count), log_text("name", now->name), log_text("ip", now->ip));
}

static void on_add(void *context, void *object)
{
	struct scheduler_tracking *tracking = context;
	const struct known_pod *pod = object;

	if (pod->tracked == NULL)
		return;
	tracking->count++;
	choose(tracking);
}

static void on_update(void *context, void *before, void *after)
{
	struct scheduler_tracking *tracking = context;
	struct known_pod *old = before;
	struct known_pod *new = after;

	if (old->tracked != NULL && new->tracked != NULL) {
		memory_release(new->tracked);
		new->tracked = old->tracked;
		old->tracked = NULL;
	} else if (new->tracked != NULL) {
		tracking->count++;
		choose(tracking);
	} else if (old->tracked != NULL) {
		tracking->count--;
		choose(tracking);
	}
}

static void on_delete(void *context, void *object)
{
	struct scheduler_tracking *tracking = context;
	const struct known_pod *pod = object;

	if (pod->tracked == NULL)
		return;
	tracking->count--;
	choose(tracking);
}

/* ---- the watch ---- */

static void on_started(void *context)
{
	struct scheduler_tracking *tracking = context;

	if (tracking->metrics != NULL)
		agent_metrics_set_watch_alive(tracking->metrics, AGENT_WATCHER_SCHEDULER_POD, true);
	tracking->handler.on_started(tracking->context);
}

static void on_start_failed(void *context, const struct error *err)
{
	struct scheduler_tracking *tracking = context;

	tracking->handler.on_start_failed(tracking->context, err);
}

static void on_call(void *context, enum watch_store_call call)
{
	struct scheduler_tracking *tracking = context;

	if (tracking->metrics != NULL)
		agent_metrics_count_watch_call(tracking->metrics, AGENT_WATCHER_SCHEDULER_POD, call);
}

static void on_event(void *context, enum watch_store_event event)
{
	struct scheduler_tracking *tracking = context;

	if (tracking->metrics != NULL)
		agent_metrics_count_watch_event(tracking->metrics, AGENT_WATCHER_SCHEDULER_POD, event);
}

static void on_error(void *context, enum watch_store_error error)
{
	struct scheduler_tracking *tracking = context;

	if (tracking->metrics != NULL)
		agent_metrics_count_watch_error(tracking->metrics, AGENT_WATCHER_SCHEDULER_POD, error);
}

static void on_failing(void *context, bool failing)
{
	struct scheduler_tracking *tracking = context;

	if (tracking->metrics != NULL)
		agent_metrics_set_watch_failing(tracking->metrics, AGENT_WATCHER_SCHEDULER_POD, failing);
}

static bool start_store(struct scheduler_tracking *tracking, const struct scheduler_tracking_options *options,
                        struct error *err)
{
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
	struct watch_store_options settings = {
		.deliver_before_watch = true,
		.retry_unit_ns = RETRY_UNIT_NS,
		.retry_low = RETRY_LOW_S,
		.retry_high = RETRY_HIGH_S,
		.page_size = PAGE_SIZE,
		.limiter = options->limiter,
		.logger = { .sink = options->log_sink,
		            .name = "autoscaler-agent.watch-schedulers.watch",
		            .context_json = "" },
	};

	buffer_append_format(&tracking->selector, "name=%s", options->scheduler_name);
	buffer_append_char(&tracking->selector, '\0');
	if (!buffer_check(&tracking->selector, "the scheduler's label selector", err))
		return false;
	tracking->type = (struct watch_store_type){
		.path = "/api/v1/namespaces/kube-system/pods",
		.label_selector = tracking->selector.data,
		.resource = "pods",
		.decode = decode_pod,
		.release = release_pod,
	};
	tracking->store =
		watch_store_start(options->loop, options->client, &tracking->type, &settings, &handler, tracking, err);
	return tracking->store != NULL;
}

struct scheduler_tracking *scheduler_tracking_start(const struct scheduler_tracking_options *options,
                                                    const struct scheduler_tracking_handler *handler, void *context,
                                                    struct error *err)
{
	struct scheduler_tracking *tracking = memory_allocate(sizeof *tracking);

	if (tracking == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the scheduler watch");
		return NULL;
	}
	tracking->metrics = options->metrics;
	tracking->handler = *handler;
	tracking->context = context;
	tracking->logger = (struct logger){ .sink = options->log_sink,
		                            .name = "autoscaler-agent.watch-schedulers",
		                            .context_json = "" };
	arena_init(&tracking->arena, POD_DECODE_BYTES);
	buffer_init(&tracking->selector, SELECTOR_BYTES);
	if (!start_store(tracking, options, err)) {
		scheduler_tracking_stop(tracking);
		return NULL;
	}
	return tracking;
}

const char *scheduler_tracking_current(const struct scheduler_tracking *tracking)
{
	return tracking->current != NULL ? tracking->current->ip : NULL;
}

size_t scheduler_tracking_count(const struct scheduler_tracking *tracking)
{
	return tracking->count;
}

void scheduler_tracking_stop(struct scheduler_tracking *tracking)
{
	if (tracking == NULL)
		return;
	if (tracking->metrics != NULL)
		agent_metrics_set_watch_alive(tracking->metrics, AGENT_WATCHER_SCHEDULER_POD, false);
	watch_store_destroy(tracking->store);
	arena_destroy(&tracking->arena);
	buffer_destroy(&tracking->selector);
	memory_release(tracking);
}
