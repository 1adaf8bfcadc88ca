#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec/rfc3339.h"
#include "sandbox/kube_scheduler_internal.h"
#include "sandbox/storage_objects.h"

enum { MESSAGE_BYTES = 512, INSTANT_BYTES = 64, EVENT_NAME_BYTES = KUBE_SCHEDULER_NAME_BYTES + 32 };

static struct stored_object *find_pod(const struct kube_scheduler *scheduler, const struct scheduled_pod *pod)
{
	return object_store_find(scheduler->options.store, resource_kind(RESOURCE_PODS), slice_of(pod->name_space),
	                         slice_of(pod->name));
}

/* ---- claims ---- */

/* Of a volume of the pod; empty if it has none. */
static struct slice claim_name(const struct json_node *volume, struct slice pod_name, struct arena *arena)
{
	struct slice name = storage_text(volume, "/persistentVolumeClaim/claimName"), copy;
	char text[2 * KUBE_SCHEDULER_NAME_BYTES];

	if (name.length > 0 || json_tree_find(volume, "/ephemeral") == NULL)
		return name;
	(void)snprintf(text, sizeof text, "%.*s-%.*s", SLICE_ARGS(pod_name), SLICE_ARGS(storage_text(volume, "/name")));
	return arena_copy(arena, slice_of(text), &copy) ? copy : slice_from(NULL, 0);
}

/* Calls use for each claim of the pod; object is NULL if it isn't there. False as soon as use says so. */
static bool each_claim(const struct kube_scheduler *scheduler, const struct json_node *pod, struct slice name_space,
                       struct arena *arena, bool (*use)(void *context, struct slice name, struct stored_object *object),
                       void *context)
{
	const struct json_node *volumes = json_tree_find(pod, "/spec/volumes");
	const struct json_node *volume = volumes != NULL && volumes->kind == JSON_KIND_ARRAY ? volumes->first : NULL;

	for (; volume != NULL; volume = volume->next) {
		struct slice name = claim_name(volume, storage_text(pod, "/metadata/name"), arena);

		if (name.length > 0 &&
		    !use(context, name,
		         object_store_find(scheduler->options.store, resource_kind(RESOURCE_CLAIMS), name_space, name)))
			return false;
	}
	return true;
}

/* ---- the beginning of an attempt ---- */

struct bound_place {
	const struct kube_scheduler *scheduler;
	struct arena *arena;
	struct slice node; /* where a bound claim's volume is; empty: none is bound */
	struct slice missing;
};

static bool look_at_claim(void *context, struct slice name, struct stored_object *object)
{
	struct bound_place *place = context;
	const struct stored_object *volume;
	struct storage_claim claim;
	struct json_node *root;
	struct error err;

	if (object == NULL || !storage_read_claim(object, place->arena, &claim, &err)) {
		place->missing = name;
		return false;
	}
	if (!slice_equal_text(claim.phase, "Bound"))
		return true;
	volume = object_store_find(place->scheduler->options.store, resource_kind(RESOURCE_PERSISTENT_VOLUMES),
	                           slice_from(NULL, 0), claim.volume_name);
	if (volume != NULL && storage_parse(volume, place->arena, &root, &err))
		place->node = storage_text(
			root, "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0");
	return true;
}

bool scheduler_pod_begin(const struct kube_scheduler *scheduler, struct attempt *attempt, struct error *err)
{
	const struct object_store *store = scheduler->options.store;
	const struct resource_kind *kind = resource_kind(RESOURCE_NODES);
	const struct stored_object *object = find_pod(scheduler, attempt->pod);
	struct bound_place place = { .scheduler = scheduler, .arena = &attempt->arena };
	size_t count = object_store_count(store, kind);
	struct json_node *root;

	if (object == NULL)
		return error_set(err, ERROR_REFUSED, "the pod is gone");
	attempt->nodes = arena_allocate_array(&attempt->arena, count + 1, sizeof *attempt->nodes);
	if (attempt->nodes == NULL || !arena_copy(&attempt->arena, object->text, &attempt->pod_text))
		return error_set(err, ERROR_NO_MEMORY, "no memory to schedule a pod");
	if (!json_tree_parse(attempt->pod_text, &attempt->arena, &root, err))
		return false;
	if (!each_claim(scheduler, root, slice_of(attempt->pod->name_space), &attempt->arena, look_at_claim, &place))
		return error_set(err, ERROR_REFUSED, "persistentvolumeclaim \"%.*s\" not found",
		                 SLICE_ARGS(place.missing));
	for (size_t i = 0; i < count; i++) {
		const struct stored_object *node = object_store_at(store, kind, i);
		struct node_choice *choice = &attempt->nodes[attempt->node_count];

		if (place.node.length > 0 && !slice_equal(place.node, node->name))
			continue;
		if (!arena_copy(&attempt->arena, node->name, &choice->name) ||
		    !arena_copy(&attempt->arena, node->text, &choice->text))
			return error_set(err, ERROR_NO_MEMORY, "no memory to schedule a pod");
		attempt->node_count++;
	}
	return attempt->node_count > 0 || error_set(err, ERROR_REFUSED, "no node has the pod's volumes");
}

