/*
 * Lets a log's slow reader take its time (design section 1.4): while something waits for the log's descriptor, and only
 * then, the loop watches it and writes on when it can.
 */
#ifndef BALLAST_NET_LOG_PUMP_H
#define BALLAST_NET_LOG_PUMP_H

#include "base/log.h"
#include "net/loop.h"

/* Embedded in its owner, zero-initialised; mustn't move once started. */
struct log_pump {
	struct loop *loop; /* NULL: not started */
	struct log_sink *sink;
	struct loop_watch *watch; /* while something waits */
	struct loop_timer timer;  /* instead, if the descriptor can't be watched */
};

void log_pump_start(struct log_pump *pump, struct loop *loop, struct log_sink *sink);
/* Before the sink or the loop goes. Again, or without a start: no-op. */
void log_pump_stop(struct log_pump *pump);

#endif
