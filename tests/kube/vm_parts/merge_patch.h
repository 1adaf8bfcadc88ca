/*
 * JSON merge patches (RFC 7386), as the API server takes them.
 */
#ifndef BALLAST_TESTS_KUBE_MERGE_PATCH_H
#define BALLAST_TESTS_KUBE_MERGE_PATCH_H

#include "base/arena.h"
#include "codec/json_tree.h"

/* What makes the object before into after, in the arena; NULL if they are equal. */
struct json_node *merge_patch_make(struct arena *arena, const struct json_node *before, const struct json_node *after);

#endif
