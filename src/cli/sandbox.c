/*
 * `ballast sandbox`: a whole little cluster on loopback, with the real agent in it.
 */
#include "sandbox/sandbox.h"

#include <stdio.h>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/terminal.h"
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

static const char *const REPORTS[] = { "text", "json", NULL };
static const char *const GENERATIONS[] = { "A", "B", NULL };
static const char *const FAULTS[] = { "none", "light", "heavy", NULL };

struct sandbox_values {
	uint64_t vms, nodes, pods, seed;
	int report, faults, generation;
	struct option_list outages;
	struct sandbox_option_texts texts;
	struct sandbox_options sandbox;
};

static const struct option OPTIONS[] = {
	{ .name = "vms",
	  .place = NUMBER_OPTION(struct sandbox_values, vms, 0, WORKLOAD_VMS_MAX),
	  .argument = "N",
	  .help = "VMs to scale, 0 (with --pods only) to 500 (default: 6)",
	  .group = "The cluster" },
	{ .name = "pods",
	  .place = NUMBER_OPTION(struct sandbox_values, pods, 0, PODS_MAX),
	  .argument = "N",
	  .help = "pods to place, 0 to 500 (default: 0); see below" },
	{ .name = "nodes",
	  .place = NUMBER_OPTION(struct sandbox_values, nodes, 1, WORKLOAD_NODES_MAX),
	  .argument = "N",
	  .help = "nodes, 1 to 26 (default: 3); see below" },
	{ .name = "seed",
	  .place = NUMBER_OPTION(struct sandbox_values, seed, 0, UINT64_MAX),
	  .argument = "N",
	  .help = "another seed draws other sizes (default: 1)" },
	{ .name = "generation",
	  .place = CHOICE_OPTION(struct sandbox_values, generation, GENERATIONS),
	  .argument = "A|B",
	  .help = "whose cluster it is: that of late 2023 (A) or the newest (default: B); see below" },
	{ .name = "plugin-protocol",
	  .place = TEXT_OPTION(struct sandbox_values, texts.plugin_protocol),
	  .argument = "RELEASE",
	  .help = "the scheduler plugin's release, whose protocol the agent has to find out: v0.19, v0.21, v0.22, v0.25, v0.27, v0.41 or newest; see below" },
	{ .name = "metrics-prefix",
	  .place = TEXT_OPTION(struct sandbox_values, texts.metrics_prefix),
	  .argument = "P",
	  .help = "names of metrics begin with host_ (default) or node_; the latter needs A" },
	{ .name = "node-names",
	  .place = FLAG_OPTION(struct sandbox_values, sandbox.node_names),
	  .help = "the scheduler sends the extender names of nodes only (nodeCacheCapable)" },
	{ .name = "wait-for-reservation",
	  .place = TEXT_OPTION(struct sandbox_values, texts.wait_for_reservation),
	  .argument = "D",
	  .help = "passed to the extender: a filter call waits so long for the controller's answer, at most 4s" },
	{ .name = "duration",
	  .place = TEXT_OPTION(struct sandbox_values, texts.duration),
	  .argument = "D",
	  .help = "length of the run, \"40s\", \"5m\"; wall time",
	  .group = "The run" },
	{ .name = "speed",
	  .place = TEXT_OPTION(struct sandbox_values, texts.speed),
	  .argument = "X",
	  .help = "divides the seconds in the agent's configuration, 0.1 to 100 (default: 4); they are rounded up to whole seconds, at least 1" },
	{ .name = "stop-agent-at",
	  .place = TEXT_OPTION(struct sandbox_values, texts.stop_agent_at),
	  .argument = "T",
	  .help = "sends SIGTERM to the agents at that time, and ends the run" },
	{ .name = "grace",
	  .place = TEXT_OPTION(struct sandbox_values, texts.grace),
	  .argument = "D",
	  .help = "how long agents may take to deliver their events at the end (default: 25s)" },
	{ .name = "outage",
	  .place = LIST_OPTION(struct sandbox_values, outages),
	  .argument = "PEER@START+LENGTH",
	  .help = "takes a peer of the agent away for a while; may be given several times. PEER is plugin (the scheduler plugin), api (the Kubernetes API), extender, receiver (of billing and scaling events), or monitor:N (the vm-monitor of the N-th VM, from 1): --outage monitor:2@10s+10s. The receiver's may last beyond the run",
	  .group = "What goes wrong" },
	{ .name = "faults",
	  .place = CHOICE_OPTION(struct sandbox_values, faults, FAULTS),
	  .argument = "LEVEL",
	  .help = "none, light or heavy (default: none): things go wrong at random, see the end. With light, everything must come out as stated all the same; heavy may be too much" },
	{ .name = "events",
	  .place = FLAG_OPTION(struct sandbox_values, sandbox.shows_events),
	  .help = "shows the events that the receiver gets",
	  .group = "Output" },
	{ .name = "report",
	  .place = CHOICE_OPTION(struct sandbox_values, report, REPORTS),
	  .argument = "FORMAT",
	  .help = "text or json (default: text)" },
	{ .name = "agent-log",
	  .place = TEXT_OPTION(struct sandbox_values, sandbox.agent_log),
	  .argument = "FILE",
	  .help = "appends the agents' logs to FILE; otherwise they are kept, beside the agents' configuration, only if something went wrong" },
};

