#include "agent/supervisor_internal.h"

#include <stdio.h>
#include <string.h>

#include "agent/log_form.h"
#include "agent/runner_events.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/table.h"

#define MAIN_LOOP_LOGGER "autoscaler-agent.main-loop"

/* 6.8: who ran longer than this is restarted at once, others after 5 to 9 seconds. */
enum { LONG_RUN_S = 10, RESTART_WAIT_LOW_S = 5, RESTART_WAIT_HIGH_S = 10 };

enum { EVENT_CONTEXT_BYTES = 8192, KEY_BYTES = VM_NAMESPACE_BYTES_MAX + 1 + VM_NAME_BYTES_MAX };

static void on_runner_failed(void *context);

/* ---- log lines between two runs ---- */

struct pod_log {
	struct buffer context;
	struct logger logger;
};

static void pod_log_begin(struct pod_log *log, const struct pod *pod)
{
	const struct vm_info *vm = &pod->status.vm_info;

	buffer_init(&log->context, EVENT_CONTEXT_BYTES);
	buffer_append_format(&log->context, "\"restarts\":%llu,", (unsigned long long)pod->status.restarts);
	log_form_append_vm_context(&log->context, slice_of(vm->namespace), slice_of(vm->name), slice_of(pod->pod_name));
	buffer_append_char(&log->context, '\0');
	log->logger = (struct logger){
		.sink = pod->supervisor->environment.log_sink,
		.name = "autoscaler-agent.runner",
		.context_json = log->context.failed ? "" : log->context.data,
	};
}

static void pod_log_end(struct pod_log *log)
{
	buffer_destroy(&log->context);
}

/* ---- runs ---- */

static void restart(void *context);

static bool run_is_over(const struct pod *pod)
{
	return pod->status.end.exit != RUNNER_NOT_ENDED;
}

/* The run before, if any, stays to be looked at until here. */
static bool start_run(struct pod *pod, struct error *err)
{
	const struct runner_options options = {
		.environment = &pod->supervisor->environment,
		.status = &pod->status,
		.pod_name = pod->pod_name,
		.pod_ip = pod->pod_ip,
		.on_failed = on_runner_failed,
		.context = pod,
	};

	runner_destroy(pod->runner);
	pod->runner = runner_start(&options, err);
	return pod->runner != NULL;
}

static void restart_later(struct pod *pod)
{
	struct loop *loop = pod->supervisor->environment.loop;
	uint64_t wait_s = rng_between(loop_rng(loop), RESTART_WAIT_LOW_S, RESTART_WAIT_HIGH_S);

	loop_timer_start(loop, &pod->restart, wait_s * NS_PER_S, restart, pod);
}

static void restart(void *context)
{
	struct pod *pod = context;
	struct pod_log log;
	struct error err;

	agent_metrics_count_runner_restart(pod->supervisor->environment.metrics);
	pod_log_begin(&log, pod);
	log_info(&log.logger, "Restarting runner");
	runner_status_restarted(&pod->status);
	runner_events_tell_restart(&pod->supervisor->environment, &pod->status);
	if (!start_run(pod, &err)) {
		log_error(&log.logger, "Failed to restart runner", log_error_field(&err));
		runner_status_ended(&pod->status, RUNNER_PANICKED);
		restart_later(pod);
	}
	pod_log_end(&log);
}

static void on_runner_failed(void *context)
{
	struct pod *pod = context;
	int64_t runtime_ns;
	struct pod_log log;

	runner_status_ended(&pod->status, RUNNER_PANICKED);
	pod_log_begin(&log, pod);
	log_info(&log.logger, "Runner had abnormal exit kind; it will restart");
	runtime_ns = instant_difference(pod->status.end.at_ns, pod->status.started_at_ns);
	if (runtime_ns > (int64_t)LONG_RUN_S * NS_PER_S) {
		log_info(&log.logger, "Runner was running for a long time, restarting immediately",
		         log_duration("totalRuntime", runtime_ns));
		restart(pod);
	} else {
		log_info(&log.logger, "Runner was not running for long, restarting after delay",
		         log_duration("totalRuntime", runtime_ns));
		restart_later(pod);
	}
	pod_log_end(&log);
}

/* Ends the run, or the wait for the next, for good. gone: the pod is no longer ours, else the agent stops. */
static void cancel(struct pod *pod, bool gone)
{
	struct pod_log log;

	pod_log_begin(&log, pod);
	if (!run_is_over(pod)) {
		runner_stop(pod->runner);
		runner_status_ended(&pod->status, RUNNER_CANCELED);
		log_info(&log.logger, "Ended without error");
		if (!gone)
			log_info(&log.logger, "Runner's context was canceled; no need to restart");
	} else if (loop_timer_running(&pod->restart)) {
		log_info(&log.logger, "Canceling restart of Runner");
	}
	loop_timer_stop(pod->supervisor->environment.loop, &pod->restart);
	pod_log_end(&log);
}

static void forget(struct pod *pod)
{
	runner_destroy(pod->runner);
	runner_status_destroy(&pod->status);
	memory_release(pod);
}

/* ---- events ---- */

static bool make_key(const struct vm_event *event, char key[KEY_BYTES + 1], struct error *err)
{
	int length = snprintf(key, KEY_BYTES + 1, "%s/%.*s", event->vm_info->namespace, SLICE_ARGS(event->pod_name));

	if (length < 0 || length > KEY_BYTES)
		return error_set(err, ERROR_LIMIT, "the pod's name is over %d bytes", VM_NAME_BYTES_MAX);
	return true;
}

