/*
 * The stepper tells where members begin and end. Everything within Nodes.items is cut out: of each node its range is
 * noted and its metadata decoded; what is around is copied into the envelope, which the generated decoder of Args then
 * reads as if there had been no node.
 *
 * Depths: Pod and Nodes are 1, items is 2, a node is 3, its metadata is 4.
 */
#include "extender/request.h"

#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "extender/limits.h"
#include "extender/storage_size.h"

enum { TOP_MEMBER = 1, LIST_MEMBER = 2, NODE = 3, NODE_MEMBER = 4 };

enum { FIRST_NODES = 64 };

/* --- the scan --- */

static struct slice range(struct slice text, size_t start, size_t end)
{
	return slice_from(text.data + start, end - start);
}

/* Whether the last member name is this, in any letter case (spec H6). */
static bool key_is(const struct request *request, struct slice text, struct slice name)
{
	return slice_equal_fold(range(text, request->key_start + 1, request->key_end - 1), name);
}

static bool copy_envelope(struct request *request, struct slice text, size_t end, struct error *err)
{
	buffer_append_slice(&request->envelope, range(text, request->copied, end));
	request->copied = end;
	return buffer_check(&request->envelope, "the request without its nodes", err);
}

/* Room for so many nodes. */
static bool grow_nodes(struct request *request, size_t count, struct error *err)
{
	size_t capacity = request->node_capacity > 0 ? 2 * request->node_capacity : FIRST_NODES;
	struct request_node *nodes;

	if (count > EXTENDER_NODES)
		return error_set(err, ERROR_LIMIT, "more than %d nodes", EXTENDER_NODES);
	if (count <= request->node_capacity)
		return true;
	if (capacity < count)
		capacity = count;
	nodes = memory_resize(request->nodes, capacity * sizeof *nodes);
	if (nodes == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for %zu nodes", capacity);
	request->nodes = nodes;
	request->node_capacity = capacity;
	return true;
}

/* name and id are copied into the request's memory. */
static bool add_node(struct request *request, struct request_node node, struct error *err)
{
	if (!grow_nodes(request, request->node_count + 1, err))
		return false;
	if (!arena_copy(&request->arena, node.name, &node.name) ||
	    (node.id.id.length > 0 && !arena_copy(&request->arena, node.id.id, &node.id.id)))
		return error_set(err, ERROR_NO_MEMORY, "no memory for the names of %zu nodes", request->node_count);
	request->nodes[request->node_count++] = node;
	return true;
}

static bool end_node(struct request *request, struct slice text, size_t end, struct error *err)
{
	struct extender_node_meta meta = { 0 };
	struct slice meta_text = { 0 };
	struct request_node node = { .start = request->node_start, .length = end - request->node_start };

	if (request->meta_end > 0)
		meta_text = range(text, request->meta_start, request->meta_end);
	if (meta_text.length > EXTENDER_NODE_META_BYTES)
		return error_set(err, ERROR_LIMIT, "Nodes.items[%zu].metadata has more than %d bytes",
		                 request->node_count, EXTENDER_NODE_META_BYTES);
	if (meta_text.length > 0 && request->meta_count > EXTENDER_NODE_META_VALUES)
		return error_set(err, ERROR_LIMIT, "Nodes.items[%zu].metadata has more than %d keys and values",
		                 request->node_count, EXTENDER_NODE_META_VALUES);
	arena_reset(&request->node_arena);
	if (meta_text.length > 0 && !extender_node_meta_from_json(meta_text, &request->node_arena, &meta, err))
		return error_wrap(err, "Nodes.items[%zu].metadata", request->node_count);
	node.name = meta.name;
	node.id = node_id_of(request->settings, &meta);
	return add_node(request, node, err);
}

static bool begin_value(struct request *request, struct slice text, int depth, size_t offset, struct error *err)
{
	char first = text.data[offset];

	switch (depth) {
	case TOP_MEMBER:
		request->in_nodes = first == '{' && key_is(request, text, SLICE("Nodes"));
		/* What is within the pod, or thousands of node names, is none of our business. */
		request->stepper.event_depth = request->in_nodes ? NODE_MEMBER : TOP_MEMBER;
		return true;
	case LIST_MEMBER:
		request->in_items = request->in_nodes && first == '[' && key_is(request, text, SLICE("items"));
		if (!request->in_items)
			return true;
		request->node_count = 0; /* of a repeated member the last one counts */
		request->items_count = request->stepper.count;
		return copy_envelope(request, text, offset + 1, err);
	case NODE:
		if (request->in_items && first != '{' && first != 'n')
			return error_set(err, ERROR_SYNTAX, "Nodes.items[%zu] is no object", request->node_count);
		request->node_start = offset;
		request->meta_end = 0;
		return true;
	case NODE_MEMBER:
		request->in_meta = request->in_items && key_is(request, text, SLICE("metadata"));
		if (request->in_meta) {
			request->meta_start = offset;
			request->meta_count = request->stepper.count;
		}
		return true;
	default:
		return true;
	}
}

static bool end_value(struct request *request, struct slice text, int depth, size_t offset, struct error *err)
{
	switch (depth) {
	case TOP_MEMBER:
		request->in_nodes = false;
		return true;
	case LIST_MEMBER:
		if (request->in_items) {
			request->copied = offset - 1; /* the bracket */
			request->cut_count += request->stepper.count - request->items_count;
		}
		request->in_items = false;
		return true;
	case NODE:
		return !request->in_items || end_node(request, text, offset, err);
	case NODE_MEMBER:
		if (request->in_meta) {
			request->meta_end = offset;
			request->meta_count = request->stepper.count - request->meta_count;
		}
		request->in_meta = false;
		return true;
	default:
		return true;
	}
}

static bool on_event(void *context, struct slice text, enum json_event event, int depth, size_t offset,
                     struct error *err)
{
	struct request *request = context;

	switch (event) {
	case JSON_EVENT_KEY_BEGIN:
		request->key_start = offset;
		return true;
	case JSON_EVENT_KEY_END:
		request->key_end = offset;
		return true;
	case JSON_EVENT_BEGIN:
		return begin_value(request, text, depth, offset, err);
	case JSON_EVENT_END:
		return end_value(request, text, depth, offset, err);
	}
	return true;
}

/* --- feeding --- */

static size_t body_limit(enum request_kind kind)
{
	return kind == REQUEST_ARGS ? EXTENDER_BODY_BYTES : EXTENDER_BINDING_BYTES;
}

void request_init(struct request *request, enum request_kind kind, const struct extender_settings *settings)
{
	*request = (struct request){ .kind = kind, .settings = settings };
	buffer_init(&request->body, body_limit(kind));
	buffer_init(&request->envelope, EXTENDER_ENVELOPE_BYTES);
	arena_init(&request->arena, EXTENDER_REQUEST_ARENA_BYTES);
	arena_init(&request->node_arena, EXTENDER_NODE_META_ARENA_BYTES);
	json_stepper_init(&request->stepper, kind == REQUEST_ARGS ? TOP_MEMBER : -1, on_event, request);
}

/* Whatever was read is of no use; frees most of the memory. */
static void give_up(struct request *request)
{
	buffer_release(&request->body);
	buffer_release(&request->envelope);
	arena_destroy(&request->node_arena);
	arena_destroy(&request->arena);
	request->args = (struct extender_args){ 0 };
	request->binding = (struct extender_binding_args){ 0 };
	request->node_count = 0;
}

enum request_feed_result request_expect(struct request *request, size_t length)
{
	if (length > body_limit(request->kind))
		return REQUEST_TOO_LARGE;
	return buffer_reserve(&request->body, length) != NULL ? REQUEST_FED : REQUEST_NO_MEMORY;
}

enum request_feed_result request_feed(struct request *request, struct slice bytes)
{
	if (bytes.length > body_limit(request->kind) - request->received_bytes) {
		give_up(request);
		request->undecodable = true;
		return REQUEST_TOO_LARGE;
	}
	request->received_bytes += bytes.length;
	if (request->undecodable || json_stepper_done(&request->stepper))
		return REQUEST_FED;
	buffer_append_slice(&request->body, bytes);
	if (request->body.failed) {
		give_up(request);
		return REQUEST_NO_MEMORY;
	}
	if (!json_stepper_step(&request->stepper, buffer_slice(&request->body), &request->problem)) {
		request->undecodable = true;
		give_up(request);
		return request->problem.code == ERROR_NO_MEMORY ? REQUEST_NO_MEMORY : REQUEST_FED;
	}
	return REQUEST_FED;
}

/* --- finishing --- */

/* The request without its nodes: the body itself if there are none to cut out. */
static bool take_envelope(struct request *request, struct slice *ret_envelope, struct error *err)
{
	struct slice body = range(buffer_slice(&request->body), 0, request->stepper.at);

	if (request->copied > 0) {
		if (!copy_envelope(request, body, body.length, err))
			return false;
		body = buffer_slice(&request->envelope);
	}
	if (body.length > EXTENDER_ENVELOPE_BYTES)
		return error_set(err, ERROR_LIMIT, "the request without its nodes has more than %d bytes",
		                 EXTENDER_ENVELOPE_BYTES);
	if (request->stepper.count - request->cut_count > EXTENDER_ENVELOPE_VALUES)
		return error_set(err, ERROR_LIMIT, "the request without its nodes has more than %d keys and values",
		                 EXTENDER_ENVELOPE_VALUES);
	*ret_envelope = body;
	return true;
}

/* A storage quantity that isn't one makes the request undecodable, whoever's the volume is (spec H10). */
static bool check_sizes(const struct extender_pod *pod, struct error *err)
{
	int64_t ignored;

	for (size_t i = 0; i < pod->spec.volumes_count; i++) {
		const struct extender_pod_volume *volume = &pod->spec.volumes[i];

		if (!storage_size_from_quantity(volume->ephemeral.volume_claim_template.spec.resources.requests.storage,
		                                &ignored, err))
			return error_wrap(err, "Pod.spec.volumes[%zu].ephemeral", i);
	}
	return true;
}

static bool decode_args(struct request *request, struct error *err)
{
	struct slice envelope;

	if (!take_envelope(request, &envelope, err) ||
	    !extender_args_from_json(envelope, &request->arena, &request->args, err))
		return false;
	if (!request->args.has_pod)
		return error_set(err, ERROR_SYNTAX, "the request has no Pod");

	struct slice items = request->args.nodes.items;

	switch (json_kind_of(items)) {
	case JSON_KIND_NONE:
	case JSON_KIND_NULL:
		request->node_count = 0; /* those of a member that was repeated */
		break;
	case JSON_KIND_ARRAY:
		if (items.length > sizeof "[]" - 1) /* it wasn't cut out */
			return error_set(err, ERROR_SYNTAX, "the name Nodes or items is written with escapes");
		break;
	default:
		return error_set(err, ERROR_SYNTAX, "Nodes.items is no array");
	}
	return check_sizes(&request->args.pod, err);
}

/* Fills the result, or request->problem. */
static void finish_once(struct request *request)
{
	bool ok;

	if (!request->undecodable &&
	    !json_stepper_finish(&request->stepper, buffer_slice(&request->body), &request->problem))
		request->undecodable = true;
	if (!request->undecodable) {
		if (request->kind == REQUEST_ARGS)
			ok = decode_args(request, &request->problem);
		else
			ok = extender_binding_args_from_json(slice_from(request->body.data, request->stepper.at),
			                                     &request->arena, &request->binding, &request->problem);
		request->undecodable = !ok;
	}
	arena_destroy(&request->node_arena);
	if (request->undecodable)
		give_up(request);
	request->finished = true;
}

bool request_finish(struct request *request, struct error *err)
{
	if (!request->finished)
		finish_once(request);
	if (request->undecodable)
		*err = request->problem;
	return !request->undecodable;
}

size_t request_held_bytes(const struct request *request)
{
	return request->body.capacity + request->envelope.capacity + request->arena.used_bytes +
	       request->node_arena.used_bytes + request->node_capacity * sizeof *request->nodes;
}

void request_destroy(struct request *request)
{
	buffer_destroy(&request->body);
	buffer_destroy(&request->envelope);
	arena_destroy(&request->arena);
	arena_destroy(&request->node_arena);
	memory_release(request->nodes);
	request->nodes = NULL;
	request->node_count = request->node_capacity = 0;
}

/* --- nodes --- */

enum request_nodes_form request_nodes_form(const struct request *request)
{
	if (request->args.has_nodes)
		return REQUEST_NODES_FULL;
	return request->args.node_names_presence == JSON_VALUE ? REQUEST_NODES_BY_NAME : REQUEST_NODES_ABSENT;
}

/* The cache may change before the call is over, so its ids are copied, all into one piece of memory. */
static bool keep_ids(struct request *request, size_t bytes, struct error *err)
{
	char *room = arena_allocate_raw(&request->arena, bytes, 1);

	if (room == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the ids of %zu nodes", request->node_count);
	for (size_t i = 0; i < request->node_count; i++) {
		struct slice *id = &request->nodes[i].id.id;

		if (id->length == 0)
			continue;
		memcpy(room, id->data, id->length);
		id->data = room;
		room += id->length;
	}
	return true;
}

bool request_resolve_names(struct request *request, const struct storage_view *view, struct error *err)
{
	size_t bytes = 0;

	if (view->find_node == NULL)
		return error_set(err, ERROR_REFUSED,
		                 "the request has node names only (nodeCacheCapable), and this extender may not list "
		                 "and watch nodes");
	request->node_count = 0;
	if (!grow_nodes(request, request->args.node_names_count, err))
		return false;
	for (size_t i = 0; i < request->args.node_names_count; i++) {
		struct request_node *node = &request->nodes[i];

		*node = (struct request_node){ .name = request->args.node_names[i] };
		if (!view->find_node(view->context, node->name, &node->id))
			node->id = (struct node_id){ .outcome = NODE_ID_UNKNOWN_NODE };
		bytes += node->id.id.length;
	}
	request->node_count = request->args.node_names_count;
	if (keep_ids(request, bytes, err))
		return true;
	request->node_count = 0;
	return false;
}

struct slice request_node_text(const struct request *request, const struct request_node *node)
{
	return slice_from(request->body.data + node->start, node->length);
}
