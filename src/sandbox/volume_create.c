/*
 * One volume (spec extender R7, R8): first the Volume object, then the capacity, then the reservation.
 */
#include <inttypes.h>
#include <stdio.h>

#include "sandbox/storage_objects.h"
#include "sandbox/volume_provisioner.h"

enum {
	MIB = 1024 * 1024,
	NAME_BYTES = 80,
	TEXT_BYTES = 512,
};

struct creation {
	struct object_store *store;
	struct arena arena;
	struct storage_claim claim;
	struct slice node_id;
	struct storage_reservation reservation;
	size_t request; /* of the reservation */
	struct planner_capacity capacity;
	struct slice location; /* of the capacity, at first */
	char name[NAME_BYTES]; /* of the volume */
};

static int64_t extents_up(int64_t bytes)
{
	return (bytes + RESERVATION_EXTENT_BYTES - 1) / RESERVATION_EXTENT_BYTES * RESERVATION_EXTENT_BYTES;
}

/* ---- what there is ---- */

/* The reservation with a request for the claim. */
static bool find_reservation(struct creation *creation, struct error *err)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_RESERVATIONS);

	for (size_t i = 0; i < object_store_count(creation->store, kind); i++) {
		struct storage_reservation *reservation = &creation->reservation;

		if (!storage_read_reservation(object_store_at(creation->store, kind, i), &creation->arena, reservation,
		                              err))
			return false;
		if (!slice_equal_text(reservation->status, "RESERVED") ||
		    !slice_equal(reservation->name_space, creation->claim.name_space))
			continue;
		for (size_t j = 0; j < reservation->request_count; j++) {
			creation->request = j;
			if (slice_equal(reservation->requests[j].name, creation->claim.name))
				return true;
		}
	}
	return error_set(err, ERROR_REFUSED, "NotFound: no reservation for claim %.*s",
	                 SLICE_ARGS(creation->claim.name));
}

/* The capacity on the chosen node. */
static bool find_capacity(struct creation *creation, struct error *err)
{
	const struct planner_request *request = &creation->reservation.requests[creation->request];
	struct planner_capacity *capacities;
	size_t count;

	if (!storage_read_capacities(creation->store, &creation->arena, &capacities, &count, err))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!slice_equal(capacities[i].node, creation->node_id))
			continue;
		for (size_t j = 0; j < request->capacity_count; j++) {
			creation->capacity = capacities[i];
			if (slice_equal(capacities[i].name, request->capacities[j]))
				return true;
		}
	}
	return error_set(err, ERROR_LIMIT, "ResourceExhausted: nothing is reserved for claim %.*s on its node",
	                 SLICE_ARGS(creation->claim.name));
}

/* ---- writing ---- */

/* A drive becomes a volume group: its name, and what it holds. */
static bool make_group(struct creation *creation, struct slice *ret_group, int64_t *ret_bytes, struct error *err)
{
	int64_t drive_bytes = creation->capacity.size_bytes;
	int64_t rest = drive_bytes % RESERVATION_EXTENT_BYTES;
	char name[TEXT_BYTES];

	*ret_bytes = drive_bytes - rest - (rest < MIB ? RESERVATION_EXTENT_BYTES : 0);
	(void)snprintf(name, sizeof name, "lvg-%.*s", SLICE_ARGS(creation->location));
	if (!arena_copy(&creation->arena, slice_of(name), ret_group))
		return error_set(err, ERROR_NO_MEMORY, "no memory for a volume group");
	return storage_add(
		creation->store, &creation->arena, NULL, err,
		"{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"LogicalVolumeGroup\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
		"\"app\":\"csi-baremetal\",\"app.kubernetes.io/name\":\"csi-baremetal\"}},\"spec\":{\"Name\":\"%s\",\"Node\":\"%.*s\","
		"\"Locations\":[\"%.*s\"],\"Size\":%" PRId64 ",\"Status\":\"CREATED\",\"Health\":\"GOOD\"}}",
		name, name, SLICE_ARGS(creation->node_id), SLICE_ARGS(creation->location), *ret_bytes);
}

static bool add_volume(struct creation *creation, bool logical, struct slice location, int64_t bytes,
                       enum storage_type type, struct error *err)
{
	return storage_add(
		creation->store, &creation->arena, NULL, err,
		"{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"Volume\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%.*s\","
		"\"labels\":{\"app\":\"csi-baremetal\",\"app.kubernetes.io/name\":\"csi-baremetal\"}},\"spec\":{\"Id\":\"%s\","
		"\"Location\":\"%.*s\",\"LocationType\":\"%s\",\"StorageClass\":\"%s\",\"NodeId\":\"%.*s\",\"Size\":%" PRId64
		",\"Mode\":\"FS\",\"Type\":\"xfs\",\"Health\":\"GOOD\",\"OperationalStatus\":\"OPERATIVE\",\"CSIStatus\":\"CREATED\","
		"\"Usage\":\"IN_USE\",\"StorageGroup\":\"%.*s\"}}",
		creation->name, SLICE_ARGS(creation->claim.name_space), creation->name, SLICE_ARGS(location),
		logical ? "LVM" : "DRIVE", storage_type_name(type), SLICE_ARGS(creation->node_id), bytes,
		SLICE_ARGS(creation->claim.group));
}

