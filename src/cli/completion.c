/*
 * `ballast completion SHELL`: the script for that shell.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/completion_script.h"
#include "cli/options.h"

const char *const COMPLETION_SHELLS[] = { "bash", "zsh", "fish", NULL };

/* In their order. */
static void (*const SCRIPTS[])(struct buffer *out) = {
	completion_script_append_bash,
	completion_script_append_zsh,
	completion_script_append_fish,
};

static int print_script(size_t shell)
{
	struct buffer script;
	struct error err;
	int status = EXIT_OK;

	buffer_init(&script, COMPLETION_SCRIPT_BYTES_MAX);
	SCRIPTS[shell](&script);
	if (buffer_check(&script, "the script", &err)) {
		(void)fwrite(script.data, 1, script.length, stdout);
	} else {
		(void)fprintf(stderr, "ballast completion: %s\n", err.text);
		status = EXIT_FAILED;
	}
	buffer_destroy(&script);
	return status;
}

static int run_completion(int argc, char **argv)
{
	int rest = 0;
	int status = options_read(&command_completion, NULL, argc, argv, &rest);

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest != 1)
		return options_complain(&command_completion, "it takes one SHELL: bash, zsh or fish");
	for (size_t i = 0; COMPLETION_SHELLS[i] != NULL; i++) {
		if (strcmp(COMPLETION_SHELLS[i], argv[1]) == 0)
			return print_script(i);
	}
	return options_complain(&command_completion, "\"%s\" is none of bash, zsh, fish", argv[1]);
}

const struct command command_completion = {
	.name = "completion",
	.summary = "print a script by which a shell completes command lines",
	.usage = "bash|zsh|fish",
	.operand = OPERAND_SHELL,
	.before =
		"Prints a script for the shell, which then completes subcommands, options and their values. For good:\n"
		"\n"
		"  bash   ballast completion bash >/usr/share/bash-completion/completions/ballast\n"
		"  zsh    ballast completion zsh >/usr/share/zsh/site-functions/_ballast\n"
		"  fish   ballast completion fish >/usr/share/fish/vendor_completions.d/ballast.fish\n"
		"\n"
		"For this session:\n"
		"\n"
		"  bash   source <(ballast completion bash)\n"
		"  zsh    source <(ballast completion zsh)      (after compinit)\n"
		"  fish   ballast completion fish | source\n",
	.run = run_completion,
};
