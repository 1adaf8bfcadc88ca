/*
 * `ballast extender`: gathers flags and environment for the extender. Its flags keep the rules of the reference's (spec
 * extender P1, P2), not those of the other subcommands.
 */
#include "extender/extender.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/slice.h"
#include "cli/command.h"
#include "cli/option_rows.h"
#include "cli/options.h"

static int print_wrong(const struct error *err)
{
	(void)fprintf(stderr, "%s\n", err->text);
	extender_flags_print_usage(stderr);
	return EXIT_USAGE;
}

static void each_flag(option_row_callback *callback, void *context)
{
	struct extender_flags flags = extender_flags_default();
	struct go_flag table[EXTENDER_FLAG_COUNT];

	extender_flags_table(&flags, table);
	option_rows_each_go_flag(table, EXTENDER_FLAG_COUNT, callback, context);
}

static int run_extender(int argc, char **argv)
{
	struct extender_flags flags = extender_flags_default();
	int ignored = argc;
	struct error err;

	flags.no_seccomp = NO_SECCOMP_BY_DEFAULT;

	switch (extender_flags_read(&flags, argc, argv, &ignored, &err)) {
	case GO_FLAGS_HELP:
		return options_print_help(&command_extender);
	case GO_FLAGS_VERSION:
		(void)printf("ballast %s\n", BALLAST_VERSION);
		return EXIT_OK;
	case GO_FLAGS_WRONG:
		return print_wrong(&err);
	case GO_FLAGS_READ:
		break;
	}
	if (flags.log_format[0] != '\0' && !slice_equal_text(slice_of(flags.log_format), "json") &&
	    !slice_equal_text(slice_of(flags.log_format), "text")) {
		error_set(&err, ERROR_SYNTAX, "invalid value \"%s\" for flag -log-format: neither json nor text",
		          flags.log_format);
		return print_wrong(&err);
	}

	const struct extender_arguments arguments = {
		.flags = flags,
		.ignored_word = ignored < argc ? argv[ignored] : NULL,
		.node_name = getenv("KUBE_NODE_NAME"),
		.kubeconfig = getenv("KUBECONFIG"),
		.home = getenv("HOME"),
		.kubernetes_host = getenv("KUBERNETES_SERVICE_HOST"),
		.kubernetes_port = getenv("KUBERNETES_SERVICE_PORT"),
		.credentials_dir = getenv("BALLAST_SERVICEACCOUNT_DIR"),
		.log_format =
			extender_log_format(flags.log_format[0] != '\0' ? flags.log_format : getenv("LOG_FORMAT")),
	};

	return extender_run(&arguments);
}

const struct command command_extender = {
	.name = "extender",
	.summary = "place pods on nodes with local disks (csi-baremetal's scheduler extender)",
	.usage = "[FLAG]...",
	.before =
		"Answers kube-scheduler's calls to an extender, and reserves capacity on the nodes' disks through\n"
		"AvailableCapacityReservation objects. Stands in for csi-baremetal's extender: same flags, environment, ports\n"
		"and formats.\n"
		"\n"
		"Flags have one or two dashes, and are given as -flag=value or -flag value, but a bool only as -flag or\n"
		"-flag=value.\n",
	.each_go_flag = each_flag,
	.after =
		"Environment:\n"
		"  KUBE_NODE_NAME         name of the node; required\n"
		"  LOG_FORMAT             text: lines for people; otherwise JSON\n"
		"  KUBECONFIG             kubeconfig files, with ':' between; the current context is used\n"
		"  KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT\n"
		"                         the API server, without a kubeconfig\n"
		"  BALLAST_SERVICEACCOUNT_DIR\n"
		"                         folder with token and ca.crt\n"
		"                         (default: /var/run/secrets/kubernetes.io/serviceaccount)\n"
		"\n"
		"Exit status: 0 after SIGTERM or SIGINT, 1 after a fatal failure, which the last log line names, 2 for a wrong\n"
		"flag.\n",
	.run = run_extender,
};
