#include "extender/event_lists.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/token_bucket.h"
#include "extender/process_limits.h"
#include "gen/pod_events.gen.h"
#include "net/http_message.h"

struct asked_pod {
	struct asked_pod *next;
	char *namespace;
	char *name;
	uint64_t took_ns;
};

struct event_lists {
	struct event_lists_options options;
	struct token_bucket limiter;
	struct asked_pod *first, *last;
	size_t count;
	struct kube_call *call; /* for the first */
};

/* For any two instants: their difference in nanoseconds may be more than fits. */
static double seconds_between(int64_t from_ns, int64_t to_ns)
{
	int64_t whole_s = to_ns / NS_PER_S - from_ns / NS_PER_S;
	int64_t rest_ns = to_ns % NS_PER_S - from_ns % NS_PER_S;

	return (double)whole_s + (double)rest_ns / NS_PER_S;
}

bool event_lists_read(struct slice body, int64_t now_ns, struct schedule_times *ret_times, struct error *err)
{
	struct pod_events_event_list list;
	struct schedule_times times = { 0 };
	struct arena arena;
	bool ok;

	arena_init(&arena, (size_t)12 * EXTENDER_EVENT_LIST_BYTES);
	ok = pod_events_event_list_from_json(body, &arena, &list, err);
	for (size_t i = 0; ok && i < list.items_count; i++) {
		const struct pod_events_event *event = &list.items[i];
		double age_seconds = seconds_between(event->metadata.creation_timestamp_ns, now_ns);

		if (slice_equal_text(event->reason, "Killing")) {
			times = (struct schedule_times){ 0 };
		} else if (slice_equal_text(event->reason, "FailedScheduling") &&
		           event->metadata.creation_timestamp_ns != RFC3339_ZERO) {
			times.since_last_seconds = age_seconds;
			/* 0 means: none yet. */
			if (!(times.first_seconds > 0) && !(times.first_seconds < 0))
				times.first_seconds = age_seconds;
		}
	}
	arena_destroy(&arena);
	if (ok)
		*ret_times = times;
	return ok;
}

static void free_pod(struct asked_pod *pod)
{
	memory_release(pod->namespace);
	memory_release(pod->name);
	memory_release(pod);
}

static void drop_first(struct event_lists *lists)
{
	struct asked_pod *pod = lists->first;

	lists->first = pod->next;
	if (lists->first == NULL)
		lists->last = NULL;
	lists->count--;
	free_pod(pod);
}

static void ask_first(struct event_lists *lists);

static void on_done(void *context, int status, struct slice body, const struct error *err)
{
	struct event_lists *lists = context;
	const struct asked_pod *pod = lists->first;
	struct schedule_times times;
	struct error own;

	(void)status;
	lists->call = NULL;
	if (err != NULL)
		own = *err;
	if (err != NULL || !event_lists_read(body, loop_wall_ns(lists->options.loop), &times, &own))
		log_warn(&lists->options.logger, "Failed to list the pod's events; it has no schedule times",
		         log_text("namespace", pod->namespace), log_text("pod", pod->name), log_error_field(&own));
	else
		extender_metrics_set_schedule_times(lists->options.metrics, slice_of(pod->name),
		                                    times.since_last_seconds,
		                                    times.first_seconds + (double)pod->took_ns / NS_PER_S);
	drop_first(lists);
	ask_first(lists);
}

static bool send_call(struct event_lists *lists, const struct asked_pod *pod, struct error *err)
{
	static const struct kube_handler HANDLER = { .on_done = on_done };
	struct kube_request request = {
		.method = SLICE("GET"),
		.limiter = &lists->limiter,
		.timeout_ns = (uint64_t)EXTENDER_EVENT_LIST_TIMEOUT_MS * NS_PER_MS,
		.max_body_bytes = EXTENDER_EVENT_LIST_BYTES,
		.verb = "get",
		.resource = "events",
	};
	struct buffer path, query;

	buffer_init(&path, EXTENDER_PATH_BYTES);
	buffer_init(&query, EXTENDER_PATH_BYTES);
	buffer_append_text(&path, "/api/v1/");
	if (pod->namespace[0] != '\0') {
		buffer_append_text(&path, "namespaces/");
		http_append_escaped(&path, slice_of(pod->namespace));
		buffer_append_char(&path, '/');
	}
	buffer_append_text(&path, "events");
	buffer_append_text(&query, "fieldSelector=involvedObject.name%3D");
	http_append_escaped(&query, slice_of(pod->name));
	request.path = buffer_slice(&path);
	request.query = buffer_slice(&query);
	if (buffer_check(&path, "the path of events", err) && buffer_check(&query, "the query of events", err))
		lists->call = kube_client_send(lists->options.client, &request, &HANDLER, lists, err);
	buffer_destroy(&path);
	buffer_destroy(&query);
	return lists->call != NULL;
}

static void ask_first(struct event_lists *lists)
{
	struct error err;

	while (lists->call == NULL && lists->first != NULL && !send_call(lists, lists->first, &err)) {
		log_warn(&lists->options.logger, "Failed to list the pod's events", log_text("pod", lists->first->name),
		         log_error_field(&err));
		drop_first(lists);
	}
}

void event_lists_ask(struct event_lists *lists, struct slice namespace, struct slice pod_name, uint64_t took_ns)
{
	struct asked_pod *pod;

	if (lists->count >= EXTENDER_EVENT_LISTS)
		return;
	pod = memory_allocate(sizeof *pod);
	if (pod == NULL)
		return;
	pod->took_ns = took_ns;
	pod->namespace = memory_copy_text(namespace.data != NULL ? namespace.data : "", namespace.length);
	pod->name = memory_copy_text(pod_name.data != NULL ? pod_name.data : "", pod_name.length);
	if (pod->namespace == NULL || pod->name == NULL) {
		free_pod(pod);
		return;
	}
	if (lists->last != NULL)
		lists->last->next = pod;
	else
		lists->first = pod;
	lists->last = pod;
	lists->count++;
	ask_first(lists);
}

struct event_lists *event_lists_create(const struct event_lists_options *options, struct error *err)
{
	struct event_lists *lists = memory_allocate(sizeof *lists);

	if (lists == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for lists of events");
		return NULL;
	}
	lists->options = *options;
	if (!token_bucket_init(&lists->limiter, EXTENDER_EVENT_LISTS_PER_S, EXTENDER_EVENT_LISTS_BURST,
	                       loop_now_ns(options->loop), err)) {
		memory_release(lists);
		return NULL;
	}
	return lists;
}

void event_lists_destroy(struct event_lists *lists)
{
	if (lists == NULL)
		return;
	if (lists->call != NULL)
		kube_call_cancel(lists->call);
	while (lists->first != NULL)
		drop_first(lists);
	memory_release(lists);
}
