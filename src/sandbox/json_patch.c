#include "sandbox/json_patch.h"

#include "codec/json_reader.h"

struct patching {
	struct json_node *root;
	struct arena *arena;
	struct error *err;
};

/* Where an operation acts. */
struct target {
	struct json_node *parent;
	struct slice key; /* the last part of the path */
	size_t depth;     /* of what is put there */
};

static enum json_patch_outcome resource(const struct patching *patching)
{
	error_set(patching->err, ERROR_NO_MEMORY, "no memory, or no room, for what a patch adds");
	return JSON_PATCH_RESOURCE;
}

static enum json_patch_outcome failed(const struct patching *patching, const char *why)
{
	error_set(patching->err, ERROR_REFUSED, "%s", why);
	return JSON_PATCH_FAILED;
}

/* ---- finding the place ---- */

static struct json_node *child(const struct json_node *parent, struct slice part)
{
	uint64_t index;

	if (parent->kind == JSON_KIND_ARRAY)
		return slice_to_u64(part, &index) ? json_tree_item(parent, index) : NULL;
	return json_tree_member(parent, part);
}

static enum json_patch_outcome find_target(const struct patching *patching, const struct json_node *operation,
                                           const char *key, struct target *ret_target)
{
	const struct json_node *path = json_tree_member(operation, slice_of(key));
	struct target target = { .parent = patching->root, .depth = 1 };
	struct slice rest = json_tree_text(path);

	if (rest.length == 0 || rest.data[0] != '/')
		return failed(patching, "a path doesn't begin with a slash");
	for (;; target.depth++) {
		if (!json_pointer_next(&rest, patching->arena, &target.key, patching->err))
			return JSON_PATCH_RESOURCE;
		if (target.parent->kind != JSON_KIND_OBJECT && target.parent->kind != JSON_KIND_ARRAY)
			return failed(patching, "a path leads through a value that is no object or array");
		if (rest.length == 0)
			break;
		target.parent = child(target.parent, target.key);
		if (target.parent == NULL)
			return failed(patching, "a path's parent is missing");
	}
	*ret_target = target;
	return JSON_PATCH_DONE;
}

/* ---- operations ---- */

/* A missing value counts as null. */
static struct json_node *take_value(const struct patching *patching, const struct json_node *operation)
{
	const struct json_node *value = json_tree_member(operation, SLICE("value"));

	return value != NULL ? json_tree_copy(patching->arena, value) : json_tree_null(patching->arena);
}

static enum json_patch_outcome put(const struct patching *patching, const struct target *target,
                                   struct json_node *value, bool replace)
{
	struct json_node *parent = target->parent;
	uint64_t index;

	if (value == NULL || target->depth + json_tree_depth(value) > JSON_MAX_DEPTH)
		return resource(patching);
	if (parent->kind == JSON_KIND_OBJECT)
		return json_tree_set(parent, target->key, value) ? JSON_PATCH_DONE : resource(patching);
	if (!replace && slice_equal_text(target->key, "-"))
		return json_tree_append(parent, value) ? JSON_PATCH_DONE : resource(patching);
	if (!slice_to_u64(target->key, &index))
		return failed(patching, "an array's index is no number");
	if (replace ? json_tree_replace_item(parent, index, value) : json_tree_insert(parent, index, value))
		return JSON_PATCH_DONE;
	return failed(patching, "an array's index is beyond its end");
}

static bool take_out(const struct target *target)
{
	uint64_t index;

	if (target->parent->kind == JSON_KIND_OBJECT)
		return json_tree_remove(target->parent, target->key);
	return slice_to_u64(target->key, &index) && json_tree_remove_item(target->parent, index);
}

static enum json_patch_outcome test(const struct patching *patching, const struct json_node *operation,
                                    const struct target *target)
{
	static const struct json_node NOTHING = { .kind = JSON_KIND_NULL };
	const struct json_node *there = child(target->parent, target->key);
	const struct json_node *wanted = json_tree_member(operation, SLICE("value"));

	if (there == NULL && target->parent->kind == JSON_KIND_ARRAY)
		return failed(patching, "an array's index is beyond its end");
	if (json_tree_equal(there != NULL ? there : &NOTHING, wanted != NULL ? wanted : &NOTHING))
		return JSON_PATCH_DONE;
	return failed(patching, "a tested value differs");
}

/* move and copy. */
static enum json_patch_outcome transfer(const struct patching *patching, const struct json_node *operation, bool move)
{
	struct target from;
	struct target to;
	struct json_node *value;
	enum json_patch_outcome outcome = find_target(patching, operation, "from", &from);

	if (outcome != JSON_PATCH_DONE)
		return outcome;
	value = child(from.parent, from.key);
	if (value == NULL)
		return failed(patching, "what is to be moved or copied is missing");
	value = json_tree_copy(patching->arena, value);
	if (move)
		(void)take_out(&from);
	outcome = find_target(patching, operation, "path", &to);
	return outcome == JSON_PATCH_DONE ? put(patching, &to, value, false) : outcome;
}

static enum json_patch_outcome apply(const struct patching *patching, const struct json_node *operation)
{
	struct slice name = json_tree_text(json_tree_member(operation, SLICE("op")));
	struct target target;
	enum json_patch_outcome outcome;

