/*
 * Keeps an object store of the sandbox and a real API server at one: what the server says of nodes, VirtualMachines and runner pods comes into
 * the store, and whatever the sandbox's parts change there is carried to the server. So the parts, which know nothing but the store, work on a
 * real cluster.
 *
 * They see their own changes at once. While some of them are on their way, what the server says of that object waits: it would take it back in
 * time. Changes go out as merge patches of what differs, so that they never collide with those of others, and need no version.
 */
#ifndef BALLAST_TESTS_KUBE_API_MIRROR_H
#define BALLAST_TESTS_KUBE_API_MIRROR_H

#include "api_writer.h"
#include "sandbox/object_store.h"

struct api_mirror;

struct api_mirror_counters {
	struct api_writer_counters writes;
	unsigned lists, watches; /* calls */
};

/* on_started: what is there has been listed, and watches are open. Failing to start is the end of the program. */
struct api_mirror *api_mirror_start(struct loop *loop, struct kube_client *client, struct object_store *store,
                                    void (*on_started)(void *context), void *context);
void api_mirror_destroy(struct api_mirror *mirror); /* before the store */
/* Inside an observer of the store: whether the change came from the server. */
bool api_mirror_is_applying(const struct api_mirror *mirror);
struct api_mirror_counters api_mirror_counters(const struct api_mirror *mirror);

#endif
