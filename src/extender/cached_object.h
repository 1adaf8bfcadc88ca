/*
 * The objects in the caches: one block each, with its texts behind it.
 */
#ifndef BALLAST_EXTENDER_CACHED_OBJECT_H
#define BALLAST_EXTENDER_CACHED_OBJECT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "extender/settings.h"
#include "extender/storage_view.h"

struct cached_object {
	struct slice uid;
	struct slice key; /* by which it is looked up: "namespace/name", or its name */
	union {
		struct claim_view claim;
		struct class_view class;
		struct slice volume_node_id;
		struct node_id node;
	};
};

/*
 * Each reads one object. *ret_name lies in json or the arena, which it resets first. NULL with *err: not an object of that
 * kind, without uid, or out of memory. memory_release frees the result.
 */
typedef struct cached_object *cached_object_decoder(struct slice json, const struct extender_settings *settings,
                                                    struct arena *arena, struct slice *ret_name, struct error *err);

cached_object_decoder cached_claim_decode;
cached_object_decoder cached_class_decode;
cached_object_decoder cached_volume_decode;
cached_object_decoder cached_node_decode;

#endif
