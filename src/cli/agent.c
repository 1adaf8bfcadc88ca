/*
 * `ballast agent`: gathers flags and environment for the agent. A flag beats its environment variable.
 */
#include "agent/agent.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/options.h"
#include "codec/duration_text.h"
#include "net/address.h"

/* Sanitizers trace the process when it ends and call what the product never does. */
#ifdef __SANITIZE_ADDRESS__
static const bool NO_SECCOMP = true;
#else
static const bool NO_SECCOMP = false;
#endif

static int run_agent(int argc, char **argv)
{
	static const char *const LEVELS[] = { "debug", "info", "warn", "error", "panic", NULL };
	static const char *const FORMATS[] = { "json", "text", NULL };
	const char *config = getenv("CONFIG_PATH");
	const char *kubeconfig = getenv("KUBECONFIG");
	const char *listen_address = "0.0.0.0";
	const char *admin_token_file = NULL;
	bool no_seccomp = NO_SECCOMP;
	const char *grace = NULL;
	uint64_t qps = AGENT_API_QPS, burst = AGENT_API_BURST;
	int64_t grace_ns = (int64_t)AGENT_GRACE_S * NS_PER_S;
	int level = LOG_INFO, format = LOG_FORMAT_JSON, rest = 0;
	const struct option options[] = {
		{ .name = "config", .kind = OPTION_TEXT, .text = &config },
		{ .name = "kubeconfig", .kind = OPTION_TEXT, .text = &kubeconfig },
		{ .name = "listen-address", .kind = OPTION_TEXT, .text = &listen_address },
		{ .name = "admin-token-file", .kind = OPTION_TEXT, .text = &admin_token_file },
		{ .name = "no-seccomp", .kind = OPTION_FLAG, .flag = &no_seccomp },
		{ .name = "api-qps", .kind = OPTION_NUMBER, .number = &qps, .low = 1, .high = AGENT_API_RATE_MAX },
		{ .name = "api-burst", .kind = OPTION_NUMBER, .number = &burst, .low = 1, .high = AGENT_API_RATE_MAX },
		{ .name = "grace", .kind = OPTION_TEXT, .text = &grace },
		{ .name = "log-level", .kind = OPTION_CHOICE, .choice = &level, .choices = LEVELS },
		{ .name = "log-format", .kind = OPTION_CHOICE, .choice = &format, .choices = FORMATS },
	};
	int status = options_read(&command_agent, options, sizeof options / sizeof options[0], argc, argv, &rest);
	struct address address;
	struct error err;

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest > 0)
		return options_complain(&command_agent, "unexpected argument \"%s\"", argv[1]);
	if (!address_parse(slice_of(listen_address), 0, &address))
		return options_complain(&command_agent, "--listen-address: \"%s\" is no IP address", listen_address);
	if (grace != NULL && !duration_parse(slice_of(grace), &grace_ns, &err))
		return options_complain(&command_agent, "--grace: %s", err.text);
	if (grace_ns < 0 || grace_ns > (int64_t)AGENT_GRACE_MAX_S * NS_PER_S)
		return options_complain(&command_agent, "--grace: \"%s\" is not within 0 and 24h", grace);

	const struct agent_arguments arguments = {
		.config_path = config,
		.node_name = getenv("K8S_NODE_NAME"),
		.pod_ip = getenv("K8S_POD_IP"),
		.kubernetes_host = getenv("KUBERNETES_SERVICE_HOST"),
		.kubernetes_port = getenv("KUBERNETES_SERVICE_PORT"),
		.credentials_dir = getenv("BALLAST_SERVICEACCOUNT_DIR"),
		.kubeconfig = kubeconfig,
		.listen_address = listen_address,
		.admin_token_file = admin_token_file,
		.no_syscall_filter = no_seccomp,
		.api_qps = (uint32_t)qps,
		.api_burst = (uint32_t)burst,
		.grace_ns = (uint64_t)grace_ns,
		.log_level = (enum log_level)level,
		.log_format = (enum log_format)format,
	};

	return agent_run(&arguments);
}

const struct command command_agent = {
	.name = "agent",
	.summary = "scale this node's virtual machines (Neon's autoscaler-agent)",
	.help = "Usage: ballast agent [OPTION]...\n"
		"\n"
		"Watches the VirtualMachine objects of the node, scrapes each VM, and makes it grow and shrink with its\n"
		"load, in agreement with the scheduler plugin and the vm-monitor inside the VM. Stands in for Neon's\n"
		"autoscaler-agent: same environment, configuration file, ports and formats.\n"
		"\n"
		"Options:\n"
		"  --config PATH          configuration file (default: $CONFIG_PATH)\n"
		"  --kubeconfig PATH      how to reach Kubernetes from outside a pod (default: $KUBECONFIG, else the\n"
		"                         pod's service account)\n"
		"  --listen-address IP    address of the metrics and dump servers (default: 0.0.0.0)\n"
		"  --admin-token-file PATH\n"
		"                         answer on these servers only to requests with `Authorization: Bearer TOKEN`, the\n"
		"                         content of this file, which is read each time; probes stay open (default: all are)\n"
		"  --no-seccomp           don't leave the process only the system calls it needs\n"
		"  --api-qps N            requests to Kubernetes per second, 1 to 1000000 (default: 50)\n"
		"  --api-burst N          requests to Kubernetes at once, 1 to 1000000 (default: 100)\n"
		"  --grace D              how long billing and scaling events may take to be delivered after SIGTERM\n"
		"                         (default: 25s)\n"
		"  --log-level LEVEL      debug, info, warn, error or panic (default: info)\n"
		"  --log-format FORMAT    json or text (default: json)\n"
		"  --help                 print this text\n"
		"  --version              print the version\n"
		"\n"
		"Environment:\n"
		"  CONFIG_PATH            configuration file\n"
		"  K8S_NODE_NAME          name of the node; required\n"
		"  K8S_POD_IP             address of the pod; required\n"
		"  KUBECONFIG             kubeconfig files, with ':' between; the current context is used\n"
		"  KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT\n"
		"                         the API server; required\n"
		"  BALLAST_SERVICEACCOUNT_DIR\n"
		"                         folder with token and ca.crt\n"
		"                         (default: /var/run/secrets/kubernetes.io/serviceaccount)\n"
		"\n"
		"Exit status: 0 after SIGTERM or SIGINT, 2 after a fatal failure, which the last log line names.\n",
	.run = run_agent,
};
