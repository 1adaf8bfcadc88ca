/*
 * The subcommands of ballast: one file each.
 *
 * A command's options stand in one table (options.h), from which reading them, help, man page and shell completions are
 * made; the texts here are only what those tables don't say.
 */
#ifndef BALLAST_CLI_COMMAND_H
#define BALLAST_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct option;
struct option_row;
typedef void option_row_callback(void *context, const struct option_row *row);

/* What completions offer for an argument that is no option. */
enum operand { OPERAND_NONE, OPERAND_FILE, OPERAND_SUBCOMMAND, OPERAND_SHELL };

struct command {
	const char *name;
	const char *summary; /* one line for `ballast help` */
	const char *usage;   /* what follows `ballast NAME`: "[OPTION]..." */
	/*
	 * What help says before and after the options: paragraphs with blank lines between, without one at either end, each
	 * line ended. Indented lines are kept as they are; others may be filled anew. NULL: nothing.
	 */
	const char *before;
	const char *after;
	void (*more)(struct buffer *out); /* appends what follows `after`, in the same form; NULL: nothing */
	enum operand operand;
	const struct option *options;
	size_t option_count;
	/* Instead of options: calls back for each flag of a table by Go's rules. */
	void (*each_go_flag)(option_row_callback *callback, void *context);
	/*
	 * argv[0] is the subcommand's name; returns the exit status. --help and --version were not looked at yet. Whether
	 * what it printed on stdout could be written is the caller's business.
	 */
	int (*run)(int argc, char **argv);
};

extern const struct command command_agent;
extern const struct command command_extender;
extern const struct command command_sandbox;
extern const struct command command_status;
extern const struct command command_replay;
extern const struct command command_check_config;
extern const struct command command_man;
extern const struct command command_completion;
/* Not in the table of subcommands: only by its name. */
extern const struct command command_health_probe;

/* Sanitizers trace the process when it ends and call what the product never does. */
#ifdef __SANITIZE_ADDRESS__
enum { NO_SECCOMP_BY_DEFAULT = true };
#else
enum { NO_SECCOMP_BY_DEFAULT = false };
#endif

#endif
