/*
 * `ballast check-config FILE`: what is wrong with an agent's configuration, line by line.
 */
#include <stdio.h>

#include "agent/config.h"
#include "base/arena.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"

static void print_findings(const char *path, const struct agent_config_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct agent_config_finding *finding = &report->findings[i];

		(void)fprintf(stderr, "%s:%u: ", path, finding->line);
		if (finding->path.length > 0)
			(void)fprintf(stderr, "field \"%.*s\": ", SLICE_ARGS(finding->path));
		(void)fprintf(stderr, "%.*s\n", SLICE_ARGS(finding->text));
	}
	if (report->left_out > 0)
		(void)fprintf(stderr, "%s: and %zu more\n", path, report->left_out);
	(void)fprintf(stderr, "%s: not valid as a configuration of generation %s: %zu problem%s\n", path,
	              report->generation, report->count + report->left_out,
	              report->count + report->left_out == 1 ? "" : "s");
}

static int check_file(const char *path)
{
	struct arena arena;
	struct agent_config_report report;
	struct error err;
	int status = EXIT_FAILED;

	arena_init(&arena, AGENT_CONFIG_ARENA_BYTES);
	if (!agent_config_check(path, &arena, &report, &err)) {
		(void)fprintf(stderr, "ballast check-config: %s\n", err.text);
	} else if (report.count > 0) {
		print_findings(path, &report);
	} else {
		(void)printf("%s: ok, a configuration of generation %s\n", path, report.generation);
		status = EXIT_OK;
	}
	arena_destroy(&arena);
	return status;
}

static int run(int argc, char **argv)
{
	int rest;
	int status = options_read(&command_check_config, NULL, 0, argc, argv, &rest);

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest != 1)
		return options_complain(&command_check_config, "it takes one FILE");
	return check_file(argv[1]);
}

const struct command command_check_config = {
	.name = "check-config",
	.summary = "tell what is wrong with an agent's configuration file",
	.help = "Usage: ballast check-config FILE\n"
		"\n"
		"Reads an agent's configuration file as `ballast agent` would, and prints all that is\n"
		"wrong with it, each with its line and field:\n"
		"\n"
		"  FILE:LINE: field \"monitor.serverPort\": is missing\n"
		"\n"
		"A missing key is reported at the line of the object it is missing from. The exit\n"
		"status is 0 if the file is valid, 1 if it isn't or can't be read, 2 for bad usage.\n"
		"\n"
		"Options:\n"
		"      --help       show this text\n"
		"      --version    show the version\n",
	.run = run,
};
