/*
 * What tests of the storage stand-ins share: a store with two nodes and a storage class, and short ways to put objects in and to look at them. To
 * be included after scene.h by one file of a program.
 */
#ifndef BALLAST_TESTS_UNIT_SANDBOX_STORAGE_SCENE_H
#define BALLAST_TESTS_UNIT_SANDBOX_STORAGE_SCENE_H

#include "sandbox/storage_objects.h"

struct storage_scene {
	struct loop *loop;
	struct object_store *store;
	struct arena arena;
	char node_ids[2][64];
};

/* Where a pointer of an object's leads, as text; "" if there is no such object or member. */
static inline struct slice storage_scene_text(struct storage_scene *scene, enum resource resource,
                                              const char *name_space, const char *name, const char *pointer)
{
	const struct stored_object *object =
		object_store_find(scene->store, resource_kind(resource), slice_of(name_space), slice_of(name));
	const struct json_node *node;
	struct json_node *root;
	struct error err;

	if (object == NULL || !storage_parse(object, &scene->arena, &root, &err))
		return SLICE("");
	node = json_tree_find(root, pointer);
	return node == NULL ? SLICE("") : node->text;
}

static inline bool storage_scene_exists(struct storage_scene *scene, enum resource resource, const char *name_space,
                                        const char *name)
{
	return object_store_find(scene->store, resource_kind(resource), slice_of(name_space), slice_of(name)) != NULL;
}

#define assert_member(scene, resource, name_space, name, pointer, expected)                                           \
	do {                                                                                                          \
		struct slice found_ = storage_scene_text(scene, resource, name_space, name, pointer);                 \
		if (!slice_equal_text(found_, expected))                                                              \
			fail_msg("%s %s is \"%.*s\" instead of \"%s\"", name, pointer, SLICE_ARGS(found_), expected); \
	} while (0)

#define storage_scene_add(scene, ...)                                                        \
	do {                                                                                 \
		struct error err_;                                                           \
		if (!storage_add((scene)->store, &(scene)->arena, NULL, &err_, __VA_ARGS__)) \
			fail_msg("%s", err_.text);                                           \
	} while (0)

static inline void storage_scene_open(struct storage_scene *scene)
{
	struct error err;

	*scene = (struct storage_scene){ .loop = loop_epoll_create(&err) };
	assert_non_null(scene->loop);
	scene->store = object_store_create(scene->loop, &err);
	assert_non_null(scene->store);
	arena_init(&scene->arena, STORAGE_ARENA_BYTES);
	for (unsigned i = 0; i < 2; i++) {
		char name[16];

		(void)snprintf(name, sizeof name, "node-%c", (char)('a' + i));
		storage_scene_add(
			scene, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"},\"spec\":{}}",
			name);
		(void)snprintf(scene->node_ids[i], sizeof scene->node_ids[i], "%.*s",
		               SLICE_ARGS(storage_scene_text(scene, RESOURCE_NODES, "", name, "/metadata/uid")));
		assert_true(strlen(scene->node_ids[i]) > 8);
	}
	storage_scene_add(
		scene, "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"bm\"},"
		       "\"provisioner\":\"csi-baremetal\",\"parameters\":{\"storageType\":\"HDD\"}}");
}

static inline void storage_scene_close(struct storage_scene *scene)
{
	object_store_destroy(scene->store);
	arena_destroy(&scene->arena);
	loop_destroy(scene->loop);
}

/* A disk, or a group where type says so, of that name. */
static inline void storage_scene_capacity(struct storage_scene *scene, const char *name, unsigned node,
                                          const char *type, long long bytes)
{
	storage_scene_add(
		scene,
		"{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"AvailableCapacity\",\"metadata\":{\"name\":\"%s\"},"
		"\"spec\":{\"Location\":\"of-%s\",\"NodeId\":\"%s\",\"storageClass\":\"%s\",\"Size\":%lld}}",
		name, name, scene->node_ids[node], type, bytes);
	storage_scene_add(
		scene,
		"{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"of-%s\"},\"spec\":{"
		"\"Size\":%lld}}",
		strstr(type, "LVG") != NULL ? "LogicalVolumeGroup" : "Drive", name, bytes);
}

/* Of pod NAME in shop: requests is the array's content. */
static inline void storage_scene_reservation(struct storage_scene *scene, const char *pod, const char *status,
                                             const char *requests)
{
	storage_scene_add(
		scene,
		"{\"apiVersion\":\"csi-baremetal.dell.com/v1\",\"kind\":\"AvailableCapacityReservation\",\"metadata\":{\"name\":\"shop-%s\"},"
		"\"spec\":{\"Namespace\":\"shop\",\"Status\":\"%s\",\"NodeRequests\":{\"Requested\":[\"%s\",\"%s\"]},"
		"\"ReservationRequests\":[%s]}}",
		pod, status, scene->node_ids[0], scene->node_ids[1], requests);
}

/* A claim of class bm; node NULL: it has none. */
static inline void storage_scene_claim(struct storage_scene *scene, const char *name, const char *size,
                                       const char *node)
{
	storage_scene_add(
		scene,
		"{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"shop\","
		"\"annotations\":{%s%s%s}},\"spec\":{\"resources\":{\"requests\":{\"storage\":\"%s\"}},\"storageClassName\":"
		"\"bm\"},\"status\":{\"phase\":\"Pending\"}}",
		name, node != NULL ? "\"" STORAGE_SELECTED_NODE "\":\"" : "", node != NULL ? node : "",
		node != NULL ? "\"" : "", size);
}

static inline void storage_scene_pod(struct storage_scene *scene, const char *name, const char *claim)
{
	storage_scene_add(
		scene,
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"shop\"},\"spec\":{"
		"\"schedulerName\":\"default-scheduler\",\"volumes\":[%s%s%s]},\"status\":{\"phase\":\"Pending\"}}",
		name, claim != NULL ? "{\"name\":\"d\",\"persistentVolumeClaim\":{\"claimName\":\"" : "",
		claim != NULL ? claim : "", claim != NULL ? "\"}}" : "");
}

#endif
