/*
 * Writes: what the server itself sets in an object, the order of its keys, and what becomes of generation (spec surroundings 5.1, 5.5.3).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "codec/rfc3339.h"
#include "sandbox/object_store_internal.h"

enum { UID_BYTES = 37, POD_GRACE_S = 30 };

/* ---- the order of keys ---- */

static int rank(const char *const *first, size_t count, size_t unknown, struct slice key)
{
	for (size_t i = 0; i < count; i++)
		if (slice_equal_text(key, first[i]))
			return (int)i;
	return (int)unknown;
}

static int compare_top(struct slice a, struct slice b)
{
	static const char *const ORDER[] = { "kind", "apiVersion", "metadata", "", "spec", "status" };

	return rank(ORDER, 6, 3, a) - rank(ORDER, 6, 3, b);
}

static int compare_metadata(struct slice a, struct slice b)
{
	static const char *const ORDER[] = { "name",
		                             "generateName",
		                             "namespace",
		                             "uid",
		                             "resourceVersion",
		                             "generation",
		                             "creationTimestamp",
		                             "deletionTimestamp",
		                             "deletionGracePeriodSeconds",
		                             "labels",
		                             "annotations",
		                             "ownerReferences",
		                             "finalizers",
		                             "",
		                             "managedFields" };

	return rank(ORDER, 15, 13, a) - rank(ORDER, 15, 13, b);
}

static void order_keys(const struct resource_kind *kind, struct json_node *root)
{
	struct json_node *metadata = json_tree_find(root, "/metadata");

	if (kind->custom) {
		json_tree_sort(root);
		return;
	}
	json_tree_order(root, compare_top);
	json_tree_order(metadata, compare_metadata);
	json_tree_order(json_tree_find(metadata, "/labels"), slice_compare);
	json_tree_order(json_tree_find(metadata, "/annotations"), slice_compare);
}

/* ---- from a tree to a stored object ---- */

/* Labels and annotations hold strings; null stands for none. */
static bool check_texts(struct json_node *metadata, const char *key, struct error *err)
{
	const struct json_node *map = json_tree_member(metadata, slice_of(key));

	if (map != NULL && map->kind == JSON_KIND_NULL) {
		json_tree_remove(metadata, slice_of(key));
		return true;
	}
	if (map != NULL && map->kind != JSON_KIND_OBJECT)
		return error_set(err, ERROR_SYNTAX, "metadata.%s is no object", key);
	for (const struct json_node *entry = map != NULL ? map->first : NULL; entry != NULL; entry = entry->next)
		if (entry->kind != JSON_KIND_STRING)
			return error_set(err, ERROR_SYNTAX, "metadata.%s.%.*s is no string", key,
			                 SLICE_ARGS(entry->key));
	return true;
}

static bool copy_labels(struct stored_object *object, const struct json_node *labels)
{
	if (labels == NULL)
		return true;
	object->labels = arena_allocate_array(&object->arena, labels->count, sizeof *object->labels);
	if (object->labels == NULL)
		return false;
	for (const struct json_node *label = labels->first; label != NULL; label = label->next) {
		struct json_pair *pair = &object->labels[object->label_count++];

		if (!arena_copy(&object->arena, label->key, &pair->key) ||
		    !arena_copy(&object->arena, label->text, &pair->value))
			return false;
	}
	return true;
}

static struct stored_object *make_object(const struct resource_kind *kind, const struct json_node *root,
                                         uint64_t version, struct error *err)
{
	struct stored_object *object = memory_allocate(sizeof *object);
	struct buffer text;
	bool ok;

	if (object == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an object");
		return NULL;
	}
	object->kind = kind;
	object->version = version;
	object->references = 1;
	arena_init(&object->arena, 2 * OBJECT_STORE_OBJECT_BYTES);
	buffer_init(&text, OBJECT_STORE_OBJECT_BYTES);
	ok = json_tree_print(root, &text, err);
	if (ok && !(copy_labels(object, json_tree_find(root, "/metadata/labels")) &&
	            arena_copy(&object->arena, json_tree_text(json_tree_find(root, "/metadata/namespace")),
	                       &object->name_space) &&
	            arena_copy(&object->arena, json_tree_text(json_tree_find(root, "/metadata/name")), &object->name) &&
	            arena_copy(&object->arena, buffer_slice(&text), &object->text)))
		ok = error_set(err, ERROR_NO_MEMORY, "no memory for an object");
	buffer_destroy(&text);
	if (ok)
		return object;
	stored_object_release(object);
	return NULL;
}

