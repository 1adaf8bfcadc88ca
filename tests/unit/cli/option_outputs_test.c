/* Every option of every subcommand is in its help, the manual page and each completion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/commands.h"
#include "cli/completion_script.h"
#include "cli/help_text.h"
#include "cli/man_page.h"
#include "cli/option_rows.h"

enum { NAME_MAX_BYTES = 512 };

static struct buffer text;

static int begin(void **state)
{
	(void)state;
	buffer_init(&text, MAN_PAGE_BYTES_MAX);
	return 0;
}

static int end(void **state)
{
	(void)state;
	buffer_destroy(&text);
	return 0;
}

/* How an output shows a command (NULL: it is of one command alone), and an option. */
struct output {
	void (*append)(const struct command *command, struct buffer *out);
	void (*command_heading)(const struct command *command, char heading[NAME_MAX_BYTES]);
	void (*option_text)(const struct command *command, const struct option_row *row, char expected[NAME_MAX_BYTES]);
	const char *command_end; /* what follows the command's part */
};

struct search {
	const struct output *output;
	const struct command *command;
	const char *part; /* of the output, about the command */
	size_t found;
};

static void check_row(void *context, const struct option_row *row)
{
	struct search *search = context;
	char expected[NAME_MAX_BYTES];

	search->output->option_text(search->command, row, expected);
	if (strstr(search->part, expected) == NULL)
		fail_msg("%s: there is no \"%s\" in:\n%s", search->command->name, expected, search->part);
	if (row->help.length == 0)
		fail_msg("%s: %s%s is not explained", search->command->name, row->dashes, row->name);
	search->found++;
}

static void check_output(const struct output *output)
{
	for (size_t i = 0; commands_at(i) != NULL; i++) {
		struct search search = { .output = output, .command = commands_at(i) };
		char heading[NAME_MAX_BYTES] = "";
		char *part, *part_end;

		buffer_clear(&text);
		output->append(search.command, &text);
		buffer_append_char(&text, '\0');
		assert_false(text.failed);
		output->command_heading(search.command, heading);
		part = strstr(text.data, heading);
		if (part == NULL)
			fail_msg("there is no \"%s\"", heading);
		part_end = output->command_end != NULL ? strstr(part + strlen(heading), output->command_end) : NULL;
		if (part_end != NULL)
			*part_end = '\0';
		search.part = part;
		option_rows_each(search.command, check_row, &search);
		assert_true(search.found >= search.command->option_count + 2);
	}
}

/* ---- help ---- */

static void help_heading(const struct command *command, char heading[NAME_MAX_BYTES])
{
	(void)snprintf(heading, NAME_MAX_BYTES, "Usage: ballast %s", command->name);
}

static void help_option(const struct command *command, const struct option_row *row, char expected[NAME_MAX_BYTES])
{
	(void)command;
	(void)snprintf(expected, NAME_MAX_BYTES, "\n  %s%s%s%.*s", row->dashes, row->name, " ",
	               SLICE_ARGS(row->argument));
}

static void every_option_is_in_the_help(void **state)
{
	(void)state;
	check_output(&(struct output){ help_text_append, help_heading, help_option, NULL });
}

/* ---- manual page ---- */

static void append_man(const struct command *command, struct buffer *out)
{
	(void)command;
	man_page_append(out);
}

/* The text with hyphens as roff wants them. */
static void escape_hyphens(const char *from, char to[NAME_MAX_BYTES])
{
	size_t length = 0;

	for (; *from != '\0'; from++) {
		assert_true(length + 3 < NAME_MAX_BYTES);
		if (*from == '-')
			to[length++] = '\\';
		to[length++] = *from;
	}
	to[length] = '\0';
}

static void man_heading(const struct command *command, char heading[NAME_MAX_BYTES])
{
	char plain[NAME_MAX_BYTES];

	(void)snprintf(plain, sizeof plain, ".SS ballast %s\n", command->name);
	escape_hyphens(plain, heading);
}

