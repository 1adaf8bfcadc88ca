/*
 * What csi-baremetal's node services do beside the stand-ins of src/sandbox: volumes are deleted, and disks come and go
 * (spec extender R8).
 */
#include <stdio.h>
#include <string.h>

#include "sandbox/storage_objects.h"
#include "sim_pods_internal.h"

enum { UID_BYTES = 64, NAME_BYTES = 96, RELEASE_SECONDS = 3 };

#define TAINT "drive.csi-baremetal.dell.com/taint"
/* Groups that the workload has planted stay groups; those that were made of a disk become one again. */
#define MADE_GROUP "lvg-drive-"
/* The workload's own tainted disk isn't to be touched: it would do for what is too large for all others. */
enum { LARGEST_GIB = 9000 };

static const struct slice NOWHERE = { NULL, 0 };

static struct rng *rng_of(const struct sim_pods *pods)
{
	return sim_world_rng(simulation_world(pods->simulation));
}

static void complain(struct sim_pods *pods, const char *what, const struct error *err)
{
	simulation_broken(pods->simulation, "simulator", "%s: %s", what, err->text);
}

/* ---- deleted volumes ---- */

static bool has_claim(const struct sim_pods *pods, struct slice volume, struct arena *arena)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_CLAIMS);

	for (size_t i = 0; i < object_store_count(pods->store, kind); i++) {
		struct storage_claim claim;
		char name[NAME_BYTES];
		struct error err;

		if (!storage_read_claim(object_store_at(pods->store, kind, i), arena, &claim, &err))
			continue;
		(void)snprintf(name, sizeof name, "pvc-%.*s", SLICE_ARGS(claim.uid));
		if (slice_equal_text(volume, name))
			return true;
	}
	return false;
}

static struct stored_object *find_capacity(const struct sim_pods *pods, struct slice location, struct arena *arena)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_CAPACITIES);

	for (size_t i = 0; i < object_store_count(pods->store, kind); i++) {
		struct stored_object *object = object_store_at(pods->store, kind, i);
		struct json_node *root;
		struct error err;

		if (storage_parse(object, arena, &root, &err) &&
		    slice_equal(storage_text(root, "/spec/Location"), location))
			return object;
	}
	return NULL;
}

static bool has_volume(const struct sim_pods *pods, struct slice location, struct arena *arena)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_VOLUMES);

	for (size_t i = 0; i < object_store_count(pods->store, kind); i++) {
		struct json_node *root;
		struct error err;

		if (storage_parse(object_store_at(pods->store, kind, i), arena, &root, &err) &&
		    slice_equal(storage_text(root, "/spec/Location"), location))
			return true;
	}
	return false;
}

/* The group's last volume is gone: it is a disk again. */
static bool make_disk(struct sim_pods *pods, struct object_edit *edit, struct slice group, struct error *err)
{
	struct slice name = slice_from_offset(group, strlen("lvg-"));
	const struct stored_object *drive =
		object_store_find(pods->store, resource_kind(RESOURCE_DRIVES), NOWHERE, name);
	struct json_node *spec = json_tree_find(edit->root, "/spec"), *root;
	struct slice type;

	if (drive == NULL || !storage_parse(drive, &edit->arena, &root, err))
		return error_set(err, ERROR_INVARIANT, "there is no disk %.*s", SLICE_ARGS(name));
	type = storage_text(root, "/spec/Type");
	return (json_tree_set_text(&edit->arena, spec, SLICE("Location"), name) &&
	        json_tree_set_text(&edit->arena, spec, SLICE("storageClass"), type) &&
	        json_tree_set(spec, SLICE("Size"),
	                      json_tree_number(&edit->arena, storage_integer(root, "/spec/Size")))) ||
	       error_set(err, ERROR_NO_MEMORY, "no memory for a disk");
}

static bool give_back(struct sim_pods *pods, struct slice location, int64_t bytes, struct arena *arena,
                      struct error *err)
{
	struct stored_object *capacity = find_capacity(pods, location, arena);
	bool was_group = slice_starts_with(location, SLICE(MADE_GROUP)) && !has_volume(pods, location, arena);
	struct json_node *spec;
	struct object_edit edit;
	bool ok;

	if (capacity == NULL)
		return error_set(err, ERROR_INVARIANT, "%.*s has no capacity", SLICE_ARGS(location));
	if (!object_edit_begin(&edit, capacity, err))
		return false;
	spec = json_tree_find(edit.root, "/spec");
	ok = was_group ? make_disk(pods, &edit, location, err)
	               : json_tree_set(spec, SLICE("Size"),
	                               json_tree_number(&edit.arena, storage_integer(spec, "/Size") + bytes));
	ok = ok && object_edit_commit(&edit, pods->store, err);
	object_edit_end(&edit);
	return ok && (!was_group || storage_remove(pods->store, RESOURCE_VOLUME_GROUPS, NOWHERE, location, err));
}

static void release(struct sim_pods *pods, const struct stored_object *volume, struct arena *arena)
{
	struct slice location, name, name_space;
	struct json_node *root;
	struct error err;
	int64_t bytes;

	if (!storage_parse(volume, arena, &root, &err) ||
	    !arena_copy(arena, storage_text(root, "/spec/Location"), &location) ||
	    !arena_copy(arena, volume->name, &name) || !arena_copy(arena, volume->name_space, &name_space))
		return;
	bytes = storage_integer(root, "/spec/Size");
	sim_world_note(simulation_world(pods->simulation), "volume %.*s: released from %.*s", SLICE_ARGS(name),
	               SLICE_ARGS(location));
	if (!storage_remove(pods->store, RESOURCE_PERSISTENT_VOLUMES, NOWHERE, name, &err) ||
	    !storage_remove(pods->store, RESOURCE_VOLUMES, name_space, name, &err) ||
	    !give_back(pods, location, bytes, arena, &err))
		complain(pods, "a volume", &err);
	pods->changed_ns = simulation_now_ns(pods->simulation);
	pods->counts.volumes_released++;
}

