#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "sim_agent_internal.h"
#include "torture.h"

enum {
	AGENT_NET = 3,    /* 10.3.0.x */
	SMALL_QUEUES = 6, /* one agent in so many has one */
	SMALL_QUEUE_EVENTS = 30,
};

/* ---- its lives ---- */

/* A name for this life of the agent, which its events carry, and a configuration with it. */
static bool begin_life(struct sim_agent *self, struct error *err)
{
	const struct sim_torture *torture = simulation_options(self->simulation)->torture;

	/* Torture's children share the folder, and each has lives of its own. */
	(void)snprintf(self->config_path, sizeof self->config_path, "%s/%s-%ld.json", self->options.setup->folder,
	               self->name, sim_torture_is_child(torture) ? (long)getpid() : 0);
	(void)snprintf(self->life_name, sizeof self->life_name, "%s-%u", self->name, self->options.counts->starts);
	self->life = sim_life_begin(sim_receiver_bills(self->options.receiver), self->life_name,
	                            loop_wall_ns(self->process.loop));
	if (self->life != NULL && self->arguments.event_queue_events != 0)
		sim_life_bound(self->life, self->arguments.event_queue_events);
	return self->life != NULL &&
	       sim_receiver_write_config(self->options.setup, self->life_name, self->config_path, err);
}

static struct loop *pick_peer(void *context, struct rng *rng)
{
	const struct sim_agent *self = context;
	const struct sim_cluster *cluster = self->options.cluster;

	switch (rng_between(rng, 0, 3)) {
	case 0:
		return NULL;
	case 1:
		return sim_cluster_loop(cluster, 0);
	default:
		return sim_cluster_loop(cluster, (unsigned)rng_between(rng, 0, sim_cluster_loop_count(cluster)));
	}
}

static bool prepare(void *context, struct error *err)
{
	struct sim_agent *self = context;

	self->starved = false;
	self->agent = (struct agent){ .arguments = &self->arguments,
		                      .signals = -1,
		                      .loop = self->process.loop,
		                      .log_sink = self->process.log_sink };
	return begin_life(self, err);
}

static void start(void *context)
{
	struct sim_agent *self = context;

	agent_prepare(&self->agent);
	(void)agent_start(&self->agent); /* if it fails, the loop is stopped */
}

static bool is_fatal(const void *context)
{
	const struct sim_agent *self = context;

	return self->agent.fatal;
}

static void on_end(void *context, enum sim_process_end how)
{
	struct sim_agent *self = context;
	uint64_t took_ns = simulation_now_ns(self->simulation) - self->process.told_to_end_ns;

	sim_life_end(self->life, how == SIM_PROCESS_TOLD && took_ns < (uint64_t)(AGENT_GRACE_S - 1) * NS_PER_S);
}

static void dismantle(void *context)
{
	struct sim_agent *self = context;

	agent_dismantle(&self->agent);
	self->agent = (struct agent){ .arguments = NULL };
	self->life = NULL;
}

static void on_starved(void *context)
{
	struct sim_agent *self = context;

	self->starved = true;
}

static void after_turn(void *context)
{
	sim_agent_note_bills(context);
}

static void on_clock_set(void *context)
{
	const struct sim_agent *self = context;

	sim_life_clock_set(self->life);
}

static void on_told_to_end(void *context, struct rng *rng)
{
	struct sim_agent *self = context;

	(void)rng;
	sim_process_note_told(&self->process);
	sim_process_enter(&self->process);
	agent_stop(&self->agent);
	sim_process_leave(&self->process);
	sim_agent_note_bills(self);
}

/* ---- as an actor ---- */

static const char *const MISFORTUNES[] = { SIM_PROCESS_MISFORTUNE_NAMES, NULL };

static void strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng)
{
	struct sim_agent *self = context;

	(void)simulation;
	if (self->process.runs)
		sim_process_strike(&self->process, misfortune, rng);
}

static void calm(void *context, struct simulation *simulation)
{
	struct sim_agent *self = context;

	(void)simulation;
	sim_process_calm(&self->process);
}

static void check(void *context, struct simulation *simulation)
{
	struct sim_agent *self = context;

	(void)simulation;
	(void)sim_process_go_on(&self->process);
}

static void destroy(void *context, struct simulation *simulation)
{
	struct sim_agent *self = context;

	(void)simulation;
	sim_process_destroy(&self->process);
	memory_release(self);
}

/* ---- making it ---- */

static void set_texts(struct sim_agent *self)
{
	struct address api = sim_cluster_api_address(self->options.cluster);

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
		.kubernetes_plain = !simulation_options(self->simulation)->tls,
		.listen_address = self->ip,
		.api_qps = AGENT_API_QPS,
		.api_burst = AGENT_API_BURST,
		.event_queue_events = self->small_queue ? SMALL_QUEUE_EVENTS : 0,
		.grace_ns = (uint64_t)AGENT_GRACE_S * NS_PER_S,
		.log_level = LOG_INFO,
		.log_format = LOG_FORMAT_JSON,
	};
}

static bool init_process(struct sim_agent *self, struct error *err)
{
	static const struct sim_process_handler HANDLER = {
		.prepare = prepare,
		.start = start,
		.is_fatal = is_fatal,
		.on_end = on_end,
		.dismantle = dismantle,
		.on_told_to_end = on_told_to_end,
		.pick_peer = pick_peer,
		.on_starved = on_starved,
		.after_turn = after_turn,
		.on_clock_set = on_clock_set,
	};
	const struct sim_process_options options = {
		.name = self->name,
		.address = { .bytes = { 10, AGENT_NET, 0, (uint8_t)(1 + self->options.node) } },
		.log_level = LOG_INFO,
		.handler = &HANDLER,
		.context = self,
		.counts = self->options.counts,
	};

	return sim_process_init(&self->process, self->simulation, &options, err);
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
	self->options = *options;
	if (!init_process(self, err)) {
		memory_release(self);
		return false;
	}
	self->small_queue = rng_between(sim_world_rng(simulation_world(simulation)), 0, SMALL_QUEUES) == 0;
	set_texts(self);
	if (!simulation_add(simulation, &actor)) {
		destroy(self, simulation);
		return error_set(err, ERROR_LIMIT, "too many actors");
	}
	return true;
}
