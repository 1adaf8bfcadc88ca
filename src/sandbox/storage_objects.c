#include "sandbox/storage_objects.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buffer.h"
#include "codec/quantity.h"

enum { OBJECT_BYTES_MAX = 64 * 1024 };

/* ---- reading ---- */

bool storage_parse(const struct stored_object *object, struct arena *arena, struct json_node **ret_root,
                   struct error *err)
{
	return json_tree_parse(object->text, arena, ret_root, err);
}

int64_t storage_integer(const struct json_node *node, const char *pointer)
{
	int64_t value = 0;

	(void)json_tree_integer(json_tree_find(node, pointer), &value);
	return value;
}

struct slice storage_text(const struct json_node *node, const char *pointer)
{
	return json_tree_text(json_tree_find(node, pointer));
}

struct slice storage_label(const struct json_node *root, const char *map, const char *key)
{
	return json_tree_text(json_tree_member(
		json_tree_member(json_tree_member(root, SLICE("metadata")), slice_of(map)), slice_of(key)));
}

static bool no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory for storage objects");
}

static bool read_capacity(const struct json_node *root, struct planner_capacity *capacity)
{
	*capacity = (struct planner_capacity){
		.name = storage_text(root, "/metadata/name"),
		.node = storage_text(root, "/spec/NodeId"),
		.group = storage_label(root, "labels", STORAGE_LABEL_GROUP),
		.size_bytes = storage_integer(root, "/spec/Size"),
		.tainted = slice_equal_text(storage_label(root, "labels", "drive.csi-baremetal.dell.com/taint"),
		                            "NoSchedule"),
	};
	return storage_type_parse(storage_text(root, "/spec/storageClass"), &capacity->type);
}

bool storage_read_capacities(const struct object_store *store, struct arena *arena,
                             struct planner_capacity **ret_capacities, size_t *ret_count, struct error *err)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_CAPACITIES);
	size_t all = object_store_count(store, kind), count = 0;
	struct planner_capacity *capacities = arena_allocate_array(arena, all + 1, sizeof *capacities);

	if (capacities == NULL)
		return no_memory(err);
	for (size_t i = 0; i < all; i++) {
		struct json_node *root;

		if (!storage_parse(object_store_at(store, kind, i), arena, &root, err))
			return false;
		if (read_capacity(root, &capacities[count]))
			count++;
	}
	*ret_capacities = capacities;
	*ret_count = count;
	return true;
}

static bool read_texts(const struct json_node *array, struct arena *arena, struct slice **ret_texts, size_t *ret_count,
                       struct error *err)
{
	size_t count = array != NULL && array->kind == JSON_KIND_ARRAY ? array->count : 0, i = 0;
	struct slice *texts = arena_allocate_array(arena, count + 1, sizeof *texts);

	if (texts == NULL)
		return no_memory(err);
	for (const struct json_node *item = count > 0 ? array->first : NULL; item != NULL; item = item->next)
		texts[i++] = json_tree_text(item);
	*ret_texts = texts;
	*ret_count = count;
	return true;
}

static bool read_request(const struct json_node *node, struct arena *arena, struct planner_request *request,
                         struct error *err)
{
	*request = (struct planner_request){
		.name = storage_text(node, "/CapacityRequest/Name"),
		.group = storage_text(node, "/CapacityRequest/StorageGroup"),
		.type = STORAGE_ANY,
		.size_bytes = storage_integer(node, "/CapacityRequest/Size"),
	};
	(void)storage_type_parse(storage_text(node, "/CapacityRequest/StorageClass"), &request->type);
	return read_texts(json_tree_find(node, "/Reservations"), arena, &request->capacities, &request->capacity_count,
	                  err);
}

bool storage_read_reservation(const struct stored_object *object, struct arena *arena, struct storage_reservation *ret,
                              struct error *err)
{
	struct storage_reservation reservation = { .name = object->name };
	const struct json_node *requests;
	struct json_node *root;
	size_t i = 0;

	if (!storage_parse(object, arena, &root, err))
		return false;
	reservation.name_space = storage_text(root, "/spec/Namespace");
	reservation.status = storage_text(root, "/spec/Status");
	if (!read_texts(json_tree_find(root, "/spec/NodeRequests/Requested"), arena, &reservation.requested,
	                &reservation.requested_count, err))
		return false;
	requests = json_tree_find(root, "/spec/ReservationRequests");
	reservation.request_count = requests != NULL && requests->kind == JSON_KIND_ARRAY ? requests->count : 0;
	reservation.requests = arena_allocate_array(arena, reservation.request_count + 1, sizeof *reservation.requests);
	if (reservation.requests == NULL)
		return no_memory(err);
	for (const struct json_node *item = reservation.request_count > 0 ? requests->first : NULL; item != NULL;
	     item = item->next) {
		if (!read_request(item, arena, &reservation.requests[i++], err))
			return false;
	}
	*ret = reservation;
	return true;
}

