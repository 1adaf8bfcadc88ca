#include "cli/commands.h"

#include <string.h>

static const struct command *const COMMANDS[] = {
	&command_agent,        &command_extender, &command_sandbox,    &command_status,  &command_replay,
	&command_check_config, &command_man,      &command_completion, &command_version, &command_help,
};

enum { COMMAND_COUNT = sizeof COMMANDS / sizeof COMMANDS[0] };

_Static_assert((int)COMMAND_COUNT <= (int)COMMANDS_MAX, "more subcommands than there is room for");

const struct command *commands_at(size_t index)
{
	return index < COMMAND_COUNT ? COMMANDS[index] : NULL;
}

const struct command *commands_find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(COMMANDS[i]->name, name) == 0)
			return COMMANDS[i];
	}
	return NULL;
}

size_t commands_names(const char **ret_names)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		ret_names[i] = COMMANDS[i]->name;
	return COMMAND_COUNT;
}
