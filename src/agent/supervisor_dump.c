#include <stdlib.h>

#include "agent/core/core_dump.h"
#include "agent/supervisor_internal.h"

struct state_dump_end_state supervisor_dump_end(const struct runner_end_state *end)
{
	bool panicked = end->exit == RUNNER_PANICKED;

	return (struct state_dump_end_state){
		.exit_kind = panicked ? SLICE("panicked") : SLICE("canceled"),
		/* The reference has an error here and loses its text. */
		.error = panicked ? SLICE("{}") : SLICE("null"),
		.time_ns = end->at_ns,
	};
}

const char *supervisor_state_name(enum agent_runner_state state)
{
	switch (state) {
	case AGENT_RUNNER_OK:
		return "ok";
	case AGENT_RUNNER_STUCK:
		return "stuck";
	case AGENT_RUNNER_ERRORED:
		return "errored";
	case AGENT_RUNNER_PANICKED:
		break;
	}
	return "panicked";
}

static bool dump_status(struct runner_status *status, struct arena *arena, struct state_dump_runner_status *ret_status,
                        struct error *err)
{
	const struct optional_instant contact = status->last_monitor_contact;
	struct state_dump_end_state *ends = arena_allocate_array(arena, AGENT_END_STATES_REMEMBERED, sizeof *ends);

	if (ends == NULL)
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < status->previous_end_count; i++)
		ends[i] = supervisor_dump_end(&status->previous_ends[i]);
	*ret_status = (struct state_dump_runner_status){
		.start_time_ns = status->started_at_ns,
		.has_end_state = status->end.exit != RUNNER_NOT_ENDED,
		.end_state = supervisor_dump_end(&status->end),
		.previous_end_states = ends,
		.previous_end_states_count = status->previous_end_count,
		.last_successful_monitor_comm_ns = contact.present ? contact.ns : RFC3339_ZERO,
		.failed_monitor_request_counter = runner_status_failure_count(status, RUNNER_FAILURE_MONITOR),
		.failed_neonvm_request_counter = runner_status_failure_count(status, RUNNER_FAILURE_NEONVM),
		.failed_scheduler_request_counter = runner_status_failure_count(status, RUNNER_FAILURE_SCHEDULER),
		.endpoint_id = slice_of(status->endpoint_id),
		.endpoint_assigned_at_ns = status->endpoint_assigned_at_ns,
		.state = slice_of(supervisor_state_name(status->label.state)),
		.state_updated_at_ns = status->label_updated_at_ns,
	};
	return core_dump_vm(&status->vm_info, arena, &ret_status->vm_info, err);
}

static bool dump_pod(struct pod *pod, struct arena *arena, struct state_dump_pod *ret_pod, struct error *err)
{
	const struct runner *runner = pod->runner;

	ret_pod->pod_name.namespace = slice_of(pod->status.vm_info.namespace);
	ret_pod->pod_name.name = slice_of(pod->pod_name);
	if (!dump_status(&pod->status, arena, &ret_pod->status, err))
		return false;
	ret_pod->has_runner = runner != NULL;
	ret_pod->has_collection_error = runner == NULL;
	if (runner == NULL)
		return true;
	ret_pod->runner.pod_ip = slice_of(runner_pod_ip(runner));
	ret_pod->runner.has_monitor = runner_monitor_connected(runner);
	ret_pod->runner.monitor.waiters_size = runner_monitor_waiting_calls(runner);
	ret_pod->runner.background_worker_count = runner_background_worker_count(runner);
	return core_dump(runner_core(runner), arena, &ret_pod->runner.executor_state, err);
}

int supervisor_compare_names(const struct plugin_namespaced_name *first, const struct plugin_namespaced_name *second)
{
	int order = slice_compare(first->namespace, second->namespace);

	return order != 0 ? order : slice_compare(first->name, second->name);
}

static int compare_pods(const void *a, const void *b)
{
	return supervisor_compare_names(&((const struct state_dump_pod *)a)->pod_name,
	                                &((const struct state_dump_pod *)b)->pod_name);
}

bool supervisor_dump(const struct supervisor *supervisor, struct arena *arena, struct state_dump_dump *ret_dump,
                     struct error *err)
{
	const struct table *pods = &supervisor->pods;
	struct state_dump_pod *dumps;
	size_t count = 0;

	*ret_dump = (struct state_dump_dump){ .stopped = supervisor->stopped };
	if (pods->count == 0)
		return true;
	dumps = arena_allocate_array(arena, pods->count, sizeof *dumps);
	if (dumps == NULL)
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	for (struct table_entry *entry = table_next(pods, NULL); entry != NULL; entry = table_next(pods, entry)) {
		if (!dump_pod(entry->value, arena, &dumps[count++], err))
			return false;
	}
	qsort(dumps, count, sizeof *dumps, compare_pods);
	ret_dump->pods = dumps;
	ret_dump->pods_count = count;
	return true;
}
