/*
 * Runs the extender's vectors: the engine's steps against a script, in the cluster of vector_cluster.h. A vector file
 * has blocks of lines; a line that begins with a tab belongs to the one before.
 *
 *	= name
 *	flags --usenodeannotation --nodeselector=bm=yes
 *	class …, claim …, define …       as in the fixture, in addition, for this vector
 *	no classes                       none of the fixture's
 *	volumes ID COUNT                 that many Volumes on a node
 *	names ID=NAME …                  a cache of nodes
 *	send /filter BODY                without a body: nothing
 *	expect GET NAME | POST OBJECT | PUT OBJECT     what the engine wants next; objects are compared as JSON
 *	reply STATUS [TEXT]              an object for 200, else a message
 *	answer TEXT                      byte for byte, a newline follows; "(nothing)": no body at all
 *	refused                          Fail-A with some text
 *
 * After an answer another send may follow.
 */
#ifndef BALLAST_TESTS_UNIT_EXTENDER_VECTOR_SCRIPT_H
#define BALLAST_TESTS_UNIT_EXTENDER_VECTOR_SCRIPT_H

#include "extender/filter.h"
#include "vector_cluster.h"

/* A vector under way. */
struct vector_run {
	struct vector_cluster *cluster;
	const char *name;
	struct arena *arena;
	struct request request;
	bool request_open;
	struct filter filter;
	bool filter_open;
	enum filter_step step;
	bool asked;           /* the step was expected; its reply comes next */
	struct answer answer; /* of the other routes */
	struct buffer text;   /* the answer's bytes */
	size_t feed_bytes;    /* bodies are fed in pieces of this size */
};

#define vector_check(run, ok, ...)                        \
	do {                                              \
		if (!(ok)) {                              \
			print_error("%s: ", (run)->name); \
			print_error(__VA_ARGS__);         \
			print_error("\n");                \
			fail();                           \
		}                                         \
	} while (0)

/* --- the cluster as a vector changes it --- */

static inline void vector_set_flag(struct vector_run *run, struct slice word)
{
	struct extender_settings *settings = &run->cluster->settings;
	struct slice value = word;
	struct slice name = slice_take_until(&value, '=');

	if (slice_equal_text(name, "--usenodeannotation"))
		settings->use_node_annotation = true;
	else if (slice_equal_text(name, "--useexternalannotation"))
		settings->use_external_annotation = true;
	else if (slice_equal_text(name, "--nodeidannotation"))
		settings->node_id_annotation = value;
	else if (slice_equal_text(name, "--nodeselector"))
		settings->node_selector = value;
	else if (slice_equal_text(name, "--inline-volumes"))
		settings->inline_volumes = true;
	else if (slice_equal_text(name, "--normalize-scores"))
		settings->normalize_scores = true;
	else
		vector_check(run, false, "unknown flag %.*s", SLICE_ARGS(word));
}

static inline void vector_add_volumes(struct vector_run *run, struct slice rest)
{
	struct slice id = vector_word(&rest);
	struct error err;

	for (int count = atoi(rest.data); count > 0; count--)
		assert_true(volume_counts_add(&run->cluster->volumes, id, &err));
}

static inline void vector_add_nodes(struct vector_run *run, struct slice rest)
{
	run->cluster->view.find_node = vector_find_node;
	for (struct slice name = vector_word(&rest); name.length > 0; name = vector_word(&rest)) {
		struct slice id = slice_take_until(&name, '=');

		assert_true(run->cluster->node_count < VECTOR_NODES);
		run->cluster->nodes[run->cluster->node_count++] = (struct vector_node){ id, name };
	}
}

/* --- calls --- */

static inline void vector_close_call(struct vector_run *run)
{
	if (run->filter_open)
		filter_destroy(&run->filter);
	if (run->request_open)
		request_destroy(&run->request);
	run->filter_open = run->request_open = false;
}

