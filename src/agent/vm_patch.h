/*
 * Asks for another size of a VM: the JSON patch of spec protocols 9.2.3, and the call that carries it (agent-runtime
 * 12).
 */
#ifndef BALLAST_AGENT_VM_PATCH_H
#define BALLAST_AGENT_VM_PATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/resources.h"
#include "agent/core/revision.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "base/token_bucket.h"
#include "kube/client.h"

struct vm_patch_request {
	struct slice namespace;
	struct slice name;
	struct resources target;
	uint64_t slot_bytes;                       /* memory goes in whole slots, rounded down; not 0 */
	struct revision_with_time target_revision; /* stamped with the moment of the request */
	bool without_revision;                     /* generation A knows none (generations 4.4) */
};

/* Appends the patch: three replace operations, always all three (12.1), or two without a revision. */
bool vm_patch_append_body(const struct vm_patch_request *request, struct buffer *buffer, struct error *err);

/*
 * Appends the label `result` of neonvm_outbound_requests_total: "ok" without an error, else "[error: …]" with the
 * root of the error, in which every occurrence of the VM's name has become "<name>" (12.4). As in the reference it
 * has the server's own words otherwise.
 */
void vm_patch_append_label(const struct error *err, struct slice name, struct buffer *label);

struct vm_patch;

/*
 * err NULL: the patch was accepted. Otherwise "error making VM patch request: …". Both are valid during the call; the
 * handle is gone.
 */
typedef void vm_patch_callback(void *context, const char *label, const struct error *err);

/*
 * Sends the patch; nothing of the request is needed afterwards. timeout_ns is over everything, waiting for the
 * limiter included (12.3). The callback never comes from inside. NULL with *err if it can't start.
 */
struct vm_patch *vm_patch_send(struct kube_client *client, struct token_bucket *limiter,
                               const struct vm_patch_request *request, uint64_t timeout_ns, vm_patch_callback *callback,
                               void *context, struct error *err);
/* No callback comes. NULL is fine. */
void vm_patch_cancel(struct vm_patch *patch);

#endif
