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
#include "report/limits.h"

static const char *const LEVELS[] = { "debug", "info", "warn", "error", "panic", NULL };
static const char *const FORMATS[] = { "json", "text", NULL };

struct agent_values {
	const char *config, *kubeconfig, *listen_address, *admin_token_file, *grace;
	bool no_seccomp, kube_events;
	uint64_t qps, burst, queue_events, queue_bytes;
	int level, format;
};

static const struct option OPTIONS[] = {
	{ .name = "config",
	  .place = TEXT_OPTION(struct agent_values, config),
	  .argument = "FILE",
	  .help = "configuration file (default: $CONFIG_PATH)" },
	{ .name = "kubeconfig",
	  .place = TEXT_OPTION(struct agent_values, kubeconfig),
	  .argument = "FILE",
	  .help = "how to reach Kubernetes from outside a pod (default: $KUBECONFIG, else the pod's service account)" },
	{ .name = "listen-address",
	  .place = TEXT_OPTION(struct agent_values, listen_address),
	  .argument = "IP",
	  .help = "address of the metrics and dump servers (default: 0.0.0.0)" },
	{ .name = "admin-token-file",
	  .place = TEXT_OPTION(struct agent_values, admin_token_file),
	  .argument = "FILE",
	  .help = "answer on these servers only to requests with `Authorization: Bearer TOKEN`, the content of this file, "
	          "which is read each time; probes stay open (default: all are)" },
	{ .name = "no-seccomp",
	  .place = FLAG_OPTION(struct agent_values, no_seccomp),
	  .help = "don't leave the process only the system calls it needs" },
	{ .name = "api-qps",
	  .place = NUMBER_OPTION(struct agent_values, qps, 1, AGENT_API_RATE_MAX),
	  .argument = "N",
	  .help = "requests to Kubernetes per second, 1 to 1000000 (default: 50)" },
	{ .name = "api-burst",
	  .place = NUMBER_OPTION(struct agent_values, burst, 1, AGENT_API_RATE_MAX),
	  .argument = "N",
	  .help = "requests to Kubernetes at once, 1 to 1000000 (default: 100)" },
	{ .name = "grace",
	  .place = TEXT_OPTION(struct agent_values, grace),
	  .argument = "D",
	  .help = "how long billing and scaling events may take to be delivered after SIGTERM (default: 25s)" },
	{ .name = "event-queue-events",
	  .place = NUMBER_OPTION(struct agent_values, queue_events, 1, AGENT_EVENT_QUEUE_EVENTS_MAX),
	  .argument = "N",
	  .help = "how many billing or scaling events may wait for one receiver; what comes beyond is dropped, counted and "
	          "logged (default: 100000)" },
	{ .name = "event-queue-bytes",
	  .place = NUMBER_OPTION(struct agent_values, queue_bytes, AGENT_EVENT_QUEUE_BYTES_MIN,
	                         AGENT_EVENT_QUEUE_BYTES_MAX),
	  .argument = "N",
	  .help = "the memory they may take (default: 67108864)" },
	{ .name = "kube-events",
	  .place = FLAG_OPTION(struct agent_values, kube_events),
	  .help = "write Kubernetes Events on VirtualMachines: scaled, refused, stuck, and so on; needs the right to "
	          "create events" },
	{ .name = "log-level",
	  .place = CHOICE_OPTION(struct agent_values, level, LEVELS),
	  .argument = "LEVEL",
	  .help = "debug, info, warn, error or panic (default: info)" },
	{ .name = "log-format",
	  .place = CHOICE_OPTION(struct agent_values, format, FORMATS),
	  .argument = "FORMAT",
	  .help = "json or text (default: json)" },
};

static int run_agent(int argc, char **argv)
{
	struct agent_values values = {
		.config = getenv("CONFIG_PATH"),
		.kubeconfig = getenv("KUBECONFIG"),
		.listen_address = "0.0.0.0",
		.no_seccomp = NO_SECCOMP_BY_DEFAULT,
		.qps = AGENT_API_QPS,
		.burst = AGENT_API_BURST,
		.queue_events = REPORT_QUEUE_EVENTS,
		.queue_bytes = REPORT_QUEUE_BYTES,
		.level = LOG_INFO,
		.format = LOG_FORMAT_JSON,
	};
	int64_t grace_ns = (int64_t)AGENT_GRACE_S * NS_PER_S;
	int rest = 0;
	int status = options_read(&command_agent, &values, argc, argv, &rest);
	struct address address;
	struct error err;

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest > 0)
		return options_complain(&command_agent, "unexpected argument \"%s\"", argv[1]);
	if (!address_parse(slice_of(values.listen_address), 0, &address))
		return options_complain(&command_agent, "--listen-address: \"%s\" is no IP address",
		                        values.listen_address);
	if (values.grace != NULL && !duration_parse(slice_of(values.grace), &grace_ns, &err))
		return options_complain(&command_agent, "--grace: %s", err.text);
	if (grace_ns < 0 || grace_ns > (int64_t)AGENT_GRACE_MAX_S * NS_PER_S)
		return options_complain(&command_agent, "--grace: \"%s\" is not within 0 and 24h", values.grace);

	const struct agent_arguments arguments = {
		.config_path = values.config,
		.node_name = getenv("K8S_NODE_NAME"),
		.pod_ip = getenv("K8S_POD_IP"),
		.kubernetes_host = getenv("KUBERNETES_SERVICE_HOST"),
		.kubernetes_port = getenv("KUBERNETES_SERVICE_PORT"),
		.credentials_dir = getenv("BALLAST_SERVICEACCOUNT_DIR"),
		.kubeconfig = values.kubeconfig,
		.listen_address = values.listen_address,
		.admin_token_file = values.admin_token_file,
		.no_syscall_filter = values.no_seccomp,
		.api_qps = (uint32_t)values.qps,
		.api_burst = (uint32_t)values.burst,
		.grace_ns = (uint64_t)grace_ns,
		.event_queue_events = values.queue_events,
		.event_queue_bytes = values.queue_bytes,
		.kube_events = values.kube_events,
		.log_level = (enum log_level)values.level,
		.log_format = (enum log_format)values.format,
	};

	return agent_run(&arguments);
}

const struct command command_agent = {
	.name = "agent",
	.summary = "scale this node's virtual machines (Neon's autoscaler-agent)",
	.usage = "[OPTION]...",
	.options = OPTIONS,
	.option_count = sizeof OPTIONS / sizeof OPTIONS[0],
	.before =
		"Watches the VirtualMachine objects of the node, scrapes each VM, and makes it grow and shrink with its\n"
		"load, in agreement with the scheduler plugin and the vm-monitor inside the VM. Stands in for Neon's\n"
		"autoscaler-agent: same environment, configuration file, ports and formats.\n",
	.after = "Environment:\n"
		 "  CONFIG_PATH            configuration file\n"
		 "  K8S_NODE_NAME          name of the node; required\n"
		 "  K8S_POD_IP             address of the pod; required\n"
		 "  KUBECONFIG             kubeconfig files, with ':' between; the current context is used\n"
		 "  KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT\n"
		 "                         the API server, without a kubeconfig\n"
		 "  BALLAST_SERVICEACCOUNT_DIR\n"
		 "                         folder with token and ca.crt\n"
		 "                         (default: /var/run/secrets/kubernetes.io/serviceaccount)\n"
		 "\n"
		 "Exit status: 0 after SIGTERM or SIGINT, 2 after a fatal failure, which the last log line names.\n",
	.run = run_agent,
};
