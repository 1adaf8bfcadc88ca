/*
 * csi-baremetal's controller and provisioner before a real API server (specification of the extender, section 13): the sandbox's
 * planner decides, this program carries the objects there and back. By polling, one change at a time, each from a fresh look.
 *
 *   kube.reservation_controller KUBECONFIG
 *
 * Prints one line for each change; ends with SIGTERM.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "codec/json_tree.h"
#include "codec/quantity.h"
#include "kube/client.h"
#include "net/loop_epoll.h"
#include "sandbox/reservation_planner.h"

#define GROUP "/apis/csi-baremetal.dell.com/v1"
#define STORAGE_LABEL_GROUP "drive.csi-baremetal.dell.com/storage-group"
#define SELECTED_NODE "volume.kubernetes.io/selected-node"

enum {
	TICK_MS = 100,
	CALL_SECONDS = 10,
	ARENA_BYTES = 64 * 1024 * 1024,
	BODY_BYTES = 8 * 1024 * 1024,
	PATH_BYTES = 512,
	VOLUME_BYTES = 4096,
};

struct controller {
	struct loop *loop;
	struct kube_client *client;
	struct arena arena; /* of one pass */
	struct json_node *capacities, *reservations, *claims;
};

struct outcome {
	bool done, ok;
	int status;
	struct arena *arena;
	struct json_node *root;
	struct error err;
};

/* ---- calls ---- */

static void on_done(void *context, int status, struct slice body, const struct error *err)
{
	struct outcome *outcome = context;
	struct slice text;

	outcome->done = true;
	outcome->status = status;
	outcome->ok = err == NULL;
	if (err != NULL)
		outcome->err = *err;
	else if (!arena_copy(outcome->arena, body, &text) ||
	         !json_tree_parse(text, outcome->arena, &outcome->root, &outcome->err))
		outcome->ok = false;
}

/* One call, awaited. NULL if it was refused, which is told but for a conflict: somebody was faster, and there is a next pass. */
static struct json_node *call(struct controller *controller, const char *method, const char *path, struct slice body)
{
	static const struct kube_handler HANDLER = { .on_done = on_done };
	const struct kube_request request = {
		.method = slice_of(method),
		.path = slice_of(path),
		.content_type = body.length > 0 ? SLICE("application/json") : SLICE(""),
		.body = body,
		.timeout_ns = (uint64_t)CALL_SECONDS * NS_PER_S,
		.max_body_bytes = BODY_BYTES,
		.verb = method,
		.resource = "objects",
	};
	struct outcome outcome = { .arena = &controller->arena };
	struct error err;

	if (kube_client_send(controller->client, &request, &HANDLER, &outcome, &outcome.err) == NULL)
		outcome.done = true;
	while (!outcome.done) {
		if (!loop_turn(controller->loop, &err))
			exit(EXIT_FAILURE);
	}
	if (!outcome.ok && outcome.status != 409 && outcome.status != 404)
		(void)fprintf(stderr, "%s %s: %s\n", method, path, outcome.err.text);
	return outcome.ok ? outcome.root : NULL;
}

static struct json_node *get(struct controller *controller, const char *path)
{
	return call(controller, "GET", path, SLICE(""));
}

static struct json_node *write_object(struct controller *controller, const char *method, const char *path,
                                      const struct json_node *object)
{
	struct json_node *answer = NULL;
	struct buffer text;
	struct error err;

	buffer_init(&text, BODY_BYTES);
	if (json_tree_print(object, &text, &err))
		answer = call(controller, method, path, buffer_slice(&text));
	buffer_destroy(&text);
	return answer;
}

static struct slice text_at(const struct json_node *node, const char *pointer)
{
	return json_tree_text(json_tree_find(node, pointer));
}

static int64_t integer_at(const struct json_node *node, const char *pointer)
{
	int64_t value = 0;

	(void)json_tree_integer(json_tree_find(node, pointer), &value);
	return value;
}

static struct json_node *first_item(const struct json_node *list)
{
	struct json_node *items = json_tree_find(list, "/items");

	return items != NULL ? items->first : NULL;
}

static struct slice map_value(const struct json_node *object, const char *map, const char *key)
{
	return json_tree_text(json_tree_member(json_tree_find(object, map), slice_of(key)));
}

