#include "sim_extender.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "sandbox/storage_objects.h"
#include "sim_extender_internal.h"
#include "torture.h"

enum {
	LOG_RING_BYTES = 1024 * 1024,
	RESTART_LOW_MS = 300,
	RESTART_HIGH_MS = 8000,
	FREEZE_HIGH_MS = 15000,
	PARTITION_HIGH_MS = 90000,
	FAIL_WITHIN = 400, /* allocations or calls */
	END_IN_MS = 100,
	STARVED_S = 20, /* after a failed allocation a call may still be without an answer */
};

static const char NAME[] = "extender";
static const char NODE[] = "node-a";

static struct rng *rng_of(const struct sim_extender *self)
{
	return sim_world_rng(simulation_world(self->simulation));
}

static bool may_starve(const struct sim_extender *self)
{
	const struct sim_options *options = simulation_options(self->simulation);

	return options->memory || sim_torture_is_child(options->torture);
}

/* ---- what is the extender's own ---- */

static void enter(struct sim_extender *self)
{
	sim_torture_before(simulation_options(self->simulation)->torture, NAME, self->loop, &self->fail_allocation_in);
	self->blocks_before = memory_block_count();
	memory_fail_at(self->fail_allocation_in);
}

static void starve(const struct sim_extender *self)
{
	sim_answers_excuse_starved(sim_pods_answers(self->options.pods),
	                           simulation_now_ns(self->simulation) + (uint64_t)STARVED_S * NS_PER_S);
}

static void leave(struct sim_extender *self)
{
	unsigned long used = memory_allocation_count();

	memory_fail_at(0);
	sim_torture_after(simulation_options(self->simulation)->torture, NAME, self->loop, used);
	self->blocks += (long)(memory_block_count() - self->blocks_before);
	if (sim_world_fault_count(simulation_world(self->simulation), SIM_FAULT_FAILED_CALL) != self->failed_calls) {
		self->failed_calls = sim_world_fault_count(simulation_world(self->simulation), SIM_FAULT_FAILED_CALL);
		starve(self);
	}
	if (self->fail_allocation_in == 0)
		return;
	if (used < self->fail_allocation_in) {
		self->fail_allocation_in -= used;
		return;
	}
	self->fail_allocation_in = 0;
	starve(self);
	self->counts->failed_allocations++;
	sim_world_note(simulation_world(self->simulation), "extender: an allocation failed");
}

static void watch_turn(void *context, bool begins)
{
	struct sim_extender *self = context;

	if (begins) {
		enter(self);
		self->counts->turns++;
		self->turns_this_second++;
	} else {
		leave(self);
	}
}

/* ---- processes ---- */

static int64_t wall_ns(void *context)
{
	return loop_wall_ns(context);
}

/* Nothing of the process may be left. */
static void free_process(struct sim_extender *self, bool had_started)
{
	const struct sim_world *world = simulation_world(self->simulation);

	enter(self);
	if (had_started)
		extender_dismantle(&self->extender);
	if (self->log_sink != NULL)
		log_sink_destroy(self->log_sink, 0);
	self->log_sink = NULL;
	if (self->loop != NULL)
		loop_destroy(self->loop);
	self->loop = NULL;
	leave(self);
	self->extender = (struct extender){ .arguments = NULL };
	self->runs = false;
	if (sim_world_leaked_sockets(world) > 0)
		simulation_broken(self->simulation, "descriptors", "the extender left %zu sockets behind",
		                  sim_world_leaked_sockets(world));
	if (sim_world_leaked_timers(world) > 0)
		simulation_broken(self->simulation, "timers", "the extender left %zu timers behind",
		                  sim_world_leaked_timers(world));
	if (self->blocks != 0)
		simulation_broken(self->simulation, "memory", "the extender left %ld blocks of memory behind",
		                  self->blocks);
}

static void forget_process(struct sim_extender *self)
{
	self->blocks = 0;
	self->ending = false;
	self->end_at_ns = 0;
	self->clock_error_ns = 0;
	self->frozen_until_ns = 0;
	self->held_since_ns = self->different_since_ns = 0;
	self->quiet_checks = 0;
	self->started_ns = simulation_now_ns(self->simulation);
}

