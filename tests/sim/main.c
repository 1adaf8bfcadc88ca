/*
 * ballast-sim: runs simulated clusters and reports. See README.md beside it.
 */
#include <getopt.h>
#include <inttypes.h>
#include <psa/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "net/tls_hooks.h"
#include "sim_agent.h"
#include "sim_cluster.h"
#include "sim_extender.h"
#include "sim_extender_report.h"
#include "sim_pods.h"
#include "simulation.h"

enum { AGENTS_MAX = 2 };

static const char USAGE[] =
	"Usage: ballast-sim [OPTION]...\n"
	"\n"
	"Runs a simulated cluster: agents and extender, and stand-ins of their peers, in virtual time on an in-memory\n"
	"network.\n"
	"The same options always give the same trace hash.\n"
	"\n"
	"  --seed N         what fixes everything (default: 1)\n"
	"  --seeds N        runs of as many seeds, from --seed upwards (default: 1)\n"
	"  --stop           no further seeds behind one that is broken\n"
	"  --hours H        simulated hours of each run (default: 1)\n"
	"  --vms N          virtual machines (default: 7; 0: no agents)\n"
	"  --pods N         pods with claims (default: 16; 0: no extender)\n"
	"  --nodes N        nodes (default: 3)\n"
	"  --faults LEVEL   none, light or heavy (default: heavy)\n"
	"  --memory         allocations and socket calls of agents and extender fail now and then, too\n"
	"  --tls            TLS to the API servers\n"
	"  --torture KIND   allocations or calls, of the first agent, or with --vms 0 of the extender: one run for each\n"
	"                   of the first of them that fails\n"
	"  --points N       how many of them one by one (default: 2000); then a sample\n"
	"  --from N         the first one (default: 1)\n"
	"  --trace          prints every event\n"
	"  --log FILE       where agents and extender log to (appended)\n"
	"  --help           this text\n"
	"\n"
	"Exit status: 0 if every invariant held, 1 if one was broken, 2 for wrong usage.\n";

struct run_options {
	struct sim_options sim;
	unsigned long seeds;
	unsigned long points, from;
	const char *torture;
	bool trace;
	bool stop; /* at the first seed that is broken */
};

static void print_line(void *context, const char *text)
{
	(void)fprintf(context, "%s\n", text);
}

/* ---- one run ---- */

struct run {
	struct simulation *simulation;
	struct sim_cluster *cluster;
	struct agent_setup setup;
	struct sim_agent_counts agents[AGENTS_MAX];
	struct sim_pods *pods;
	struct sim_extender_counts extender;
};

static const struct sandbox_generation NEWEST = { .plugin = NULL };

static bool set_up_agents(struct run *run, struct error *err)
{
	for (unsigned i = 0; i < sim_cluster_agent_count(run->cluster); i++) {
		const struct sim_agent_options agent = {
			.node = i, .setup = &run->setup, .cluster = run->cluster, .counts = &run->agents[i]
		};

		if (!sim_agent_create(run->simulation, &agent, err))
			return false;
	}
	return true;
}

static bool set_up_extender(struct run *run, struct error *err)
{
	const struct sim_extender_options extender = { .setup = &run->setup,
		                                       .pods = run->pods,
		                                       .counts = &run->extender };

	return sim_extender_create(run->simulation, &extender, err);
}

static bool set_up(struct run *run, const struct run_options *options, struct error *err)
{
	run->simulation = simulation_create(&options->sim, err);
	if (run->simulation == NULL)
		return false;
	if (options->trace)
		sim_world_follow(simulation_world(run->simulation), print_line, stdout);
	if (options->sim.vms > 0) {
		run->cluster = sim_cluster_create(run->simulation, err);
		if (run->cluster == NULL)
			return false;
	}
	if (options->sim.pods > 0) {
		run->pods = sim_pods_create(run->simulation, err);
		if (run->pods == NULL)
			return false;
	}
	if (!agent_setup_create(&run->setup, 1, &NEWEST, NULL,
	                        run->cluster != NULL ? sim_cluster_token(run->cluster) : "",
	                        run->cluster != NULL ? sim_cluster_ca_pem(run->cluster) : SLICE(""), err))
		return false;
	return (run->cluster == NULL || set_up_agents(run, err)) && (run->pods == NULL || set_up_extender(run, err));
}

