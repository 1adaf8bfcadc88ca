/*
 * The identity of a node in csi-baremetal's objects, which isn't its name (spec extender 4).
 */
#ifndef BALLAST_EXTENDER_NODE_ID_H
#define BALLAST_EXTENDER_NODE_ID_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "extender/settings.h"
#include "gen/extender.gen.h"

/* Whether a node has an id, or why it has none. */
enum node_id_outcome {
	NODE_ID_FOUND,
	/* silently not ours */
	NODE_ID_NOT_SELECTED, /* the label of --nodeselector is missing or has another value */
	NODE_ID_BAD_SELECTOR, /* --nodeselector isn't key=value, so no node is selected */
	NODE_ID_ANNOTATION_EMPTY,
	/* worth a line in the log */
	NODE_ID_NO_UID,
	NODE_ID_NO_ANNOTATION,
	NODE_ID_NO_ANNOTATION_KEY, /* --useexternalannotation without --nodeidannotation */
	NODE_ID_UNKNOWN_NODE,      /* by name only: the cache of nodes doesn't have it */
	NODE_ID_OUTCOMES           /* their number */
};

struct node_id {
	enum node_id_outcome outcome;
	struct slice id; /* NODE_ID_FOUND: not empty */
};

/* The id's slice lies in the metadata. */
struct node_id node_id_of(const struct extender_settings *settings, const struct extender_node_meta *meta);
/* Whether the outcome is an error rather than a node that isn't ours. */
bool node_id_is_error(enum node_id_outcome outcome);
/*
 * Appends why a node has no id, as a person reads it in a pod's events; equal for all nodes of the same outcome, so
 * that the scheduler counts them as one reason.
 */
void node_id_print_reason(const struct extender_settings *settings, enum node_id_outcome outcome, struct buffer *out);

#endif
