#include "sandbox/volume_provisioner.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "sandbox/storage_objects.h"

struct order {
	struct order *next;
	char *name_space;
	char *claim;
	uint64_t due_ns;
};

struct volume_provisioner {
	struct loop *loop;
	struct object_store *store;
	double speed;
	struct provisioner_handler handler;
	void *context;
	struct object_observer observer;
	struct order *orders; /* in the order of their coming, which is that of their times */
	struct loop_timer timer;
	struct provisioner_counters counters;
};

static uint64_t work_ns(const struct volume_provisioner *provisioner)
{
	return (uint64_t)(PROVISIONER_WORK_MS / provisioner->speed * NS_PER_MS);
}

/* ---- one claim ---- */

static bool is_ours(const struct volume_provisioner *provisioner, const struct storage_claim *claim,
                    struct arena *arena)
{
	const struct stored_object *class_object = object_store_find(
		provisioner->store, resource_kind(RESOURCE_STORAGE_CLASSES), slice_from(NULL, 0), claim->class_name);
	struct json_node *root;
	struct error err;

	return class_object != NULL && storage_parse(class_object, arena, &root, &err) &&
	       slice_equal_text(storage_text(root, "/provisioner"), STORAGE_PROVISIONER);
}

/* Whether the claim waits for a volume on a node. */
static bool wants_volume(const struct storage_claim *claim)
{
	return claim->selected_node.length > 0 && slice_equal_text(claim->phase, "Pending");
}

static bool bind_claim(struct volume_provisioner *provisioner, struct stored_object *object,
                       const struct storage_claim *claim, struct arena *arena, struct error *err)
{
	struct object_edit edit;
	char name[96];
	bool ok;

	(void)snprintf(name, sizeof name, "pvc-%.*s", SLICE_ARGS(claim->uid));
	if (object_store_find(provisioner->store, resource_kind(RESOURCE_PERSISTENT_VOLUMES), slice_from(NULL, 0),
	                      slice_of(name)) == NULL &&
	    !storage_add(
		    provisioner->store, arena, NULL, err,
		    "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"capacity\":{"
		    "\"storage\":\"%" PRId64
		    "\"},\"accessModes\":[\"ReadWriteOnce\"],\"claimRef\":{\"kind\":\"PersistentVolumeClaim\","
		    "\"namespace\":\"%.*s\",\"name\":\"%.*s\",\"uid\":\"%.*s\"},\"storageClassName\":\"%.*s\",\"csi\":{\"driver\":\"" STORAGE_PROVISIONER
		    "\",\"volumeHandle\":\"%s\"},\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":["
		    "{\"key\":\"kubernetes.io/hostname\",\"operator\":\"In\",\"values\":[\"%.*s\"]}]}]}}},\"status\":{\"phase\":\"Bound\"}}",
		    name, claim->size_bytes, SLICE_ARGS(claim->name_space), SLICE_ARGS(claim->name),
		    SLICE_ARGS(claim->uid), SLICE_ARGS(claim->class_name), name, SLICE_ARGS(claim->selected_node)))
		return false;
	if (!object_edit_begin(&edit, object, err))
		return false;
	ok = json_tree_set_text(&edit.arena, json_tree_find(edit.root, "/spec"), SLICE("volumeName"), slice_of(name)) &&
	     json_tree_set_text(&edit.arena, json_tree_ensure(&edit.arena, edit.root, SLICE("status")), SLICE("phase"),
	                        SLICE("Bound"));
	ok = ok ? object_edit_commit(&edit, provisioner->store, err)
	        : error_set(err, ERROR_NO_MEMORY, "no memory for a claim");
	object_edit_end(&edit);
	return ok;
}

/* The scheduler sees that its choice didn't do. */
static void refuse(struct volume_provisioner *provisioner, struct stored_object *object,
                   const struct storage_claim *claim, const struct error *reason)
{
	struct object_edit edit;
	struct error err;

	provisioner->counters.refused++;
	if (provisioner->handler.on_refused != NULL)
		provisioner->handler.on_refused(provisioner->context, claim->name_space, claim->name, reason->text);
	if (!object_edit_begin(&edit, object, &err))
		return;
	if (json_tree_remove(json_tree_find(edit.root, "/metadata/annotations"), SLICE(STORAGE_SELECTED_NODE)))
		(void)object_edit_commit(&edit, provisioner->store, &err);
	object_edit_end(&edit);
}

static struct slice node_id(const struct volume_provisioner *provisioner, struct slice name, struct arena *arena)
{
	const struct stored_object *node =
		object_store_find(provisioner->store, resource_kind(RESOURCE_NODES), slice_from(NULL, 0), name);
	struct json_node *root;
	struct error err;

	if (node == NULL || !storage_parse(node, arena, &root, &err))
		return slice_from(NULL, 0);
	return storage_text(root, "/metadata/uid");
}

static void provision(struct volume_provisioner *provisioner, const struct order *order, struct arena *arena)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_CLAIMS);
	struct stored_object *object =
		object_store_find(provisioner->store, kind, slice_of(order->name_space), slice_of(order->claim));
	struct storage_claim claim;
	struct error err;

	if (object == NULL || !storage_read_claim(object, arena, &claim, &err) || !wants_volume(&claim) ||
	    !is_ours(provisioner, &claim, arena))
		return;
	if (!volume_create(provisioner->store, object, node_id(provisioner, claim.selected_node, arena), &err) ||
	    !bind_claim(provisioner, object, &claim, arena, &err))
		refuse(provisioner, object, &claim, &err);
	else
		provisioner->counters.created++;
}

