#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "sim_agent_internal.h"
#include "torture.h"

enum {
	LOG_RING_BYTES = 1024 * 1024,
	RESTART_LOW_MS = 300,
	RESTART_HIGH_MS = 8000,
	FREEZE_HIGH_MS = 15000,
	PARTITION_HIGH_MS = 90000,
	FAIL_WITHIN = 400, /* allocations or calls */
	AGENT_NET = 3,     /* 10.3.0.x */
	SMALL_QUEUES = 6,  /* one agent in so many has one */
	SMALL_QUEUE_EVENTS = 30,
};

/* ---- what is the agent's own ---- */

static void enter(struct sim_agent *self)
{
	sim_torture_before(simulation_options(self->simulation)->torture, self->name, self->loop,
	                   &self->fail_allocation_in);
	self->blocks_before = memory_block_count();
	memory_fail_at(self->fail_allocation_in);
}

static void leave(struct sim_agent *self)
{
	unsigned long used = memory_allocation_count();

	memory_fail_at(0);
	sim_torture_after(simulation_options(self->simulation)->torture, self->name, self->loop, used);
	self->blocks += (long)(memory_block_count() - self->blocks_before);
	if (self->fail_allocation_in == 0)
		return;
	if (used < self->fail_allocation_in) {
		self->fail_allocation_in -= used;
		return;
	}
	self->fail_allocation_in = 0;
	self->starved = true;
	self->counts->failed_allocations++;
	sim_world_note(simulation_world(self->simulation), "%s: an allocation failed", self->name);
}

static void watch_turn(void *context, bool begins)
{
	struct sim_agent *self = context;

	if (begins) {
		enter(self);
		self->counts->turns++;
		self->turns_this_second++;
	} else {
		leave(self);
		sim_agent_note_bills(self);
	}
}

/* ---- processes ---- */

static int64_t wall_ns(void *context)
{
	return loop_wall_ns(context);
}

/* Nothing of the process may be left. */
static void free_process(struct sim_agent *self, bool had_started)
{
	const struct sim_world *world = simulation_world(self->simulation);

	enter(self);
	if (had_started)
		agent_dismantle(&self->agent);
	if (self->log_sink != NULL)
		log_sink_destroy(self->log_sink, 0);
	self->log_sink = NULL;
	if (self->loop != NULL)
		loop_destroy(self->loop);
	self->loop = NULL;
	leave(self);
	self->agent = (struct agent){ .arguments = NULL };
	self->life = NULL;
	self->runs = false;
	if (sim_world_leaked_sockets(world) > 0)
		simulation_broken(self->simulation, "descriptors", "%s left %zu sockets behind", self->name,
		                  sim_world_leaked_sockets(world));
	if (sim_world_leaked_timers(world) > 0)
		simulation_broken(self->simulation, "timers", "%s left %zu timers behind", self->name,
		                  sim_world_leaked_timers(world));
	if (self->blocks != 0)
		simulation_broken(self->simulation, "memory", "%s left %ld blocks of memory behind", self->name,
		                  self->blocks);
}

/* A name for this life of the agent, which its events carry, and a configuration with it. */
static bool begin_life(struct sim_agent *self, struct error *err)
{
	const struct sim_torture *torture = simulation_options(self->simulation)->torture;

	/* Torture's children share the folder, and each has lives of its own. */
	(void)snprintf(self->config_path, sizeof self->config_path, "%s/%s-%ld.json", self->options.setup->folder,
	               self->name, sim_torture_is_child(torture) ? (long)getpid() : 0);
	(void)snprintf(self->life_name, sizeof self->life_name, "%s-%u", self->name, self->counts->starts);
	self->life =
		sim_life_begin(sim_receiver_bills(self->options.receiver), self->life_name, loop_wall_ns(self->loop));
	if (self->life != NULL && self->arguments.event_queue_events != 0)
		sim_life_bound(self->life, self->arguments.event_queue_events);
	return self->life != NULL &&
	       sim_receiver_write_config(self->options.setup, self->life_name, self->config_path, err);
}