static bool start_process(struct sim_extender *self, struct error *err)
{
	struct address address = sim_pods_extender_address(0);

	forget_process(self);
	self->extender = (struct extender){ .arguments = &self->arguments, .signals = -1 };
	self->counts->starts++;
	enter(self);
	self->loop = loop_sim_create(simulation_world(self->simulation), NAME, &address, err);
	if (self->loop != NULL && self->log_descriptor >= 0)
		self->log_sink = log_sink_create(self->log_descriptor, LOG_FORMAT_JSON, LOG_DEBUG, LOG_RING_BYTES,
		                                 wall_ns, self->loop, err);
	leave(self);
	if (self->loop == NULL || (self->log_descriptor >= 0 && self->log_sink == NULL)) {
		free_process(self, false);
		return false;
	}
	sim_world_note(simulation_world(self->simulation), "extender: starts");
	loop_sim_set_watcher(self->loop, watch_turn, self);
	self->extender.loop = self->loop;
	self->extender.log_sink = self->log_sink;
	self->runs = true;
	enter(self);
	(void)extender_start(&self->extender); /* if it fails, the loop is stopped */
	leave(self);
	return true;
}

static void start_later(struct sim_extender *self)
{
	self->start_again_ns = simulation_now_ns(self->simulation) +
	                       rng_between(rng_of(self), RESTART_LOW_MS, RESTART_HIGH_MS) * NS_PER_MS;
}

static void crash(struct sim_extender *self, enum sim_crash how)
{
	self->counts->crashes++;
	loop_sim_crash(self->loop, how);
	free_process(self, true);
	start_later(self);
}

/* The process ended by itself: as told, or because of a fatal failure (spec extender P7), which takes a shortage here. */
static void end_process(struct sim_extender *self)
{
	bool fatal = self->extender.fatal;

	sim_world_note(simulation_world(self->simulation), "extender: ends (%s)", fatal ? "fatal" : "as told");
	if (fatal)
		self->counts->fatal_exits++;
	else
		self->counts->orderly_ends++;
	if (fatal ? !may_starve(self) : !self->ending)
		simulation_broken(self->simulation, "lives", "the extender ended%s and nobody asked it to",
		                  fatal ? " with a fatal failure" : "");
	loop_sim_crash(self->loop, SIM_CRASH_END);
	free_process(self, true);
	start_later(self);
}

static void tell_to_end(struct sim_extender *self);

static void check(void *context, struct simulation *simulation)
{
	struct sim_extender *self = context;
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
	if (self->runs && sim_pods_is_curious(self->options.pods))
		sim_prober_ask(self->prober, SIM_ASK_FILTER);
	if (self->runs && self->end_at_ns != 0 && simulation_now_ns(simulation) >= self->end_at_ns)
		tell_to_end(self);
	if (self->runs)
		sim_extender_check_process(self);
}

/* ---- the readiness file ---- */

static bool write_file(const char *path, const char *text, struct error *err)
{
	FILE *file = fopen(path, "w");
	bool ok;

	if (file == NULL)
		return error_set_errno(err, errno, path);
	ok = fputs(text, file) >= 0;
	return (fclose(file) == 0 && ok) || error_set_errno(err, errno, path);
}

static void set_restarted(struct sim_extender *self, bool restarted)
{
	char text[256];
	struct error err;

	(void)snprintf(
		text, sizeof text,
		"nodes:\n    - node_name: other\n      kube_scheduler: kube-scheduler-other\n      restarted: %s\n"
		"    - node_name: %s\n      kube_scheduler: kube-scheduler-%s\n      restarted: %s\n",
		restarted ? "false" : "true", NODE, NODE, restarted ? "true" : "false");
	self->restarted = restarted;
	self->flipped_ns = simulation_now_ns(self->simulation);
	if (!write_file(self->readiness_path, text, &err))
		simulation_broken(self->simulation, "simulator", "%s", err.text);
}