/* ---- volumes ---- */

struct claim_work {
	struct kube_scheduler *scheduler;
	const char *node; /* NULL: to be taken away */
	struct arena arena;
	enum claims_state state;
	struct error *err;
};

static bool set_selected_node(struct claim_work *work, struct stored_object *object)
{
	struct json_node *annotations;
	struct object_edit edit;
	bool ok;

	if (!object_edit_begin(&edit, object, work->err))
		return false;
	annotations = json_tree_ensure(&edit.arena, json_tree_find(edit.root, "/metadata"), SLICE("annotations"));
	if (work->node == NULL)
		ok = json_tree_remove(annotations, SLICE(STORAGE_SELECTED_NODE)) || annotations != NULL;
	else
		ok = json_tree_set_text(&edit.arena, annotations, SLICE(STORAGE_SELECTED_NODE), slice_of(work->node));
	ok = ok ? object_edit_commit(&edit, work->scheduler->options.store, work->err)
	        : error_set(work->err, ERROR_NO_MEMORY, "no memory for a claim");
	object_edit_end(&edit);
	return ok;
}

static bool select_for_claim(void *context, struct slice name, struct stored_object *object)
{
	struct claim_work *work = context;
	struct storage_claim claim;

	if (object == NULL)
		return work->node == NULL ||
		       error_set(work->err, ERROR_REFUSED, "claim %.*s is gone", SLICE_ARGS(name));
	if (!storage_read_claim(object, &work->arena, &claim, work->err))
		return false;
	return slice_equal_text(claim.phase, "Bound") || set_selected_node(work, object);
}

static bool look_at_state(void *context, struct slice name, struct stored_object *object)
{
	struct claim_work *work = context;
	struct storage_claim claim;

	(void)name;
	if (object == NULL || !storage_read_claim(object, &work->arena, &claim, work->err)) {
		work->state = CLAIMS_FAILED;
		return false;
	}
	if (slice_equal_text(claim.phase, "Bound"))
		return true;
	work->state = slice_equal_text(claim.selected_node, work->node) ? CLAIMS_PENDING : CLAIMS_FAILED;
	return work->state == CLAIMS_PENDING;
}

static bool walk_claims(struct claim_work *work, const struct scheduled_pod *pod,
                        bool (*use)(void *context, struct slice name, struct stored_object *object))
{
	const struct stored_object *object = find_pod(work->scheduler, pod);
	struct json_node *root;
	bool ok;

	if (object == NULL)
		return error_set(work->err, ERROR_REFUSED, "the pod is gone");
	arena_init(&work->arena, STORAGE_ARENA_BYTES);
	ok = storage_parse(object, &work->arena, &root, work->err) &&
	     each_claim(work->scheduler, root, slice_of(pod->name_space), &work->arena, use, work);
	arena_destroy(&work->arena);
	return ok;
}

bool scheduler_pod_select_node(struct kube_scheduler *scheduler, const struct scheduled_pod *pod, struct error *err)
{
	struct claim_work work = { .scheduler = scheduler, .node = pod->seen.node, .err = err };

	return walk_claims(&work, pod, select_for_claim);
}

void scheduler_pod_unselect_node(struct kube_scheduler *scheduler, const struct scheduled_pod *pod)
{
	struct error err;
	struct claim_work work = { .scheduler = scheduler, .err = &err };

	(void)walk_claims(&work, pod, select_for_claim);
}

