#include "cli/help.h"

#include "cli/commands.h"
#include "cli/options.h"

void help_print_overview(FILE *out)
{
	(void)fputs("ballast: autoscaling of virtual machines, and pods on local disks, on Kubernetes nodes.\n"
	            "\n"
	            "Usage: ballast SUBCOMMAND [OPTION]...\n"
	            "\n"
	            "Subcommands:\n",
	            out);
	for (size_t i = 0; commands_at(i) != NULL; i++)
		(void)fprintf(out, "  %-14s %s\n", commands_at(i)->name, commands_at(i)->summary);
	(void)fputs(
		"\n"
		"`ballast help SUBCOMMAND`, or --help (-h) after it, tells more. Started by the name autoscaler-agent, the\n"
		"program is `ballast agent`; by the name extender, `ballast extender`.\n",
		out);
}

static int run_help(int argc, char **argv)
{
	int rest = 0;
	int status = options_read(&command_help, NULL, argc, argv, &rest);
	const struct command *command;

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest == 0) {
		help_print_overview(stdout);
		return EXIT_OK;
	}
	if (rest > 1)
		return options_complain(&command_help, "help for one subcommand at a time");
	command = commands_find(argv[1]);
	if (command == NULL)
		return options_complain(&command_help, "there is no subcommand \"%s\"", argv[1]);
	return options_print_help(command);
}

static int run_version(int argc, char **argv)
{
	int rest = 0;
	int status = options_read(&command_version, NULL, argc, argv, &rest);

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest > 0)
		return options_complain(&command_version, "unexpected argument \"%s\"", argv[1]);
	(void)printf("ballast %s\n", BALLAST_VERSION);
	return EXIT_OK;
}

const struct command command_help = {
	.name = "help",
	.summary = "explain a subcommand",
	.usage = "[SUBCOMMAND]",
	.before = "Explains a subcommand, or lists them all.\n",
	.operand = OPERAND_SUBCOMMAND,
	.run = run_help,
};

const struct command command_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "",
	.before = "Prints the version of this program.\n",
	.run = run_version,
};
