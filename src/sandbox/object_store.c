#include "sandbox/object_store.h"

#include <string.h>

#include "base/memory.h"
#include "sandbox/object_store_internal.h"

/* ---- life ---- */

struct object_store *object_store_create(struct loop *loop, struct error *err)
{
	struct object_store *store = memory_allocate(sizeof *store);

	if (store == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an object store");
		return NULL;
	}
	store->loop = loop;
	store->version = 1; /* as a fresh etcd */
	store->observers.next = store->observers.previous = &store->observers;
	return store;
}

static void release_change(struct object_change *change)
{
	stored_object_release(change->before);
	stored_object_release(change->after);
	*change = (struct object_change){ 0 };
}

static void forget_changes(struct kind_store *kind)
{
	for (; kind->change_count > 0; kind->change_count--) {
		release_change(&kind->changes[kind->change_start]);
		kind->change_start = (kind->change_start + 1) % OBJECT_STORE_HISTORY;
	}
}

void object_store_destroy(struct object_store *store)
{
	if (store == NULL)
		return;
	while (store->observers.next != &store->observers)
		object_store_ignore(store->observers.next);
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		struct kind_store *kind = &store->kinds[i];

		forget_changes(kind);
		memory_release(kind->changes);
		for (size_t j = 0; j < kind->count; j++)
			stored_object_release(kind->objects[j]);
		memory_release(kind->objects);
	}
	memory_release(store);
}

uint64_t object_store_version(const struct object_store *store)
{
	return store->version;
}

struct stored_object *stored_object_hold(struct stored_object *object)
{
	object->references++;
	return object;
}

void stored_object_release(struct stored_object *object)
{
	if (object == NULL || --object->references > 0)
		return;
	arena_destroy(&object->arena);
	memory_release(object);
}

/* ---- observers ---- */

void object_store_observe(struct object_store *store, struct object_observer *observer)
{
	observer->previous = store->observers.previous;
	observer->next = &store->observers;
	observer->previous->next = observer;
	store->observers.previous = observer;
}

void object_store_ignore(struct object_observer *observer)
{
	if (observer->next == NULL)
		return;
	observer->previous->next = observer->next;
	observer->next->previous = observer->previous;
	observer->next = observer->previous = NULL;
}

/* ---- objects ---- */

size_t object_store_place(const struct object_store *store, const struct resource_kind *kind, struct slice name_space,
                          struct slice name, bool *ret_there)
{
	const struct kind_store *kept = &store->kinds[resource_of(kind)];
	size_t low = 0;
	size_t high = kept->count;

	*ret_there = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = slice_compare(kept->objects[middle]->name_space, name_space);

		if (order == 0)
			order = slice_compare(kept->objects[middle]->name, name);
		if (order == 0)
			*ret_there = true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct stored_object *object_store_find(const struct object_store *store, const struct resource_kind *kind,
                                        struct slice name_space, struct slice name)
{
	bool there;
	size_t place = object_store_place(store, kind, name_space, name, &there);

