#include "agent/runner_events.h"

#include "codec/quantity.h"

/* Room for an error's text and what stands around it; longer ones are cut by the receiver. */
enum { MESSAGE_BYTES = 2048 };

static void tell(const struct runner_environment *environment, const struct vm_info *vm, enum kube_event_reason reason,
                 struct slice message)
{
	const struct kube_event event = {
		.reason = reason,
		.namespace = slice_of(vm->namespace),
		.name = slice_of(vm->name),
		.message = message,
	};

	environment->kube_events->submit(environment->kube_events->context, &event);
}

/* Without memory for the message it is told all the same. */
static void tell_and_free(const struct runner_environment *environment, const struct vm_info *vm,
                          enum kube_event_reason reason, struct buffer *message)
{
	tell(environment, vm, reason, message->failed ? SLICE("") : buffer_slice(message));
	buffer_destroy(message);
}

/* "0.25 CPU and 1Gi of memory" */
static void append_amount(struct buffer *message, struct resources amount)
{
	milli_cpu_print(amount.cpu_milli, message);
	buffer_append_text(message, " CPU and ");
	bytes_print(amount.mem_bytes, message);
	buffer_append_text(message, " of memory");
}

static void append_change(struct buffer *message, const struct core_change_request *request)
{
	buffer_append_text(message, "from ");
	append_amount(message, request->current);
	buffer_append_text(message, " to ");
	append_amount(message, request->target);
}

void runner_events_tell_patch(const struct runner_environment *environment, const struct vm_info *vm,
                              const struct core_change_request *request, const struct error *err)
{
	struct buffer message;

	if (environment->kube_events == NULL)
		return;
	buffer_init(&message, MESSAGE_BYTES);
	buffer_append_text(&message, err == NULL ? "Scaled " : "Can't scale ");
	append_change(&message, request);
	if (err != NULL)
		buffer_append_format(&message, ": %s", error_root(err));
	tell_and_free(environment, vm, err == NULL ? KUBE_EVENT_SCALED : KUBE_EVENT_SCALING_FAILED, &message);
}

void runner_events_tell_permit(const struct runner_environment *environment, const struct vm_info *vm,
                               const struct core_plugin_request *request, struct resources permit)
{
	struct buffer message;

	if (environment->kube_events == NULL || !resources_has_less(permit, request->target))
		return;
	buffer_init(&message, MESSAGE_BYTES);
	buffer_append_text(&message, "The scheduler permits ");
	append_amount(&message, permit);
	buffer_append_text(&message, " of the ");
	append_amount(&message, request->target);
	buffer_append_text(&message, " that it was asked for");
	tell_and_free(environment, vm, KUBE_EVENT_UPSCALE_DENIED, &message);
}

void runner_events_tell_downscale_denied(const struct runner_environment *environment, const struct vm_info *vm,
                                         const struct core_change_request *request)
{
	struct buffer message;

	if (environment->kube_events == NULL)
		return;
	buffer_init(&message, MESSAGE_BYTES);
	buffer_append_text(&message, "The vm-monitor denied to scale ");
	append_change(&message, request);
	tell_and_free(environment, vm, KUBE_EVENT_DOWNSCALE_DENIED, &message);
}

void runner_events_tell_monitor(const struct runner_environment *environment, struct runner_status *status,
                                bool connected)
{
	const struct vm_info *vm = &status->vm_info;

	if (environment->kube_events == NULL || status->told_monitor_lost == !connected)
		return;
	status->told_monitor_lost = !connected;
	if (connected)
		tell(environment, vm, KUBE_EVENT_MONITOR_BACK, SLICE("The vm-monitor is connected again"));
	else
		tell(environment, vm, KUBE_EVENT_MONITOR_LOST, SLICE("The connection to the vm-monitor is lost"));
}

void runner_events_tell_restart(const struct runner_environment *environment, const struct runner_status *status)
{
	struct buffer message;

	if (environment->kube_events == NULL)
		return;
	buffer_init(&message, MESSAGE_BYTES);
	buffer_append_format(&message,
	                     "The VM's runner failed and is restarted; the agent's log says why (restarts: %llu)",
	                     (unsigned long long)status->restarts);
	tell_and_free(environment, &status->vm_info, KUBE_EVENT_RUNNER_RESTARTED, &message);
}

void runner_events_tell_state(const struct runner_environment *environment, struct runner_status *status)
{
	bool stuck = status->label.state == AGENT_RUNNER_STUCK;
	struct buffer message;

	if (environment->kube_events == NULL || status->told_stuck == stuck ||
	    (!stuck && status->label.state != AGENT_RUNNER_OK))
		return;
	status->told_stuck = stuck;
	buffer_init(&message, MESSAGE_BYTES);
	if (stuck) {
		struct buffer reasons;

		buffer_init(&reasons, RUNNER_STATUS_REASONS_BYTES);
		(void)runner_status_stuck(status, &reasons);
		buffer_append_text(&message, "Scaling doesn't work as it should: ");
		buffer_append_slice(&message, buffer_slice(&reasons));
		buffer_destroy(&reasons);
	} else {
		buffer_append_text(&message, "Scaling works again");
	}
	tell_and_free(environment, &status->vm_info, stuck ? KUBE_EVENT_STUCK : KUBE_EVENT_RECOVERED, &message);
}
