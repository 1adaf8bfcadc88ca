/*
 * `ballast help` and `ballast version`.
 */
#ifndef BALLAST_CLI_HELP_H
#define BALLAST_CLI_HELP_H

#include <stdio.h>

/* What ballast is, and its subcommands. */
void help_print_overview(FILE *out);

#endif
