/*
 * Starting a server on an address, or on all addresses of the machine.
 */
#ifndef BALLAST_EXTENDER_LISTENING_H
#define BALLAST_EXTENDER_LISTENING_H

#include "net/http_server.h"

/* As http_server_start; "::" falls back to 0.0.0.0 on a machine without IPv6. */
struct http_server *listening_start(struct loop *loop, const struct http_server_options *options,
                                    const struct http_server_handler *handler, void *context, struct error *err);

/* A server of small pages, with the limits for those; on_error (may be NULL) is http_server_options'. */
struct http_server *listening_start_pages(struct loop *loop, struct address address,
                                          void (*on_request)(void *context, struct http_call *call),
                                          void (*on_error)(void *context, const struct error *err), void *context,
                                          struct error *err);

/* The answer for a path that isn't served (spec extender H1). */
void listening_answer_not_found(struct http_call *call);

#endif
