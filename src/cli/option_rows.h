/*
 * The options of a command as help, man page and completions show them, whichever kind of table they come from.
 */
#ifndef BALLAST_CLI_OPTION_ROWS_H
#define BALLAST_CLI_OPTION_ROWS_H

#include "base/slice.h"
#include "cli/command.h"
#include "extender/go_flags.h"

struct option_row {
	const char *dashes; /* "--", or "-" for flags by Go's rules, where two are fine as well */
	const char *name;
	struct slice argument;      /* empty: it takes none */
	struct slice help;          /* one line of any length */
	bool help_is_cut;           /* memory was short for it */
	const char *group;          /* heading over it; NULL: as the one before */
	const char *const *choices; /* the values there are, NULL-terminated; NULL: others */
};

/* All options of the command, in the order of its table, help and version last. Rows are valid during the call only. */
void option_rows_each(const struct command *command, option_row_callback *callback, void *context);
/* The rows of a table by Go's rules, with the values as they are now as defaults. For a command's each_go_flag. */
void option_rows_each_go_flag(const struct go_flag *flags, size_t count, option_row_callback *callback, void *context);
/* The row's help; fails the buffer if that is cut, so that it counts as cut as well. */
struct slice option_row_help(const struct option_row *row, struct buffer *out);
/* Whether the value is a file's name. */
bool option_row_takes_file(const struct option_row *row);

#endif
