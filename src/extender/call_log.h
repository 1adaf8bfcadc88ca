/*
 * The log of one call: its lines carry what people look for (spec extender P10): component, method, pod, namespace and
 * sessionUUID.
 */
#ifndef BALLAST_EXTENDER_CALL_LOG_H
#define BALLAST_EXTENDER_CALL_LOG_H

#include "base/buffer.h"
#include "base/log.h"
#include "extender/capacity_requests.h"
#include "extender/request.h"
#include "net/loop.h"

struct call_log {
	struct buffer context;
	struct logger logger;
};

/* method: "FilterHandler", "PrioritizeHandler". Names the request's pod if it could be read. To be ended. */
void call_log_begin(struct call_log *log, struct loop *loop, struct log_sink *sink, const char *method,
                    const struct request *request);
void call_log_end(struct call_log *log);
/* What became of the pod's volumes, where that is worth a line (I14, L3). */
void call_log_volumes(const struct call_log *log, const struct capacity_plan *plan);

#endif