static struct json_node *named(const struct json_node *list, struct slice name)
{
	for (struct json_node *item = first_item(list); item != NULL; item = item->next) {
		if (slice_equal(text_at(item, "/metadata/name"), name))
			return item;
	}
	return NULL;
}

/* ---- reservations: R1 to R6 ---- */

static size_t count_of(const struct json_node *array)
{
	return array != NULL && array->kind == JSON_KIND_ARRAY ? array->count : 0;
}

static void *array(struct controller *controller, size_t count, size_t size)
{
	void *items = arena_allocate_array(&controller->arena, count + 1, size);

	if (items == NULL)
		exit(EXIT_FAILURE);
	return items;
}

static struct slice *read_texts(struct controller *controller, const struct json_node *list)
{
	struct slice *texts = array(controller, count_of(list), sizeof *texts);
	size_t i = 0;

	for (const struct json_node *item = count_of(list) > 0 ? list->first : NULL; item != NULL; item = item->next)
		texts[i++] = json_tree_text(item);
	return texts;
}

static size_t read_requests(struct controller *controller, const struct json_node *reservation,
                            struct planner_request *requests)
{
	const struct json_node *list = json_tree_find(reservation, "/spec/ReservationRequests");
	size_t count = 0;

	for (const struct json_node *item = count_of(list) > 0 ? list->first : NULL; item != NULL; item = item->next) {
		const struct json_node *capacities = json_tree_find(item, "/Reservations");
		struct planner_request *request = &requests[count++];

		*request = (struct planner_request){
			.name = text_at(item, "/CapacityRequest/Name"),
			.group = text_at(item, "/CapacityRequest/StorageGroup"),
			.type = STORAGE_ANY,
			.size_bytes = integer_at(item, "/CapacityRequest/Size"),
			.capacities = read_texts(controller, capacities),
			.capacity_count = count_of(capacities),
		};
		(void)storage_type_parse(text_at(item, "/CapacityRequest/StorageClass"), &request->type);
	}
	return count;
}

static size_t requests_in(const struct json_node *reservation)
{
	return count_of(json_tree_find(reservation, "/spec/ReservationRequests"));
}

static void read_input(struct controller *controller, const struct json_node *reservation, struct planner_input *input)
{
	const struct json_node *nodes = json_tree_find(reservation, "/spec/NodeRequests/Requested");
	struct planner_capacity *capacities =
		array(controller, count_of(json_tree_find(controller->capacities, "/items")), sizeof *capacities);
	struct planner_request *requests = array(controller, requests_in(reservation), sizeof *requests);
	struct planner_request *held;
	size_t room = 0;

	for (const struct json_node *item = first_item(controller->reservations); item != NULL; item = item->next)
		room += requests_in(item);
	held = array(controller, room, sizeof *held);
	*input = (struct planner_input){ .capacities = capacities, .held = held, .requests = requests };
	for (const struct json_node *item = first_item(controller->reservations); item != NULL; item = item->next) {
		if (slice_equal_text(text_at(item, "/spec/Status"), "RESERVED"))
			input->held_count += read_requests(controller, item, &held[input->held_count]);
	}
	for (const struct json_node *item = first_item(controller->capacities); item != NULL; item = item->next) {
		struct planner_capacity *capacity = &capacities[input->capacity_count];

		*capacity = (struct planner_capacity){
			.name = text_at(item, "/metadata/name"),
			.node = text_at(item, "/spec/NodeId"),
			.group = map_value(item, "/metadata/labels", STORAGE_LABEL_GROUP),
			.size_bytes = integer_at(item, "/spec/Size"),
		};
		if (storage_type_parse(text_at(item, "/spec/storageClass"), &capacity->type))
			input->capacity_count++;
	}
	input->request_count = read_requests(controller, reservation, requests);
	input->nodes = read_texts(controller, nodes);
	input->node_count = count_of(nodes);
}

