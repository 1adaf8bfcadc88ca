/*
 * A list prepares its entries in the table as it comes in, so that applying it needs no memory and can't stop
 * half-way. An entry without an object is one that only a list under way knows.
 */
#include "kube/object_set.h"

#include <stdint.h>

#include "base/memory.h"
#include "kube/limits.h"

struct object_entry {
	void *object;
	bool listed; /* in the list under way */
};

struct listed_object {
	struct object_entry *entry;
	void *object; /* NULL once it has moved into its entry */
};

enum { FIRST_CAPACITY = 16 };

void object_set_init(struct object_set *set, const struct watch_store_type *type,
                     const struct watch_store_handler *handler, void *context)
{
	*set = (struct object_set){ .type = type, .handler = handler, .context = context };
	table_init(&set->table);
}

static void release(struct object_set *set, void *object)
{
	if (object != NULL)
		set->type->release(set->context, object);
}

void object_set_close(struct object_set *set)
{
	if (set->closed)
		return;
	set->closed = true;
	for (struct table_entry *e = table_next(&set->table, NULL); e != NULL; e = table_next(&set->table, e)) {
		struct object_entry *entry = e->value;

		release(set, entry->object);
		memory_release(entry);
	}
	table_destroy(&set->table);
	for (size_t i = 0; i < set->listed_count; i++)
		release(set, set->listed[i].object);
	memory_release(set->listed);
	release(set, set->passing);
	set->listed = NULL;
	set->listed_count = 0;
	set->listed_capacity = 0;
	set->passing = NULL;
	set->count = 0;
}

bool object_set_closed(const struct object_set *set)
{
	return set->closed;
}

/* The entry of uid, made if there is none. NULL when memory is short. */
static struct object_entry *entry_of(struct object_set *set, struct slice uid, struct error *err)
{
	struct object_entry *entry = table_find(&set->table, uid);

	if (entry != NULL)
		return entry;
	entry = memory_allocate(sizeof *entry);
	if (entry == NULL || !table_set(&set->table, uid, entry)) {
		memory_release(entry);
		error_set(err, ERROR_NO_MEMORY, "no memory for another object");
		return NULL;
	}
	return entry;
}

static bool make_room(struct object_set *set, struct error *err)
{
	size_t capacity = set->listed_capacity > 0 ? 2 * set->listed_capacity : FIRST_CAPACITY;
	struct listed_object *listed;

	if (set->listed_count >= WATCH_STORE_OBJECTS)
		return error_set(err, ERROR_LIMIT, "the list has more than %d objects", WATCH_STORE_OBJECTS);
	if (set->listed_count < set->listed_capacity)
		return true;
	listed = memory_resize(set->listed, capacity * sizeof *listed);
	if (listed == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for a list of %zu objects", capacity);
	set->listed = listed;
	set->listed_capacity = capacity;
	return true;
}

bool object_set_list(struct object_set *set, void *object, struct slice uid, struct error *err)
{
	struct object_entry *entry;

	if (!make_room(set, err) || (entry = entry_of(set, uid, err)) == NULL) {
		release(set, object);
		return false;
	}
	entry->listed = true;
	set->listed[set->listed_count++] = (struct listed_object){ .entry = entry, .object = object };
	return true;
}

size_t object_set_listed_count(const struct object_set *set)
{
	return set->listed_count;
}

static void forget_list(struct object_set *set)
{
	memory_release(set->listed);
	set->listed = NULL;
	set->listed_count = 0;
	set->listed_capacity = 0;
}

void object_set_drop_list(struct object_set *set)
{
	for (size_t i = 0; i < set->listed_count; i++)
		release(set, set->listed[i].object);
	forget_list(set);
	for (struct table_entry *e = table_next(&set->table, NULL); e != NULL; e = table_next(&set->table, e)) {
		struct object_entry *entry = e->value;

		entry->listed = false;
		if (entry->object == NULL) {
			table_remove(&set->table, slice_from(e->key, e->key_length));
			memory_release(entry);
		}
	}
}

/* ---- the three things that happen to an object; each may end with the set closed ---- */

static void add_object(struct object_set *set, struct object_entry *entry, void *object)
{
	entry->object = object;
	set->count++;
	set->handler->on_add(set->context, object);
}

static void finish_passing(struct object_set *set)
{
	if (set->closed)
		return;
	release(set, set->passing);
	set->passing = NULL;
}

static void update_object(struct object_set *set, struct object_entry *entry, void *object)
{
	set->passing = entry->object;
	entry->object = object;
	set->handler->on_update(set->context, set->passing, object);
	finish_passing(set);
}

static void delete_object(struct object_set *set, struct slice uid)
{
	struct object_entry *entry = table_remove(&set->table, uid);

	set->passing = entry->object;
	set->count--;
	memory_release(entry);
	set->handler->on_delete(set->context, set->passing);
	finish_passing(set);
}

void object_set_apply_list(struct object_set *set)
{
	for (struct table_entry *e = table_next(&set->table, NULL); e != NULL; e = table_next(&set->table, e)) {
		struct object_entry *entry = e->value;

		if (!entry->listed)
			delete_object(set, slice_from(e->key, e->key_length));
		if (set->closed)
			return;
	}
	for (size_t i = 0; i < set->listed_count; i++) {
		struct object_entry *entry = set->listed[i].entry;
		void *object = set->listed[i].object;

		set->listed[i].object = NULL;
		entry->listed = false;
		if (entry->object == NULL)
			add_object(set, entry, object);
		else
			update_object(set, entry, object);
		if (set->closed)
			return;
	}
	forget_list(set);
}

/* ---- events ---- */

static bool apply_added(struct object_set *set, void *object, struct slice uid, struct error *err)
{
	struct object_entry *entry;

	if (table_find(&set->table, uid) != NULL)
		return error_set(err, ERROR_INVARIANT, "received add event for object we already have");
	entry = entry_of(set, uid, err);
	if (entry == NULL)
		return false;
	add_object(set, entry, object);
	return true;
}

bool object_set_apply_event(struct object_set *set, enum watch_store_event event, void *object, struct slice uid,
                            struct error *err)
{
	struct object_entry *entry = table_find(&set->table, uid);

	switch (event) {
	case WATCH_STORE_ADDED:
		return apply_added(set, object, uid, err);
	case WATCH_STORE_MODIFIED:
		if (entry == NULL)
			return error_set(err, ERROR_INVARIANT, "received update event for object that's not present");
		update_object(set, entry, object);
		return true;
	case WATCH_STORE_DELETED:
		if (entry == NULL)
			return error_set(err, ERROR_INVARIANT, "received delete event for object that's not present");
		/* The reference's way: the last state is an update of its own (pitfall 4 of agent-runtime). */
		update_object(set, entry, object);
		if (!set->closed)
			delete_object(set, uid);
		return true;
	case WATCH_STORE_BOOKMARK:
	case WATCH_STORE_ERROR:
		break;
	}
	return error_set(err, ERROR_INVARIANT, "the event carries no object");
}

void *object_set_next(const struct object_set *set, size_t *position)
{
	while (!set->closed && *position < set->table.used) {
		const struct table_entry *e = &set->table.entries[(*position)++];
		const struct object_entry *entry = e->value;

		if (e->key != NULL && entry->object != NULL)
			return entry->object;
	}
	return NULL;
}
