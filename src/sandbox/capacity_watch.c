#include "sandbox/capacity_watch.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "sandbox/storage_objects.h"

struct capacity_watch {
	struct object_store *store;
	struct object_observer observer;
	unsigned promised_twice;
	char first[CAPACITY_WATCH_TEXT_BYTES];
};

static void note(struct capacity_watch *watch, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct capacity_watch *watch, const char *format, ...)
{
	va_list arguments;

	if (watch->promised_twice++ > 0)
		return;
	va_start(arguments, format);
	(void)vsnprintf(watch->first, sizeof watch->first, format, arguments);
	va_end(arguments);
}

/* ---- reservations ---- */

static bool lists(const struct planner_request *request, struct slice capacity)
{
	for (size_t i = 0; i < request->capacity_count; i++) {
		if (slice_equal(request->capacities[i], capacity))
			return true;
	}
	return false;
}

/* What the requests take of a capacity together, and whether one of them takes all of it. */
static void add_up(const struct planner_request *requests, size_t count, struct slice capacity, unsigned *users,
                   bool *whole, int64_t *bytes)
{
	for (size_t i = 0; i < count; i++) {
		if (!lists(&requests[i], capacity))
			continue;
		++*users;
		*whole |= !storage_type_is_group(requests[i].type);
		*bytes += requests[i].size_bytes;
	}
}

static void check_capacity(struct capacity_watch *watch, const struct storage_reservation *reservation,
                           const struct planner_request *held, size_t held_count,
                           const struct planner_capacity *capacity)
{
	unsigned own = 0, users = 0;
	int64_t bytes = 0;
	bool whole = false;

	add_up(reservation->requests, reservation->request_count, capacity->name, &own, &whole, &bytes);
	if (own == 0)
		return;
	users = own;
	add_up(held, held_count, capacity->name, &users, &whole, &bytes);
	if ((whole && users > 1) || bytes > capacity->size_bytes)
		note(watch, "reservation %.*s: capacity %.*s is set aside for %u requests of %lld bytes, and has %lld",
		     SLICE_ARGS(reservation->name), SLICE_ARGS(capacity->name), users, (long long)bytes,
		     (long long)capacity->size_bytes);
}

static bool is_reserved(const struct stored_object *object, struct arena *arena, struct storage_reservation *ret)
{
	struct error err;

	return object != NULL && storage_read_reservation(object, arena, ret, &err) &&
	       slice_equal_text(ret->status, "RESERVED");
}

static void check_reservation(struct capacity_watch *watch, const struct object_change *change, struct arena *arena)
{
	struct storage_reservation before, after;
	struct planner_capacity *capacities;
	struct planner_request *held;
	size_t capacity_count, held_count;
	struct error err;

	if (!is_reserved(change->after, arena, &after) || is_reserved(change->before, arena, &before) ||
	    !storage_read_capacities(watch->store, arena, &capacities, &capacity_count, &err) ||
	    !storage_read_held(watch->store, after.name, arena, &held, &held_count, &err))
		return;
	for (size_t i = 0; i < capacity_count; i++)
		check_capacity(watch, &after, held, held_count, &capacities[i]);
}

/* ---- volumes ---- */

/* How much a disk or volume group has; 0 if it isn't known. */
static int64_t size_of_location(const struct capacity_watch *watch, enum resource resource, struct slice location,
                                struct arena *arena)
{
	const struct stored_object *object =
		object_store_find(watch->store, resource_kind(resource), slice_from(NULL, 0), location);
	struct json_node *root;
	struct error err;

	if (object == NULL || !storage_parse(object, arena, &root, &err))
		return 0;
	return storage_integer(root, "/spec/Size");
}

static void check_volume(struct capacity_watch *watch, const struct stored_object *added, struct arena *arena)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_VOLUMES);
	struct json_node *root;
	struct slice location;
	int64_t bytes = 0, room;
	unsigned users = 0;
	bool logical;
	struct error err;

	if (!storage_parse(added, arena, &root, &err))
		return;
	location = storage_text(root, "/spec/Location");
	logical = slice_equal_text(storage_text(root, "/spec/LocationType"), "LVM");
	for (size_t i = 0; i < object_store_count(watch->store, kind); i++) {
		struct json_node *other;

		if (!storage_parse(object_store_at(watch->store, kind, i), arena, &other, &err) ||
		    !slice_equal(storage_text(other, "/spec/Location"), location))
			continue;
		users++;
		bytes += storage_integer(other, "/spec/Size");
	}
	room = size_of_location(watch, logical ? RESOURCE_VOLUME_GROUPS : RESOURCE_DRIVES, location, arena);
	if ((!logical && users > 1) || bytes > room)
		note(watch, "volume %.*s: %.*s has %u volumes of %lld bytes, and room for %lld",
		     SLICE_ARGS(added->name), SLICE_ARGS(location), users, (long long)bytes, (long long)room);
}

/* ---- life ---- */

static void on_change(void *context, const struct object_change *change)
{
	struct capacity_watch *watch = context;
	const struct resource_kind *kind = change->after->kind;
	struct arena arena;

	if (change->type == OBJECT_DELETED)
		return;
	arena_init(&arena, STORAGE_ARENA_BYTES);
	if (kind == resource_kind(RESOURCE_RESERVATIONS))
		check_reservation(watch, change, &arena);
	else if (kind == resource_kind(RESOURCE_VOLUMES) && change->type == OBJECT_ADDED)
		check_volume(watch, change->after, &arena);
	arena_destroy(&arena);
}

struct capacity_watch *capacity_watch_create(struct object_store *store, struct error *err)
{
	struct capacity_watch *watch = memory_allocate(sizeof *watch);

	if (watch == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory to watch over capacities");
		return NULL;
	}
	watch->store = store;
	watch->observer = (struct object_observer){ .on_change = on_change, .context = watch };
	object_store_observe(store, &watch->observer);
	return watch;
}

void capacity_watch_destroy(struct capacity_watch *watch)
{
	if (watch == NULL)
		return;
	object_store_ignore(&watch->observer);
	memory_release(watch);
}

unsigned capacity_watch_promised_twice(const struct capacity_watch *watch)
{
	return watch->promised_twice;
}

const char *capacity_watch_first(const struct capacity_watch *watch)
{
	return watch->first;
}
