/*
 * The program: finds the subcommand and runs it.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/options.h"

/* What the program may be called instead of its name (a symlink): then it is that subcommand. */
static const struct {
	const char *name;
	const struct command *command;
} OTHER_NAMES[] = {
	{ "autoscaler-agent", &command_agent },
};

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static int unknown_command(const char *name)
{
	const char *names[COMMANDS_MAX];
	size_t count = commands_names(names);
	const char *closest = options_closest(name, names, count);

	if (closest != NULL)
		(void)fprintf(stderr, "ballast: unknown subcommand \"%s\"; did you mean \"%s\"?\n", name, closest);
	else
		(void)fprintf(stderr, "ballast: unknown subcommand \"%s\"\n", name);
	(void)fputs("Try `ballast help`.\n", stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 1)
		return EXIT_USAGE;
	for (size_t i = 0; i < sizeof OTHER_NAMES / sizeof OTHER_NAMES[0]; i++) {
		if (strcmp(last_part(argv[0]), OTHER_NAMES[i].name) == 0)
			return OTHER_NAMES[i].command->run(argc, argv);
	}
	if (argc < 2) {
		help_print_overview(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0)
		return command_version.run(1, argv + 1);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return command_help.run(1, argv + 1);
	command = commands_find(argv[1]);
	return command != NULL ? command->run(argc - 1, argv + 1) : unknown_command(argv[1]);
}
