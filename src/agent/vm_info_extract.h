/*
 * From a VirtualMachine as the API server has it to what the scaling core knows of one (spec protocols 7 and 8).
 */
#ifndef BALLAST_AGENT_VM_INFO_EXTRACT_H
#define BALLAST_AGENT_VM_INFO_EXTRACT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/config.h"
#include "agent/core/vm_info.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "gen/vm.gen.h"

#define VM_LABEL_ENABLED "autoscaling.neon.tech/enabled"
#define VM_LABEL_AUTO_MIGRATION "autoscaling.neon.tech/auto-migration-enabled"
#define VM_LABEL_ALWAYS_MIGRATE "autoscaling.neon.tech/testing-only-always-migrate"
#define VM_LABEL_ENDPOINT_ID "neon/endpoint-id"
#define VM_LABEL_PROJECT_ID "neon/project-id"
#define VM_ANNOTATION_BOUNDS "autoscaling.neon.tech/bounds"
#define VM_ANNOTATION_CONFIG "autoscaling.neon.tech/config"
#define VM_ANNOTATION_BILLING_ENDPOINT_ID "autoscaling.neon.tech/billing-endpoint-id"

/* The value of a label, or the empty slice. */
struct slice vm_label(const struct vm_virtual_machine *vm, const char *name);
/* Whether a label is exactly "true". */
bool vm_label_is_true(const struct vm_virtual_machine *vm, const char *name);
/* The value of an annotation, or NULL without one: an empty one counts as there. */
const struct slice *vm_annotation(const struct vm_virtual_machine *vm, const char *name);

/* The bounds annotation as it stands, not checked further than its types. */
struct vm_bounds {
	bool present;
	uint32_t min_cpu_milli;
	uint32_t max_cpu_milli;
	int64_t min_mem_bytes;
	int64_t max_mem_bytes;
};

/* Without the annotation, *ret_bounds is not present. The arena is for working in. generation: whose texts. */
bool vm_bounds_read(const struct vm_virtual_machine *vm, enum agent_generation generation, struct arena *arena,
                    struct vm_bounds *ret_bounds, struct error *err);

/* What is odd about a VM but no error: 7.5. Of both, only the first is told. */
enum vm_info_oddity { VM_INFO_FINE, VM_INFO_USE_BELOW_MIN, VM_INFO_USE_ABOVE_MAX };

/* "Current usage has field less than minimum", "… greater than maximum": what the caller logs as a warning. */
const char *vm_info_oddity_text(enum vm_info_oddity oddity);

/*
 * Fails with exactly the texts of protocols 7, which begin with "error extracting VM info: "; also for memory slots of
 * 0 bytes (spec README, decision 4). The arena is for working in; *ret_info owns nothing of it.
 *
 * Generation A wants all sizes to be there, reads two fields of the scaling annotation, which override the defaults one
 * by one (README, decision 3), ignores the revision, and begins its texts with capitals (generations 3 G8, 4.11).
 */
bool vm_info_extract(const struct vm_virtual_machine *vm, enum agent_generation generation, struct arena *arena,
                     struct vm_info *ret_info, enum vm_info_oddity *ret_oddity, struct error *err);

#endif