/* What a run found, once everything of it is gone. */
struct outcome {
	bool whole;
	uint64_t hash, events;
	struct sim_counts counts;
	struct sim_cluster_counts cluster;
	struct sim_agent_counts agents[AGENTS_MAX];
	struct sim_extender_outcome extender;
	uint64_t faults[SIM_FAULTS];
	uint64_t simulated_ns;
	unsigned long plugin_requests;
};

static void tell_broken(const struct run *run, const struct run_options *options)
{
	(void)printf("BROKEN seed %" PRIu64 " (--hours %g --vms %u --pods %u --nodes %u%s%s): invariant \"%s\": %s\n",
	             options->sim.seed, options->sim.hours, options->sim.vms, options->sim.pods, options->sim.nodes,
	             options->sim.memory ? " --memory" : "", options->sim.tls ? " --tls" : "",
	             simulation_broken_name(run->simulation), simulation_broken_text(run->simulation));
	if (!options->trace) {
		(void)printf("The last events:\n");
		sim_world_last_events(simulation_world(run->simulation), print_line, stdout);
	}
}

static bool run_once(const struct run_options *options, struct outcome *ret_outcome, struct error *err)
{
	struct run run = { .simulation = NULL };
	struct outcome outcome = { .whole = false };
	bool ok = set_up(&run, options, err);

	if (ok) {
		(void)simulation_run(run.simulation);
		if (run.cluster != NULL)
			outcome.cluster = sim_cluster_counts(run.cluster);
		if (run.pods != NULL) {
			outcome.extender.pods = sim_pods_counts(run.pods);
			outcome.extender.answers = sim_answers_counts(sim_pods_answers(run.pods));
		}
	}
	if (run.simulation != NULL) {
		outcome.simulated_ns = simulation_now_ns(run.simulation);
		outcome.counts = simulation_counts(run.simulation);
		simulation_end(run.simulation);
		memcpy(outcome.agents, run.agents, sizeof run.agents);
		outcome.extender.process = run.extender;
		for (unsigned i = 0; i < SIM_FAULTS; i++)
			outcome.faults[i] = sim_world_fault_count(simulation_world(run.simulation), (enum sim_fault)i);
		outcome.whole = simulation_is_whole(run.simulation);
		outcome.hash = sim_world_hash(simulation_world(run.simulation));
		outcome.events = sim_world_event_count(simulation_world(run.simulation));
		if (ok && !outcome.whole)
			tell_broken(&run, options);
		simulation_destroy(run.simulation);
	}
	agent_setup_remove(&run.setup);
	if (ok)
		*ret_outcome = outcome;
	return ok;
}

/*
 * The TLS library makes room for keys as it needs more of them at once, and keeps it: not to be taken for what an agent
 * left behind. So it is made to need a lot before.
 */
static bool make_room_for_keys(struct error *err)
{
	enum { KEYS = 500 };
	static const uint8_t KEY[16] = { 0 };
	psa_key_attributes_t attributes = PSA_KEY_ATTRIBUTES_INIT;
	psa_key_id_t keys[KEYS];
	bool ok = true;
	unsigned count;

	psa_set_key_type(&attributes, PSA_KEY_TYPE_AES);
	psa_set_key_bits(&attributes, 8 * sizeof KEY);
	psa_set_key_usage_flags(&attributes, PSA_KEY_USAGE_ENCRYPT);
	psa_set_key_algorithm(&attributes, PSA_ALG_ECB_NO_PADDING);
	for (count = 0; ok && count < KEYS; count++)
		ok = psa_import_key(&attributes, KEY, sizeof KEY, &keys[count]) == PSA_SUCCESS;
	for (unsigned i = 0; ok && i < count; i++)
		ok = psa_destroy_key(keys[i]) == PSA_SUCCESS;
	return ok || error_set(err, ERROR_SYSTEM, "the TLS library can't make keys");
}

/* ---- reports ---- */

