/*
 * What the store's two halves share: watch_store.c, which decides what to ask for and when, and watch_frames.c, which
 * reads the answers.
 */
#ifndef BALLAST_KUBE_WATCH_STORE_INTERNAL_H
#define BALLAST_KUBE_WATCH_STORE_INTERNAL_H

#include "base/arena.h"
#include "base/buffer.h"
#include "codec/json_splitter.h"
#include "kube/limits.h"
#include "kube/object_set.h"
#include "kube/watch_store.h"
#include "net/loop.h"

enum watch_store_phase {
	WATCH_STORE_WAITING, /* the timer brings the next step; so it begins */
	WATCH_STORE_LISTING,
	WATCH_STORE_OPENING, /* the watch was asked for */
	WATCH_STORE_WATCHING,
	WATCH_STORE_STOPPED, /* the start failed */
};

struct watch_store {
	struct loop *loop;
	struct kube_client *client;
	const struct watch_store_type *type;
	struct watch_store_options options;
	struct watch_store_handler handler;
	void *context;
	struct object_set objects;
	struct buffer resource_version; /* where the next watch begins; opaque */
	struct buffer continue_token;   /* of the next page; empty: none */
	struct kube_call *call;
	struct json_splitter splitter;
	struct arena arena; /* for one list element or event */
	struct loop_timer wait;
	enum watch_store_phase phase;
	bool started;
	bool failing;
	int start_status;   /* of the refusal that the start failed with; 0: another failure */
	bool relist_wanted; /* by the event at hand */
	bool paged;         /* the page under way isn't the list's first */
	unsigned list_restarts;
	unsigned failures;      /* since a watch was last healthy: so many times the next wait is doubled */
	unsigned short_watches; /* in a row, those that just ended */
	unsigned short_relists; /* likewise, those that made a relist necessary */
	bool delivered;         /* the watch at hand has brought an event or bookmark that fits */
	uint64_t opened_ns;
	/* Callbacks of ours on the stack; objects.closed tells that the last one has to free the store. */
	unsigned depth;
};

/* What json_splitter calls for each element of a list, and each event of a watch; the context is the store. */
bool watch_frames_read_element(void *context, struct slice json, struct error *err);
bool watch_frames_read_event(void *context, struct slice json, struct error *err);
/* Takes resource version and continue token from a list without its elements. */
bool watch_frames_read_envelope(struct watch_store *store, struct slice json, struct error *err);
/* A frame that is no event counts as an ERROR event (4.3). */
void watch_frames_report_bad(struct watch_store *store, const struct error *err);

#endif
