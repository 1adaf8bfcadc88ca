/*
 * Fetches a VM's metrics page again and again: one loop for the system page, one for that of the file cache (spec
 * agent-runtime 8).
 *
 * The VM is not trusted: a page is capped, has a deadline over all, and can't redirect; each request has its own
 * connection, so that a guest holds no socket of ours between two.
 */
#ifndef BALLAST_AGENT_SCRAPE_H
#define BALLAST_AGENT_SCRAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/core/vm_metrics.h"
#include "agent/limits.h"
#include "base/log.h"
#include "metrics/text_parser.h"
#include "net/http_client.h"
#include "net/loop.h"

enum { SCRAPE_JITTER_PERCENT = 2 }; /* by how much a pause between two requests may be off, either way */

enum scrape_kind { SCRAPE_SYSTEM, SCRAPE_LFC };

struct scrape_handler {
	void *context;
	/* Asked before each round. NULL: always. */
	bool (*is_active)(void *context);
	/* One of them, by kind. */
	void (*on_system)(void *context, const struct system_metrics *metrics);
	void (*on_lfc)(void *context, const struct lfc_metrics *metrics);
};

struct scrape {
	struct loop *loop;
	struct http_client *http;
	struct metrics_text_parser *parser;
	const struct agent_scrape_config *config;
	enum scrape_kind kind;
	const char *lenient_prefix;
	struct scrape_handler handler;
	struct logger logger;
	bool was_active;
	char host[AGENT_POD_IP_BYTES];
	struct loop_timer timer;
	struct http_exchange *exchange;
};

struct scrape_options {
	struct loop *loop;
	struct http_client *http;
	struct metrics_text_parser *parser; /* a workplace, shared by all */
	const struct agent_scrape_config *config;
	enum scrape_kind kind;
	const char *pod_ip;
	const char *
		lenient_prefix; /* system page: read by lines (scrape_lines.h), names begin so; NULL: Prometheus text */
	struct scrape_handler handler;
	struct logger logger;
};

/*
 * The struct must stay where it is until scrape_stop. The first request comes at a random moment within the configured
 * interval, or at once if the configuration says so; each further one an interval after the end of the one before, give or take the jitter.
 */
void scrape_start(struct scrape *scrape, const struct scrape_options *options);
void scrape_stop(struct scrape *scrape);

/* "get system metrics", "get LFC metrics". */
const char *scrape_task_name(enum scrape_kind kind);

#endif
