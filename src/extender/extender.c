#include "extender/extender_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/syscall_filter.h"
#include "extender/process_limits.h"
#include "net/loop_epoll.h"

enum { LOG_RING_BYTES = 1024 * 1024, LOG_LAST_WAIT_MS = 1000 };

struct logger extender_logger(const struct extender *extender)
{
	return (struct logger){ .sink = extender->log_sink,
		                .name = "extender",
		                .context_json = "\"component\":\"Extender\"" };
}

void extender_fail(struct extender *extender, const char *message, const struct error *err)
{
	struct logger logger = extender_logger(extender);

	if (extender->fatal)
		return;
	extender->fatal = true;
	log_error(&logger, message, log_error_field(err));
	loop_stop(extender->loop);
}

/* ---- the end ---- */

static void on_drained(void *context)
{
	struct extender *extender = context;

	loop_stop(extender->loop);
}

/* P9: what is under way is answered, within the grace of 10 s; a second signal doesn't wait for that. */
void extender_stop(struct extender *extender)
{
	struct logger logger = extender_logger(extender);

	if (extender->stopping) {
		extender->fatal = true;
		loop_stop(extender->loop);
		return;
	}
	extender->stopping = true;
	log_info(&logger, "Stopping");
	if (extender->health != NULL)
		health_set_stopping(extender->health);
	if (extender->server != NULL)
		extender_server_drain(extender->server, (uint64_t)EXTENDER_STOP_MS * NS_PER_MS, on_drained, extender);
	else
		loop_stop(extender->loop);
}

static void on_signal(void *context)
{
	struct extender *extender = context;
	struct signalfd_siginfo information;

	while (read(extender->signals, &information, sizeof information) == (ssize_t)sizeof information)
		extender_stop(extender);
}

static bool watch_signals(struct extender *extender, struct error *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	/* A peer that went away is an error of a write, not the end. */
	(void)signal(SIGPIPE, SIG_IGN);
	extender->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (extender->signals < 0)
		return error_set_errno(err, errno, "signalfd");
	extender->signal_watch =
		loop_watch_descriptor(extender->loop, extender->signals, SOCKET_READ, on_signal, extender, err);
	return extender->signal_watch != NULL;
}

/* ---- life ---- */

static int64_t wall_ns(void *context)
{
	return loop_wall_ns(context);
}

static bool prepare(struct extender *extender, struct error *err)
{
	const struct extender_arguments *arguments = extender->arguments;

	extender->loop = loop_epoll_create(err);
	if (extender->loop == NULL)
		return false;
	extender->log_sink =
		log_sink_create(STDOUT_FILENO, arguments->log_format, extender_log_level(arguments->flags.log_level),
	                        LOG_RING_BYTES, wall_ns, extender->loop, err);
	if (extender->log_sink == NULL)
		return false;
	log_pump_start(&extender->log_pump, extender->loop, extender->log_sink);
	return watch_signals(extender, err);
}

/* In the opposite order of the start. */
void extender_dismantle(struct extender *extender)
{
	extender_server_destroy(extender->server);
	tls_files_close(extender->tls);
	health_stop(extender->health);
	event_lists_destroy(extender->events);
	caches_stop(extender->caches);
	kube_client_destroy(extender->kube);
	metrics_page_stop(extender->metrics_page);
	extender_metrics_destroy(extender->metrics);
	loop_timer_stop(extender->loop, &extender->sweep);
}

/* What prepare made, in the opposite order. */
static void unprepare(struct extender *extender)
{
	if (extender->signal_watch != NULL)
		loop_watch_stop(extender->signal_watch);
	if (extender->signals >= 0)
		(void)close(extender->signals);
	log_pump_stop(&extender->log_pump);
	if (extender->log_sink != NULL)
		log_sink_destroy(extender->log_sink, LOG_LAST_WAIT_MS);
	if (extender->loop != NULL)
		loop_destroy(extender->loop);
}

/* Before the first byte from the network is read. An old kernel is no reason not to place pods. */
static void filter_system_calls(struct extender *extender)
{
	struct logger logger = extender_logger(extender);
	struct error err;

	if (!extender->arguments->flags.no_seccomp && !syscall_filter_install(&err))
		log_warn(&logger, "System calls aren't filtered (--no-seccomp makes this warning go away)",
		         log_error_field(&err));
}

/* False with *err when the loop failed; a failed start has been told by extender_fail. */
static bool start_and_run(struct extender *extender, struct error *err)
{
	if (!extender_start(extender))
		return true;
	filter_system_calls(extender);
	return loop_run(extender->loop, err);
}

int extender_run(const struct extender_arguments *arguments)
{
	struct extender extender = { .arguments = arguments, .signals = -1 };
	struct error err;

	if (!prepare(&extender, &err)) {
		(void)fprintf(stderr, "ballast extender: %s\n", err.text);
		extender.fatal = true;
	} else if (!start_and_run(&extender, &err)) {
		extender_fail(&extender, "Main loop failed", &err);
	}
	if (extender.loop != NULL)
		extender_dismantle(&extender);
	unprepare(&extender);
	return extender.fatal ? EXTENDER_EXIT_FATAL : EXTENDER_EXIT_OK;
}
