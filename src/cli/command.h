/*
 * The subcommands of ballast: one file each.
 */
#ifndef BALLAST_CLI_COMMAND_H
#define BALLAST_CLI_COMMAND_H

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
	const char *name;
	const char *summary; /* one line for `ballast help` */
	const char *help;    /* the text of `ballast NAME --help`, */
	const char *help_2;  /* and what follows it: C's strings end at 4095 bytes. NULL: nothing */
	/*
	 * argv[0] is the subcommand's name; returns the exit status. --help and --version were not looked at yet. Whether
	 * what it printed on stdout could be written is the caller's business.
	 */
	int (*run)(int argc, char **argv);
};

extern const struct command command_agent;
extern const struct command command_sandbox;
extern const struct command command_replay;
extern const struct command command_check_config;

#endif
