/*
 * The agents' processes: each in its place, its log in a file, and its end looked into.
 */
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/servers.h"
#include "base/clock.h"
#include "base/errno_text.h"
#include "sandbox/agent_log.h"

enum {
	AGENT_STOP_S = 5,  /* from SIGTERM to SIGKILL, beyond what an agent gives its events */
	AGENT_HURRY_S = 2, /* from a second signal to SIGKILL, at most */
};

void sandbox_agents_signal(struct sandbox *sandbox, int signal_number)
{
	for (unsigned i = 0; i < CLUSTER_AGENTS_MAX; i++) {
		if (sandbox->agents[i].process != NULL)
			child_process_signal(sandbox->agents[i].process, signal_number);
	}
	sandbox_extender_signal(sandbox, signal_number);
}

/* ---- the end ---- */

static uint64_t stop_ns(const struct sandbox *sandbox)
{
	return (uint64_t)AGENT_STOP_S * NS_PER_S + sandbox->options->grace_ns;
}

static void on_late(void *context)
{
	struct sandbox *sandbox = context;

	for (unsigned i = 0; i < CLUSTER_AGENTS_MAX; i++) {
		struct sandbox_agent *agent = &sandbox->agents[i];

		if (agent->process == NULL || !child_process_running(agent->process))
			continue;
		agent->killed = true;
		if (sandbox->hurried)
			judge_mismatch(&sandbox->judge, "the agent of %s was killed because of a second Ctrl-C",
			               agent->place.node);
		else
			judge_mismatch(&sandbox->judge, "the agent of %s didn't end within %g s of SIGTERM",
			               agent->place.node, (double)stop_ns(sandbox) / NS_PER_S);
	}
	if (sandbox_extender_is_late(sandbox))
		judge_mismatch(&sandbox->judge, "the extender didn't end in time after SIGTERM");
	sandbox_agents_signal(sandbox, SIGKILL);
}

void sandbox_agents_stop(struct sandbox *sandbox)
{
	live_view_event(sandbox->view, "stopping the agents");
	sandbox_agents_signal(sandbox, SIGTERM);
	loop_timer_start(sandbox->loop, &sandbox->stop_timer, stop_ns(sandbox), on_late, sandbox);
}

void sandbox_agents_hurry(struct sandbox *sandbox)
{
	uint64_t passed_ns = sandbox_elapsed_ns(sandbox) - sandbox->duration_ns;
	uint64_t wait_ns = (uint64_t)AGENT_HURRY_S * NS_PER_S;

	if (sandbox->hurried || sandbox->agents_running == 0)
		return;
	sandbox->hurried = true;
	if (passed_ns + wait_ns >= stop_ns(sandbox))
		return;
	live_view_event(sandbox->view, "asked again to end: agents are killed after %d s", AGENT_HURRY_S);
	loop_timer_start(sandbox->loop, &sandbox->stop_timer, wait_ns, on_late, sandbox);
}

static void describe_end(const struct sandbox_agent *agent, const struct child_exit *how, char *text, size_t size)
{
	char words[AGENT_LOG_WORDS_BYTES], room[AGENT_SETUP_LOG_PATH_BYTES];
	const char *path = agent_setup_log_path(&agent->sandbox->setup, agent->place.node,
	                                        agent->sandbox->options->agent_log, room);
	int length = snprintf(text, size, "%s %d", how->signalled ? "signal" : "exit status", how->status);

	if (agent_log_last_words(path, agent->log_start, words))
		(void)snprintf(text + length, size - (size_t)length, ": %s%s", words,
		               strstr(words, errno_text(EADDRINUSE)) != NULL ? "; " SANDBOX_PORT_ADVICE : "");
}

static void on_exit_of_agent(void *context, const struct child_exit *how)
{
	struct sandbox_agent *agent = context;
	struct sandbox *sandbox = agent->sandbox;
	char ending[AGENT_LOG_WORDS_BYTES + 128];

	sandbox->agents_running--;
	if (how->max_resident_kib > sandbox->usage.max_resident_kib)
		sandbox->usage.max_resident_kib = how->max_resident_kib;
	sandbox->usage.cpu_us += how->cpu_us;
	(void)snprintf(ending, sizeof ending, "%s %d", how->signalled ? "signal" : "exit status", how->status);
	if (how->signalled || how->status != 0 || !sandbox->finished)
		describe_end(agent, how, ending, sizeof ending);
	live_view_event(sandbox->view, "the agent of %s ended: %s", agent->place.node, ending);
	if (!sandbox->finished) {
		judge_mismatch(&sandbox->judge, "the agent of %s ended by itself: %s", agent->place.node, ending);
		sandbox_finish(sandbox, false, false);
	} else if ((how->signalled || how->status != 0) && !agent->killed) {
		judge_mismatch(&sandbox->judge, "the agent of %s didn't end with exit status 0: %s", agent->place.node,
		               ending);
	}
	if (sandbox->agents_running == 0)
		loop_stop(sandbox->loop);
}

/* ---- the start ---- */

bool sandbox_agent_start(struct sandbox *sandbox, unsigned index, struct error *err)
{
	struct sandbox_agent *agent = &sandbox->agents[index];
	const char *arguments[] = { "ballast", "agent", "--listen-address", NULL, NULL, NULL, NULL };
	struct child_options options = { .path = sandbox->program, .arguments = arguments, .end_signals_wait = true };
	const char *log_path = sandbox->options->agent_log;
	char room[AGENT_SETUP_LOG_PATH_BYTES], state_url[LIVE_VIEW_URL_BYTES];

	agent->sandbox = sandbox;
	agent->place = cluster_agent_place(sandbox->cluster, index);
	arguments[3] = agent->place.address;
	if (sandbox->options->grace != NULL) {
		arguments[4] = "--grace";
		arguments[5] = sandbox->options->grace;
	}
	agent_setup_fill_environment(&sandbox->setup, &agent->place, &agent->environment);
	options.environment = agent->environment.variables;
	agent->log_start = agent_log_length(agent_setup_log_path(&sandbox->setup, agent->place.node, log_path, room));
	options.output = agent_setup_open_log(&sandbox->setup, agent->place.node, log_path, err);
	if (options.output < 0)
		return error_wrap(err, "the agent's log");
	agent->process = child_process_start(sandbox->loop, &options, on_exit_of_agent, agent, err);
	(void)close(options.output);
	if (agent->process == NULL)
		return false;
	sandbox->agents_running++;
	sandbox->agents_were_started = true;
	live_view_event(sandbox->view, "started the agent of %s: http://%s:%d/metrics (VMs: port %d, state: port %d)",
	                agent->place.node, agent->place.address, SERVERS_METRICS_PORT, SERVERS_VM_METRICS_PORT,
	                AGENT_SETUP_DUMP_PORT);
	(void)snprintf(state_url, sizeof state_url, "http://%s:%d/", agent->place.address, AGENT_SETUP_DUMP_PORT);
	live_view_set_state_url(sandbox->view, state_url);
	return true;
}