static void print_outcome(const struct run_options *options, const struct outcome *outcome)
{
	unsigned starts = 0, crashes = 0, fatal = 0, ends = 0, blocks = 0, sockets = 0, timers = 0, turns = 0;

	for (unsigned i = 0; i < AGENTS_MAX; i++) {
		const struct sim_agent_counts *agent = &outcome->agents[i];

		starts += agent->starts;
		crashes += agent->crashes;
		fatal += agent->fatal_exits;
		ends += agent->orderly_ends;
		blocks = agent->quiet_blocks > blocks ? (unsigned)agent->quiet_blocks : blocks;
		sockets = agent->quiet_sockets > sockets ? (unsigned)agent->quiet_sockets : sockets;
		timers = agent->quiet_timers > timers ? (unsigned)agent->quiet_timers : timers;
		turns = agent->most_turns_per_second > turns ? (unsigned)agent->most_turns_per_second : turns;
	}
	(void)printf(
		"seed %" PRIu64 ": %s, %.2f h, hash %016" PRIx64 ", %" PRIu64 " events, %" PRIu64
		" steps, %u cycles, %u storms, %u patches, %u short permits; agents: %u starts, %u crashes, %u fatal "
		"exits, %u orderly ends; quiet: %u blocks, %u sockets, %u timers; at most %u turns a second\n",
		options->sim.seed, outcome->whole ? "ok" : "BROKEN",
		(double)outcome->simulated_ns / (3600.0 * (double)NS_PER_S), outcome->hash, outcome->events,
		outcome->counts.steps, outcome->counts.cycles, outcome->counts.storms, outcome->cluster.patches,
		outcome->cluster.short_permits, starts, crashes, fatal, ends, blocks, sockets, timers, turns);
}

static void add_outcome(struct outcome *sum, const struct outcome *outcome)
{
	sum->simulated_ns += outcome->simulated_ns;
	sum->cluster.api_outages += outcome->cluster.api_outages;
	sum->cluster.api_errors += outcome->cluster.api_errors;
	sum->cluster.compactions += outcome->cluster.compactions;
	sum->cluster.ended_watches += outcome->cluster.ended_watches;
	sum->cluster.webhook_outages += outcome->cluster.webhook_outages;
	sum->cluster.plugin_outages += outcome->cluster.plugin_outages;
	sum->cluster.monitor_outages += outcome->cluster.monitor_outages;
	sum->cluster.page_faults += outcome->cluster.page_faults;
	sum->cluster.monitor_faults += outcome->cluster.monitor_faults;
	sum->cluster.vm_restarts += outcome->cluster.vm_restarts;
	sum->cluster.settled_checks += outcome->cluster.settled_checks;
	sim_extender_add(&sum->extender, &outcome->extender);
	for (unsigned i = 0; i < AGENTS_MAX; i++)
		sum->agents[0].failed_allocations += outcome->agents[i].failed_allocations;
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		sum->faults[i] += outcome->faults[i];
}

static void print_faults(const struct outcome *sum)
{
	const struct sim_cluster_counts *cluster = &sum->cluster;
	const struct {
		const char *name;
		unsigned count;
	} others[] = {
		{ "API restarts", cluster->api_outages },
		{ "API errors", cluster->api_errors },
		{ "compactions", cluster->compactions },
		{ "ended watches", cluster->ended_watches },
		{ "webhook outages", cluster->webhook_outages },
		{ "plugin restarts", cluster->plugin_outages },
		{ "monitor restarts", cluster->monitor_outages },
		{ "VM restarts", cluster->vm_restarts },
		{ "bad pages", cluster->page_faults },
		{ "ill monitors", cluster->monitor_faults },
		{ "failed allocations", sum->agents[0].failed_allocations },
	};

	(void)printf("faults:");
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		(void)printf(" %s %" PRIu64 ",", sim_fault_name((enum sim_fault)i), sum->faults[i]);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		(void)printf(" %s %u%s", others[i].name, others[i].count,
		             i + 1 < sizeof others / sizeof others[0] ? "," : "\n");
}