static void flip_readiness(struct sim_extender *self)
{
	/* Torture's children share the file. */
	if (!self->mode.patching || simulation_options(self->simulation)->torture != NULL)
		return;
	sim_world_note(simulation_world(self->simulation), "the readiness file changes");
	self->counts->readiness_flips++;
	set_restarted(self, !self->restarted);
}

/* ---- misfortunes ---- */

static struct loop *pick_peer(struct sim_extender *self, struct rng *rng)
{
	unsigned peer = (unsigned)rng_between(rng, 0, SIM_PODS_LOOPS + 1);

	return peer < SIM_PODS_LOOPS ? sim_pods_loop(self->options.pods, peer) : sim_prober_loop(self->prober);
}

static void step_clock(struct sim_extender *self, int64_t by_ns)
{
	loop_sim_step_clock(self->loop, by_ns);
	self->clock_error_ns += by_ns;
}

static void freeze(struct sim_extender *self, uint64_t until_ns)
{
	if (until_ns > self->frozen_until_ns)
		self->frozen_until_ns = until_ns;
	loop_sim_freeze(self->loop, until_ns);
}

static void tell_to_end(struct sim_extender *self)
{
	sim_world_note(simulation_world(self->simulation), "extender: is told to end");
	if (!self->ending)
		self->ending_since_ns = simulation_now_ns(self->simulation);
	self->ending = true;
	self->end_at_ns = 0;
	enter(self);
	extender_stop(&self->extender);
	leave(self);
	sim_prober_ask(self->prober, SIM_ASK_READY);
}

static const char *const MISFORTUNES[] = { "crash",       "freeze",    "partition", "partition", "step-clock",
	                                   "told-to-end", "cut",       "cut",       "cut",       "fail-allocation",
	                                   "fail-call",   "readiness", NULL };

static void strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng)
{
	struct sim_extender *self = context;
	uint64_t now_ns = simulation_now_ns(simulation);

	if (!self->runs)
		return;
	switch (misfortune) {
	case 0:
		if (rng_between(rng, 0, self->patience) == 0)
			crash(self, (enum sim_crash)rng_between(rng, 0, 3));
		return;
	case 1:
		freeze(self, now_ns + rng_between(rng, 100, FREEZE_HIGH_MS) * NS_PER_MS);
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
		if (self->ending || rng_between(rng, 0, self->patience) != 0)
			return;
		/* Mostly somebody's call is under way. */
		sim_prober_ask(self->prober, SIM_ASK_FILTER);
		self->end_at_ns = now_ns + rng_between(rng, 0, END_IN_MS) * NS_PER_MS;
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
	case 11:
		flip_readiness(self);
		return;
	default:
		(void)loop_sim_cut_connection(self->loop, rng_between(rng, 0, 3) == 0 ? 0 : rng_between(rng, 0, 20000),
		                              rng_between(rng, 0, 2) == 0);
		return;
	}
}

static void calm(void *context, struct simulation *simulation)
{
	struct sim_extender *self = context;

	self->fail_allocation_in = 0;
	self->frozen_until_ns = 0; /* the world is healed */
	if (self->runs) {
		loop_sim_fail_call(self->loop, 0);
		step_clock(self, -self->clock_error_ns);
	}
	if (!self->runs && self->start_again_ns > simulation_now_ns(simulation) + NS_PER_S)
		self->start_again_ns = simulation_now_ns(simulation) + NS_PER_S;
}

static void begin_phase(void *context, struct simulation *simulation, unsigned phase)
{
	(void)simulation;
	if (phase % 2 == 1)
		flip_readiness(context);
}

/* ---- making it ---- */

static void destroy(void *context, struct simulation *simulation)
{
	struct sim_extender *self = context;

	(void)simulation;
	if (self->runs) {
		loop_sim_crash(self->loop, SIM_CRASH_END);
		free_process(self, true);
	}
	sim_prober_destroy(self->prober);
	if (self->log_descriptor >= 0)
		(void)close(self->log_descriptor);
	memory_release(self);
}

