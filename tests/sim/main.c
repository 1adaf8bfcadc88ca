/*
 * ballast-sim: runs simulated clusters and reports. See README.md beside it.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "sim_agent.h"
#include "sim_cluster.h"
#include "sim_process.h"
#include "sim_receiver.h"
#include "simulation.h"
#include "torture.h"

enum { AGENTS_MAX = SIM_CLUSTER_AGENTS };

static const char USAGE[] =
	"Usage: ballast-sim [OPTION]...\n"
	"\n"
	"Runs a simulated cluster: the agents, and stand-ins of their peers, in virtual time on an in-memory network.\n"
	"The same options always give the same trace hash.\n"
	"\n"
	"  --seed N         what fixes everything (default: 1)\n"
	"  --seeds N        runs of as many seeds, from --seed upwards (default: 1)\n"
	"  --stop           no further seeds behind one that is broken\n"
	"  --hours H        simulated hours of each run (default: 1)\n"
	"  --vms N          virtual machines (default: 7)\n"
	"  --nodes N        nodes (default: 3)\n"
	"  --faults LEVEL   none, light or heavy (default: heavy)\n"
	"  --memory         allocations and socket calls of the agents fail now and then, too\n"
	"  --tls            TLS to the API server\n"
	"  --torture KIND   allocations or calls: one end of the run for each of them that fails\n"
	"  --points N       up to which one by one (default: 2000); then a sample\n"
	"  --from N         the first one (default: 1)\n"
	"  --victim NAME    the process whose they are (default: agent-a)\n"
	"  --trace          prints every event\n"
	"  --record FILE    writes what happened up to where an invariant broke, as far as it is needed for that\n"
	"  --play FILE      what is written there happens, and nothing else\n"
	"  --log FILE       where the agents log to (appended)\n"
	"  --help           this text\n"
	"\n"
	"Exit status: 0 if every invariant held, 1 if one was broken, 2 for wrong usage.\n";

struct run_options {
	struct sim_options sim;
	unsigned long seeds;
	unsigned long points, from;
	const char *torture, *victim;
	const char *record_path, *play_path;
	bool trace;
	bool stop;  /* at the first seed that is broken */
	bool quiet; /* nothing of broken ones */
};

static void print_line(void *context, const char *text)
{
	(void)fprintf(context, "%s\n", text);
}

/* ---- one run ---- */

struct run {
	struct simulation *simulation;
	struct sim_cluster *cluster;
	struct sim_receiver *receiver;
	struct agent_setup setup;
	struct sim_agent_counts agents[AGENTS_MAX];
};

static const struct sandbox_generation NEWEST = { .plugin = NULL };

static bool set_up(struct run *run, const struct run_options *options, struct error *err)
{
	run->simulation = simulation_create(&options->sim, err);
	if (run->simulation == NULL)
		return false;
	if (options->trace)
		sim_world_follow(simulation_world(run->simulation), print_line, stdout);
	run->cluster = sim_cluster_create(run->simulation, err);
	if (run->cluster != NULL)
		run->receiver = sim_receiver_create(run->simulation, err);
	if (run->receiver == NULL || !agent_setup_create(&run->setup, 1, &NEWEST, NULL, sim_cluster_token(run->cluster),
	                                                 sim_cluster_ca_pem(run->cluster), err))
		return false;
	for (unsigned i = 0; i < sim_cluster_agent_count(run->cluster); i++) {
		const struct sim_agent_options agent = { .node = i,
			                                 .setup = &run->setup,
			                                 .cluster = run->cluster,
			                                 .receiver = run->receiver,
			                                 .counts = &run->agents[i] };

		if (!sim_agent_create(run->simulation, &agent, err))
			return false;
	}
	return true;
}

/* What a run found, once everything of it is gone. */
struct outcome {
	bool whole;
	char broken[64]; /* the invariant */
	uint64_t hash, events;
	struct sim_counts counts;
	struct sim_cluster_counts cluster;
	struct sim_receiver_counts receiver;
	struct sim_bills_counts bills;
	struct sim_agent_counts agents[AGENTS_MAX];
	uint64_t faults[SIM_FAULTS];
	uint64_t simulated_ns;
	unsigned long plugin_requests;
};

