/*
 * The objects of a watch store by uid, and what lists and events do to them (spec agent-runtime 4.3, 4.6):
 * bookkeeping without network.
 *
 * Handlers may close the set. After every function that calls handlers, the caller must ask object_set_closed before
 * it goes on.
 */
#ifndef BALLAST_KUBE_OBJECT_SET_H
#define BALLAST_KUBE_OBJECT_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/table.h"
#include "kube/watch_store.h"

struct listed_object;

struct object_set {
	struct table table;           /* uid → struct object_entry */
	size_t count;                 /* objects in it; an entry may still wait for its object */
	struct listed_object *listed; /* a list that isn't whole yet or not applied */
	size_t listed_count, listed_capacity;
	void *passing; /* no longer in the table, but still with a handler */
	bool closed;
	const struct watch_store_type *type;
	const struct watch_store_handler *handler;
	void *context;
};

/* Everything pointed at must outlive the set. Allocates nothing yet. */
void object_set_init(struct object_set *set, const struct watch_store_type *type,
                     const struct watch_store_handler *handler, void *context);
/* Releases all objects; calls no handler. Again: no-op. */
void object_set_close(struct object_set *set);
bool object_set_closed(const struct object_set *set);

/*
 * Takes one object of a list under way; nobody is told. False: the object was released (memory is short, or the limit
 * is reached), and the list can't become whole.
 */
bool object_set_list(struct object_set *set, void *object, struct slice uid, struct error *err);
size_t object_set_listed_count(const struct object_set *set);
/* Forgets the list under way. */
void object_set_drop_list(struct object_set *set);
/*
 * The list is whole and becomes the state, as one step that can't fail: what isn't in it is deleted, then in list
 * order what is known is updated and what isn't is added.
 */
void object_set_apply_list(struct object_set *set);

/*
 * Applies ADDED, MODIFIED or DELETED; the object is the set's from then on. False with one of the texts of 4.3 if it
 * contradicts the state (ERROR_INVARIANT), or when memory is short: a new list is needed, and the object is still the
 * caller's.
 */
bool object_set_apply_event(struct object_set *set, enum watch_store_event event, void *object, struct slice uid,
                            struct error *err);

/* Walks in the order of arrival; *position 0 starts. NULL at the end. */
void *object_set_next(const struct object_set *set, size_t *position);

#endif
