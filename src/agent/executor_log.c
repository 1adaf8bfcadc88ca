/*
 * What the executor says: log lines of its workers and of the core, and the core's measurements.
 */
#include "agent/executor_internal.h"

#include "agent/core/core_dump.h"
#include "agent/log_form.h"
#include "codec/rfc3339.h"

#define EXEC_LOGGER "autoscaler-agent.runner.exec"

enum { STATE_ARENA_BYTES = 64 * 1024, INSTANT_TEXT_BYTES = 64 };

struct worker_names {
	const char *task;
	const char *logger;
	const char *start;
	const char *success;
	const char *failure;
};

static const struct worker_names WORKERS[EXECUTOR_WORKERS] = {
	[EXECUTOR_PLUGIN] = { "executor: plugin", EXEC_LOGGER ".plugin", "Starting plugin request",
	                      "Plugin request successful", "Plugin request failed" },
	[EXECUTOR_NEONVM] = { "executor: neonvm", EXEC_LOGGER ".neonvm", "Starting NeonVM request",
	                      "NeonVM request successful", "NeonVM request failed" },
	[EXECUTOR_MONITOR_DOWNSCALE] = { "executor: vm-monitor downscale", EXEC_LOGGER ".vm-monitor-downscale",
	                                 "Starting vm-monitor downscale request", "vm-monitor approved downscale",
	                                 "vm-monitor downscale request failed" },
	[EXECUTOR_MONITOR_UPSCALE] = { "executor: vm-monitor upscale", EXEC_LOGGER ".vm-monitor-upscale",
	                               "Starting vm-monitor upscale request", "vm-monitor upscale request successful",
	                               "vm-monitor upscale request failed" },
};

static struct logger logger_named(const struct executor *executor, const char *name)
{
	return (struct logger){ .sink = executor->log_sink, .name = name, .context_json = executor->log_context };
}

static struct log_field task_field(enum executor_worker_kind kind)
{
	return log_text("taskName", WORKERS[kind].task);
}

const char *executor_task_name(enum executor_worker_kind kind)
{
	return WORKERS[kind].task;
}

struct logger executor_logger(const struct executor *executor, enum executor_worker_kind kind)
{
	return logger_named(executor, WORKERS[kind].logger);
}

/* ---- workers ---- */

static void print_instant(int64_t ns, struct buffer *ret_text)
{
	buffer_init(ret_text, INSTANT_TEXT_BYTES);
	rfc3339_print_nanoseconds(ns, ret_text);
}

void executor_log_recalculation(const struct executor *executor, int64_t now_ns)
{
	struct logger logger = logger_named(executor, EXEC_LOGGER);
	struct state_dump_state state;
	struct log_form form;
	struct arena arena;
	struct buffer now;
	struct error err;

	if (!log_enabled(&logger, LOG_DEBUG))
		return;
	arena_init(&arena, STATE_ARENA_BYTES);
	log_form_begin(&form);
	if (core_dump(&executor->core, &arena, &state, &err))
		state_dump_state_encode(&form.writer, &state);
	print_instant(now_ns, &now);
	log_debug(&logger, "Recalculating ActionSet", log_slice("now", buffer_slice(&now)),
	          log_json("state", log_form_value(&form)));
	buffer_destroy(&now);
	log_form_end(&form);
	arena_destroy(&arena);
}

void executor_log_actions(const struct executor *executor, int64_t now_ns)
{
	struct logger logger = logger_named(executor, EXEC_LOGGER);
	struct log_form form;
	struct buffer now;

	if (!log_enabled(&logger, LOG_DEBUG))
		return;
	log_form_begin(&form);
	log_form_actions(&form.writer, &executor->actions);
	print_instant(now_ns, &now);
	log_debug(&logger, "New ActionSet", log_slice("now", buffer_slice(&now)),
	          log_json("actions", log_form_value(&form)));
	buffer_destroy(&now);
	log_form_end(&form);
}

static void write_action(struct log_form *form, const struct executor *executor, enum executor_worker_kind kind)
{
	log_form_begin(form);
	if (kind == EXECUTOR_PLUGIN)
		log_form_plugin_request(&form->writer, &executor->workers[kind].plugin_request);
	else
		log_form_change_request(&form->writer, &executor->workers[kind].change_request);
}

void executor_log_start(const struct executor *executor, enum executor_worker_kind kind)
{
	struct logger logger = logger_named(executor, WORKERS[kind].logger);
	struct log_form form;

	write_action(&form, executor, kind);
	log_info(&logger, WORKERS[kind].start, task_field(kind), log_json("action", log_form_value(&form)));
	log_form_end(&form);
}

void executor_log_end(const struct executor *executor, enum executor_worker_kind kind, int64_t end_ns,
                      struct slice response, const struct error *err)
{
	const struct executor_worker *worker = &executor->workers[kind];
	struct logger logger = executor_logger(executor, kind);
	struct log_field duration = log_duration("duration", instant_difference(end_ns, worker->started_at_ns));
	struct log_form form;

