#include "sim_extender_report.h"

#include <stdio.h>

void sim_extender_print(const struct sim_extender_outcome *outcome)
{
	const struct sim_process_counts *extender = &outcome->extender.process;
	const struct sim_answers_counts *answers = &outcome->answers;
	const struct sim_pods_counts *pods = &outcome->pods;

	(void)printf(
		"  pods: %u created, %u bound, %u deleted, %u stuck; filter answers: %u with nodes, %u with all, %u pending, "
		"%u nothing, %u errors; %u probes; extender: %u starts, %u crashes, %u fatal exits, %u orderly ends; quiet: %lu "
		"blocks, %zu sockets, %zu timers; at most %llu turns a second\n",
		pods->created, pods->bound, pods->deleted, pods->stuck, answers->placed, answers->passed,
		answers->pending, answers->nothing, answers->errors, outcome->extender.probes, extender->starts,
		extender->crashes, extender->fatal_exits, extender->orderly_ends, extender->quiet_blocks,
		extender->quiet_sockets, extender->quiet_timers, (unsigned long long)extender->most_turns_per_second);
}

void sim_extender_add(struct sim_extender_outcome *sum, const struct sim_extender_outcome *outcome)
{
	const unsigned *from = (const unsigned *)&outcome->pods;
	unsigned *to = (unsigned *)&sum->pods;

	_Static_assert(sizeof outcome->pods % sizeof *from == 0, "nothing but counts");
	for (size_t i = 0; i < sizeof outcome->pods / sizeof *from; i++)
		to[i] += from[i];
	sum->extender.process.failed_allocations += outcome->extender.process.failed_allocations;
	sum->extender.process.orderly_ends += outcome->extender.process.orderly_ends;
	sum->extender.junk += outcome->extender.junk;
	sum->extender.hangups += outcome->extender.hangups;
	sum->extender.readiness_flips += outcome->extender.readiness_flips;
}

void sim_extender_print_faults(const struct sim_extender_outcome *sum)
{
	const struct sim_pods_counts *pods = &sum->pods;
	const struct {
		const char *name;
		unsigned count;
	} faults[] = {
		{ "API restarts", pods->api.outages },
		{ "API errors", pods->api.errors },
		{ "faults of single requests", pods->request_faults },
		{ "compactions", pods->api.compactions },
		{ "ended watches", pods->api.ended_watches },
		{ "scheduler restarts", pods->scheduler_restarts },
		{ "controller restarts", pods->controller_restarts },
		{ "slow controllers", pods->slow_controllers },
		{ "conflicting writers", pods->meddlings },
		{ "lost reservations", pods->lost_reservations },
		{ "disks away", pods->drives_away },
		{ "deleted pods", pods->deleted },
		{ "told to end", sum->extender.process.orderly_ends },
		{ "readiness flips", sum->extender.readiness_flips },
		{ "malformed requests", sum->extender.junk },
		{ "hang-ups", sum->extender.hangups },
		{ "failed allocations", sum->extender.process.failed_allocations },
	};

	(void)printf("faults of the storage side:");
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		(void)printf(" %s %u%s", faults[i].name, faults[i].count,
		             i + 1 < sizeof faults / sizeof faults[0] ? "," : "\n");
}
