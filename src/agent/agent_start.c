#include "agent/agent_internal.h"

#include "agent/log_form.h"
#include "base/slice.h"

static const char USER_AGENT[] = "autoscaler-agent/v0.0.0 (ballast/" BALLAST_VERSION ")";

static bool is_given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* ---- steps 1 to 3: what the process was given ---- */

static bool check_arguments(struct agent *agent)
{
	const struct agent_arguments *arguments = agent->arguments;
	struct logger logger = agent_logger(agent);
	const char *missing = NULL;
	struct log_form form;
	struct error err;

	if (!is_given(arguments->config_path))
		missing = "CONFIG_PATH";
	else if (!is_given(arguments->node_name))
		missing = "K8S_NODE_NAME";
	else if (!is_given(arguments->pod_ip))
		missing = "K8S_POD_IP";
	if (missing != NULL) {
		error_set(&err, ERROR_SYNTAX, "missing %s in environment", missing);
		agent_fail(agent, "Failed to get args from environment", slice_of(err.text));
		return false;
	}
	log_form_begin(&form);
	json_writer_object_begin(&form.writer);
	json_writer_key(&form.writer, SLICE("ConfigPath"));
	json_writer_string(&form.writer, slice_of(arguments->config_path));
	json_writer_key(&form.writer, SLICE("K8sNodeName"));
	json_writer_string(&form.writer, slice_of(arguments->node_name));
	json_writer_key(&form.writer, SLICE("K8sPodIP"));
	json_writer_string(&form.writer, slice_of(arguments->pod_ip));
	json_writer_object_end(&form.writer);
	log_info(&logger, "Got environment args", log_json("args", log_form_value(&form)));
	log_form_end(&form);
	return true;
}

static bool read_config(struct agent *agent)
{
	struct logger logger = agent_logger(agent);
	struct slice text = SLICE("");
	struct error err;

	if (!agent_config_load(agent->arguments->config_path, &agent->arena, &agent->config, &text, &err)) {
		agent_fail(agent, "Failed to read config", text);
		return false;
	}
	log_info(&logger, "Got config", log_json("config", agent->config.json));
	log_info(&logger, "The config's schema decides whose behaviour it is",
	         log_text("generation", agent_generation_name(agent->config.generation)),
	         log_text("pluginProtocol", plugin_protocol_name(agent->config.scheduler.protocol)));
	return true;
}

/* A file that isn't there is found out now rather than by whoever is locked out. */
static bool check_admin_token(struct agent *agent)
{
	struct error err;

	agent->admin_token =
		(struct admin_token){ .path = agent->arguments->admin_token_file, .logger = agent_logger(agent) };
	if (!admin_token_check(&agent->admin_token, &err))
		agent_fail(agent, "Failed to read the admin token", slice_of(err.text));
	return !agent->fatal;
}

static bool make_kube_client(struct agent *agent)
{
	const struct agent_arguments *arguments = agent->arguments;
	struct kube_client_options options = {
		.host = arguments->kubernetes_host,
		.credentials_dir = is_given(arguments->credentials_dir) ? arguments->credentials_dir : NULL,
		.kubeconfig = is_given(arguments->kubeconfig) ? arguments->kubeconfig : NULL,
		.user_agent = USER_AGENT,
		.plain = arguments->kubernetes_plain,
		.logger = agent_logger(agent),
	};
	uint64_t port = 0;
	uint64_t now_ns = loop_now_ns(agent->loop);
	struct error err;

	if (options.kubeconfig == NULL && is_given(arguments->kubernetes_port) &&
	    (!slice_to_u64(slice_of(arguments->kubernetes_port), &port) || port == 0 || port > UINT16_MAX)) {
		error_set(&err, ERROR_SYNTAX, "KUBERNETES_SERVICE_PORT \"%s\" is no port", arguments->kubernetes_port);
		goto failed;
	}
	options.port = (uint16_t)port;
	agent->kube = kube_client_create(agent->loop, &options, &err);
	if (agent->kube != NULL &&
	    token_bucket_init(&agent->vm_limiter, arguments->api_qps, arguments->api_burst, now_ns, &err) &&
	    token_bucket_init(&agent->pod_limiter, arguments->api_qps, arguments->api_burst, now_ns, &err))
		return true;
failed:
	agent_fail(agent,
	           options.kubeconfig != NULL ? "Failed to use the kubeconfig" : "Failed to get in-cluster K8s config",
	           slice_of(err.text));
	return false;
}

