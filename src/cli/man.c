/*
 * `ballast man`: the manual page.
 */
#include <stdio.h>

#include "cli/command.h"
#include "cli/man_page.h"
#include "cli/options.h"

static int run_man(int argc, char **argv)
{
	int rest = 0;
	int status = options_read(&command_man, NULL, argc, argv, &rest);
	struct buffer page;
	struct error err;

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest > 0)
		return options_complain(&command_man, "unexpected argument \"%s\"", argv[1]);
	buffer_init(&page, MAN_PAGE_BYTES_MAX);
	man_page_append(&page);
	if (buffer_check(&page, "the manual page", &err)) {
		(void)fwrite(page.data, 1, page.length, stdout);
		status = EXIT_OK;
	} else {
		(void)fprintf(stderr, "ballast man: %s\n", err.text);
		status = EXIT_FAILED;
	}
	buffer_destroy(&page);
	return status;
}

const struct command command_man = {
	.name = "man",
	.summary = "print the manual page",
	.usage = "",
	.before = "Prints the manual page of the whole program, in roff. To read it, or to install it:\n"
		  "\n"
		  "  ballast man | man -l -\n"
		  "  ballast man >/usr/local/share/man/man1/ballast.1\n",
	.run = run_man,
};
