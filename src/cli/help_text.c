#include "cli/help_text.h"

#include "cli/option_rows.h"

enum {
	HELP_COLUMN = 25, /* where an option's explanation begins */
	LINE_COLUMNS = 112,
};

struct rows {
	struct buffer *out;
	const char *heading; /* of rows without a group */
	bool begun;
};

static void indent(struct buffer *out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		buffer_append_char(out, ' ');
}

/* Breaks the text at its spaces; the cursor stands at `column`. */
static void append_wrapped(struct slice text, size_t column, struct buffer *out)
{
	bool line_has_words = false;

	while (text.length > 0) {
		struct slice word = slice_take_until(&text, ' ');

		if (line_has_words && column + 1 + word.length > LINE_COLUMNS) {
			buffer_append_char(out, '\n');
			indent(out, HELP_COLUMN);
			column = HELP_COLUMN;
		} else if (line_has_words) {
			buffer_append_char(out, ' ');
			column++;
		}
		buffer_append_slice(out, word);
		column += word.length;
		line_has_words = true;
	}
	buffer_append_char(out, '\n');
}

static void append_row(void *context, const struct option_row *row)
{
	struct rows *rows = context;
	struct buffer *out = rows->out;
	size_t start;

	if (row->group != NULL || !rows->begun)
		buffer_append_format(out, "%s%s:\n", rows->begun ? "\n" : "",
		                     row->group != NULL ? row->group : rows->heading);
	rows->begun = true;
	start = out->length;
	buffer_append_format(out, "  %s%s%s%.*s", row->dashes, row->name, row->argument.length > 0 ? " " : "",
	                     SLICE_ARGS(row->argument));
	if (out->length - start + 1 > HELP_COLUMN) { /* no room for a space between */
		buffer_append_char(out, '\n');
		start = out->length;
	}
	indent(out, HELP_COLUMN - (out->length - start));
	append_wrapped(option_row_help(row, out), HELP_COLUMN, out);
}

void help_text_append(const struct command *command, struct buffer *out)
{
	struct rows rows = { .out = out, .heading = command->each_go_flag != NULL ? "Flags" : "Options" };

	buffer_append_format(out, "Usage: %s%s%s%s\n\n", command == &command_health_probe ? "" : "ballast ",
	                     command->name, command->usage[0] != '\0' ? " " : "", command->usage);
	if (command->before != NULL)
		buffer_append_format(out, "%s\n", command->before);
	option_rows_each(command, append_row, &rows);
	if (command->after != NULL)
		buffer_append_format(out, "\n%s", command->after);
	if (command->more != NULL) {
		buffer_append_char(out, '\n');
		command->more(out);
	}
}