static bool start_process(struct sim_agent *self, struct error *err)
{
	struct address address = { .bytes = { 10, AGENT_NET, 0, (uint8_t)(1 + self->options.node) } };

	self->blocks = 0;
	self->starved = false;
	self->clock_error_ns = 0;
	self->frozen_until_ns = 0;
	self->ending = false;
	self->quiet_checks = 0;
	self->is_missing = false;
	self->agent = (struct agent){ .arguments = &self->arguments, .signals = -1 };
	self->counts->starts++;
	enter(self);
	self->loop = loop_sim_create(simulation_world(self->simulation), self->name, &address, err);
	if (self->loop != NULL && self->log_descriptor >= 0)
		self->log_sink = log_sink_create(self->log_descriptor, LOG_FORMAT_JSON, LOG_INFO, LOG_RING_BYTES,
		                                 wall_ns, self->loop, err);
	leave(self);
	if (self->loop == NULL || (self->log_descriptor >= 0 && self->log_sink == NULL) || !begin_life(self, err)) {
		free_process(self, false);
		return false;
	}
	sim_world_note(simulation_world(self->simulation), "%s: starts", self->name);
	loop_sim_set_watcher(self->loop, watch_turn, self);
	self->agent.loop = self->loop;
	self->agent.log_sink = self->log_sink;
	self->runs = true;
	enter(self);
	agent_prepare(&self->agent);
	(void)agent_start(&self->agent); /* if it fails, the loop is stopped */
	leave(self);
	return true;
}

static void start_later(struct sim_agent *self)
{
	self->start_again_ns =
		simulation_now_ns(self->simulation) +
		rng_between(sim_world_rng(simulation_world(self->simulation)), RESTART_LOW_MS, RESTART_HIGH_MS) *
			NS_PER_MS;
}

static void end_life(struct sim_agent *self, bool in_good_order)
{
	uint64_t took_ns = simulation_now_ns(self->simulation) - self->told_to_end_ns;

	if (self->life != NULL)
		sim_life_end(self->life, in_good_order && took_ns < (uint64_t)(AGENT_GRACE_S - 1) * NS_PER_S);
}

static void crash(struct sim_agent *self, enum sim_crash how)
{
	self->counts->crashes++;
	end_life(self, false);
	loop_sim_crash(self->loop, how);
	free_process(self, true);
	start_later(self);
}

/* The process ended by itself: as told, or because of a fatal failure. */
static void end_process(struct sim_agent *self)
{
	bool fatal = self->agent.fatal;

	sim_world_note(simulation_world(self->simulation), "%s: ends (%s)", self->name, fatal ? "fatal" : "as told");
	if (fatal)
		self->counts->fatal_exits++;
	else
		self->counts->orderly_ends++;
	if (!fatal && !self->ending)
		simulation_broken(self->simulation, "lives", "%s ended and nobody asked it to", self->name);
	end_life(self, !fatal);
	loop_sim_crash(self->loop, SIM_CRASH_END);
	free_process(self, true);
	start_later(self);
}

static void check(void *context, struct simulation *simulation)
{
	struct sim_agent *self = context;
	struct error err;

	if (self->runs && loop_sim_stopped(self->loop)) {
		end_process(self);
		return;
	}
	if (!self->runs && simulation_now_ns(simulation) >= self->start_again_ns && !start_process(self, &err)) {
		/* Out of memory at once: as a process that dies while it starts. */
		start_later(self);
		return;
	}
	if (self->runs)
		sim_agent_check(self, simulation);
}

/* ---- misfortunes ---- */

static struct loop *pick_peer(struct sim_agent *self, struct rng *rng)
{
	struct sim_cluster *cluster = self->options.cluster;

	switch (rng_between(rng, 0, 3)) {
	case 0:
		return NULL;
	case 1:
		return sim_cluster_loop(cluster, 0);
	default:
		return sim_cluster_loop(cluster, (unsigned)rng_between(rng, 0, sim_cluster_loop_count(cluster)));
	}
}

static void step_clock(struct sim_agent *self, int64_t by_ns)
{
	loop_sim_step_clock(self->loop, by_ns);
	if (self->life != NULL)
		sim_life_clock_set(self->life);
	self->clock_error_ns += by_ns;
}

static const char *const MISFORTUNES[] = { "crash",      "freeze",          "partition", "partition",
	                                   "step-clock", "told-to-end",     "cut",       "cut",
	                                   "cut",        "fail-allocation", "fail-call", NULL };

static void strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng)
{
	struct sim_agent *self = context;
	uint64_t now_ns = simulation_now_ns(simulation);

	if (!self->runs)
		return;
	switch (misfortune) {
	case 0:
		if (rng_between(rng, 0, self->patience) == 0)
			crash(self, (enum sim_crash)rng_between(rng, 0, 3));
		return;
	case 1:
		now_ns += rng_between(rng, 100, FREEZE_HIGH_MS) * NS_PER_MS;
		if (now_ns > self->frozen_until_ns)
			self->frozen_until_ns = now_ns;
		loop_sim_freeze(self->loop, now_ns);
		return;
	case 2:
	case 3:
		loop_sim_partition(self->loop, pick_peer(self, rng),
		                   now_ns + rng_between(rng, 100, PARTITION_HIGH_MS) * NS_PER_MS);
		return;
	case 4:
		step_clock(self, (int64_t)(rng_between(rng, 0, 172800) * NS_PER_S) - INT64_C(86400) * NS_PER_S);
		return;
	case 5:
		if (rng_between(rng, 0, self->patience) != 0)
			return;
		sim_world_note(simulation_world(simulation), "%s: is told to end", self->name);
		if (!self->ending)
			self->told_to_end_ns = now_ns;
		self->ending = true;
		enter(self);
		agent_stop(&self->agent);
		leave(self);
		sim_agent_note_bills(self);
		return;
	case 9:
		if (simulation_options(simulation)->memory)
			self->fail_allocation_in = rng_between(rng, 1, FAIL_WITHIN);
		return;
	case 10:
		if (simulation_options(simulation)->memory) {
			self->counts->failed_calls++;
			loop_sim_fail_call(self->loop, rng_between(rng, 1, FAIL_WITHIN));
		}
		return;
	default:
		(void)loop_sim_cut_connection(self->loop, rng_between(rng, 0, 3) == 0 ? 0 : rng_between(rng, 0, 20000),
		                              rng_between(rng, 0, 2) == 0);
		return;
	}
}

