/*
 * `ballast sandbox`: a whole little cluster on loopback, with the real agent in it.
 */
#include "sandbox/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/options.h"
#include "sandbox/faults.h"
#include "sandbox/pod_workload.h"
#include "sandbox/workload.h"

enum { TABLE_BYTES_MAX = 8192 };

static void tell_where_things_are(const struct sandbox_options *sandbox, const struct sandbox_end *end)
{
	if (end->folder[0] == '\0')
		return;
	if (sandbox->agent_log == NULL)
		(void)fprintf(stderr, "ballast sandbox: the agents' configuration and logs are in %s\n", end->folder);
	else
		(void)fprintf(stderr,
		              "ballast sandbox: the agents' configuration is in %s, their logs are at the end of %s\n",
		              end->folder, sandbox->agent_log);
}

/* A table needs a terminal that can move its cursor. */
static bool can_show_table(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) == 1 && terminal != NULL && terminal[0] != '\0' && strcmp(terminal, "dumb") != 0;
}

static int run_sandbox(int argc, char **argv)
{
	static const char *const REPORTS[] = { "text", "json", NULL };
	static const char *const GENERATIONS[] = { "A", "B", NULL };
	static const char *const FAULTS[] = { "none", "light", "heavy", NULL };
	uint64_t vms = SANDBOX_DEFAULT_VMS, nodes = SANDBOX_DEFAULT_NODES, pods = 0, seed = 1;
	struct option_list outages = { .count = 0 };
	struct sandbox_option_texts texts = { .outages = outages.values };
	struct sandbox_options sandbox = { .vms = 0 };
	int report = SANDBOX_REPORT_TEXT, faults = FAULTS_NONE, generation = 1, rest = 0;
	const struct option options[] = {
		{ .name = "vms", .kind = OPTION_NUMBER, .number = &vms, .low = 0, .high = WORKLOAD_VMS_MAX },
		{ .name = "pods", .kind = OPTION_NUMBER, .number = &pods, .low = 0, .high = PODS_MAX },
		{ .name = "nodes", .kind = OPTION_NUMBER, .number = &nodes, .low = 1, .high = WORKLOAD_NODES_MAX },
		{ .name = "seed", .kind = OPTION_NUMBER, .number = &seed, .low = 0, .high = UINT64_MAX },
		{ .name = "duration", .kind = OPTION_TEXT, .text = &texts.duration },
		{ .name = "speed", .kind = OPTION_TEXT, .text = &texts.speed },
		{ .name = "generation", .kind = OPTION_CHOICE, .choice = &generation, .choices = GENERATIONS },
		{ .name = "plugin-protocol", .kind = OPTION_TEXT, .text = &texts.plugin_protocol },
		{ .name = "metrics-prefix", .kind = OPTION_TEXT, .text = &texts.metrics_prefix },
		{ .name = "outage", .kind = OPTION_LIST, .list = &outages },
		{ .name = "faults", .kind = OPTION_CHOICE, .choice = &faults, .choices = FAULTS },
		{ .name = "wait-for-reservation", .kind = OPTION_TEXT, .text = &texts.wait_for_reservation },
		{ .name = "node-names", .kind = OPTION_FLAG, .flag = &sandbox.node_names },
		{ .name = "events", .kind = OPTION_FLAG, .flag = &sandbox.shows_events },
		{ .name = "grace", .kind = OPTION_TEXT, .text = &texts.grace },
		{ .name = "stop-agent-at", .kind = OPTION_TEXT, .text = &texts.stop_agent_at },
		{ .name = "report", .kind = OPTION_CHOICE, .choice = &report, .choices = REPORTS },
		{ .name = "agent-log", .kind = OPTION_TEXT, .text = &sandbox.agent_log },
	};
	int status = options_read(&command_sandbox, options, sizeof options / sizeof options[0], argc, argv, &rest);
	struct sandbox_end end;
	struct error err;
	bool ran;

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest > 0)
		return options_complain(&command_sandbox, "unexpected argument \"%s\"", argv[1]);
	texts.outage_count = outages.count;
	sandbox.vms = (unsigned)vms;
	sandbox.nodes = (unsigned)nodes;
	sandbox.pods = (unsigned)pods;
	sandbox.faults = (enum fault_level)faults;
	sandbox.seed = seed;
	sandbox.generation.late_2023 = generation == 0;
	sandbox.report = (enum sandbox_report)report;
	sandbox.live = report == SANDBOX_REPORT_TEXT && can_show_table();
	if (!sandbox_options_read(&sandbox, &texts, &err))
		return options_complain(&command_sandbox, "%s", err.text);
	ran = sandbox_run(&sandbox, "/proc/self/exe", &end, &err);
	if (!ran)
		(void)fprintf(stderr, "ballast sandbox: %s\n", err.text);
	tell_where_things_are(&sandbox, &end);
	return ran && end.outcome == SANDBOX_AS_STATED ? EXIT_OK : EXIT_FAILED;
}

