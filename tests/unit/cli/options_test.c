#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options.h"

static const char *const COLOURS[] = { "red", "green", NULL };

struct values {
	bool verbose;
	const char *name;
	uint64_t count;
	int colour;
	struct option_list list;
	int rest;
	char *arguments[8];
	char output[2048]; /* what was said on stdout and stderr */
};

static const struct option OPTIONS[] = {
	{ .name = "verbose", .place = FLAG_OPTION(struct values, verbose), .help = "say more" },
	{ .name = "name", .place = TEXT_OPTION(struct values, name), .argument = "NAME", .help = "whose" },
	{ .name = "count", .place = NUMBER_OPTION(struct values, count, 1, 9), .argument = "N", .help = "how many" },
	{ .name = "colour",
	  .place = CHOICE_OPTION(struct values, colour, COLOURS),
	  .argument = "COLOUR",
	  .help = "which",
	  .group = "Looks" },
	{ .name = "a-name-that-has-no-room-in-its-line",
	  .place = LIST_OPTION(struct values, list),
	  .argument = "THING",
	  .help = "one word after another, so that not all of them find room in a single line and some go to the next, in "
	          "the column of the others" },
};

static const struct command COMMAND = {
	.name = "example",
	.summary = "an example",
	.usage = "[OPTION]...",
	.before = "Does things.\n",
	.after = "Exit status: 0.\n",
	.options = OPTIONS,
	.option_count = sizeof OPTIONS / sizeof OPTIONS[0],
};

static const char HELP[] =
	"Usage: ballast example [OPTION]...\n"
	"\n"
	"Does things.\n"
	"\n"
	"Options:\n"
	"  --verbose              say more\n"
	"  --name NAME            whose\n"
	"  --count N              how many\n"
	"\n"
	"Looks:\n"
	"  --colour COLOUR        which\n"
	"  --a-name-that-has-no-room-in-its-line THING\n"
	"                         one word after another, so that not all of them find room in a single line and some go\n"
	"                         to the next, in the column of the others\n"
	"  --help                 print this text\n"
	"  --version              print the version\n"
	"\n"
	"Exit status: 0.\n";

/* Runs the reader on arguments that end in NULL, and catches what it says. */
static int run(struct values *values, ...)
{
	FILE *file = tmpfile();
	int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
	int argc = 1, status;
	size_t length;
	va_list arguments;
	char *argument;

	memset(values, 0, sizeof *values);
	values->colour = -1;
	values->arguments[0] = strdup("example");
	va_start(arguments, values);
	while ((argument = va_arg(arguments, char *)) != NULL)
		values->arguments[argc++] = argument;
	va_end(arguments);
	(void)fflush(stdout);
	assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
	status = options_read(&COMMAND, values, argc, values->arguments, &values->rest);
	(void)fflush(stdout);
	(void)fflush(stderr);
	assert_true(dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0);
	(void)close(out);
	(void)close(err);
	rewind(file);
	length = fread(values->output, 1, sizeof values->output - 1, file);
	values->output[length] = '\0';
	(void)fclose(file);
	free(values->arguments[0]);
	return status;
}

static void values_follow_their_option_or_an_equals_sign(void **state)
{
	(void)state;
	struct values values;

	assert_int_equal(run(&values, "--name", "a", "--count=3", "--verbose", "--colour", "green", NULL),
	                 OPTIONS_GO_ON);
	assert_string_equal(values.name, "a");
	assert_int_equal(values.count, 3);
	assert_true(values.verbose);
	assert_int_equal(values.colour, 1);
	assert_int_equal(values.rest, 0);
	assert_string_equal(values.output, "");
}

static void the_last_of_several_counts(void **state)
{
	(void)state;
	struct values values;

	assert_int_equal(run(&values, "--name=a", "--name=", NULL), OPTIONS_GO_ON);
	assert_string_equal(values.name, "");
}

