/*
 * The texts of commands are paragraphs for a terminal. Lines that begin with a blank are tables and examples, which stay
 * as they are; the others are filled.
 */
#include "cli/man_page.h"

#include <inttypes.h>

#include "cli/commands.h"
#include "cli/option_rows.h"

/* Text where a line may begin or go on. The page is ASCII, so that it can be read whatever the locale. */
static void append_escaped(struct slice text, bool begins_line, struct buffer *out)
{
	if (begins_line && text.length > 0 && text.data[0] == '.')
		buffer_append_text(out, "\\&");
	while (text.length > 0) {
		uint32_t code_point = 0;
		size_t length = slice_utf8_next(text, &code_point);
		char first = text.data[0];

		text = slice_from_offset(text, length > 0 ? length : 1);
		if (length > 1) {
			buffer_append_format(out, "\\[u%04" PRIX32 "]", code_point);
			continue;
		}
		switch (first) {
		case '\\':
			buffer_append_text(out, "\\e");
			break;
		case '-':
			buffer_append_text(out, "\\-");
			break;
		case '\'':
			buffer_append_text(out, "\\(aq");
			break;
		case '`':
			buffer_append_text(out, "\\(ga");
			break;
		case '^':
			buffer_append_text(out, "\\(ha");
			break;
		case '~':
			buffer_append_text(out, "\\(ti");
			break;
		default:
			buffer_append_char(out, first);
		}
	}
}

static void append_paragraphs(const char *paragraphs, struct buffer *out)
{
	struct slice rest = slice_of(paragraphs);
	bool kept = false, fresh = true; /* within lines that are kept; at the start of a paragraph */

	while (rest.length > 0) {
		struct slice line = slice_take_until(&rest, '\n');
		bool keeps = line.length > 0 && line.data[0] == ' ';

		if (keeps != kept)
			buffer_append_text(out, keeps ? ".RS 0\n.nf\n" : ".fi\n.RE\n");
		kept = keeps;
		if (line.length == 0) {
			fresh = true;
			continue;
		}
		if (fresh)
			buffer_append_text(out, ".PP\n");
		fresh = false;
		append_escaped(line, true, out);
		buffer_append_char(out, '\n');
	}
	if (kept)
		buffer_append_text(out, ".fi\n.RE\n");
}

static void append_row(void *context, const struct option_row *row)
{
	struct buffer *out = context;

	if (row->group != NULL) {
		buffer_append_text(out, ".PP\n");
		append_escaped(slice_of(row->group), true, out);
		buffer_append_text(out, ":\n");
	}
	buffer_append_text(out, ".TP\n\\fB");
	append_escaped(slice_of(row->dashes), false, out);
	append_escaped(slice_of(row->name), false, out);
	buffer_append_text(out, "\\fR");
	if (row->argument.length > 0) {
		buffer_append_text(out, " \\fI");
		append_escaped(row->argument, false, out);
		buffer_append_text(out, "\\fR");
	}
	buffer_append_char(out, '\n');
	append_escaped(option_row_help(row, out), true, out);
	buffer_append_char(out, '\n');
}

static void append_command(const struct command *command, struct buffer *out)
{
	struct buffer more;

	buffer_append_text(out, ".SS ballast ");
	append_escaped(slice_of(command->name), false, out);
	buffer_append_text(out, "\n\\fBballast ");
	append_escaped(slice_of(command->name), false, out);
	buffer_append_text(out, command->usage[0] != '\0' ? "\\fR " : "\\fR");
	append_escaped(slice_of(command->usage), false, out);
	buffer_append_char(out, '\n');
	append_paragraphs(command->before, out);
	option_rows_each(command, append_row, out);
	append_paragraphs(command->after, out);
	if (command->more == NULL)
		return;
	buffer_init(&more, out->limit_bytes);
	command->more(&more);
	buffer_append_char(&more, '\0');
	buffer_share_failure(out, &more);
	if (!more.failed)
		append_paragraphs(more.data, out);
	buffer_destroy(&more);
}

void man_page_append(struct buffer *out)
{
	buffer_append_text(out,
	                   ".TH BALLAST 1 \"\" \"ballast " BALLAST_VERSION "\" \"User Commands\"\n"
	                   ".SH NAME\n"
	                   "ballast \\- autoscaling of virtual machines, and pods on local disks, on Kubernetes nodes\n"
	                   ".SH SYNOPSIS\n"
	                   "\\fBballast\\fR \\fISUBCOMMAND\\fR [\\fIOPTION\\fR]...\n"
	                   ".SH DESCRIPTION\n"
	                   "One program for the daemons of a node and the tools around them:\n");
	for (size_t i = 0; commands_at(i) != NULL; i++) {
		buffer_append_text(out, ".TP\n\\fB");
		append_escaped(slice_of(commands_at(i)->name), false, out);
		buffer_append_text(out, "\\fR\n");
		append_escaped(slice_of(commands_at(i)->summary), true, out);
		buffer_append_char(out, '\n');
	}
	buffer_append_text(
		out,
		".PP\n"
		"Started by the name \\fBautoscaler\\-agent\\fR, the program is \\fBballast agent\\fR; by the name\n"
		"\\fBextender\\fR, \\fBballast extender\\fR; by the name \\fBhealth_probe\\fR, it asks an extender\n"
		"whether it is ready.\n"
		".PP\n"
		"Options are given as \\fB\\-\\-name\\fR \\fIvalue\\fR or \\fB\\-\\-name=\\fR\\fIvalue\\fR;\n"
		"\\fB\\-\\-\\fR ends them. Durations are like 500ms, 25s or 1m30s.\n"
		".SH SUBCOMMANDS\n");
	for (size_t i = 0; commands_at(i) != NULL; i++)
		append_command(commands_at(i), out);
	buffer_append_text(out,
	                   ".SH EXIT STATUS\n"
	                   "0 for success, 1 for a failure, 2 for wrong usage, unless a subcommand says otherwise.\n");
}
