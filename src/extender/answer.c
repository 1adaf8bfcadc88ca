/*
 * The text of an answer is made by the generated encoder with an empty array for the nodes, which stands at the end of
 * the first member; `split` is where they go. Nodes that follow each other in the request go out in one piece, with
 * what stood between them: a comma and perhaps blanks.
 */
#include "extender/answer.h"

#include <string.h>

#include "extender/limits.h"
#include "extender/slice_set.h"

enum { EXPECTED_BYTES = 256 }; /* of a result without names and reasons */

enum stage { HEAD, NODES, TAIL, ENDED };

/* What the encoder writes before the nodes of a result. */
#define RESULT_HEAD "{\"Nodes\":"

void answer_init(struct answer *answer)
{
	*answer = (struct answer){ 0 };
	buffer_init(&answer->text, EXTENDER_ANSWER_BYTES);
}

void answer_destroy(struct answer *answer)
{
	buffer_destroy(&answer->text);
}

/* --- pieces --- */

static bool is_matched(const struct answer *answer, size_t node)
{
	return answer->matched == NULL || answer->matched[node];
}

/* The next matched nodes that stand side by side; false if there is none. */
static bool next_nodes(struct answer *answer, struct slice *ret_piece)
{
	const struct request *request = answer->request;
	size_t first = answer->next_node;
	size_t last;

	while (first < request->node_count && !is_matched(answer, first))
		first++;
	if (first == request->node_count)
		return false;
	for (last = first; last + 1 < request->node_count && is_matched(answer, last + 1);)
		last++;
	answer->next_node = last + 1;

	size_t start = request->nodes[first].start;
	size_t end = request->nodes[last].start + request->nodes[last].length;

	*ret_piece = slice_from(request->body.data + start, end - start);
	return true;
}

static bool next_of_nodes(struct answer *answer, struct slice *ret_piece)
{
	size_t node = answer->next_node;

	if (!next_nodes(answer, ret_piece))
		return false;
	if (answer->comma) {
		answer->next_node = node; /* the same again, behind the comma */
		answer->comma = false;
		*ret_piece = SLICE(",");
	} else {
		answer->comma = true;
	}
	return true;
}

bool answer_next(struct answer *answer, struct slice *ret_piece)
{
	struct slice text = answer->fixed.length > 0 ? answer->fixed : buffer_slice(&answer->text);

	if (answer->stage == HEAD) {
		answer->stage = answer->with_nodes ? NODES : TAIL;
		*ret_piece = slice_from(text.data, answer->split);
		if (ret_piece->length > 0)
			return true;
	}
	if (answer->stage == NODES) {
		if (next_of_nodes(answer, ret_piece))
			return true;
		answer->stage = TAIL;
	}
	if (answer->stage == TAIL) {
		answer->stage = ENDED;
		*ret_piece = slice_from_offset(text, answer->split);
		return ret_piece->length > 0;
	}
	return false;
}

void answer_rewind(struct answer *answer)
{
	answer->stage = HEAD;
	answer->next_node = 0;
	answer->comma = false;
}

size_t answer_length(const struct answer *answer)
{
	return answer->length;
}

/* --- making --- */

/* As extender_filter_result_to_json prints an empty result. */
struct slice answer_retry_text(void)
{
	return SLICE("{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,\"FailedAndUnresolvableNodes\":null,"
	             "\"Error\":\"\"}\n");
}

void answer_retry(struct answer *answer)
{
	answer_empty(answer);
	answer->fixed = answer_retry_text();
	answer->split = answer->length = answer->fixed.length;
}

static bool finish(struct answer *answer, struct answer *made, bool ok, struct error *err)
{
	struct slice piece;

	buffer_append_char(&made->text, '\n');
	if (!ok || !buffer_check(&made->text, "the answer", err)) {
		answer_destroy(made);
		return false;
	}
	if (!made->with_nodes)
		made->split = made->text.length;
	while (answer_next(made, &piece))
		made->length += piece.length;
	answer_rewind(made);
	answer_destroy(answer);
	*answer = *made;
	return true;
}

/* Everything null. */
static struct extender_filter_result empty_result(struct slice error)
{
	return (struct extender_filter_result){
		.nodes_presence = JSON_NULL,
		.node_names_presence = JSON_NULL,
		.failed_nodes_presence = JSON_NULL,
		.failed_and_unresolvable_nodes_presence = JSON_NULL,
		.error = error,
	};
}

