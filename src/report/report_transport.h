/*
 * What the clients and their credential sources share: the loop, an HTTP client, the environment variables, and trust
 * in https servers.
 *
 * The certificates to trust are those in the file that SSL_CERT_FILE names, as for the reference, or the system's. They
 * are read when the first https request is made, so that an agent that pushes over plain HTTP doesn't hold them; if
 * they can't be read, that request fails, and the next one tries again.
 */
#ifndef BALLAST_REPORT_REPORT_TRANSPORT_H
#define BALLAST_REPORT_REPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "net/http_client.h"
#include "net/loop.h"

/* Looks a variable up; NULL: not set. */
struct report_environment {
	const char *(*get)(void *context, const char *name);
	void *context;
};

struct report_transport;

/* The process's own variables. */
struct report_environment report_environment_of_process(void);
/* The variable's value; NULL if it isn't set or is empty. */
const char *report_environment_get(const struct report_environment *environment, const char *name);

/* Must outlive every client made with it. NULL with *err when memory is short. */
struct report_transport *report_transport_create(struct loop *loop, const struct report_environment *environment,
                                                 struct error *err);
void report_transport_destroy(struct report_transport *transport); /* NULL is fine */

/* "name:port" as the Host field has it: the port only if it isn't the scheme's own, brackets around IPv6. */
void report_append_authority(struct buffer *out, const struct http_origin *origin);

struct loop *report_transport_loop(const struct report_transport *transport);
const struct report_environment *report_transport_environment(const struct report_transport *transport);

/* ---- a call: one request, whose reply is collected up to a limit ---- */

struct report_reply {
	int status;
	struct http_fields fields;
	struct slice body; /* its first REPORT_REPLY_BYTES */
	bool complete;     /* the whole body is there */
};

/*
 * reply not NULL: the head came, though perhaps not all of the body. Otherwise *err has as its root one of the texts of
 * spec agent-runtime 0.5. Both are valid during the callback.
 */
typedef void report_call_done(void *context, const struct report_reply *reply, const struct error *err);

struct report_call;

/*
 * Sends. max_body_bytes of the request is ignored. done comes exactly once, never from inside, unless cancelled first.
 * NULL with *err if it can't start.
 */
struct report_call *report_call_start(struct report_transport *transport, const struct http_request *request,
                                      report_call_done *done, void *context, struct error *err);
void report_call_cancel(struct report_call *call); /* NULL is fine; not after done */

#endif
