/*
 * The objects of csi-baremetal and of Kubernetes storage in the sandbox's store (spec extender 11): how the stand-ins for controller, provisioner,
 * scheduler and kubelet read them and make them. What is read lies in the arena, with the object's tree.
 */
#ifndef BALLAST_SANDBOX_STORAGE_OBJECTS_H
#define BALLAST_SANDBOX_STORAGE_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "codec/json_tree.h"
#include "sandbox/object_store.h"
#include "sandbox/reservation_planner.h"

#define STORAGE_PROVISIONER "csi-baremetal"
#define STORAGE_LABEL_GROUP "drive.csi-baremetal.dell.com/storage-group"
#define STORAGE_SELECTED_NODE "volume.kubernetes.io/selected-node"

enum { STORAGE_ARENA_BYTES = 256 * 1024 * 1024 };

/* An AvailableCapacityReservation. */
struct storage_reservation {
	struct slice name, name_space, status;
	struct slice *requested;
	size_t requested_count;
	struct planner_request *requests;
	size_t request_count;
};

struct storage_claim {
	struct slice name_space, name, uid, class_name, group, phase, volume_name;
	struct slice selected_node;
	int64_t size_bytes;
};

bool storage_parse(const struct stored_object *object, struct arena *arena, struct json_node **ret_root,
                   struct error *err);
/* A number's value, 0 if there is none. */
int64_t storage_integer(const struct json_node *node, const char *pointer);
struct slice storage_text(const struct json_node *node, const char *pointer);
/* metadata.labels or .annotations. */
struct slice storage_label(const struct json_node *root, const char *map, const char *key);

/* All AvailableCapacities. Those of a class that nobody knows are left out. */
bool storage_read_capacities(const struct object_store *store, struct arena *arena,
                             struct planner_capacity **ret_capacities, size_t *ret_count, struct error *err);
bool storage_read_reservation(const struct stored_object *object, struct arena *arena, struct storage_reservation *ret,
                              struct error *err);
/* The requests of all reservations that are RESERVED, but for the one of that name. */
bool storage_read_held(const struct object_store *store, struct slice except, struct arena *arena,
                       struct planner_request **ret_requests, size_t *ret_count, struct error *err);
bool storage_read_claim(const struct stored_object *object, struct arena *arena, struct storage_claim *ret,
                        struct error *err);

/* Reads a whole object from JSON that says its kind, and adds it. */
bool storage_add(struct object_store *store, struct arena *arena, struct stored_object **ret_object, struct error *err,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Removes the object if it is there. */
bool storage_remove(struct object_store *store, enum resource resource, struct slice name_space, struct slice name,
                    struct error *err);

#endif
