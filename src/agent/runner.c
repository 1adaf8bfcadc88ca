#include "agent/runner_internal.h"

#include <stdio.h>
#include <string.h>

#include "agent/log_form.h"
#include "agent/runner_events.h"
#include "base/clock.h"
#include "base/memory.h"

#define RUNNER_LOGGER "autoscaler-agent.runner"
#define EXEC_LOGGER RUNNER_LOGGER ".exec"

static const char VM_INFO_TASK[] = "VmInfo updater";
static const char LFC_TASK[] = "get LFC metrics";
static const char MONITOR_TASK[] = "vm-monitor reconnection loop";

enum {
	CONTEXT_BYTES = 4096,
	ODD_REFRESHES = 3, /* in a row that see the same size, not the one believed in: no matter of a late event */
};

/*
 * Of the reference's workers (3.4) those that are ours too: it also has one that looks for deadlocks of its own locks.
 */
static const struct {
	const char *logger;
	const char *task;
} TASKS[] = {
	{ RUNNER_LOGGER, "podStatus updater" },
	{ RUNNER_LOGGER, VM_INFO_TASK },
	{ RUNNER_LOGGER, "get system metrics" },
	{ RUNNER_LOGGER, LFC_TASK },
	{ RUNNER_LOGGER ".vm-monitor", MONITOR_TASK },
	{ EXEC_LOGGER ".sleeper", "executor: sleeper" },
	{ EXEC_LOGGER ".plugin", "executor: plugin" },
	{ EXEC_LOGGER ".neonvm", "executor: neonvm" },
	{ EXEC_LOGGER ".vm-monitor-downscale", "executor: vm-monitor downscale" },
	{ EXEC_LOGGER ".vm-monitor-upscale", "executor: vm-monitor upscale" },
};

enum { REFERENCE_TASKS = 11, REFERENCE_CONNECTION_TASKS = 2 };

static const char *log_context(const struct runner *runner)
{
	return runner->log_context.data;
}

struct logger runner_logger_named(const struct runner *runner, const char *name)
{
	return (struct logger){
		.sink = runner->environment->log_sink,
		.name = name,
		.context_json = log_context(runner),
	};
}

static struct logger runner_logger(const struct runner *runner)
{
	return runner_logger_named(runner, RUNNER_LOGGER);
}

/* The task that broke has had its last line already. */
static void log_tasks(const struct runner *runner, const char *message)
{
	for (size_t i = 0; i < sizeof TASKS / sizeof TASKS[0]; i++) {
		struct logger logger = runner_logger_named(runner, TASKS[i].logger);

		if (TASKS[i].task == LFC_TASK && runner->environment->config->no_lfc_metrics)
			continue;
		if (runner->broken_task == NULL || strcmp(TASKS[i].task, runner->broken_task) != 0)
			log_info(&logger, message, log_text("taskName", TASKS[i].task));
	}
}

/* ---- failure ---- */

static void tell_failure(void *context)
{
	struct runner *runner = context;

	runner_stop(runner);
	runner->on_failed(runner->context);
}

/* The caller may be deep within one of the parts: they are stopped from the loop. */
void runner_on_failed(void *context, const char *task_name, const struct error *err)
{
	struct runner *runner = context;
	struct logger logger = runner_logger(runner);

	runner->broken_task = task_name;
	agent_metrics_count_runner_panic(runner->environment->metrics);
	log_error(&logger, "background worker panicked", log_text("taskName", task_name), log_error_field(err));
	loop_run_soon(runner->environment->loop, &runner->failure, tell_failure, runner);
}

/* ---- status ---- */

static void warn_stuck(const struct runner *runner)
{
	struct runner_status *status = runner->status;
	struct logger logger = runner_logger(runner);
	struct log_field task = log_text("taskName", "podStatus updater");
	struct buffer reasons;

	if (status->label.state != AGENT_RUNNER_STUCK)
		return;
	buffer_init(&reasons, RUNNER_STATUS_REASONS_BYTES);
	(void)runner_status_stuck(status, &reasons);
	if (status->endpoint_id[0] != '\0')
		log_warn(&logger, "Runner with endpoint is currently stuck", task,
		         log_text("endpointID", status->endpoint_id), log_slice("reasons", buffer_slice(&reasons)));
	else
		log_warn(&logger, "Runner without endpoint is currently stuck", task,
		         log_slice("reasons", buffer_slice(&reasons)));
	buffer_destroy(&reasons);
}

/*
 * The core believes in what its patches did. A patch whose answer never came may still be carried out, even after later
 * ones: then the VM has another size than the core believes, and would keep it until the core wants something else.
 */