static void fill_answer(struct controller *controller, struct json_node *reservation, const struct planner_input *input,
                        const struct planner_plan *plan)
{
	struct arena *arena = &controller->arena;
	struct json_node *spec = json_tree_find(reservation, "/spec"), *nodes = json_tree_array(arena);
	struct json_node *requests = json_tree_find(spec, "/ReservationRequests");
	size_t i = 0;

	(void)json_tree_set_text(arena, spec, SLICE("Status"),
	                         plan->node_count > 0 ? SLICE("RESERVED") : SLICE("REJECTED"));
	if (plan->node_count == 0)
		return;
	for (size_t j = 0; j < plan->node_count; j++)
		(void)json_tree_append(nodes, json_tree_string(arena, input->nodes[plan->nodes[j]]));
	(void)json_tree_set(json_tree_ensure(arena, spec, SLICE("NodeRequests")), SLICE("Reserved"), nodes);
	for (struct json_node *request = requests->first; request != NULL; request = request->next, i++) {
		struct json_node *names = json_tree_array(arena);

		for (size_t j = 0; j < plan->node_count; j++) {
			size_t chosen = plan->capacities[i * plan->node_count + j];

			(void)json_tree_append(names, json_tree_string(arena, input->capacities[chosen].name));
		}
		(void)json_tree_set(request, SLICE("Reservations"), names);
	}
}

static bool answer_reservation(struct controller *controller, struct json_node *reservation)
{
	struct slice name = text_at(reservation, "/metadata/name");
	struct planner_input input;
	struct planner_plan plan;
	char path[PATH_BYTES];
	struct error err;

	read_input(controller, reservation, &input);
	if (reservation_must_wait(&input) || !reservation_plan(&input, &controller->arena, &plan, &err))
		return false;
	fill_answer(controller, reservation, &input, &plan);
	(void)snprintf(path, sizeof path, GROUP "/availablecapacityreservations/%.*s", SLICE_ARGS(name));
	if (write_object(controller, "PUT", path, reservation) == NULL)
		return false;
	(void)printf("reservation %.*s: %zu nodes\n", SLICE_ARGS(name), plan.node_count);
	return true;
}

/* ---- volumes: R7 and R8 ---- */

/* The reservation with a request for the claim, and the request's place in it. */
static struct json_node *reservation_for(struct controller *controller, struct slice name_space, struct slice claim,
                                         size_t *ret_place)
{
	for (struct json_node *item = first_item(controller->reservations); item != NULL; item = item->next) {
		const struct json_node *list = json_tree_find(item, "/spec/ReservationRequests");
		size_t place = 0;

		if (!slice_equal_text(text_at(item, "/spec/Status"), "RESERVED") ||
		    !slice_equal(text_at(item, "/spec/Namespace"), name_space))
			continue;
		for (const struct json_node *request = count_of(list) > 0 ? list->first : NULL; request != NULL;
		     request = request->next, place++) {
			if (slice_equal(text_at(request, "/CapacityRequest/Name"), claim)) {
				*ret_place = place;
				return item;
			}
		}
	}
	return NULL;
}

static struct json_node *capacity_for(struct controller *controller, const struct json_node *request,
                                      struct slice node_id)
{
	const struct json_node *names = json_tree_find(request, "/Reservations");

	for (const struct json_node *name = count_of(names) > 0 ? names->first : NULL; name != NULL;
	     name = name->next) {
		struct json_node *capacity = named(controller->capacities, json_tree_text(name));

		if (capacity != NULL && slice_equal(text_at(capacity, "/spec/NodeId"), node_id))
			return capacity;
	}
	return NULL;
}

/* A capacity of drives goes whole, one of a volume group by the size asked for. */
static bool use_capacity(struct controller *controller, struct json_node *capacity, const struct json_node *request)
{
	struct arena *arena = &controller->arena;
	struct json_node *spec = json_tree_find(capacity, "/spec");
	int64_t need = integer_at(request, "/CapacityRequest/Size"), left = 0;
	enum storage_type type;
	char path[PATH_BYTES];

	if (storage_type_parse(text_at(request, "/CapacityRequest/StorageClass"), &type) &&
	    storage_type_is_group(type)) {
		need = (need + RESERVATION_EXTENT_BYTES - 1) / RESERVATION_EXTENT_BYTES * RESERVATION_EXTENT_BYTES;
		left = integer_at(spec, "/Size") - need;
		(void)json_tree_set_text(arena, spec, SLICE("storageClass"), slice_of(storage_type_name(type)));
	}
	(void)json_tree_set(spec, SLICE("Size"), json_tree_number(arena, left));
	(void)snprintf(path, sizeof path, GROUP "/availablecapacities/%.*s",
	               SLICE_ARGS(text_at(capacity, "/metadata/name")));
	return write_object(controller, "PUT", path, capacity) != NULL;
}