static bool no_memory(struct error *err)
{
	return error_set(err, ERROR_NO_MEMORY, "no memory to write an object");
}

static bool set_version(struct json_node *root, struct arena *arena, uint64_t version, struct error *err)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, version);
	return json_tree_set_text(arena, json_tree_find(root, "/metadata"), SLICE("resourceVersion"), slice_of(text)) ||
	       no_memory(err);
}

static bool set_instant(struct json_node *root, struct arena *arena, struct slice key, int64_t wall_ns,
                        struct error *err)
{
	struct buffer text;
	bool ok;

	buffer_init(&text, 64);
	rfc3339_print_seconds(wall_ns, &text);
	ok = !text.failed && json_tree_set_text(arena, json_tree_find(root, "/metadata"), key, buffer_slice(&text));
	buffer_destroy(&text);
	return ok || no_memory(err);
}

static void make_uid(struct loop *loop, char text[UID_BYTES])
{
	uint64_t high = rng_next(loop_rng(loop));
	uint64_t low = rng_next(loop_rng(loop));

	snprintf(text, UID_BYTES, "%08x-%04x-4%03x-%04x-%012" PRIx64, (unsigned)(high >> 32),
	         (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xfff), (unsigned)(low >> 48 & 0x3fff) | 0x8000U,
	         low & 0xffffffffffff);
}

/* What every write does: kind and version at the top, texts checked, keys in order. */
static bool complete(const struct resource_kind *kind, struct json_node *root, struct arena *arena, struct error *err)
{
	char api_version[RESOURCE_API_VERSION_BYTES];
	struct json_node *metadata = json_tree_ensure(arena, root, SLICE("metadata"));

	resource_kind_api_version(kind, api_version);
	if (metadata == NULL || !json_tree_set_text(arena, root, SLICE("kind"), slice_of(kind->kind)) ||
	    !json_tree_set_text(arena, root, SLICE("apiVersion"), slice_of(api_version)))
		return no_memory(err);
	return check_texts(metadata, "labels", err) && check_texts(metadata, "annotations", err);
}

/* ---- add ---- */

static bool set_first_values(struct object_store *store, const struct resource_kind *kind, struct json_node *root,
                             struct arena *arena, struct error *err)
{
	char uid[UID_BYTES];
	struct json_node *metadata = json_tree_find(root, "/metadata");

	make_uid(store->loop, uid);
	json_tree_remove(metadata, SLICE("deletionTimestamp"));
	json_tree_remove(metadata, SLICE("deletionGracePeriodSeconds"));
	json_tree_remove(metadata, SLICE("generation"));
	if (!json_tree_set_text(arena, metadata, SLICE("uid"), slice_of(uid)))
		return no_memory(err);
	if (kind->custom && !json_tree_set(metadata, SLICE("generation"), json_tree_number(arena, 1)))
		return no_memory(err);
	return set_instant(root, arena, SLICE("creationTimestamp"), loop_wall_ns(store->loop), err) &&
	       set_version(root, arena, store->version + 1, err);
}

/* Stores a complete root, whose name must be free. */
static bool insert(struct object_store *store, const struct resource_kind *kind, struct json_node *root,
                   struct stored_object **ret_object, struct error *err)
{
	struct stored_object *object;

	order_keys(kind, root);
	object = make_object(kind, root, store->version + 1, err);
	if (object == NULL)
		return false;
	if (object->name.length == 0 || (object->name_space.length > 0) != kind->namespaced) {
		stored_object_release(object);
		return error_set(err, ERROR_SYNTAX, "%s need a name%s", kind->plural,
		                 kind->namespaced ? " and a namespace" : ", but no namespace");
	}
	if (object_store_find(store, kind, object->name_space, object->name) != NULL) {
		stored_object_release(object);
		return error_set(err, ERROR_REFUSED, "there is an object of that name");
	}
	if (!object_store_make_room(store, kind, err)) {
		stored_object_release(object);
		return false;
	}
	object_store_apply(store, &(struct object_change){ .type = OBJECT_ADDED, .after = object });
	if (ret_object != NULL)
		*ret_object = object;
	return true;
}

