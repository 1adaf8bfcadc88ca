#include "cli/option_rows.h"

#include <string.h>

#include "cli/options.h"

enum { GO_HELP_BYTES_MAX = 4096 };

bool option_row_takes_file(const struct option_row *row)
{
	return slice_equal_fold(row->argument, SLICE("FILE"));
}

struct slice option_row_help(const struct option_row *row, struct buffer *out)
{
	if (row->help_is_cut)
		out->failed = out->no_memory = true;
	return row->help;
}

static void each_option(const struct command *command, option_row_callback *callback, void *context)
{
	for (size_t i = 0; i < command->option_count; i++) {
		const struct option *option = &command->options[i];
		const struct option_row row = {
			.dashes = "--",
			.name = option->name,
			.argument = slice_of(option->argument),
			.help = slice_of(option->help),
			.group = option->group,
			.choices = option->place.choices,
		};

		callback(context, &row);
	}
}

/* The word in back quotes, or what the kind says, as Go's usage has it. */
static struct slice argument_of(const struct go_flag *flag)
{
	static const char *const KINDS[] = {
		[GO_FLAG_TEXT] = "string",
		[GO_FLAG_BOOL] = "",
		[GO_FLAG_NUMBER] = "int",
		[GO_FLAG_DURATION] = "duration",
	};
	struct slice rest = slice_of(flag->help);

	if (strchr(flag->help, '`') == NULL)
		return slice_of(KINDS[flag->kind]);
	(void)slice_take_until(&rest, '`');
	return slice_take_until(&rest, '`');
}

void option_rows_each_go_flag(const struct go_flag *flags, size_t count, option_row_callback *callback, void *context)
{
	struct buffer help;

	buffer_init(&help, GO_HELP_BYTES_MAX);
	for (size_t i = 0; i < count; i++) {
		buffer_clear(&help);
		for (const char *at = flags[i].help; *at != '\0'; at++) {
			if (*at != '`')
				buffer_append_char(&help, *at);
		}
		go_flags_append_default(&flags[i], &help);

		const struct option_row row = {
			.dashes = "-",
			.name = flags[i].name,
			.argument = argument_of(&flags[i]),
			.help = buffer_slice(&help),
			.help_is_cut = help.failed,
			.choices = flags[i].choices,
		};

		callback(context, &row);
	}
	buffer_destroy(&help);
}

void option_rows_each(const struct command *command, option_row_callback *callback, void *context)
{
	struct option_row help = { .dashes = "--", .name = "help", .help = SLICE("print this text") };
	struct option_row version = { .dashes = "--", .name = "version", .help = SLICE("print the version") };

	if (command->each_go_flag != NULL) {
		command->each_go_flag(callback, context);
		help.dashes = version.dashes = "-";
	} else {
		each_option(command, callback, context);
		if (command->option_count > 0 && command->options[0].group != NULL)
			help.group = "Help";
	}
	callback(context, &help);
	callback(context, &version);
}