	write_action(&form, executor, kind);
	if (err != NULL)
		log_error(&logger, WORKERS[kind].failure, task_field(kind), log_json("action", log_form_value(&form)),
		          duration, log_error_field(err));
	else
		/* A field without a key ends the line. */
		log_info(&logger, WORKERS[kind].success, task_field(kind), log_json("action", log_form_value(&form)),
		         duration, log_json(response.length > 0 ? "response" : NULL, response));
	log_form_end(&form);
}

void executor_log_monitor_end(const struct executor *executor, enum executor_worker_kind kind, int64_t end_ns,
                              bool unchanged, const char *denied, struct slice response, const struct error *err)
{
	const struct executor_worker *worker = &executor->workers[kind];
	struct logger logger = executor_logger(executor, kind);
	struct log_field duration = log_duration("duration", instant_difference(end_ns, worker->started_at_ns));
	struct log_field same = log_bool("unchanged", unchanged);
	struct log_field details = log_json(response.length > 0 ? "response" : NULL, response);
	struct log_field action;
	struct log_form form;

	write_action(&form, executor, kind);
	action = log_json("action", log_form_value(&form));
	if (err != NULL)
		log_error(&logger, WORKERS[kind].failure, task_field(kind), action, duration, same,
		          log_error_field(err));
	else if (denied != NULL)
		log_warn(&logger, denied, task_field(kind), action, duration, same, details);
	else
		log_info(&logger, WORKERS[kind].success, task_field(kind), action, duration, same, details);
	log_form_end(&form);
}

/* ---- what the core reports while it is being asked ---- */

static void on_warn(void *context, const char *text)
{
	const struct executor *executor = context;
	struct logger logger = logger_named(executor, EXEC_LOGGER ".core");

	log_warn(&logger, text);
}

static void on_calculated(void *context, const struct core_calculation *calculation)
{
	const struct executor *executor = context;
	struct logger logger = logger_named(executor, EXEC_LOGGER ".core");
	struct log_form current, target, revision, lfc;

	if (!log_enabled(&logger, LOG_INFO))
		return;
	log_form_begin(&current);
	log_form_begin(&target);
	log_form_begin(&revision);
	log_form_begin(&lfc);
	log_form_resources(&current.writer, calculation->current);
	log_form_resources(&target.writer, calculation->target);
	log_form_revision(&revision.writer, calculation->target_revision);
	log_form_lfc_report(&lfc.writer, &calculation->lfc);
	/* A field whose key is NULL ends the line. */
	log_info(&logger, "Calculated desired resources", log_json("current", log_form_value(&current)),
	         log_json("target", log_form_value(&target)), log_json("targetRevision", log_form_value(&revision)),
	         log_json(calculation->has_lfc ? "lfc" : NULL, log_form_value(&lfc)));
	log_form_end(&current);
	log_form_end(&target);
	log_form_end(&revision);
	log_form_end(&lfc);
}

static enum agent_direction direction_of(uint64_t flags)
{
	bool up = (flags & REVISION_UPSCALE) != 0;
	bool down = (flags & REVISION_DOWNSCALE) != 0;

	if (up && down)
		return AGENT_DIRECTION_BOTH;
	if (up)
		return AGENT_DIRECTION_INC;
	return down ? AGENT_DIRECTION_DEC : AGENT_DIRECTION_NONE;
}

static void on_latency(void *context, enum core_latency kind, int64_t latency_ns, uint64_t flags)
{
	static const enum agent_latency KINDS[] = {
		[CORE_LATENCY_PLUGIN] = AGENT_LATENCY_PLUGIN,
		[CORE_LATENCY_MONITOR] = AGENT_LATENCY_MONITOR,
		[CORE_LATENCY_NEONVM] = AGENT_LATENCY_NEONVM,
		[CORE_LATENCY_SCALING] = AGENT_LATENCY_SCALING,
	};
	const struct executor *executor = context;

	agent_metrics_observe_latency(executor->metrics, KINDS[kind], direction_of(flags), latency_ns);
}

/* The core's callbacks can't fail: remembered, and looked at when the core returns. */
static void on_actual_scaling(void *context, int64_t now_ns, uint32_t current_cu, uint32_t target_cu)
{
	struct executor *executor = context;
	struct error err;

	(void)now_ns;
	if (executor->handler.actual_scaling(executor->handler.context, current_cu, target_cu, &err))
		return;
	executor->callback_failed = true;
	executor->callback_error = err;
}

static void on_hypothetical_scaling(void *context, int64_t now_ns, uint32_t current_cu, uint32_t goal_cu,
                                    const struct goal_parts *parts)
{
	struct executor *executor = context;
	struct error err;

	(void)now_ns;
	if (executor->handler.hypothetical_scaling(executor->handler.context, current_cu, goal_cu, parts, &err))
		return;
	executor->callback_failed = true;
	executor->callback_error = err;
}

struct core_callbacks executor_core_callbacks(struct executor *executor)
{
	return (struct core_callbacks){
		.context = executor,
		.warn = on_warn,
		.calculated = on_calculated,
		.latency = on_latency,
		.actual_scaling = on_actual_scaling,
		.hypothetical_scaling = on_hypothetical_scaling,
	};
}
