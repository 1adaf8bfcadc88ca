/*
 * Watches over what is promised of disks in the sandbox: an observer of the object store that knows nothing of who writes, and counts whatever is
 * promised or used twice.
 *
 * It looks at each reservation that becomes RESERVED (a whole disk that is set aside for another request too, or more of a capacity than there
 * is) and at each new Volume (a whole disk that has one already, or more logical volumes than the disk or group has room for).
 */
#ifndef BALLAST_SANDBOX_CAPACITY_WATCH_H
#define BALLAST_SANDBOX_CAPACITY_WATCH_H

#include "base/error.h"
#include "sandbox/object_store.h"

enum { CAPACITY_WATCH_TEXT_BYTES = 256 };

struct capacity_watch;

/* The store must outlive it. */
struct capacity_watch *capacity_watch_create(struct object_store *store, struct error *err);
void capacity_watch_destroy(struct capacity_watch *watch); /* NULL is fine */
unsigned capacity_watch_promised_twice(const struct capacity_watch *watch);
/* What the first of them was; "" if there is none. */
const char *capacity_watch_first(const struct capacity_watch *watch);

#endif