static const char WHAT_HAPPENS[] =
	"\n"
	"A run has phases of equal length: as many as fit, each of at least 8 s and 24 s / speed + 2 s (with more\n"
	"than 40 VMs longer, since an agent patches 50 times a second at most). In each, the workload states how\n"
	"many compute units (250m CPU, 1 GiB) a VM must have by its end. VMs by their kind of workload:\n"
	"  ramp         load goes up and down in steps\n"
	"  held         the vm-monitor denies a downscale for a phase, and allows it in the next\n"
	"               (in lines that begin a phase: \"(held)\")\n"
	"  memory       memory fills whatever the VM has, up to a limit; the vm-monitor asks for more\n"
	"  takeover     begins half-scaled, as left by an earlier agent\n"
	"  full-first, full-second\n"
	"               two VMs on node-b, which is too small for what they want together; the last two VMs,\n"
	"               if there are at least 6 VMs and 2 nodes\n"
	"  lfc          the working set of the local file cache decides\n"
	"  bounded      wants more than its bounds annotation allows\n"
	"  spike        load jumps from least to most and back\n"
	"  random       any size, by load or by memory\n"
	"Nodes: node-a has the other VMs and the agent, node-b the full pair and a second agent. node-a also has a\n"
	"VM without the label that enables scaling, and every further node has two VMs and no agent: an agent that\n"
	"touches any of those is a mismatch.\n"
	"\n"
	"Pods have claims of several storage classes, one to three volumes, storage groups, ephemeral volumes, or\n"
	"none. By the names of most, some fit (the workload plants a disk for each) and must be bound, with their\n"
	"volumes on disks of that node as they ask for; others can't fit and must stay pending:\n"
	"  too-large, no-type, no-group      more than any disk has, a type or storage group that no disk has\n"
	"  tight, excess                     as many as there are disks; and those that come when all are taken\n"
	"  reborn                            too large at first; then deleted, and made again with a smaller claim\n"
	"  leftover                          an earlier pod of the name left a reservation for a smaller claim\n"
	"Nothing may be promised twice: no disk set aside for two claims, none filled beyond its size.\n"
	"\n"
	"VMs that an outage concerns are judged again when a phase ends long enough after it (the least length of a\n"
	"phase), so that outages must end that long before the run does.\n"
	"\n"
	"Exit status: 0 if nothing was found that isn't as the workload states it (a run that ended before anything\n"
	"could be judged says so in its report), 1 otherwise or if the sandbox can't run, 2 for bad usage.\n";

static const char GENERATIONS_HELP[] =
	"\n"
	"Generations: with A the agent reads the configuration of late 2023 and does what that asks for, and plugin,\n"
	"vm-monitors and the NeonVM controller are of that time: memory goes up and down slot by slot, there are no\n"
	"revisions, lfc VMs stay at their least size. Which version of the plugin's protocol an agent comes to:\n"
	"  --plugin-protocol   stands for        A        B\n"
	"  v0.19               v0.7 to v0.19     2.0      2.0\n"
	"  v0.21               v0.20 and v0.21   2.0      2.1\n"
	"  v0.22               v0.22             2.0      3.0\n"
	"  v0.25               v0.23 to v0.25    2.0      4.0\n"
	"  v0.27               v0.26 and v0.27   refused  4.0\n"
	"  v0.41               v0.28 to v0.41    refused  5.0\n"
	"  newest              since v0.42       refused  5.0\n"
	"Refused: those plugins want to be told the compute unit, which an agent of generation A learns from them.\n"
	"Without the option the plugin is v0.19 with A, newest with B, and agents speak 2.0 and 5.0 from the start.\n";

