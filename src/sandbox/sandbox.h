/*
 * One run of the sandbox: the cluster, the agents as child processes, the workload over time, and the report.
 */
#ifndef BALLAST_SANDBOX_SANDBOX_H
#define BALLAST_SANDBOX_SANDBOX_H

#include <stdbool.h>

#include "base/error.h"
#include "sandbox/sandbox_options.h"

enum sandbox_outcome { SANDBOX_AS_STATED, SANDBOX_MISMATCHES };

/*
 * Runs to the end that the options state, or to SIGINT or SIGTERM; prints the report on standard output. False with *err if it
 * couldn't be run at all. `program` is the path of ballast itself. To be called once, from a process without other threads: it
 * blocks those two signals, ignores SIGPIPE, and raises the limit of open files.
 */
bool sandbox_run(const struct sandbox_options *options, const char *program, enum sandbox_outcome *ret_outcome,
                 struct error *err);

#endif