static void man_option(const struct command *command, const struct option_row *row, char expected[NAME_MAX_BYTES])
{
	char plain[NAME_MAX_BYTES];

	(void)command;
	(void)snprintf(plain, sizeof plain, ".TP\n\\fB%s%s\\fR%s%.*s%s\n", row->dashes, row->name,
	               row->argument.length > 0 ? " \\fI" : "", SLICE_ARGS(row->argument),
	               row->argument.length > 0 ? "\\fR" : "");
	escape_hyphens(plain, expected);
}

static void every_option_is_in_the_manual_page(void **state)
{
	(void)state;
	check_output(&(struct output){ append_man, man_heading, man_option, "\n.SS " });
}

static void the_manual_page_is_ascii(void **state)
{
	(void)state;
	man_page_append(&text);
	assert_false(text.failed);
	for (size_t i = 0; i < text.length; i++)
		assert_in_range(text.data[i], '\n', '~');
}

/* ---- completions ---- */

static void append_bash(const struct command *command, struct buffer *out)
{
	(void)command;
	completion_script_append_bash(out);
}

static void case_heading(const struct command *command, char heading[NAME_MAX_BYTES])
{
	(void)snprintf(heading, NAME_MAX_BYTES, "\n\t%s)\n", command->name);
}

static void bash_option(const struct command *command, const struct option_row *row, char expected[NAME_MAX_BYTES])
{
	(void)command;
	(void)snprintf(expected, NAME_MAX_BYTES, " %s%s%s", row->dashes, row->name,
	               strcmp(row->name, "version") == 0 ? "'" : " ");
}

static void every_option_is_in_the_completion_for_bash(void **state)
{
	(void)state;
	check_output(&(struct output){ append_bash, case_heading, bash_option, "\n\t\tesac\n" });
}

static void append_zsh(const struct command *command, struct buffer *out)
{
	(void)command;
	completion_script_append_zsh(out);
}

static void zsh_option(const struct command *command, const struct option_row *row, char expected[NAME_MAX_BYTES])
{
	(void)command;
	(void)snprintf(expected, NAME_MAX_BYTES, "'*%s%s%s[", row->dashes, row->name,
	               row->argument.length > 0 ? "=" : "");
}

static void every_option_is_in_the_completion_for_zsh(void **state)
{
	(void)state;
	check_output(&(struct output){ append_zsh, case_heading, zsh_option, "\n\t\t;;\n" });
}

static void append_fish(const struct command *command, struct buffer *out)
{
	(void)command;
	completion_script_append_fish(out);
}

static void fish_heading(const struct command *command, char heading[NAME_MAX_BYTES])
{
	(void)snprintf(heading, NAME_MAX_BYTES, "-n __fish_use_subcommand -a %s ", command->name);
}

static void fish_option(const struct command *command, const struct option_row *row, char expected[NAME_MAX_BYTES])
{
	(void)snprintf(expected, NAME_MAX_BYTES, "'__fish_seen_subcommand_from %s' %s %s ", command->name,
	               row->dashes[1] == '\0' ? "-o" : "-l", row->name);
}

static void every_option_is_in_the_completion_for_fish(void **state)
{
	(void)state;
	check_output(&(struct output){ append_fish, fish_heading, fish_option, "-n __fish_use_subcommand -a " });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_option_is_in_the_help, begin, end),
		cmocka_unit_test_setup_teardown(every_option_is_in_the_manual_page, begin, end),
		cmocka_unit_test_setup_teardown(the_manual_page_is_ascii, begin, end),
		cmocka_unit_test_setup_teardown(every_option_is_in_the_completion_for_bash, begin, end),
		cmocka_unit_test_setup_teardown(every_option_is_in_the_completion_for_zsh, begin, end),
		cmocka_unit_test_setup_teardown(every_option_is_in_the_completion_for_fish, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
