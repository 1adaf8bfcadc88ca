#include "extender/cached_object.h"

#include <string.h>

#include "base/memory.h"
#include "extender/capacity_requests.h"
#include "extender/storage_size.h"
#include "gen/csi.gen.h"
#include "gen/kube.gen.h"
#include "gen/storage.gen.h"

static struct slice put(char **at, struct slice text)
{
	struct slice copy = slice_from(*at, text.length);

	if (text.length > 0)
		memcpy(*at, text.data, text.length);
	*at += text.length;
	return copy;
}

/* Room for the object, its uid, its key and `more` bytes; *ret_at is where those go. */
static struct cached_object *make(const struct kube_object_meta *meta, size_t more, char **ret_at, struct error *err)
{
	size_t length = meta->uid.length + meta->namespace.length + sizeof "/" - 1 + meta->name.length + more;
	struct cached_object *object;

	if (meta->uid.length == 0 || meta->name.length == 0) {
		error_set(err, ERROR_SYNTAX, "an object without %s", meta->uid.length == 0 ? "uid" : "name");
		return NULL;
	}
	object = memory_allocate(sizeof *object + length);
	if (object == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an object");
		return NULL;
	}
	*ret_at = (char *)(object + 1);
	object->uid = put(ret_at, meta->uid);
	object->key = slice_from(*ret_at, 0);
	if (meta->namespace.length > 0) {
		put(ret_at, meta->namespace);
		put(ret_at, SLICE("/"));
	}
	put(ret_at, meta->name);
	object->key.length = (size_t)(*ret_at - object->key.data);
	return object;
}

static struct slice find_pair(const struct json_pair *pairs, size_t count, struct slice key)
{
	const struct slice *found = json_pairs_find(pairs, count, key);

	return found != NULL ? *found : (struct slice){ 0 };
}

struct cached_object *cached_claim_decode(struct slice json, const struct extender_settings *settings,
                                          struct arena *arena, struct slice *ret_name, struct error *err)
{
	struct storage_persistent_volume_claim claim;
	struct cached_object *object;
	struct slice group;
	struct error ignored;
	char *at;

	(void)settings;
	arena_reset(arena);
	if (!storage_persistent_volume_claim_from_json(json, arena, &claim, err))
		return NULL;
	group = find_pair(claim.metadata.labels, claim.metadata.labels_count, STORAGE_GROUP_LABEL);
	object = make(&claim.metadata, claim.spec.storage_class_name.length + claim.status.phase.length + group.length,
	              &at, err);
	if (object == NULL)
		return NULL;
	object->claim = (struct claim_view){
		.has_class_name = claim.spec.has_storage_class_name,
		.class_name = put(&at, claim.spec.storage_class_name),
		.phase = put(&at, claim.status.phase),
		.storage_group = put(&at, group),
	};
	/* The API server lets no other text in; the list of all claims isn't to fail for one of them. */
	if (!storage_size_from_quantity(claim.spec.resources.requests.storage, &object->claim.size_bytes, &ignored))
		object->claim.size_bytes = 0;
	*ret_name = claim.metadata.name;
	return object;
}

struct cached_object *cached_class_decode(struct slice json, const struct extender_settings *settings,
                                          struct arena *arena, struct slice *ret_name, struct error *err)
{
	struct storage_storage_class class;
	struct cached_object *object;
	struct slice type;
	char *at;

	(void)settings;
	arena_reset(arena);
	if (!storage_storage_class_from_json(json, arena, &class, err))
		return NULL;
	type = find_pair(class.parameters, class.parameters_count, STORAGE_TYPE_PARAMETER);
	object = make(&class.metadata, class.provisioner.length + type.length, &at, err);
	if (object == NULL)
		return NULL;
	object->class.provisioner = put(&at, class.provisioner);
	object->class.storage_type = put(&at, type);
	*ret_name = class.metadata.name;
	return object;
}

struct cached_object *cached_volume_decode(struct slice json, const struct extender_settings *settings,
                                           struct arena *arena, struct slice *ret_name, struct error *err)
{
	struct csi_volume volume;
	struct cached_object *object;
	char *at;

	(void)settings;
	arena_reset(arena);
	if (!csi_volume_from_json(json, arena, &volume, err))
		return NULL;
	object = make(&volume.metadata, volume.spec.node_id.length, &at, err);
	if (object == NULL)
		return NULL;
	object->volume_node_id = put(&at, volume.spec.node_id);
	*ret_name = volume.metadata.name;
	return object;
}

struct cached_object *cached_node_decode(struct slice json, const struct extender_settings *settings,
                                         struct arena *arena, struct slice *ret_name, struct error *err)
{
	struct kube_bookmark node;
	struct extender_node_meta meta;
	struct cached_object *object;
	struct node_id id;
	char *at;

	arena_reset(arena);
	if (!kube_bookmark_from_json(json, arena, &node, err))
		return NULL;
	meta = (struct extender_node_meta){
		.name = node.metadata.name,
		.uid = node.metadata.uid,
		.labels = node.metadata.labels,
		.labels_count = node.metadata.labels_count,
		.annotations = node.metadata.annotations,
		.annotations_count = node.metadata.annotations_count,
	};
	id = node_id_of(settings, &meta);
	object = make(&node.metadata, id.id.length, &at, err);
	if (object == NULL)
		return NULL;
	object->node.outcome = id.outcome;
	object->node.id = put(&at, id.id);
	*ret_name = node.metadata.name;
	return object;
}