static void tell_broken(const struct run *run, const struct run_options *options)
{
	(void)printf("BROKEN seed %" PRIu64 " (--hours %g --vms %u --nodes %u%s%s): invariant \"%s\": %s\n",
	             options->sim.seed, options->sim.hours, options->sim.vms, options->sim.nodes,
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
		outcome.cluster = sim_cluster_counts(run.cluster);
		outcome.receiver = sim_receiver_counts(run.receiver);
		outcome.bills = sim_bills_counts(sim_receiver_bills(run.receiver));
	}
	if (run.simulation != NULL) {
		outcome.simulated_ns = simulation_now_ns(run.simulation);
		outcome.counts = simulation_counts(run.simulation);
		simulation_end(run.simulation);
		memcpy(outcome.agents, run.agents, sizeof run.agents);
		for (unsigned i = 0; i < SIM_FAULTS; i++)
			outcome.faults[i] = sim_world_fault_count(simulation_world(run.simulation), (enum sim_fault)i);
		outcome.whole = simulation_is_whole(run.simulation);
		outcome.hash = sim_world_hash(simulation_world(run.simulation));
		outcome.events = sim_world_event_count(simulation_world(run.simulation));
		(void)snprintf(outcome.broken, sizeof outcome.broken, "%s", simulation_broken_name(run.simulation));
		if (ok && !outcome.whole && !options->quiet)
			tell_broken(&run, options);
		simulation_destroy(run.simulation);
	}
	if (!sim_torture_is_child(options->sim.torture))
		agent_setup_remove(&run.setup);
	if (ok)
		*ret_outcome = outcome;
	return ok;
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
		"exits, %u orderly ends; quiet: %u blocks, %u sockets, %u timers; at most %u turns a second; %.0f "
		"VM-seconds billed of %.0f seen\n",
		options->sim.seed, outcome->whole ? "ok" : "BROKEN",
		(double)outcome->simulated_ns / (3600.0 * (double)NS_PER_S), outcome->hash, outcome->events,
		outcome->counts.steps, outcome->counts.cycles, outcome->counts.storms, outcome->cluster.patches,
		outcome->cluster.short_permits, starts, crashes, fatal, ends, blocks, sockets, timers, turns,
		outcome->bills.billed_s, outcome->bills.seen_s);
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
	sum->cluster.vm_stops += outcome->cluster.vm_stops;
	sum->cluster.vm_deletions += outcome->cluster.vm_deletions;
	sum->cluster.vm_migrations += outcome->cluster.vm_migrations;
	sum->cluster.late_patches += outcome->cluster.late_patches;
	sum->cluster.scheduler_changes += outcome->cluster.scheduler_changes;
	sum->cluster.settled_checks += outcome->cluster.settled_checks;
	sum->bills.batches += outcome->bills.batches;
	sum->bills.repeated_batches += outcome->bills.repeated_batches;
	sum->bills.billing_events += outcome->bills.billing_events;
	sum->bills.scaling_events += outcome->bills.scaling_events;
	sum->bills.lives_billed_to_the_end += outcome->bills.lives_billed_to_the_end;
	for (unsigned i = 0; i < SIM_RECEIVER_FAULTS; i++)
		sum->receiver.faults[i] += outcome->receiver.faults[i];
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
		{ "VM stops", cluster->vm_stops },
		{ "VM deletions", cluster->vm_deletions },
		{ "VM migrations", cluster->vm_migrations },
		{ "late patches", cluster->late_patches },
		{ "other schedulers", cluster->scheduler_changes },
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

