#include <string.h>

#include "base/clock.h"
#include "gen/kube_scheduler.gen.h"
#include "sandbox/kube_scheduler_internal.h"

enum {
	REQUEST_BYTES_MAX = 256 * 1024 * 1024,
	SCORE_FACTOR = 10, /* weight 1, times 100 / 10 (U8) */
	GIVE_UP_MIN_MS = 2,
	GIVE_UP_MAX_MS = 40,
};

static const char FILTER[] = "/filter";
static const char PRIORITIZE[] = "/prioritize";

/* ---- asking ---- */

static bool print_args(struct attempt *attempt, bool names, struct buffer *out, struct error *err)
{
	struct kube_scheduler_extender_args args = { .pod = attempt->pod_text };
	struct slice *texts = arena_allocate_array(&attempt->arena, attempt->node_count + 1, sizeof *texts);

	if (texts == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a filter call");
	for (size_t i = 0; i < attempt->node_count; i++)
		texts[i] = names ? attempt->nodes[i].name : attempt->nodes[i].text;
	args.nodes_presence = names ? JSON_NULL : JSON_VALUE;
	args.node_names_presence = names ? JSON_VALUE : JSON_NULL;
	if (names) {
		args.node_names = texts;
		args.node_names_count = attempt->node_count;
	} else {
		args.nodes.items = texts;
		args.nodes.items_count = attempt->node_count;
	}
	return kube_scheduler_extender_args_to_json(&args, out, err);
}

static uint64_t time_limit_ns(struct kube_scheduler *scheduler)
{
	if (scheduler->options.faults != NULL &&
	    faults_draw(scheduler->options.faults, FAULTS_OF_SCHEDULER) == FAULT_SCHEDULER_GIVES_UP)
		return rng_between(loop_rng(scheduler->loop), GIVE_UP_MIN_MS, GIVE_UP_MAX_MS) * NS_PER_MS;
	return (uint64_t)KUBE_SCHEDULER_TIMEOUT_MS * NS_PER_MS;
}

static bool call(struct kube_scheduler *scheduler, const char *target, const struct http_handler *handler,
                 struct error *err)
{
	static const struct http_field FIELDS[] = {
		{ .name = SLICE_INIT("Content-Type"), .value = SLICE_INIT("application/json") },
		{ .name = SLICE_INIT("User-Agent"), .value = SLICE_INIT("Go-http-client/1.1") },
	};
	struct http_request request = {
		.origin = { .port = scheduler->options.extender.port },
		.method = SLICE("POST"),
		.target = slice_of(target),
		.fields = { .items = FIELDS, .count = sizeof FIELDS / sizeof FIELDS[0] },
		.total_timeout_ns = time_limit_ns(scheduler),
		.max_body_bytes = KUBE_SCHEDULER_ANSWER_BYTES,
	};
	char host[ADDRESS_TEXT_BYTES];
	struct buffer body;

	address_print_host(&scheduler->options.extender, false, host);
	memcpy(request.origin.host, host, strlen(host) + 1);
	buffer_init(&body, REQUEST_BYTES_MAX);
	scheduler->attempt.started_ns = loop_now_ns(scheduler->loop);
	if (print_args(&scheduler->attempt, scheduler->options.node_names, &body, err)) {
		request.body = buffer_slice(&body);
		scheduler->attempt.exchange = http_client_send(scheduler->client, &request, handler, scheduler, err);
	}
	buffer_destroy(&body);
	return scheduler->attempt.exchange != NULL;
}

static void tell(struct kube_scheduler *scheduler, const char *target, const struct http_response *response,
                 const struct error *failure)
{
	const struct attempt *attempt = &scheduler->attempt;
	const struct kube_scheduler_call over = {
		.target = target,
		.name_space = slice_of(attempt->pod->name_space),
		.name = slice_of(attempt->pod->name),
		.pod_text = attempt->pod_text,
		.node_names = scheduler->options.node_names,
		.nodes = attempt->nodes,
		.node_count = attempt->node_count,
		.started_ns = attempt->started_ns,
		.response = response,
		.failure = failure,
	};

	if (scheduler->handler.on_called != NULL)
		scheduler->handler.on_called(scheduler->context, &over);
}

static bool check_status(const struct http_response *response, const struct error *failure, struct error *err)
{
	if (failure != NULL) {
		*err = *failure;
		return false;
	}
	return response->status == 200 ||
	       error_set(err, ERROR_REFUSED, "the extender answered with status %d", response->status);
}

/* ---- filter ---- */

static bool find_node(const struct attempt *attempt, struct slice name, size_t *ret_index)
{
	for (size_t i = 0; i < attempt->node_count; i++) {
		if (slice_equal(attempt->nodes[i].name, name)) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

/* The nodes that are named, of those that were sent (U5). */
static bool keep_named(struct attempt *attempt, const struct kube_scheduler_filter_answer *answer, bool names,
                       struct error *err)
{
	size_t count = names ? answer->node_names_count : answer->nodes.items_count, kept = 0;
	struct node_choice *nodes = arena_allocate_array(&attempt->arena, count + 1, sizeof *nodes);

	if (nodes == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the extender's answer");
	for (size_t i = 0; i < count; i++) {
		struct slice name = names ? answer->node_names[i] : answer->nodes.items[i].metadata.name;
		size_t index;

		if (!find_node(attempt, name, &index))
			return error_set(err, ERROR_SYNTAX, "the extender names node \"%.*s\", which it wasn't sent",
			                 SLICE_ARGS(name));
		nodes[kept++] = attempt->nodes[index];
	}
	attempt->nodes = nodes;
	attempt->node_count = kept;
	return true;
}

/* Whatever follows the first value is ignored (U2). */
static bool read_filter(struct kube_scheduler *scheduler, struct slice body, struct error *err)
{
	struct attempt *attempt = &scheduler->attempt;
	struct kube_scheduler_filter_answer answer;
	struct json_reader reader;
	struct slice copy;

	if (!arena_copy(&attempt->arena, body, &copy))
		return error_set(err, ERROR_NO_MEMORY, "no memory for the extender's answer");
	if (!json_reader_open(&reader, copy, &attempt->arena, err) ||
	    !kube_scheduler_filter_answer_decode(&reader, &answer, err))
		return false;
	if (answer.error.length > 0)
		return error_set(err, ERROR_REFUSED, "%.*s", SLICE_ARGS(answer.error));
	return keep_named(attempt, &answer, scheduler->options.node_names, err);
}

static void on_filtered(void *context, const struct http_response *response, const struct error *failure)
{
	struct kube_scheduler *scheduler = context;
	struct error err;

	scheduler->attempt.exchange = NULL;
	tell(scheduler, FILTER, response, failure);
	if (check_status(response, failure, &err) && read_filter(scheduler, response->body, &err)) {
		scheduler_filtered(scheduler, NULL);
		return;
	}
	scheduler->counters.failed_filter_calls++;
	scheduler_filtered(scheduler, &err);
}

bool scheduler_call_filter(struct kube_scheduler *scheduler, struct error *err)
{
	static const struct http_handler HANDLER = { .on_done = on_filtered };

	scheduler->counters.filter_calls++;
	scheduler->attempt.pod->seen.filter_calls++;
	return call(scheduler, FILTER, &HANDLER, err);
}

/* ---- prioritize ---- */

static bool read_scores(struct attempt *attempt, struct slice body, struct error *err)
{
	struct json_array array;
	struct json_reader reader;
	struct slice copy;

	if (!arena_copy(&attempt->arena, body, &copy) || !json_reader_open(&reader, copy, &attempt->arena, err))
		return false;
	if (json_kind_of(copy) != JSON_KIND_ARRAY)
		return true; /* null: no opinion */
	array = json_array_begin(&reader, sizeof(struct kube_scheduler_host_score), err);
	while (json_array_next(&reader, &array)) {
		struct kube_scheduler_host_score *scores = array.items;
		size_t index;

		array.ok = kube_scheduler_host_score_decode(&reader, &scores[array.index], err);
		if (array.ok && find_node(attempt, scores[array.index].host, &index))
			attempt->nodes[index].score += scores[array.index].score * SCORE_FACTOR;
	}
	return array.ok;
}

/* What can't be used gives no score (U8). */
static void on_prioritized(void *context, const struct http_response *response, const struct error *failure)
{
	struct kube_scheduler *scheduler = context;
	struct error err;

	scheduler->attempt.exchange = NULL;
	tell(scheduler, PRIORITIZE, response, failure);
	if (check_status(response, failure, &err))
		(void)read_scores(&scheduler->attempt, response->body, &err);
	scheduler_prioritized(scheduler);
}

bool scheduler_call_prioritize(struct kube_scheduler *scheduler, struct error *err)
{
	static const struct http_handler HANDLER = { .on_done = on_prioritized };

	scheduler->counters.prioritize_calls++;
	return call(scheduler, PRIORITIZE, &HANDLER, err);
}