	if (slice_equal_text(name, "move") || slice_equal_text(name, "copy"))
		return transfer(patching, operation, slice_equal_text(name, "move"));
	outcome = find_target(patching, operation, "path", &target);
	if (outcome != JSON_PATCH_DONE)
		return outcome;
	if (slice_equal_text(name, "add") || slice_equal_text(name, "replace"))
		return put(patching, &target, take_value(patching, operation), slice_equal_text(name, "replace"));
	if (slice_equal_text(name, "remove"))
		return take_out(&target) ? JSON_PATCH_DONE : failed(patching, "what is to be removed is missing");
	if (slice_equal_text(name, "test"))
		return test(patching, operation, &target);
	return failed(patching, "an operation is unknown");
}

/* ---- reading ---- */

static enum json_patch_outcome read_patch(struct slice patch, struct arena *arena, struct json_node **ret_patch,
                                          struct error *err)
{
	struct json_reader reader;
	char text[512];

	if (json_reader_open(&reader, patch, arena, err) && json_tree_read(&reader, ret_patch, err) &&
	    json_reader_finish(&reader, err))
		return JSON_PATCH_DONE;
	if (err->code != ERROR_SYNTAX)
		return JSON_PATCH_RESOURCE;
	json_problem_reference_text(&reader.problem, false, text, sizeof text);
	error_set(err, ERROR_SYNTAX, "%s", text);
	return JSON_PATCH_MALFORMED;
}

static const char *kind_name(enum json_kind kind)
{
	static const char *const NAMES[] = {
		[JSON_KIND_NULL] = "null",     [JSON_KIND_BOOL] = "bool",   [JSON_KIND_NUMBER] = "number",
		[JSON_KIND_STRING] = "string", [JSON_KIND_ARRAY] = "array", [JSON_KIND_OBJECT] = "object"
	};

	return NAMES[kind];
}

static enum json_patch_outcome check_shape(const struct json_node *patch, struct error *err)
{
	if (patch->kind == JSON_KIND_NULL)
		return JSON_PATCH_DONE;
	if (patch->kind != JSON_KIND_ARRAY) {
		error_set(err, ERROR_SYNTAX, "json: cannot unmarshal %s into Go value of type jsonpatch.Patch",
		          kind_name(patch->kind));
		return JSON_PATCH_MALFORMED;
	}
	if (patch->count > JSON_PATCH_OPERATIONS) {
		error_set(err, ERROR_LIMIT, "The allowed maximum operations in a JSON patch is %d, got %zu",
		          JSON_PATCH_OPERATIONS, patch->count);
		return JSON_PATCH_TOO_LONG;
	}
	for (const struct json_node *item = patch->first; item != NULL; item = item->next) {
		if (item->kind != JSON_KIND_OBJECT && item->kind != JSON_KIND_NULL) {
			error_set(err, ERROR_SYNTAX,
			          "json: cannot unmarshal %s into Go value of type jsonpatch.Operation",
			          kind_name(item->kind));
			return JSON_PATCH_MALFORMED;
		}
	}
	return JSON_PATCH_DONE;
}

enum json_patch_outcome json_patch_apply(struct slice patch, struct json_node *root, struct arena *arena,
                                         struct error *err)
{
	struct patching patching = { .root = root, .arena = arena, .err = err };
	struct json_node *operations = NULL;
	enum json_patch_outcome outcome = read_patch(patch, arena, &operations, err);

	if (outcome == JSON_PATCH_DONE)
		outcome = check_shape(operations, err);
	if (outcome != JSON_PATCH_DONE)
		return outcome;
	for (const struct json_node *item = operations->first; item != NULL && outcome == JSON_PATCH_DONE;
	     item = item->next)
		outcome = apply(&patching, item);
	return outcome;
}

/* ---- merge patch ---- */

/* NOLINTBEGIN(misc-no-recursion): as deep as the patch, which is at most JSON_MAX_DEPTH */

/* A value that is put where there was nothing loses its nulls too. */
static bool merge(struct json_node *target, const struct json_node *patch, struct arena *arena)
{
	for (const struct json_node *change = patch->first; change != NULL; change = change->next) {
		struct json_node *there;

		if (change->kind == JSON_KIND_NULL) {
			json_tree_remove(target, change->key);
			continue;
		}
		if (change->kind != JSON_KIND_OBJECT) {
			if (!json_tree_set(target, change->key, json_tree_copy(arena, change)))
				return false;
			continue;
		}
		there = json_tree_ensure(arena, target, change->key);
		if (there == NULL || !merge(there, change, arena))
			return false;
	}
	return true;
}

/* NOLINTEND(misc-no-recursion) */

enum json_patch_outcome json_merge_patch_apply(struct slice patch, struct json_node *root, struct arena *arena,
                                               struct error *err)
{
	struct patching patching = { .root = root, .arena = arena, .err = err };
	struct json_node *changes = NULL;
	enum json_patch_outcome outcome = read_patch(patch, arena, &changes, err);

	if (outcome == JSON_PATCH_DONE && changes->kind != JSON_KIND_OBJECT)
		outcome = JSON_PATCH_MALFORMED;
	if (outcome == JSON_PATCH_MALFORMED)
		error_set(err, ERROR_SYNTAX, "Invalid JSON Patch");
	if (outcome != JSON_PATCH_DONE)
		return outcome;
	return merge(root, changes, arena) ? JSON_PATCH_DONE : resource(&patching);
}
