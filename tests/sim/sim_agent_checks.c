#include "agent/runner_internal.h"
#include "agent/supervisor_internal.h"
#include "sim_agent_internal.h"

enum {
	/* How long a request may take, at most: its own timeout (spec agent-runtime 2.2), and what a turn may be late. */
	PLUGIN_REQUEST_S = 10,
	NEONVM_REQUEST_S = 10,
	MONITOR_REQUEST_S = 5,
	LATE_S = 2,            /* what a turn may be late */
	RUNNERS_S = 65,        /* until there is a runner for each VM, after the last fault */
	TURNS_MAX = 2000,      /* in one second, of 500 VMs even */
	QUIET_TURNS_MAX = 500, /* when all is quiet; seen: 200 */
	BLOCKS_SLACK = 400,    /* caches and pools that fill up */
	BLOCKS_PER_VM = 120,   /* that came since; seen: 85 */
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
		    simulation_now_ns(self->simulation) > self->frozen_until_ns + (uint64_t)LATE_S * NS_PER_S)
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
	uint64_t now_ns = simulation_now_ns(self->simulation);
	uint64_t since_ns = simulation_calm_since_ns(self->simulation);

	if (self->runs && self->agent.supervisor != NULL)
		count_runners(self, &running);
	if (since_ns != UINT64_MAX && now_ns >= since_ns + (uint64_t)RUNNERS_S * NS_PER_S && running != wanted)
		simulation_broken(self->simulation, "runners",
		                  "%s has %u runners for %u VMs, %d s after the last fault", self->name, running,
		                  wanted, RUNNERS_S);
}

/* The label that was put on every VM, or taken off, must have come through by now. */
static void check_mark(struct sim_agent *self, const struct pod *pod)
{
	bool marked;

	if (sim_cluster_mark(self->options.cluster, &marked) && pod->status.vm_info.auto_migration_enabled != marked)
		simulation_broken(self->simulation, "watches", "%s doesn't know what %s looks like now", self->name,
		                  pod->pod_name);
}

static void check_pods(struct sim_agent *self)
{
	const struct table *pods = &self->agent.supervisor->pods;

	for (struct table_entry *entry = table_next(pods, NULL); entry != NULL; entry = table_next(pods, entry)) {
		const struct pod *pod = entry->value;

		if (pod->runner == NULL || pod->runner->stopped)
			continue;
		check_workers(self, pod);
		check_core(self, pod);
		check_mark(self, pod);
		if (pod->status.end.exit == RUNNER_PANICKED && !self->starved)
			simulation_broken(self->simulation, "no-panic", "%s: the runner of %s broke", self->name,
			                  pod->pod_name);
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

void sim_agent_check(void *context, struct simulation *simulation)
{
	(void)context;
	(void)simulation;
}

void sim_agent_check_second(void *context, struct simulation *simulation)
{
	struct sim_agent *self = context;
	uint64_t calm_ns = simulation_calm_since_ns(simulation);
	bool quiet = calm_ns != UINT64_MAX && simulation_now_ns(simulation) > calm_ns + (uint64_t)RUNNERS_S * NS_PER_S;

	if (self->turns_this_second > self->counts->most_turns_per_second)
		self->counts->most_turns_per_second = self->turns_this_second;
	if (self->turns_this_second > (quiet ? QUIET_TURNS_MAX : TURNS_MAX))
		simulation_broken(simulation, "no-busy-loop", "%s turned %llu times in one second", self->name,
		                  (unsigned long long)self->turns_this_second);
	self->turns_this_second = 0;
	check_runners(self);
	if (!self->runs || self->agent.supervisor == NULL || self->agent.stopping)
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
	size_t sockets, timers;

	if (!self->runs)
		return; /* check_runners has said so */
	sockets = loop_sim_socket_count(self->loop);
	timers = loop_sim_timer_count(self->loop);
	if (sockets > SOCKETS_FIXED + (size_t)vms * SOCKETS_PER_VM)
		simulation_broken(simulation, "descriptors", "%s has %zu sockets open", self->name, sockets);
	if (timers > TIMERS_FIXED + (size_t)vms * TIMERS_PER_VM)
		simulation_broken(simulation, "timers", "%s has %zu timers running", self->name, timers);
	if (self->quiet_checks++ == 0) {
		self->first_quiet_blocks = (unsigned long)self->blocks;
		self->first_quiet_vms = vms;
	}
	more_vms = vms > self->first_quiet_vms ? vms - self->first_quiet_vms : 0;
	if (self->blocks > (long)(self->first_quiet_blocks + BLOCKS_SLACK + more_vms * BLOCKS_PER_VM))
		simulation_broken(simulation, "memory", "%s has %ld blocks of memory, and %lu when it was quiet first",
		                  self->name, self->blocks, self->first_quiet_blocks);
	if (self->life != NULL)
		sim_life_check_settled(self->life);
	if (sockets > self->counts->quiet_sockets)
		self->counts->quiet_sockets = sockets;
	if (timers > self->counts->quiet_timers)
		self->counts->quiet_timers = timers;
	if ((unsigned long)self->blocks > self->counts->quiet_blocks)
		self->counts->quiet_blocks = (unsigned long)self->blocks;
}
