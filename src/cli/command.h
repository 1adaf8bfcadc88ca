/*
 * The subcommands of ballast: one file each.
 */
#ifndef BALLAST_CLI_COMMAND_H
#define BALLAST_CLI_COMMAND_H

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
	const char *name;
	const char *summary;     /* one line for `ballast help` */
	const char *help;        /* the text of `ballast NAME --help` */
	void (*help_more)(void); /* prints what follows it; NULL: nothing */
	/*
	 * argv[0] is the subcommand's name; returns the exit status. --help and --version were not looked at yet. Whether
	 * what it printed on stdout could be written is the caller's business.
	 */
	int (*run)(int argc, char **argv);
};

extern const struct command command_agent;
extern const struct command command_extender;
extern const struct command command_sandbox;
extern const struct command command_replay;
extern const struct command command_check_config;
/* Not in the table of subcommands: only by its name. */
extern const struct command command_health_probe;

#endif
