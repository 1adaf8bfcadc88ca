/*
 * What the servers of small pages have in common: health and metrics, and the answer for a path that isn't served, which the
 * scheduler's port gives, too.
 */
#ifndef BALLAST_EXTENDER_PAGE_SERVER_H
#define BALLAST_EXTENDER_PAGE_SERVER_H

#include "net/http_server.h"

/* As http_server_start, with the limits for small pages; on_error (may be NULL) is http_server_options'. */
struct http_server *page_server_start(struct loop *loop, struct address address,
                                      void (*on_request)(void *context, struct http_call *call),
                                      void (*on_error)(void *context, const struct error *err), void *context,
                                      struct error *err);

/* 404, as spec extender H1 has it. */
void page_server_answer_not_found(struct http_call *call);

#endif