/* ---- steps 7 to 11: everything is known, the main loop begins ---- */

/* context: "error starting VM watcher", and so on. */
static void fail_main_loop(struct agent *agent, const char *context, const struct error *err)
{
	struct error whole = *err;

	if (context != NULL)
		error_wrap(&whole, "%s", context);
	agent_fail(agent, "Main loop failed", slice_of(whole.text));
}

static bool submit_scaling_event(void *context, const struct scaling_event *event, struct error *err)
{
	return event_reporting_submit_scaling_event(((struct agent *)context)->reporting, event, err);
}

static void set_desired_cu(void *context, struct slice namespace, struct slice name,
                           const struct scaling_desired_cu *desired)
{
	vm_metrics_set_desired_cu(((struct agent *)context)->vm_metrics, namespace, name, desired);
}

static struct slice uid_of(void *context, struct slice namespace, struct slice name)
{
	const struct agent *agent = context;
	struct vm_watch_vm vm;
	size_t position = 0;

	while (agent->vm_watch != NULL && vm_watch_next(agent->vm_watch, &position, &vm)) {
		if (slice_equal(vm.name, name) && slice_equal(vm.namespace, namespace))
			return vm.uid;
	}
	return SLICE("");
}

static bool make_kube_events(struct agent *agent, struct error *err)
{
	const struct kube_events_options options = {
		.loop = agent->loop,
		.client = agent->kube,
		.node_name = agent->arguments->node_name,
		.uid_of = uid_of,
		.context = agent,
		.logger = { .sink = agent->log_sink, .name = "autoscaler-agent.kube-events", .context_json = "" },
	};

	if (!agent->arguments->kube_events)
		return true;
	agent->kube_events = kube_events_create(&options, err);
	return agent->kube_events != NULL;
}

static bool make_supervisor(struct agent *agent, struct error *err)
{
	agent->scaling_events = (struct scaling_event_sink){ .context = agent,
		                                             .submit = submit_scaling_event,
		                                             .set_desired_cu = set_desired_cu };
	agent->peers = (struct agent_peers){
		.kube = agent->kube,
		.limiter = &agent->vm_limiter,
		.patch_timeout_ns = agent->config.neonvm.request_timeout_ns,
		.without_revision = agent->config.neonvm.no_revisions,
		.schedulers = agent->schedulers,
		.metrics = agent->metrics,
	};
	const struct runner_environment environment = {
		.loop = agent->loop,
		.clock = &agent->clock,
		.config = &agent->config,
		.metrics = agent->metrics,
		.http = agent->http,
		.parser = &agent->parser,
		.plugin_versions = &agent->plugin_versions,
		.scaling_events = &agent->scaling_events,
		.kube_events = agent->kube_events != NULL ? kube_events_sink(agent->kube_events) : NULL,
		.log_sink = agent->log_sink,
		.peers = agent_peers_for_runners(&agent->peers),
	};

	plugin_versions_init(&agent->plugin_versions, agent->config.scheduler.protocol,
	                     agent->config.scheduler.compute_unit_configured);
	agent->supervisor = supervisor_create(&environment, err);
	return agent->supervisor != NULL;
}

static bool start_servers(struct agent *agent, struct error *err)
{
	const struct servers_options options = {
		.loop = agent->loop,
		.listen_address = agent->arguments->listen_address,
		.metrics_port = SERVERS_METRICS_PORT,
		.vm_metrics_port = SERVERS_VM_METRICS_PORT,
		.dump = agent->config.dump,
		.metrics = agent->metrics,
		.vm_metrics = agent->vm_metrics,
		.supervisor = agent->supervisor,
		.log_sink = agent->log_sink,
		.admin_token = &agent->admin_token,
	};

	agent->servers = servers_start(&options, err);
	return agent->servers != NULL;
}

static bool make_reporting(struct agent *agent, struct error *err)
{
	const struct event_reporting_options options = {
		.loop = agent->loop,
		.config = &agent->config,
		.metrics = agent->metrics,
		.log_sink = agent->log_sink,
		.host_name = agent->arguments->host_name,
		.grace_ns = agent->arguments->grace_ns,
		.queue_events = agent->arguments->event_queue_events,
		.queue_bytes = agent->arguments->event_queue_bytes,
	};

	agent->reporting = event_reporting_create(&options, err);
	return agent->reporting != NULL;
}

