/*
 * What the parts of the stand-in API server share: api_server.c (connections, access, who does what), api_request.c (paths and queries),
 * api_answer.c (how answers leave), api_read.c (get and list), api_watch.c, api_write.c.
 */
#ifndef BALLAST_SANDBOX_API_SERVER_INTERNAL_H
#define BALLAST_SANDBOX_API_SERVER_INTERNAL_H

#include "base/buffer.h"
#include "net/http_server.h"
#include "sandbox/api_server.h"
#include "sandbox/label_selector.h"

/* A call that is answered later or bit by bit. */
struct api_pending {
	struct api_pending *next, *previous;
	struct api_server *server;
	struct http_call *call;
	void (*release)(struct api_pending *pending); /* frees everything; the call is gone or will be */
};

struct api_server {
	struct loop *loop;
	struct http_server *http; /* NULL while not available */
	struct address address;
	struct object_store *store;
	struct api_access *access;
	struct tls_settings *tls;
	struct api_server_handler handler;
	void *context;
	struct api_server_counters counters;
	struct api_pending pending; /* ends of the ring */
	struct loop_timer reopen_timer;
	uint64_t bookmark_interval_ns;
	double speed;
	enum api_expiry expiry;
	unsigned refuse_next;
	unsigned fail_next;
	int fail_status;
	struct faults *faults; /* NULL: none */
};

/* ---- requests (api_request.c) ---- */

enum api_verb { API_GET, API_LIST, API_WATCH, API_CREATE, API_UPDATE, API_PATCH, API_DELETE, API_OTHER };

struct api_request {
	struct arena arena;
	struct http_call *call;
	struct slice method, path; /* valid until the call is answered */
	/* The rest lies in the arena. */
	enum api_verb verb;
	bool is_resource; /* the path names a resource, known or not */
	struct slice group, version, plural, name_space, name, subresource;
	const struct resource_kind *kind; /* NULL: unknown */
	struct selector selector;
	struct slice resource_version, version_match, continue_token;
	uint64_t limit;     /* 0: none */
	uint64_t timeout_s; /* 0: none */
	bool bookmarks;
	bool no_memory; /* while it was read */
};

/* False with *ret_error for a query that can't be understood, selectors aside. */
bool api_request_parse(struct api_request *request, struct api_error *ret_error);
bool api_request_parse_selectors(struct api_request *request, struct api_error *ret_error);
const char *api_verb_name(enum api_verb verb);
/* Whether the object is of the request's namespace (if any) and its selectors match. */
bool api_request_wants(const struct api_request *request, const struct stored_object *object);
/* Reads a resourceVersion; empty and "0" give 0. */
bool api_request_version(const struct api_request *request, uint64_t *ret_version, struct api_error *ret_error,
                         struct arena *arena);

/* ---- answers (api_answer.c) ---- */

/* Sends body with a newline behind it. */
void api_answer(struct api_server *server, struct http_call *call, int status, struct slice body);
/* Takes the buffer over. The body ends with its newline. */
void api_answer_large(struct api_server *server, struct http_call *call, struct buffer *body);
/* Sends the error and counts it. */
void api_answer_error(struct api_server *server, struct http_call *call, const struct api_error *error);
/* For failures of our own: 500. */
void api_answer_failure(struct api_server *server, struct http_call *call, const struct error *err);
/* Sends the error after some time. */
void api_answer_error_later(struct api_server *server, struct http_call *call, const struct api_error *error,
                            uint64_t delay_ns);

void api_pending_add(struct api_pending *pending, struct api_server *server, struct http_call *call);
/* Takes it from the list and from its call, and releases it. */
void api_pending_drop(struct api_pending *pending);

/* A chunked answer of any length: what is appended to the buffer leaves as the peer takes it. First member of what uses it. */
struct api_flow {
	struct api_pending pending;
	struct buffer buffer;
	size_t sent; /* from the front of the buffer */
	size_t chunk_bytes;
	bool ending; /* when all is sent, the answer is over */
	struct loop_task task;
	struct loop_timer timer;
};

/* Begins the answer (200, JSON). */
void api_flow_begin(struct api_flow *flow, struct api_server *server, struct http_call *call, size_t chunk_bytes,
                    size_t limit_bytes, void (*release)(struct api_pending *pending));
/* Sends what is in the buffer at the end of the turn. */
void api_flow_push(struct api_flow *flow);
/* Stops timers and frees the buffer. */
void api_flow_destroy(struct api_flow *flow);

/* ---- verbs; each answers the request ---- */

void api_get(struct api_server *server, struct api_request *request);
void api_list(struct api_server *server, struct api_request *request);
void api_watch(struct api_server *server, struct api_request *request);
void api_create(struct api_server *server, struct api_request *request);
void api_update(struct api_server *server, struct api_request *request);
void api_patch(struct api_server *server, struct api_request *request);
void api_delete(struct api_server *server, struct api_request *request);
/* Whether this pending answer is a watch. */
bool api_is_watch(const struct api_pending *pending);
/*
 * Whether a fault was drawn for the call, which meets it then, instead of being served; or it is served later.
 */
bool api_meet_fault(struct api_server *server, struct http_call *call,
                    void (*serve)(struct api_server *server, struct http_call *call));
/* Lets a watch end as if its time were over. */
void api_watch_finish(struct api_pending *pending);
uint64_t api_server_scaled(const struct api_server *server, uint64_t ns);

#endif