	return there ? store->kinds[resource_of(kind)].objects[place] : NULL;
}

size_t object_store_count(const struct object_store *store, const struct resource_kind *kind)
{
	return store->kinds[resource_of(kind)].count;
}

struct stored_object *object_store_at(const struct object_store *store, const struct resource_kind *kind, size_t index)
{
	return store->kinds[resource_of(kind)].objects[index];
}

/* Room for one more. */
static bool grow(struct stored_object ***objects, size_t count, size_t *capacity)
{
	size_t larger = *capacity > 0 ? 2 * *capacity : 16;
	struct stored_object **grown;

	if (count < *capacity)
		return true;
	grown = memory_resize(*objects, larger * sizeof(struct stored_object *));
	if (grown == NULL)
		return false;
	*objects = grown;
	*capacity = larger;
	return true;
}

static void insert_at(struct stored_object **objects, size_t *count, size_t place, struct stored_object *object)
{
	memmove(objects + place + 1, objects + place, (*count - place) * sizeof(struct stored_object *));
	objects[place] = object;
	++*count;
}

static void remove_at(struct stored_object **objects, size_t *count, size_t place)
{
	--*count;
	memmove(objects + place, objects + place + 1, (*count - place) * sizeof(struct stored_object *));
}

/* ---- changes ---- */

bool object_store_make_room(struct object_store *store, const struct resource_kind *kind, struct error *err)
{
	struct kind_store *kept = &store->kinds[resource_of(kind)];

	if (kept->count >= OBJECT_STORE_OBJECTS)
		return error_set(err, ERROR_LIMIT, "there are %d %s already", OBJECT_STORE_OBJECTS, kind->plural);
	if (kept->changes == NULL)
		kept->changes = memory_allocate(OBJECT_STORE_HISTORY * sizeof *kept->changes);
	if (kept->changes == NULL || !grow(&kept->objects, kept->count, &kept->capacity))
		return error_set(err, ERROR_NO_MEMORY, "no memory for more %s", kind->plural);
	return true;
}

static void remember(struct kind_store *kept, const struct object_change *change)
{
	if (kept->change_count == OBJECT_STORE_HISTORY) {
		struct object_change *oldest = &kept->changes[kept->change_start];

		kept->floor = oldest->after->version;
		release_change(oldest);
		kept->change_start = (kept->change_start + 1) % OBJECT_STORE_HISTORY;
		kept->change_count--;
	}
	kept->changes[(kept->change_start + kept->change_count) % OBJECT_STORE_HISTORY] = *change;
	kept->change_count++;
}

void object_store_apply(struct object_store *store, const struct object_change *change)
{
	struct stored_object *after = change->after;
	struct kind_store *kept = &store->kinds[resource_of(after->kind)];
	bool there;
	size_t place = object_store_place(store, after->kind, after->name_space, after->name, &there);

	if (change->type == OBJECT_ADDED)
		insert_at(kept->objects, &kept->count, place, stored_object_hold(after));
	else if (change->type == OBJECT_MODIFIED)
		kept->objects[place] = stored_object_hold(after);
	else
		remove_at(kept->objects, &kept->count, place);
	/* The store's reference to the object before passes on to the change. */
	store->version = after->version;
	remember(kept, change);
	for (struct object_observer *observer = store->observers.next; observer != &store->observers;
	     observer = observer->next)
		observer->on_change(observer->context, change);
}

uint64_t object_store_floor(const struct object_store *store, const struct resource_kind *kind)
{
	return store->kinds[resource_of(kind)].floor;
}

const struct object_change *object_store_change(const struct object_store *store, const struct resource_kind *kind,
                                                size_t index)
{
	const struct kind_store *kept = &store->kinds[resource_of(kind)];

	return index < kept->change_count ? &kept->changes[(kept->change_start + index) % OBJECT_STORE_HISTORY] : NULL;
}

void object_store_compact(struct object_store *store)
{
	store->version++;
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		forget_changes(&store->kinds[i]);
		store->kinds[i].floor = store->version;
	}
}

/* ---- snapshots ---- */

static size_t place_in(const struct object_snapshot *snapshot, const struct stored_object *object)
{
	size_t low = 0;
	size_t high = snapshot->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = slice_compare(snapshot->objects[middle]->name_space, object->name_space);

		if (order == 0)
			order = slice_compare(snapshot->objects[middle]->name, object->name);
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Puts things back as they were before the change. References aren't counted yet. */
static bool undo(struct object_snapshot *snapshot, size_t *capacity, const struct object_change *change)
{
	size_t place = place_in(snapshot, change->after);

	if (change->type == OBJECT_ADDED) {
		remove_at(snapshot->objects, &snapshot->count, place);
	} else if (change->type == OBJECT_MODIFIED) {
		snapshot->objects[place] = change->before;
	} else {
		if (!grow(&snapshot->objects, snapshot->count, capacity))
			return false;
		insert_at(snapshot->objects, &snapshot->count, place, change->before);
	}
	return true;
}

bool object_store_snapshot(const struct object_store *store, const struct resource_kind *kind, uint64_t version,
                           struct object_snapshot *ret_snapshot, struct error *err)
{
	const struct kind_store *kept = &store->kinds[resource_of(kind)];
	size_t capacity = kept->count + 1;
	struct object_snapshot snapshot = { .objects = memory_allocate(capacity * sizeof(struct stored_object *)),
		                            .count = kept->count };
	bool ok = snapshot.objects != NULL;

	if (ok && kept->count > 0)
		memcpy(snapshot.objects, kept->objects, kept->count * sizeof(struct stored_object *));
	for (size_t i = kept->change_count; ok && i > 0; i--) {
		const struct object_change *change = object_store_change(store, kind, i - 1);

		if (change->after->version <= version)
			break;
		ok = undo(&snapshot, &capacity, change);
	}
	if (!ok) {
		memory_release(snapshot.objects);
		return error_set(err, ERROR_NO_MEMORY, "no memory for a list of %s", kind->plural);
	}
	for (size_t i = 0; i < snapshot.count; i++)
		stored_object_hold(snapshot.objects[i]);
	*ret_snapshot = snapshot;
	return true;
}

void object_snapshot_release(struct object_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->count; i++)
		stored_object_release(snapshot->objects[i]);
	memory_release(snapshot->objects);
	*snapshot = (struct object_snapshot){ 0 };
}
