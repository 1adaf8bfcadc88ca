/*
 * A list of objects kept up to date by LIST and WATCH (spec agent-runtime section 4): list in pages, watch with
 * bookmarks from the list's resource version, reopen when the stream ends, relist on 410, ERROR events and
 * bookkeeping mismatches, back off when the API is away.
 *
 * The store knows objects only by uid; what they are is the owner's business, through struct watch_store_type.
 * Objects are decoded one at a time as the bytes arrive. A relist is applied as one step when the list is whole.
 */
#ifndef BALLAST_KUBE_WATCH_STORE_H
#define BALLAST_KUBE_WATCH_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "base/token_bucket.h"
#include "kube/client.h"

struct watch_store;

struct watch_store_type {
	const char *path;           /* "/api/v1/namespaces/kube-system/pods" */
	const char *label_selector; /* unescaped, or NULL */
	const char *resource;       /* for error texts */
	/*
	 * Decodes one object into something owned by the store from then on (may be small: an id and flags for what
	 * isn't of interest). *ret_uid must live as long as the object, *ret_name until the next call or the end of
	 * the text; a decoder refuses an object without uid. NULL with *err: the whole list, or the event, is bad.
	 */
	void *(*decode)(void *context, struct slice json, struct slice *ret_uid, struct slice *ret_name,
	                struct error *err);
	void (*release)(void *context, void *object);
};

enum watch_store_call { WATCH_STORE_LIST, WATCH_STORE_WATCH };
enum watch_store_event {
	WATCH_STORE_ADDED,
	WATCH_STORE_MODIFIED,
	WATCH_STORE_DELETED,
	WATCH_STORE_BOOKMARK,
	WATCH_STORE_ERROR
};
enum watch_store_error { WATCH_STORE_ERROR_LIST, WATCH_STORE_ERROR_WATCH, WATCH_STORE_ERROR_EVENT };

struct watch_store_handler {
	void (*on_add)(void *context, void *object);
	void (*on_update)(void *context, void *before, void *after); /* before is released after the call */
	void (*on_delete)(void *context, void *object);              /* released after the call */
	/* The first list was handled and the first watch is open. May be NULL. */
	void (*on_started)(void *context);
	/*
	 * The first list or watch failed; the store does nothing more ("initial list failed: …", "initial watch
	 * failed: …").
	 */
	void (*on_start_failed)(void *context, const struct error *err);
	/*
	 * For metrics; each may be NULL, and none may destroy the store. A list counts as one call, however many
	 * pages it has.
	 */
	void (*on_call)(void *context, enum watch_store_call call);
	void (*on_event)(void *context, enum watch_store_event event);
	void (*on_error)(void *context, enum watch_store_error error);
	void (*on_failing)(void *context, bool failing); /* it has changed; false at first */
};

struct watch_store_options {
	/* Sync mode: handlers run for the listed objects before the watch is opened (agent-runtime 4.2). */
	bool deliver_before_watch;
	/*
	 * Waits after failures: retry_unit_ns times a number drawn from [retry_low, retry_high) at first, doubling up to
	 * WATCH_STORE_RETRY_MAX_S until a watch has lived for WATCH_STORE_HEALTHY_S, and never less than the server's
	 * Retry-After. Without a failure there is no wait, unless watches end within WATCH_STORE_SHORT_WATCH_MS, one
	 * after the other: those that demand a relist are followed by the same waits, others by shorter ones
	 * (WATCH_STORE_REOPEN_WAIT_MS), until a watch has lived for WATCH_STORE_CALM_S or brought something.
	 */
	uint64_t retry_unit_ns;
	uint32_t retry_low, retry_high;
	uint32_t page_size;           /* limit of a list page; 0: one page */
	struct token_bucket *limiter; /* for lists; NULL: not limited */
	struct logger logger;         /* named by the owner: "….watch" */
};

/*
 * Starts; no callback comes from inside. The type, what it and the logger point at, and the limiter must outlive the
 * store; options and handler are copied. context goes to the type and to the handler.
 */
struct watch_store *watch_store_start(struct loop *loop, struct kube_client *client,
                                      const struct watch_store_type *type, const struct watch_store_options *options,
                                      const struct watch_store_handler *handler, void *context, struct error *err);
/* Inside on_start_failed: the status that the server refused with; 0 when it failed otherwise. */
int watch_store_start_status(const struct watch_store *store);
bool watch_store_failing(const struct watch_store *store);
size_t watch_store_count(const struct watch_store *store);
/*
 * Walks the objects in the order of their arrival: *position is 0 at first; NULL at the end. The store must not
 * change meanwhile.
 */
void *watch_store_next(const struct watch_store *store, size_t *position);
/* Ends list or watch, releases all objects, calls no handler. Allowed inside the first five handlers. NULL is fine. */
void watch_store_destroy(struct watch_store *store);

#endif
