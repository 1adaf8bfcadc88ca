#include "agent/runner_internal.h"
#include "agent/supervisor_internal.h"
#include "sim_agent_internal.h"

enum {
	/* How long a request may take, at most: its own timeout (spec agent-runtime 2.2), and what a turn may be late. */
	PLUGIN_REQUEST_S = 10,
	NEONVM_REQUEST_S = 10,
	MONITOR_REQUEST_S = 5,
	LATE_S = 2,       /* what a turn may be late */
	TURNS_MAX = 2000, /* in one second, of 500 VMs even */
	/* When all is quiet; most when all VMs are labelled at once: 270 were seen of 3 VMs, 676 of 19. */
	QUIET_TURNS = 350,
	QUIET_TURNS_PER_VM = 40,
	BLOCKS_SLACK = 400,  /* caches and pools that fill up */
	BLOCKS_PER_VM = 120, /* that came since; seen: 85 */
	SOCKETS_FIXED = 3 + 2 + 8 + 8,
	SOCKETS_PER_VM = 4, /* the monitor's, two pages' */
	TIMERS_FIXED = 40,
	TIMERS_PER_VM = 30,
};

/* ---- requests under way ---- */

static const struct {
	const char *name;
	unsigned seconds;
} REQUESTS[EXECUTOR_WORKERS] = {
	[EXECUTOR_PLUGIN] = { "plugin", PLUGIN_REQUEST_S },
	[EXECUTOR_NEONVM] = { "NeonVM", NEONVM_REQUEST_S },
	[EXECUTOR_MONITOR_DOWNSCALE] = { "monitor downscale", MONITOR_REQUEST_S },
	[EXECUTOR_MONITOR_UPSCALE] = { "monitor upscale", MONITOR_REQUEST_S },
};

static void check_workers(struct sim_agent *self, const struct pod *pod)
{
	const struct executor *executor = &pod->runner->executor;
	int64_t now_ns = agent_clock_now(&self->agent.clock);

	for (unsigned i = 0; i < EXECUTOR_WORKERS; i++) {
		const struct executor_worker *worker = &executor->workers[i];
		int64_t most_ns = (int64_t)(REQUESTS[i].seconds + LATE_S) * NS_PER_S;

		/* A process that is stopped notices no deadline. */
		if (worker->busy && now_ns - worker->started_at_ns > most_ns &&
		    simulation_now_ns(self->simulation) > self->process.frozen_until_ns + (uint64_t)LATE_S * NS_PER_S)
			simulation_broken(self->simulation, "request-ends",
			                  "%s: the %s request of %s is under way for %lld s", self->name,
			                  REQUESTS[i].name, pod->pod_name,
			                  (long long)((now_ns - worker->started_at_ns) / NS_PER_S));
	}
}

/* What the core believes to be under way is what the executor has under way. */
static void check_core(struct sim_agent *self, const struct pod *pod)
{
	const struct executor *executor = &pod->runner->executor;
	const struct executor_worker *workers = executor->workers;
	const struct core *core = &executor->core;
	const char *wrong = NULL;

	if (core->plugin.ongoing_request != workers[EXECUTOR_PLUGIN].busy)
		wrong = "plugin";
	else if (core->neonvm.ongoing_requested.present != workers[EXECUTOR_NEONVM].busy)
		wrong = "NeonVM";
	/* After a lost connection the worker may still wait for its call to end, of which the core knows no more. */
	else if (core->monitor.ongoing == CORE_MONITOR_DOWNSCALE && !workers[EXECUTOR_MONITOR_DOWNSCALE].busy)
		wrong = "monitor downscale";
	else if (core->monitor.ongoing == CORE_MONITOR_UPSCALE && !workers[EXECUTOR_MONITOR_UPSCALE].busy)
		wrong = "monitor upscale";
	if (wrong != NULL)
		simulation_broken(self->simulation, "request-ends",
		                  "%s: core and executor of %s differ about a %s request", self->name, pod->pod_name,
		                  wrong);
}

/* ---- runners ---- */

static void count_runners(const struct sim_agent *self, unsigned *ret_running)
{
	const struct table *pods = &self->agent.supervisor->pods;
	unsigned running = 0;

	for (struct table_entry *entry = table_next(pods, NULL); entry != NULL; entry = table_next(pods, entry)) {
		const struct pod *pod = entry->value;

		running += pod->runner != NULL && pod->status.end.exit == RUNNER_NOT_ENDED ? 1 : 0;
	}
	*ret_running = running;
}

