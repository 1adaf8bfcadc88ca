#include "sim_run.h"

#include <stdio.h>
#include <string.h>

#include "sim_report.h"
#include "torture.h"

struct run {
	struct simulation *simulation;
	struct agent_setup setup;
	/* The agents' side; NULL without VMs. */
	struct sim_cluster *cluster;
	struct sim_receiver *receiver;
	struct sim_process_counts agents[SIM_CLUSTER_AGENTS];
	/* The extender's side; NULL without pods. */
	struct sim_pods *pods;
	struct sim_extender_counts extender;
};

static const struct sandbox_generation NEWEST = { .plugin = NULL };

static void print_line(void *context, const char *text)
{
	(void)fprintf(context, "%s\n", text);
}

static bool set_up_peers(struct run *run, const struct sim_options *options, struct error *err)
{
	if (options->vms > 0) {
		run->cluster = sim_cluster_create(run->simulation, err);
		if (run->cluster == NULL)
			return false;
		run->receiver = sim_receiver_create(run->simulation, err);
		if (run->receiver == NULL)
			return false;
	}
	if (options->pods > 0) {
		run->pods = sim_pods_create(run->simulation, err);
		if (run->pods == NULL)
			return false;
	}
	return true;
}

static bool set_up_agents(struct run *run, struct error *err)
{
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

static bool set_up_extender(struct run *run, struct error *err)
{
	const struct sim_extender_options extender = { .setup = &run->setup,
		                                       .pods = run->pods,
		                                       .counts = &run->extender };

	return sim_extender_create(run->simulation, &extender, err);
}

static bool set_up(struct run *run, const struct sim_command *command, struct error *err)
{
	run->simulation = simulation_create(&command->sim, err);
	if (run->simulation == NULL)
		return false;
	if (command->trace)
		sim_world_follow(simulation_world(run->simulation), print_line, stdout);
	if (!set_up_peers(run, &command->sim, err))
		return false;
	if (!agent_setup_create(&run->setup, 1, &NEWEST, NULL,
	                        run->cluster != NULL ? sim_cluster_token(run->cluster) : "",
	                        run->cluster != NULL ? sim_cluster_ca_pem(run->cluster) : SLICE(""), err))
		return false;
	return (run->cluster == NULL || set_up_agents(run, err)) && (run->pods == NULL || set_up_extender(run, err));
}

static void tell_broken(const struct run *run, const struct sim_command *command)
{
	sim_report_broken(&command->sim, simulation_broken_name(run->simulation),
	                  simulation_broken_text(run->simulation));
	if (!command->trace) {
		(void)printf("The last events:\n");
		sim_world_last_events(simulation_world(run->simulation), print_line, stdout);
	}
}

/* What must be asked while the actors are there. */
static void ask_actors(const struct run *run, struct sim_outcome *outcome)
{
	if (run->cluster != NULL) {
		outcome->cluster = sim_cluster_counts(run->cluster);
		outcome->receiver = sim_receiver_counts(run->receiver);
		outcome->bills = sim_bills_counts(sim_receiver_bills(run->receiver));
	}
	if (run->pods != NULL) {
		outcome->storage.pods = sim_pods_counts(run->pods);
		outcome->storage.answers = sim_answers_counts(sim_pods_answers(run->pods));
	}
}

static void end_simulation(struct run *run, struct sim_outcome *outcome)
{
	struct simulation *simulation = run->simulation;
	const struct sim_world *world = simulation_world(simulation);

	outcome->simulated_ns = simulation_now_ns(simulation);
	outcome->counts = simulation_counts(simulation);
	simulation_end(simulation);
	memcpy(outcome->agents, run->agents, sizeof run->agents);
	outcome->storage.extender = run->extender;
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		outcome->faults[i] = sim_world_fault_count(world, (enum sim_fault)i);
	outcome->whole = simulation_is_whole(simulation);
	outcome->hash = sim_world_hash(world);
	outcome->events = sim_world_event_count(world);
	(void)snprintf(outcome->broken, sizeof outcome->broken, "%s", simulation_broken_name(simulation));
}

bool sim_run(const struct sim_command *command, struct sim_outcome *ret_outcome, struct error *err)
{
	struct run run = { .simulation = NULL };
	struct sim_outcome outcome = { .whole = false };
	bool ok = set_up(&run, command, err);

	if (ok) {
		(void)simulation_run(run.simulation);
		ask_actors(&run, &outcome);
	}
	if (run.simulation != NULL) {
		end_simulation(&run, &outcome);
		if (ok && !outcome.whole && !command->quiet)
			tell_broken(&run, command);
		simulation_destroy(run.simulation);
	}
	if (!sim_torture_is_child(command->sim.torture))
		agent_setup_remove(&run.setup);
	if (ok)
		*ret_outcome = outcome;
	return ok;
}
