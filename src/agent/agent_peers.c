#include "agent/agent_peers.h"

#include "agent/vm_patch.h"
#include "base/memory.h"

enum { LABEL_BYTES = 4096 };

struct patch_call {
	struct agent_peers *peers;
	struct vm_patch *patch;
	runner_patch_callback *callback;
	void *context;
};

static const struct scheduler_peer *current_scheduler(void *context)
{
	const struct agent_peers *peers = context;

	return peers->schedulers != NULL ? scheduler_tracking_current(peers->schedulers) : NULL;
}

static void on_patch_done(void *context, const char *label, const struct error *err)
{
	struct patch_call *call = context;
	runner_patch_callback *callback = call->callback;
	void *callback_context = call->context;

	agent_metrics_count_neonvm_request(call->peers->metrics, label);
	memory_release(call);
	callback(callback_context, err);
}

static void count_failure(struct agent_peers *peers, struct slice vm_name, const struct error *err)
{
	struct buffer label;

	buffer_init(&label, LABEL_BYTES);
	vm_patch_append_label(err, vm_name, &label);
	buffer_append_char(&label, '\0');
	agent_metrics_count_neonvm_request(peers->metrics, label.failed ? "[error: other]" : label.data);
	buffer_destroy(&label);
}

static void *patch_vm(void *context, const struct runner_patch *patch, runner_patch_callback *callback,
                      void *callback_context, struct error *err)
{
	struct agent_peers *peers = context;
	const struct vm_patch_request request = {
		.namespace = patch->namespace,
		.name = patch->vm_name,
		.target = patch->target,
		.slot_bytes = patch->slot_bytes,
		.target_revision = patch->target_revision,
		.without_revision = peers->without_revision,
	};
	struct patch_call *call = memory_allocate(sizeof *call);

	agent_metrics_count_change(peers->metrics, AGENT_CHANGE_NEONVM_REQUESTED, patch->current, patch->target);
	if (call == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory");
		goto failed;
	}
	*call = (struct patch_call){ .peers = peers, .callback = callback, .context = callback_context };
	call->patch =
		vm_patch_send(peers->kube, peers->limiter, &request, peers->patch_timeout_ns, on_patch_done, call, err);
	if (call->patch != NULL)
		return call;
failed:
	memory_release(call);
	count_failure(peers, patch->vm_name, err);
	error_wrap(err, "error making VM patch request");
	return NULL;
}

static void cancel_patch(void *context, void *patch)
{
	struct agent_peers *peers = context;
	struct patch_call *call = patch;

	vm_patch_cancel(call->patch);
	memory_release(call);
	agent_metrics_count_neonvm_request(peers->metrics, "[error: context canceled]");
}

struct runner_peers agent_peers_for_runners(struct agent_peers *peers)
{
	return (struct runner_peers){
		.context = peers,
		.current_scheduler = current_scheduler,
		.patch_vm = patch_vm,
		.cancel_patch = cancel_patch,
	};
}
