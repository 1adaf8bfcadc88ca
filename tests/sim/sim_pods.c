#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "net/http_client.h"
#include "net/http_message.h"
#include "sandbox/agent_setup.h"
#include "sandbox/kube_scheduler_internal.h"
#include "sandbox/pod_cluster_objects.h"
#include "sandbox/workload.h"
#include "sim_pods_internal.h"

enum { PODS_NET = 20, PLACE_API = 0, PLACE_SCHEDULER, PLACE_CONTROLLER, PLACE_EXTENDER, EXTENDER_PORT = 8889 };

static const char USER[] = "system:serviceaccount:kube-system:csi-baremetal-se-sa";

/* As deployed (spec extender A1); nodes are for a scheduler that sends names (I9). */
static const struct api_rule RULES[] = {
	{ .group = "csi-baremetal.dell.com", .resource = "volumes", .verbs = "get,list,watch" },
	{ .group = "csi-baremetal.dell.com", .resource = "availablecapacities", .verbs = "get,list" },
	{ .group = "csi-baremetal.dell.com",
	  .resource = "availablecapacityreservations",
	  .verbs = "get,list,create,update" },
	{ .group = "", .resource = "persistentvolumeclaims", .verbs = "get,list,watch" },
	{ .group = "", .resource = "events", .verbs = "get,list,watch" },
	{ .group = "storage.k8s.io", .resource = "storageclasses", .verbs = "get,list,watch" },
	{ .group = "", .resource = "nodes", .verbs = "get,list,watch" },
};

static struct address address_of(unsigned place, uint16_t port)
{
	return (struct address){ .bytes = { 10, PODS_NET, (uint8_t)place, 1 }, .port = port };
}

/* Eight seeds in a row have all there is. */
struct sim_pods_mode sim_pods_mode(uint64_t seed)
{
	static const uint64_t WAITS_MS[] = { 0, 2000, 300, 0 };

	return (struct sim_pods_mode){
		.node_names = seed % 2 == 0,
		.strict = seed / 2 % 2 == 0,
		.patching = seed / 4 % 2 == 0,
		.wait_ns = WAITS_MS[(seed + seed / 4) % 4] * NS_PER_MS,
	};
}

bool sim_pods_is_known(const struct sim_pods *pods, uint64_t since_ns)
{
	return simulation_was_calm(pods->simulation, since_ns, SIM_KNOWN_S);
}

/* ---- the scheduler ---- */

static void on_called(void *context, const struct kube_scheduler_call *call)
{
	struct sim_pods *pods = context;
	struct sim_sent_node nodes[WORKLOAD_NODES_MAX];
	struct sim_call checked = {
		.filter = strcmp(call->target, "/filter") == 0,
		.name_space = call->name_space,
		.pod = call->name,
		.by_name = call->node_names,
		.nodes = nodes,
		.node_count = call->node_count,
		.started_ns = call->started_ns,
	};

	sim_world_note(simulation_world(pods->simulation), "scheduler: %s of %.*s: %s", call->target,
	               SLICE_ARGS(call->name), call->failure != NULL ? call->failure->text : "answered");
	if (call->failure != NULL) {
		if (sim_pods_is_known(pods, call->started_ns) && !sim_answers_are_starved(pods->answers))
			simulation_broken(pods->simulation, "answers", "%s of %.*s failed: %s", call->target,
			                  SLICE_ARGS(call->name), call->failure->text);
		return;
	}
	for (size_t i = 0; i < call->node_count; i++)
		nodes[i] = (struct sim_sent_node){ .name = call->nodes[i].name, .text = call->nodes[i].text };
	checked.status = call->response->status;
	checked.content_type = http_fields_find(call->response->fields, "Content-Type");
	checked.body = call->response->body;
	sim_answers_check(pods->answers, &checked);
}

bool sim_pods_start_scheduler(struct sim_pods *pods, struct error *err)
{
	static const struct kube_scheduler_handler HANDLER = { .on_called = on_called,
		                                               .on_bound = sim_pods_on_bound,
		                                               .on_unschedulable = sim_pods_on_unschedulable };
	struct address address = address_of(PLACE_SCHEDULER, 0);
	const struct kube_scheduler_options options = {
		.store = pods->store,
		.extender = address_of(PLACE_EXTENDER, EXTENDER_PORT),
		.speed = 1,
		.node_names = pods->mode.node_names,
		.strict = pods->mode.strict,
		.faults = &pods->faults,
	};

	pods->scheduler_loop = loop_sim_create(simulation_world(pods->simulation), "scheduler", &address, err);
	if (pods->scheduler_loop == NULL)
		return false;
	pods->scheduler = kube_scheduler_create(pods->scheduler_loop, &options, &HANDLER, pods, err);
	return pods->scheduler != NULL;
}

