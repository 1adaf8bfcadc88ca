/*
 * One run of the sandbox: the cluster, the agents as child processes, the workload over time, and the report.
 */
#ifndef BALLAST_SANDBOX_SANDBOX_H
#define BALLAST_SANDBOX_SANDBOX_H

#include <stdbool.h>

#include "base/error.h"
#include "sandbox/agent_setup.h"
#include "sandbox/sandbox_options.h"

enum sandbox_outcome { SANDBOX_AS_STATED, SANDBOX_MISMATCHES };

/* What a run leaves. */
struct sandbox_end {
	enum sandbox_outcome outcome; /* of one that could be run */
	/* Where the agents' configuration is and, without sandbox_options.agent_log, their logs; "": nothing was kept. */
	char folder[AGENT_SETUP_PATH_BYTES];
};

/*
 * Runs to the end that the options state, or to SIGINT, SIGTERM, SIGHUP or SIGQUIT; prints the report on standard output. False
 * with *err if it couldn't be run at all; the folder is set then too. `program` is the path of ballast itself. To be called once,
 * from a process without other threads: it blocks those signals, SIGTSTP and SIGCONT, ignores SIGPIPE and SIGXFSZ, and raises the
 * limit of open files.
 */
bool sandbox_run(const struct sandbox_options *options, const char *program, struct sandbox_end *ret_end,
                 struct error *err);

#endif
