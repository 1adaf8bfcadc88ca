/*
 * The child inherits the writing end of a pipe that nobody writes to. When it ends, however it does, the reading end gets its
 * end of file, and the loop tells. That works on every kernel and takes no signal handler.
 */
#include "sandbox/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

enum {
	EXIT_NOT_EXECUTED = 127,
	REAP_AGAIN_MS = 5, /* the end of file comes a moment before the process can be waited for */
};

struct child_process {
	struct loop *loop;
	pid_t pid; /* 0: it has ended */
	int pipe;  /* -1: closed */
	struct loop_watch *watch;
	struct loop_timer timer;
	child_exit_callback *on_exit;
	void *context;
};

/* execve doesn't change its lists; its parameters are just older than const. */
static char *const *as_execve_takes_it(const char *const *list)
{
	char *const *taken;

	memcpy(&taken, &list, sizeof taken);
	return taken;
}

/* The signals that the child begins with blocked. */
static sigset_t blocked_signals(const struct child_options *options)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	if (options->end_signals_wait) {
		sigaddset(&blocked, SIGINT);
		sigaddset(&blocked, SIGTERM);
	}
	return blocked;
}

/* Between fork and exec: only what is safe there. */
static void become(const struct child_options *options, pid_t parent, int pipe_end)
{
	sigset_t blocked = blocked_signals(options);
	int null = open("/dev/null", O_RDONLY);

	if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || null < 0 ||
	    dup2(null, STDIN_FILENO) < 0 || dup2(options->output, STDOUT_FILENO) < 0 ||
	    dup2(options->output, STDERR_FILENO) < 0 || fcntl(pipe_end, F_SETFD, 0) != 0 ||
	    signal(SIGPIPE, SIG_DFL) == SIG_ERR || sigprocmask(SIG_SETMASK, &blocked, NULL) != 0)
		_exit(EXIT_NOT_EXECUTED);
	close(null);
	execve(options->path, as_execve_takes_it(options->arguments), as_execve_takes_it(options->environment));
	_exit(EXIT_NOT_EXECUTED);
}

static uint64_t microseconds_of(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

/* True if it has ended, and how. */
static bool reap(struct child_process *child, int flags, struct child_exit *ret_exit)
{
	struct rusage usage;
	int status;
	pid_t pid;

	do
		pid = wait4(child->pid, &status, flags, &usage);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	child->pid = 0;
	*ret_exit = (struct child_exit){ .status = -1 };
	if (pid < 0)
		return true;
	ret_exit->signalled = WIFSIGNALED(status);
	ret_exit->status = ret_exit->signalled ? WTERMSIG(status) : WEXITSTATUS(status);
	ret_exit->max_resident_kib = (uint64_t)usage.ru_maxrss;
	ret_exit->cpu_us = microseconds_of(usage.ru_utime) + microseconds_of(usage.ru_stime);
	return true;
}

static void stop_watching(struct child_process *child)
{
	loop_watch_stop(child->watch);
	child->watch = NULL;
	loop_timer_stop(child->loop, &child->timer);
	if (child->pipe >= 0)
		close(child->pipe);
	child->pipe = -1;
}

static void try_to_reap(void *context)
{
	struct child_process *child = context;
	struct child_exit how;

	if (!reap(child, WNOHANG, &how)) {
		loop_timer_start(child->loop, &child->timer, (uint64_t)REAP_AGAIN_MS * NS_PER_MS, try_to_reap, child);
		return;
	}
	child->on_exit(child->context, &how);
}

static void on_end_of_file(void *context)
{
	struct child_process *child = context;

	stop_watching(child);
	try_to_reap(child);
}

static bool start(struct child_process *child, const struct child_options *options, struct error *err)
{
	pid_t parent = getpid();
	sigset_t blocked, before;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_set_errno(err, errno, "pipe2");
	child->pipe = ends[0];
	child->watch = loop_watch_descriptor(child->loop, child->pipe, SOCKET_READ, on_end_of_file, child, err);
	if (child->watch == NULL) {
		close(ends[1]);
		return false;
	}
	/* Blocked before it is there: a signal may come first of all. */
	blocked = blocked_signals(options);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	child->pid = fork();
	if (child->pid == 0)
		become(options, parent, ends[1]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	if (child->pid < 0) {
		child->pid = 0;
		return error_set_errno(err, errno, "fork");
	}
	return true;
}

struct child_process *child_process_start(struct loop *loop, const struct child_options *options,
                                          child_exit_callback *on_exit, void *context, struct error *err)
{
	struct child_process *child = memory_allocate(sizeof *child);

	if (child == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory for a child process");
		return NULL;
	}
	child->loop = loop;
	child->pipe = -1;
	child->on_exit = on_exit;
	child->context = context;
	if (!start(child, options, err)) {
		error_wrap(err, "starting %s", options->path);
		child_process_destroy(child);
		return NULL;
	}
	return child;
}

int child_process_id(const struct child_process *child)
{
	return child->pid;
}

bool child_process_running(const struct child_process *child)
{
	return child->pid != 0;
}

void child_process_signal(struct child_process *child, int signal_number)
{
	if (child->pid != 0)
		kill(child->pid, signal_number);
}

void child_process_destroy(struct child_process *child)
{
	struct child_exit how;

	if (child == NULL)
		return;
	stop_watching(child);
	if (child->pid != 0) {
		kill(child->pid, SIGKILL);
		reap(child, 0, &how);
	}
	memory_release(child);
}
