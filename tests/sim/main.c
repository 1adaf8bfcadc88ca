/*
 * ballast-sim: runs simulated clusters and reports. See README.md beside it.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim_command_line.h"
#include "sim_prepare.h"
#include "sim_report.h"
#include "sim_run.h"
#include "torture.h"

static void tell_error(const struct error *err)
{
	(void)fprintf(stderr, "ballast-sim: %s\n", err->text);
}

/* ---- seeds ---- */

static int run_seeds(struct sim_command *command)
{
	struct sim_outcome sum = { .whole = true };
	uint64_t started_ns = clock_monotonic_ns();
	unsigned long broken = 0, runs = 0;
	double hours, seconds;

	while (runs < command->seeds && !(broken > 0 && command->stop)) {
		struct sim_outcome outcome;
		struct error err;

		if (!sim_run(command, &outcome, &err)) {
			tell_error(&err);
			return 1;
		}
		sim_report_outcome(&command->sim, &outcome);
		sim_report_add(&sum, &outcome);
		broken += outcome.whole ? 0 : 1;
		command->sim.seed++;
		runs++;
	}
	hours = (double)sum.simulated_ns / (3600.0 * (double)NS_PER_S);
	seconds = (double)(clock_monotonic_ns() - started_ns) / (double)NS_PER_S;
	sim_report_faults(&command->sim, &sum);
	(void)printf("%lu seeds, %lu broken, %u settled checks, %.1f simulated hours in %.1f s: %.0f times real time\n",
	             runs, broken, sum.counts.cycles, hours, seconds, hours * 3600 / seconds);
	return broken == 0 ? 0 : 1;
}

/* ---- cases ---- */

static bool run_case(struct sim_command *command, const struct sim_case *play, struct sim_outcome *ret_outcome)
{
	struct error err;

	command->sim.seed = play->seed;
	command->sim.vms = play->vms;
	command->sim.pods = play->pods;
	command->sim.nodes = play->nodes;
	command->sim.storm = play->storm;
	command->sim.memory = play->memory;
	command->sim.tls = play->tls;
	command->sim.play = play;
	if (sim_run(command, ret_outcome, &err))
		return true;
	tell_error(&err);
	return false;
}

static int run_play(struct sim_command *command)
{
	struct sim_case play;
	struct sim_outcome outcome;
	struct error err;
	bool ok;

	if (!sim_case_read(command->play_path, &play, &err)) {
		tell_error(&err);
		return 2;
	}
	ok = run_case(command, &play, &outcome);
	sim_case_destroy(&play);
	if (!ok)
		return 1;
	sim_report_outcome(&command->sim, &outcome);
	return outcome.whole ? 0 : 1;
}

/* Of sim_case_shrink; context: the command. */
static bool case_breaks(void *context, const struct sim_case *play, const char *broken)
{
	struct sim_outcome outcome;

	return run_case(context, play, &outcome) && !outcome.whole && strcmp(outcome.broken, broken) == 0;
}

/* The first seed that is broken becomes a case. */
static int run_record(struct sim_command *command)
{
	struct sim_options *sim = &command->sim;
	struct sim_outcome outcome;
	struct error err;
	int result = 0;

	for (unsigned long i = 0; i < command->seeds && result == 0; i++) {
		struct sim_case record = { .seed = sim->seed,
			                   .vms = sim->vms,
			                   .pods = sim->pods,
			                   .nodes = sim->nodes,
			                   .storm = sim->storm,
			                   .memory = sim->memory,
			                   .tls = sim->tls };

		sim->record = &record;
		if (!sim_run(command, &outcome, &err)) {
			tell_error(&err);
			return 1;
		}
		sim->record = NULL;
		if (!outcome.whole) {
			result = 1;
			command->quiet = true;
			sim_case_shrink(&record, outcome.broken, case_breaks, command);
			if (!sim_case_write(&record, command->record_path, outcome.broken, &err))
				tell_error(&err);
		}
		sim_case_destroy(&record);
		sim->seed++;
	}
	return result;
}

/* ---- torture ---- */

static struct sim_torture_end end_of_child(const struct sim_outcome *outcome)
{
	const struct sim_process_counts *extender = &outcome->storage.extender.process;
	struct sim_torture_end end = {
		.whole = outcome->whole,
		.happened = outcome->faults[SIM_FAULT_FAILED_CALL] > 0 || extender->failed_allocations > 0,
		.restarted = extender->fatal_exits > 0,
	};

	for (unsigned i = 0; i < SIM_CLUSTER_AGENTS; i++) {
		end.happened = end.happened || outcome->agents[i].failed_allocations > 0;
		end.restarted = end.restarted || outcome->agents[i].fatal_exits > 0;
	}
	return end;
}

/* The same run twice: one counts, one forks. */
static bool run_twice(const struct sim_command *command, struct sim_torture *torture, struct error *err)
{
	struct sim_outcome counted, forking;

	if (!sim_run(command, &counted, err) || !counted.whole || !sim_torture_begin(torture, err))
		return false;
	if (!sim_run(command, &forking, err))
		return false;
	if (sim_torture_is_child(torture))
		sim_torture_end_child(torture, end_of_child(&forking));
	return (forking.whole && forking.hash == counted.hash) ||
	       error_set(err, ERROR_INVARIANT, "the second run wasn't as the first");
}

static int run_torture(struct sim_command *command)
{
	bool calls = strcmp(command->torture, "calls") == 0;
	const struct sim_torture_options how = { .kind = calls ? SIM_TORTURE_CALLS : SIM_TORTURE_ALLOCATIONS,
		                                 .victim = command->victim,
		                                 .first = command->from,
		                                 .each = command->points,
		                                 .children = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) };
	struct error err = { .text = "a run without failure is broken" };
	struct sim_torture *torture = sim_torture_create(&how, &err);
	struct sim_torture_result result = { 0 };
	uint64_t started_ns = clock_monotonic_ns();
	bool ok;

	command->sim.torture = torture;
	ok = torture != NULL && run_twice(command, torture, &err);
	if (torture != NULL) {
		result = sim_torture_finish(torture);
		sim_torture_destroy(torture);
	}
	if (!ok) {
		tell_error(&err);
		return 1;
	}
	(void)printf(
		"%s of %s: %lu in a run, %lu failed one by one (all of the first %lu; %lu happened), %lu times the "
		"process ended and was started anew, %lu broken; %.1f s\n",
		command->torture, command->victim, result.points, result.tried,
		command->points < result.points ? command->points : result.points, result.happened, result.restarted,
		result.broken, (double)(clock_monotonic_ns() - started_ns) / (double)NS_PER_S);
	return result.broken == 0 && result.happened == result.tried ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct sim_command command;
	struct error err;

	if (!sim_command_line_read(argc, argv, &command))
		return 2;
	if (command.help) {
		sim_command_line_help();
		return 0;
	}
	if (!sim_prepare(&err)) {
		tell_error(&err);
		return 1;
	}
	if (command.play_path != NULL)
		return run_play(&command);
	if (command.record_path != NULL)
		return run_record(&command);
	return command.torture != NULL ? run_torture(&command) : run_seeds(&command);
}