static bool fulfil(struct controller *controller, struct json_node *reservation, size_t place)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof path, GROUP "/availablecapacityreservations/%.*s",
	               SLICE_ARGS(text_at(reservation, "/metadata/name")));
	if (requests_in(reservation) == 1)
		return call(controller, "DELETE", path, SLICE("")) != NULL;
	(void)json_tree_remove_item(json_tree_find(reservation, "/spec/ReservationRequests"), place);
	return write_object(controller, "PUT", path, reservation) != NULL;
}

static bool post_text(struct controller *controller, const char *path, const char *text)
{
	return call(controller, "POST", path, slice_of(text)) != NULL;
}

static bool bind_claim(struct controller *controller, struct json_node *claim, struct slice node)
{
	struct arena *arena = &controller->arena;
	struct slice name_space = text_at(claim, "/metadata/namespace"), name = text_at(claim, "/metadata/name");
	struct slice uid = text_at(claim, "/metadata/uid");
	char text[VOLUME_BYTES], path[PATH_BYTES], volume[64];
	struct json_node *status;

	(void)snprintf(volume, sizeof volume, "pvc-%.*s", SLICE_ARGS(uid));
	(void)snprintf(
		text, sizeof text,
		"{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"capacity\":{"
		"\"storage\":\"%.*s\"},\"accessModes\":[\"ReadWriteOnce\"],\"claimRef\":{\"kind\":\"PersistentVolumeClaim\","
		"\"namespace\":\"%.*s\",\"name\":\"%.*s\",\"uid\":\"%.*s\"},\"storageClassName\":\"%.*s\",\"csi\":{\"driver\":"
		"\"csi-baremetal\",\"volumeHandle\":\"%s\"},\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{"
		"\"matchExpressions\":[{\"key\":\"kubernetes.io/hostname\",\"operator\":\"In\",\"values\":[\"%.*s\"]}]}]}}}}",
		volume, SLICE_ARGS(text_at(claim, "/spec/resources/requests/storage")), SLICE_ARGS(name_space),
		SLICE_ARGS(name), SLICE_ARGS(uid), SLICE_ARGS(text_at(claim, "/spec/storageClassName")), volume,
		SLICE_ARGS(node));
	if (!post_text(controller, "/api/v1/persistentvolumes", text))
		return false;
	(void)json_tree_set_text(arena, json_tree_find(claim, "/spec"), SLICE("volumeName"), slice_of(volume));
	(void)json_tree_set_text(arena, json_tree_find(claim, "/metadata/annotations"),
	                         SLICE("pv.kubernetes.io/bind-completed"), SLICE("yes"));
	(void)snprintf(path, sizeof path, "/api/v1/namespaces/%.*s/persistentvolumeclaims/%.*s", SLICE_ARGS(name_space),
	               SLICE_ARGS(name));
	claim = write_object(controller, "PUT", path, claim);
	if (claim == NULL)
		return false;
	status = json_tree_ensure(arena, claim, SLICE("status"));
	(void)json_tree_set_text(arena, status, SLICE("phase"), SLICE("Bound"));
	(void)snprintf(path, sizeof path, "/api/v1/namespaces/%.*s/persistentvolumeclaims/%.*s/status",
	               SLICE_ARGS(name_space), SLICE_ARGS(name));
	return write_object(controller, "PUT", path, claim) != NULL;
}

/* Takes the node from the claim again, so that the scheduler begins anew. */
static bool refuse_claim(struct controller *controller, struct json_node *claim, const char *reason)
{
	struct slice name = text_at(claim, "/metadata/name");
	char path[PATH_BYTES];

	(void)printf("claim %.*s: refused, %s\n", SLICE_ARGS(name), reason);
	(void)json_tree_remove(json_tree_find(claim, "/metadata/annotations"), SLICE(SELECTED_NODE));
	(void)snprintf(path, sizeof path, "/api/v1/namespaces/%.*s/persistentvolumeclaims/%.*s",
	               SLICE_ARGS(text_at(claim, "/metadata/namespace")), SLICE_ARGS(name));
	return write_object(controller, "PUT", path, claim) != NULL;
}