static struct pod *make_pod(struct supervisor *supervisor, const struct vm_event *event, struct error *err)
{
	const struct runner_environment *environment = &supervisor->environment;
	struct pod *pod;

	if (event->pod_ip.length >= sizeof pod->pod_ip) {
		error_set(err, ERROR_LIMIT, "the pod's address is over %zu bytes", sizeof pod->pod_ip - 1);
		return NULL;
	}
	if (event->pod_name.length >= sizeof pod->pod_name) {
		error_set(err, ERROR_LIMIT, "the pod's name is over %zu bytes", sizeof pod->pod_name - 1);
		return NULL;
	}
	pod = memory_allocate(sizeof *pod);
	if (pod == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory");
		return NULL;
	}
	pod->supervisor = supervisor;
	(void)snprintf(pod->pod_name, sizeof pod->pod_name, "%.*s", SLICE_ARGS(event->pod_name));
	(void)snprintf(pod->pod_ip, sizeof pod->pod_ip, "%.*s", SLICE_ARGS(event->pod_ip));
	runner_status_init(&pod->status, environment->config, environment->clock, environment->metrics, event->vm_info,
	                   event->endpoint_id);
	return pod;
}

static bool add(struct supervisor *supervisor, const char *key, const struct vm_event *event, struct error *err)
{
	struct pod *pod = make_pod(supervisor, event, err);

	if (pod == NULL)
		return false;
	if (!table_set(&supervisor->pods, slice_of(key), pod)) {
		forget(pod);
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	}
	agent_metrics_count_runner_start(supervisor->environment.metrics);
	if (start_run(pod, err))
		return true;
	(void)table_remove(&supervisor->pods, slice_of(key));
	forget(pod);
	return false;
}

static void update(struct pod *pod, const struct vm_event *event)
{
	runner_status_vm_changed(&pod->status, event->vm_info, event->endpoint_id);
	if (!run_is_over(pod))
		runner_vm_changed(pod->runner);
}

static bool dispatch(struct supervisor *supervisor, const struct vm_event *event, const struct logger *logger)
{
	struct pod *pod;
	struct error err;
	char key[KEY_BYTES + 1];

	if (!make_key(event, key, &err)) {
		log_error(logger, "Can't handle event", log_error_field(&err));
		return true;
	}
	pod = table_find(&supervisor->pods, slice_of(key));
	if (event->kind == VM_EVENT_ADDED) {
		if (pod != NULL) {
			log_error(logger, "Received add event for pod that's already present");
		} else if (!add(supervisor, key, event, &err)) {
			log_error(logger, "Failed to start runner", log_error_field(&err));
			return err.code != ERROR_NO_MEMORY;
		}
	} else if (pod == NULL) {
		log_error(logger, "Received event for pod that isn't present");
	} else if (event->kind == VM_EVENT_UPDATED) {
		update(pod, event);
	} else {
		(void)table_remove(&supervisor->pods, slice_of(key));
		cancel(pod, true);
		forget(pod);
	}
	return true;
}

bool supervisor_handle_event(struct supervisor *supervisor, const struct vm_event *event)
{
	struct log_form form;
	struct buffer context;
	struct logger logger;
	bool handled;

	if (supervisor->stopped)
		return true;
	log_form_begin(&form);
	log_form_event(&form.writer, event);
	buffer_init(&context, EVENT_CONTEXT_BYTES);
	buffer_append_text(&context, "\"event\":");
	buffer_append_slice(&context, log_form_value(&form));
	buffer_append_char(&context, ',');
	log_form_append_vm_context(&context, slice_of(event->vm_info->namespace), slice_of(event->vm_info->name),
	                           event->pod_name);
	buffer_append_char(&context, '\0');
	log_form_end(&form);
	logger = (struct logger){
		.sink = supervisor->environment.log_sink,
		.name = MAIN_LOOP_LOGGER,
		.context_json = context.failed ? "" : context.data,
	};
	handled = dispatch(supervisor, event, &logger);
	buffer_destroy(&context);
	return handled;
}

void supervisor_scheduler_changed(struct supervisor *supervisor)
{
	const struct table *pods = &supervisor->pods;

	for (struct table_entry *entry = table_next(pods, NULL); entry != NULL; entry = table_next(pods, entry)) {
		const struct pod *pod = entry->value;

		if (!supervisor->stopped && !run_is_over(pod))
			runner_scheduler_changed(pod->runner);
	}
}

/* ---- life ---- */

struct supervisor *supervisor_create(const struct runner_environment *environment, struct error *err)
{
	struct supervisor *supervisor = memory_allocate(sizeof *supervisor);

	if (supervisor == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory");
		return NULL;
	}
	supervisor->environment = *environment;
	table_init(&supervisor->pods);
	return supervisor;
}

void supervisor_stop(struct supervisor *supervisor)
{
	const struct table *pods = &supervisor->pods;

	if (supervisor->stopped)
		return;
	supervisor->stopped = true;
	for (struct table_entry *entry = table_next(pods, NULL); entry != NULL; entry = table_next(pods, entry))
		cancel(entry->value, false);
}

void supervisor_destroy(struct supervisor *supervisor)
{
	const struct table *pods = &supervisor->pods;

	supervisor_stop(supervisor);
	for (struct table_entry *entry = table_next(pods, NULL); entry != NULL; entry = table_next(pods, entry))
		forget(entry->value);
	table_destroy(&supervisor->pods);
	memory_release(supervisor);
}