/* What a run is like, the generations, and the table of faults. */
static void print_more(void)
{
	struct buffer table;

	(void)fputs(WHAT_HAPPENS, stdout);
	(void)fputs(GENERATIONS_HELP, stdout);
	buffer_init(&table, TABLE_BYTES_MAX);
	faults_print_table(&table);
	(void)printf(
		"\nFaults of --faults, and how often each comes: of a thousand requests, or by itself, on average.\n"
		"  %-19s%11s%11s\n%.*s",
		"", "light", "heavy", SLICE_ARGS(buffer_slice(&table)));
	buffer_destroy(&table);
}

const struct command command_sandbox = {
	.name = "sandbox",
	.summary = "run agent and extender in a simulated cluster on this machine",
	.help = "Usage: ballast sandbox [OPTION]...\n"
		"\n"
		"Starts a small cluster on loopback addresses (a Kubernetes API, the NeonVM controller, a scheduler\n"
		"plugin, and VMs with metrics pages and vm-monitors), runs the real `ballast agent` in it as it would\n"
		"run in a pod, drives a workload, and compares what comes of it with what the workload states. With\n"
		"--pods it also has disks, csi-baremetal's reservation controller and a kube-scheduler, which asks the\n"
		"real `ballast extender`. It needs no root and nothing installed.\n"
		"\n"
		"On a terminal (that can move its cursor: not with TERM=dumb) it shows a table and runs until Ctrl-C;\n"
		"otherwise it prints a line per event on standard error and runs for 60 seconds. The report at the end\n"
		"goes to standard output. Ctrl-C (also SIGTERM, SIGHUP, SIGQUIT) ends a run in good order: agents have\n"
		"their grace period and 5 seconds to end, and 2 when it comes a second time. After Ctrl-Z and a return, VMs are judged\n"
		"again when they had time to settle.\n"
		"\n"
		"Options:\n"
		"  --vms N                VMs to scale, 0 (with --pods only) to 500 (default: 6)\n"
		"  --pods N               pods to place, 0 to 500 (default: 0); see below\n"
		"  --nodes N              nodes, 1 to 26 (default: 3); see below\n"
		"  --seed N               another seed draws other sizes (default: 1)\n"
		"  --duration D           length of the run, \"40s\", \"5m\"; wall time\n"
		"  --speed X              divides the seconds in the agent's configuration, 0.1 to 100 (default: 4);\n"
		"                         they are rounded up to whole seconds, at least 1\n"
		"  --generation A|B       whose cluster it is: that of late 2023 (A) or the newest (default: B); see below\n"
		"  --plugin-protocol RELEASE\n"
		"                         the scheduler plugin's release, whose protocol the agent has to find out: v0.19,\n"
		"                         v0.21, v0.22, v0.25, v0.27, v0.41 or newest; see below\n"
		"  --metrics-prefix P     names of metrics begin with host_ (default) or node_; the latter needs A\n"
		"  --outage PEER@START+LENGTH\n"
		"                         takes a peer of the agent away for a while; may be given several times. PEER is\n"
		"                         plugin (the scheduler plugin), api (the Kubernetes API), extender, receiver (of\n"
		"                         billing and scaling events), or monitor:N (the vm-monitor of the N-th VM, from\n"
		"                         1): --outage monitor:2@10s+10s. The receiver's may last beyond the run\n"
		"  --faults LEVEL         none, light or heavy (default: none): things go wrong at random, see the end. With\n"
		"                         light, everything must come out as stated all the same; heavy may be too much\n"
		"  --wait-for-reservation D\n"
		"                         passed to the extender: a filter call waits so long for the controller's answer,\n"
		"                         at most 4s\n"
		"  --node-names           the scheduler sends the extender names of nodes only (nodeCacheCapable)\n"
		"  --stop-agent-at T      sends SIGTERM to the agents at that time, and ends the run\n"
		"  --grace D              how long agents may take to deliver their events at the end (default: 25s)\n"
		"  --events               shows the events that the receiver gets\n"
		"  --report FORMAT        text or json (default: text)\n"
		"  --agent-log FILE       appends the agents' logs to FILE; otherwise they are kept, beside the agents'\n"
		"                         configuration, only if something went wrong\n"
		"  --help                 print this text\n"
		"  --version              print the version\n",
	.help_more = print_more,
	.run = run_sandbox,
};