static void calm(void *context, struct simulation *simulation)
{
	struct sim_agent *self = context;

	self->fail_allocation_in = 0;
	if (self->runs) {
		loop_sim_fail_call(self->loop, 0);
		step_clock(self, -self->clock_error_ns); /* or certificates aren't valid */
	}
	if (!self->runs && self->start_again_ns > simulation_now_ns(simulation) + NS_PER_S)
		self->start_again_ns = simulation_now_ns(simulation) + NS_PER_S;
}

/* ---- making it ---- */

static void destroy(void *context, struct simulation *simulation)
{
	struct sim_agent *self = context;

	(void)simulation;
	if (self->runs) {
		loop_sim_crash(self->loop, SIM_CRASH_END);
		free_process(self, true);
	}
	if (self->log_descriptor >= 0)
		(void)close(self->log_descriptor);
	memory_release(self);
}

static bool set_texts(struct sim_agent *self, struct error *err)
{
	struct address api = sim_cluster_api_address(self->options.cluster);
	const struct sim_options *options = simulation_options(self->simulation);

	(void)snprintf(self->name, sizeof self->name, "agent-%c", (char)('a' + (int)(self->options.node % 26)));
	(void)snprintf(self->node, sizeof self->node, "node-%c", (char)('a' + (int)(self->options.node % 26)));
	(void)snprintf(self->ip, sizeof self->ip, "10.%d.0.%u", AGENT_NET, 1 + self->options.node);
	address_print_host(&api, false, self->api_host);
	(void)snprintf(self->api_port, sizeof self->api_port, "%u", (unsigned)api.port);
	(void)snprintf(self->credentials_dir, sizeof self->credentials_dir, "%s/serviceaccount",
	               self->options.setup->folder);
	self->arguments = (struct agent_arguments){
		.config_path = self->config_path,
		.node_name = self->node,
		.pod_ip = self->ip,
		.host_name = self->life_name,
		.kubernetes_host = self->api_host,
		.kubernetes_port = self->api_port,
		.credentials_dir = self->credentials_dir,
		.kubernetes_plain = !options->tls,
		.listen_address = self->ip,
		.api_qps = AGENT_API_QPS,
		.api_burst = AGENT_API_BURST,
		.event_queue_events = self->small_queue ? SMALL_QUEUE_EVENTS : 0,
		.grace_ns = (uint64_t)AGENT_GRACE_S * NS_PER_S,
		.log_level = LOG_INFO,
		.log_format = LOG_FORMAT_JSON,
	};
	self->log_descriptor = -1;
	if (options->log_path == NULL)
		return true;
	self->log_descriptor = open(options->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	return self->log_descriptor >= 0 || error_set_errno(err, errno, options->log_path);
}

bool sim_agent_create(struct simulation *simulation, const struct sim_agent_options *options, struct error *err)
{
	struct sim_agent *self = memory_allocate(sizeof *self);
	struct sim_actor actor = {
		.name = self == NULL ? "" : self->name,
		.context = self,
		.misfortunes = MISFORTUNES,
		.strike = strike,
		.calm = calm,
		.check = check,
		.check_second = sim_agent_check_second,
		.check_settled = sim_agent_check_settled,
		.destroy = destroy,
	};

	if (self == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for an agent");
	self->simulation = simulation;
	self->counts = options->counts;
	/* In some runs processes are killed often, in others hardly ever: then they get old. */
	self->patience = (unsigned)rng_between(sim_world_rng(simulation_world(simulation)), 1, 10);
	self->options = *options;
	self->small_queue = rng_between(sim_world_rng(simulation_world(simulation)), 0, SMALL_QUEUES) == 0;
	if (!set_texts(self, err) || !simulation_add(simulation, &actor)) {
		memory_release(self);
		return false;
	}
	return true;
}
