/*
 * Whoever asks the extender besides the scheduler: the kubelet's probe, Prometheus, the operator, other schedulers, and
 * programs without manners. All the time it is asked politely; in a storm also for pods on some of the nodes only, with
 * nonsense, and by clients that hang up.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "extender/process_limits.h"
#include "gen/kube_scheduler.gen.h"
#include "net/http_client.h"
#include "sandbox/storage_objects.h"
#include "sandbox/workload.h"
#include "sim_extender_internal.h"

enum {
	PROBER_PLACE = 4,
	PODS_NET = 20,
	ANSWER_BYTES = 1024 * 1024,
	BODY_BYTES = 16 * 1024 * 1024,
	TIMEOUT_S = 15,
	HANGUP_HIGH_MS = 400,
	QUIET_EVERY_S = 4,
};

enum probe_kind {
	/* polite */
	PROBE_READY,
	PROBE_HEALTHY,
	PROBE_METRICS,
	PROBE_METRICS_BESIDE,
	PROBE_BARE,
	PROBE_BIND,
	PROBE_NOWHERE,
	PROBE_PRIORITIZE,
	PROBE_POLITE,
	/* in storms */
	PROBE_FILTER = PROBE_POLITE,
	PROBE_FILTER_SOME,
	PROBE_JUNK,
	PROBE_CUT,
	PROBE_KINDS,
};

struct probe {
	struct sim_prober *prober;
	enum probe_kind kind;
	struct http_exchange *exchange; /* NULL: none */
	struct loop_timer hangup;
	struct arena arena; /* of what was sent */
	struct sim_call call;
};

struct sim_prober {
	struct sim_extender *extender;
	struct loop *loop;
	struct http_client *client;
	struct probe probes[SIM_PROBES];
};

static struct rng *rng_of(const struct sim_prober *prober)
{
	return sim_world_rng(simulation_world(prober->extender->simulation));
}

/* ---- what is right ---- */

static const char BARE_ANSWER[] =
	"{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,\"FailedAndUnresolvableNodes\":null,"
	"\"Error\":\"EOF\"}\n";
static const char BIND_ANSWER[] = "{\"Error\":\"don't know how to use bind API\"}\n";

static void complain(const struct probe *probe, const char *name, const char *what,
                     const struct http_response *response)
{
	struct slice body = response->body;

	simulation_broken(probe->prober->extender->simulation, name, "%s: status %d: %.*s", what, response->status,
	                  (int)(body.length > 200 ? 200 : body.length), body.data);
}

/* It lasts longer than any probe. */
static bool is_starved(const struct probe *probe)
{
	return sim_answers_are_starved(sim_pods_answers(probe->prober->extender->options.pods));
}

/* P6, P9, Y3, Y4. */
static void check_ready(const struct probe *probe, const struct http_response *response)
{
	const struct sim_extender *extender = probe->prober->extender;
	uint64_t started_ns = probe->call.started_ns;
	bool expected = !extender->mode.patching || extender->restarted;

	if (!extender->process.runs || extender->process.started_ns >= started_ns)
		return; /* another one answered */
	if (extender->process.ending) {
		if (extender->process.told_to_end_ns <= started_ns && response->status == 200)
			complain(probe, "readiness", "an extender that was told to end is ready", response);
		return;
	}
	if (extender->flipped_ns >= started_ns || (response->status == 503 && is_starved(probe)))
		return;
	if (response->status != (expected ? 200 : 503))
		complain(probe, "readiness", "/readyz isn't as the readiness file says", response);
}

/* M1, I11: a series for each pod at most. */
static void check_metrics(const struct probe *probe, const struct http_response *response)
{
	static const char SERIES[] = "\nschedule_counter{";
	const struct sim_options *options = simulation_options(probe->prober->extender->simulation);
	const char *at = response->body.data, *end = at + response->body.length;
	unsigned count = 0;

	if (response->status != 200 || response->body.length == 0 || end[-1] != '\n') {
		complain(probe, "metrics", "the metrics page", response);
		return;
	}
	while (at < end && (at = memmem(at, (size_t)(end - at), SERIES, sizeof SERIES - 1)) != NULL) {
		count++;
		at++;
	}
	if (count > options->pods)
		complain(probe, "metrics", "the metrics page has more series than there are pods", response);
}

