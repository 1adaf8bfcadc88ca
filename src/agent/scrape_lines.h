/*
 * A page of system metrics, read line by line instead of as Prometheus text, as the agent of late 2023 did (spec
 * generations 4.3): of each name the first line that begins with it counts, and of that the second word. So labels
 * without blanks, types and timestamps don't matter. Numbers have 32 bits.
 */
#ifndef BALLAST_AGENT_SCRAPE_LINES_H
#define BALLAST_AGENT_SCRAPE_LINES_H

#include <stdbool.h>

#include "agent/core/vm_metrics.h"
#include "base/error.h"
#include "base/slice.h"

/*
 * prefix is that of the names: "host_" or "node_". False with the reference's text for the first value, in the order of
 * the specification, that isn't there or isn't a number; also for one that isn't finite or is negative, which the
 * reference took. *ret_metrics is untouched then.
 */
bool scrape_lines_read(struct slice page, const char *prefix, struct system_metrics *ret_metrics, struct error *err);

#endif
