#include "sim_reservation_log.h"

#include <stdio.h>
#include <string.h>

#include "codec/json_tree.h"
#include "sandbox/storage_objects.h"

enum { ARENA_BYTES = 256 * 1024 * 1024 };

static void copy_text(char *room, size_t size, struct slice text)
{
	(void)snprintf(room, size, "%.*s", SLICE_ARGS(text));
}

static uint32_t bit_of(const struct sim_reservation_log *log, struct slice id)
{
	for (unsigned i = 0; i < log->node_count; i++)
		if (slice_equal_text(id, log->nodes[i].id))
			return UINT32_C(1) << i;
	return 0;
}

static struct sim_reservation_state *new_state(struct sim_reservation_log *log)
{
	struct sim_reservation_state *state = &log->states[log->next];

	/* There are far fewer reservations than states. */
	while (state->until_ns == UINT64_MAX) {
		log->next = (log->next + 1) % SIM_LOG_STATES;
		state = &log->states[log->next];
	}
	log->next = (log->next + 1) % SIM_LOG_STATES;
	if (state->until_ns > log->forgotten_ns)
		log->forgotten_ns = state->until_ns;
	return state;
}

static void read_state(const struct sim_reservation_log *log, const struct json_node *root,
                       struct sim_reservation_state *state)
{
	const struct json_node *reserved = json_tree_find(root, "/spec/NodeRequests/Reserved");
	const struct json_node *requests = json_tree_find(root, "/spec/ReservationRequests");

	state->reserved = slice_equal_text(storage_text(root, "/spec/Status"), "RESERVED");
	for (const struct json_node *id = reserved != NULL ? reserved->first : NULL; id != NULL; id = id->next)
		state->nodes |= bit_of(log, json_tree_text(id));
	for (const struct json_node *request = requests != NULL ? requests->first : NULL;
	     request != NULL && state->request_count < SIM_LOG_REQUESTS; request = request->next) {
		copy_text(state->requests[state->request_count].claim, SIM_LOG_NAME_BYTES,
		          storage_text(request, "/CapacityRequest/Name"));
		state->requests[state->request_count++].size_bytes = storage_integer(request, "/CapacityRequest/Size");
	}
}

static struct sim_reservation_state *find_open(struct sim_reservation_log *log, struct slice name)
{
	for (size_t i = 0; i < SIM_LOG_STATES; i++)
		if (log->states[i].until_ns == UINT64_MAX && slice_equal_text(name, log->states[i].name))
			return &log->states[i];
	return NULL;
}

static bool is_same(const struct sim_reservation_state *a, const struct sim_reservation_state *b)
{
	if (a->reserved != b->reserved || a->nodes != b->nodes || a->request_count != b->request_count)
		return false;
	for (unsigned i = 0; i < a->request_count; i++)
		if (strcmp(a->requests[i].claim, b->requests[i].claim) != 0 ||
		    a->requests[i].size_bytes != b->requests[i].size_bytes)
			return false;
	return true;
}

static void note_state(struct sim_reservation_log *log, const struct stored_object *object)
{
	struct sim_reservation_state state = { .from_ns = simulation_now_ns(log->simulation), .until_ns = UINT64_MAX };
	struct sim_reservation_state *open = find_open(log, object->name);
	struct json_node *root;
	struct arena arena;
	struct error err;

	copy_text(state.name, sizeof state.name, object->name);
	arena_init(&arena, ARENA_BYTES);
	if (storage_parse(object, &arena, &root, &err))
		read_state(log, root, &state);
	arena_destroy(&arena);
	if (open != NULL && is_same(open, &state))
		return;
	if (open != NULL)
		open->until_ns = state.from_ns;
	*new_state(log) = state;
	sim_world_note(simulation_world(log->simulation), "reservation %s: %s, nodes %x, %u requests", state.name,
	               state.reserved ? "RESERVED" : "not reserved", (unsigned)state.nodes, state.request_count);
}

static void on_change(void *context, const struct object_change *change)
{
	struct sim_reservation_log *log = context;
	struct sim_reservation_state *open;

	if (change->after->kind != resource_kind(RESOURCE_RESERVATIONS))
		return;
	if (change->type != OBJECT_DELETED) {
		note_state(log, change->after);
		return;
	}
	open = find_open(log, change->after->name);
	if (open != NULL)
		open->until_ns = simulation_now_ns(log->simulation);
	sim_world_note(simulation_world(log->simulation), "reservation %.*s: deleted", SLICE_ARGS(change->after->name));
}

static void learn_nodes(struct sim_reservation_log *log)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_NODES);
	struct arena arena;

	arena_init(&arena, ARENA_BYTES);
	for (size_t i = 0; i < object_store_count(log->store, kind) && i < WORKLOAD_NODES_MAX; i++) {
		const struct stored_object *object = object_store_at(log->store, kind, i);
		struct sim_log_node *node = &log->nodes[log->node_count++];
		struct json_node *root;
		struct error err;

		copy_text(node->name, sizeof node->name, object->name);
		if (storage_parse(object, &arena, &root, &err))
			copy_text(node->id, sizeof node->id, storage_text(root, "/metadata/uid"));
	}
	arena_destroy(&arena);
}

void sim_reservation_log_start(struct sim_reservation_log *log, struct simulation *simulation,
                               struct object_store *store)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_RESERVATIONS);

	log->simulation = simulation;
	log->store = store;
	learn_nodes(log);
	for (size_t i = 0; i < object_store_count(store, kind); i++)
		note_state(log, object_store_at(store, kind, i));
	log->observer = (struct object_observer){ .on_change = on_change, .context = log };
	object_store_observe(store, &log->observer);
}

void sim_reservation_log_stop(struct sim_reservation_log *log)
{
	object_store_ignore(&log->observer);
}