static void check_text(const struct probe *probe, const struct http_response *response, int status, const char *text)
{
	if (response->status != status || !slice_equal_text(response->body, text))
		complain(probe, "well-formed", "not the answer to what is sent", response);
}

/* H9: Fail-A. */
static void check_refused(const struct probe *probe, const struct http_response *response)
{
	struct kube_scheduler_filter_answer answer;
	struct arena arena;
	struct error err;

	arena_init(&arena, BODY_BYTES);
	if (response->status != 200 || !kube_scheduler_filter_answer_from_json(response->body, &arena, &answer, &err) ||
	    answer.error.length == 0 || answer.nodes.items_count > 0 || answer.node_names_count > 0)
		complain(probe, "well-formed", "nonsense isn't refused", response);
	arena_destroy(&arena);
}

static void check_answer(struct probe *probe, const struct http_response *response, bool quiet)
{
	/* What was sent came too slowly. */
	if (response->status == 408 && !quiet)
		return;
	/* What was too little memory for has an answer without a body, or none. */
	if (is_starved(probe) && (response->body.length == 0 || response->status >= 500) && probe->kind != PROBE_READY)
		return;
	switch (probe->kind) {
	case PROBE_READY:
		check_ready(probe, response);
		break;
	case PROBE_HEALTHY:
		check_text(probe, response, 200, "ok");
		break;
	case PROBE_METRICS:
	case PROBE_METRICS_BESIDE:
		check_metrics(probe, response);
		break;
	case PROBE_BARE:
		if (!is_starved(probe))
			check_text(probe, response, 200, BARE_ANSWER);
		break;
	case PROBE_BIND:
		if (!is_starved(probe))
			check_text(probe, response, 200, BIND_ANSWER);
		break;
	case PROBE_NOWHERE:
		check_text(probe, response, 404, "404 page not found\n");
		break;
	case PROBE_JUNK:
	case PROBE_CUT:
		if (!is_starved(probe))
			check_refused(probe, response);
		break;
	default:
		probe->call.status = response->status;
		probe->call.content_type = http_fields_find(response->fields, "Content-Type");
		probe->call.body = response->body;
		sim_answers_check(sim_pods_answers(probe->prober->extender->options.pods), &probe->call);
		break;
	}
}

static void end_probe(struct probe *probe)
{
	loop_timer_stop(probe->prober->loop, &probe->hangup);
	arena_destroy(&probe->arena);
	probe->exchange = NULL;
}

static void on_done(void *context, const struct http_response *response, const struct error *failure)
{
	struct probe *probe = context;
	const struct sim_extender *extender = probe->prober->extender;
	uint64_t now_ns = simulation_now_ns(extender->simulation);
	bool quiet =
		!is_starved(probe) && simulation_was_calm(extender->simulation, probe->call.started_ns, SIM_KNOWN_S);

	sim_world_note(simulation_world(extender->simulation), "probe %d: %s", (int)probe->kind,
	               failure != NULL ? failure->text : "answered");
	if (failure == NULL)
		check_answer(probe, response, quiet);
	else if (quiet)
		simulation_broken(extender->simulation, "answers", "probe %d: %s", (int)probe->kind, failure->text);
	/* I3 */
	if (quiet &&
	    now_ns > probe->call.started_ns + (uint64_t)(EXTENDER_CALL_BUDGET_MS + SIM_PROCESS_LATE_MS) * NS_PER_MS)
		simulation_broken(extender->simulation, "answers", "probe %d took %.1f s", (int)probe->kind,
		                  (double)(now_ns - probe->call.started_ns) / (double)NS_PER_S);
	end_probe(probe);
}

static void hang_up(void *context)
{
	struct probe *probe = context;

	http_exchange_cancel(probe->exchange);
	probe->prober->extender->counts->hangups++;
	end_probe(probe);
}

/* ---- what is sent ---- */

