/*
 * The watch store holds one struct known_pod per pod. What is tracked of an active pod hangs on it, and moves on to
 * its successor as long as the pod stays active: so an address that changes meanwhile isn't noticed, as in the
 * reference (agent-runtime 9.3).
 *
 * Each change among the active pods leads to choose(), which asks the policy. The sticky one may have to wait before
 * it takes the next pod: then a timer chooses again.
 */
#include "agent/scheduler_tracking.h"

#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
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
static const uint64_t ADOPTION_LEAST_NS = UINT64_C(5) * NS_PER_S; /* from one to the next (generations 4.1) */

struct tracked_pod {
	int64_t created_ns;
	uint64_t order;             /* in which the pods became active */
	struct scheduler_peer peer; /* in text */
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
	struct loop *loop;
	bool sticky;
	bool started;
	bool has_adopted; /* sticky: a pod was chosen before, at adopted_at_ns */
	uint64_t adopted_at_ns;
	uint64_t activations;
	struct loop_timer adoption;
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
	tracked->peer.uid = put(&at, meta->uid);
	tracked->peer.name = put(&at, meta->name);
	tracked->peer.ip = put(&at, pod->status.pod_ip);
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

static const struct tracked_pod *active_longest(const struct scheduler_tracking *tracking)
{
	const struct tracked_pod *best = NULL;
	size_t position = 0;
	const struct known_pod *pod;

	while ((pod = watch_store_next(tracking->store, &position)) != NULL)
		if (pod->tracked != NULL && (best == NULL || pod->tracked->order < best->order))
			best = pod->tracked;
	return best;
}

static void choose_later(void *context);

/* left: the pod that is no longer active, if any. */
static const struct tracked_pod *stick(struct scheduler_tracking *tracking, const struct tracked_pod *left)
{
	uint64_t now_ns = loop_now_ns(tracking->loop);
	const struct tracked_pod *next;

	if (tracking->current != NULL && tracking->current != left)
		return tracking->current;
	if (tracking->has_adopted && now_ns - tracking->adopted_at_ns < ADOPTION_LEAST_NS) {
		loop_timer_start(tracking->loop, &tracking->adoption,
		                 ADOPTION_LEAST_NS - (now_ns - tracking->adopted_at_ns), choose_later, tracking);
		return NULL;
	}
	next = tracking->started ? active_longest(tracking) : newest(tracking);
	if (next != NULL) {
		tracking->has_adopted = true;
		tracking->adopted_at_ns = now_ns;
	}
	return next;
}

/* 9.4. before: may be gone already. */
static void log_choice(const struct scheduler_tracking *tracking, const struct tracked_pod *before)
{
	const struct tracked_pod *now = tracking->current;
	const struct logger *logger = &tracking->logger;

	if (now == NULL)
		log_warn(logger,
		         before != NULL ? "No scheduler pod available anymore" : "No scheduler pod available (still)",
		         log_uint("count", tracking->count));
	else if (before == NULL)
		log_info(logger, "Scheduler pod now available (there was none before)",
		         log_uint("count", tracking->count), log_text("name", now->peer.name),
		         log_text("ip", now->peer.ip));
	else
		log_info(logger,
		         now != before ? "Scheduler pod selection changed" : "Scheduler pod selection is unchanged",
		         log_uint("count", tracking->count), log_text("name", now->peer.name),
		         log_text("ip", now->peer.ip));
}

static void choose(struct scheduler_tracking *tracking, const struct tracked_pod *left)
{
	const struct tracked_pod *before = tracking->current;

	/* Which one to stick to is chosen when the first list is whole. */
	if (tracking->sticky && !tracking->started)
		return;
	tracking->current = tracking->sticky ? stick(tracking, left) : newest(tracking);
	log_choice(tracking, before);
	if (tracking->current != before && tracking->started && tracking->handler.on_changed != NULL)
		tracking->handler.on_changed(tracking->context);
}

static void choose_later(void *context)
{
	struct scheduler_tracking *tracking = context;

	if (active_longest(tracking) != NULL)
		choose(tracking, NULL);
}

static void became_active(struct scheduler_tracking *tracking, struct tracked_pod *pod)
{
	pod->order = tracking->activations++;
	tracking->count++;
	choose(tracking, NULL);
}

static void became_inactive(struct scheduler_tracking *tracking, const struct tracked_pod *pod)
{
	tracking->count--;
	choose(tracking, pod);
}

static void on_add(void *context, void *object)
{
	const struct known_pod *pod = object;

	if (pod->tracked != NULL)
		became_active(context, pod->tracked);
}

static void on_update(void *context, void *before, void *after)
{
	struct known_pod *old = before;
	struct known_pod *new = after;

	if (old->tracked != NULL && new->tracked != NULL) {
		memory_release(new->tracked);
		new->tracked = old->tracked;
		old->tracked = NULL;
	} else if (new->tracked != NULL) {
		became_active(context, new->tracked);
	} else if (old->tracked != NULL) {
		became_inactive(context, old->tracked);
	}
}

static void on_delete(void *context, void *object)
{
	const struct known_pod *pod = object;

	if (pod->tracked != NULL)
		became_inactive(context, pod->tracked);
}

/* ---- the watch ---- */

static void on_started(void *context)
{
	struct scheduler_tracking *tracking = context;

	if (tracking->metrics != NULL)
		agent_metrics_set_watch_alive(tracking->metrics, AGENT_WATCHER_SCHEDULER_POD, true);
	if (tracking->sticky) {
		tracking->current = stick(tracking, NULL);
		if (tracking->current != NULL)
			log_choice(tracking, NULL);
	}
	tracking->started = true;
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
		.path = "/api/v1/namespaces/" SCHEDULER_NAMESPACE "/pods",
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
	tracking->loop = options->loop;
	tracking->sticky = options->sticky;
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

const struct scheduler_peer *scheduler_tracking_current(const struct scheduler_tracking *tracking)
{
	return tracking->current != NULL ? &tracking->current->peer : NULL;
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
	loop_timer_stop(tracking->loop, &tracking->adoption);
	watch_store_destroy(tracking->store);
	arena_destroy(&tracking->arena);
	buffer_destroy(&tracking->selector);
	memory_release(tracking);
}