static inline void vector_send(struct vector_run *run, struct slice rest)
{
	struct vector_cluster *cluster = run->cluster;
	struct slice path = vector_word(&rest);
	struct slice body = vector_expand(cluster, run->arena, slice_trim(rest));
	bool bind = slice_equal_text(path, "/bind");
	struct capacity_plan ignored;

	vector_close_call(run);
	request_init(&run->request, bind ? REQUEST_BINDING : REQUEST_ARGS, &cluster->settings);
	run->request_open = true;
	for (size_t at = 0; at < body.length; at += run->feed_bytes) {
		struct slice piece = slice_from_offset(body, at);

		if (piece.length > run->feed_bytes)
			piece.length = run->feed_bytes;
		assert_int_equal(request_feed(&run->request, piece), REQUEST_FED);
	}
	run->step = FILTER_ANSWER;
	run->asked = false;
	if (slice_equal_text(path, "/filter")) {
		run->step = filter_start(&run->filter, &cluster->settings, &cluster->view, &run->request);
		run->filter_open = true;
	} else if (bind) {
		bind_answer(&run->request, &run->answer);
	} else {
		vector_check(run, slice_equal_text(path, "/prioritize"), "no route %.*s", SLICE_ARGS(path));
		prioritize_answer(&cluster->settings, &cluster->view, &cluster->volumes, &run->request, run->arena,
		                  &ignored, &run->answer);
	}
}

static inline void vector_check_json(struct vector_run *run, struct slice is, struct slice wanted)
{
	struct json_node *is_tree = NULL;
	struct json_node *wanted_tree = NULL;
	struct error err = { 0 };

	vector_check(run, json_tree_parse(wanted, run->arena, &wanted_tree, &err), "bad vector: %s", err.text);
	vector_check(run, json_tree_parse(is, run->arena, &is_tree, &err), "bad object: %s", err.text);
	vector_check(run, json_tree_equal(is_tree, wanted_tree), "object is\n%.*s\nnot\n%.*s", SLICE_ARGS(is),
	             SLICE_ARGS(wanted));
}

static inline void vector_expect(struct vector_run *run, struct slice rest)
{
	struct slice method = vector_word(&rest);
	struct slice text = vector_expand(run->cluster, run->arena, slice_trim(rest));

	vector_check(run, !run->asked, "a reply is missing");
	run->asked = true;
	if (slice_equal_text(method, "GET")) {
		vector_check(run, run->step == FILTER_READ, "step %d is no GET", run->step);
		vector_check(run, slice_equal_text(text, run->filter.name), "GET of %s", run->filter.name);
		return;
	}
	vector_check(run, run->step == (slice_equal_text(method, "POST") ? FILTER_CREATE : FILTER_REPLACE),
	             "step %d is no %.*s", run->step, SLICE_ARGS(method));
	vector_check_json(run, buffer_slice(&run->filter.object), text);
}

static inline enum filter_step vector_found(struct vector_run *run, struct slice text)
{
	struct csi_available_capacity_reservation reservation;
	struct error err = { 0 };

	vector_check(run,
	             csi_available_capacity_reservation_from_json(vector_expand(run->cluster, run->arena, text),
	                                                          run->arena, &reservation, &err),
	             "bad reservation: %s", err.text);
	return filter_found(&run->filter, &reservation);
}

static inline void vector_reply(struct vector_run *run, struct slice rest)
{
	struct slice word = vector_word(&rest);
	int status = atoi(word.data);

	rest = slice_trim(rest);
	vector_check(run, run->asked, "nothing was asked");
	run->asked = false;
	if (run->step == FILTER_READ && status == 200)
		run->step = vector_found(run, rest);
	else if (run->step == FILTER_READ && status == 404)
		run->step = filter_not_found(&run->filter);
	else if (status == 200 || status == 201 || (run->step == FILTER_CREATE && status == 409))
		run->step = filter_written(&run->filter);
	else if (run->step == FILTER_REPLACE && status == 409)
		run->step = filter_conflicted(&run->filter);
	else
		run->step = filter_call_failed(&run->filter, status, rest);
}

static inline struct slice vector_answer_text(struct vector_run *run)
{
	struct answer *answer = run->filter_open ? &run->filter.answer : &run->answer;
	struct slice piece;

	vector_check(run, run->step == FILTER_ANSWER && !run->asked, "step %d instead of an answer", run->step);
	buffer_clear(&run->text);
	answer_rewind(answer);
	while (answer_next(answer, &piece)) {
		assert_true(piece.length > 0);
		buffer_append_slice(&run->text, piece);
	}
	assert_int_equal(answer_length(answer), run->text.length);
	return buffer_slice(&run->text);
}

static inline void vector_check_answer(struct vector_run *run, struct slice rest)
{
	struct slice is = vector_answer_text(run);
	struct slice wanted = vector_expand(run->cluster, run->arena, slice_trim(rest));

	if (slice_equal_text(wanted, "(nothing)")) {
		vector_check(run, is.length == 0, "answer is %.*s", SLICE_ARGS(is));
		return;
	}
	vector_check(run, is.length > 0 && is.data[is.length - 1] == '\n', "no newline behind the answer");
	is.length--;
	vector_check(run, slice_equal(is, wanted), "answer is\n%.*s\nnot\n%.*s", SLICE_ARGS(is), SLICE_ARGS(wanted));
}

