/*
 * Reads an agent's state dump, of whichever generation, ours or the reference's, for `ballast status`.
 */
#ifndef BALLAST_CLI_STATUS_READ_H
#define BALLAST_CLI_STATUS_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "gen/status_line.gen.h"

struct status {
	struct status_line_vm *vms; /* in the dump's order */
	size_t vm_count;
	bool stopped; /* the agent is shutting down */
};

/*
 * What is in *ret_status lives in text and arena. False if text is no dump; *err says what is wrong with it.
 */
bool status_read(struct slice text, struct arena *arena, struct status *ret_status, struct error *err);

#endif