static void check_size(struct runner *runner)
{
	struct resources seen = vm_info_using(&runner->status->vm_info);
	struct logger logger = runner_logger(runner);
	struct core *core;
	struct error err;

	if (!runner->changed_since_patch || runner->patch != NULL ||
	    resources_equal(seen, core_using(&runner->executor.core))) {
		runner->odd_refreshes = 0;
		return;
	}
	if (runner->odd_refreshes == 0 || !resources_equal(seen, runner->odd_size)) {
		runner->odd_size = seen;
		runner->odd_refreshes = 0;
	}
	if (++runner->odd_refreshes < ODD_REFRESHES)
		return;
	runner->odd_refreshes = 0;
	core = executor_update(&runner->executor);
	if (core == NULL)
		return;
	log_warn(&logger, "The VM has another size than the one last asked for; going on from that",
	         log_text("taskName", "podStatus updater"), log_uint("cpuMilli", seen.cpu_milli),
	         log_uint("memoryBytes", seen.mem_bytes));
	if (!core_correct_using(core, seen, &err))
		executor_broken(&runner->executor, "podStatus updater", &err);
}

static void on_refresh(void *context)
{
	struct runner *runner = context;

	runner_status_refresh(runner->status);
	warn_stuck(runner);
	runner_events_tell_state(runner->environment, runner->status);
	check_size(runner);
	loop_timer_start(runner->environment->loop, &runner->refresh, runner_status_refresh_wait_ns(runner->status),
	                 on_refresh, runner);
}

static void take_vm_change(void *context)
{
	struct runner *runner = context;
	const struct vm_info *vm = &runner->status->vm_info;
	struct core *core = executor_update(&runner->executor);
	struct logger logger = runner_logger(runner);
	struct log_form form;
	struct error err;

	if (core == NULL)
		return;
	log_form_begin(&form);
	log_form_vm_info(&form.writer, vm);
	log_info(&logger, "VmInfo updated", log_text("taskName", VM_INFO_TASK),
	         log_json("vmInfo", log_form_value(&form)));
	log_form_end(&form);
	runner->changed_since_patch = true;
	if (!core_updated_vm(core, vm, &err))
		executor_broken(&runner->executor, VM_INFO_TASK, &err);
}

void runner_vm_changed(struct runner *runner)
{
	if (!runner->stopped)
		loop_run_soon(runner->environment->loop, &runner->vm_changed, take_vm_change, runner);
}

/* ---- life ---- */

static bool keep_names(struct runner *runner, const struct runner_options *options, struct error *err)
{
	const struct vm_info *vm = &runner->status->vm_info;
	struct buffer *context = &runner->log_context;

	runner->pod_name = memory_copy_text(options->pod_name, strlen(options->pod_name));
	if (runner->pod_name == NULL)
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	(void)snprintf(runner->pod_ip, sizeof runner->pod_ip, "%s", options->pod_ip);
	buffer_init(context, CONTEXT_BYTES);
	buffer_append_format(context, "\"restarts\":%llu,", (unsigned long long)runner->status->restarts);
	log_form_append_vm_context(context, slice_of(vm->namespace), slice_of(vm->name), slice_of(runner->pod_name));
	buffer_append_char(context, '\0');
	return buffer_check(context, "log context of a runner", err);
}

static void start_executor(struct runner *runner)
{
	const struct runner_environment *environment = runner->environment;
	struct core_config core = environment->config->core;
	const uint64_t jitter_ms =
		rng_between(loop_rng(environment->loop), 0, environment->config->plugin_tick_jitter_ms);

	core.plugin_request_tick_ns -= (int64_t)(jitter_ms * NS_PER_MS);
	core.clamp_instead_of_fail = true; /* decision 1 over the specification */
	const struct executor_options options = {
		.loop = environment->loop,
		.clock = environment->clock,
		.metrics = environment->metrics,
		.core = &core,
		.vm_info = &runner->status->vm_info,
		.handler = runner_executor_handler(runner),
		.log_sink = environment->log_sink,
		.log_context = log_context(runner),
	};

	executor_init(&runner->executor, &options);
}

static void start_scrapes(struct runner *runner)
{
	const struct runner_environment *environment = runner->environment;
	struct scrape_options options = {
		.loop = environment->loop,
		.http = environment->http,
		.parser = environment->parser,
		.config = &environment->config->system_metrics,
		.kind = SCRAPE_SYSTEM,
		.pod_ip = runner->pod_ip,
		.handler = runner_system_scrape_handler(runner),
		.lenient_prefix = environment->config->lenient_metrics ? environment->config->metrics_prefix : NULL,
		.logger = runner_logger(runner),
	};

	scrape_start(&runner->system_scrape, &options);
	if (environment->config->no_lfc_metrics)
		return;
	options.config = &environment->config->lfc_metrics;
	options.kind = SCRAPE_LFC;
	options.handler = runner_lfc_scrape_handler(runner);
	scrape_start(&runner->lfc_scrape, &options);
}