/* The only way to plain HTTP that the product has. */
static bool write_kubeconfig(struct sim_extender *self, struct error *err)
{
	char text[2 * SIM_EXTENDER_PATH_BYTES];

	(void)snprintf(text, sizeof text,
	               "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"c\","
	               "\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"http://%s:%s\"}}],"
	               "\"users\":[{\"name\":\"u\",\"user\":{\"tokenFile\":\"%s/token\"}}],"
	               "\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"c\",\"user\":\"u\"}}]}\n",
	               self->api_host, self->api_port, self->account);
	return write_file(self->kubeconfig_path, text, err);
}

/* As the operator gives them (spec extender D1). */
static void set_arguments(struct sim_extender *self)
{
	struct extender_flags flags = extender_flags_default();
	bool tls = simulation_options(self->simulation)->tls;

	flags.namespace = "kube-system";
	flags.provisioner = STORAGE_PROVISIONER;
	flags.log_level = "debug";
	flags.metrics_address = self->metrics_address;
	flags.patching_enabled = self->mode.patching;
	flags.readiness_file = self->readiness_path;
	flags.listen_address = flags.health_ip = self->ip;
	flags.wait_for_reservation_ns = (int64_t)self->mode.wait_ns;
	flags.no_seccomp = true;
	if (!tls)
		flags.kubeconfig = self->kubeconfig_path;
	self->arguments = (struct extender_arguments){
		.flags = flags,
		.node_name = NODE,
		.kubernetes_host = tls ? self->api_host : NULL,
		.kubernetes_port = tls ? self->api_port : NULL,
		.credentials_dir = self->account,
		.log_format = LOG_FORMAT_JSON,
	};
}

static bool set_texts(struct sim_extender *self, struct error *err)
{
	struct address api = sim_pods_api_address(), own = sim_pods_extender_address(0);
	const struct agent_setup *setup = self->options.setup;
	const struct sim_options *options = simulation_options(self->simulation);

	address_print_host(&own, false, self->ip);
	address_print_host(&api, false, self->api_host);
	(void)snprintf(self->api_port, sizeof self->api_port, "%u", (unsigned)api.port);
	(void)snprintf(self->metrics_address, sizeof self->metrics_address, "%s:%d", self->ip,
	               SIM_EXTENDER_METRICS_PORT);
	(void)snprintf(self->kubeconfig_path, sizeof self->kubeconfig_path, "%s/kubeconfig", setup->folder);
	(void)snprintf(self->readiness_path, sizeof self->readiness_path, "%s/nodes.yaml", setup->folder);
	self->log_descriptor = -1;
	if (!agent_setup_add_extender(setup, sim_pods_token(self->options.pods), sim_pods_ca_pem(self->options.pods),
	                              self->account, err) ||
	    !write_kubeconfig(self, err))
		return false;
	set_arguments(self);
	set_restarted(self, true);
	if (options->log_path == NULL)
		return true;
	self->log_descriptor = open(options->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	return self->log_descriptor >= 0 || error_set_errno(err, errno, options->log_path);
}

bool sim_extender_create(struct simulation *simulation, const struct sim_extender_options *options, struct error *err)
{
	struct sim_extender *self = memory_allocate(sizeof *self);
	struct sim_actor actor = {
		.name = NAME,
		.context = self,
		.misfortunes = MISFORTUNES,
		.strike = strike,
		.calm = calm,
		.begin_phase = begin_phase,
		.check = check,
		.check_second = sim_extender_check_second,
		.check_settled = sim_extender_check_settled,
		.destroy = destroy,
	};

	if (self == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for an extender");
	self->simulation = simulation;
	self->options = *options;
	self->counts = options->counts;
	self->mode = sim_pods_mode(simulation_options(simulation)->seed);
	self->patience = (unsigned)rng_between(rng_of(self), 1, 10);
	self->prober = sim_prober_create(self, err);
	if (self->prober == NULL || !set_texts(self, err) || !simulation_add(simulation, &actor)) {
		sim_prober_destroy(self->prober);
		memory_release(self);
		return false;
	}
	return true;
}