bool object_store_add(struct object_store *store, const struct resource_kind *kind, struct json_node *root,
                      struct arena *arena, struct stored_object **ret_object, struct error *err)
{
	return complete(kind, root, arena, err) && set_first_values(store, kind, root, arena, err) &&
	       insert(store, kind, root, ret_object, err);
}

/* ---- replace ---- */

/* What no write changes. */
static bool restore(struct json_node *root, const struct json_node *old, struct arena *arena, struct error *err)
{
	static const char *const KEPT[] = {
		"name",      "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"generation"
	};
	struct json_node *metadata = json_tree_find(root, "/metadata");
	const struct json_node *old_metadata = json_tree_find(old, "/metadata");
	const struct json_node *managed = json_tree_find(old_metadata, "/managedFields");

	for (size_t i = 0; i < sizeof KEPT / sizeof *KEPT; i++) {
		const struct json_node *value = json_tree_member(old_metadata, slice_of(KEPT[i]));

		if (value == NULL)
			json_tree_remove(metadata, slice_of(KEPT[i]));
		else if (!json_tree_set(metadata, slice_of(KEPT[i]), json_tree_copy(arena, value)))
			return no_memory(err);
	}
	if (managed != NULL && !json_tree_set(metadata, SLICE("managedFields"), json_tree_copy(arena, managed)))
		return no_memory(err);
	return true;
}

/* Whether anything but metadata and, where it is a subresource, status differs. */
static bool content_differs(const struct resource_kind *kind, const struct json_node *a, const struct json_node *b)
{
	const struct json_node *sides[] = { a, b };

	for (size_t i = 0; i < 2; i++) {
		for (const struct json_node *member = sides[i]->first; member != NULL; member = member->next) {
			if (slice_equal_text(member->key, "metadata") ||
			    (kind->has_status && slice_equal_text(member->key, "status")))
				continue;
			if (!json_tree_equal(member, json_tree_member(sides[1 - i], member->key)))
				return true;
		}
	}
	return false;
}

static bool raise_generation(struct json_node *root, struct arena *arena, struct error *err)
{
	struct json_node *metadata = json_tree_find(root, "/metadata");
	int64_t generation = 0;

	(void)json_tree_integer(json_tree_find(metadata, "/generation"), &generation);
	return json_tree_set(metadata, SLICE("generation"), json_tree_number(arena, generation + 1)) || no_memory(err);
}

static bool is_over(const struct json_node *root)
{
	const struct json_node *finalizers = json_tree_find(root, "/metadata/finalizers");

	return json_tree_find(root, "/metadata/deletionTimestamp") != NULL &&
	       (finalizers == NULL || finalizers->count == 0);
}

/* Stores root, whose keys are in order but for the version. */
static bool apply_tree(struct object_store *store, enum object_change_type type, struct stored_object *current,
                       struct json_node *root, struct arena *arena, struct stored_object **ret_object,
                       struct error *err)
{
	struct stored_object *object;

	if (!set_version(root, arena, store->version + 1, err) || !object_store_make_room(store, current->kind, err))
		return false;
	order_keys(current->kind, root);
	object = make_object(current->kind, root, store->version + 1, err);
	if (object == NULL)
		return false;
	object_store_apply(store, &(struct object_change){ .type = type, .before = current, .after = object });
	if (ret_object != NULL)
		*ret_object = object;
	return true;
}

static bool is_unchanged(const struct stored_object *current, struct json_node *root, struct arena *arena,
                         bool *ret_unchanged, struct error *err)
{
	struct buffer text;
	bool ok;

	if (!set_version(root, arena, current->version, err))
		return false;
	order_keys(current->kind, root);
	buffer_init(&text, 2 * OBJECT_STORE_OBJECT_BYTES);
	ok = json_tree_print(root, &text, err);
	*ret_unchanged = ok && slice_equal(buffer_slice(&text), current->text);
	buffer_destroy(&text);
	return ok;
}

bool object_store_replace(struct object_store *store, struct stored_object *current, struct json_node *root,
                          struct arena *arena, struct stored_object **ret_object, struct error *err)
{
	struct json_node *old;
	bool unchanged = false;