/* location with data NULL: stays. */
static bool change_capacity(struct creation *creation, enum storage_type type, struct slice location, int64_t bytes,
                            struct error *err)
{
	struct stored_object *object = object_store_find(creation->store, resource_kind(RESOURCE_CAPACITIES),
	                                                 slice_from(NULL, 0), creation->capacity.name);
	struct json_node *spec;
	struct object_edit edit;
	bool ok;

	if (object == NULL)
		return error_set(err, ERROR_REFUSED, "the capacity has gone");
	if (!object_edit_begin(&edit, object, err))
		return false;
	spec = json_tree_find(edit.root, "/spec");
	ok = json_tree_set(spec, SLICE("Size"), json_tree_number(&edit.arena, bytes)) &&
	     json_tree_set_text(&edit.arena, spec, SLICE("storageClass"), slice_of(storage_type_name(type))) &&
	     (location.data == NULL || json_tree_set_text(&edit.arena, spec, SLICE("Location"), location));
	ok = ok ? object_edit_commit(&edit, creation->store, err)
	        : error_set(err, ERROR_NO_MEMORY, "no memory for a capacity");
	object_edit_end(&edit);
	return ok;
}

/* Takes the request out of the reservation, which goes with its last one. */
static bool fulfil_request(struct creation *creation, struct error *err)
{
	struct stored_object *object = object_store_find(creation->store, resource_kind(RESOURCE_RESERVATIONS),
	                                                 slice_from(NULL, 0), creation->reservation.name);
	struct object_edit edit;
	bool ok, gone;

	if (object == NULL)
		return true;
	if (creation->reservation.request_count == 1)
		return object_store_delete(creation->store, object, &object, &gone, err);
	if (!object_edit_begin(&edit, object, err))
		return false;
	ok = json_tree_remove_item(json_tree_find(edit.root, "/spec/ReservationRequests"), creation->request) &&
	     object_edit_commit(&edit, creation->store, err);
	object_edit_end(&edit);
	return ok;
}

/* ---- the whole ---- */

static bool use_drive(struct creation *creation, struct error *err)
{
	int64_t bytes = creation->capacity.size_bytes / MIB * MIB;

	return add_volume(creation, false, creation->location, bytes, creation->capacity.type, err) &&
	       change_capacity(creation, creation->capacity.type, slice_from(NULL, 0), 0, err);
}

static bool use_group(struct creation *creation, enum storage_type type, struct error *err)
{
	struct slice group = creation->location, new_location = slice_from(NULL, 0);
	int64_t size = creation->capacity.size_bytes;
	int64_t need = extents_up(creation->claim.size_bytes);

	if (!storage_type_is_group(creation->capacity.type)) {
		if (!make_group(creation, &group, &size, err))
			return false;
		new_location = group;
	}
	return add_volume(creation, true, group, need, type, err) &&
	       change_capacity(creation, type, new_location, size - need, err);
}

static bool create(struct creation *creation, struct error *err)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_VOLUMES);
	const struct stored_object *capacity;
	struct json_node *root;
	enum storage_type type;
	bool exists;

	(void)snprintf(creation->name, sizeof creation->name, "pvc-%.*s", SLICE_ARGS(creation->claim.uid));
	exists = object_store_find(creation->store, kind, creation->claim.name_space, slice_of(creation->name)) != NULL;
	if (!find_reservation(creation, err))
		return exists;
	if (exists)
		return fulfil_request(creation, err);
	if (!find_capacity(creation, err))
		return false;
	capacity = object_store_find(creation->store, resource_kind(RESOURCE_CAPACITIES), slice_from(NULL, 0),
	                             creation->capacity.name);
	if (capacity == NULL || !storage_parse(capacity, &creation->arena, &root, err))
		return error_set(err, ERROR_REFUSED, "the capacity can't be read");
	creation->location = storage_text(root, "/spec/Location");
	type = creation->reservation.requests[creation->request].type;
	return (storage_type_is_group(type) ? use_group(creation, type, err) : use_drive(creation, err)) &&
	       fulfil_request(creation, err);
}

bool volume_create(struct object_store *store, struct stored_object *claim, struct slice node_id, struct error *err)
{
	struct creation creation = { .store = store, .node_id = node_id };
	bool ok;

	arena_init(&creation.arena, STORAGE_ARENA_BYTES);
	ok = storage_read_claim(claim, &creation.arena, &creation.claim, err) && create(&creation, err);
	arena_destroy(&creation.arena);
	return ok;
}