/* Some pod with all nodes, or a few of them (U3), as a scheduler would send it. False: there is none at the moment. */
static bool fill_args(struct probe *probe, bool all, struct buffer *body)
{
	struct sim_extender *extender = probe->prober->extender;
	struct object_store *store = sim_pods_store(extender->options.pods);
	const struct resource_kind *kind = resource_kind(RESOURCE_NODES);
	struct sim_sent_node *nodes = arena_allocate_array(&probe->arena, WORKLOAD_NODES_MAX, sizeof *nodes);
	struct slice *sent = arena_allocate_array(&probe->arena, WORKLOAD_NODES_MAX, sizeof *sent);
	struct kube_scheduler_extender_args args = { .pod = { 0 } };
	struct sim_call *call = &probe->call;
	struct error err;

	call->by_name = extender->mode.node_names;
	call->name_space = SLICE(POD_NAME_SPACE);
	call->nodes = nodes;
	if (nodes == NULL || sent == NULL ||
	    !sim_pods_pick(extender->options.pods, rng_of(probe->prober), &call->pod, &args.pod) ||
	    !arena_copy(&probe->arena, call->pod, &call->pod))
		return false;
	for (size_t i = 0; i < object_store_count(store, kind); i++) {
		const struct stored_object *node = object_store_at(store, kind, i);

		if (!all && rng_between(rng_of(probe->prober), 0, 3) != 0)
			continue;
		if (!arena_copy(&probe->arena, node->name, &nodes[call->node_count].name) ||
		    !arena_copy(&probe->arena, node->text, &nodes[call->node_count].text))
			return false;
		sent[call->node_count] = call->by_name ? nodes[call->node_count].name : nodes[call->node_count].text;
		call->node_count++;
	}
	args.nodes_presence = call->by_name ? JSON_NULL : JSON_VALUE;
	args.node_names_presence = call->by_name ? JSON_VALUE : JSON_NULL;
	if (call->by_name) {
		args.node_names = sent;
		args.node_names_count = call->node_count;
	} else {
		args.nodes.items = sent;
		args.nodes.items_count = call->node_count;
	}
	return call->node_count > 0 && kube_scheduler_extender_args_to_json(&args, body, &err);
}

static void fill_junk(struct probe *probe, struct buffer *body)
{
	static const char *const JUNK[] = {
		"{",
		"[]",
		"{}",
		"{\"Pod\":null}",
		"{\"Pod\":{\"metadata\":{\"name\":5}},\"Nodes\":{\"items\":[]}}",
		"{\"Pod\":{\"metadata\":{\"name\":\"p\"}},\"Nodes\":{\"items\":[{]}}",
		"nonsense",
	};

	buffer_append_text(body, JUNK[rng_between(rng_of(probe->prober), 0, sizeof JUNK / sizeof JUNK[0])]);
}

/* A whole request whose end is missing. */
static bool cut(struct probe *probe, struct buffer *body)
{
	struct buffer whole;
	bool ok;

	buffer_init(&whole, BODY_BYTES);
	ok = fill_args(probe, true, &whole);
	if (ok)
		buffer_append(body, whole.data, rng_between(rng_of(probe->prober), 0, whole.length));
	buffer_destroy(&whole);
	return ok;
}

static bool fill_body(struct probe *probe, struct buffer *body)
{
	switch (probe->kind) {
	case PROBE_FILTER:
	case PROBE_PRIORITIZE:
		return fill_args(probe, true, body);
	case PROBE_FILTER_SOME:
		return fill_args(probe, false, body);
	case PROBE_JUNK:
		fill_junk(probe, body);
		return true;
	case PROBE_CUT:
		return cut(probe, body);
	case PROBE_BIND:
		buffer_append_text(body, "{\"PodName\":\"a\",\"PodNamespace\":\"b\",\"PodUID\":\"c\",\"Node\":\"d\"}");
		return true;
	default:
		return true;
	}
}

