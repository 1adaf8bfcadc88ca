/*
 * An answer that names nodes is right if one of the states of its pod's reservation that were true during the call explains
 * all of it.
 */
#include "sim_answers.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "codec/json_tree.h"
#include "sandbox/storage_objects.h"
#include "sim_reservation_log.h"

enum {
	NAME_BYTES = SIM_LOG_NAME_BYTES,
	ARENA_BYTES = 256 * 1024 * 1024,
	STEADY_S = 2, /* so long after a change it is in the extender's caches, when all is quiet */
};

struct sim_answers {
	struct simulation *simulation;
	struct object_store *store;
	struct sim_answers_handler handler;
	uint64_t starved_until_ns;
	struct sim_answers_counts counts;
	struct sim_reservation_log log;
};

/* ---- one answer ---- */

struct check {
	struct sim_answers *answers;
	const struct sim_call *call;
	struct arena arena;
	struct json_node *root;
	struct sim_asked asked; /* plan NULL: the pod is gone */
	bool known;             /* the extender knows the pod's claims */
	bool calm;              /* nothing has gone wrong for a while */
	uint64_t passed;        /* of the nodes sent, by bit */
	uint32_t passed_ids, failed_ids;
};

static void broken(const struct check *check, const char *name, const char *what)
{
	const struct sim_call *call = check->call;

	simulation_broken(check->answers->simulation, name, "%s of %.*s: %s: %.*s",
	                  call->filter ? "filter" : "prioritize", SLICE_ARGS(call->pod), what,
	                  (int)(call->body.length > 300 ? 300 : call->body.length), call->body.data);
}

static bool is_null(const struct json_node *node)
{
	return node != NULL && node->kind == JSON_KIND_NULL;
}

/* J1. */
static bool has_form(const struct check *check)
{
	static const char *const MEMBERS[] = { "Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes",
		                               "Error" };
	const struct json_node *root = check->root;

	if (root->kind != JSON_KIND_OBJECT || root->count != sizeof MEMBERS / sizeof MEMBERS[0])
		return false;
	for (size_t i = 0; i < sizeof MEMBERS / sizeof MEMBERS[0]; i++)
		if (json_tree_member(root, slice_of(MEMBERS[i])) == NULL)
			return false;
	return is_null(json_tree_find(root, "/FailedAndUnresolvableNodes")) &&
	       is_null(json_tree_find(root, check->call->by_name ? "/Nodes" : "/NodeNames")) &&
	       json_tree_find(root, "/Error")->kind == JSON_KIND_STRING;
}

/* The nodes of an answer: NULL or null if there are none. */
static const struct json_node *answered_nodes(const struct check *check)
{
	return json_tree_find(check->root, check->call->by_name ? "/NodeNames" : "/Nodes/items");
}

/* Each is one that was sent, behind the one before, and byte for byte the same (J4). */
static bool are_sent_nodes(struct check *check, const struct json_node *nodes)
{
	const struct sim_call *call = check->call;
	const char *at = call->body.data, *end = at + call->body.length;
	size_t next = 0;

	for (const struct json_node *node = nodes->first; node != NULL; node = node->next) {
		struct slice name = call->by_name ? json_tree_text(node) : storage_text(node, "/metadata/name");

		while (next < call->node_count && !slice_equal(call->nodes[next].name, name))
			next++;
		if (next == call->node_count)
			return false;
		if (!call->by_name) {
			at = memmem(at, (size_t)(end - at), call->nodes[next].text.data, call->nodes[next].text.length);
			if (at == NULL)
				return false;
			at += call->nodes[next].text.length;
		}
		check->passed |= UINT64_C(1) << next++;
	}
	return true;
}

/* F18, and decision 10: those that didn't pass say why, and no others. */
static bool are_other_nodes(struct check *check, const struct json_node *failed)
{
	const struct sim_call *call = check->call;
	size_t count = 0;

	for (size_t i = 0; i < call->node_count; i++) {
		struct slice why = json_tree_text(json_tree_member(failed, call->nodes[i].name));
		char expected[128];

		if ((check->passed >> i & 1) != 0) {
			if (why.length > 0)
				return false;
			continue;
		}
		(void)snprintf(expected, sizeof expected, "No available capacity found on the node %.*s",
		               SLICE_ARGS(call->nodes[i].name));
		if (!slice_equal_text(why, expected))
			return false;
		count++;
	}
	return failed->count == count;
}

static void sort_ids(struct check *check)
{
	const struct sim_answers *answers = check->answers;

	for (size_t i = 0; i < check->call->node_count; i++) {
		uint32_t bit = 0;

		for (unsigned j = 0; j < answers->log.node_count; j++)
			if (slice_equal_text(check->call->nodes[i].name, answers->log.nodes[j].name))
				bit = UINT32_C(1) << j;
		if ((check->passed >> i & 1) != 0)
			check->passed_ids |= bit;
		else
			check->failed_ids |= bit;
	}
}

