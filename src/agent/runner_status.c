#include "agent/runner_status.h"

#include <string.h>

static void copy_endpoint_id(struct runner_status *status, struct slice endpoint_id)
{
	size_t length =
		endpoint_id.length < sizeof status->endpoint_id ? endpoint_id.length : sizeof status->endpoint_id - 1;

	if (length > 0)
		memcpy(status->endpoint_id, endpoint_id.data, length);
	status->endpoint_id[length] = '\0';
}

static const struct agent_failure_rate *allowed_rate(const struct agent_config *config, enum runner_failure failure)
{
	switch (failure) {
	case RUNNER_FAILURE_MONITOR:
		return &config->monitor.max_failed_requests;
	case RUNNER_FAILURE_SCHEDULER:
		return &config->scheduler.max_failed_requests;
	case RUNNER_FAILURE_NEONVM:
		break;
	}
	return &config->neonvm.max_failed_requests;
}

static const char *failure_reason(enum runner_failure failure)
{
	switch (failure) {
	case RUNNER_FAILURE_MONITOR:
		return "monitor requests failed";
	case RUNNER_FAILURE_SCHEDULER:
		return "scheduler requests failed";
	case RUNNER_FAILURE_NEONVM:
		break;
	}
	return "neonvm requests failed";
}

/* How long the monitor may still be silent; negative: it has been silent for too long. */
static int64_t silence_left_ns(const struct runner_status *status, int64_t now_ns)
{
	const struct agent_monitor_config *config = &status->config->monitor;
	int64_t since = status->endpoint_id[0] != '\0' ? status->endpoint_assigned_at_ns : status->started_at_ns;
	uint64_t allowed_ns = config->unhealthy_startup_grace_ns;

	if (status->last_monitor_contact.present) {
		since = status->last_monitor_contact.ns;
		allowed_ns = config->unhealthy_after_silence_ns;
	}
	return instant_remaining(since, (int64_t)allowed_ns, now_ns);
}

static void append_reason(struct buffer *reasons, const char *reason)
{
	if (reasons->length > 0)
		buffer_append_char(reasons, ',');
	buffer_append_text(reasons, reason);
}

bool runner_status_stuck(struct runner_status *status, struct buffer *reasons)
{
	int64_t now_ns = agent_clock_now(status->clock);
	bool stuck = silence_left_ns(status, now_ns) < 0;

	if (stuck)
		append_reason(reasons, "monitor health check failed");
	for (enum runner_failure i = RUNNER_FAILURE_MONITOR; i <= RUNNER_FAILURE_NEONVM; i++) {
		if (failure_counter_count(&status->failures[i], now_ns) <= allowed_rate(status->config, i)->threshold)
			continue;
		stuck = true;
		append_reason(reasons, failure_reason(i));
	}
	return stuck;
}

/*
 * end_before: how the runner had ended before what is now applied. That lags behind on purpose, like the original:
 * right after a failure the state still reads ok or stuck, and right after the restart it reads panicked (6.7).
 */
static void recompute(struct runner_status *status, enum runner_exit end_before)
{
	struct agent_runner_label label = { .is_endpoint = status->endpoint_id[0] != '\0',
		                            .state = status->label.state };
	struct buffer reasons;

	switch (end_before) {
	case RUNNER_PANICKED:
		label.state = AGENT_RUNNER_PANICKED;
		break;
	case RUNNER_CANCELED:
		break;
	case RUNNER_NOT_ENDED:
		buffer_init(&reasons, RUNNER_STATUS_REASONS_BYTES);
		label.state = runner_status_stuck(status, &reasons) ? AGENT_RUNNER_STUCK : AGENT_RUNNER_OK;
		buffer_destroy(&reasons);
		break;
	}
	agent_metrics_move_runner(status->metrics, status->counted ? &status->label : NULL, &label);
	status->counted = true;
	status->label = label;
	status->label_updated_at_ns = agent_clock_now(status->clock);
}

void runner_status_init(struct runner_status *status, const struct agent_config *config,
                        const struct agent_clock *clock, struct agent_metrics *metrics, const struct vm_info *vm_info,
                        struct slice endpoint_id)
{
	int64_t now_ns = agent_clock_now(clock);

	*status = (struct runner_status){
		.config = config,
		.clock = clock,
		.metrics = metrics,
		.started_at_ns = now_ns,
		.vm_info = *vm_info,
		.endpoint_assigned_at_ns = now_ns,
	};
	copy_endpoint_id(status, endpoint_id);
	for (enum runner_failure i = RUNNER_FAILURE_MONITOR; i <= RUNNER_FAILURE_NEONVM; i++) {
		const struct agent_failure_rate *rate = allowed_rate(config, i);

		failure_counter_init(&status->failures[i], rate->interval_ns, rate->threshold);
	}
	recompute(status, RUNNER_NOT_ENDED);
}

void runner_status_destroy(struct runner_status *status)
{
	if (status->counted)
		agent_metrics_move_runner(status->metrics, &status->label, NULL);
	status->counted = false;
	for (enum runner_failure i = RUNNER_FAILURE_MONITOR; i <= RUNNER_FAILURE_NEONVM; i++)
		failure_counter_destroy(&status->failures[i]);
}

void runner_status_vm_changed(struct runner_status *status, const struct vm_info *vm_info, struct slice endpoint_id)
{
	status->vm_info = *vm_info;
	copy_endpoint_id(status, endpoint_id);
	/* Every update counts as an assignment, even a relist's (6.5): the grace period starts again. */
	status->endpoint_assigned_at_ns = agent_clock_now(status->clock);
	recompute(status, status->end.exit);
}

void runner_status_monitor_contact(struct runner_status *status)
{
	status->last_monitor_contact = instant_some(agent_clock_now(status->clock));
	recompute(status, status->end.exit);
}

void runner_status_failed(struct runner_status *status, enum runner_failure failure)
{
	failure_counter_add(&status->failures[failure], agent_clock_now(status->clock));
	recompute(status, status->end.exit);
}

void runner_status_ended(struct runner_status *status, enum runner_exit exit)
{
	enum runner_exit before = status->end.exit;

	status->end = (struct runner_end_state){ .exit = exit, .at_ns = agent_clock_now(status->clock) };
	recompute(status, before);
}

void runner_status_restarted(struct runner_status *status)
{
	struct runner_end_state *ends = status->previous_ends;
	enum runner_exit before = status->end.exit;

	if (status->previous_end_count == AGENT_END_STATES_REMEMBERED) {
		memmove(ends, ends + 1, (AGENT_END_STATES_REMEMBERED - 1) * sizeof ends[0]);
		status->previous_end_count--;
	}
	ends[status->previous_end_count++] = status->end;
	status->restarts++;
	status->end = (struct runner_end_state){ .exit = RUNNER_NOT_ENDED };
	status->started_at_ns = agent_clock_now(status->clock);
	recompute(status, before);
}

void runner_status_refresh(struct runner_status *status)
{
	recompute(status, status->end.exit);
}

uint64_t runner_status_refresh_wait_ns(const struct runner_status *status)
{
	uint64_t wait_ns = status->config->refresh_state_interval_ns;
	int64_t left_ns = silence_left_ns(status, agent_clock_now(status->clock));

	if (!status->config->refresh_adaptively || left_ns < 0 || (uint64_t)left_ns >= wait_ns)
		return wait_ns;
	/* It is stuck once more than the allowed time has passed. */
	return (uint64_t)left_ns + 1;
}

size_t runner_status_failure_count(struct runner_status *status, enum runner_failure failure)
{
	return failure_counter_count(&status->failures[failure], agent_clock_now(status->clock));
}
