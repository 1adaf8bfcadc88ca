/*
 * Command-line flags by the rules of Go's flag package, which the reference extender and its health probe are called
 * with (spec extender P1, P2): one or two leading dashes; `-x=v` or `-x v`; a bool takes a value only as `-x=v`; reading
 * ends at `--` or at the first word without a dash, and what follows is ignored.
 */
#ifndef BALLAST_EXTENDER_GO_FLAGS_H
#define BALLAST_EXTENDER_GO_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"

enum go_flag_kind { GO_FLAG_TEXT, GO_FLAG_BOOL, GO_FLAG_NUMBER, GO_FLAG_DURATION };

struct go_flag {
	const char *name; /* without dashes; the letter case counts */
	enum go_flag_kind kind;
	const char *help;  /* for the usage; `word` in back quotes names the value */
	const char **text; /* GO_FLAG_TEXT: points into argv afterwards */
	bool *flag;
	int64_t *number; /* within low and high */
	int64_t *duration_ns;
	int64_t low, high;          /* of numbers, and of durations in nanoseconds */
	const char *const *choices; /* values for completions to offer, NULL-terminated; NULL: none. Any text is read */
};

enum go_flags_result {
	GO_FLAGS_READ,
	GO_FLAGS_HELP,    /* -h, -help */
	GO_FLAGS_VERSION, /* -version */
	GO_FLAGS_WRONG,   /* *err has the texts of Go's flag package */
};

/*
 * Sets values as they are met; the last one counts. *ret_ignored is the index in argv of the first word that wasn't
 * looked at, argc if there is none.
 */
enum go_flags_result go_flags_read(const struct go_flag *flags, size_t count, int argc, char **argv, int *ret_ignored,
                                   struct error *err);
/* One entry for each flag, in the order of the table, with the values as they are now as defaults. */
void go_flags_print_usage(const struct go_flag *flags, size_t count, FILE *out);

/* " (default …)" with the value as it is now; nothing for a zero or empty one. */
void go_flags_append_default(const struct go_flag *flag, struct buffer *out);

#endif
