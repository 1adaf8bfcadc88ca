/*
 * The agent as a process: start-up in a fixed order, the main loop, and an orderly end on SIGTERM (spec agent-runtime
 * 1).
 */
#ifndef BALLAST_AGENT_AGENT_H
#define BALLAST_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

/* Exit statuses (1.3). */
enum { AGENT_EXIT_OK = 0, AGENT_EXIT_FATAL = 2 };

enum { AGENT_API_QPS = 50, AGENT_API_BURST = 100, AGENT_API_RATE_MAX = 1000000 };

/* Less than the half minute that a pod is given by default; at most a day. */
enum { AGENT_GRACE_S = 25, AGENT_GRACE_MAX_S = 86400 };

/* Bounds that may be asked for, of events that wait for one client; one event may have 64 KiB. */
enum { AGENT_EVENT_QUEUE_EVENTS_MAX = 100 * 1000 * 1000, AGENT_EVENT_QUEUE_BYTES_MIN = 64 * 1024 };
#define AGENT_EVENT_QUEUE_BYTES_MAX ((uint64_t)1 << 40)

/* Texts may be NULL or empty, which means: not given. */
struct agent_arguments {
	const char *config_path;
	const char *node_name;
	const char *pod_ip;    /* required, used for nothing (1.1) */
	const char *host_name; /* in the keys of billing events; not given: the kernel's */
	const char *kubernetes_host;
	const char *kubernetes_port;
	const char *credentials_dir;  /* NULL: the usual one */
	const char *kubeconfig;       /* file, or several with ':' between, in place of these three */
	bool kubernetes_plain;        /* HTTP without TLS: for tests only, as in kube/client.h */
	const char *listen_address;   /* of the metrics and dump servers; a literal address */
	const char *admin_token_file; /* who reads metrics and dump must show what it holds; NULL: everybody may */
	bool no_syscall_filter;
	uint32_t api_qps; /* requests to Kubernetes */
	uint32_t api_burst;
	uint64_t grace_ns;           /* how long events may take to be delivered after SIGTERM */
	uint64_t event_queue_events; /* bounds of the queue of each client for events; 0: the defaults */
	uint64_t event_queue_bytes;
	bool kube_events; /* tell Kubernetes what was decided: agent/kube_events.h */
	enum log_level log_level;
	enum log_format log_format;
};

/*
 * Runs until SIGTERM or a fatal failure, which one line at level panic names; returns the exit status. Logs to standard
 * error. To be called once, from a process that has no other threads: it changes the process's signal mask.
 */
int agent_run(const struct agent_arguments *arguments);

#endif