static void print_reported(const struct outcome *sum)
{
	const struct sim_bills_counts *bills = &sum->bills;

	(void)printf("receiver:");
	for (unsigned i = SIM_RECEIVER_GOOD + 1; i < SIM_RECEIVER_FAULTS; i++)
		(void)printf(" %s %u,", sim_receiver_fault_name((enum sim_receiver_fault)i), sum->receiver.faults[i]);
	(void)printf(
		" repeated batches %llu of %llu; %llu billing events, %llu scaling events, %llu lives billed to the "
		"end\n",
		(unsigned long long)bills->repeated_batches, (unsigned long long)bills->batches,
		(unsigned long long)bills->billing_events, (unsigned long long)bills->scaling_events,
		(unsigned long long)bills->lives_billed_to_the_end);
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
		(void)fflush(stdout);
		add_outcome(&sum, &outcome);
		broken += outcome.whole ? 0 : 1;
		if (broken > 0 && options->stop)
			break;
	}
	double hours = (double)sum.simulated_ns / (3600.0 * (double)NS_PER_S);
	double seconds = (double)(clock_monotonic_ns() - started_ns) / (double)NS_PER_S;

	print_faults(&sum);
	print_reported(&sum);
	(void)printf("%lu seeds, %lu broken, %u settled checks, %.1f simulated hours in %.1f s: %.0f times real time\n",
	             options->seeds, broken, sum.cluster.settled_checks, hours, seconds, hours * 3600 / seconds);
	return broken == 0 ? 0 : 1;
}

/* ---- cases ---- */

static bool run_case(struct run_options *options, const struct sim_case *play, struct outcome *ret_outcome)
{
	struct error err;

	options->sim.seed = play->seed;
	options->sim.vms = play->vms;
	options->sim.nodes = play->nodes;
	options->sim.memory = play->memory;
	options->sim.tls = play->tls;
	options->sim.play = play;
	if (run_once(options, ret_outcome, &err))
		return true;
	(void)fprintf(stderr, "ballast-sim: %s\n", err.text);
	return false;
}

static int run_play(struct run_options *options)
{
	struct sim_case play;
	struct outcome outcome;
	struct error err;
	bool ok;

	if (!sim_case_read(options->play_path, &play, &err)) {
		(void)fprintf(stderr, "ballast-sim: %s\n", err.text);
		return 2;
	}
	ok = run_case(options, &play, &outcome);
	sim_case_destroy(&play);
	if (!ok)
		return 1;
	print_outcome(options, &outcome);
	return outcome.whole ? 0 : 1;
}

/* Of sim_case_shrink; context: the options. */
static bool case_breaks(void *context, const struct sim_case *play, const char *broken)
{
	struct outcome outcome;

	return run_case(context, play, &outcome) && !outcome.whole && strcmp(outcome.broken, broken) == 0;
}

/* The first seed that is broken becomes a case. */
static int run_record(struct run_options *options)
{
	struct outcome outcome;
	struct error err;
	int result = 0;

	for (unsigned long i = 0; i < options->seeds && result == 0; i++) {
		struct sim_case record = { .seed = options->sim.seed,
			                   .vms = options->sim.vms,
			                   .nodes = options->sim.nodes,
			                   .memory = options->sim.memory,
			                   .tls = options->sim.tls };

		options->sim.record = &record;
		if (!run_once(options, &outcome, &err)) {
			(void)fprintf(stderr, "ballast-sim: %s\n", err.text);
			return 1;
		}
		options->sim.record = NULL;
		if (!outcome.whole) {
			result = 1;
			options->quiet = true;
			sim_case_shrink(&record, outcome.broken, case_breaks, options);
			if (!sim_case_write(&record, options->record_path, outcome.broken, &err))
				(void)fprintf(stderr, "ballast-sim: %s\n", err.text);
		}
		sim_case_destroy(&record);
		options->sim.seed++;
	}
	return result;
}

/* ---- torture ---- */

static struct sim_torture_end end_of_child(const struct outcome *outcome)
{
	struct sim_torture_end end = { .whole = outcome->whole };

	end.happened = outcome->faults[SIM_FAULT_FAILED_CALL] > 0;
	for (unsigned i = 0; i < AGENTS_MAX; i++) {
		end.happened = end.happened || outcome->agents[i].failed_allocations > 0;
		end.restarted = end.restarted || outcome->agents[i].fatal_exits > 0;
	}
	return end;
}

/* The same run twice: one counts, one forks. */
static bool run_twice(const struct run_options *options, struct sim_torture *torture, struct error *err)
{
	struct outcome counted, forking;

	if (!run_once(options, &counted, err) || !counted.whole || !sim_torture_begin(torture, err))
		return false;
	if (!run_once(options, &forking, err))
		return false;
	if (sim_torture_is_child(torture))
		sim_torture_end_child(torture, end_of_child(&forking));
	return (forking.whole && forking.hash == counted.hash) ||
	       error_set(err, ERROR_INVARIANT, "the second run wasn't as the first");
}

