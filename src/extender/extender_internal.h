/*
 * What the extender is made of, for its own files only: extender.c has its life from the first step to the last,
 * extender_start.c the steps of the start-up.
 */
#ifndef BALLAST_EXTENDER_EXTENDER_INTERNAL_H
#define BALLAST_EXTENDER_EXTENDER_INTERNAL_H

#include <stdbool.h>

#include "base/token_bucket.h"
#include "extender/caches.h"
#include "extender/event_lists.h"
#include "extender/extender.h"
#include "extender/extender_metrics.h"
#include "extender/filter_call.h"
#include "extender/health.h"
#include "extender/metrics_page.h"
#include "extender/server.h"
#include "extender/tls_files.h"
#include "kube/client.h"
#include "net/log_pump.h"
#include "net/loop.h"

struct extender {
	const struct extender_arguments *arguments;
	struct loop *loop;
	struct log_sink *log_sink;
	struct log_pump log_pump;
	int signals; /* descriptor; -1: none */
	struct loop_watch *signal_watch;
	bool fatal;
	bool stopping;

	struct extender_settings settings;
	struct extender_metrics *metrics;
	struct loop_timer sweep; /* of the metrics */
	struct metrics_page_server *metrics_page;
	struct kube_client *kube;
	struct token_bucket limiter; /* of live calls (P5) */
	struct caches *caches;
	struct event_lists *events;
	struct filter_environment environment;
	struct tls_files *tls;
	struct health *health;
	struct extender_server *server;
};

struct logger extender_logger(const struct extender *extender);
/* Logs the line that is the last, and ends the loop: exit status 1. */
void extender_fail(struct extender *extender, const char *message, const struct error *err);

/*
 * For whoever runs an extender on a loop of his own (the simulator) instead of extender_run: the struct is zero but for
 * arguments, loop, log_sink and signals (-1). extender_dismantle comes after extender_start, whatever that said, and
 * leaves loop and log sink alone.
 */
void extender_dismantle(struct extender *extender);
/* As SIGTERM: ends in good order, then stops the loop. */
void extender_stop(struct extender *extender);

/* Does the steps of P6 up to the caches; the others follow from the loop. False: extender_fail was called. */
bool extender_start(struct extender *extender);

#endif
