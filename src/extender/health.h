/*
 * The health port (spec extender 9, 21): /healthz answers while the loop turns, /readyz says whether the scheduler may
 * rely on this extender. HTTP instead of the reference's gRPC; /health_probe in the image asks it.
 */
#ifndef BALLAST_EXTENDER_HEALTH_H
#define BALLAST_EXTENDER_HEALTH_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "net/address.h"
#include "net/loop.h"

struct health;

/* Texts must outlive it. */
struct health_options {
	struct loop *loop;
	struct address address;
	bool patching_enabled;      /* without it, ready from the start (Y2) */
	const char *readiness_path; /* read on every call (Y3) */
	const char *node_name;
	struct logger logger;
};

struct health *health_start(const struct health_options *options, struct error *err);
bool health_address(const struct health *health, struct address *ret_address);
/* From now on not ready: the process is about to end. */
void health_set_stopping(struct health *health);
void health_stop(struct health *health); /* NULL is fine */

#endif
