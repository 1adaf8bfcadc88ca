/*
 * The script leaves all work to zsh's own _arguments, which gets one specification for each option.
 */
#include "cli/commands.h"
#include "cli/completion_script.h"
#include "cli/option_rows.h"

/* Within single quotes, within a specification: colons end its parts, brackets its explanation. */
static void append_escaped(struct slice text, struct buffer *out)
{
	for (size_t i = 0; i < text.length; i++) {
		switch (text.data[i]) {
		case '\'':
			buffer_append_text(out, "'\\''");
			break;
		case ':':
		case '\\':
		case '[':
		case ']':
			buffer_append_char(out, '\\');
			buffer_append_char(out, text.data[i]);
			break;
		default:
			buffer_append_char(out, text.data[i]);
		}
	}
}

static void append_words(const char *const *words, struct buffer *out)
{
	for (size_t i = 0; words[i] != NULL; i++)
		buffer_append_format(out, "%s%s", i > 0 ? " " : "", words[i]);
}

static void append_specification(const struct option_row *row, const char *dashes, struct buffer *out)
{
	buffer_append_format(out, " \\\n\t\t\t'*%s%s%s[", dashes, row->name, row->argument.length > 0 ? "=" : "");
	append_escaped(option_row_help(row, out), out);
	buffer_append_char(out, ']');
	if (row->argument.length > 0) {
		buffer_append_char(out, ':');
		append_escaped(row->argument, out);
		buffer_append_char(out, ':');
		if (row->choices != NULL) {
			buffer_append_char(out, '(');
			append_words(row->choices, out);
			buffer_append_char(out, ')');
		} else if (option_row_takes_file(row)) {
			buffer_append_text(out, "_files");
		}
	}
	buffer_append_char(out, '\'');
}

static void append_option(void *context, const struct option_row *row)
{
	append_specification(row, row->dashes, context);
	if (row->dashes[1] == '\0')
		append_specification(row, "--", context);
}

static void append_operand(enum operand operand, struct buffer *out)
{
	const char *names[COMMANDS_MAX + 1] = { NULL };

	switch (operand) {
	case OPERAND_NONE:
		break;
	case OPERAND_FILE:
		buffer_append_text(out, " \\\n\t\t\t':FILE:_files'");
		break;
	case OPERAND_SUBCOMMAND:
		names[commands_names(names)] = NULL;
		buffer_append_text(out, " \\\n\t\t\t':SUBCOMMAND:(");
		append_words(names, out);
		buffer_append_text(out, ")'");
		break;
	case OPERAND_SHELL:
		buffer_append_text(out, " \\\n\t\t\t':SHELL:(");
		append_words(COMPLETION_SHELLS, out);
		buffer_append_text(out, ")'");
		break;
	}
}

void completion_script_append_zsh(struct buffer *out)
{
	buffer_append_text(out, "#compdef ballast\n"
	                        "# Completion of ballast for zsh.\n"
	                        "_ballast() {\n"
	                        "\tlocal -a subcommands\n"
	                        "\tsubcommands=(\n");
	for (size_t i = 0; commands_at(i) != NULL; i++) {
		buffer_append_format(out, "\t\t'%s:", commands_at(i)->name);
		append_escaped(slice_of(commands_at(i)->summary), out);
		buffer_append_text(out, "'\n");
	}
	buffer_append_text(out, "\t)\n"
	                        "\tif ((CURRENT == 2)); then\n"
	                        "\t\t_describe subcommand subcommands\n"
	                        "\t\t_arguments '--help[print help]' '--version[print the version]'\n"
	                        "\t\treturn\n"
	                        "\tfi\n"
	                        "\tshift words\n"
	                        "\t((CURRENT--))\n"
	                        "\tcase $words[1] in\n");
	for (size_t i = 0; commands_at(i) != NULL; i++) {
		buffer_append_format(out, "\t%s)\n\t\t_arguments -S", commands_at(i)->name);
		option_rows_each(commands_at(i), append_option, out);
		append_operand(commands_at(i)->operand, out);
		buffer_append_text(out, "\n\t\t;;\n");
	}
	/* As a file of $fpath, the script is the function's body the first time. */
	buffer_append_text(out, "\tesac\n"
	                        "}\n"
	                        "\n"
	                        "if [[ $funcstack[1] == _ballast ]]; then\n"
	                        "\t_ballast \"$@\"\n"
	                        "else\n"
	                        "\tcompdef _ballast ballast\n"
	                        "fi\n");
}