void sim_pods_stop_scheduler(struct sim_pods *pods, enum sim_crash how)
{
	if (pods->scheduler_loop == NULL)
		return;
	loop_sim_crash(pods->scheduler_loop, how);
	kube_scheduler_destroy(pods->scheduler);
	pods->scheduler = NULL;
	loop_destroy(pods->scheduler_loop);
	pods->scheduler_loop = NULL;
}

/* ---- the controller ---- */

bool sim_pods_start_controller(struct sim_pods *pods, double speed, struct error *err)
{
	static const struct provisioner_handler HANDLER = { .on_refused = NULL };
	struct address address = address_of(PLACE_CONTROLLER, 0);
	const struct reservation_controller_options options = { .store = pods->store, .speed = speed };

	pods->controller_speed = speed;
	pods->controller_loop = loop_sim_create(simulation_world(pods->simulation), "controller", &address, err);
	if (pods->controller_loop == NULL)
		return false;
	pods->controller = reservation_controller_create(pods->controller_loop, &options, err);
	if (pods->controller == NULL)
		return false;
	pods->provisioner = volume_provisioner_create(pods->controller_loop, pods->store, speed, &HANDLER, pods, err);
	return pods->provisioner != NULL;
}

void sim_pods_stop_controller(struct sim_pods *pods)
{
	if (pods->controller_loop == NULL)
		return;
	volume_provisioner_destroy(pods->provisioner);
	pods->provisioner = NULL;
	reservation_controller_destroy(pods->controller);
	pods->controller = NULL;
	loop_destroy(pods->controller_loop);
	pods->controller_loop = NULL;
}

/* ---- making it ---- */

static bool start_plane(struct sim_pods *pods, struct error *err)
{
	static const struct control_plane_handler HANDLER = { .on_phase = NULL };
	struct control_plane_options options = {
		.address = sim_pods_api_address(),
		.token = "token-of-nobody",
		.user = "system:serviceaccount:kube-system:nobody",
		.speed = 1,
		.plain = !simulation_options(pods->simulation)->tls,
	};

	(void)snprintf(pods->token, sizeof pods->token, "token-of-the-extender");
	pods->api_loop = loop_sim_create(simulation_world(pods->simulation), "api-storage", &options.address, err);
	if (pods->api_loop == NULL)
		return false;
	pods->api = (struct sim_api){ .simulation = pods->simulation, .name = "api-storage" };
	pods->api.plane = control_plane_start(pods->api_loop, &options, &HANDLER, pods, err);
	if (pods->api.plane == NULL)
		return false;
	pods->store = control_plane_store(pods->api.plane);
	control_plane_set_faults(pods->api.plane, &pods->faults);
	return control_plane_grant(pods->api.plane, pods->token, USER, RULES,
	                           sizeof RULES / sizeof RULES[0] - (pods->mode.node_names ? 0 : 1), err);
}

static bool make_workload(struct sim_pods *pods, struct error *err)
{
	const struct sim_options *options = simulation_options(pods->simulation);

	for (unsigned i = 0; i < SIM_VARIANTS; i++) {
		const struct pod_workload_options workload = { .seed = options->seed * SIM_VARIANTS + i,
			                                       .pods = options->pods,
			                                       .nodes = options->nodes,
			                                       .speed = 1 };

		pods->variants[i] = pod_workload_create(&workload, err);
		if (pods->variants[i] == NULL)
			return false;
	}
	for (unsigned i = 0; i < pods->pod_count; i++)
		pods->pods[i].plan = &pods->variants[0]->pods[i];
	return true;
}

static bool start_all(struct sim_pods *pods, struct error *err)
{
	const struct sim_answers_handler handler = { .asked_of = sim_pods_asked_of, .context = pods };

	if (!make_workload(pods, err) || !start_plane(pods, err) ||
	    !pod_objects_plant(pods->store, pods->variants[0], err))
		return false;
	pods->watch = capacity_watch_create(pods->store, err);
	if (pods->watch == NULL)
		return false;
	pods->observer = (struct object_observer){ .on_change = sim_pods_on_change, .context = pods };
	object_store_observe(pods->store, &pods->observer);
	pods->answers = sim_answers_create(pods->simulation, pods->store, &handler, err);
	return pods->answers != NULL && sim_pods_start_controller(pods, 1, err) && sim_pods_start_scheduler(pods, err);
}

