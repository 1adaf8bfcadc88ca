/*
 * The core's state in the form that the state dump of the agent of late 2023 shows (spec generations 4.8).
 */
#ifndef BALLAST_AGENT_CORE_CORE_DUMP_A_H
#define BALLAST_AGENT_CORE_CORE_DUMP_A_H

#include <stdbool.h>

#include "agent/core/core.h"
#include "base/arena.h"
#include "base/error.h"
#include "gen/state_dump_a.gen.h"

/* A copy: later events don't change it. It lives as long as the arena. ERROR_NO_MEMORY when that is full. */
bool core_dump_a(const struct core *core, struct arena *arena, struct state_dump_a_state *ret_state, struct error *err);

/* The same of a VM alone. Its scaling settings are shown as they are in effect, over the defaults (README, decision 3). */
bool core_dump_vm_a(const struct vm_info *vm, const struct scaling_config *defaults, struct arena *arena,
                    struct state_dump_a_vm_info *ret_vm, struct error *err);

#endif
