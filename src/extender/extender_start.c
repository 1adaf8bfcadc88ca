#include "extender/extender_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "extender/process_limits.h"

static const char USER_AGENT[] = "extender/v0.0.0 (ballast/" BALLAST_VERSION ")";

static bool is_given(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* ---- what the process was given ---- */

/* N3: such a selector selects no node at all. */
static bool is_bad_selector(const char *selector)
{
	const char *equals = strchr(selector, '=');

	return selector[0] != '\0' && (equals == NULL || strchr(equals + 1, '=') != NULL);
}

static void warn_of_oddities(const struct extender *extender)
{
	const struct extender_arguments *arguments = extender->arguments;
	const struct extender_flags *flags = &arguments->flags;
	struct logger logger = extender_logger(extender);

	if (arguments->ignored_word != NULL)
		log_warn(&logger, "Words behind the flags are ignored; a bool takes its value as -flag=value",
		         log_text("first", arguments->ignored_word));
	if (!is_given(flags->provisioner))
		log_warn(&logger, "No provisioner is given: no StorageClass is ours");
	if (is_given(flags->certificate_file) != is_given(flags->key_file))
		log_warn(&logger, "Only one of certificate and key is given: plain HTTP",
		         log_text("certFile", flags->certificate_file), log_text("privateKeyFile", flags->key_file));
	if (flags->use_node_annotation && is_bad_selector(flags->node_selector))
		log_warn(&logger, "The node selector isn't key=value: no node is selected, and no pod gets capacity",
		         log_text("nodeselector", flags->node_selector));
	if (flags->use_node_annotation && flags->use_external_annotation && !is_given(flags->node_id_annotation))
		log_warn(&logger, "useexternalannotation without nodeidannotation: no node has an id");
}

static bool check_arguments(struct extender *extender)
{
	const struct extender_flags *flags = &extender->arguments->flags;
	struct error err;

	warn_of_oddities(extender);
	if (!is_given(extender->arguments->node_name)) {
		error_set(&err, ERROR_SYNTAX, "nodeName parameter is empty");
		extender_fail(extender, "KUBE_NODE_NAME is required", &err);
		return false;
	}
	extender->settings = (struct extender_settings){
		.provisioner = slice_of(flags->provisioner),
		.node_selector = slice_of(flags->node_selector),
		.use_node_annotation = flags->use_node_annotation,
		.use_external_annotation = flags->use_external_annotation,
		.node_id_annotation = slice_of(flags->node_id_annotation),
		.inline_volumes = flags->inline_volumes,
		.normalize_scores = flags->normalize_scores,
	};
	return true;
}

/* ---- metrics ---- */

/*
 * A port that can't be had is no reason to stop (P7), and is tried again with each sweep; no address is no port (P12).
 */
static void start_metrics_page(struct extender *extender, bool first)
{
	const struct extender_flags *flags = &extender->arguments->flags;
	struct metrics_page_options options = {
		.loop = extender->loop,
		.path = flags->metrics_path,
		.metrics = extender->metrics,
		.logger = extender_logger(extender),
	};
	struct error err;

	if (!is_given(flags->metrics_address) || !is_given(flags->metrics_path))
		return;
	if (extender_address_parse(slice_of(flags->metrics_address), &options.address, &err))
		extender->metrics_page = metrics_page_start(&options, &err);
	if (extender->metrics_page == NULL && first)
		log_warn(&options.logger, "Failed to start the metrics port",
		         log_text("address", flags->metrics_address), log_error_field(&err));
	if (extender->metrics_page != NULL && !first)
		log_info(&options.logger, "Started the metrics port after all",
		         log_text("address", flags->metrics_address));
}

static void sweep(void *context)
{
	struct extender *extender = context;

	extender_metrics_sweep(extender->metrics, loop_now_ns(extender->loop));
	if (extender->metrics_page == NULL)
		start_metrics_page(extender, false);
	loop_timer_start(extender->loop, &extender->sweep, (uint64_t)EXTENDER_METRICS_SWEEP_S * NS_PER_S, sweep,
	                 extender);
}

static bool start_metrics(struct extender *extender)
{
	struct error err;

	extender->metrics = extender_metrics_create(&err);
	if (extender->metrics == NULL) {
		extender_fail(extender, "Failed to make metrics", &err);
		return false;
	}
	extender_metrics_follow_log(extender->metrics, extender->log_sink);
	start_metrics_page(extender, true);
	loop_timer_start(extender->loop, &extender->sweep, (uint64_t)EXTENDER_METRICS_SWEEP_S * NS_PER_S, sweep,
	                 extender);
	return true;
}

/* ---- credentials ---- */

/* In a pod: the service account. */
static bool open_in_cluster(struct extender *extender, struct kube_client_options options, struct error *err)
{
	const struct extender_arguments *arguments = extender->arguments;
	uint64_t port = 0;

	if (is_given(arguments->kubernetes_port) &&
	    (!slice_to_u64(slice_of(arguments->kubernetes_port), &port) || port == 0 || port > UINT16_MAX))
		return error_set(err, ERROR_SYNTAX, "KUBERNETES_SERVICE_PORT \"%s\" is no port",
		                 arguments->kubernetes_port);
	options.host = arguments->kubernetes_host;
	options.port = (uint16_t)port;
	options.credentials_dir = is_given(arguments->credentials_dir) ? arguments->credentials_dir : NULL;
	extender->kube = kube_client_create(extender->loop, &options, err);
	return extender->kube != NULL;
}

static bool open_kubeconfig(struct extender *extender, struct kube_client_options options, const char *paths,
                            struct error *err)
{
	struct logger logger = extender_logger(extender);

	options.kubeconfig = paths;
	extender->kube = kube_client_create(extender->loop, &options, err);
	if (extender->kube != NULL)
		log_info(&logger, "Using a kubeconfig", log_text("file", paths));
	return extender->kube != NULL;
}

/* P4 in its order: --kubeconfig, KUBECONFIG, the service account, ~/.kube/config. */
static bool open_client(struct extender *extender, struct error *err)
{
	const struct extender_arguments *arguments = extender->arguments;
	const struct kube_client_options options = {
		.user_agent = USER_AGENT,
		.logger = extender_logger(extender),
	};
	char path[EXTENDER_PATH_BYTES];
	int length;

	if (is_given(arguments->flags.kubeconfig))
		return open_kubeconfig(extender, options, arguments->flags.kubeconfig, err);
	if (is_given(arguments->kubeconfig))
		return open_kubeconfig(extender, options, arguments->kubeconfig, err);
	if (open_in_cluster(extender, options, err))
		return true;
	if (!is_given(arguments->home))
		return false;
	length = snprintf(path, sizeof path, "%s/.kube/config", arguments->home);
	if (length < 0 || (size_t)length >= sizeof path || access(path, F_OK) != 0)
		return false; /* what the service account lacks is what people need to hear of */
	return open_kubeconfig(extender, options, path, err);
}

static bool start_client(struct extender *extender)
{
	struct event_lists_options options = {
		.loop = extender->loop,
		.metrics = extender->metrics,
		.logger = extender_logger(extender),
	};
	struct error err;

	if (!open_client(extender, &err) || !token_bucket_init(&extender->limiter, EXTENDER_API_QPS, EXTENDER_API_BURST,
	                                                       loop_now_ns(extender->loop), &err)) {
		extender_fail(extender, "Failed to get credentials for the API server", &err);
		return false;
	}
	options.client = extender->kube;
	extender->events = event_lists_create(&options, &err);
	if (extender->events == NULL)
		extender_fail(extender, "Failed to start", &err);
	return extender->events != NULL;
}

/* ---- the ports ---- */

static bool open_health(struct extender *extender, struct error *err)
{
	const struct extender_flags *flags = &extender->arguments->flags;
	const char *ip = is_given(flags->health_ip) ? flags->health_ip : "::";
	struct health_options options = {
		.loop = extender->loop,
		.patching_enabled = flags->patching_enabled,
		.readiness_path = flags->readiness_file,
		.node_name = extender->arguments->node_name,
		.logger = extender_logger(extender),
	};

	if (!address_parse(slice_of(ip), (uint16_t)flags->health_port, &options.address))
		return error_set(err, ERROR_SYNTAX, "\"%s\" is no literal IP address", ip);
	extender->health = health_start(&options, err);
	return extender->health != NULL;
}

static bool open_port(struct extender *extender, struct error *err)
{
	const struct extender_flags *flags = &extender->arguments->flags;
	const char *ip = is_given(flags->listen_address) ? flags->listen_address : "::";
	struct logger logger = extender_logger(extender);
	struct extender_server_options options = {
		.metrics_path = flags->metrics_path,
		.environment = &extender->environment,
	};

	if (!address_parse(slice_of(ip), (uint16_t)flags->port, &options.address))
		return error_set(err, ERROR_SYNTAX, "\"%s\" is no literal IP address", ip);
	if (is_given(flags->certificate_file) && is_given(flags->key_file)) {
		extender->tls = tls_files_open(extender->loop, flags->certificate_file, flags->key_file, &logger, err);
		if (extender->tls == NULL)
			return false;
		options.tls = extender->tls;
	}
	extender->server = extender_server_start(&options, err);
	return extender->server != NULL;
}

static void on_synced(void *context)
{
	struct extender *extender = context;
	const struct extender_flags *flags = &extender->arguments->flags;
	struct logger logger = extender_logger(extender);
	struct error err;

	if (extender->stopping)
		return;
	if (!open_health(extender, &err)) {
		extender_fail(extender, "Failed to start the health port", &err);
	} else if (!open_port(extender, &err)) {
		extender_fail(extender, "Failed to start the extender's port", &err);
	} else {
		log_info(&logger, "Serving", log_int("port", flags->port), log_int("healthport", flags->health_port),
		         log_bool("tls", extender->tls != NULL));
	}
}

/* ---- caches ---- */

static void on_missing(void *context, const struct error *err)
{
	extender_fail(context, "A kind of objects doesn't exist on the API server", err);
}

static bool start_caches(struct extender *extender)
{
	static const struct caches_handler HANDLER = { .on_synced = on_synced, .on_missing = on_missing };
	const struct caches_options options = {
		.loop = extender->loop,
		.client = extender->kube,
		.metrics = extender->metrics,
		.settings = &extender->settings,
		.log_sink = extender->log_sink,
	};
	struct error err;

	extender->caches = caches_start(&options, &HANDLER, extender, &err);
	if (extender->caches == NULL) {
		extender_fail(extender, "Failed to start", &err);
		return false;
	}
	extender->environment = (struct filter_environment){
		.loop = extender->loop,
		.settings = &extender->settings,
		.caches = extender->caches,
		.reservations = { .loop = extender->loop,
		                  .client = extender->kube,
		                  .limiter = &extender->limiter,
		                  .metrics = extender->metrics },
		.events = extender->events,
		.metrics = extender->metrics,
		.log_sink = extender->log_sink,
		.budget_ns = (uint64_t)EXTENDER_CALL_BUDGET_MS * NS_PER_MS,
		.wait_ns = (uint64_t)extender->arguments->flags.wait_for_reservation_ns,
	};
	return true;
}

bool extender_start(struct extender *extender)
{
	return check_arguments(extender) && start_metrics(extender) && start_client(extender) && start_caches(extender);
}
