/*
 * Signals come through a descriptor of the loop. What ends a program in the usual way ends the run: SIGINT, SIGTERM, SIGHUP,
 * SIGQUIT. SIGTSTP stops the agents and this process, with the terminal as it was before; SIGCONT goes on.
 */
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void end(struct sandbox *sandbox)
{
	if (!sandbox->started)
		sandbox->interrupted = true;
	else if (sandbox->finished)
		sandbox_agents_hurry(sandbox);
	else
		sandbox_finish(sandbox, false, true);
}

static void pause_all(struct sandbox *sandbox)
{
	sandbox_agents_signal(sandbox, SIGSTOP);
	live_view_suspend(sandbox->view);
	(void)kill(getpid(), SIGSTOP);
}

/* Also after a SIGSTOP that came from elsewhere. */
static void go_on(struct sandbox *sandbox)
{
	sandbox_agents_signal(sandbox, SIGCONT);
	live_view_resume(sandbox->view);
	if (sandbox->started)
		judge_disturbed(&sandbox->judge, sandbox_elapsed_ns(sandbox));
}

static void on_signal(void *context)
{
	struct sandbox *sandbox = context;
	struct signalfd_siginfo information;

	while (read(sandbox->signals, &information, sizeof information) == (ssize_t)sizeof information) {
		if (information.ssi_signo == SIGTSTP)
			pause_all(sandbox);
		else if (information.ssi_signo == SIGCONT)
			go_on(sandbox);
		else
			end(sandbox);
	}
}

/* SIGINT is watched even if it is ignored, as shells do to what they start in the background: it is how a run is ended. */
static void choose_signals(sigset_t *set)
{
	static const int unless_ignored[] = { SIGHUP, SIGQUIT, SIGTSTP };

	(void)sigemptyset(set);
	(void)sigaddset(set, SIGINT);
	(void)sigaddset(set, SIGTERM);
	(void)sigaddset(set, SIGCONT);
	for (size_t i = 0; i < sizeof unless_ignored / sizeof unless_ignored[0]; i++) {
		struct sigaction action;

		if (sigaction(unless_ignored[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			(void)sigaddset(set, unless_ignored[i]);
	}
}

bool sandbox_signals_watch(struct sandbox *sandbox, struct error *err)
{
	sigset_t set;

	choose_signals(&set);
	/* A file that may not grow is an error of a write, here and in the agents, which inherit that. */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR ||
	    sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return error_set_errno(err, errno, "sigprocmask");
	sandbox->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sandbox->signals < 0)
		return error_set_errno(err, errno, "signalfd");
	sandbox->signal_watch =
		loop_watch_descriptor(sandbox->loop, sandbox->signals, SOCKET_READ, on_signal, sandbox, err);
	return sandbox->signal_watch != NULL;
}

void sandbox_signals_end(struct sandbox *sandbox)
{
	loop_watch_stop(sandbox->signal_watch);
	if (sandbox->signals >= 0)
		(void)close(sandbox->signals);
}
