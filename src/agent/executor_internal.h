/*
 * What the executor's two files share: its log lines, and what the core reports while it is being asked.
 */
#ifndef BALLAST_AGENT_EXECUTOR_INTERNAL_H
#define BALLAST_AGENT_EXECUTOR_INTERNAL_H

#include "agent/executor.h"

/* "executor: plugin". */
const char *executor_task_name(enum executor_worker_kind kind);
struct logger executor_logger(const struct executor *executor, enum executor_worker_kind kind);

/* Debug lines around a computation of the actions. */
void executor_log_recalculation(const struct executor *executor, int64_t now_ns);
void executor_log_actions(const struct executor *executor, int64_t now_ns);
void executor_log_start(const struct executor *executor, enum executor_worker_kind kind);
/* err NULL: success; response: JSON, or empty. */
void executor_log_end(const struct executor *executor, enum executor_worker_kind kind, int64_t end_ns,
                      struct slice response, const struct error *err);
/* denied: what to say instead of the success; or NULL. */
void executor_log_monitor_end(const struct executor *executor, enum executor_worker_kind kind, int64_t end_ns,
                              bool unchanged, const char *denied, struct slice response, const struct error *err);

struct core_callbacks executor_core_callbacks(struct executor *executor);

#endif