/* J3: kind and apiVersion as in the request; items is null or an array. */
static void set_nodes(struct extender_filter_result *result, const struct request *request, bool array)
{
	result->nodes_presence = JSON_VALUE;
	result->nodes.kind = request->args.nodes.kind;
	result->nodes.api_version = request->args.nodes.api_version;
	result->nodes.items = array ? SLICE("[]") : SLICE("null");
}

/* About as long as the text will be, so that it needn't grow. Without room for that much the text fails too. */
static void expect_text(struct answer *made, const struct extender_filter_result *result)
{
	size_t bytes = EXPECTED_BYTES + result->error.length;

	for (size_t i = 0; i < result->failed_nodes_count; i++)
		bytes += result->failed_nodes[i].key.length + result->failed_nodes[i].value.length + sizeof "\"\":\"\"";
	for (size_t i = 0; i < result->node_names_count; i++)
		bytes += result->node_names[i].length + sizeof "\"\"";
	buffer_reserve(&made->text, bytes);
}

/* matched NULL: all */
static bool finish_with_nodes(struct answer *answer, const struct request *request, const bool *matched,
                              const struct extender_filter_result *result, struct error *err)
{
	struct answer made;
	bool ok;

	answer_init(&made);
	made.request = request;
	made.matched = matched;
	made.with_nodes = true;
	ok = extender_result_nodes_to_json(&result->nodes, &made.text, err);
	/* The nodes go between the last two brackets of the list: `[` and `]}`. */
	made.split = sizeof RESULT_HEAD - 1 + made.text.length - 2;
	buffer_clear(&made.text);
	expect_text(&made, result);
	ok = ok && extender_filter_result_to_json(result, &made.text, err);
	return finish(answer, &made, ok, err);
}

static bool finish_result(struct answer *answer, const struct extender_filter_result *result, struct error *err)
{
	struct answer made;

	answer_init(&made);
	expect_text(&made, result);
	return finish(answer, &made, extender_filter_result_to_json(result, &made.text, err), err);
}

bool answer_refusal(struct answer *answer, struct slice error, struct error *err)
{
	struct extender_filter_result result = empty_result(error);

	return finish_result(answer, &result, err);
}

bool answer_pending(struct answer *answer, const struct request *request, struct slice error, struct error *err)
{
	struct extender_filter_result result = empty_result(error);

	if (request_nodes_form(request) == REQUEST_NODES_BY_NAME)
		result.node_names_presence = JSON_VALUE;
	else
		set_nodes(&result, request, false);
	return finish_result(answer, &result, err);
}

bool answer_all_nodes(struct answer *answer, const struct request *request, struct error *err)
{
	struct extender_filter_result result = empty_result(slice_from(NULL, 0));

	if (request_nodes_form(request) == REQUEST_NODES_BY_NAME) {
		result.node_names_presence = JSON_VALUE;
		result.node_names = request->args.node_names;
		result.node_names_count = request->args.node_names_count;
		return finish_result(answer, &result, err);
	}
	if (json_kind_of(request->args.nodes.items) != JSON_KIND_ARRAY) {
		set_nodes(&result, request, false);
		return finish_result(answer, &result, err);
	}
	set_nodes(&result, request, true);
	return finish_with_nodes(answer, request, NULL, &result, err);
}

/* --- success with a reservation --- */

#define NO_CAPACITY SLICE("No available capacity found on the node ")

/* Why nodes without an id aren't taken: a sentence for each outcome, made when it is first needed. */
struct reasons {
	const struct extender_settings *settings;
	struct arena *arena;
	struct slice sentences[NODE_ID_OUTCOMES];
};

static bool find_sentence(struct reasons *reasons, enum node_id_outcome outcome, struct slice *ret_sentence,
                          struct error *err)
{
	struct slice *sentence = &reasons->sentences[outcome];
	struct buffer text;
	bool ok = true;

	if (sentence->length == 0) {
		buffer_init(&text, EXTENDER_ENVELOPE_BYTES);
		node_id_print_reason(reasons->settings, outcome, &text);
		ok = buffer_check(&text, "why a node isn't taken", err);
		if (ok && !arena_copy(reasons->arena, buffer_slice(&text), sentence))
			ok = error_set(err, ERROR_NO_MEMORY, "no memory for why a node isn't taken");
		buffer_destroy(&text);
	}
	*ret_sentence = *sentence;
	return ok;
}

/* Room for the sentences of all nodes that have an id but no capacity, in one piece: there may be thousands. */
static char *allocate_sentences(const struct request *request, const bool *matched, struct arena *arena)
{
	size_t bytes = 0;

	for (size_t i = 0; i < request->node_count; i++) {
		if (!matched[i] && request->nodes[i].id.outcome == NODE_ID_FOUND)
			bytes += NO_CAPACITY.length + request->nodes[i].name.length;
	}
	return arena_allocate_raw(arena, bytes, 1);
}

