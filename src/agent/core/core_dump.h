/*
 * The core's state in the form that the state dump and the debug log show (spec agent-core 9.1).
 */
#ifndef BALLAST_AGENT_CORE_CORE_DUMP_H
#define BALLAST_AGENT_CORE_CORE_DUMP_H

#include <stdbool.h>

#include "agent/core/core.h"
#include "base/arena.h"
#include "base/error.h"
#include "gen/scaling.gen.h"
#include "gen/state_dump.gen.h"

/* A copy: later events don't change it. It lives as long as the arena. ERROR_NO_MEMORY when that is full. */
bool core_dump(const struct core *core, struct arena *arena, struct state_dump_state *ret_state, struct error *err);

/* The same of a VM alone. */
bool core_dump_vm(const struct vm_info *vm, struct arena *arena, struct scaling_vm_info *ret_vm, struct error *err);

#endif