static bool is_watch_failing(void *context)
{
	return vm_watch_failing(((const struct agent *)context)->vm_watch);
}

static bool next_vm(void *context, size_t *position, struct vm_watch_vm *ret_vm)
{
	return vm_watch_next(((const struct agent *)context)->vm_watch, position, ret_vm);
}

static bool start_billing(struct agent *agent, struct error *err)
{
	const struct billing_source source = { .context = agent, .failing = is_watch_failing, .next = next_vm };

	return event_reporting_start_billing(agent->reporting, &source, err);
}

static void on_schedulers_known(void *context)
{
	struct agent *agent = context;
	struct logger logger = agent_logger(agent);
	struct error err;

	if (!make_reporting(agent, &err) || !make_kube_events(agent, &err) || !make_supervisor(agent, &err) ||
	    !start_servers(agent, &err) || !start_billing(agent, &err)) {
		fail_main_loop(agent, NULL, &err);
		return;
	}
	log_info(&logger, "Entering main loop");
	vm_watch_deliver(agent->vm_watch);
}

/* ---- step 6 ---- */

static void on_schedulers_unknown(void *context, const struct error *err)
{
	fail_main_loop(context, "starting scheduler watch server", err);
}

static void on_scheduler_changed(void *context)
{
	struct agent *agent = context;

	if (agent->supervisor != NULL)
		supervisor_scheduler_changed(agent->supervisor);
}

static void on_vms_known(void *context)
{
	static const struct scheduler_tracking_handler HANDLER = {
		.on_started = on_schedulers_known,
		.on_start_failed = on_schedulers_unknown,
		.on_changed = on_scheduler_changed,
	};
	struct agent *agent = context;
	const struct scheduler_tracking_options options = {
		.loop = agent->loop,
		.client = agent->kube,
		.limiter = &agent->pod_limiter,
		.scheduler_name = agent->config.scheduler.scheduler_name,
		.sticky = agent->config.scheduler.sticky,
		.metrics = agent->metrics,
		.log_sink = agent->log_sink,
	};
	struct error err;

	agent->schedulers = scheduler_tracking_start(&options, &HANDLER, agent, &err);
	if (agent->schedulers == NULL)
		on_schedulers_unknown(agent, &err);
}

/* ---- step 5 ---- */

static void on_vms_unknown(void *context, const struct error *err)
{
	fail_main_loop(context, "error starting VM watcher", err);
}

static bool on_vm_event(void *context, const struct vm_event *event)
{
	struct agent *agent = context;

	return supervisor_handle_event(agent->supervisor, event);
}

static bool start_vm_watch(struct agent *agent)
{
	static const struct vm_watch_handler HANDLER = {
		.on_event = on_vm_event,
		.on_started = on_vms_known,
		.on_start_failed = on_vms_unknown,
	};
	const struct vm_watch_options options = {
		.loop = agent->loop,
		.client = agent->kube,
		.node_name = agent->arguments->node_name,
		.scheduler_name = agent->config.scheduler.scheduler_name,
		.generation = agent->config.generation,
		.limiter = &agent->vm_limiter,
		.metrics = agent->metrics,
		.vm_metrics = agent->vm_metrics,
		.log_sink = agent->log_sink,
	};
	struct error err;

	agent->vm_watch = vm_watch_start(&options, &HANDLER, agent, &err);
	if (agent->vm_watch == NULL)
		on_vms_unknown(agent, &err);
	return agent->vm_watch != NULL;
}

static bool make_parts(struct agent *agent)
{
	bool late_2023 = agent->config.generation == AGENT_GENERATION_A;
	struct error err;

	agent->metrics = late_2023 ? agent_metrics_create_late_2023(agent->config.billing.present, &err)
	                           : agent_metrics_create(&err);
	if (agent->metrics == NULL)
		goto failed;
	agent_metrics_follow_log(agent->metrics, agent->log_sink);
	agent->vm_metrics = late_2023 ? vm_metrics_create_late_2023(&err) : vm_metrics_create(&err);
	if (agent->vm_metrics == NULL)
		goto failed;
	agent->http = http_client_create(agent->loop, &err);
	if (agent->http != NULL)
		return true;
failed:
	fail_main_loop(agent, NULL, &err);
	return false;
}

bool agent_start(struct agent *agent)
{
	return check_arguments(agent) && read_config(agent) && check_admin_token(agent) && make_kube_client(agent) &&
	       make_parts(agent) && start_vm_watch(agent);
}
