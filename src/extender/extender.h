/*
 * The extender as a process (spec extender 1): start-up in a fixed order, the loop, and an orderly end on SIGTERM.
 */
#ifndef BALLAST_EXTENDER_EXTENDER_H
#define BALLAST_EXTENDER_EXTENDER_H

#include "base/log.h"
#include "extender/config.h"

/* Exit statuses (P2, P7). */
enum { EXTENDER_EXIT_OK = 0, EXTENDER_EXIT_FATAL = 1, EXTENDER_EXIT_USAGE = 2 };

/* Texts may be NULL or empty, which means: not given. */
struct extender_arguments {
	struct extender_flags flags;
	const char *ignored_word; /* the first word behind the flags, which is ignored with a warning (P1) */
	/* From the environment (1.2). */
	const char *node_name;
	const char *kubeconfig; /* $KUBECONFIG: a file, or several with ':' between */
	const char *home;       /* $HOME, for ~/.kube/config */
	const char *kubernetes_host, *kubernetes_port;
	const char *credentials_dir;
	enum log_format log_format;
};

/*
 * Runs until SIGTERM or a fatal failure, which the last line of the log names; returns the exit status. Logs to standard
 * output. To be called once, from a process that has no other threads: it changes the process's signal mask.
 */
int extender_run(const struct extender_arguments *arguments);

#endif
