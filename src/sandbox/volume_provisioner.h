/*
 * A stand-in for what makes volumes: the external provisioner and csi-baremetal's controller and node service behind it (spec extender 13,
 * R7 and R8). A claim of one of our classes that the scheduler gave a node gets a Volume, which uses up the capacity that the pod's reservation
 * sets aside there; then it is Bound. If there is no such reservation, the node is taken from the claim again, and the scheduler has to begin anew
 * (15, U11).
 *
 * The original's times are divided by speed.
 */
#ifndef BALLAST_SANDBOX_VOLUME_PROVISIONER_H
#define BALLAST_SANDBOX_VOLUME_PROVISIONER_H

#include "base/error.h"
#include "base/slice.h"
#include "net/loop.h"
#include "sandbox/object_store.h"

enum { PROVISIONER_WORK_MS = 20 /* of one volume */ };

struct volume_provisioner;

struct provisioner_handler {
	/* The claim stays without a volume; texts are valid during the call. May be NULL. */
	void (*on_refused)(void *context, struct slice name_space, struct slice claim, const char *reason);
};

struct provisioner_counters {
	unsigned created, refused;
};

/* The store must outlive it. */
struct volume_provisioner *volume_provisioner_create(struct loop *loop, struct object_store *store, double speed,
                                                     const struct provisioner_handler *handler, void *context,
                                                     struct error *err);
void volume_provisioner_destroy(struct volume_provisioner *provisioner); /* NULL is fine */
struct provisioner_counters volume_provisioner_counters(const struct volume_provisioner *provisioner);

/* ---- for itself and tests: one volume ---- */

/* Makes the claim's Volume on the node with that ID and takes its request out of the reservation; ERROR_REFUSED, ERROR_LIMIT as R7 says. */
bool volume_create(struct object_store *store, struct stored_object *claim, struct slice node_id, struct error *err);

#endif
