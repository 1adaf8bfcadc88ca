/*
 * The table of subcommands.
 */
#ifndef BALLAST_CLI_COMMANDS_H
#define BALLAST_CLI_COMMANDS_H

#include <stddef.h>

#include "cli/command.h"

enum { COMMANDS_MAX = 16 };

extern const struct command command_help;
extern const struct command command_version;

/* In the order in which help lists them; NULL past the end. */
const struct command *commands_at(size_t index);
const struct command *commands_find(const char *name); /* NULL if there is none */
/* Fills names, which has COMMANDS_MAX places, and returns how many there are. */
size_t commands_names(const char **ret_names);

#endif