static int run_seeds(struct run_options *options)
{
	struct outcome sum = { .whole = true };
	uint64_t started_ns = clock_monotonic_ns();
	uint64_t first = options->sim.seed;
	unsigned long broken = 0;

	for (unsigned long i = 0; i < options->seeds; i++) {
		struct outcome outcome;
		struct error err;

		options->sim.seed = first + i;
		if (!run_once(options, &outcome, &err)) {
			(void)fprintf(stderr, "ballast-sim: %s\n", err.text);
			return 1;
		}
		print_outcome(options, &outcome);
		if (options->sim.pods > 0)
			sim_extender_print(&outcome.extender);
		(void)fflush(stdout);
		add_outcome(&sum, &outcome);
		broken += outcome.whole ? 0 : 1;
		if (broken > 0 && options->stop)
			break;
	}
	double hours = (double)sum.simulated_ns / (3600.0 * (double)NS_PER_S);
	double seconds = (double)(clock_monotonic_ns() - started_ns) / (double)NS_PER_S;

	print_faults(&sum);
	if (options->sim.pods > 0)
		sim_extender_print_faults(&sum.extender);
	(void)printf("%lu seeds, %lu broken, %u settled checks, %.1f simulated hours in %.1f s: %.0f times real time\n",
	             options->seeds, broken,
	             options->sim.vms > 0 ? sum.cluster.settled_checks : sum.extender.pods.settled_checks, hours,
	             seconds, hours * 3600 / seconds);
	return broken == 0 ? 0 : 1;
}

/* ---- torture ---- */

enum { SAMPLE = 80 };

/* How many there are to fail in a run where none does. */
static bool count_points(struct run_options *options, bool calls, unsigned long *ret_count)
{
	struct outcome outcome;
	struct error err;

	if (!run_once(options, &outcome, &err)) {
		(void)fprintf(stderr, "ballast-sim: %s\n", err.text);
		return false;
	}
	if (options->sim.vms > 0)
		*ret_count = calls ? outcome.agents[0].calls : outcome.agents[0].allocations;
	else
		*ret_count = calls ? outcome.extender.process.calls : outcome.extender.process.allocations;
	return outcome.whole;
}

static bool run_point(struct run_options *options, bool calls, unsigned long point, struct outcome *sum)
{
	struct outcome outcome;
	struct error err;

	options->sim.fail_allocation = calls ? 0 : point;
	options->sim.fail_call = calls ? point : 0;
	if (!run_once(options, &outcome, &err)) {
		(void)fprintf(stderr, "ballast-sim: %s\n", err.text);
		return false;
	}
	sum->agents[0].fatal_exits += outcome.agents[0].fatal_exits + outcome.extender.process.fatal_exits;
	sum->agents[0].failed_allocations +=
		outcome.agents[0].failed_allocations + outcome.extender.process.failed_allocations;
	sum->faults[SIM_FAULT_FAILED_CALL] += outcome.faults[SIM_FAULT_FAILED_CALL];
	if (!outcome.whole)
		(void)printf("That was %s %lu\n", calls ? "call" : "allocation", point);
	return outcome.whole;
}

/* One run for each point up to --points, and for a sample of those behind it. */
static int run_torture(struct run_options *options)
{
	bool calls = strcmp(options->torture, "calls") == 0;
	unsigned long count = 0, broken = 0, runs = 0, step = 1;
	struct outcome sum = { .whole = true };

	if (!count_points(options, calls, &count))
		return 1;
	for (unsigned long point = options->from; point <= count; point += step) {
		if (point >= options->points && count > options->points)
			step = 1 + (count - options->points) / SAMPLE;
		runs++;
		broken += run_point(options, calls, point, &sum) ? 0 : 1;
	}
	(void)printf(
		"%s: %lu of them in a run, %lu failed one by one (%lu first ones, then a sample; %llu happened), %u times "
		"the process ended and was started anew, %lu broken\n",
		options->torture, count, runs, options->points < count ? options->points : count,
		calls ? (unsigned long long)sum.faults[SIM_FAULT_FAILED_CALL]
		      : (unsigned long long)sum.agents[0].failed_allocations,
		sum.agents[0].fatal_exits, broken);
	return broken == 0 ? 0 : 1;
}

/* ---- command line ---- */

static bool read_number(const char *text, unsigned long *ret_number)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*text == '\0' || *end != '\0')
		return false;
	*ret_number = number;
	return true;
}

static bool read_faults(const char *text, enum sim_storm *ret_storm)
{
	static const char *const NAMES[] = { "none", "light", "heavy" };

	for (unsigned i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
		if (strcmp(text, NAMES[i]) == 0) {
			*ret_storm = (enum sim_storm)i;
			return true;
		}
	}
	return false;
}

