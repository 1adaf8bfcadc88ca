#include "sim_report.h"

#include <inttypes.h>
#include <stdio.h>

void sim_report_broken(const struct sim_options *options, const char *name, const char *text)
{
	(void)printf("BROKEN seed %" PRIu64 " (--hours %g --vms %u --pods %u --nodes %u --faults %s%s%s): invariant "
	             "\"%s\": %s\n",
	             options->seed, options->hours, options->vms, options->pods, options->nodes,
	             sim_storm_name(options->storm), options->memory ? " --memory" : "", options->tls ? " --tls" : "",
	             name, text);
}

static void print_agents(const struct sim_outcome *outcome)
{
	unsigned starts = 0, crashes = 0, fatal = 0, ends = 0, blocks = 0, sockets = 0, timers = 0, turns = 0;

	for (unsigned i = 0; i < SIM_CLUSTER_AGENTS; i++) {
		const struct sim_process_counts *agent = &outcome->agents[i];

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
		"  VMs: %u patches, %u short permits; agents: %u starts, %u crashes, %u fatal exits, %u orderly ends; "
		"quiet: %u blocks, %u sockets, %u timers; at most %u turns a second; %.0f VM-seconds billed of %.0f "
		"seen\n",
		outcome->cluster.patches, outcome->cluster.short_permits, starts, crashes, fatal, ends, blocks, sockets,
		timers, turns, outcome->bills.billed_s, outcome->bills.seen_s);
}

void sim_report_outcome(const struct sim_options *options, const struct sim_outcome *outcome)
{
	(void)printf("seed %" PRIu64 ": %s, %.2f h, hash %016" PRIx64 ", %" PRIu64 " events, %" PRIu64
	             " steps, %u cycles, %u storms\n",
	             options->seed, outcome->whole ? "ok" : "BROKEN",
	             (double)outcome->simulated_ns / (3600.0 * (double)NS_PER_S), outcome->hash, outcome->events,
	             outcome->counts.steps, outcome->counts.cycles, outcome->counts.storms);
	if (options->vms > 0)
		print_agents(outcome);
	if (options->pods > 0)
		sim_extender_print(&outcome->storage);
	(void)fflush(stdout);
}

static void add_cluster(struct sim_cluster_counts *sum, const struct sim_cluster_counts *counts)
{
	const unsigned *from = (const unsigned *)counts;
	unsigned *to = (unsigned *)sum;

	_Static_assert(sizeof *counts % sizeof *from == 0, "nothing but counts");
	for (size_t i = 0; i < sizeof *counts / sizeof *from; i++)
		to[i] += from[i];
}

void sim_report_add(struct sim_outcome *sum, const struct sim_outcome *outcome)
{
	sum->simulated_ns += outcome->simulated_ns;
	sum->counts.cycles += outcome->counts.cycles;
	add_cluster(&sum->cluster, &outcome->cluster);
	sum->bills.batches += outcome->bills.batches;
	sum->bills.repeated_batches += outcome->bills.repeated_batches;
	sum->bills.billing_events += outcome->bills.billing_events;
	sum->bills.scaling_events += outcome->bills.scaling_events;
	sum->bills.lives_billed_to_the_end += outcome->bills.lives_billed_to_the_end;
	for (unsigned i = 0; i < SIM_RECEIVER_FAULTS; i++)
		sum->receiver.faults[i] += outcome->receiver.faults[i];
	for (unsigned i = 0; i < SIM_CLUSTER_AGENTS; i++)
		sum->agents[0].failed_allocations += outcome->agents[i].failed_allocations;
	sim_extender_add(&sum->storage, &outcome->storage);
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		sum->faults[i] += outcome->faults[i];
}

static void print_network(const struct sim_outcome *sum)
{
	(void)printf("network:");
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		(void)printf(" %s %" PRIu64 "%s", sim_fault_name((enum sim_fault)i), sum->faults[i],
		             i + 1 < SIM_FAULTS ? "," : "\n");
}

static void print_cluster(const struct sim_outcome *sum)
{
	const struct sim_cluster_counts *cluster = &sum->cluster;
	const struct {
		const char *name;
		unsigned count;
	} faults[] = {
		{ "API restarts", cluster->api.outages },
		{ "API errors", cluster->api.errors },
		{ "compactions", cluster->api.compactions },
		{ "ended watches", cluster->api.ended_watches },
		{ "webhook outages", cluster->api.webhook_outages },
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

	(void)printf("agents' side:");
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		(void)printf(" %s %u%s", faults[i].name, faults[i].count,
		             i + 1 < sizeof faults / sizeof faults[0] ? "," : "\n");
}

static void print_receiver(const struct sim_outcome *sum)
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

void sim_report_faults(const struct sim_options *options, const struct sim_outcome *sum)
{
	print_network(sum);
	if (options->vms > 0) {
		print_cluster(sum);
		print_receiver(sum);
	}
	if (options->pods > 0)
		sim_extender_print_faults(&sum->storage);
}
