/*
 * What the files of a pass share.
 */
#ifndef BALLAST_SANDBOX_NEONVM_PASS_H
#define BALLAST_SANDBOX_NEONVM_PASS_H

#include "sandbox/neonvm_internal.h"

enum { NEONVM_CPU_MILLI = 1000 };

struct pass {
	struct vm *vm;
	struct object_edit edit;
	struct vm_view view; /* as the pass found it */
	struct json_node *status;
	struct slice phase; /* at its end */
	bool ok;            /* nothing has failed so far: only then is it written */
	bool copies;        /* the pod's labels and annotations are looked after */
};

/* ---- neonvm_pass.c ---- */

void neonvm_pass_set_phase(struct pass *pass, const char *phase);
void neonvm_pass_set_cpus(struct pass *pass, uint32_t milli);
void neonvm_pass_set_memory(struct pass *pass, uint64_t bytes);
/* CPUs that must be plugged for so much. */
uint32_t neonvm_whole_cpus(uint32_t milli);
uint64_t neonvm_wanted_memory(const struct vm_view *view);

/* ---- neonvm_pass_2023.c ---- */

/* A pass in Running: the quota is set at once, if the CPUs are there. */
void neonvm_pass_set_quota(struct pass *pass);
/* A pass in Scaling: one CPU and one slot of memory. */
void neonvm_pass_scale_late_2023(struct pass *pass);
/*
 * If a slot that the last pass wanted out is still there, the spec is set to what is plugged; true if it was, which is
 * then all that the pass writes.
 */
bool neonvm_pass_give_up_unplugging(struct pass *pass);

#endif
