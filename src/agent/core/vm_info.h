/*
 * What the scaling core knows of a virtual machine (spec agent-core 1.2). Copyable by value; owns nothing.
 */
#ifndef BALLAST_AGENT_CORE_VM_INFO_H
#define BALLAST_AGENT_CORE_VM_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/resources.h"
#include "agent/core/revision.h"
#include "agent/core/scaling_config.h"
#include "base/error.h"
#include "base/slice.h"

/* Kubernetes: object names are DNS subdomains, namespaces DNS labels. */
enum { VM_NAME_BYTES_MAX = 253, VM_NAMESPACE_BYTES_MAX = 63 };

struct vm_cpu {
	uint32_t min_milli;
	uint32_t max_milli;
	uint32_t use_milli;
};

struct vm_memory {
	uint16_t min_slots;
	uint16_t max_slots;
	uint16_t use_slots;
	uint64_t slot_bytes;
};

struct vm_info {
	char name[VM_NAME_BYTES_MAX + 1];
	char namespace[VM_NAMESPACE_BYTES_MAX + 1];
	struct vm_cpu cpu;
	struct vm_memory mem;
	bool auto_migration_enabled; /* this and the next two: carried for the dump, not read by the core */
	bool always_migrate;
	bool scaling_enabled;
	bool has_scaling_config; /* overrides of the agent's defaults */
	struct scaling_config scaling_config;
	bool has_current_revision; /* the last one the VM reports as applied */
	struct revision_with_time current_revision;
};

/* Sets both names; ERROR_LIMIT when one is longer than its array. */
bool vm_info_set_name(struct vm_info *vm, struct slice namespace, struct slice name, struct error *err);

struct resources vm_info_using(const struct vm_info *vm);
struct resources vm_info_min(const struct vm_info *vm);
struct resources vm_info_max(const struct vm_info *vm);

/*
 * Takes amount as what is in use; memory that isn't a whole slot is dropped (T-9). ERROR_INVARIANT for slots of 0
 * bytes.
 */
bool vm_info_set_using(struct vm_info *vm, struct resources amount, struct error *err);

#endif