bool storage_read_held(const struct object_store *store, struct slice except, struct arena *arena,
                       struct planner_request **ret_requests, size_t *ret_count, struct error *err)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_RESERVATIONS);
	size_t all = object_store_count(store, kind), count = 0, next = 0;
	struct storage_reservation *reservations = arena_allocate_array(arena, all + 1, sizeof *reservations);
	struct planner_request *requests;

	if (reservations == NULL)
		return no_memory(err);
	for (size_t i = 0; i < all; i++) {
		struct storage_reservation *reservation = &reservations[i];

		if (!storage_read_reservation(object_store_at(store, kind, i), arena, reservation, err))
			return false;
		if (!slice_equal_text(reservation->status, "RESERVED") || slice_equal(reservation->name, except))
			reservation->request_count = 0;
		count += reservation->request_count;
	}
	requests = arena_allocate_array(arena, count + 1, sizeof *requests);
	if (requests == NULL)
		return no_memory(err);
	for (size_t i = 0; i < all; i++) {
		for (size_t j = 0; j < reservations[i].request_count; j++)
			requests[next++] = reservations[i].requests[j];
	}
	*ret_requests = requests;
	*ret_count = count;
	return true;
}

bool storage_read_claim(const struct stored_object *object, struct arena *arena, struct storage_claim *ret,
                        struct error *err)
{
	struct quantity size = { .nanos = 0 };
	struct slice size_text;
	struct json_node *root;

	if (!storage_parse(object, arena, &root, err))
		return false;
	size_text = storage_text(root, "/spec/resources/requests/storage");
	if (size_text.length > 0 && !quantity_parse(size_text, &size, err))
		return error_wrap(err, "claim %.*s", SLICE_ARGS(object->name));
	*ret = (struct storage_claim){
		.name_space = object->name_space,
		.name = object->name,
		.uid = storage_text(root, "/metadata/uid"),
		.class_name = storage_text(root, "/spec/storageClassName"),
		.group = storage_label(root, "labels", STORAGE_LABEL_GROUP),
		.phase = storage_text(root, "/status/phase"),
		.volume_name = storage_text(root, "/spec/volumeName"),
		.selected_node = storage_label(root, "annotations", STORAGE_SELECTED_NODE),
		.size_bytes = quantity_value(size),
	};
	return true;
}

/* ---- writing ---- */

static bool add_text(struct object_store *store, struct slice json, struct arena *arena,
                     struct stored_object **ret_object, struct error *err)
{
	const struct resource_kind *kind;
	struct json_node *root;
	struct slice text;

	/* The tree points into its text. */
	if (!arena_copy(arena, json, &text))
		return no_memory(err);
	if (!json_tree_parse(text, arena, &root, err))
		return false;
	kind = resource_kind_of(storage_text(root, "/apiVersion"), storage_text(root, "/kind"));
	if (kind == NULL)
		return error_set(err, ERROR_SYNTAX, "an object of a kind that nobody knows");
	return object_store_add(store, kind, root, arena, ret_object, err);
}

bool storage_add(struct object_store *store, struct arena *arena, struct stored_object **ret_object, struct error *err,
                 const char *format, ...)
{
	struct buffer json;
	va_list arguments;
	int length;
	char *room;
	bool ok;

	buffer_init(&json, OBJECT_BYTES_MAX);
	va_start(arguments, format);
	room = buffer_reserve(&json, OBJECT_BYTES_MAX - 1);
	length = room != NULL ? vsnprintf(room, OBJECT_BYTES_MAX - 1, format, arguments) : -1;
	va_end(arguments);
	if (length < 0 || length >= OBJECT_BYTES_MAX - 1) {
		buffer_destroy(&json);
		return no_memory(err);
	}
	buffer_advance(&json, (size_t)length);
	ok = add_text(store, buffer_slice(&json), arena, ret_object, err);
	buffer_destroy(&json);
	return ok;
}

bool storage_remove(struct object_store *store, enum resource resource, struct slice name_space, struct slice name,
                    struct error *err)
{
	struct stored_object *object = object_store_find(store, resource_kind(resource), name_space, name);
	bool gone;

	return object == NULL || object_store_delete(store, object, &object, &gone, err);
}