static void a_list_keeps_all_its_values(void **state)
{
	(void)state;
	struct values values;

	assert_int_equal(run(&values, "--a-name-that-has-no-room-in-its-line=x",
	                     "--a-name-that-has-no-room-in-its-line", "y", NULL),
	                 OPTIONS_GO_ON);
	assert_int_equal(values.list.count, 2);
	assert_string_equal(values.list.values[0], "x");
	assert_string_equal(values.list.values[1], "y");
}

static void other_arguments_are_left_in_order(void **state)
{
	(void)state;
	struct values values;

	assert_int_equal(run(&values, "x", "--verbose", "-", "--", "--name", NULL), OPTIONS_GO_ON);
	assert_int_equal(values.rest, 3);
	assert_string_equal(values.arguments[1], "x");
	assert_string_equal(values.arguments[2], "-");
	assert_string_equal(values.arguments[3], "--name");
	assert_null(values.name);
}

static void help_and_version_go_to_standard_output(void **state)
{
	(void)state;
	struct values values;

	assert_int_equal(run(&values, "--help", "--nonsense", NULL), EXIT_OK);
	assert_string_equal(values.output, HELP);
	assert_int_equal(run(&values, "-h", NULL), EXIT_OK);
	assert_string_equal(values.output, HELP);
	assert_int_equal(run(&values, "--version", NULL), EXIT_OK);
	assert_string_equal(values.output, "ballast " BALLAST_VERSION "\n");
}

static void check_complaint(const char *argument, const char *next, const char *complaint)
{
	struct values values;
	char expected[512];

	(void)snprintf(expected, sizeof expected, "ballast example: %s\nTry `ballast example --help`.\n", complaint);
	assert_int_equal(run(&values, argument, next, NULL), EXIT_USAGE);
	assert_string_equal(values.output, expected);
}

static void a_mistyped_option_names_the_closest(void **state)
{
	(void)state;
	check_complaint("--verbsoe", NULL, "unknown option --verbsoe; did you mean --verbose?");
	check_complaint("--nmae=x", NULL, "unknown option --nmae; did you mean --name?");
	check_complaint("--hlep", NULL, "unknown option --hlep; did you mean --help?");
	check_complaint("--zzzzzzzz", NULL, "unknown option --zzzzzzzz");
	check_complaint("-v", NULL, "unknown option -v");
}

static void values_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	check_complaint("--count", "0", "--count: \"0\" is not a number from 1 to 9");
	check_complaint("--count=10", NULL, "--count: \"10\" is not a number from 1 to 9");
	check_complaint("--count=-1", NULL, "--count: \"-1\" is not a number from 1 to 9");
	check_complaint("--count=", NULL, "--count: \"\" is not a number from 1 to 9");
	check_complaint("--colour=blue", NULL, "--colour: \"blue\" is none of red, green");
	check_complaint("--name", NULL, "--name needs a value");
	check_complaint("--verbose=yes", NULL, "--verbose takes no value");
}

static void the_closest_is_at_most_a_slip_away(void **state)
{
	(void)state;
	static const char *const NAMES[] = { "agent", "sandbox", "replay", "check-config" };

	assert_string_equal(options_closest("agnet", NAMES, 4), "agent");
	assert_string_equal(options_closest("sandbx", NAMES, 4), "sandbox");
	assert_string_equal(options_closest("check_config", NAMES, 4), "check-config");
	assert_null(options_closest("extender", NAMES, 4));
	assert_null(options_closest("", NAMES, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_follow_their_option_or_an_equals_sign),
		cmocka_unit_test(the_last_of_several_counts),
		cmocka_unit_test(a_list_keeps_all_its_values),
		cmocka_unit_test(other_arguments_are_left_in_order),
		cmocka_unit_test(help_and_version_go_to_standard_output),
		cmocka_unit_test(a_mistyped_option_names_the_closest),
		cmocka_unit_test(values_that_do_not_fit_are_refused),
		cmocka_unit_test(the_closest_is_at_most_a_slip_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
