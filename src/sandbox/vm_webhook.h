/*
 * NeonVM's validating webhook (spec surroundings 3.1): which changes of a VirtualMachine it denies, and in what words.
 */
#ifndef BALLAST_SANDBOX_VM_WEBHOOK_H
#define BALLAST_SANDBOX_VM_WEBHOOK_H

#include <stdbool.h>

#include "base/error.h"
#include "codec/json_tree.h"

#define VM_WEBHOOK_NAME "vvirtualmachine.kb.io"
/* What a server says that can't reach it. */
#define VM_WEBHOOK_UNREACHABLE                                                                                                         \
	"Post \"https://neonvm-webhook-service.neonvm-system.svc:443/validate-vm-neon-tech-v1-virtualmachine?timeout=10s\": dial tcp " \
	"10.96.12.34:443: connect: connection refused"

/* Both take objects that fit the schema. False with the denial's text (ERROR_REFUSED). */
bool vm_webhook_check_new(const struct json_node *root, struct error *err);
bool vm_webhook_check_update(const struct json_node *before, const struct json_node *after, struct error *err);

#endif
