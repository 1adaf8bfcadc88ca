/*
 * Observers may not write, so a change only puts the reservation's name in a queue, with the time at which it is due. One timer
 * follows the earliest.
 */
#include "sandbox/reservation_controller.h"

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/storage_objects.h"

struct waiting {
	struct waiting *next;
	char *name;
	uint64_t due_ns;
	unsigned attempts;
};

struct reservation_controller {
	struct loop *loop;
	struct object_store *store;
	double speed;
	bool parallel;
	struct object_observer observer;
	struct waiting *queue; /* in the order of their coming */
	struct loop_timer timer, sweep_timer;
	struct reservation_counters counters;
};

enum outcome { OUTCOME_DONE, OUTCOME_WAIT };

static uint64_t scaled_ns(const struct reservation_controller *controller, unsigned ms)
{
	return (uint64_t)(ms / controller->speed * NS_PER_MS);
}

/* ---- planning ---- */

static struct json_node *texts_node(struct arena *arena, const struct slice *texts, const size_t *chosen, size_t count)
{
	struct json_node *array = json_tree_array(arena);

	for (size_t i = 0; i < count; i++) {
		if (!json_tree_append(array, json_tree_string(arena, texts[chosen[i]])))
			return NULL;
	}
	return array;
}

static struct json_node *capacities_node(struct arena *arena, const struct planner_input *input, const size_t *chosen,
                                         size_t count)
{
	struct json_node *array = json_tree_array(arena);

	for (size_t i = 0; i < count; i++) {
		if (!json_tree_append(array, json_tree_string(arena, input->capacities[chosen[i]].name)))
			return NULL;
	}
	return array;
}

/* R6. */
static bool fill_answer(struct json_node *root, struct arena *arena, const struct planner_input *input,
                        const struct planner_plan *plan)
{
	struct json_node *spec = json_tree_find(root, "/spec");
	struct json_node *requests = json_tree_find(spec, "/ReservationRequests");
	size_t i = 0;

	if (plan->node_count == 0)
		return json_tree_set_text(arena, spec, SLICE("Status"), SLICE("REJECTED"));
	if (!json_tree_set(json_tree_ensure(arena, spec, SLICE("NodeRequests")), SLICE("Reserved"),
	                   texts_node(arena, input->nodes, plan->nodes, plan->node_count)) ||
	    !json_tree_set_text(arena, spec, SLICE("Status"), SLICE("RESERVED")))
		return false;
	for (struct json_node *request = requests != NULL ? requests->first : NULL; request != NULL;
	     request = request->next) {
		const size_t *chosen = &plan->capacities[i++ * plan->node_count];

		if (!json_tree_set(request, SLICE("Reservations"),
		                   capacities_node(arena, input, chosen, plan->node_count)))
			return false;
	}
	return true;
}

static bool write_answer(struct reservation_controller *controller, struct stored_object *object,
                         const struct planner_input *input, const struct planner_plan *plan, struct error *err)
{
	struct object_edit edit;
	bool ok;

	if (!object_edit_begin(&edit, object, err))
		return false;
	ok = fill_answer(edit.root, &edit.arena, input, plan)
	             ? object_edit_commit(&edit, controller->store, err)
	             : error_set(err, ERROR_NO_MEMORY, "no memory for a reservation");
	object_edit_end(&edit);
	if (ok && plan->node_count > 0)
		controller->counters.reserved++;
	else if (ok)
		controller->counters.rejected++;
	return ok;
}

static bool reconcile(struct reservation_controller *controller, struct stored_object *object, struct arena *arena,
                      enum outcome *ret_outcome, struct error *err)
{
	struct storage_reservation reservation;
	struct planner_capacity *capacities;
	struct planner_request *held;
	struct planner_input input = { .capacities = NULL };
	struct planner_plan plan;

	*ret_outcome = OUTCOME_DONE;
	if (!storage_read_reservation(object, arena, &reservation, err))
		return false;
	if (!slice_equal_text(reservation.status, "REQUESTED"))
		return true;
	if (!storage_read_capacities(controller->store, arena, &capacities, &input.capacity_count, err) ||
	    !storage_read_held(controller->store, object->name, arena, &held, &input.held_count, err))
		return false;
	input.capacities = capacities;
	input.held = held;
	input.requests = reservation.requests;
	input.request_count = reservation.request_count;
	input.nodes = reservation.requested;
	input.node_count = reservation.requested_count;
	if (!controller->parallel && reservation_must_wait(&input)) {
		*ret_outcome = OUTCOME_WAIT;
		return true;
	}
	return reservation_plan(&input, arena, &plan, err) && write_answer(controller, object, &input, &plan, err);
}

/* ---- the queue ---- */

static void on_due(void *context);

static void follow_earliest(struct reservation_controller *controller)
{
	uint64_t now_ns = loop_now_ns(controller->loop), due_ns = UINT64_MAX;

	for (const struct waiting *waiting = controller->queue; waiting != NULL; waiting = waiting->next)
		due_ns = waiting->due_ns < due_ns ? waiting->due_ns : due_ns;
	loop_timer_stop(controller->loop, &controller->timer);
	if (due_ns != UINT64_MAX)
		loop_timer_start(controller->loop, &controller->timer, due_ns > now_ns ? due_ns - now_ns : 0, on_due,
		                 controller);
}

static void free_waiting(struct waiting *waiting)
{
	memory_release(waiting->name);
	memory_release(waiting);
}

