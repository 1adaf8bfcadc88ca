/*
 * The executor drives one scaling core: it asks for the next actions after every change, starts the requests they call
 * for, at most one of a kind at a time, and takes the results back to the core (spec agent-core 8).
 *
 * It knows no peers: it asks its handler to start a request, and its owner reports the end through executor_…_done,
 * which may happen within the very call. Nothing is evaluated before the first executor_update.
 */
#ifndef BALLAST_AGENT_EXECUTOR_H
#define BALLAST_AGENT_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent_clock.h"
#include "agent/agent_metrics.h"
#include "agent/core/core.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "net/loop.h"

struct executor_handler {
	void *context;
	void (*start_plugin)(void *context, const struct core_plugin_request *request);
	/* target_revision: the action's, stamped with the moment of sending. */
	void (*start_neonvm)(void *context, const struct core_change_request *request,
	                     struct revision_with_time target_revision);
	void (*start_monitor_downscale)(void *context, const struct core_change_request *request);
	void (*start_monitor_upscale)(void *context, const struct core_change_request *request);
	/* What becomes a scaling event. False is an internal failure. */
	bool (*actual_scaling)(void *context, uint32_t current_cu, uint32_t target_cu, struct error *err);
	bool (*hypothetical_scaling)(void *context, uint32_t current_cu, uint32_t goal_cu,
	                             const struct goal_parts *parts, struct error *err);
	/*
	 * An invariant broke: the executor has stopped for good. task_name: the worker it happened in. Don't destroy
	 * within the call.
	 */
	void (*failed)(void *context, const char *task_name, const struct error *err);
};

enum executor_worker_kind {
	EXECUTOR_PLUGIN,
	EXECUTOR_NEONVM,
	EXECUTOR_MONITOR_DOWNSCALE,
	EXECUTOR_MONITOR_UPSCALE,
	EXECUTOR_WORKERS,
};

struct executor_worker {
	bool busy;
	int64_t started_at_ns;
	int64_t sent_at_ns;
	uint64_t generation; /* of the monitor connection, or the scheduler, it went to */
	struct core_plugin_request plugin_request;
	struct core_change_request change_request;
};

struct executor {
	struct loop *loop;
	const struct agent_clock *clock;
	struct agent_metrics *metrics;
	struct executor_handler handler;
	struct log_sink *log_sink;
	const char *log_context;
	bool stopped;
	bool has_actions; /* `actions` is still what the core would say */
	bool callback_failed;
	bool monitor_connected;
	uint64_t generation;           /* */
	uint64_t scheduler_generation; /* generations 3, G16 */
	struct core_actions actions;
	struct executor_worker workers[EXECUTOR_WORKERS];
	struct loop_task pass;
	struct loop_timer sleeper;
	struct error callback_error;
	struct core core;
};

struct executor_options {
	struct loop *loop;
	const struct agent_clock *clock;
	struct agent_metrics *metrics;
	const struct core_config *core;
	const struct vm_info *vm_info;
	struct executor_handler handler;
	struct log_sink *log_sink;
	const char *log_context; /* of the runner's logger; must outlive the executor */
};

/* The struct must stay where it is until executor_stop. */
void executor_init(struct executor *executor, const struct executor_options *options);
/* Does nothing any more, whatever still comes in. Allowed at any time, also twice. */
void executor_stop(struct executor *executor);

/*
 * The core, to be changed right now by the caller: what the executor knew about the next actions is void, and they
 * will be asked for again soon. NULL once stopped.
 */
struct core *executor_update(struct executor *executor);
/* As executor_update, when changing the core may fail: executor_broken ends everything with what the core said. */
void executor_broken(struct executor *executor, const char *task_name, const struct error *err);

/* A monitor connection is there, or it (or an attempt at one) is torn down. */
void executor_monitor_connected(struct executor *executor);
void executor_monitor_disconnected(struct executor *executor);

/*
 * Another scheduler is the one to ask, or there is none. Only a core with plugin_gate cares (generations 3, G14 … G16):
 * the answer to a request that an earlier one got is then dropped, but no request is made before it has come.
 */
void executor_scheduler_changed(struct executor *executor, bool present);

/*
 * Ends of requests; err NULL is a success. response: JSON for the log, may be empty. compute_unit: the one the reply
 * named, zero for none.
 */
void executor_plugin_done(struct executor *executor, struct resources permit, struct resources compute_unit,
                          struct slice response, const struct error *err);
void executor_neonvm_done(struct executor *executor, const struct error *err);
void executor_monitor_downscale_done(struct executor *executor, bool allowed, struct slice response,
                                     const struct error *err);
void executor_monitor_upscale_done(struct executor *executor, const struct error *err);

#endif
