/*
 * Command-line options by the GNU conventions: `--name value`, `--name=value`, `--` ends them, `--help`
 * (`-h`) and `--version` are understood everywhere, and a mistyped name gets the closest one as an answer.
 *
 * A command has one constant table, with an entry for each option:
 *
 *     { .name = "config",
 *       .place = TEXT_OPTION(struct agent_values, config),
 *       .argument = "FILE",
 *       .help = "configuration file (default: $CONFIG_PATH)" },
 *
 * The macro names the member of the command's own struct that gets the value; its type is checked.
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

/* Where a value goes, and what values there are. */
struct option_place {
	enum option_kind kind;
	size_t offset; /* in the command's struct */
	uint64_t low, high;
	const char *const *choices; /* NULL-terminated */
};

struct option {
	const char *name; /* without the dashes */
	struct option_place place;
	const char *argument; /* its name in help; "FILE" is completed as one. NULL for flags */
	const char *help;     /* any length, broken into lines by whoever prints it */
	const char *group;    /* heading over it and those that follow; NULL: as the one before */
};

/* The type can't stand in parentheses. */
#define OPTION_PLACE(option_kind, type, structure, member) /* NOLINTNEXTLINE(bugprone-macro-parentheses) */ \
	.kind = (option_kind), .offset = offsetof(structure, member) + _Generic(((structure *)NULL)->member, type : 0)
/* Set to true. */
#define FLAG_OPTION(structure, member)                             \
	{                                                          \
		OPTION_PLACE(OPTION_FLAG, bool, structure, member) \
	}
/* Points into argv. */
#define TEXT_OPTION(structure, member)                                     \
	{                                                                  \
		OPTION_PLACE(OPTION_TEXT, const char *, structure, member) \
	}
/* Within least and most. */
#define NUMBER_OPTION(structure, member, least, most)                                                    \
	{                                                                                                \
		OPTION_PLACE(OPTION_NUMBER, uint64_t, structure, member), .low = (least), .high = (most) \
	}
/* Index of one of the names. */
#define CHOICE_OPTION(structure, member, names)                                         \
	{                                                                               \
		OPTION_PLACE(OPTION_CHOICE, int, structure, member), .choices = (names) \
	}
/* One more value each time. */
#define LIST_OPTION(structure, member)                                           \
	{                                                                        \
		OPTION_PLACE(OPTION_LIST, struct option_list, structure, member) \
	}

enum { OPTIONS_GO_ON = -1 };

/*
 * Reads the options of argv[1 …] by the command's table and moves everything else to the front: *ret_rest arguments are
 * left in argv[1 …]. Values are set in the command's struct as they are met; the last one counts. Returns OPTIONS_GO_ON, or
 * the status to exit with after having printed help, version or a complaint.
 */
int options_read(const struct command *command, void *values, int argc, char **argv, int *ret_rest);

/* Prints the command's help; returns EXIT_OK, or EXIT_FAILED when memory is short. */
int options_print_help(const struct command *command);
/* Complains "ballast COMMAND: …" and where help is; returns EXIT_USAGE. */
int options_complain(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The candidate that differs least from text, or NULL if none is close. For "did you mean". */
const char *options_closest(const char *text, const char *const *candidates, size_t count);

#endif
