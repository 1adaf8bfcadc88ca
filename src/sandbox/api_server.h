/*
 * The stand-in Kubernetes API server: HTTPS over an object store (spec surroundings section 5). Requests are the same for every kind: GET one,
 * LIST with selectors, limit and continue, WATCH, POST, PUT with a conflict check, PATCH (JSON patch and merge patch), DELETE, and the status
 * subresource.
 *
 * What is special to a kind (defaults, schema, webhook) is asked of the handler before a write. Times that the original takes are divided by
 * speed.
 */
#ifndef BALLAST_SANDBOX_API_SERVER_H
#define BALLAST_SANDBOX_API_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "codec/json_tree.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/tls.h"
#include "sandbox/api_access.h"
#include "sandbox/api_errors.h"
#include "sandbox/faults.h"
#include "sandbox/object_store.h"

enum {
	API_SERVER_BODY_BYTES = 3 * 1024 * 1024,   /* of a request, as the original */
	API_SERVER_LIST_BYTES = 512 * 1024 * 1024, /* of a list */
	API_SERVER_ARENA_BYTES =
		2 * OBJECT_STORE_ARENA_BYTES, /* for one request; that of a list also holds 16 bytes for each item */
	API_SERVER_WATCH_BYTES = 64 * 1024 * 1024, /* waiting for a slow watcher; beyond, it is cut off */
	API_SERVER_FLOW_BYTES = 1024 * 1024,       /* of it given to the connection */
	API_SERVER_FLOW_POLL_MS = 2,               /* until the connection has taken some */
	API_SERVER_WATCH_CHUNK_BYTES = 2048,       /* where events are cut (5.3.1) */
	API_SERVER_LIST_CHUNK_BYTES = 32 * 1024,
	API_SERVER_WHOLE_BYTES = 2048,  /* bodies up to here have Content-Length (5.1) */
	API_SERVER_TOO_LARGE_MS = 3000, /* until a version in the future is refused (5.2.3) */
	API_SERVER_BOOKMARK_S = 60,     /* 5.3.4 */
	API_SERVER_LAST_BOOKMARK_S = 2, /* before a watch ends */
	API_SERVER_WATCH_MIN_S = 1800,  /* without timeoutSeconds (5.3.5) */
	API_SERVER_WATCH_MAX_S = 3600,
	API_SERVER_REOPEN_MS = 50, /* between attempts to listen again */
};

struct api_server;

/* How a version that is too old to watch from is refused (5.3.6, 5.4). */
enum api_expiry {
	API_EXPIRY_CACHE, /* an ERROR event: too old resource version: 1 (257) */
	API_EXPIRY_ETCD,  /* an ERROR event: The resourceVersion for the provided watch is too old. */
	API_EXPIRY_HTTP,  /* status 410 */
};

/* The context goes to all three. Each may be NULL. */
struct api_server_handler {
	/*
	 * A write of the main resource is about to be stored; before is NULL for a new object. May complete `after`, or refuse by filling
	 * *ret_error and returning false. Nodes may be added from the arena.
	 */
	bool (*on_admit)(void *context, const struct resource_kind *kind, const struct json_node *before,
	                 struct json_node *after, struct arena *arena, struct api_error *ret_error);
	/* A write through the API changed something and was answered. before is NULL for a new object; both are held during the call. */
	void (*on_written)(void *context, struct stored_object *before, struct stored_object *after);
	/* on_admit refused, and that was answered. */
	void (*on_refused)(void *context, const struct resource_kind *kind, struct slice name_space, struct slice name);
};

struct api_server_options {
	struct address address;     /* port 0: a free one, kept until the end */
	struct object_store *store; /* must outlive the server */
	struct api_access *access;  /* likewise */
	struct tls_settings *tls;   /* a reference is taken; NULL: HTTP without TLS */
	uint64_t bookmark_interval_ns;
	double speed;
};

struct api_server_counters {
	unsigned lists, watches; /* answered with 200 */
	unsigned patches;        /* likewise, status subresource included */
	unsigned unauthorized;   /* 401, and 403 for want of rights */
	unsigned rejected;       /* everything else that was refused */
};

struct api_server *api_server_start(struct loop *loop, const struct api_server_options *options,
                                    const struct api_server_handler *handler, void *context, struct error *err);
void api_server_destroy(struct api_server *server); /* NULL is fine */
bool api_server_address(const struct api_server *server, struct address *ret_address);
struct api_server_counters api_server_counters(const struct api_server *server);

/* Cuts all connections with a reset and refuses new ones; or listens again on the same port (as soon as that is possible). */
void api_server_set_available(struct api_server *server, bool available);
void api_server_set_expiry(struct api_server *server, enum api_expiry expiry);
/* The next count requests that aren't watches get 429. */
void api_server_refuse_next(struct api_server *server, unsigned count);
/* The next count requests, watches too, get this status: 409, 410, 500, 503 or 504. */
void api_server_fail_next(struct api_server *server, unsigned count, int status);
/* From now on each request may meet one of these faults; they must outlive the server. NULL: none. */
void api_server_set_faults(struct api_server *server, struct faults *faults);
/* Ends all watches: cleanly as by a timeout, or by cutting the connections as in a restart. */
void api_server_end_watches(struct api_server *server, bool cleanly);

#endif