static size_t count_matched(const struct request *request, const bool *matched)
{
	size_t count = 0;

	for (size_t i = 0; i < request->node_count; i++)
		count += matched[i];
	return count;
}

/* Each name once, though the request may have it twice. */
static bool fill_failed(const struct request *request, const bool *matched, struct slice_set *names,
                        struct reasons *reasons, struct extender_filter_result *result, struct error *err)
{
	char *room = allocate_sentences(request, matched, reasons->arena);

	if (room == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for why nodes aren't taken");
	for (size_t i = 0; i < request->node_count; i++) {
		const struct request_node *node = &request->nodes[i];
		struct json_pair *pair;

		if (matched[i] || !slice_set_add(names, &node->name))
			continue;
		pair = &result->failed_nodes[result->failed_nodes_count++];
		pair->key = node->name;
		if (node->id.outcome == NODE_ID_FOUND) {
			pair->value = slice_from(room, NO_CAPACITY.length + node->name.length);
			memcpy(room, NO_CAPACITY.data, NO_CAPACITY.length);
			if (node->name.length > 0)
				memcpy(room + NO_CAPACITY.length, node->name.data, node->name.length);
			room += pair->value.length;
		} else if (!find_sentence(reasons, node->id.outcome, &pair->value, err)) {
			return false;
		}
	}
	return true;
}

static bool list_failed(const struct request *request, const bool *matched, struct arena *arena,
                        struct extender_filter_result *result, struct error *err)
{
	struct reasons reasons = { .settings = request->settings, .arena = arena };
	struct slice_set names;
	size_t count = request->node_count - count_matched(request, matched);

	result->failed_nodes_presence = JSON_VALUE;
	result->failed_nodes = arena_allocate_array(arena, count, sizeof *result->failed_nodes);
	if (result->failed_nodes == NULL || !slice_set_make(&names, arena, count))
		return error_set(err, ERROR_NO_MEMORY, "no memory for why %zu nodes aren't taken", count);
	return fill_failed(request, matched, &names, &reasons, result, err);
}

static bool list_matched_names(const struct request *request, const bool *matched, struct arena *arena,
                               struct extender_filter_result *result, struct error *err)
{
	size_t count = count_matched(request, matched);

	result->node_names = arena_allocate_array(arena, count, sizeof *result->node_names);
	if (result->node_names == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the names of %zu nodes", count);
	for (size_t i = 0; i < request->node_count; i++) {
		if (matched[i])
			result->node_names[result->node_names_count++] = request->nodes[i].name;
	}
	result->node_names_presence = JSON_VALUE;
	return true;
}

bool answer_matched_nodes(struct answer *answer, const struct request *request, const bool *matched,
                          struct arena *arena, struct error *err)
{
	struct extender_filter_result result = empty_result(slice_from(NULL, 0));

	if (!list_failed(request, matched, arena, &result, err))
		return false;
	if (request_nodes_form(request) == REQUEST_NODES_BY_NAME)
		return list_matched_names(request, matched, arena, &result, err) && finish_result(answer, &result, err);
	set_nodes(&result, request, true);
	return finish_with_nodes(answer, request, matched, &result, err);
}

/* --- the other routes --- */

bool answer_scores(struct answer *answer, const struct priority_list *list, struct error *err)
{
	struct answer made;
	struct json_writer writer;

	answer_init(&made);
	json_writer_init(&writer, &made.text);
	json_writer_array_begin(&writer);
	for (size_t i = 0; i < list->count; i++)
		extender_host_priority_encode(&writer, &list->items[i]);
	json_writer_array_end(&writer);
	return finish(answer, &made, json_writer_check(&writer, "the scores", err), err);
}

bool answer_null(struct answer *answer, struct error *err)
{
	struct answer made;
	struct json_writer writer;

	answer_init(&made);
	json_writer_init(&writer, &made.text);
	json_writer_null(&writer);
	return finish(answer, &made, json_writer_check(&writer, "null", err), err);
}

void answer_empty(struct answer *answer)
{
	answer_destroy(answer);
	answer_init(answer);
}

bool answer_binding(struct answer *answer, struct slice error, struct error *err)
{
	struct extender_binding_result result = { .error = error };
	struct answer made;

	answer_init(&made);
	return finish(answer, &made, extender_binding_result_to_json(&result, &made.text, err), err);
}
