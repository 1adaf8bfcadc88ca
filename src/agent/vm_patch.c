#include "agent/vm_patch.h"

#include <string.h>

#include "base/memory.h"
#include "codec/json_writer.h"
#include "gen/vm.gen.h"
#include "net/http_message.h"

enum {
	BODY_BYTES = 1024,            /* a patch has some 300 */
	PATH_BYTES = 2048,            /* names have at most 253 bytes each */
	LABEL_BYTES = 16 * 1024,      /* an error's text, should it be nothing but one-letter names */
	REPLY_BYTES = 4 * 1024 * 1024 /* the object, which isn't looked at */
};

struct vm_patch {
	struct kube_call *call;
	char *name;
	vm_patch_callback *callback;
	void *context;
};

bool vm_patch_append_body(const struct vm_patch_request *request, struct buffer *buffer, struct error *err)
{
	struct json_writer writer;

	if (request->slot_bytes == 0)
		return error_set(err, ERROR_INVARIANT, "the memory slot size is 0");

	struct vm_cpu_patch cpu = {
		.op = SLICE("replace"),
		.path = SLICE("/spec/guest/cpus/use"),
		.value_milli = request->target.cpu_milli,
	};
	struct vm_slots_patch slots = {
		.op = SLICE("replace"),
		.path = SLICE("/spec/guest/memorySlots/use"),
		.value = request->target.mem_bytes / request->slot_bytes,
	};
	struct vm_revision_patch revision = {
		.op = SLICE("replace"),
		.path = SLICE("/spec/targetRevision"),
		.value.revision.value = request->target_revision.revision.value,
		.value.revision.flags = request->target_revision.revision.flags,
		.value.updated_at_ns = request->target_revision.updated_at_ns,
	};

	json_writer_init(&writer, buffer);
	json_writer_array_begin(&writer);
	vm_cpu_patch_encode(&writer, &cpu);
	vm_slots_patch_encode(&writer, &slots);
	if (!request->without_revision)
		vm_revision_patch_encode(&writer, &revision);
	json_writer_array_end(&writer);
	return json_writer_check(&writer, "the VM patch", err);
}

void vm_patch_append_label(const struct error *err, struct slice name, struct buffer *label)
{
	struct slice rest;

	if (err == NULL) {
		buffer_append_text(label, "ok");
		return;
	}
	buffer_append_text(label, "[error: ");
	rest = slice_of(error_root(err));
	while (rest.length > 0) {
		const char *found = name.length > 0 ? memmem(rest.data, rest.length, name.data, name.length) : NULL;
		size_t before = found != NULL ? (size_t)(found - rest.data) : rest.length;

		buffer_append(label, rest.data, before);
		rest = slice_from_offset(rest, before);
		if (found == NULL)
			break;
		buffer_append_text(label, "<name>");
		rest = slice_from_offset(rest, name.length);
	}
	buffer_append_char(label, ']');
}

static void free_patch(struct vm_patch *patch)
{
	memory_release(patch->name);
	memory_release(patch);
}

static void on_body(void *context, struct slice bytes)
{
	(void)context;
	(void)bytes;
}

static void on_done(void *context, int status, struct slice body, const struct error *err)
{
	struct vm_patch *patch = context;
	struct buffer label;
	struct error own;

	(void)status;
	(void)body;
	buffer_init(&label, LABEL_BYTES);
	vm_patch_append_label(err, slice_of(patch->name), &label);
	buffer_append_char(&label, '\0');
	if (err != NULL) {
		own = *err;
		error_wrap(&own, "error making VM patch request");
	}
	patch->callback(patch->context, label.failed ? "[error: no memory for the reason]" : label.data,
	                err != NULL ? &own : NULL);
	buffer_destroy(&label);
	free_patch(patch);
}

static void append_path(const struct vm_patch_request *request, struct buffer *path)
{
	buffer_append_text(path, "/apis/vm.neon.tech/v1/namespaces/");
	http_append_escaped(path, request->namespace);
	buffer_append_text(path, "/virtualmachines/");
	http_append_escaped(path, request->name);
}

static struct kube_call *send_call(struct kube_client *client, const struct kube_request *settings,
                                   const struct vm_patch_request *request, void *context, struct error *err)
{
	static const struct kube_handler handler = { .on_body = on_body, .on_done = on_done };
	struct kube_request message = *settings;
	struct kube_call *call = NULL;
	struct buffer path;
	struct buffer body;

	buffer_init(&path, PATH_BYTES);
	buffer_init(&body, BODY_BYTES);
	append_path(request, &path);
	if (buffer_check(&path, "the VM's path", err) && vm_patch_append_body(request, &body, err)) {
		message.path = buffer_slice(&path);
		message.body = buffer_slice(&body);
		call = kube_client_send(client, &message, &handler, context, err);
	}
	buffer_destroy(&path);
	buffer_destroy(&body);
	return call;
}

struct vm_patch *vm_patch_send(struct kube_client *client, struct token_bucket *limiter,
                               const struct vm_patch_request *request, uint64_t timeout_ns, vm_patch_callback *callback,
                               void *context, struct error *err)
{
	struct kube_request settings = {
		.method = SLICE("PATCH"),
		.content_type = SLICE("application/json-patch+json"),
		.limiter = limiter,
		.timeout_ns = timeout_ns,
		.max_body_bytes = REPLY_BYTES,
		.verb = "patch",
		.resource = "virtualmachines.vm.neon.tech",
		.name = request->name,
	};
	struct vm_patch *patch = memory_allocate(sizeof *patch);

	if (patch == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a VM patch");
		return NULL;
	}
	patch->callback = callback;
	patch->context = context;
	patch->name = memory_copy_text(request->name.data, request->name.length);
	if (patch->name == NULL)
		error_set(err, ERROR_NO_MEMORY, "no memory for a VM patch");
	else
		patch->call = send_call(client, &settings, request, patch, err);
	if (patch->call == NULL) {
		free_patch(patch);
		return NULL;
	}
	return patch;
}

void vm_patch_cancel(struct vm_patch *patch)
{
	if (patch == NULL)
		return;
	kube_call_cancel(patch->call);
	free_patch(patch);
}
