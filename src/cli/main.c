/*
 * The program: finds the subcommand and runs it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/relro.h"
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
	{ "extender", &command_extender },
	{ "health_probe", &command_health_probe },
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

static int unknown_option(const char *name)
{
	static const char *const NAMES[] = { "--help", "--version" };
	const char *closest = options_closest(name, NAMES, sizeof NAMES / sizeof NAMES[0]);

	(void)fprintf(stderr, "ballast: unknown option %s%s%s%s\n", name, closest != NULL ? "; did you mean " : "",
	              closest != NULL ? closest : "", closest != NULL ? "?" : "");
	(void)fputs("Try `ballast help`.\n", stderr);
	return EXIT_USAGE;
}

/*
 * A standard stream that is closed would be taken by the next file or socket opened. Each is opened against its
 * direction, so that using it fails, and is told, as it would if it were closed.
 */
static bool open_standard_streams(void)
{
	for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++) {
		int opened = descriptor;

		/* The lowest free number is taken, and those below are in use. */
		if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
			opened = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
		if (opened != descriptor)
			return false;
	}
	return true;
}

static int run(int argc, char **argv)
{
	const struct command *command;

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
	if (argv[1][0] == '-')
		return unknown_option(argv[1]);
	command = commands_find(argv[1]);
	return command != NULL ? command->run(argc - 1, argv + 1) : unknown_command(argv[1]);
}

/* What was printed counts only once it is written. */
static int flush_output(int status)
{
	struct error err;

	if (fflush(stdout) != 0)
		error_set_errno(&err, errno, "writing to standard output");
	else if (ferror(stdout) != 0) /* an earlier part of it; the reason is gone */
		error_set(&err, ERROR_SYSTEM, "standard output can't be written");
	else
		return status;
	(void)fprintf(stderr, "ballast: %s\n", err.text);
	return status == EXIT_OK ? EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
	struct error err;

	if (argc < 1)
		return EXIT_USAGE;
	if (!open_standard_streams()) {
		(void)fputs("ballast: a standard stream is closed, and /dev/null can't be opened in its place\n",
		            stderr);
		return EXIT_FAILED;
	}
	if (!relro_protect(&err)) {
		(void)fprintf(stderr, "ballast: %s\n", err.text);
		return EXIT_FAILED;
	}
	return flush_output(run(argc, argv));
}
