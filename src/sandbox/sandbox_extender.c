/*
 * The extender's process: `ballast extender` with the arguments, the environment and the rights that csi-baremetal's operator gives it, on an
 * address of its own (spec extender 12, 14).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/errno_text.h"
#include "sandbox/agent_log.h"
#include "sandbox/sandbox_internal.h"
#include "sandbox/storage_objects.h"

enum {
	EXTENDER_PORT = 8889,
	HEALTH_PORT = 9999,
	READY_POLL_MS = 50,
	READY_S = 20, /* after an outage of the API it lists anew within half of that */
	ANSWER_BYTES_MAX = 4096,
	RESTART_MS = 500, /* from a sudden end to the next process, as a kubelet would take at first */
	ARGUMENTS_MAX = 24,
	VALUE_BYTES = 96,
	ARGUMENT_BYTES = 2 * VALUE_BYTES,
};

static const char LOG_NAME[] = "extender";
static const char USER[] = "system:serviceaccount:kube-system:csi-baremetal-se-sa";

/* As deployed (A1). */
#define DEPLOYED_RULES                                                                                         \
	{ .group = "csi-baremetal.dell.com", .resource = "volumes", .verbs = "get,list,watch" },               \
		{ .group = "csi-baremetal.dell.com", .resource = "availablecapacities", .verbs = "get,list" }, \
		{ .group = "csi-baremetal.dell.com",                                                           \
		  .resource = "availablecapacityreservations",                                                 \
		  .verbs = "get,list,create,update" },                                                         \
		{ .group = "", .resource = "persistentvolumeclaims", .verbs = "get,list,watch" },              \
		{ .group = "", .resource = "events", .verbs = "get,list,watch" },                              \
	{                                                                                                      \
		.group = "storage.k8s.io", .resource = "storageclasses", .verbs = "get,list,watch"             \
	}

static const struct api_rule RULES[] = { DEPLOYED_RULES };
/* A scheduler that sends names makes it look at nodes (I9). */
static const struct api_rule RULES_WITH_NODES[] = {
	DEPLOYED_RULES,
	{ .group = "", .resource = "nodes", .verbs = "get,list,watch" },
};

/* ---- before it starts ---- */