static int run_sandbox(int argc, char **argv)
{
	struct sandbox_values values = {
		.vms = SANDBOX_DEFAULT_VMS,
		.nodes = SANDBOX_DEFAULT_NODES,
		.seed = 1,
		.report = SANDBOX_REPORT_TEXT,
		.faults = FAULTS_NONE,
		.generation = 1,
	};
	struct sandbox_options *sandbox = &values.sandbox;
	int rest = 0;
	int status = options_read(&command_sandbox, &values, argc, argv, &rest);
	struct sandbox_end end;
	struct error err;
	bool ran;

	if (status != OPTIONS_GO_ON)
		return status;
	if (rest > 0)
		return options_complain(&command_sandbox, "unexpected argument \"%s\"", argv[1]);
	values.texts.outages = values.outages.values;
	values.texts.outage_count = values.outages.count;
	sandbox->vms = (unsigned)values.vms;
	sandbox->nodes = (unsigned)values.nodes;
	sandbox->pods = (unsigned)values.pods;
	sandbox->faults = (enum fault_level)values.faults;
	sandbox->seed = values.seed;
	sandbox->generation.late_2023 = values.generation == 0;
	sandbox->report = (enum sandbox_report)values.report;
	sandbox->live = values.report == SANDBOX_REPORT_TEXT && terminal_can_redraw();
	if (!sandbox_options_read(sandbox, &values.texts, &err))
		return options_complain(&command_sandbox, "%s", err.text);
	ran = sandbox_run(sandbox, "/proc/self/exe", &end, &err);
	if (!ran)
		(void)fprintf(stderr, "ballast sandbox: %s\n", err.text);
	tell_where_things_are(sandbox, &end);
	return ran && end.outcome == SANDBOX_AS_STATED ? EXIT_OK : EXIT_FAILED;
}

static const char WHAT_HAPPENS[] =
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
static void append_more(struct buffer *out)
{
	struct buffer table;

	buffer_append_text(out, WHAT_HAPPENS);
	buffer_append_text(out, GENERATIONS_HELP);
	buffer_init(&table, TABLE_BYTES_MAX);
	faults_print_table(&table);
	buffer_append_format(
		out,
		"\nFaults of --faults, and how often each comes: of a thousand requests, or by itself, on average.\n"
		"  %-19s%11s%11s\n%.*s",
		"", "light", "heavy", SLICE_ARGS(buffer_slice(&table)));
	buffer_share_failure(out, &table);
	buffer_destroy(&table);
}

const struct command command_sandbox = {
	.name = "sandbox",
	.summary = "run agent and extender in a simulated cluster on this machine",
	.usage = "[OPTION]...",
	.options = OPTIONS,
	.option_count = sizeof OPTIONS / sizeof OPTIONS[0],
	.before =
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
		"again when they had time to settle.\n",
	.more = append_more,
	.run = run_sandbox,
};
