#include "net/log_pump.h"

#include "base/clock.h"

enum { RETRY_MS = 250 };

static void on_waiting(void *context);

static void stop_watch(struct log_pump *pump)
{
	if (pump->watch != NULL)
		loop_watch_stop(pump->watch);
	pump->watch = NULL;
}

static void on_writable(void *context)
{
	struct log_pump *pump = context;

	if (!log_flush(pump->sink))
		stop_watch(pump);
}

static void on_retry(void *context)
{
	struct log_pump *pump = context;

	if (log_flush(pump->sink))
		on_waiting(pump);
}

static void on_waiting(void *context)
{
	struct log_pump *pump = context;
	struct error ignored;

	if (pump->watch != NULL || loop_timer_running(&pump->timer))
		return;
	pump->watch = loop_watch_descriptor(pump->loop, log_descriptor(pump->sink), SOCKET_WRITE, on_writable, pump,
	                                    &ignored);
	/* Memory is short, or the descriptor is of a kind that can't be watched. */
	if (pump->watch == NULL)
		loop_timer_start(pump->loop, &pump->timer, (uint64_t)RETRY_MS * NS_PER_MS, on_retry, pump);
}

void log_pump_start(struct log_pump *pump, struct loop *loop, struct log_sink *sink)
{
	*pump = (struct log_pump){ .loop = loop, .sink = sink };
	log_sink_tell_waiting(sink, on_waiting, pump);
}

void log_pump_stop(struct log_pump *pump)
{
	if (pump->loop == NULL)
		return;
	log_sink_tell_waiting(pump->sink, NULL, NULL);
	stop_watch(pump);
	loop_timer_stop(pump->loop, &pump->timer);
	pump->loop = NULL;
}
