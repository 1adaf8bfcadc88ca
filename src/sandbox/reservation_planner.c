/*
 * Capacities are ordered by size and name once; a node's candidates for a request are then found in that order, class by class.
 * What is occupied is kept per capacity, beside the list.
 */
#include "sandbox/reservation_planner.h"

#include <string.h>

struct occupation {
	bool occupied;
	enum storage_type type; /* of the first request */
	int64_t bytes;
};

struct planner {
	const struct planner_input *input;
	size_t *order;               /* of capacities */
	size_t *request_order;       /* in which requests are placed */
	struct occupation *held;     /* of each capacity, by other reservations */
	struct occupation *occupied; /* the same with what is placed now */
	size_t *chosen;              /* capacity of each request, on the node at hand */
};

bool reservation_must_wait(const struct planner_input *input)
{
	for (size_t i = 0; i < input->request_count; i++) {
		if (!storage_type_is_group(input->requests[i].type))
			continue;
		for (size_t j = 0; j < input->held_count; j++) {
			if (input->held[j].type == input->requests[i].type)
				return true;
		}
	}
	return false;
}

/* ---- what is occupied ---- */

static bool find_capacity(const struct planner_input *input, struct slice name, size_t *ret_index)
{
	for (size_t i = 0; i < input->capacity_count; i++) {
		if (slice_equal(input->capacities[i].name, name)) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

/*
 * The quirk of R4: capacities that are new with a request share one counter, and a request adds its size to the counter of each capacity
 * that it lists. counters[i]: which counter capacity i has.
 */
static void count_held(const struct planner *planner, size_t *counters, int64_t *sums)
{
	const struct planner_input *input = planner->input;

	for (size_t i = 0; i < input->held_count; i++) {
		const struct planner_request *request = &input->held[i];

		for (size_t j = 0; j < request->capacity_count; j++) {
			size_t index;

			if (!find_capacity(input, request->capacities[j], &index))
				continue;
			if (planner->held[index].occupied && counters[index] != i) {
				sums[counters[index]] += request->size_bytes;
				continue;
			}
			planner->held[index] = (struct occupation){ .occupied = true, .type = request->type };
			counters[index] = i;
			sums[i] = request->size_bytes;
		}
	}
	for (size_t i = 0; i < input->capacity_count; i++) {
		if (planner->held[i].occupied)
			planner->held[i].bytes = sums[counters[i]];
	}
}

/* ---- orders ---- */

static int compare_capacities(const struct planner_capacity *a, const struct planner_capacity *b)
{
	if (a->size_bytes != b->size_bytes)
		return a->size_bytes < b->size_bytes ? -1 : 1;
	return slice_compare(a->name, b->name);
}

/* Logical volumes first, each kind by size. */
static int compare_requests(const struct planner_request *a, const struct planner_request *b)
{
	bool group_a = storage_type_is_group(a->type), group_b = storage_type_is_group(b->type);

	if (group_a != group_b)
		return group_a ? -1 : 1;
	return a->size_bytes < b->size_bytes ? -1 : a->size_bytes > b->size_bytes;
}

/* By insertion, so that equals keep their order. */
static void order_capacities(const struct planner *planner)
{
	const struct planner_input *input = planner->input;

	for (size_t i = 0; i < input->capacity_count; i++) {
		size_t j = i;

		for (;
		     j > 0 && compare_capacities(&input->capacities[i], &input->capacities[planner->order[j - 1]]) < 0;
		     j--)
			planner->order[j] = planner->order[j - 1];
		planner->order[j] = i;
	}
}

static void order_requests(const struct planner *planner)
{
	const struct planner_input *input = planner->input;

	for (size_t i = 0; i < input->request_count; i++) {
		size_t j = i;

		for (; j > 0 &&
		       compare_requests(&input->requests[i], &input->requests[planner->request_order[j - 1]]) < 0;
		     j--)
			planner->request_order[j] = planner->request_order[j - 1];
		planner->request_order[j] = i;
	}
}

/* ---- placing ---- */

static int64_t whole_extents(int64_t bytes)
{
	int64_t rest = bytes % RESERVATION_EXTENT_BYTES;

	return rest == 0 ? bytes : bytes - rest + RESERVATION_EXTENT_BYTES;
}

/* R5. Occupies the capacity if the request fits. */
static bool take(const struct planner *planner, size_t capacity_index, const struct planner_request *request)
{
	const struct planner_capacity *capacity = &planner->input->capacities[capacity_index];
	struct occupation *occupation = &planner->occupied[capacity_index];
	bool group = storage_type_is_group(request->type);
	int64_t need = group ? whole_extents(request->size_bytes) : request->size_bytes;

	if (need > capacity->size_bytes || !slice_equal(capacity->group, request->group))
		return false;
	if (!occupation->occupied) {
		*occupation =
			(struct occupation){ .occupied = true, .type = request->type, .bytes = request->size_bytes };
		return true;
	}
	if (!group || !storage_type_is_group(occupation->type) || occupation->bytes + need > capacity->size_bytes)
		return false;
	occupation->bytes += need;
	return true;
}

static bool place_request(const struct planner *planner, struct slice node, size_t request_index)
{
	const struct planner_input *input = planner->input;
	const struct planner_request *request = &input->requests[request_index];
	enum storage_type choices[STORAGE_CHOICES_MAX];
	size_t choice_count = storage_type_choices(request->type, choices);

	for (size_t i = 0; i < choice_count; i++) {
		for (size_t j = 0; j < input->capacity_count; j++) {
			size_t index = planner->order[j];
			const struct planner_capacity *capacity = &input->capacities[index];

			if (capacity->tainted || capacity->type != choices[i] || !slice_equal(capacity->node, node) ||
			    !take(planner, index, request))
				continue;
			planner->chosen[request_index] = index;
			return true;
		}
	}
	return false;
}

static bool place_all(const struct planner *planner, struct slice node)
{
	if (planner->input->capacity_count > 0)
		memcpy(planner->occupied, planner->held, planner->input->capacity_count * sizeof *planner->occupied);
	for (size_t i = 0; i < planner->input->request_count; i++) {
		if (!place_request(planner, node, planner->request_order[i]))
			return false;
	}
	return true;
}

/* ---- the whole ---- */

bool reservation_plan(const struct planner_input *input, struct arena *arena, struct planner_plan *ret_plan,
                      struct error *err)
{
	size_t *counters = arena_allocate_array(arena, input->capacity_count + 1, sizeof *counters);
	int64_t *sums = arena_allocate_array(arena, input->held_count + 1, sizeof *sums);
	size_t *chosen = arena_allocate_array(arena, input->node_count * input->request_count + 1, sizeof *chosen);
	struct planner_plan plan = {
		.nodes = arena_allocate_array(arena, input->node_count + 1, sizeof *plan.nodes),
		.capacities = arena_allocate_array(arena, input->node_count * input->request_count + 1, sizeof(size_t)),
	};
	struct planner planner = {
		.input = input,
		.order = arena_allocate_array(arena, input->capacity_count + 1, sizeof *planner.order),
		.request_order = arena_allocate_array(arena, input->request_count + 1, sizeof *planner.request_order),
		.held = arena_allocate_array(arena, input->capacity_count + 1, sizeof *planner.held),
		.occupied = arena_allocate_array(arena, input->capacity_count + 1, sizeof *planner.occupied),
	};

	if (counters == NULL || sums == NULL || chosen == NULL || plan.nodes == NULL || plan.capacities == NULL ||
	    planner.order == NULL || planner.request_order == NULL || planner.held == NULL || planner.occupied == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory to plan a reservation");
	count_held(&planner, counters, sums);
	order_capacities(&planner);
	order_requests(&planner);
	for (size_t i = 0; i < input->node_count; i++) {
		planner.chosen = &chosen[plan.node_count * input->request_count];
		if (place_all(&planner, input->nodes[i]))
			plan.nodes[plan.node_count++] = i;
	}
	for (size_t i = 0; i < input->request_count; i++) {
		for (size_t j = 0; j < plan.node_count; j++)
			plan.capacities[i * plan.node_count + j] = chosen[j * input->request_count + i];
	}
	*ret_plan = plan;
	return true;
}
