/*
 * One `complete` for each option, on the condition that its subcommand stands in the line.
 */
#include "cli/commands.h"
#include "cli/completion_script.h"
#include "cli/option_rows.h"

struct rows {
	const struct command *command;
	struct buffer *out;
};

/* In single quotes only \ and ' mean anything. */
static void append_quoted(struct slice text, struct buffer *out)
{
	buffer_append_char(out, '\'');
	for (size_t i = 0; i < text.length; i++) {
		if (text.data[i] == '\'' || text.data[i] == '\\')
			buffer_append_char(out, '\\');
		buffer_append_char(out, text.data[i]);
	}
	buffer_append_char(out, '\'');
}

static void append_words(const char *const *words, struct buffer *out)
{
	buffer_append_text(out, " -a '");
	for (size_t i = 0; words[i] != NULL; i++)
		buffer_append_format(out, "%s%s", i > 0 ? " " : "", words[i]);
	buffer_append_char(out, '\'');
}

static void append_condition(const struct command *command, struct buffer *out)
{
	buffer_append_format(out, "complete -c ballast -n '__fish_seen_subcommand_from %s'", command->name);
}

static void append_form(const struct command *command, const struct option_row *row, const char *flag,
                        struct buffer *out)
{
	append_condition(command, out);
	buffer_append_format(out, " %s %s", flag, row->name);
	if (row->choices != NULL) {
		buffer_append_text(out, " -x");
		append_words(row->choices, out);
	} else if (option_row_takes_file(row)) {
		buffer_append_text(out, " -r -F");
	} else if (row->argument.length > 0) {
		buffer_append_text(out, " -x");
	}
	buffer_append_text(out, " -d ");
	append_quoted(option_row_help(row, out), out);
	buffer_append_char(out, '\n');
}

static void append_option(void *context, const struct option_row *row)
{
	const struct rows *rows = context;

	if (row->dashes[1] == '\0')
		append_form(rows->command, row, "-o", rows->out);
	append_form(rows->command, row, "-l", rows->out);
}

static void append_operand(const struct command *command, struct buffer *out)
{
	const char *names[COMMANDS_MAX + 1] = { NULL };

	if (command->operand == OPERAND_NONE)
		return;
	append_condition(command, out);
	if (command->operand == OPERAND_FILE) {
		buffer_append_text(out, " -F");
	} else if (command->operand == OPERAND_SHELL) {
		append_words(COMPLETION_SHELLS, out);
	} else {
		names[commands_names(names)] = NULL;
		append_words(names, out);
	}
	buffer_append_char(out, '\n');
}

void completion_script_append_fish(struct buffer *out)
{
	buffer_append_text(out, "# Completion of ballast for fish.\n"
	                        "complete -c ballast -f\n"
	                        "complete -c ballast -n __fish_use_subcommand -l help -d 'print help'\n"
	                        "complete -c ballast -n __fish_use_subcommand -l version -d 'print the version'\n");
	for (size_t i = 0; commands_at(i) != NULL; i++) {
		struct rows rows = { .command = commands_at(i), .out = out };

		buffer_append_format(out, "complete -c ballast -n __fish_use_subcommand -a %s -d ", rows.command->name);
		append_quoted(slice_of(rows.command->summary), out);
		buffer_append_char(out, '\n');
		option_rows_each(rows.command, append_option, &rows);
		append_operand(rows.command, out);
	}
}
