/*
 * Any bytes as the body of a filter, prioritize or bind call; the first byte says which, and how the body is cut, the
 * second what the reservation looks like. Checked: no bad access; the result doesn't depend on where the body is cut;
 * the answer is JSON that the scheduler can read, as long as it says it is; the nodes in it are the request's own
 * bytes, and an object to be written reads back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json_tree.h"
#include "extender/filter.h"

enum { MAX_BYTES = 1024 * 1024, ARENA_BYTES = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
	if (!condition)
		abort();
}

static bool find_claim(void *context, struct slice namespace, struct slice name, struct claim_view *ret_claim)
{
	(void)context;
	(void)namespace;
	*ret_claim = (struct claim_view){
		.has_class_name = name.length % 5 != 1,
		.class_name = slice_from(name.data, name.length % 3),
		.phase = name.length % 4 == 2 ? SLICE("Bound") : SLICE("Pending"),
		.size_bytes = (int64_t)name.length,
		.storage_group = slice_from(name.data, name.length % 2),
	};
	return name.length % 7 != 6;
}

static bool find_class(void *context, struct slice name, struct class_view *ret_class)
{
	(void)context;
	*ret_class = (struct class_view){ .provisioner = SLICE("p"), .storage_type = name };
	return name.length % 7 != 6;
}

static bool find_node(void *context, struct slice name, struct node_id *ret_id)
{
	(void)context;
	*ret_id = (struct node_id){ NODE_ID_FOUND, name };
	return name.length > 0;
}

static void feed(struct request *request, struct slice body, size_t piece)
{
	for (size_t at = 0; at < body.length; at += piece) {
		struct slice bytes = slice_from_offset(body, at);

		if (bytes.length > piece)
			bytes.length = piece;
		check(request_feed(request, bytes) == REQUEST_FED);
	}
}

static void collect(struct answer *answer, struct buffer *text)
{
	struct slice piece;

	buffer_init(text, (size_t)16 * MAX_BYTES);
	while (answer_next(answer, &piece)) {
		check(piece.length > 0);
		buffer_append_slice(text, piece);
	}
	check(!text->failed && text->length == answer_length(answer));
}

static void check_json(struct slice text)
{
	struct json_node *tree;
	struct arena arena;
	struct error err;

	arena_init(&arena, ARENA_BYTES);
	check(json_tree_parse(text, &arena, &tree, &err) || err.code == ERROR_LIMIT || err.code == ERROR_NO_MEMORY);
	arena_destroy(&arena);
}

static void check_object(const struct filter *filter)
{
	struct csi_available_capacity_reservation object;
	struct arena arena;
	struct error err;

	arena_init(&arena, ARENA_BYTES);
	check(csi_available_capacity_reservation_from_json(buffer_slice(&filter->object), &arena, &object, &err));
	check(slice_equal_text(object.spec.status, "REQUESTED"));
	check(object.spec.node_requests.requested_count > 0);
	arena_destroy(&arena);
}

/* A reservation that fits the request more or less. */
static void make_reservation(const struct filter *filter, uint8_t shape, struct arena *arena,
                             struct csi_available_capacity_reservation *reservation)
{
	static const char *const STATUSES[] = { "RESERVED", "REJECTED", "REQUESTED", "OTHER" };
	const struct capacity_plan *plan = &filter->plan;
	struct csi_reservation_request *requests = arena_allocate_array(arena, plan->request_count, sizeof *requests);
	struct slice *reserved = arena_allocate_array(arena, filter->request->node_count, sizeof *reserved);
	struct csi_reservation_spec *spec = &reservation->spec;

	check(requests != NULL && reserved != NULL);
	spec->namespace = filter->request->args.pod.metadata.namespace;
	spec->status = slice_of(STATUSES[shape % 4]);
	for (size_t i = 0; i < plan->request_count; i++) {
		requests[i].has_capacity_request = true;
		requests[i].capacity_request = (struct csi_capacity_request){
			.name = plan->requests[i].name,
			.storage_class = plan->requests[i].storage_type,
			.size_bytes = plan->requests[i].size_bytes + (shape >> 2) % 5 / 4,
			.storage_group = plan->requests[i].storage_group,
		};
	}
	spec->reservation_requests = requests;
	spec->reservation_requests_count = plan->request_count;
	spec->has_node_requests = true;
	for (size_t i = 0; i < filter->request->node_count; i++) {
		if ((shape >> i % 8 & 1) != 0)
			reserved[spec->node_requests.reserved_count++] = filter->request->nodes[i].id.id;
	}
	spec->node_requests.reserved = reserved;
}

