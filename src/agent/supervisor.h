/*
 * The supervisor keeps one runner for each of this node's VMs that are ours: it starts them when the VM watch says so,
 * restarts those that break, and stops them (spec agent-runtime 6).
 */
#ifndef BALLAST_AGENT_SUPERVISOR_H
#define BALLAST_AGENT_SUPERVISOR_H

#include <stdbool.h>

#include "agent/runner.h"
#include "agent/vm_event.h"
#include "base/arena.h"
#include "base/error.h"
#include "gen/state_dump.gen.h"

struct supervisor;

/* Copies the environment; what it points at must outlive the supervisor. */
struct supervisor *supervisor_create(const struct runner_environment *environment, struct error *err);
/*
 * Copies what it needs of the event. Ignored after supervisor_stop. False when there was no memory for the pod of an
 * added event: nothing of it is kept then, and the event should come again.
 */
bool supervisor_handle_event(struct supervisor *supervisor, const struct vm_event *event);
/* Another scheduler is current, or none: the runners that want to know are told. */
void supervisor_scheduler_changed(struct supervisor *supervisor);
/* Cancels all runners and pending restarts; what is known of the pods stays for the dump. */
void supervisor_stop(struct supervisor *supervisor);
void supervisor_destroy(struct supervisor *supervisor); /* stops first */

/*
 * What is going on, for the state dump (13.3): pods sorted by namespace, then name. Everything *ret_dump points at
 * lives in the arena or in the supervisor; encode it before anything else happens.
 */
bool supervisor_dump(const struct supervisor *supervisor, struct arena *arena, struct state_dump_dump *ret_dump,
                     struct error *err);

#endif
