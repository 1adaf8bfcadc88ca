/*
 * The metrics page (spec extender 10, P11, P12): answered on the extender's port, and on one of its own if that is asked for.
 */
#ifndef BALLAST_EXTENDER_METRICS_PAGE_H
#define BALLAST_EXTENDER_METRICS_PAGE_H

#include "base/error.h"
#include "base/log.h"
#include "extender/extender_metrics.h"
#include "net/address.h"
#include "net/http_server.h"
#include "net/loop.h"

void metrics_page_answer(struct extender_metrics *metrics, const struct logger *logger, struct http_call *call);

struct metrics_page_server;

/* Everything pointed at must outlive the server. */
struct metrics_page_options {
	struct loop *loop;
	struct address address;
	const char *path;
	struct extender_metrics *metrics;
	struct logger logger;
};

struct metrics_page_server *metrics_page_start(const struct metrics_page_options *options, struct error *err);
bool metrics_page_address(const struct metrics_page_server *server, struct address *ret_address);
void metrics_page_stop(struct metrics_page_server *server); /* NULL is fine */

#endif