void sim_pods_release_volumes(struct sim_pods *pods)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_VOLUMES);
	struct arena arena;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	for (size_t i = object_store_count(pods->store, kind); i-- > 0;) {
		const struct stored_object *volume = object_store_at(pods->store, kind, i);

		if (!has_claim(pods, volume->name, &arena) && rng_between(rng_of(pods), 0, RELEASE_SECONDS) == 0)
			release(pods, volume, &arena);
	}
	arena_destroy(&arena);
}

/* ---- disks that go and come back ---- */

/* Some capacity, whatever it is. */
static struct stored_object *pick(struct sim_pods *pods, struct rng *rng)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_CAPACITIES);
	size_t count = object_store_count(pods->store, kind);

	return count > 0 ? object_store_at(pods->store, kind, rng_between(rng, 0, count)) : NULL;
}

/* All of it is free, so no volume will be given back to it. */
static bool is_unused_disk(struct sim_pods *pods, const struct json_node *capacity, struct arena *arena)
{
	const struct stored_object *drive = object_store_find(pods->store, resource_kind(RESOURCE_DRIVES), NOWHERE,
	                                                      storage_text(capacity, "/spec/Location"));
	struct json_node *root;
	struct error err;

	return drive != NULL && storage_parse(drive, arena, &root, &err) &&
	       storage_integer(root, "/spec/Size") == storage_integer(capacity, "/spec/Size");
}

void sim_pods_take_drive(struct sim_pods *pods, struct rng *rng)
{
	struct stored_object *object = pick(pods, rng);
	struct sim_drive_away *place = NULL;
	struct json_node *root;
	struct arena arena;
	struct error err;

	for (unsigned i = 0; i < SIM_DRIVES_AWAY; i++)
		if (!pods->drives[i].away)
			place = &pods->drives[i];
	if (place == NULL || object == NULL || object->text.length >= SIM_DRIVE_BYTES)
		return;
	arena_init(&arena, STORAGE_ARENA_BYTES);
	if (storage_parse(object, &arena, &root, &err) && is_unused_disk(pods, root, &arena)) {
		char name[NAME_BYTES];

		(void)snprintf(name, sizeof name, "%.*s", SLICE_ARGS(object->name));
		sim_world_note(simulation_world(pods->simulation), "%s: taken away", name);
		(void)snprintf(place->text, sizeof place->text, "%.*s", SLICE_ARGS(object->text));
		place->away = true;
		pods->counts.drives_away++;
		if (!storage_remove(pods->store, RESOURCE_CAPACITIES, NOWHERE, slice_of(name), &err))
			complain(pods, name, &err);
	}
	arena_destroy(&arena);
}

void sim_pods_bring_drives_back(struct sim_pods *pods)
{
	struct arena arena;
	struct error err;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	for (unsigned i = 0; i < SIM_DRIVES_AWAY; i++) {
		if (!pods->drives[i].away)
			continue;
		pods->drives[i].away = false;
		if (!storage_add(pods->store, &arena, NULL, &err, "%s", pods->drives[i].text))
			complain(pods, "a disk", &err);
	}
	arena_destroy(&arena);
}

static void set_taint(struct sim_pods *pods, struct stored_object *object, bool tainted)
{
	struct json_node *labels;
	struct object_edit edit;
	struct error err;
	bool ok;

	if (!object_edit_begin(&edit, object, &err)) {
		complain(pods, "a disk", &err);
		return;
	}
	labels = json_tree_ensure(&edit.arena, json_tree_find(edit.root, "/metadata"), SLICE("labels"));
	ok = tainted ? json_tree_set_text(&edit.arena, labels, SLICE(TAINT), SLICE("NoSchedule"))
	             : json_tree_remove(labels, SLICE(TAINT));
	if (ok && !object_edit_commit(&edit, pods->store, &err))
		complain(pods, "a disk", &err);
	object_edit_end(&edit);
}

static bool is_planted_taint(const struct stored_object *object)
{
	struct json_node *root;
	struct arena arena;
	struct error err;
	bool planted;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	planted = storage_parse(object, &arena, &root, &err) &&
	          storage_integer(root, "/spec/Size") > (int64_t)LARGEST_GIB << 30;
	arena_destroy(&arena);
	return planted;
}

void sim_pods_taint(struct sim_pods *pods, struct rng *rng)
{
	struct stored_object *object = pick(pods, rng);

	if (object == NULL)
		return;
	sim_world_note(simulation_world(pods->simulation), "%.*s: tainted", SLICE_ARGS(object->name));
	pods->counts.drives_away++;
	set_taint(pods, object, true);
}

void sim_pods_untaint(struct sim_pods *pods)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_CAPACITIES);

	for (size_t i = 0; i < object_store_count(pods->store, kind); i++) {
		struct stored_object *object = object_store_at(pods->store, kind, i);

		if (!is_planted_taint(object))
			set_taint(pods, object, false);
	}
}
