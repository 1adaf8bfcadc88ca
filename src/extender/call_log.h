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

/* Room for the sessionUUID of a call. */
enum { CALL_SESSION_BYTES = 37 };

struct call_log {
	struct buffer context;
	struct logger logger;
};

/*
 * method: "FilterHandler", "PrioritizeHandler". Names the request's pod if it could be read. session is the call's UUID,
 * which is made if the text is empty: lines of one call are to have the same. To be ended.
 */
void call_log_begin(struct call_log *log, struct loop *loop, struct log_sink *sink, const char *method,
                    char session[CALL_SESSION_BYTES], const struct request *request);
void call_log_end(struct call_log *log);
/* What became of the pod's volumes, where that is worth a line (I14, L3). */
void call_log_volumes(const struct call_log *log, const struct capacity_plan *plan);

#endif