/* ---- against the reservations ---- */

static bool has_request(const struct sim_reservation_state *state, const struct pod_volume *volume, int64_t size_bytes)
{
	for (unsigned i = 0; i < state->request_count; i++)
		if (strcmp(state->requests[i].claim, volume->claim) == 0 && state->requests[i].size_bytes == size_bytes)
			return true;
	return false;
}

static bool is_bound(const struct check *check, const struct pod_volume *volume)
{
	const struct stored_object *claim = object_store_find(check->answers->store, resource_kind(RESOURCE_CLAIMS),
	                                                      check->call->name_space, slice_of(volume->claim));
	struct storage_claim read;
	struct arena arena;
	struct error err;
	bool bound;

	arena_init(&arena, ARENA_BYTES);
	bound = claim != NULL && storage_read_claim(claim, &arena, &read, &err) &&
	        slice_equal_text(read.phase, "Bound");
	arena_destroy(&arena);
	return bound;
}

/* Whether the reservation has what the pod still needs, or all it ever needs. */
static bool has_requests(const struct check *check, const struct sim_reservation_state *state, bool all)
{
	const struct sim_asked *asked = &check->asked;

	if (asked->plan == NULL)
		return !all; /* it has gone meanwhile */
	for (unsigned i = 0; i < asked->plan->volume_count; i++) {
		const struct pod_volume *volume = &asked->plan->volumes[i];
		int64_t size_bytes = asked->too_large ? asked->plan->too_large_size : volume->size_bytes;

		if ((all || !is_bound(check, volume)) && !has_request(state, volume, size_bytes))
			return false;
	}
	return true;
}

static bool is_of_pod(const struct check *check, const struct sim_reservation_state *state)
{
	char name[NAME_BYTES];

	(void)snprintf(name, sizeof name, "%.*s-%.*s", SLICE_ARGS(check->call->name_space),
	               SLICE_ARGS(check->call->pod));
	return strcmp(name, state->name) == 0;
}

static bool explains(const struct check *check, const struct sim_reservation_state *state)
{
	return state->until_ns >= check->call->started_ns && is_of_pod(check, state) && state->reserved &&
	       (state->nodes & check->passed_ids) == check->passed_ids && (state->nodes & check->failed_ids) == 0 &&
	       (!check->known || has_requests(check, state, false));
}

static void check_placed(struct check *check)
{
	const struct sim_answers *answers = check->answers;

	sort_ids(check);
	for (size_t i = 0; i < SIM_LOG_STATES; i++)
		if (explains(check, &answers->log.states[i]))
			return;
	if (answers->log.forgotten_ns < check->call->started_ns)
		broken(check, "consistent", "no reservation in the store explains the answer");
}

/* A reservation that has stood there for a while, and has all that the pod needs on one of the nodes, is enough. */
static void check_pending(const struct check *check)
{
	const struct sim_answers *answers = check->answers;
	uint32_t sent = check->passed_ids | check->failed_ids;

	for (size_t i = 0; check->calm && i < SIM_LOG_STATES; i++) {
		const struct sim_reservation_state *state = &answers->log.states[i];

		if (state->until_ns == UINT64_MAX &&
		    state->from_ns + (uint64_t)STEADY_S * NS_PER_S <= check->call->started_ns &&
		    is_of_pod(check, state) && state->reserved && (state->nodes & sent) != 0 &&
		    has_requests(check, state, true))
			broken(check, "consistent", "the pod has to wait although there is capacity reserved for it");
	}
}

/* F3. */
static void check_all_passed(const struct check *check)
{
	if (check->passed != (UINT64_C(1) << check->call->node_count) - 1)
		broken(check, "consistent", "some of the nodes are in neither list");
	else if (check->asked.plan != NULL && check->asked.plan->volume_count > 0 &&
	         (check->known ? !check->asked.bound : !check->asked.ever_bound))
		broken(check, "consistent", "a pod that needs capacity goes anywhere");
}

