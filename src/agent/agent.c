#include "agent/agent_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/syscall_filter.h"
#include "net/loop_epoll.h"

enum {
	LOG_RING_BYTES = 1024 * 1024,
	LOG_LAST_WAIT_MS = 1000,
	DRAIN_TIMEOUT_MS = 2000, /* for open requests of the metrics servers */
	LINGER_MS = 50,          /* for close frames to leave */
};

struct logger agent_logger(const struct agent *agent)
{
	return (struct logger){ .sink = agent->log_sink, .name = "autoscaler-agent", .context_json = "" };
}

void agent_fail(struct agent *agent, const char *message, struct slice error_text)
{
	struct logger logger = agent_logger(agent);

	if (agent->fatal)
		return;
	agent->fatal = true;
	log_panic(&logger, message, log_slice("error", error_text));
	loop_stop(agent->loop);
}

/* ---- the end ---- */

static void end_if_all_is_done(struct agent *agent)
{
	struct logger logger = agent_logger(agent);

	if (!agent->servers_drained || !agent->events_delivered || loop_timer_running(&agent->linger))
		return;
	log_info(&logger, "Main loop returned without issue. Exiting.");
	loop_stop(agent->loop);
}

static void on_drained(void *context)
{
	struct agent *agent = context;

	agent->servers_drained = true;
	end_if_all_is_done(agent);
}

static void on_events_delivered(void *context)
{
	struct agent *agent = context;

	agent->events_delivered = true;
	end_if_all_is_done(agent);
}

static void on_lingered(void *context)
{
	end_if_all_is_done(context);
}

/* 1.3.2, 1.3.3: no more events, no more runners; the dump server goes on until the process ends. */
void agent_stop(struct agent *agent)
{
	if (agent->stopping)
		return;
	agent->stopping = true;
	/* It looks at the VMs once more, so it comes before the watch's end. */
	if (agent->reporting == NULL)
		agent->events_delivered = true;
	else
		event_reporting_finish(agent->reporting, on_events_delivered, agent);
	vm_watch_stop(agent->vm_watch);
	agent->vm_watch = NULL;
	if (agent->supervisor != NULL)
		supervisor_stop(agent->supervisor);
	scheduler_tracking_stop(agent->schedulers);
	agent->schedulers = NULL;
	agent->peers.schedulers = NULL;
	loop_timer_start(agent->loop, &agent->linger, (uint64_t)LINGER_MS * NS_PER_MS, on_lingered, agent);
	if (agent->servers == NULL)
		agent->servers_drained = true;
	else
		servers_drain(agent->servers, (uint64_t)DRAIN_TIMEOUT_MS * NS_PER_MS, on_drained, agent);
}

/* ---- signals ---- */

static void on_signal(void *context)
{
	struct agent *agent = context;
	struct signalfd_siginfo information;

	while (read(agent->signals, &information, sizeof information) == (ssize_t)sizeof information)
		agent_stop(agent);
}

/* SIGINT too, unlike the reference (1.3.2): an agent started by hand ends as orderly as one in a pod. */
static bool watch_signals(struct agent *agent, struct error *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	/* A peer that went away is an error of a write, not the end. */
	(void)signal(SIGPIPE, SIG_IGN);
	agent->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (agent->signals < 0)
		return error_set_errno(err, errno, "signalfd");
	agent->signal_watch = loop_watch_descriptor(agent->loop, agent->signals, SOCKET_READ, on_signal, agent, err);
	return agent->signal_watch != NULL;
}

/* ---- life ---- */

static int64_t wall_ns(void *context)
{
	return loop_wall_ns(context);
}

void agent_prepare(struct agent *agent)
{
	agent->clock = agent_clock_start(agent->loop);
	arena_init(&agent->arena, AGENT_CONFIG_ARENA_BYTES);
	metrics_text_parser_init(&agent->parser, rng_next(loop_rng(agent->loop)));
}

static bool prepare(struct agent *agent, struct error *err)
{
	agent->loop = loop_epoll_create(err);
	if (agent->loop == NULL)
		return false;
	agent->log_sink = log_sink_create(STDERR_FILENO, agent->arguments->log_format, agent->arguments->log_level,
	                                  LOG_RING_BYTES, wall_ns, agent->loop, err);
	if (agent->log_sink == NULL)
		return false;
	log_pump_start(&agent->log_pump, agent->loop, agent->log_sink);
	agent_prepare(agent);
	return watch_signals(agent, err);
}

/* In the opposite order of the start. */
void agent_dismantle(struct agent *agent)
{
	vm_watch_stop(agent->vm_watch);
	if (agent->supervisor != NULL)
		supervisor_destroy(agent->supervisor);
	kube_events_destroy(agent->kube_events);
	event_reporting_destroy(agent->reporting);
	scheduler_tracking_stop(agent->schedulers);
	servers_destroy(agent->servers);
	if (agent->kube != NULL)
		kube_client_destroy(agent->kube);
	if (agent->http != NULL)
		http_client_destroy(agent->http);
	vm_metrics_destroy(agent->vm_metrics);
	agent_metrics_destroy(agent->metrics);
	metrics_text_parser_destroy(&agent->parser);
	arena_destroy(&agent->arena);
	loop_timer_stop(agent->loop, &agent->linger);
}

static void end_process(struct agent *agent)
{
	if (agent->loop != NULL)
		agent_dismantle(agent);
	if (agent->signal_watch != NULL)
		loop_watch_stop(agent->signal_watch);
	if (agent->signals >= 0)
		(void)close(agent->signals);
	log_pump_stop(&agent->log_pump);
	if (agent->log_sink != NULL)
		log_sink_destroy(agent->log_sink, LOG_LAST_WAIT_MS);
	if (agent->loop != NULL)
		loop_destroy(agent->loop);
}

/*
 * Before the first byte from the network is read. An old kernel is no reason not to scale VMs: the agent goes on, and
 * says so.
 */
static void filter_system_calls(struct agent *agent)
{
	struct logger logger = agent_logger(agent);
	struct error err;

	if (!agent->arguments->no_syscall_filter && !syscall_filter_install(&err))
		log_warn(&logger, "System calls aren't filtered (--no-seccomp makes this warning go away)",
		         log_error_field(&err));
}

/* False with *err when the loop failed; a failed start has been told by agent_fail. */
static bool start_and_run(struct agent *agent, struct error *err)
{
	if (!agent_start(agent))
		return true;
	filter_system_calls(agent);
	return loop_run(agent->loop, err);
}

int agent_run(const struct agent_arguments *arguments)
{
	struct agent agent = { .arguments = arguments, .signals = -1 };
	struct error err;

	if (!prepare(&agent, &err)) {
		(void)fprintf(stderr, "ballast agent: %s\n", err.text);
		agent.fatal = true;
	} else if (!start_and_run(&agent, &err)) {
		agent_fail(&agent, "Main loop failed", slice_of(err.text));
	}
	end_process(&agent);
	return agent.fatal ? AGENT_EXIT_FATAL : AGENT_EXIT_OK;
}
