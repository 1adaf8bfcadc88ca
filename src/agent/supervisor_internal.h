/*
 * What the supervisor is made of, for its own files only.
 */
#ifndef BALLAST_AGENT_SUPERVISOR_INTERNAL_H
#define BALLAST_AGENT_SUPERVISOR_INTERNAL_H

#include "agent/supervisor.h"
#include "base/table.h"

struct supervisor {
	struct runner_environment environment;
	struct table pods; /* "namespace/pod name" → struct pod */
	bool stopped;
};

struct pod {
	struct supervisor *supervisor;
	struct runner *runner; /* the run, or the last; NULL if it couldn't be started */
	struct runner_status status;
	struct loop_timer restart;
	char pod_name[VM_NAME_BYTES_MAX + 1];
	char pod_ip[AGENT_POD_IP_BYTES];
};

/* For the dump of either generation. */
struct state_dump_end_state supervisor_dump_end(const struct runner_end_state *end);
const char *supervisor_state_name(enum agent_runner_state state);
/* The order of pods in a dump: by namespace, then by name. */
int supervisor_compare_names(const struct plugin_namespaced_name *first, const struct plugin_namespaced_name *second);

#endif
