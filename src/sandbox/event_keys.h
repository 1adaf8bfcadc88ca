/*
 * Which billing events have come already, by their idempotency keys (spec reporting B13): as the consumer must do it,
 * whom senders deliver at least once.
 *
 * Kept per drain, so that it stays small; of the drains, the latest EVENT_KEYS_DRAINS.
 */
#ifndef BALLAST_SANDBOX_EVENT_KEYS_H
#define BALLAST_SANDBOX_EVENT_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"
#include "base/table.h"

enum { EVENT_KEYS_DRAINS = 4096, EVENT_KEYS_OF_DRAIN = 100000 };

struct event_keys {
	struct table drains;
	size_t missing_of_forgotten; /* events that never came, of drains that are forgotten */
};

enum event_sight {
	EVENT_NEW,
	EVENT_REPEATED, /* it came before, and is the same */
	EVENT_CHANGED,  /* another event came with this key */
};

void event_keys_init(struct event_keys *keys);
void event_keys_destroy(struct event_keys *keys);
/* Remembers it; content is the whole event. False if the key isn't "STAMP-HOST-n/N", or memory is short. */
bool event_keys_see(struct event_keys *keys, struct slice key, struct slice content, enum event_sight *ret_sight,
                    struct error *err);
/* Events that others of their drain speak of, and that never came. */
size_t event_keys_missing(const struct event_keys *keys);

#endif
