#include "merge_patch.h"

#include "die.h"

/* NOLINTNEXTLINE(misc-no-recursion): no tree is deeper than JSON_MAX_DEPTH */
struct json_node *merge_patch_make(struct arena *arena, const struct json_node *before, const struct json_node *after)
{
	struct json_node *patch = json_tree_object(arena);
	bool ok = patch != NULL;

	for (const struct json_node *old = before->first; ok && old != NULL; old = old->next) {
		if (json_tree_member(after, old->key) == NULL)
			ok = json_tree_set(patch, old->key, json_tree_null(arena));
	}
	for (const struct json_node *new = after->first; ok &&new != NULL; new = new->next) {
		const struct json_node *old = json_tree_member(before, new->key);

		if (json_tree_equal(old, new))
			continue;
		if (old != NULL && old->kind == JSON_KIND_OBJECT && new->kind == JSON_KIND_OBJECT)
			ok = json_tree_set(patch, new->key, merge_patch_make(arena, old, new));
		else
			ok = json_tree_set(patch, new->key, json_tree_copy(arena, new));
	}
	if (!ok)
		die("no memory for a patch");
	return patch->count > 0 ? patch : NULL;
}
