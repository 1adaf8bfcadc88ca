/*
 * The script has a case for each subcommand: first the values of the option before the cursor, then options and operands.
 */
#include "cli/commands.h"
#include "cli/completion_script.h"
#include "cli/option_rows.h"

/* "=" is a word of its own in COMP_WORDS, since COMP_WORDBREAKS has it. */
static const char HEAD[] = "# Completion of ballast for bash.\n"
			   "_ballast() {\n"
			   "\tlocal current=${COMP_WORDS[COMP_CWORD]} previous= words=\n"
			   "\tCOMPREPLY=()\n"
			   "\tif ((COMP_CWORD > 0)); then previous=${COMP_WORDS[COMP_CWORD - 1]}; fi\n"
			   "\tif [[ $current == = ]]; then\n"
			   "\t\tcurrent=\n"
			   "\telif [[ $previous == = ]] && ((COMP_CWORD > 1)); then\n"
			   "\t\tprevious=${COMP_WORDS[COMP_CWORD - 2]}\n"
			   "\tfi\n";

static const char TAIL[] = "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
			   "\treturn 0\n"
			   "}\n"
			   "\n"
			   "# Files whose names begin with the word.\n"
			   "_ballast_files() {\n"
			   "\tlocal file\n"
			   "\twhile IFS= read -r file; do COMPREPLY+=(\"$file\"); done < <(compgen -f -- \"$1\")\n"
			   "\tcompopt -o filenames 2>/dev/null\n"
			   "\t# Variables, open quotes: bash knows better.\n"
			   "\tif ((${#COMPREPLY[@]} == 0)); then compopt -o default 2>/dev/null; fi\n"
			   "\treturn 0\n"
			   "}\n"
			   "\n"
			   "complete -F _ballast ballast\n";

static void append_names(struct buffer *out)
{
	for (size_t i = 0; commands_at(i) != NULL; i++)
		buffer_append_format(out, "%s%s", i > 0 ? " " : "", commands_at(i)->name);
}

static void append_choices(const char *const *choices, struct buffer *out)
{
	for (size_t i = 0; choices[i] != NULL; i++)
		buffer_append_format(out, "%s%s", i > 0 ? " " : "", choices[i]);
}

/* A case of its own for each option that takes a value; without known values, nothing is offered. */
static void append_values(void *context, const struct option_row *row)
{
	struct buffer *out = context;

	if (row->argument.length == 0)
		return;
	if (row->dashes[1] == '\0')
		buffer_append_format(out, "\t\t-%s | --%s)", row->name, row->name);
	else
		buffer_append_format(out, "\t\t--%s)", row->name);
	if (row->choices != NULL) {
		buffer_append_text(out, " words='");
		append_choices(row->choices, out);
		buffer_append_text(out, "' ;;\n");
	} else if (option_row_takes_file(row)) {
		buffer_append_text(out, " _ballast_files \"$current\"; return 0 ;;\n");
	} else {
		buffer_append_text(out, " return 0 ;;\n");
	}
}

static void append_option(void *context, const struct option_row *row)
{
	buffer_append_format(context, " %s%s", row->dashes, row->name);
}

static void append_operands(const struct command *command, struct buffer *out)
{
	switch (command->operand) {
	case OPERAND_NONE:
		break;
	case OPERAND_FILE:
		buffer_append_text(out, "\t\t\tif [[ $current != -* ]]; then\n"
		                        "\t\t\t\t_ballast_files \"$current\"\n"
		                        "\t\t\t\treturn 0\n"
		                        "\t\t\tfi\n");
		break;
	case OPERAND_SUBCOMMAND:
		buffer_append_text(out, "\t\t\twords+=' ");
		append_names(out);
		buffer_append_text(out, "'\n");
		break;
	case OPERAND_SHELL:
		buffer_append_text(out, "\t\t\twords+=' ");
		append_choices(COMPLETION_SHELLS, out);
		buffer_append_text(out, "'\n");
		break;
	}
}

static void append_command(const struct command *command, struct buffer *out)
{
	buffer_append_format(out, "\t%s)\n\t\tcase $previous in\n", command->name);
	option_rows_each(command, append_values, out);
	buffer_append_text(out, "\t\t*)\n\t\t\twords='");
	option_rows_each(command, append_option, out);
	buffer_append_text(out, "'\n");
	/* Two dashes are as good as one, and are kept once typed. */
	if (command->each_go_flag != NULL)
		buffer_append_text(out, "\t\t\tif [[ $current == --* ]]; then words=${words// -/ --}; fi\n");
	append_operands(command, out);
	buffer_append_text(out, "\t\t\t;;\n\t\tesac\n\t\t;;\n");
}

void completion_script_append_bash(struct buffer *out)
{
	buffer_append_text(out, HEAD);
	buffer_append_text(out, "\tif ((COMP_CWORD <= 1)); then\n\t\twords='");
	append_names(out);
	buffer_append_text(out, " --help --version'\n"
	                        "\telse\n"
	                        "\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; commands_at(i) != NULL; i++)
		append_command(commands_at(i), out);
	buffer_append_text(out, "\tesac\n\tfi\n");
	buffer_append_text(out, TAIL);
}
