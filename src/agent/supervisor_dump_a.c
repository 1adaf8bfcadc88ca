#include "agent/supervisor_dump_a.h"

#include <stdlib.h>

#include "agent/core/core_dump_a.h"
#include "agent/supervisor_internal.h"

static bool dump_status(const struct pod *pod, struct arena *arena, struct state_dump_a_runner_status *ret_status,
                        struct error *err)
{
	const struct runner_status *status = &pod->status;
	const struct core_config *core = &pod->supervisor->environment.config->core;
	const struct optional_instant contact = status->last_monitor_contact;
	struct state_dump_end_state *ends = arena_allocate_array(arena, AGENT_END_STATES_REMEMBERED, sizeof *ends);

	if (ends == NULL)
		return error_set(err, ERROR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < status->previous_end_count; i++)
		ends[i] = supervisor_dump_end(&status->previous_ends[i]);
	*ret_status = (struct state_dump_a_runner_status){
		.start_time_ns = status->started_at_ns,
		.has_end_state = status->end.exit != RUNNER_NOT_ENDED,
		.end_state = supervisor_dump_end(&status->end),
		.previous_end_states = ends,
		.previous_end_states_count = status->previous_end_count,
		.last_successful_monitor_comm_ns = contact.present ? contact.ns : RFC3339_ZERO,
		.endpoint_id = slice_of(status->endpoint_id),
		.endpoint_assigned_at_ns = status->endpoint_assigned_at_ns,
		.state = slice_of(supervisor_state_name(status->label.state)),
		.state_updated_at_ns = status->label_updated_at_ns,
	};
	return core_dump_vm_a(&status->vm_info, &core->default_scaling_config, arena, &ret_status->vm_info, err);
}

/* The scheduler that the core asks, as it sees it. */
static void dump_scheduler(const struct pod *pod, struct state_dump_a_runner *ret_runner)
{
	const struct runner_peers *peers = &pod->supervisor->environment.peers;
	const struct scheduler_peer *peer = peers->current_scheduler(peers->context);

	if (peer == NULL || !runner_core(pod->runner)->plugin.alive)
		return;
	ret_runner->has_scheduler = true;
	ret_runner->scheduler.info = (struct state_dump_a_scheduler_info){
		.pod_name = { .namespace = SLICE(SCHEDULER_NAMESPACE), .name = slice_of(peer->name) },
		.uid = slice_of(peer->uid),
		.ip = slice_of(peer->ip),
	};
}

static bool dump_pod(const struct pod *pod, struct arena *arena, struct state_dump_a_pod *ret_pod, struct error *err)
{
	const struct runner *runner = pod->runner;

	ret_pod->pod_name.namespace = slice_of(pod->status.vm_info.namespace);
	ret_pod->pod_name.name = slice_of(pod->pod_name);
	if (!dump_status(pod, arena, &ret_pod->status, err))
		return false;
	ret_pod->has_runner = runner != NULL;
	ret_pod->has_collection_error = runner == NULL;
	if (runner == NULL)
		return true;
	ret_pod->runner.pod_ip = slice_of(runner_pod_ip(runner));
	dump_scheduler(pod, &ret_pod->runner);
	ret_pod->runner.has_monitor = runner_monitor_connected(runner);
	ret_pod->runner.monitor.waiters_size = runner_monitor_waiting_calls(runner);
	ret_pod->runner.background_worker_count = runner_background_worker_count(runner);
	return core_dump_a(runner_core(runner), arena, &ret_pod->runner.executor_state, err);
}

static int compare_pods(const void *a, const void *b)
{
	return supervisor_compare_names(&((const struct state_dump_a_pod *)a)->pod_name,
	                                &((const struct state_dump_a_pod *)b)->pod_name);
}

bool supervisor_dump_a(const struct supervisor *supervisor, struct arena *arena, struct state_dump_a_dump *ret_dump,
                       struct error *err)
{
	const struct table *pods = &supervisor->pods;
	struct state_dump_a_pod *dumps;
	size_t count = 0;

	*ret_dump = (struct state_dump_a_dump){
		.stopped = supervisor->stopped,
		.build_info = { .git_info = SLICE("ballast " BALLAST_VERSION), .go_version = SLICE("<unknown>") },
	};
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
