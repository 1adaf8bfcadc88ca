/*
 * What a runner is made of, for its own two files only: runner.c has its life, runner_handlers.c what it does when one
 * of its parts reports something.
 */
#ifndef BALLAST_AGENT_RUNNER_INTERNAL_H
#define BALLAST_AGENT_RUNNER_INTERNAL_H

#include "agent/executor.h"
#include "agent/monitor_client.h"
#include "agent/runner.h"
#include "agent/scheduler_client.h"
#include "agent/scrape.h"

#define RUNNER_LOGGER "autoscaler-agent.runner"
#define EXEC_LOGGER RUNNER_LOGGER ".exec"

struct runner {
	const struct runner_environment *environment;
	struct runner_status *status;
	void (*on_failed)(void *context);
	void *context;
	char *pod_name;
	char pod_ip[AGENT_POD_IP_BYTES];
	struct buffer log_context;
	uint64_t slot_bytes; /* as of the start (6.3) */
	bool stopped;
	const char *broken_task; /* whose failure ends the run; static; NULL: none */
	void *patch;
	bool changed_since_patch; /* the VM was seen after the end of the last patch */
	unsigned odd_refreshes;   /* that saw odd_size, which isn't what the core believes to be in use */
	struct resources odd_size;
	struct loop_task vm_changed;
	struct loop_task failure;
	struct loop_timer refresh;
	struct scaling_event_source scaling_events;
	struct executor executor;
	struct scrape system_scrape;
	struct scrape lfc_scrape;
	struct scheduler_client scheduler;
	struct monitor_client monitor;
};

struct logger runner_logger_named(const struct runner *runner, const char *name);
/* executor_handler.failed */
void runner_on_failed(void *context, const char *task_name, const struct error *err);

struct executor_handler runner_executor_handler(struct runner *runner);
struct scheduler_client_handler runner_scheduler_handler(struct runner *runner);
struct monitor_client_handler runner_monitor_handler(struct runner *runner);
struct scrape_handler runner_system_scrape_handler(struct runner *runner);
struct scrape_handler runner_lfc_scrape_handler(struct runner *runner);
/* A patch under way counts as failed. */
void runner_cancel_patch(struct runner *runner);

#endif
