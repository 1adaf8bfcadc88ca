/*
 * What is going on, in the shape that the state dump of the agent of late 2023 has (spec generations 4.8).
 */
#ifndef BALLAST_AGENT_SUPERVISOR_DUMP_A_H
#define BALLAST_AGENT_SUPERVISOR_DUMP_A_H

#include <stdbool.h>

#include "agent/supervisor.h"
#include "base/arena.h"
#include "base/error.h"
#include "gen/state_dump_a.gen.h"

/* As supervisor_dump. */
bool supervisor_dump_a(const struct supervisor *supervisor, struct arena *arena, struct state_dump_a_dump *ret_dump,
                       struct error *err);

#endif