static void check_runners(struct sim_agent *self)
{
	unsigned wanted = sim_cluster_vms_on_node(self->options.cluster, self->options.node);
	unsigned running = 0;

	if (self->process.runs && self->agent.supervisor != NULL)
		count_runners(self, &running);
	if (simulation_is_calm(self->simulation, SIM_KNOWN_S) && running != wanted)
		simulation_broken(self->simulation, "runners",
		                  "%s has %u runners for %u VMs, %d s after the last fault", self->name, running,
		                  wanted, SIM_KNOWN_S);
}

/* The label that was put on every VM, or taken off, must have come through by now. */
static void check_mark(struct sim_agent *self, const struct pod *pod)
{
	bool marked;

	if (sim_cluster_mark(self->options.cluster, &marked) && pod->status.vm_info.auto_migration_enabled != marked)
		simulation_broken(self->simulation, "watches", "%s doesn't know what %s looks like now", self->name,
		                  pod->pod_name);
}

/* One that broke may have been started anew already. */
static void check_no_panic(struct sim_agent *self, const struct pod *pod)
{
	if ((pod->status.restarts > 0 || pod->status.end.exit == RUNNER_PANICKED) && !self->starved)
		simulation_broken(self->simulation, "no-panic", "%s: the runner of %s broke", self->name,
		                  pod->pod_name);
}

static void check_pods(struct sim_agent *self)
{
	const struct table *pods = &self->agent.supervisor->pods;

	for (struct table_entry *entry = table_next(pods, NULL); entry != NULL; entry = table_next(pods, entry)) {
		const struct pod *pod = entry->value;

		check_no_panic(self, pod);
		if (pod->runner == NULL || pod->runner->stopped)
			continue;
		check_workers(self, pod);
		check_core(self, pod);
		check_mark(self, pod);
	}
}

/* Spec agent-runtime 9.4. */
static void check_scheduler(struct sim_agent *self)
{
	const struct scheduler_peer *scheduler = scheduler_tracking_current(self->agent.schedulers);

	if (scheduler == NULL || !sim_cluster_may_ask(self->options.cluster, scheduler->name))
		simulation_broken(self->simulation, "scheduler", "%s asks %s, which isn't the newest that is ready",
		                  self->name, scheduler == NULL ? "no scheduler" : scheduler->name);
}

void sim_agent_check_second(void *context, struct simulation *simulation)
{
	struct sim_agent *self = context;
	bool quiet = simulation_is_calm(simulation, SIM_KNOWN_S);
	unsigned vms = sim_cluster_vms_on_node(self->options.cluster, self->options.node);

	sim_process_check_turns(&self->process, quiet ? QUIET_TURNS + vms * QUIET_TURNS_PER_VM : TURNS_MAX);
	sim_process_check_end(&self->process, (uint64_t)AGENT_GRACE_S * NS_PER_S);
	check_runners(self);
	if (!self->process.runs || self->agent.supervisor == NULL || self->agent.stopping)
		return;
	check_pods(self);
	if (!quiet)
		return;
	check_scheduler(self);
	sim_agent_check_view(self);
}

/* ---- when all is quiet ---- */

void sim_agent_check_settled(void *context, struct simulation *simulation)
{
	struct sim_agent *self = context;
	unsigned vms = sim_cluster_vms_on_node(self->options.cluster, self->options.node);
	unsigned more_vms;

	(void)simulation;
	if (!self->process.runs)
		return; /* check_runners has said so */
	if (self->process.quiet_checks == 0)
		self->first_quiet_vms = vms;
	more_vms = vms > self->first_quiet_vms ? vms - self->first_quiet_vms : 0;
	sim_process_check_quiet(&self->process,
	                        &(struct sim_process_limits){ .sockets = SOCKETS_FIXED + (size_t)vms * SOCKETS_PER_VM,
	                                                      .timers = TIMERS_FIXED + (size_t)vms * TIMERS_PER_VM,
	                                                      .more_blocks = BLOCKS_SLACK + more_vms * BLOCKS_PER_VM });
	sim_life_check_settled(self->life);
}
