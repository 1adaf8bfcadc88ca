/*
 * Patches of JSON trees as the Kubernetes API server applies them: JSON patch (RFC 6902, with the server's own ideas of what may be
 * missing: spec surroundings 5.5.2) and merge patch (RFC 7386).
 */
#ifndef BALLAST_SANDBOX_JSON_PATCH_H
#define BALLAST_SANDBOX_JSON_PATCH_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "codec/json_tree.h"

enum { JSON_PATCH_OPERATIONS = 10000 }; /* as the original */

enum json_patch_outcome {
	JSON_PATCH_DONE,
	JSON_PATCH_MALFORMED, /* not the JSON of a patch; err has the original's text */
	JSON_PATCH_FAILED,    /* can't be applied to this object */
	JSON_PATCH_TOO_LONG,  /* too many operations; err has the original's text */
	JSON_PATCH_RESOURCE,  /* memory is short, or a limit of the tree is reached */
};

/* Both change *root, also when they fail halfway: give them a copy. New nodes are slices of patch and lie in the arena. */
enum json_patch_outcome json_patch_apply(struct slice patch, struct json_node *root, struct arena *arena,
                                         struct error *err);
enum json_patch_outcome json_merge_patch_apply(struct slice patch, struct json_node *root, struct arena *arena,
                                               struct error *err);

#endif
