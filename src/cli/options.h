/*
 * Command-line options by the GNU conventions: `--name value`, `--name=value`, `--` ends them, `--help`
 * (`-h`) and `--version` are understood everywhere, and a mistyped name gets the closest one as an answer.
 */
#ifndef BALLAST_CLI_OPTIONS_H
#define BALLAST_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/command.h"

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_NUMBER, OPTION_CHOICE, OPTION_LIST };

enum { OPTION_LIST_MAX = 64 };

/* The values of an option that may be given several times, in their order; they point into argv. */
struct option_list {
	const char *values[OPTION_LIST_MAX];
	size_t count;
};

struct option {
	const char *name; /* without the dashes */
	enum option_kind kind;
	bool *flag;        /* OPTION_FLAG: set to true */
	const char **text; /* OPTION_TEXT: points into argv */
	uint64_t *number;  /* OPTION_NUMBER: within low and high */
	uint64_t low;
	uint64_t high;
	int *choice; /* OPTION_CHOICE: index of one of the NULL-terminated choices */
	const char *const *choices;
	struct option_list *list; /* OPTION_LIST: one more value */
};

enum { OPTIONS_GO_ON = -1 };

/*
 * Reads the options of argv[1 …] and moves everything else to the front: *ret_rest arguments are left in argv[1 …].
 * Values are set as they are met; the last one counts. Returns OPTIONS_GO_ON, or the status to exit with after having
 * printed help, version or a complaint.
 */
int options_read(const struct command *command, const struct option *options, size_t count, int argc, char **argv,
                 int *ret_rest);

/* Prints the command's help; returns EXIT_OK. */
int options_print_help(const struct command *command);
/* Complains "ballast COMMAND: …" and where help is; returns EXIT_USAGE. */
int options_complain(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The candidate that differs least from text, or NULL if none is close. For "did you mean". */
const char *options_closest(const char *text, const char *const *candidates, size_t count);

#endif
