/*
 * The stand-in API server's database: objects of all kinds by namespace and name, a version counter that every write raises, and for each kind
 * a bounded history of changes (spec surroundings 5.2, 5.3).
 *
 * A stored object never changes: a write makes a new one, and those who hold an old one keep it. Its text is the whole object as the server
 * prints it. Observers are told of each change at once and must not write to the store from inside that.
 */
#ifndef BALLAST_SANDBOX_OBJECT_STORE_H
#define BALLAST_SANDBOX_OBJECT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "codec/json_tree.h"
#include "net/loop.h"
#include "sandbox/resource_kinds.h"

enum {
	OBJECT_STORE_OBJECTS = 1000000,          /* of one kind */
	OBJECT_STORE_OBJECT_BYTES = 1536 * 1024, /* one object's text: what etcd takes */
	OBJECT_STORE_ARENA_BYTES =
		64 * OBJECT_STORE_OBJECT_BYTES, /* for one write: tokens and trees of the old object and the new */
	OBJECT_STORE_HISTORY = 1024,            /* changes remembered for each kind (the original: about 100 or more) */
};

struct object_store;

struct stored_object {
	const struct resource_kind *kind;
	uint64_t version;        /* metadata.resourceVersion */
	struct slice name_space; /* empty for kinds without */
	struct slice name;
	struct slice text;
	struct json_pair *labels;
	size_t label_count;
	unsigned references;
	struct arena arena;
};

enum object_change_type { OBJECT_ADDED, OBJECT_MODIFIED, OBJECT_DELETED };

/* before is NULL for ADDED. after of DELETED: the last state, with the version of the deletion. */
struct object_change {
	enum object_change_type type;
	struct stored_object *before, *after;
};

struct object_observer {
	struct object_observer *next, *previous;
	void (*on_change)(void *context, const struct object_change *change);
	void *context;
};

/* The loop gives time and randomness (uids). */
struct object_store *object_store_create(struct loop *loop, struct error *err);
void object_store_destroy(struct object_store *store); /* NULL is fine; observers are forgotten */
uint64_t object_store_version(const struct object_store *store);
void object_store_observe(struct object_store *store, struct object_observer *observer);
void object_store_ignore(struct object_observer *observer); /* no-op if it isn't observing */

struct stored_object *stored_object_hold(struct stored_object *object);
void stored_object_release(struct stored_object *object); /* NULL is fine */

/* NULL if there is none. Not held. */
struct stored_object *object_store_find(const struct object_store *store, const struct resource_kind *kind,
                                        struct slice name_space, struct slice name);
size_t object_store_count(const struct object_store *store, const struct resource_kind *kind);
/* In the order of namespace and name; index below the count. Not held. */
struct stored_object *object_store_at(const struct object_store *store, const struct resource_kind *kind, size_t index);

/* ---- the past ---- */

/* Changes after this version are all remembered; 0: everything is. */
uint64_t object_store_floor(const struct object_store *store, const struct resource_kind *kind);
/* The index-th remembered change, oldest first; NULL behind the last one. */
const struct object_change *object_store_change(const struct object_store *store, const struct resource_kind *kind,
                                                size_t index);
/* Forgets all changes, and raises the version: whatever version anybody knows is too old now. */
void object_store_compact(struct object_store *store);

/* The objects of a kind as they were at a version between floor and now, in order; each held. */
struct object_snapshot {
	struct stored_object **objects;
	size_t count;
};

bool object_store_snapshot(const struct object_store *store, const struct resource_kind *kind, uint64_t version,
                           struct object_snapshot *ret_snapshot, struct error *err);
void object_snapshot_release(struct object_snapshot *snapshot); /* also fine on a zeroed one */

/* ---- writes ----
 *
 * root is the object as a tree with its nodes in arena; the store completes and orders it. Names must be as the kind wants them, and labels and
 * annotations must hold strings only, or the write is refused (ERROR_SYNTAX). *ret_object (may be NULL) isn't held.
 */

/* Sets uid, creationTimestamp, resourceVersion, and a custom object's generation. ERROR_REFUSED if the name is taken. */
bool object_store_add(struct object_store *store, const struct resource_kind *kind, struct json_node *root,
                      struct arena *arena, struct stored_object **ret_object, struct error *err);
/*
 * Replaces current, which must be the newest. What a write can't change is put back (name, uid, creationTimestamp, …); generation
 * rises when a custom object changed outside of metadata and status. If nothing changed, nothing is written: *ret_object is current. An object
 * that is marked as deleted goes when its last finalizer does; *ret_object is its last state then.
 */
bool object_store_replace(struct object_store *store, struct stored_object *current, struct json_node *root,
                          struct arena *arena, struct stored_object **ret_object, struct error *err);
/* Removes current, or marks it as deleted if it has finalizers. *ret_object: its last state; *ret_gone: whether it was removed. */
bool object_store_delete(struct object_store *store, struct stored_object *current, struct stored_object **ret_object,
                         bool *ret_gone, struct error *err);

/*
 * For a store that follows another server: the object as it is there, added or put in the place of the one of that name. All of root is taken as
 * it stands, uid and marks of deletion too, but for resourceVersion, which is this store's own.
 */
bool object_store_mirror(struct object_store *store, const struct resource_kind *kind, struct json_node *root,
                         struct arena *arena, struct error *err);
/* current is gone there: it is removed at once, whatever finalizers it has. */
bool object_store_forget(struct object_store *store, struct stored_object *current, struct error *err);

/* ---- changing an object from inside the program ---- */

/* An object's tree to be changed and written back. */
struct object_edit {
	struct stored_object *object; /* held */
	struct json_node *root;
	struct arena arena;
};

/* Zeroed on failure. */
bool object_edit_begin(struct object_edit *edit, struct stored_object *object, struct error *err);
bool object_edit_commit(struct object_edit *edit, struct object_store *store, struct error *err);
void object_edit_end(struct object_edit *edit); /* also fine on a zeroed one */

#endif
