/*
 * Scripts that make a shell complete the command line of ballast: subcommands, options, values that are choices or files.
 */
#ifndef BALLAST_CLI_COMPLETION_SCRIPT_H
#define BALLAST_CLI_COMPLETION_SCRIPT_H

#include "base/buffer.h"

enum { COMPLETION_SCRIPT_BYTES_MAX = 1024 * 1024 };

/* The shells there are, NULL-terminated. */
extern const char *const COMPLETION_SHELLS[];

void completion_script_append_bash(struct buffer *out);
void completion_script_append_zsh(struct buffer *out);
void completion_script_append_fish(struct buffer *out);

#endif