static void start_clients(struct runner *runner)
{
	const struct runner_environment *environment = runner->environment;
	const struct scheduler_client scheduler = {
		.loop = environment->loop,
		.http = environment->http,
		.config = environment->config,
		.versions = environment->plugin_versions,
		.metrics = environment->metrics,
		.namespace = runner->status->vm_info.namespace,
		.pod_name = runner->pod_name,
		.slot_bytes = runner->slot_bytes,
		.handler = runner_scheduler_handler(runner),
		.logger = runner_logger_named(runner, EXEC_LOGGER ".plugin.client"),
	};
	const struct monitor_client monitor = {
		.loop = environment->loop,
		.config = &environment->config->monitor,
		.metrics = environment->metrics,
		.handler = runner_monitor_handler(runner),
		.host = runner->pod_ip,
		.capital_texts = environment->config->generation == AGENT_GENERATION_A,
		.log_sink = environment->log_sink,
		.log_context = log_context(runner),
	};

	scheduler_client_init(&runner->scheduler, &scheduler);
	monitor_client_start(&runner->monitor, &monitor);
}

static bool has_scheduler(const struct runner *runner)
{
	const struct runner_peers *peers = &runner->environment->peers;

	return peers->current_scheduler(peers->context) != NULL;
}

/* What the core hears of the scheduler before anything else. */
static void meet_scheduler(struct runner *runner)
{
	struct logger logger = runner_logger(runner);

	if (has_scheduler(runner))
		executor_scheduler_changed(&runner->executor, true);
	else
		log_warn(&logger, "No initial scheduler found");
}

void runner_scheduler_changed(struct runner *runner)
{
	if (!runner->stopped && runner->environment->config->core.plugin_gate)
		executor_scheduler_changed(&runner->executor, has_scheduler(runner));
}

struct runner *runner_start(const struct runner_options *options, struct error *err)
{
	struct runner *runner = memory_allocate(sizeof *runner);

	if (runner == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory");
		return NULL;
	}
	runner->environment = options->environment;
	runner->status = options->status;
	runner->on_failed = options->on_failed;
	runner->context = options->context;
	runner->slot_bytes = options->status->vm_info.mem.slot_bytes;
	if (!keep_names(runner, options, err)) {
		buffer_destroy(&runner->log_context);
		memory_release(runner->pod_name);
		memory_release(runner);
		return NULL;
	}
	scaling_events_init(&runner->scaling_events, runner->environment->scaling_events, runner->environment->metrics,
	                    runner->environment->config->scaling_events_cu_multiplier);
	log_tasks(runner, "background worker started");
	start_executor(runner);
	start_scrapes(runner);
	start_clients(runner);
	loop_timer_start(runner->environment->loop, &runner->refresh, runner_status_refresh_wait_ns(runner->status),
	                 on_refresh, runner);
	if (runner->environment->config->core.plugin_gate)
		meet_scheduler(runner);
	return runner;
}

void runner_stop(struct runner *runner)
{
	struct loop *loop = runner->environment->loop;

	if (runner->stopped)
		return;
	runner->stopped = true;
	loop_task_cancel(loop, &runner->vm_changed);
	loop_task_cancel(loop, &runner->failure);
	loop_timer_stop(loop, &runner->refresh);
	/* First of all: what the others report while they stop has no consequences any more. */
	executor_stop(&runner->executor);
	scrape_stop(&runner->system_scrape);
	if (!runner->environment->config->no_lfc_metrics)
		scrape_stop(&runner->lfc_scrape);
	scheduler_client_stop(&runner->scheduler);
	runner_cancel_patch(runner);
	monitor_client_stop(&runner->monitor);
	log_tasks(runner, "background worker ended normally");
}

void runner_destroy(struct runner *runner)
{
	if (runner == NULL)
		return;
	runner_stop(runner);
	buffer_destroy(&runner->log_context);
	memory_release(runner->pod_name);
	memory_release(runner);
}

/* ---- for the state dump ---- */

const struct core *runner_core(const struct runner *runner)
{
	return &runner->executor.core;
}

const char *runner_pod_ip(const struct runner *runner)
{
	return runner->pod_ip;
}

bool runner_monitor_connected(const struct runner *runner)
{
	return monitor_client_connected(&runner->monitor);
}

size_t runner_monitor_waiting_calls(const struct runner *runner)
{
	return monitor_client_waiting_calls(&runner->monitor);
}

size_t runner_background_worker_count(const struct runner *runner)
{
	if (runner->stopped)
		return 0;
	return REFERENCE_TASKS + (runner_monitor_connected(runner) ? REFERENCE_CONNECTION_TASKS : 0);
}
