#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool terminal_can_redraw(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) == 1 && terminal != NULL && terminal[0] != '\0' && strcmp(terminal, "dumb") != 0;
}
