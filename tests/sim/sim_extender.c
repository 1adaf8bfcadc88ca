#include "sim_extender.h"

#include <errno.h>
#include <stdio.h>

#include "base/memory.h"
#include "sandbox/storage_objects.h"
#include "sim_extender_internal.h"

enum {
	END_IN_MS = 100,
	STARVED_S = 20, /* after a failed allocation or socket call a filter call may still be without an answer */
};

static const char NAME[] = "extender";
static const char NODE[] = "node-a";

/* ---- its lives ---- */

static bool prepare(void *context, struct error *err)
{
	struct sim_extender *self = context;

	(void)err;
	self->end_at_ns = 0;
	self->held_since_ns = self->different_since_ns = 0;
	self->extender = (struct extender){ .arguments = &self->arguments,
		                            .signals = -1,
		                            .loop = self->process.loop,
		                            .log_sink = self->process.log_sink };
	return true;
}

static void start(void *context)
{
	struct sim_extender *self = context;

	(void)extender_start(&self->extender); /* if it fails, the loop is stopped */
}

static bool is_fatal(const void *context)
{
	const struct sim_extender *self = context;

	return self->extender.fatal;
}

/* A fatal failure (spec extender P7) takes a shortage here. */
static void on_end(void *context, enum sim_process_end how)
{
	const struct sim_extender *self = context;

	if (how == SIM_PROCESS_FATAL && !sim_answers_are_starved(sim_pods_answers(self->options.pods)))
		simulation_broken(self->simulation, "lives", "the extender ended with a fatal failure");
}

static void dismantle(void *context)
{
	struct sim_extender *self = context;

	extender_dismantle(&self->extender);
	self->extender = (struct extender){ .arguments = NULL };
}

static void on_starved(void *context)
{
	const struct sim_extender *self = context;

	sim_answers_excuse_starved(sim_pods_answers(self->options.pods),
	                           simulation_now_ns(self->simulation) + (uint64_t)STARVED_S * NS_PER_S);
}

static void tell_to_end(struct sim_extender *self)
{
	self->end_at_ns = 0;
	sim_process_note_told(&self->process);
	sim_process_enter(&self->process);
	extender_stop(&self->extender);
	sim_process_leave(&self->process);
	sim_prober_ask(self->prober, SIM_ASK_READY);
}

static void on_told_to_end(void *context, struct rng *rng)
{
	struct sim_extender *self = context;

	if (self->process.ending)
		return;
	/* Mostly somebody's call is under way. */
	sim_prober_ask(self->prober, SIM_ASK_FILTER);
	self->end_at_ns = simulation_now_ns(self->simulation) + rng_between(rng, 0, END_IN_MS) * NS_PER_MS;
}

static struct loop *pick_peer(void *context, struct rng *rng)
{
	const struct sim_extender *self = context;
	unsigned peer = (unsigned)rng_between(rng, 0, SIM_PODS_LOOPS + 1);

	return peer < SIM_PODS_LOOPS ? sim_pods_loop(self->options.pods, peer) : sim_prober_loop(self->prober);
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

/* ---- as an actor ---- */

static const char *const MISFORTUNES[] = { SIM_PROCESS_MISFORTUNE_NAMES, "readiness", NULL };

static void strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng)
{
	struct sim_extender *self = context;

	(void)simulation;
	if (!self->process.runs)
		return;
	if (misfortune < SIM_PROCESS_MISFORTUNES)
		sim_process_strike(&self->process, misfortune, rng);
	else
		flip_readiness(self);
}

static void calm(void *context, struct simulation *simulation)
{
	struct sim_extender *self = context;

	(void)simulation;
	sim_process_calm(&self->process);
}

static void check(void *context, struct simulation *simulation)
{
	struct sim_extender *self = context;

	if (!sim_process_go_on(&self->process))
		return;
	if (sim_pods_is_curious(self->options.pods))
		sim_prober_ask(self->prober, SIM_ASK_FILTER);
	if (self->end_at_ns != 0 && simulation_now_ns(simulation) >= self->end_at_ns)
		tell_to_end(self);
	sim_extender_check_process(self);
}

static void begin_phase(void *context, struct simulation *simulation, unsigned phase)
{
	(void)simulation;
	if (phase % 2 == 1)
		flip_readiness(context);
}

static void destroy(void *context, struct simulation *simulation)
{
	struct sim_extender *self = context;

	(void)simulation;
	sim_process_destroy(&self->process);
	sim_prober_destroy(self->prober);
	memory_release(self);
}

/* ---- making it ---- */

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

	address_print_host(&own, false, self->ip);
	address_print_host(&api, false, self->api_host);
	(void)snprintf(self->api_port, sizeof self->api_port, "%u", (unsigned)api.port);
	(void)snprintf(self->metrics_address, sizeof self->metrics_address, "%s:%d", self->ip,
	               SIM_EXTENDER_METRICS_PORT);
	(void)snprintf(self->kubeconfig_path, sizeof self->kubeconfig_path, "%s/kubeconfig", setup->folder);
	(void)snprintf(self->readiness_path, sizeof self->readiness_path, "%s/nodes.yaml", setup->folder);
	if (!agent_setup_add_extender(setup, sim_pods_token(self->options.pods), sim_pods_ca_pem(self->options.pods),
	                              self->account, err) ||
	    !write_kubeconfig(self, err))
		return false;
	set_arguments(self);
	set_restarted(self, true);
	return true;
}

static bool init_process(struct sim_extender *self, struct error *err)
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
		.on_failed_call = on_starved,
	};
	const struct sim_process_options options = {
		.name = NAME,
		.address = sim_pods_extender_address(0),
		.log_level = LOG_DEBUG,
		.handler = &HANDLER,
		.context = self,
		.counts = &self->counts->process,
	};

	return sim_process_init(&self->process, self->simulation, &options, err);
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
	if (!init_process(self, err)) {
		memory_release(self);
		return false;
	}
	self->prober = sim_prober_create(self, err);
	if (self->prober == NULL || !set_texts(self, err) || !simulation_add(simulation, &actor)) {
		destroy(self, simulation);
		return false;
	}
	return true;
}