static void run_filter(const struct extender_settings *settings, struct slice body, size_t piece, uint8_t shape,
                       struct buffer *ret_text)
{
	const struct storage_view view = { NULL, find_claim, find_class, find_node };
	struct csi_available_capacity_reservation reservation = { 0 };
	struct request request;
	struct filter filter;
	struct arena arena;
	enum filter_step step;

	arena_init(&arena, ARENA_BYTES);
	request_init(&request, REQUEST_ARGS, settings);
	feed(&request, body, piece);
	step = filter_start(&filter, settings, &view, &request);
	if (step == FILTER_READ) {
		make_reservation(&filter, shape, &arena, &reservation);
		step = shape % 8 == 7 ? filter_not_found(&filter) : filter_found(&filter, &reservation);
	}
	if (step == FILTER_CREATE || step == FILTER_REPLACE) {
		check_object(&filter);
		step = filter_written(&filter);
	}
	check(step == FILTER_ANSWER);
	for (size_t i = 0; i < request.node_count; i++) {
		const struct request_node *node = &request.nodes[i];

		check(node->start + node->length <= request.body.length);
		check(node->length == 0 || request.body.data[node->start] == '{' ||
		      request.body.data[node->start] == 'n');
	}
	collect(&filter.answer, ret_text);
	check(ret_text->length > 0);
	filter_destroy(&filter);
	request_destroy(&request);
	arena_destroy(&arena);
}

static void run_prioritize(const struct extender_settings *settings, struct slice body, size_t piece,
                           struct buffer *ret_text)
{
	const struct storage_view view = { NULL, find_claim, find_class, find_node };
	struct volume_counts counts;
	struct capacity_plan plan;
	struct request request;
	struct answer answer;
	struct arena arena;

	arena_init(&arena, ARENA_BYTES);
	volume_counts_init(&counts);
	answer_init(&answer);
	request_init(&request, REQUEST_ARGS, settings);
	feed(&request, body, piece);
	prioritize_answer(settings, &view, &counts, &request, &arena, &plan, &answer);
	collect(&answer, ret_text);
	answer_destroy(&answer);
	request_destroy(&request);
	volume_counts_destroy(&counts);
	arena_destroy(&arena);
}

static void run_bind(const struct extender_settings *settings, struct slice body, size_t piece, struct buffer *ret_text)
{
	struct request request;
	struct answer answer;

	answer_init(&answer);
	request_init(&request, REQUEST_BINDING, settings);
	if (body.length > EXTENDER_BINDING_BYTES)
		body.length = EXTENDER_BINDING_BYTES;
	feed(&request, body, piece);
	bind_answer(&request, &answer);
	collect(&answer, ret_text);
	answer_destroy(&answer);
	request_destroy(&request);
}

static void run(uint8_t kind, uint8_t shape, struct slice body, size_t piece, struct buffer *ret_text)
{
	const struct extender_settings settings = {
		.provisioner = SLICE("p"),
		.node_selector = (kind & 8) != 0 ? SLICE("a=b") : SLICE(""),
		.use_node_annotation = (kind & 16) != 0,
		.use_external_annotation = (kind & 32) != 0,
		.node_id_annotation = SLICE("id"),
		.inline_volumes = (kind & 64) != 0,
		.normalize_scores = (kind & 128) != 0,
	};

	switch (kind % 4) {
	case 0:
	case 1:
		run_filter(&settings, body, piece, shape, ret_text);
		break;
	case 2:
		run_prioritize(&settings, body, piece, ret_text);
		break;
	default:
		run_bind(&settings, body, piece, ret_text);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer whole;
	struct buffer cut;

	if (size < 2 || size > MAX_BYTES)
		return 0;

	struct slice body = slice_from(data + 2, size - 2);

	run(data[0], data[1], body, SIZE_MAX, &whole);
	run(data[0], data[1], body, (size_t)1 + data[1] % 13, &cut);
	check(slice_equal(buffer_slice(&whole), buffer_slice(&cut)));
	if (whole.length > 0)
		check_json(buffer_slice(&whole));
	buffer_destroy(&whole);
	buffer_destroy(&cut);
	return 0;
}