static bool make_token(struct sandbox *sandbox, struct error *err)
{
	uint8_t bytes[SANDBOX_TOKEN_BYTES / 2 - 1];

	if (!loop_random(sandbox->loop, bytes, sizeof bytes))
		return error_set(err, ERROR_SYSTEM, "the system has no randomness");
	for (size_t i = 0; i < sizeof bytes; i++)
		(void)snprintf(sandbox->extender.token + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

bool sandbox_extender_set_up(struct sandbox *sandbox, struct error *err)
{
	struct sandbox_extender *extender = &sandbox->extender;
	struct address address = cluster_extender_address(sandbox->cluster, 0);
	bool names = sandbox->options->node_names;

	address_print_host(&address, false, extender->address);
	return make_token(sandbox, err) &&
	       control_plane_grant(
		       cluster_control_plane(sandbox->cluster), extender->token, USER, names ? RULES_WITH_NODES : RULES,
		       names ? sizeof RULES_WITH_NODES / sizeof RULES_WITH_NODES[0] : sizeof RULES / sizeof RULES[0],
		       err) &&
	       agent_setup_add_extender(&sandbox->setup, extender->token, cluster_ca_pem(sandbox->cluster),
	                                extender->account, err);
}

/* ---- its end ---- */

static void on_restart(void *context)
{
	struct sandbox *sandbox = context;
	struct error err;

	if (sandbox->finished || sandbox->extender.away || sandbox->extender.process != NULL)
		return;
	if (sandbox_extender_start(sandbox, &err)) {
		sandbox->extender.restarts++;
		return;
	}
	judge_mismatch(&sandbox->judge, "the extender can't be started anew: %s", err.text);
	sandbox_finish(sandbox, false, false);
}

static void describe_end(const struct sandbox *sandbox, const struct child_exit *how, char *text, size_t size)
{
	char words[AGENT_LOG_WORDS_BYTES], room[AGENT_SETUP_LOG_PATH_BYTES];
	const char *path = agent_setup_log_path(&sandbox->setup, LOG_NAME, sandbox->options->agent_log, room);
	int length = snprintf(text, size, "%s %d", how->signalled ? "signal" : "exit status", how->status);

	if (agent_log_last_words(path, sandbox->extender.log_start, words))
		(void)snprintf(text + length, size - (size_t)length, ": %s%s", words,
		               strstr(words, errno_text(EADDRINUSE)) != NULL ? "; " SANDBOX_PORT_ADVICE : "");
}

static void on_exit_of_extender(void *context, const struct child_exit *how)
{
	struct sandbox *sandbox = context;
	struct sandbox_extender *extender = &sandbox->extender;
	char ending[AGENT_LOG_WORDS_BYTES + 128];

	sandbox->agents_running--;
	if (how->max_resident_kib > extender->usage.max_resident_kib)
		extender->usage.max_resident_kib = how->max_resident_kib;
	extender->usage.cpu_us += how->cpu_us;
	child_process_destroy(extender->process);
	extender->process = NULL;
	describe_end(sandbox, how, ending, sizeof ending);
	if (sandbox->finished) {
		if ((how->signalled || how->status != 0) && !extender->killed && !extender->expected)
			judge_mismatch(&sandbox->judge, "the extender didn't end with exit status 0: %s", ending);
		if (sandbox->agents_running == 0)
			loop_stop(sandbox->loop);
		return;
	}
	if (!extender->expected) {
		judge_mismatch(&sandbox->judge, "the extender ended by itself: %s", ending);
		sandbox_finish(sandbox, false, false);
		if (sandbox->agents_running == 0)
			loop_stop(sandbox->loop);
		return;
	}
	extender->expected = false;
	if (!extender->away)
		loop_timer_start(sandbox->loop, &extender->restart_timer, (uint64_t)RESTART_MS * NS_PER_MS, on_restart,
		                 sandbox);
}

void sandbox_extender_kill(struct sandbox *sandbox)
{
	struct sandbox_extender *extender = &sandbox->extender;

	if (extender->process == NULL)
		return;
	extender->expected = true;
	child_process_signal(extender->process, SIGKILL);
}

bool sandbox_extender_set_away(struct sandbox *sandbox, bool away, struct error *err)
{
	struct sandbox_extender *extender = &sandbox->extender;

	extender->away = away;
	if (away) {
		loop_timer_stop(sandbox->loop, &extender->restart_timer);
		sandbox_extender_kill(sandbox);
		return true;
	}
	/* If it is still on its way out, its end starts it anew. */
	if (extender->process != NULL)
		return true;
	extender->restarts++;
	return sandbox_extender_start(sandbox, err);
}

void sandbox_extender_signal(struct sandbox *sandbox, int signal_number)
{
	struct sandbox_extender *extender = &sandbox->extender;

	if (sandbox->loop != NULL) {
		loop_timer_stop(sandbox->loop, &extender->restart_timer);
		loop_timer_stop(sandbox->loop, &extender->ready_timer);
	}
	if (extender->process == NULL)
		return;
	extender->killed |= signal_number == SIGKILL;
	child_process_signal(extender->process, signal_number);
}

bool sandbox_extender_is_late(struct sandbox *sandbox)
{
	return sandbox->extender.process != NULL && !sandbox->hurried;
}

void sandbox_extender_destroy(struct sandbox *sandbox)
{
	if (sandbox->loop != NULL) {
		loop_timer_stop(sandbox->loop, &sandbox->extender.restart_timer);
		loop_timer_stop(sandbox->loop, &sandbox->extender.ready_timer);
	}
	if (sandbox->extender.client != NULL)
		http_client_destroy(sandbox->extender.client);
	child_process_destroy(sandbox->extender.process);
	sandbox->extender.process = NULL;
}

/* ---- until it is ready ---- */

static void ask(void *context);

static void on_asked(void *context, const struct http_response *response, const struct error *failure)
{
	struct sandbox *sandbox = context;
	struct sandbox_extender *extender = &sandbox->extender;

	if (sandbox->finished)
		return;
	if (failure == NULL && response->status == 200) {
		sandbox_pods_begin(sandbox);
		return;
	}
	if (loop_now_ns(sandbox->loop) < extender->ready_until_ns) {
		loop_timer_start(sandbox->loop, &extender->ready_timer, (uint64_t)READY_POLL_MS * NS_PER_MS, ask,
		                 sandbox);
		return;
	}
	judge_mismatch(&sandbox->judge, "the extender wasn't ready within %d s", READY_S);
	sandbox_finish(sandbox, false, false);
}

static void ask(void *context)
{
	static const struct http_handler HANDLER = { .on_done = on_asked };
	struct sandbox *sandbox = context;
	struct http_request request = {
		.origin = { .port = HEALTH_PORT },
		.method = SLICE("GET"),
		.target = SLICE("/readyz"),
		.total_timeout_ns = NS_PER_S,
		.max_body_bytes = ANSWER_BYTES_MAX,
	};
	struct error err;

	memcpy(request.origin.host, sandbox->extender.address, strlen(sandbox->extender.address) + 1);
	if (http_client_send(sandbox->extender.client, &request, &HANDLER, sandbox, &err) == NULL)
		on_asked(sandbox, NULL, &err);
}

bool sandbox_extender_await(struct sandbox *sandbox, struct error *err)
{
	struct sandbox_extender *extender = &sandbox->extender;

	extender->client = http_client_create(sandbox->loop, err);
	if (extender->client == NULL)
		return false;
	extender->ready_until_ns = loop_now_ns(sandbox->loop) + (uint64_t)READY_S * NS_PER_S;
	loop_timer_start(sandbox->loop, &extender->ready_timer, (uint64_t)READY_POLL_MS * NS_PER_MS, ask, sandbox);
	return true;
}

/* ---- the start ---- */

struct arguments {
	char texts[ARGUMENTS_MAX][ARGUMENT_BYTES];
	const char *list[ARGUMENTS_MAX + 1];
	size_t count;
};

static void add_argument(struct arguments *arguments, const char *text, const char *value)
{
	(void)snprintf(arguments->texts[arguments->count], ARGUMENT_BYTES, "%s%s", text, value);
	arguments->list[arguments->count] = arguments->texts[arguments->count];
	arguments->count++;
}

/* As the operator gives them (D1); addresses are ours. */
static void fill_arguments(const struct sandbox *sandbox, struct arguments *arguments)
{
	const char *address = sandbox->extender.address;
	char text[VALUE_BYTES];

	*arguments = (struct arguments){ .count = 0 };
	add_argument(arguments, "ballast", "");
	add_argument(arguments, "extender", "");
	add_argument(arguments, "--namespace=kube-system", "");
	add_argument(arguments, "--provisioner=", STORAGE_PROVISIONER);
	add_argument(arguments, "--port=8889", "");
	add_argument(arguments, "--healthport=9999", "");
	add_argument(arguments, "--loglevel=debug", "");
	add_argument(arguments, "--certFile=", "");
	add_argument(arguments, "--privateKeyFile=", "");
	(void)snprintf(text, sizeof text, "%s:8787", address);
	add_argument(arguments, "--metrics-address=", text);
	add_argument(arguments, "--metrics-path=/metrics", "");
	add_argument(arguments, "--usenodeannotation=false", "");
	add_argument(arguments, "--isPatchingEnabled=false", "");
	add_argument(arguments, "--listen-address=", address);
	add_argument(arguments, "--healthip=", address);
	if (sandbox->options->wait_for_reservation_ns > 0) {
		(void)snprintf(text, sizeof text, "%llums",
		               (unsigned long long)(sandbox->options->wait_for_reservation_ns / NS_PER_MS));
		add_argument(arguments, "--wait-for-reservation=", text);
	}
}

static void fill_environment(struct sandbox *sandbox)
{
	struct agent_environment *environment = &sandbox->extender.environment;
	enum { TEXT_BYTES = sizeof environment->texts[0] };

	(void)snprintf(environment->texts[0], TEXT_BYTES, "KUBE_NODE_NAME=node-a");
	(void)snprintf(environment->texts[1], TEXT_BYTES, "KUBERNETES_SERVICE_HOST=%s",
	               cluster_api_address(sandbox->cluster));
	(void)snprintf(environment->texts[2], TEXT_BYTES, "KUBERNETES_SERVICE_PORT=%d", AGENT_SETUP_API_PORT);
	(void)snprintf(environment->texts[3], TEXT_BYTES, "BALLAST_SERVICEACCOUNT_DIR=%.*s", TEXT_BYTES - 32,
	               sandbox->extender.account);
	for (size_t i = 0; i < 4; i++)
		environment->variables[i] = environment->texts[i];
	environment->variables[4] = NULL;
}

bool sandbox_extender_start(struct sandbox *sandbox, struct error *err)
{
	struct sandbox_extender *extender = &sandbox->extender;
	const char *log_path = sandbox->options->agent_log;
	struct child_options options = { .path = sandbox->program, .end_signals_wait = true };
	char room[AGENT_SETUP_LOG_PATH_BYTES];
	struct arguments arguments;

	fill_arguments(sandbox, &arguments);
	fill_environment(sandbox);
	options.arguments = arguments.list;
	options.environment = extender->environment.variables;
	extender->log_start = agent_log_length(agent_setup_log_path(&sandbox->setup, LOG_NAME, log_path, room));
	options.output = agent_setup_open_log(&sandbox->setup, LOG_NAME, log_path, err);
	if (options.output < 0)
		return error_wrap(err, "the extender's log");
	extender->process = child_process_start(sandbox->loop, &options, on_exit_of_extender, sandbox, err);
	(void)close(options.output);
	if (extender->process == NULL)
		return false;
	extender->expected = false;
	sandbox->agents_running++;
	sandbox->agents_were_started = true;
	live_view_event(sandbox->view,
	                "started the extender: http://%s:%d/filter (metrics: port 8787, health: port 9999)",
	                extender->address, EXTENDER_PORT);
	return true;
}
