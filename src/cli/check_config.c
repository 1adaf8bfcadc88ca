/*
 * `ballast check-config FILE`: what is wrong with an agent's configuration, line by line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/config.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/terminal.h"

static const char STANDARD_INPUT[] = "standard input"; /* its name in messages */

static void print_findings(const char *path, const struct agent_config_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct agent_config_finding *finding = &report->findings[i];

		(void)fprintf(stderr, "%s:%u: ", path, finding->line);
		if (finding->path.length > 0) {
			(void)fputs("field \"", stderr);
			terminal_print_clean(stderr, finding->path);
			(void)fputs("\": ", stderr);
		}
		terminal_print_clean(stderr, finding->text);
		(void)fputc('\n', stderr);
	}
	if (report->left_out > 0)
		(void)fprintf(stderr, "%s: and %zu more\n", path, report->left_out);
	if (report->key_of_a != NULL)
		(void)fprintf(stderr, "%s: a mixture: \"%s\" belongs to generation A, \"%s\" to generation B\n", path,
		              report->key_of_a, report->key_of_b);
	(void)fprintf(stderr, "%s: not valid as a configuration of generation %s: %zu problem%s\n", path,
	              report->generation, report->count + report->left_out,
	              report->count + report->left_out == 1 ? "" : "s");
}

static bool read_standard_input(struct buffer *text, struct error *err)
{
	int copy = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (copy < 0)
		return error_set_errno(err, errno, STANDARD_INPUT);
	return file_read_and_close(copy, STANDARD_INPUT, text, err);
}

static int check_file(const char *path)
{
	struct arena arena;
	struct buffer text; /* of standard input */
	struct agent_config_report report;
	struct error err;
	bool from_input = strcmp(path, "-") == 0;
	int status = EXIT_FAILED;

	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	buffer_init(&text, AGENT_CONFIG_FILE_BYTES);
	if (from_input)
		path = STANDARD_INPUT;
	if (from_input ? !read_standard_input(&text, &err) ||
	                         !agent_config_check_text(buffer_slice(&text), &arena, &report, &err)
	               : !agent_config_check(path, &arena, &report, &err)) {
		(void)fputs("ballast check-config: ", stderr);
		terminal_print_clean(stderr, slice_of(err.text));
		(void)fputc('\n', stderr);
	} else if (report.count > 0) {
		print_findings(path, &report);
	} else {
		(void)printf("%s: ok, a configuration of generation %s\n", path, report.generation);
		status = EXIT_OK;
	}
	buffer_destroy(&text);
	arena_destroy(&arena);
	return status;
}

static int run(int argc, char **argv)
{
	int rest;
	int status = options_read(&command_check_config, NULL, argc, argv, &rest);

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest != 1)
		return options_complain(&command_check_config, "it takes one FILE");
	return check_file(argv[1]);
}

const struct command command_check_config = {
	.name = "check-config",
	.summary = "tell what is wrong with an agent's configuration file",
	.usage = "FILE",
	.operand = OPERAND_FILE,
	.before =
		"Reads an agent's configuration file (\"-\": standard input) as `ballast agent` would, and prints all that is\n"
		"wrong with it, each with its line and field:\n"
		"\n"
		"  config.json:32: field \"monitor.serverPort\": expected uint16, found string\n"
		"\n"
		"A missing key is reported at the line of the object it is missing from.\n"
		"\n"
		"Generation B is the newest schema of the file, generation A that of late 2023. Which one a file follows is\n"
		"told by the keys that only one of them has; a file that has keys of both isn't valid.\n",
	.after = "Exit status: 0 if the file is valid, 1 if it isn't or can't be read, 2 for bad usage.\n",
	.run = run,
};
