/*
 * The text of `ballast SUBCOMMAND --help`.
 */
#ifndef BALLAST_CLI_HELP_TEXT_H
#define BALLAST_CLI_HELP_TEXT_H

#include "cli/command.h"

enum { HELP_TEXT_BYTES_MAX = 256 * 1024 };

void help_text_append(const struct command *command, struct buffer *out);

#endif