static int run_torture(struct run_options *options)
{
	bool calls = strcmp(options->torture, "calls") == 0;
	const struct sim_torture_options how = { .kind = calls ? SIM_TORTURE_CALLS : SIM_TORTURE_ALLOCATIONS,
		                                 .victim = options->victim,
		                                 .first = options->from,
		                                 .each = options->points,
		                                 .children = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) };
	struct error err = { .text = "a run without failure is broken" };
	struct sim_torture *torture = sim_torture_create(&how, &err);
	struct sim_torture_result result = { 0 };
	uint64_t started_ns = clock_monotonic_ns();
	bool ok;

	options->sim.torture = torture;
	ok = torture != NULL && run_twice(options, torture, &err);
	if (torture != NULL) {
		result = sim_torture_finish(torture);
		sim_torture_destroy(torture);
	}
	if (!ok) {
		(void)fprintf(stderr, "ballast-sim: %s\n", err.text);
		return 1;
	}
	(void)printf(
		"%s of %s: %lu in a run, %lu failed one by one (all of the first %lu; %lu happened), %lu times the "
		"process ended and was started anew, %lu broken; %.1f s\n",
		options->torture, options->victim, result.points, result.tried,
		options->points < result.points ? options->points : result.points, result.happened, result.restarted,
		result.broken, (double)(clock_monotonic_ns() - started_ns) / (double)NS_PER_S);
	return result.broken == 0 && result.happened == result.tried ? 0 : 1;
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
	OPT_NODES,
	OPT_FAULTS,
	OPT_MEMORY,
	OPT_TLS,
	OPT_TORTURE,
	OPT_POINTS,
	OPT_FROM,
	OPT_VICTIM,
	OPT_STOP,
	OPT_TRACE,
	OPT_LOG,
	OPT_RECORD,
	OPT_PLAY,
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
		if (!read_number(text, &number) || number < 1 || number > WORKLOAD_VMS_MAX)
			return false;
		options->sim.vms = (unsigned)number;
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
	case OPT_VICTIM:
		options->victim = text;
		return true;
	case OPT_STOP:
		options->stop = true;
		return true;
	case OPT_TRACE:
		options->trace = true;
		return true;
	case OPT_RECORD:
		options->record_path = text;
		return true;
	case OPT_PLAY:
		options->play_path = text;
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
		{ "nodes", required_argument, NULL, OPT_NODES },
		{ "faults", required_argument, NULL, OPT_FAULTS },
		{ "memory", no_argument, NULL, OPT_MEMORY },
		{ "tls", no_argument, NULL, OPT_TLS },
		{ "torture", required_argument, NULL, OPT_TORTURE },
		{ "points", required_argument, NULL, OPT_POINTS },
		{ "from", required_argument, NULL, OPT_FROM },
		{ "victim", required_argument, NULL, OPT_VICTIM },
		{ "stop", no_argument, NULL, OPT_STOP },
		{ "trace", no_argument, NULL, OPT_TRACE },
		{ "record", required_argument, NULL, OPT_RECORD },
		{ "play", required_argument, NULL, OPT_PLAY },
		{ "log", required_argument, NULL, OPT_LOG },
		{ "help", no_argument, NULL, OPT_HELP },
		{ NULL, 0, NULL, 0 },
	};
	struct run_options options = {
		.sim = { .seed = 1, .hours = 1, .vms = 7, .nodes = 3, .storm = SIM_STORM_HEAVY },
		.seeds = 1,
		.points = 2000,
		.victim = "agent-a",
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
	if (optind < argc)
		return complain("there are no arguments, only options");
	if (!sim_process_prepare(&err)) {
		(void)fprintf(stderr, "ballast-sim: %s\n", err.text);
		return 1;
	}
	if (options.play_path != NULL)
		return run_play(&options);
	if (options.record_path != NULL)
		return run_record(&options);
	return options.torture != NULL ? run_torture(&options) : run_seeds(&options);
}