enum claims_state scheduler_pod_claims(struct kube_scheduler *scheduler, const struct scheduled_pod *pod)
{
	struct error err;
	struct claim_work work = { .scheduler = scheduler, .node = pod->seen.node, .state = CLAIMS_BOUND, .err = &err };

	if (!walk_claims(&work, pod, look_at_state) && work.state == CLAIMS_BOUND)
		return CLAIMS_FAILED;
	return work.state;
}

/* ---- binding, and what is told of it ---- */

bool scheduler_pod_bind(struct kube_scheduler *scheduler, const struct scheduled_pod *pod, struct error *err)
{
	struct stored_object *object = find_pod(scheduler, pod);
	struct object_edit edit;
	bool ok;

	if (object == NULL)
		return error_set(err, ERROR_REFUSED, "the pod is gone");
	if (!object_edit_begin(&edit, object, err))
		return false;
	ok = json_tree_set_text(&edit.arena, json_tree_find(edit.root, "/spec"), SLICE("nodeName"),
	                        slice_of(pod->seen.node)) &&
	     json_tree_set_text(&edit.arena, json_tree_ensure(&edit.arena, edit.root, SLICE("status")), SLICE("phase"),
	                        SLICE("Running"));
	ok = ok ? object_edit_commit(&edit, scheduler->options.store, err)
	        : error_set(err, ERROR_NO_MEMORY, "no memory for a pod");
	object_edit_end(&edit);
	return ok;
}

/* Counts the event once more if it is there. */
static bool count_event(struct kube_scheduler *scheduler, struct stored_object *object)
{
	struct object_edit edit;
	struct error err;
	bool ok;

	if (object == NULL || !object_edit_begin(&edit, object, &err))
		return object != NULL;
	ok = json_tree_set(edit.root, SLICE("count"),
	                   json_tree_number(&edit.arena, storage_integer(edit.root, "/count") + 1)) &&
	     object_edit_commit(&edit, scheduler->options.store, &err);
	object_edit_end(&edit);
	(void)ok;
	return true;
}

/* Events are for people and metrics: one that can't be made is left out. */
void scheduler_pod_tell(struct kube_scheduler *scheduler, const struct scheduled_pod *pod, const char *reason,
                        const char *message)
{
	const struct stored_object *object = find_pod(scheduler, pod);
	char name[EVENT_NAME_BYTES];
	struct buffer instant;
	struct json_node *root;
	struct arena arena;
	struct error err;

	if (object == NULL)
		return;
	arena_init(&arena, STORAGE_ARENA_BYTES);
	buffer_init(&instant, INSTANT_BYTES);
	rfc3339_print_seconds(loop_wall_ns(scheduler->loop), &instant);
	if (storage_parse(object, &arena, &root, &err)) {
		struct slice uid = storage_text(root, "/metadata/uid");

		(void)snprintf(name, sizeof name, "%s.%.8s-%s", pod->name, uid.length >= 8 ? uid.data : "00000000",
		               reason[0] == 'F' ? "f" : "s");
		if (!count_event(scheduler, object_store_find(scheduler->options.store, resource_kind(RESOURCE_EVENTS),
		                                              slice_of(pod->name_space), slice_of(name))))
			(void)storage_add(
				scheduler->options.store, &arena, NULL, &err,
				"{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"},"
				"\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"%.*s\",\"apiVersion\":\"v1\"},"
				"\"reason\":\"%s\",\"message\":\"%s\",\"source\":{\"component\":\"" KUBE_SCHEDULER_NAME
				"\"},\"firstTimestamp\":\"%.*s\",\"lastTimestamp\":\"%.*s\",\"count\":1,\"type\":\"%s\",\"eventTime\":null,"
				"\"reportingComponent\":\"" KUBE_SCHEDULER_NAME "\",\"reportingInstance\":\"\"}",
				name, pod->name_space, pod->name_space, pod->name, SLICE_ARGS(uid), reason, message,
				SLICE_ARGS(buffer_slice(&instant)), SLICE_ARGS(buffer_slice(&instant)),
				reason[0] == 'F' ? "Warning" : "Normal");
	}
	buffer_destroy(&instant);
	arena_destroy(&arena);
}