static void send_probe(struct probe *probe)
{
	static const struct http_handler HANDLER = { .on_done = on_done };
	static const struct {
		const char *method, *target;
		uint16_t port;
	} REQUESTS[PROBE_KINDS] = {
		[PROBE_READY] = { "GET", "/readyz", SIM_EXTENDER_HEALTH_PORT },
		[PROBE_HEALTHY] = { "GET", "/healthz", SIM_EXTENDER_HEALTH_PORT },
		[PROBE_METRICS] = { "GET", "/metrics", SIM_EXTENDER_METRICS_PORT },
		[PROBE_METRICS_BESIDE] = { "GET", "/metrics", SIM_EXTENDER_PORT },
		[PROBE_BARE] = { "GET", "/filter", SIM_EXTENDER_PORT },
		[PROBE_BIND] = { "POST", "/bind", SIM_EXTENDER_PORT },
		[PROBE_NOWHERE] = { "POST", "/preempt", SIM_EXTENDER_PORT },
		[PROBE_PRIORITIZE] = { "POST", "/prioritize", SIM_EXTENDER_PORT },
		[PROBE_FILTER] = { "POST", "/filter", SIM_EXTENDER_PORT },
		[PROBE_FILTER_SOME] = { "POST", "/filter", SIM_EXTENDER_PORT },
		[PROBE_JUNK] = { "POST", "/filter", SIM_EXTENDER_PORT },
		[PROBE_CUT] = { "POST", "/filter", SIM_EXTENDER_PORT },
	};
	struct sim_prober *prober = probe->prober;
	struct http_request request = {
		.origin = { .port = REQUESTS[probe->kind].port },
		.method = slice_of(REQUESTS[probe->kind].method),
		.target = slice_of(REQUESTS[probe->kind].target),
		.total_timeout_ns = (uint64_t)TIMEOUT_S * NS_PER_S,
		.max_body_bytes = ANSWER_BYTES,
	};
	struct buffer body;
	struct error err;

	memcpy(request.origin.host, prober->extender->ip, strlen(prober->extender->ip) + 1);
	arena_init(&probe->arena, BODY_BYTES);
	buffer_init(&body, BODY_BYTES);
	probe->call = (struct sim_call){ .filter = probe->kind != PROBE_PRIORITIZE,
		                         .started_ns = simulation_now_ns(prober->extender->simulation) };
	if (fill_body(probe, &body)) {
		request.body = buffer_slice(&body);
		probe->exchange = http_client_send(prober->client, &request, &HANDLER, probe, &err);
	}
	buffer_destroy(&body);
	if (probe->exchange == NULL)
		arena_destroy(&probe->arena);
	else
		prober->extender->counts->probes++;
}

/* ---- when ---- */

static struct probe *find_free(struct sim_prober *prober)
{
	for (unsigned i = 0; i < SIM_PROBES; i++) {
		prober->probes[i].prober = prober;
		if (prober->probes[i].exchange == NULL)
			return &prober->probes[i];
	}
	return NULL;
}

void sim_prober_ask(struct sim_prober *prober, enum sim_ask what)
{
	struct probe *probe = find_free(prober);

	if (probe == NULL)
		return;
	probe->kind = what == SIM_ASK_READY ? PROBE_READY : PROBE_FILTER;
	send_probe(probe);
}

void sim_prober_go_on(struct sim_prober *prober)
{
	struct simulation *simulation = prober->extender->simulation;
	bool storm = simulation_in_storm(simulation);
	struct probe *free;

	if (rng_between(rng_of(prober), 0, storm ? 2 : QUIET_EVERY_S) != 0)
		return;
	free = find_free(prober);
	if (free == NULL)
		return;
	free->kind = (enum probe_kind)rng_between(rng_of(prober), 0, storm ? PROBE_KINDS : PROBE_POLITE);
	send_probe(free);
	if (free->exchange == NULL || !storm)
		return;
	prober->extender->counts->junk += free->kind == PROBE_JUNK || free->kind == PROBE_CUT ? 1 : 0;
	if (rng_between(rng_of(prober), 0, 4) == 0)
		loop_timer_start(prober->loop, &free->hangup,
		                 rng_between(rng_of(prober), 0, HANGUP_HIGH_MS) * NS_PER_MS, hang_up, free);
}

/* ---- life ---- */

struct sim_prober *sim_prober_create(struct sim_extender *extender, struct error *err)
{
	struct address address = { .bytes = { 10, PODS_NET, PROBER_PLACE, 1 } };
	struct sim_prober *prober = memory_allocate(sizeof *prober);

	if (prober == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a prober");
		return NULL;
	}
	prober->extender = extender;
	prober->loop = loop_sim_create(simulation_world(extender->simulation), "prober", &address, err);
	if (prober->loop != NULL)
		prober->client = http_client_create(prober->loop, err);
	if (prober->client == NULL) {
		sim_prober_destroy(prober);
		return NULL;
	}
	return prober;
}

void sim_prober_destroy(struct sim_prober *prober)
{
	if (prober == NULL)
		return;
	for (unsigned i = 0; i < SIM_PROBES; i++)
		if (prober->probes[i].exchange != NULL)
			hang_up(&prober->probes[i]);
	if (prober->client != NULL)
		http_client_destroy(prober->client);
	if (prober->loop != NULL)
		loop_destroy(prober->loop);
	memory_release(prober);
}

struct loop *sim_prober_loop(const struct sim_prober *prober)
{
	return prober->loop;
}
