#include "extender/node_id.h"

#include "codec/json_reader.h"

/* Written by csi-baremetal's node controller (spec N2, N5). */
#define NODE_ID_ANNOTATION SLICE("nodes.csi-baremetal.dell.com/uuid")

static struct slice annotation_key(const struct extender_settings *settings)
{
	return settings->use_external_annotation ? settings->node_id_annotation : NODE_ID_ANNOTATION;
}

/* N3 */
static enum node_id_outcome select_node(struct slice selector, const struct extender_node_meta *meta)
{
	struct slice value = selector;
	struct slice key = slice_take_until(&value, '=');
	const struct slice *label;

	if (key.length == selector.length || slice_contains(value, SLICE("=")))
		return NODE_ID_BAD_SELECTOR;
	label = json_pairs_find(meta->labels, meta->labels_count, key);
	return label != NULL && slice_equal(*label, value) ? NODE_ID_FOUND : NODE_ID_NOT_SELECTED;
}

struct node_id node_id_of(const struct extender_settings *settings, const struct extender_node_meta *meta)
{
	const struct slice *annotation;
	struct node_id node = { .outcome = NODE_ID_FOUND };

	if (!settings->use_node_annotation) {
		if (meta->uid.length == 0)
			node.outcome = NODE_ID_NO_UID;
		node.id = meta->uid;
		return node;
	}
	if (settings->node_selector.length > 0)
		node.outcome = select_node(settings->node_selector, meta);
	if (node.outcome != NODE_ID_FOUND)
		return node;

	struct slice key = annotation_key(settings);

	if (key.length == 0) {
		node.outcome = NODE_ID_NO_ANNOTATION_KEY;
		return node;
	}
	annotation = json_pairs_find(meta->annotations, meta->annotations_count, key);
	if (annotation == NULL)
		node.outcome = NODE_ID_NO_ANNOTATION;
	else if (annotation->length == 0)
		node.outcome = NODE_ID_ANNOTATION_EMPTY;
	else
		node.id = *annotation;
	return node;
}

bool node_id_is_error(enum node_id_outcome outcome)
{
	switch (outcome) {
	case NODE_ID_NO_UID:
	case NODE_ID_NO_ANNOTATION:
	case NODE_ID_NO_ANNOTATION_KEY:
	case NODE_ID_UNKNOWN_NODE:
		return true;
	default:
		return false;
	}
}

void node_id_print_reason(const struct extender_settings *settings, enum node_id_outcome outcome, struct buffer *out)
{
	struct slice key = annotation_key(settings);

	switch (outcome) {
	case NODE_ID_FOUND:
	case NODE_ID_OUTCOMES:
		break;
	case NODE_ID_NOT_SELECTED:
		buffer_append_format(out, "node doesn't have the label %.*s that local volumes need",
		                     SLICE_ARGS(settings->node_selector));
		break;
	case NODE_ID_BAD_SELECTOR:
		buffer_append_format(out, "the extender's node selector \"%.*s\" isn't key=value",
		                     SLICE_ARGS(settings->node_selector));
		break;
	case NODE_ID_ANNOTATION_EMPTY:
		buffer_append_format(out, "node's annotation %.*s is empty", SLICE_ARGS(key));
		break;
	case NODE_ID_NO_UID:
		buffer_append_text(out, "node has no uid");
		break;
	case NODE_ID_NO_ANNOTATION:
		buffer_append_format(out, "node doesn't have the annotation %.*s with its id", SLICE_ARGS(key));
		break;
	case NODE_ID_NO_ANNOTATION_KEY:
		buffer_append_text(out, "the extender isn't told which annotation has the node's id");
		break;
	case NODE_ID_UNKNOWN_NODE:
		buffer_append_text(out, "node isn't known to the extender yet");
		break;
	}
}
