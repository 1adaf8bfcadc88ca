/*
 * A child process of the sandbox: started with an environment of its own, watched by the loop, and never left behind: it ends
 * when its handle is destroyed, and also when this process dies.
 */
#ifndef BALLAST_SANDBOX_CHILD_PROCESS_H
#define BALLAST_SANDBOX_CHILD_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"

struct child_process;

struct child_options {
	const char *path;
	const char *const *arguments;   /* NULL-terminated, as are the variables "NAME=value" */
	const char *const *environment; /* all of it: nothing is inherited */
	int output; /* a descriptor that becomes its standard output and standard error; stays the caller's */
	/*
	 * It begins with SIGINT and SIGTERM blocked: for a program that reads them from a signalfd, so that one that comes
	 * before it is ready waits for it. Otherwise no signal is blocked.
	 */
	bool end_signals_wait;
};

/* How it ended. */
struct child_exit {
	bool signalled;
	int status; /* exit status, or the signal that ended it */
	uint64_t max_resident_kib;
	uint64_t cpu_us; /* microseconds of CPU, user and system */
};

/* It has ended; the handle stays the caller's to destroy, also from here. */
typedef void child_exit_callback(void *context, const struct child_exit *how);

/* It has a process group of its own, so that a terminal's Ctrl-C reaches the sandbox alone. A program that can't be executed exits with 127. */
struct child_process *child_process_start(struct loop *loop, const struct child_options *options,
                                          child_exit_callback *on_exit, void *context, struct error *err);
int child_process_id(const struct child_process *child);
bool child_process_running(const struct child_process *child);
/* Does nothing once it has ended. */
void child_process_signal(struct child_process *child, int signal_number);
/* Kills it if it still runs, and waits for that; calls back no more. NULL is fine. */
void child_process_destroy(struct child_process *child);

#endif