static void destroy(void *context, struct simulation *simulation)
{
	struct sim_pods *pods = context;

	(void)simulation;
	sim_pods_stop_scheduler(pods, SIM_CRASH_END);
	sim_pods_stop_controller(pods);
	object_store_ignore(&pods->observer);
	sim_answers_destroy(pods->answers);
	capacity_watch_destroy(pods->watch);
	control_plane_destroy(pods->api.plane);
	if (pods->api_loop != NULL)
		loop_destroy(pods->api_loop);
	for (unsigned i = 0; i < SIM_VARIANTS; i++)
		pod_workload_destroy(pods->variants[i]);
	memory_release(pods);
}

struct sim_pods *sim_pods_create(struct simulation *simulation, struct error *err)
{
	const struct sim_options *options = simulation_options(simulation);
	struct sim_pods *pods = memory_allocate(sizeof *pods + options->pods * sizeof pods->pods[0]);
	struct sim_actor actor = {
		.name = "pods",
		.context = pods,
		.misfortunes = SIM_PODS_MISFORTUNES,
		.strike = sim_pods_strike,
		.calm = sim_pods_calm,
		.begin_phase = sim_pods_begin_phase,
		.check = sim_pods_check,
		.check_second = sim_pods_check_second,
		.check_settled = sim_pods_check_settled,
		.destroy = destroy,
	};

	if (pods == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for pods");
		return NULL;
	}
	pods->simulation = simulation;
	pods->pod_count = options->pods;
	pods->mode = sim_pods_mode(options->seed);
	faults_init(&pods->faults, options->storm == SIM_STORM_HEAVY ? FAULTS_HEAVY : FAULTS_LIGHT, options->seed);
	pods->faults.suspended = true;
	if (!start_all(pods, err) || !simulation_add(simulation, &actor)) {
		destroy(pods, simulation);
		return NULL;
	}
	return pods;
}

/* ---- what may be asked ---- */

const char *sim_pods_token(const struct sim_pods *pods)
{
	return pods->token;
}

struct slice sim_pods_ca_pem(const struct sim_pods *pods)
{
	return control_plane_ca_pem(pods->api.plane);
}

struct address sim_pods_api_address(void)
{
	return address_of(PLACE_API, AGENT_SETUP_API_PORT);
}

struct address sim_pods_extender_address(uint16_t port)
{
	return address_of(PLACE_EXTENDER, port);
}

struct object_store *sim_pods_store(const struct sim_pods *pods)
{
	return pods->store;
}

struct sim_answers *sim_pods_answers(struct sim_pods *pods)
{
	return pods->answers;
}

struct loop *sim_pods_loop(const struct sim_pods *pods, unsigned index)
{
	return index == 0 ? pods->api_loop : index == 1 ? pods->scheduler_loop : pods->controller_loop;
}

bool sim_pods_is_curious(const struct sim_pods *pods)
{
	return pods->curious != NULL;
}

bool sim_pods_pick(struct sim_pods *pods, struct rng *rng, struct slice *ret_name, struct slice *ret_text)
{
	const struct sim_pod *pod =
		pods->curious != NULL ? pods->curious : &pods->pods[rng_between(rng, 0, pods->pod_count)];
	const struct stored_object *object = object_store_find(pods->store, resource_kind(RESOURCE_PODS),
	                                                       SLICE(POD_NAME_SPACE), slice_of(pod->plan->name));

	pods->curious = NULL;
	if (!pod->exists || object == NULL)
		return false;
	*ret_name = object->name;
	*ret_text = object->text;
	return true;
}

uint64_t sim_pods_changed_ns(const struct sim_pods *pods)
{
	return pods->changed_ns;
}

struct sim_pods_counts sim_pods_counts(const struct sim_pods *pods)
{
	struct sim_pods_counts counts = pods->counts;

	counts.api = pods->api.counts;
	for (unsigned i = 0; i < FAULT_COUNT; i++)
		counts.request_faults += pods->faults.counts[i];
	return counts;
}
