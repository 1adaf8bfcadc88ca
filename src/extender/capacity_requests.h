/*
 * What a pod needs of our storage: one capacity request for each of its volumes that is ours (spec extender 5 and 20).
 *
 * Decision 8 of the spec's README holds: without a StorageClass of ours pods pass as if nothing of theirs were ours.
 */
#ifndef BALLAST_EXTENDER_CAPACITY_REQUESTS_H
#define BALLAST_EXTENDER_CAPACITY_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "extender/settings.h"
#include "extender/storage_view.h"
#include "gen/extender.gen.h"

/* On claims and claim templates (spec G8). */
#define STORAGE_GROUP_LABEL SLICE("drive.csi-baremetal.dell.com/storage-group")
/* In a class's parameters (spec G1). */
#define STORAGE_TYPE_PARAMETER SLICE("storageType")

struct capacity_request {
	struct slice name;         /* the claim's, by which the controller will look for it (spec R7) */
	struct slice storage_type; /* one of the eight of spec G3 */
	int64_t size_bytes;
	struct slice storage_group;
};

/* What became of one of the pod's volumes. */
enum volume_verdict {
	VOLUME_REQUESTED,
	/* passed over */
	VOLUME_OTHER_KIND, /* neither claim nor ephemeral, nor an inline volume of ours */
	VOLUME_NO_CLASS,
	VOLUME_BOUND,
	VOLUME_LOST,
	VOLUME_FOREIGN_CLASS,
	VOLUME_FOREIGN_DRIVER, /* with inline volumes: a csi source of another driver */
	/* nothing can be said yet: the walk ends (spec G6) */
	VOLUME_CLAIM_MISSING,
	VOLUME_CLASS_UNKNOWN,
};

struct volume_note {
	struct slice volume; /* its name in the pod */
	enum volume_verdict verdict;
	struct slice claim; /* the claim's name, if it has one */
	struct slice class_name;
	/* Inline volumes (spec L3): what can't be read, for a warning. */
	bool bad_storage_type; /* volumeAttributes.storageType is missing */
	bool bad_size;         /* volumeAttributes.size is missing or unparsable */
};

enum capacity_outcome {
	CAPACITY_KNOWN, /* requests, maybe none */
	CAPACITY_RETRY, /* stopped: the last note says at which volume */
};

struct capacity_plan {
	enum capacity_outcome outcome;
	struct capacity_request *requests;
	size_t request_count;
	struct volume_note *notes; /* one for each volume up to the last one looked at */
	size_t note_count;
};

/*
 * Everything in *ret_plan lies in the arena or the pod. ERROR_SYNTAX: a template's size isn't a quantity. ERROR_LIMIT,
 * ERROR_NO_MEMORY.
 */
bool capacity_plan_make(const struct extender_settings *settings, const struct storage_view *view,
                        const struct extender_pod *pod, struct arena *arena, struct capacity_plan *ret_plan,
                        struct error *err);
/* The storage type that a class's parameter means (spec G3); a slice of constant text. */
struct slice storage_type_of(struct slice parameter);
/* Whether a note is worth a line in the log (spec I14): a volume that asks for storage but got no request. */
bool volume_note_is_worth_logging(const struct volume_note *note);
/* Appends one sentence: what became of the volume and why. */
void volume_note_print(const struct volume_note *note, struct buffer *out);

#endif
