/*
 * What standard output is.
 */
#ifndef BALLAST_CLI_TERMINAL_H
#define BALLAST_CLI_TERMINAL_H

#include <stdbool.h>

/* Whether it is a terminal that can move its cursor, so that what was shown can be replaced. */
bool terminal_can_redraw(void);

#endif
