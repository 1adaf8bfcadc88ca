/*
 * `ballast extender`: gathers flags and environment for the extender. Its flags keep the rules of the reference's (spec
 * extender P1, P2), not those of the other subcommands.
 */
#include "extender/extender.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/slice.h"
#include "cli/command.h"

static int print_wrong(const struct error *err)
{
	(void)fprintf(stderr, "%s\n", err->text);
	extender_flags_print_usage(stderr);
	return EXIT_USAGE;
}

static int run_extender(int argc, char **argv)
{
	struct extender_flags flags = extender_flags_default();
	int ignored = argc;
	struct error err;

	switch (extender_flags_read(&flags, argc, argv, &ignored, &err)) {
	case GO_FLAGS_HELP:
		(void)fputs(command_extender.help, stdout);
		return EXIT_OK;
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
	.help = "Usage: ballast extender [FLAG]...\n"
		"\n"
		"Answers kube-scheduler's calls to an extender, and reserves capacity on the nodes' disks through\n"
		"AvailableCapacityReservation objects. Stands in for csi-baremetal's extender: same flags, environment, ports\n"
		"and formats.\n"
		"\n"
		"Flags (one or two dashes; -flag=value or -flag value, but a bool only as -flag or -flag=value):\n"
		"  -certFile FILE         TLS certificate (PEM); with a key: HTTPS instead of HTTP\n"
		"  -healthip IP           address of the health port (default: all)\n"
		"  -healthport PORT       health port: /healthz, /readyz (default: 9999)\n"
		"  -inline-volumes        reserve capacity for inline CSI volumes too (older generation)\n"
		"  -isPatchingEnabled     ready only when this node's kube-scheduler was restarted\n"
		"  -kubeconfig FILE       API server and credentials (not supported yet; default: the service account's)\n"
		"  -listen-address IP     address of the extender's port (default: all)\n"
		"  -log-format FORMAT     json or text (default: $LOG_FORMAT, else json)\n"
		"  -loglevel LEVEL        info, debug or trace (default: info)\n"
		"  -metrics-address HOST:PORT\n"
		"                         a port for the metrics page, which the extender's port has anyway (default: none)\n"
		"  -metrics-path PATH     path of the metrics page; empty: none (default: /metrics)\n"
		"  -namespace NAME        own namespace; without effect\n"
		"  -nodeidannotation KEY  annotation with a node's id, with -useexternalannotation\n"
		"  -nodeselector KEY=VALUE\n"
		"                         label of nodes to use, with -usenodeannotation\n"
		"  -normalize-scores      scale scores into 0 to 10\n"
		"  -port PORT             the extender's port: /filter, /prioritize, /bind (default: 8889)\n"
		"  -privateKeyFile FILE   TLS key (PEM)\n"
		"  -provisioner NAME      provisioner of the StorageClasses that are ours\n"
		"  -readiness-file FILE   what -isPatchingEnabled looks at (default: /status/nodes.yaml)\n"
		"  -useexternalannotation take a node's id from the annotation -nodeidannotation\n"
		"  -usenodeannotation     take a node's id from an annotation, not from its UID\n"
		"  -wait-for-reservation DURATION\n"
		"                         how long a filter call waits for the controller's answer to a new reservation, up\n"
		"                         to 4s (default: 0s)\n"
		"  -help                  print this text\n"
		"  -version               print the version\n"
		"\n"
		"Environment:\n"
		"  KUBE_NODE_NAME         name of the node; required\n"
		"  LOG_FORMAT             text: lines for people; otherwise JSON\n"
		"  KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT\n"
		"                         the API server; required\n"
		"  BALLAST_SERVICEACCOUNT_DIR\n"
		"                         folder with token and ca.crt\n"
		"                         (default: /var/run/secrets/kubernetes.io/serviceaccount)\n"
		"\n"
		"Exit status: 0 after SIGTERM or SIGINT, 1 after a fatal failure, which the last log line names, 2 for a wrong\n"
		"flag.\n",
	.run = run_extender,
};
