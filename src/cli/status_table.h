/*
 * The table of `ballast status`.
 */
#ifndef BALLAST_CLI_STATUS_TABLE_H
#define BALLAST_CLI_STATUS_TABLE_H

#include <stdint.h>

#include "base/buffer.h"
#include "cli/status_read.h"

/*
 * Appends a heading, a line for each VM, and a line that sums up. VMs that aren't ok come first: who has room for a few lines
 * sees them. Ages are as of now_ns (since 1970). What came from the agent is shown without control characters.
 */
void status_table_append(const struct status *status, int64_t now_ns, struct buffer *out);

#endif