static inline void vector_check_refused(struct vector_run *run)
{
	struct slice is = vector_answer_text(run);
	struct slice start = SLICE("{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"
	                           "\"FailedAndUnresolvableNodes\":null,\"Error\":\"");

	vector_check(run, slice_starts_with(is, start) && is.length > start.length + 3, "answer is %.*s",
	             SLICE_ARGS(is));
}

/* --- files --- */

static inline void vector_do_line(struct vector_run *run, struct slice line)
{
	struct slice rest = line;
	struct slice command = slice_take_until(&rest, ' ');

	if (slice_equal_text(command, "send"))
		vector_send(run, rest);
	else if (slice_equal_text(command, "expect"))
		vector_expect(run, rest);
	else if (slice_equal_text(command, "reply"))
		vector_reply(run, rest);
	else if (slice_equal_text(command, "answer"))
		vector_check_answer(run, rest);
	else if (slice_equal_text(command, "refused"))
		vector_check_refused(run);
	else if (slice_equal_text(command, "class"))
		vector_add_class(run->cluster, rest);
	else if (slice_equal_text(command, "claim"))
		vector_add_claim(run->cluster, rest);
	else if (slice_equal_text(command, "define"))
		vector_define(run->cluster, run->arena, rest);
	else if (slice_equal_text(command, "volumes"))
		vector_add_volumes(run, rest);
	else if (slice_equal_text(command, "names"))
		vector_add_nodes(run, rest);
	else if (slice_equal_text(line, "no classes"))
		run->cluster->class_count = 0;
	else if (slice_equal_text(command, "flags"))
		for (struct slice word = vector_word(&rest); word.length > 0; word = vector_word(&rest))
			vector_set_flag(run, word);
	else
		vector_check(run, false, "bad vector line: %.*s", SLICE_ARGS(line));
}

/* Runs one vector: its lines up to the next name, which is left in *line. */
static inline bool vector_run_one(struct slice *rest, struct slice *line, const char *fixture, size_t feed_bytes)
{
	struct vector_cluster *cluster = memory_allocate(sizeof *cluster);
	struct vector_run run = { .cluster = cluster, .feed_bytes = feed_bytes };
	struct arena arena;
	struct slice name;
	bool more;

	arena_init(&arena, VECTOR_ARENA);
	assert_true(arena_copy(&arena, slice_trim(slice_from_offset(*line, 1)), &name));
	run.name = name.data;
	run.arena = &arena;
	answer_init(&run.answer);
	buffer_init(&run.text, 1 << 20);
	vector_load_fixture(cluster, &arena, fixture);
	while ((more = vector_next_line(rest, &arena, line)) && line->data[0] != '=')
		vector_do_line(&run, *line);
	vector_check(&run, !run.asked && run.step == FILTER_ANSWER, "the vector ends in the middle of a call");
	vector_close_call(&run);
	answer_destroy(&run.answer);
	buffer_destroy(&run.text);
	volume_counts_destroy(&cluster->volumes);
	memory_release(cluster);
	/* The line outlives the arena as a part of the file: it has no continuation. */
	if (more)
		*line = slice_from(rest->data - line->length - 1, line->length);
	arena_destroy(&arena);
	return more;
}

/* Runs a file's vectors, bodies fed in pieces of feed_bytes, and returns how many there were. */
static inline size_t vectors_run(const char *file, size_t feed_bytes)
{
	char path[256];
	size_t length;
	size_t count = 0;
	char *fixture = vector_read_file("vectors/extender/fixture.txt", &length);
	struct arena arena;
	struct slice rest;
	struct slice line;
	bool more;

	snprintf(path, sizeof path, "vectors/extender/%s", file);

	char *text = vector_read_file(path, &length);

	arena_init(&arena, VECTOR_ARENA);
	rest = slice_from(text, length);
	more = vector_next_line(&rest, &arena, &line);
	while (more) {
		assert_int_equal(line.data[0], '=');
		if (feed_bytes > 1)
			print_message("  %.*s\n", SLICE_ARGS(slice_trim(slice_from_offset(line, 1))));
		more = vector_run_one(&rest, &line, fixture, feed_bytes);
		count++;
	}
	arena_destroy(&arena);
	memory_release(text);
	memory_release(fixture);
	return count;
}

#endif