	if (!json_tree_parse(current->text, arena, &old, err) || !complete(current->kind, root, arena, err) ||
	    !restore(root, old, arena, err) || !is_unchanged(current, root, arena, &unchanged, err))
		return false;
	if (unchanged) {
		if (ret_object != NULL)
			*ret_object = current;
		return true;
	}
	if (current->kind->custom && content_differs(current->kind, old, root) && !raise_generation(root, arena, err))
		return false;
	return apply_tree(store, is_over(root) ? OBJECT_DELETED : OBJECT_MODIFIED, current, root, arena, ret_object,
	                  err);
}

/* ---- delete ---- */

static bool mark_deleted(struct object_store *store, struct stored_object *current, struct json_node *root,
                         struct arena *arena, int grace_s, struct stored_object **ret_object, struct error *err)
{
	struct json_node *metadata = json_tree_find(root, "/metadata");
	int64_t when_ns = loop_wall_ns(store->loop) + (int64_t)grace_s * NS_PER_S;

	if (!set_instant(root, arena, SLICE("deletionTimestamp"), when_ns, err))
		return false;
	if (!json_tree_set(metadata, SLICE("deletionGracePeriodSeconds"), json_tree_number(arena, grace_s)))
		return no_memory(err);
	if (current->kind->custom && !raise_generation(root, arena, err))
		return false;
	return apply_tree(store, OBJECT_MODIFIED, current, root, arena, ret_object, err);
}

bool object_store_delete(struct object_store *store, struct stored_object *current, struct stored_object **ret_object,
                         bool *ret_gone, struct error *err)
{
	struct arena arena;
	struct json_node *root;
	const struct json_node *finalizers;
	bool marked;
	bool held;
	bool ok;

	arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
	ok = json_tree_parse(current->text, &arena, &root, err);
	if (ok) {
		finalizers = json_tree_find(root, "/metadata/finalizers");
		held = finalizers != NULL && finalizers->count > 0;
		marked = json_tree_find(root, "/metadata/deletionTimestamp") != NULL;
		*ret_object = current;
		/* Pods are seen ending before they are gone; here both come at once. */
		if (!marked && (held || current->kind == resource_kind(RESOURCE_PODS)))
			ok = mark_deleted(store, current, root, &arena, held ? 0 : POD_GRACE_S, ret_object, err);
		if (ok && !held)
			ok = apply_tree(store, OBJECT_DELETED, *ret_object, root, &arena, ret_object, err);
		*ret_gone = ok && !held;
	}
	arena_destroy(&arena);
	return ok;
}

/* ---- a copy of what another server has ---- */

bool object_store_mirror(struct object_store *store, const struct resource_kind *kind, struct json_node *root,
                         struct arena *arena, struct error *err)
{
	struct stored_object *current =
		object_store_find(store, kind, json_tree_text(json_tree_find(root, "/metadata/namespace")),
	                          json_tree_text(json_tree_find(root, "/metadata/name")));

	if (!complete(kind, root, arena, err))
		return false;
	if (current != NULL)
		return apply_tree(store, OBJECT_MODIFIED, current, root, arena, NULL, err);
	return set_version(root, arena, store->version + 1, err) && insert(store, kind, root, NULL, err);
}

bool object_store_forget(struct object_store *store, struct stored_object *current, struct error *err)
{
	struct arena arena;
	struct json_node *root;
	bool ok;

	arena_init(&arena, OBJECT_STORE_ARENA_BYTES);
	ok = json_tree_parse(current->text, &arena, &root, err) &&
	     apply_tree(store, OBJECT_DELETED, current, root, &arena, NULL, err);
	arena_destroy(&arena);
	return ok;
}

/* ---- edits ---- */

bool object_edit_begin(struct object_edit *edit, struct stored_object *object, struct error *err)
{
	*edit = (struct object_edit){ 0 };
	arena_init(&edit->arena, OBJECT_STORE_ARENA_BYTES);
	if (!json_tree_parse(object->text, &edit->arena, &edit->root, err)) {
		arena_destroy(&edit->arena);
		*edit = (struct object_edit){ 0 };
		return false;
	}
	edit->object = stored_object_hold(object);
	return true;
}

bool object_edit_commit(struct object_edit *edit, struct object_store *store, struct error *err)
{
	return object_store_replace(store, edit->object, edit->root, &edit->arena, NULL, err);
}

void object_edit_end(struct object_edit *edit)
{
	stored_object_release(edit->object);
	arena_destroy(&edit->arena);
	*edit = (struct object_edit){ 0 };
}
