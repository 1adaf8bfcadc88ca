/*
 * Between the two halves of the object store: object_store.c keeps objects and changes, object_write.c makes them.
 */
#ifndef BALLAST_SANDBOX_OBJECT_STORE_INTERNAL_H
#define BALLAST_SANDBOX_OBJECT_STORE_INTERNAL_H

#include "sandbox/object_store.h"

struct kind_store {
	struct stored_object **objects; /* by namespace and name */
	size_t count, capacity;
	struct object_change *changes; /* a ring */
	size_t change_start, change_count;
	uint64_t floor;
};

struct object_store {
	struct loop *loop;
	uint64_t version;
	struct object_observer observers; /* ends of the ring */
	struct kind_store kinds[RESOURCE_COUNT];
};

/* Where the object is, or would be. */
size_t object_store_place(const struct object_store *store, const struct resource_kind *kind, struct slice name_space,
                          struct slice name, bool *ret_there);
/* Makes sure that object_store_apply can't fail. */
bool object_store_make_room(struct object_store *store, const struct resource_kind *kind, struct error *err);
/* Puts the change into effect, remembers it and tells observers. References to both objects are taken over. */
void object_store_apply(struct object_store *store, const struct object_change *change);

#endif
