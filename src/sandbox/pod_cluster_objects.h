/*
 * The objects that a workload of pods is made of.
 */
#ifndef BALLAST_SANDBOX_POD_CLUSTER_OBJECTS_H
#define BALLAST_SANDBOX_POD_CLUSTER_OBJECTS_H

#include "base/error.h"
#include "sandbox/object_store.h"
#include "sandbox/pod_workload.h"

/* Nodes, storage classes, disks with their capacities, and reservations that were left behind. */
bool pod_objects_plant(struct object_store *store, const struct pod_workload *workload, struct error *err);
/* The pod with its claims; first: those of its first life. */
bool pod_objects_add(struct object_store *store, const struct pod_plan *pod, bool first, struct error *err);
/* The pod and its claims. */
bool pod_objects_remove(struct object_store *store, const struct pod_plan *pod, struct error *err);
/* See pod_cluster_check_volumes. */
bool pod_objects_check(const struct object_store *store, const struct pod_plan *pod, const char *node,
                       struct error *err);

#endif
