#include "agent/vm_watch_events.h"

#include "agent/log_form.h"
#include "base/buffer.h"

enum { CONTEXT_BYTES = 8192 };

/* ---- log lines about one VM ---- */

struct vm_log {
	struct buffer context;
	struct logger logger;
};

static void vm_log_begin(struct vm_log *log, const struct vm_watch_events *events, const struct node_vm *vm)
{
	buffer_init(&log->context, CONTEXT_BYTES);
	log_form_append_vm_context(&log->context, vm->namespace, vm->name, vm->pod_name);
	buffer_append_char(&log->context, '\0');
	log->logger = events->logger;
	log->logger.context_json = log->context.failed ? "" : log->context.data;
}

static void vm_log_end(struct vm_log *log)
{
	buffer_destroy(&log->context);
}

static void report_problem(const struct vm_watch_events *events, const struct node_vm *vm, const char *message)
{
	struct error problem = *vm->problem;
	struct vm_log log;

	/* The reference says it twice. */
	error_wrap(&problem, "error extracting VM info");
	vm_log_begin(&log, events, vm);
	log_error(&log.logger, message, log_error_field(&problem));
	vm_log_end(&log);
}

static void report_oddity(const struct vm_watch_events *events, const struct node_vm *vm)
{
	const struct vm_snapshot *snapshot = vm->snapshot;
	bool below = snapshot->oddity == VM_INFO_USE_BELOW_MIN;
	struct log_form using;
	struct log_form bound;
	struct vm_log log;

	if (snapshot->oddity == VM_INFO_FINE)
		return;
	log_form_begin(&using);
	log_form_begin(&bound);
	log_form_resources(&using.writer, vm_info_using(&snapshot->info));
	log_form_resources(&bound.writer, below ? vm_info_min(&snapshot->info) : vm_info_max(&snapshot->info));
	vm_log_begin(&log, events, vm);
	log_warn(&log.logger, vm_info_oddity_text(snapshot->oddity), log_json("using", log_form_value(&using)),
	         log_json(below ? "min" : "max", log_form_value(&bound)));
	vm_log_end(&log);
	log_form_end(&using);
	log_form_end(&bound);
}

/* ---- events ---- */

static bool deliver(struct vm_watch_events *events, enum vm_event_kind kind, const struct node_vm *vm)
{
	const struct vm_snapshot *snapshot = vm->snapshot;
	const struct vm_event event = {
		.kind = kind,
		.vm_info = &snapshot->info,
		.pod_name = snapshot->pod_name,
		.pod_ip = snapshot->pod_ip,
		.endpoint_id = snapshot->endpoint_id,
	};

	return events->deliver(events->context, &event);
}

static void announce(struct vm_watch_events *events, struct node_vm *vm)
{
	if (!vm->ours || vm->announced || !events->delivering)
		return;
	if (vm->problem != NULL) {
		report_problem(events, vm, "Failed to create vmEvent for added VM");
		return;
	}
	report_oddity(events, vm);
	vm->announced = deliver(events, VM_EVENT_ADDED, vm);
	vm->waiting = !vm->announced;
	events->refused = events->refused || vm->waiting;
}

/* vm is what was announced, or what followed it. */
static void retract(struct vm_watch_events *events, struct node_vm *vm)
{
	if (!vm->announced)
		return;
	vm->announced = false;
	(void)deliver(events, VM_EVENT_DELETED, vm);
}

/*
 * What lay between two states was missed (the watch was away, and a list followed): the VM runs in another pod now. The
 * reference tells of an update then, of a pod that nobody knows, and goes on with the pod that is gone.
 */
static bool has_moved(const struct node_vm *before, const struct node_vm *after)
{
	return after->problem == NULL && before->snapshot != NULL && after->snapshot != NULL &&
	       (!slice_equal(before->snapshot->pod_name, after->snapshot->pod_name) ||
	        !slice_equal(before->snapshot->pod_ip, after->snapshot->pod_ip));
}

/* The VM was ours and still is. What can't be read now keeps the snapshot of when it could. */
static void follow(struct vm_watch_events *events, struct node_vm *before, struct node_vm *after)
{
	if (!before->announced) {
		announce(events, after);
		return;
	}
	if (has_moved(before, after)) {
		retract(events, before);
		announce(events, after);
		return;
	}
	after->announced = true;
	if (after->problem == NULL) {
		report_oddity(events, after);
		(void)deliver(events, VM_EVENT_UPDATED, after);
		return;
	}
	report_problem(events, after, "Failed to create vmEvent for updated VM");
	after->snapshot = before->snapshot;
	before->snapshot = NULL;
}

/* ---- changes ---- */

static bool is_ours(const struct watched_vm *vm)
{
	return vm->here != NULL && vm->here->ours;
}

static void show(struct vm_watch_events *events, const struct watched_vm *vm)
{
	if (vm->here != NULL)
		vm_metrics_show(events->vm_metrics, &vm->here->gauges);
}

static void forget(struct vm_watch_events *events, const struct watched_vm *vm)
{
	if (vm->here != NULL)
		vm_metrics_forget(events->vm_metrics, vm->here->namespace, vm->here->name);
}

void vm_watch_events_add(struct vm_watch_events *events, struct watched_vm *vm)
{
	show(events, vm);
	vm_watch_events_announce(events, vm);
}

void vm_watch_events_announce(struct vm_watch_events *events, struct watched_vm *vm)
{
	if (vm->here != NULL)
		announce(events, vm->here);
}

void vm_watch_events_update(struct vm_watch_events *events, struct watched_vm *before, struct watched_vm *after)
{
	if (after->here != NULL)
		show(events, after);
	else
		forget(events, before);
	if (is_ours(before) && is_ours(after))
		follow(events, before->here, after->here);
	else if (is_ours(before))
		retract(events, before->here);
	else
		vm_watch_events_announce(events, after);
}

void vm_watch_events_delete(struct vm_watch_events *events, struct watched_vm *vm)
{
	forget(events, vm);
	if (is_ours(vm))
		retract(events, vm->here);
}