/* What fails for want of memory is tried again, as one that waits is. */
static void work_on(struct reservation_controller *controller, struct waiting **place)
{
	struct waiting *waiting = *place;
	struct stored_object *object = object_store_find(controller->store, resource_kind(RESOURCE_RESERVATIONS),
	                                                 slice_from(NULL, 0), slice_of(waiting->name));
	enum outcome outcome = OUTCOME_DONE;
	struct arena arena;
	struct error err;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	if (object != NULL && !reconcile(controller, object, &arena, &outcome, &err))
		outcome = OUTCOME_WAIT;
	arena_destroy(&arena);
	if (outcome == OUTCOME_DONE) {
		*place = waiting->next;
		free_waiting(waiting);
		return;
	}
	controller->counters.waits++;
	waiting->attempts++;
	waiting->due_ns =
		loop_now_ns(controller->loop) + scaled_ns(controller, waiting->attempts <= RESERVATION_FAST_ATTEMPTS
	                                                                      ? RESERVATION_FAST_DELAY_MS
	                                                                      : RESERVATION_SLOW_DELAY_MS);
}

static void on_due(void *context)
{
	struct reservation_controller *controller = context;
	uint64_t now_ns = loop_now_ns(controller->loop);
	struct waiting **place = &controller->queue;

	while (*place != NULL && (*place)->due_ns > now_ns)
		place = &(*place)->next;
	if (*place != NULL)
		work_on(controller, place);
	follow_earliest(controller);
}

/* Without memory it is not noticed: the extender will ask again. */
static void enqueue(struct reservation_controller *controller, struct slice name)
{
	struct waiting **place = &controller->queue;
	struct waiting *waiting;

	while (*place != NULL && !slice_equal_text(name, (*place)->name))
		place = &(*place)->next;
	if (*place != NULL)
		return;
	waiting = memory_allocate(sizeof *waiting);
	if (waiting == NULL)
		return;
	waiting->name = memory_copy_text(name.data, name.length);
	if (waiting->name == NULL) {
		memory_release(waiting);
		return;
	}
	waiting->due_ns = loop_now_ns(controller->loop) + scaled_ns(controller, RESERVATION_REACTION_MS);
	*place = waiting;
	follow_earliest(controller);
}

/* Its status is looked at when it is due. */
static void on_change(void *context, const struct object_change *change)
{
	if (change->after->kind == resource_kind(RESOURCE_RESERVATIONS) && change->type != OBJECT_DELETED)
		enqueue(context, change->after->name);
}

/* Those that came before the controller did. */
static void enqueue_present(struct reservation_controller *controller)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_RESERVATIONS);

	for (size_t i = 0; i < object_store_count(controller->store, kind); i++)
		enqueue(controller, object_store_at(controller->store, kind, i)->name);
}

/* ---- the operator's sweep ---- */

/* Whether the reservation's pod is gone, or runs (D6). */
static bool is_done(const struct reservation_controller *controller, const struct storage_reservation *reservation,
                    struct arena *arena)
{
	struct slice name = reservation->name;
	const struct stored_object *pod;
	struct json_node *root;
	struct error err;

	if (!slice_starts_with(name, reservation->name_space) || name.length <= reservation->name_space.length)
		return false;
	name = slice_from_offset(name, reservation->name_space.length + 1);
	pod = object_store_find(controller->store, resource_kind(RESOURCE_PODS), reservation->name_space, name);
	return pod == NULL || (storage_parse(pod, arena, &root, &err) &&
	                       slice_equal_text(storage_text(root, "/status/phase"), "Running"));
}

static void sweep(void *context)
{
	struct reservation_controller *controller = context;
	const struct resource_kind *kind = resource_kind(RESOURCE_RESERVATIONS);
	struct arena arena;
	size_t i = 0;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	while (i < object_store_count(controller->store, kind)) {
		struct stored_object *object = object_store_at(controller->store, kind, i);
		struct storage_reservation reservation;
		struct error err;
		bool gone = false;

		if (storage_read_reservation(object, &arena, &reservation, &err) &&
		    is_done(controller, &reservation, &arena) &&
		    object_store_delete(controller->store, object, &object, &gone, &err) && gone)
			controller->counters.swept++;
		else
			i++;
	}
	arena_destroy(&arena);
	loop_timer_start(controller->loop, &controller->sweep_timer, scaled_ns(controller, RESERVATION_SWEEP_MS), sweep,
	                 controller);
}

/* ---- life ---- */

struct reservation_controller *reservation_controller_create(struct loop *loop,
                                                             const struct reservation_controller_options *options,
                                                             struct error *err)
{
	struct reservation_controller *controller = memory_allocate(sizeof *controller);

	if (controller == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a reservation controller");
		return NULL;
	}
	controller->loop = loop;
	controller->store = options->store;
	controller->speed = options->speed;
	controller->parallel = options->parallel;
	controller->observer = (struct object_observer){ .on_change = on_change, .context = controller };
	object_store_observe(controller->store, &controller->observer);
	loop_timer_start(loop, &controller->sweep_timer, scaled_ns(controller, RESERVATION_SWEEP_MS), sweep,
	                 controller);
	enqueue_present(controller);
	return controller;
}

void reservation_controller_destroy(struct reservation_controller *controller)
{
	if (controller == NULL)
		return;
	object_store_ignore(&controller->observer);
	loop_timer_stop(controller->loop, &controller->timer);
	loop_timer_stop(controller->loop, &controller->sweep_timer);
	while (controller->queue != NULL) {
		struct waiting *waiting = controller->queue;

		controller->queue = waiting->next;
		free_waiting(waiting);
	}
	memory_release(controller);
}

struct reservation_counters reservation_controller_counters(const struct reservation_controller *controller)
{
	return controller->counters;
}