/* ---- the queue ---- */

static void free_order(struct order *order)
{
	memory_release(order->name_space);
	memory_release(order->claim);
	memory_release(order);
}

static void on_due(void *context);

static void follow_first(struct volume_provisioner *provisioner)
{
	uint64_t now_ns = loop_now_ns(provisioner->loop);

	if (provisioner->orders != NULL && !loop_timer_running(&provisioner->timer))
		loop_timer_start(provisioner->loop, &provisioner->timer,
		                 provisioner->orders->due_ns > now_ns ? provisioner->orders->due_ns - now_ns : 0,
		                 on_due, provisioner);
}

static void on_due(void *context)
{
	struct volume_provisioner *provisioner = context;
	struct order *order = provisioner->orders;
	struct arena arena;

	provisioner->orders = order->next;
	arena_init(&arena, STORAGE_ARENA_BYTES);
	provision(provisioner, order, &arena);
	arena_destroy(&arena);
	free_order(order);
	follow_first(provisioner);
}

/* Without memory the claim waits until it changes again, or the scheduler gives up on it. */
static void enqueue(struct volume_provisioner *provisioner, const struct stored_object *claim)
{
	struct order **place = &provisioner->orders;
	struct order *order = memory_allocate(sizeof *order);

	if (order == NULL)
		return;
	order->name_space = memory_copy_text(claim->name_space.data, claim->name_space.length);
	order->claim = memory_copy_text(claim->name.data, claim->name.length);
	if (order->name_space == NULL || order->claim == NULL) {
		free_order(order);
		return;
	}
	order->due_ns = loop_now_ns(provisioner->loop) + work_ns(provisioner);
	while (*place != NULL)
		place = &(*place)->next;
	*place = order;
	follow_first(provisioner);
}

static void look_at(struct volume_provisioner *provisioner, const struct stored_object *object)
{
	struct storage_claim claim;
	struct arena arena;
	struct error err;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	if (storage_read_claim(object, &arena, &claim, &err) && wants_volume(&claim))
		enqueue(provisioner, object);
	arena_destroy(&arena);
}

static void on_change(void *context, const struct object_change *change)
{
	if (change->after->kind == resource_kind(RESOURCE_CLAIMS) && change->type != OBJECT_DELETED)
		look_at(context, change->after);
}

/* Claims that came before the provisioner did. */
static void look_at_present(struct volume_provisioner *provisioner)
{
	const struct resource_kind *kind = resource_kind(RESOURCE_CLAIMS);

	for (size_t i = 0; i < object_store_count(provisioner->store, kind); i++)
		look_at(provisioner, object_store_at(provisioner->store, kind, i));
}

/* ---- life ---- */

struct volume_provisioner *volume_provisioner_create(struct loop *loop, struct object_store *store, double speed,
                                                     const struct provisioner_handler *handler, void *context,
                                                     struct error *err)
{
	struct volume_provisioner *provisioner = memory_allocate(sizeof *provisioner);

	if (provisioner == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a volume provisioner");
		return NULL;
	}
	provisioner->loop = loop;
	provisioner->store = store;
	provisioner->speed = speed;
	provisioner->handler = *handler;
	provisioner->context = context;
	provisioner->observer = (struct object_observer){ .on_change = on_change, .context = provisioner };
	object_store_observe(store, &provisioner->observer);
	look_at_present(provisioner);
	return provisioner;
}

void volume_provisioner_destroy(struct volume_provisioner *provisioner)
{
	if (provisioner == NULL)
		return;
	object_store_ignore(&provisioner->observer);
	loop_timer_stop(provisioner->loop, &provisioner->timer);
	while (provisioner->orders != NULL) {
		struct order *order = provisioner->orders;

		provisioner->orders = order->next;
		free_order(order);
	}
	memory_release(provisioner);
}

struct provisioner_counters volume_provisioner_counters(const struct volume_provisioner *provisioner)
{
	return provisioner->counters;
}
