#include "cli/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "cli/help_text.h"

enum { NAME_BYTES_MAX = 64, OPTIONS_MAX = 64 };

/* Edits (insert, drop, change, swap neighbours) that turn a into b. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][NAME_BYTES_MAX + 1];
	size_t a_length = strlen(a), b_length = strlen(b);

	if (a_length > NAME_BYTES_MAX || b_length > NAME_BYTES_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3];
		const size_t *two_above = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);

			best = above[j] + 1 < best ? above[j] + 1 : best;
			best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    two_above[j - 2] + 1 < best)
				best = two_above[j - 2] + 1;
			row[j] = best;
		}
	}
	return rows[a_length % 3][b_length];
}

const char *options_closest(const char *text, const char *const *candidates, size_t count)
{
	size_t least = strlen(text) / 3 + 2; /* farther away, it isn't a slip of the finger */
	const char *closest = NULL;

	for (size_t i = 0; i < count; i++) {
		size_t edits = distance(text, candidates[i]);

		if (edits < least) {
			least = edits;
			closest = candidates[i];
		}
	}
	return closest;
}

int options_complain(const struct command *command, const char *format, ...)
{
	va_list arguments;

	(void)fprintf(stderr, "ballast %s: ", command->name);
	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
	(void)fprintf(stderr, "\nTry `ballast %s --help`.\n", command->name);
	return EXIT_USAGE;
}

int options_print_help(const struct command *command)
{
	struct buffer text;
	struct error err;
	int status = EXIT_OK;

	buffer_init(&text, HELP_TEXT_BYTES_MAX);
	help_text_append(command, &text);
	if (buffer_check(&text, "the help", &err)) {
		(void)fwrite(text.data, 1, text.length, stdout);
	} else {
		(void)fprintf(stderr, "ballast %s: %s\n", command->name, err.text);
		status = EXIT_FAILED;
	}
	buffer_destroy(&text);
	return status;
}

static int unknown_option(const struct command *command, struct slice name)
{
	const char *names[OPTIONS_MAX + 2] = { "help", "version" };
	char text[NAME_BYTES_MAX + 1];
	const char *closest;
	size_t name_count = 2;

	for (size_t i = 0; i < command->option_count && i < OPTIONS_MAX; i++)
		names[name_count++] = command->options[i].name;
	(void)snprintf(text, sizeof text, "%.*s", SLICE_ARGS(name));
	closest = options_closest(text, names, name_count);
	if (closest == NULL)
		return options_complain(command, "unknown option --%s", text);
	return options_complain(command, "unknown option --%s; did you mean --%s?", text, closest);
}

static int set_choice(const struct command *command, const struct option *option, int *choice, const char *value)
{
	char names[256] = "";
	size_t length = 0;

	for (int i = 0; option->place.choices[i] != NULL; i++) {
		int added;

		if (strcmp(option->place.choices[i], value) == 0) {
			*choice = i;
			return OPTIONS_GO_ON;
		}
		added = snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? ", " : "",
		                 option->place.choices[i]);
		if (added > 0 && (size_t)added < sizeof names - length)
			length += (size_t)added;
	}
	return options_complain(command, "--%s: \"%s\" is none of %s", option->name, value, names);
}

static int set_value(const struct command *command, const struct option *option, void *values, const char *value)
{
	const struct option_place *place = &option->place;
	void *member = (char *)values + place->offset;
	struct option_list *list;
	uint64_t number;

	switch (place->kind) {
	case OPTION_FLAG:
		*(bool *)member = true;
		break;
	case OPTION_TEXT:
		*(const char **)member = value;
		break;
	case OPTION_NUMBER:
		if (!slice_to_u64(slice_of(value), &number) || number < place->low || number > place->high)
			return options_complain(command, "--%s: \"%s\" is not a number from %llu to %llu", option->name,
			                        value, (unsigned long long)place->low, (unsigned long long)place->high);
		*(uint64_t *)member = number;
		break;
	case OPTION_CHOICE:
		return set_choice(command, option, member, value);
	case OPTION_LIST:
		list = member;
		if (list->count >= OPTION_LIST_MAX)
			return options_complain(command, "--%s: given more than %d times", option->name,
			                        OPTION_LIST_MAX);
		list->values[list->count++] = value;
		break;
	}
	return OPTIONS_GO_ON;
}

/* Reads the option at argv[*position], and its value, which may be the next argument. */
static int read_option(const struct command *command, void *values, int argc, char **argv, int *position)
{
	struct slice rest = slice_of(argv[*position] + 2);
	const char *equals = strchr(argv[*position], '=');
	struct slice name = slice_take_until(&rest, '=');

	if (slice_equal_text(name, "help"))
		return options_print_help(command);
	if (slice_equal_text(name, "version")) {
		(void)printf("ballast %s\n", BALLAST_VERSION);
		return EXIT_OK;
	}
	for (size_t i = 0; i < command->option_count; i++) {
		const struct option *option = &command->options[i];

		if (!slice_equal_text(name, option->name))
			continue;
		if (option->place.kind == OPTION_FLAG)
			return equals != NULL ? options_complain(command, "--%s takes no value", option->name)
			                      : set_value(command, option, values, NULL);
		if (equals != NULL)
			return set_value(command, option, values, equals + 1);
		if (*position + 1 >= argc)
			return options_complain(command, "--%s needs a value", option->name);
		++*position;
		return set_value(command, option, values, argv[*position]);
	}
	return unknown_option(command, name);
}

int options_read(const struct command *command, void *values, int argc, char **argv, int *ret_rest)
{
	int rest = 0;
	bool ended = false;

	for (int i = 1; i < argc; i++) {
		int status;

		if (ended || argv[i][0] != '-' || argv[i][1] == '\0') {
			argv[1 + rest++] = argv[i];
			continue;
		}
		if (strcmp(argv[i], "--") == 0) {
			ended = true;
			continue;
		}
		if (strcmp(argv[i], "-h") == 0)
			return options_print_help(command);
		if (argv[i][1] != '-')
			return options_complain(command, "unknown option %s", argv[i]);
		status = read_option(command, values, argc, argv, &i);
		if (status != OPTIONS_GO_ON)
			return status;
	}
	*ret_rest = rest;
	return OPTIONS_GO_ON;
}