static int complain(const char *what)
{
	(void)fprintf(stderr, "ballast-sim: %s\nTry: ballast-sim --help\n", what);
	return 2;
}

enum option_code {
	OPT_SEED = 1,
	OPT_SEEDS,
	OPT_HOURS,
	OPT_VMS,
	OPT_PODS,
	OPT_NODES,
	OPT_FAULTS,
	OPT_MEMORY,
	OPT_TLS,
	OPT_TORTURE,
	OPT_POINTS,
	OPT_FROM,
	OPT_STOP,
	OPT_TRACE,
	OPT_LOG,
	OPT_HELP
};

static bool read_option(int code, const char *text, struct run_options *options)
{
	unsigned long number = 0;
	char *end;

	switch (code) {
	case OPT_SEED:
		if (!read_number(text, &number))
			return false;
		options->sim.seed = number;
		return true;
	case OPT_SEEDS:
		return read_number(text, &options->seeds);
	case OPT_HOURS:
		options->sim.hours = strtod(text, &end);
		return *text != '\0' && *end == '\0' && options->sim.hours > 0 && options->sim.hours < 1e6;
	case OPT_VMS:
		if (!read_number(text, &number) || number > WORKLOAD_VMS_MAX)
			return false;
		options->sim.vms = (unsigned)number;
		return true;
	case OPT_PODS:
		if (!read_number(text, &number) || number > PODS_MAX)
			return false;
		options->sim.pods = (unsigned)number;
		return true;
	case OPT_NODES:
		if (!read_number(text, &number) || number < 1 || number > WORKLOAD_NODES_MAX)
			return false;
		options->sim.nodes = (unsigned)number;
		return true;
	case OPT_FAULTS:
		return read_faults(text, &options->sim.storm);
	case OPT_MEMORY:
		options->sim.memory = true;
		return true;
	case OPT_TLS:
		options->sim.tls = true;
		return true;
	case OPT_TORTURE:
		options->torture = text;
		return strcmp(text, "allocations") == 0 || strcmp(text, "calls") == 0;
	case OPT_POINTS:
		return read_number(text, &options->points);
	case OPT_FROM:
		return read_number(text, &options->from) && options->from > 0;
	case OPT_STOP:
		options->stop = true;
		return true;
	case OPT_TRACE:
		options->trace = true;
		return true;
	case OPT_LOG:
		options->sim.log_path = text;
		return true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static const struct option OPTIONS[] = {
		{ "seed", required_argument, NULL, OPT_SEED },
		{ "seeds", required_argument, NULL, OPT_SEEDS },
		{ "hours", required_argument, NULL, OPT_HOURS },
		{ "vms", required_argument, NULL, OPT_VMS },
		{ "pods", required_argument, NULL, OPT_PODS },
		{ "nodes", required_argument, NULL, OPT_NODES },
		{ "faults", required_argument, NULL, OPT_FAULTS },
		{ "memory", no_argument, NULL, OPT_MEMORY },
		{ "tls", no_argument, NULL, OPT_TLS },
		{ "torture", required_argument, NULL, OPT_TORTURE },
		{ "points", required_argument, NULL, OPT_POINTS },
		{ "from", required_argument, NULL, OPT_FROM },
		{ "stop", no_argument, NULL, OPT_STOP },
		{ "trace", no_argument, NULL, OPT_TRACE },
		{ "log", required_argument, NULL, OPT_LOG },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	struct run_options options = {
		.sim = { .seed = 1, .hours = 1, .vms = 7, .pods = 16, .nodes = 3, .storm = SIM_STORM_HEAVY },
		.seeds = 1,
		.points = 2000,
		.from = 1,
	};
	struct error err;
	int code;

	while ((code = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
		if (code == OPT_HELP) {
			(void)fputs(USAGE, stdout);
			return 0;
		}
		if (!read_option(code, optarg, &options))
			return complain("wrong option");
	}
	if (options.sim.vms == 0 && options.sim.pods == 0)
		return complain("neither VMs nor pods: there is nothing to run");
	if (optind < argc)
		return complain("there are no arguments, only options");
	if (!tls_hooks_install(&err) || !make_room_for_keys(&err)) {
		(void)fprintf(stderr, "ballast-sim: %s\n", err.text);
		return 1;
	}
	return options.torture != NULL ? run_torture(&options) : run_seeds(&options);
}