static bool provision(struct controller *controller, struct json_node *claim)
{
	struct slice name_space = text_at(claim, "/metadata/namespace"), name = text_at(claim, "/metadata/name");
	struct slice node = map_value(claim, "/metadata/annotations", SELECTED_NODE);
	char path[PATH_BYTES], text[VOLUME_BYTES];
	struct json_node *reservation, *request, *capacity, *found;
	struct slice node_id, uid = text_at(claim, "/metadata/uid");
	size_t place;

	(void)snprintf(path, sizeof path, "/api/v1/nodes/%.*s", SLICE_ARGS(node));
	found = get(controller, path);
	reservation = reservation_for(controller, name_space, name, &place);
	if (found == NULL || reservation == NULL)
		return refuse_claim(controller, claim, "there is no reservation");
	node_id = text_at(found, "/metadata/uid");
	request = json_tree_item(json_tree_find(reservation, "/spec/ReservationRequests"), place);
	capacity = capacity_for(controller, request, node_id);
	if (capacity == NULL)
		return refuse_claim(controller, claim, "nothing is reserved on its node");
	(void)snprintf(path, sizeof path, GROUP "/namespaces/%.*s/volumes", SLICE_ARGS(name_space));
	(void)snprintf(
		text, sizeof text,
		"{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"Volume\",\"metadata\":{\"name\":\"pvc-%.*s\"},"
		"\"spec\":{\"Id\":\"pvc-%.*s\",\"NodeId\":\"%.*s\",\"Size\":%" PRId64 ",\"CSIStatus\":\"CREATED\"}}",
		SLICE_ARGS(uid), SLICE_ARGS(uid), SLICE_ARGS(node_id), integer_at(request, "/CapacityRequest/Size"));
	if (!post_text(controller, path, text) || !use_capacity(controller, capacity, request) ||
	    !fulfil(controller, reservation, place) || !bind_claim(controller, claim, node))
		return false;
	(void)printf("claim %.*s: on %.*s\n", SLICE_ARGS(name), SLICE_ARGS(node));
	return true;
}

/* ---- passes ---- */

/* Up to the first change; true if there was one. */
static bool pass(struct controller *controller)
{
	controller->capacities = get(controller, GROUP "/availablecapacities");
	controller->reservations = get(controller, GROUP "/availablecapacityreservations");
	controller->claims = get(controller, "/api/v1/persistentvolumeclaims");
	for (struct json_node *item = first_item(controller->claims); item != NULL; item = item->next) {
		if (map_value(item, "/metadata/annotations", SELECTED_NODE).length > 0 &&
		    text_at(item, "/spec/volumeName").length == 0 && provision(controller, item))
			return true;
	}
	for (struct json_node *item = first_item(controller->reservations); item != NULL; item = item->next) {
		if (slice_equal_text(text_at(item, "/spec/Status"), "REQUESTED") &&
		    answer_reservation(controller, item))
			return true;
	}
	return false;
}

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

int main(int argc, char **argv)
{
	static const struct timespec TICK = { .tv_nsec = (long)TICK_MS * NS_PER_MS };
	struct controller controller = { .loop = NULL };
	struct error err;

	if (argc != 2)
		return EXIT_FAILURE;
	(void)signal(SIGTERM, on_signal);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	controller.loop = loop_epoll_create(&err);
	if (controller.loop != NULL)
		controller.client =
			kube_client_create(controller.loop,
		                           &(const struct kube_client_options){
						   .kubeconfig = argv[1], .user_agent = "reservation-controller" },
		                           &err);
	if (controller.client == NULL) {
		(void)fprintf(stderr, "reservation_controller: %s\n", err.text);
		return EXIT_FAILURE;
	}
	while (!stopping) {
		bool changed;

		arena_init(&controller.arena, ARENA_BYTES);
		changed = pass(&controller);
		arena_destroy(&controller.arena);
		if (!changed)
			(void)nanosleep(&TICK, NULL);
	}
	kube_client_destroy(controller.client);
	loop_destroy(controller.loop);
	return EXIT_SUCCESS;
}