static void check_filter(struct check *check)
{
	struct sim_answers *answers = check->answers;
	const struct json_node *nodes, *failed;

	if (!has_form(check)) {
		broken(check, "well-formed", "not the five members");
		return;
	}
	nodes = answered_nodes(check);
	failed = json_tree_find(check->root, "/FailedNodes");
	if (json_tree_find(check->root, "/Error")->text.length > 0) {
		answers->counts.errors++;
		/* It would let the pod go anywhere. */
		if (!sim_answers_are_starved(answers))
			broken(check, "errors", "an error although waiting would do");
		return;
	}
	if (nodes == NULL || nodes->kind != JSON_KIND_ARRAY || (nodes->count == 0 && is_null(failed))) {
		sort_ids(check);
		if (nodes == NULL || (check->call->by_name && nodes->kind == JSON_KIND_NULL))
			answers->counts.nothing++;
		else
			answers->counts.pending++;
		if (!sim_answers_are_starved(answers))
			check_pending(check);
		return;
	}
	if (!are_sent_nodes(check, nodes)) {
		broken(check, "consistent", "not the nodes that were sent, in that order");
	} else if (is_null(failed)) {
		answers->counts.passed++;
		check_all_passed(check);
	} else if (failed->kind != JSON_KIND_OBJECT || !are_other_nodes(check, failed)) {
		broken(check, "consistent", "the nodes that don't pass aren't the others");
	} else {
		answers->counts.placed++;
		check_placed(check);
	}
}

/* S3: scores of nodes that were sent, in that order, or none. */
static void check_prioritize(const struct check *check)
{
	const struct sim_call *call = check->call;
	size_t next = 0;

	if (is_null(check->root))
		return;
	if (check->root->kind != JSON_KIND_ARRAY) {
		broken(check, "well-formed", "neither a list of scores nor null");
		return;
	}
	check->answers->counts.scored++;
	for (const struct json_node *score = check->root->first; score != NULL; score = score->next) {
		struct slice host = storage_text(score, "/Host");
		int64_t value;

		while (next < call->node_count && !slice_equal(call->nodes[next].name, host))
			next++;
		if (next == call->node_count || !json_tree_integer(json_tree_find(score, "/Score"), &value) ||
		    value < 0)
			broken(check, "consistent", "not a score of a node that was sent, in that order");
		next++;
	}
	if (check->root->count != call->node_count)
		broken(check, "consistent", "not a score for each node");
}

void sim_answers_check(struct sim_answers *answers, const struct sim_call *call)
{
	struct check check = { .answers = answers, .call = call };
	bool starved = sim_answers_are_starved(answers);
	struct error err;

	if (!answers->handler.asked_of(answers->handler.context, call->pod, &check.asked))
		check.asked = (struct sim_asked){ .plan = NULL };
	check.known = check.asked.known_ns != 0 && check.asked.known_ns <= call->started_ns;
	check.calm = simulation_was_calm(answers->simulation, call->started_ns, SIM_KNOWN_S) &&
	             call->started_ns >= check.asked.since_ns + (uint64_t)STEADY_S * NS_PER_S;
	/* What was sent came too slowly. */
	if (call->status == 408 && !check.calm)
		return;
	if (starved && (call->status == 503 || (call->status == 200 && call->body.length == 0)))
		return;
	/* Which nodes the names stand for isn't known at first (I9, S5). */
	if (!call->filter && call->by_name && !check.calm && call->status == 200 && call->body.length == 0)
		return;
	if (call->status != 200 || !slice_equal_text(call->content_type, "application/json")) {
		broken(&check, "well-formed", "not the status 200 with JSON");
		return;
	}
	arena_init(&check.arena, ARENA_BYTES);
	if (call->body.length == 0 || call->body.data[call->body.length - 1] != '\n' ||
	    !json_tree_parse(call->body, &check.arena, &check.root, &err))
		broken(&check, "well-formed", "not a value and a newline");
	else if (call->filter)
		check_filter(&check);
	else
		check_prioritize(&check);
	arena_destroy(&check.arena);
}

/* ---- life ---- */

struct sim_answers *sim_answers_create(struct simulation *simulation, struct object_store *store,
                                       const struct sim_answers_handler *handler, struct error *err)
{
	struct sim_answers *answers = memory_allocate(sizeof *answers);

	if (answers == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory to check answers");
		return NULL;
	}
	answers->simulation = simulation;
	answers->store = store;
	answers->handler = *handler;
	sim_reservation_log_start(&answers->log, simulation, store);
	return answers;
}

void sim_answers_destroy(struct sim_answers *answers)
{
	if (answers == NULL)
		return;
	sim_reservation_log_stop(&answers->log);
	memory_release(answers);
}

void sim_answers_excuse_starved(struct sim_answers *answers, uint64_t until_ns)
{
	if (until_ns > answers->starved_until_ns)
		answers->starved_until_ns = until_ns;
}

bool sim_answers_are_starved(const struct sim_answers *answers)
{
	return simulation_now_ns(answers->simulation) <= answers->starved_until_ns;
}

struct sim_answers_counts sim_answers_counts(const struct sim_answers *answers)
{
	return answers->counts;
}
