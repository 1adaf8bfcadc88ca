#include "sim_extender_report.h"

#include <stdio.h>

void sim_extender_print(const struct sim_extender_outcome *outcome)
{
	const struct sim_extender_counts *extender = &outcome->process;
	const struct sim_answers_counts *answers = &outcome->answers;
	const struct sim_pods_counts *pods = &outcome->pods;

	(void)printf(
		"  pods: %u created, %u bound, %u deleted, %u stuck; filter answers: %u with nodes, %u with all, %u pending, "
		"%u nothing, %u errors; %u probes; extender: %u starts, %u crashes, %u fatal exits, %u orderly ends; quiet: %lu "
		"blocks, %zu sockets, %zu timers; at most %llu turns a second\n",
		pods->created, pods->bound, pods->deleted, pods->stuck, answers->placed, answers->passed,
		answers->pending, answers->nothing, answers->errors, extender->probes, extender->starts,
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
	sum->process.failed_allocations += outcome->process.failed_allocations;
	sum->process.orderly_ends += outcome->process.orderly_ends;
	sum->process.junk += outcome->process.junk;
	sum->process.hangups += outcome->process.hangups;
	sum->process.readiness_flips += outcome->process.readiness_flips;
}

void sim_extender_print_faults(const struct sim_extender_outcome *sum)
{
	const struct sim_pods_counts *pods = &sum->pods;
	const struct {
		const char *name;
		unsigned count;
	} faults[] = {
		{ "API restarts", pods->api_outages },
		{ "API errors", pods->api_errors },
		{ "faults of single requests", pods->request_faults },
		{ "compactions", pods->compactions },
		{ "ended watches", pods->ended_watches },
		{ "scheduler restarts", pods->scheduler_restarts },
		{ "controller restarts", pods->controller_restarts },
		{ "slow controllers", pods->slow_controllers },
		{ "conflicting writers", pods->meddlings },
		{ "lost reservations", pods->lost_reservations },
		{ "disks away", pods->drives_away },
		{ "deleted pods", pods->deleted },
		{ "told to end", sum->process.orderly_ends },
		{ "readiness flips", sum->process.readiness_flips },
		{ "malformed requests", sum->process.junk },
		{ "hang-ups", sum->process.hangups },
		{ "failed allocations", sum->process.failed_allocations },
	};

	(void)printf("faults of the storage side:");
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		(void)printf(" %s %u%s", faults[i].name, faults[i].count,
		             i + 1 < sizeof faults / sizeof faults[0] ? "," : "\n");
}
