/*
 * What the agent is made of, for its own files only: agent.c has its life from the first step to the last,
 * agent_start.c the steps of the start-up.
 */
#ifndef BALLAST_AGENT_AGENT_INTERNAL_H
#define BALLAST_AGENT_AGENT_INTERNAL_H

#include <stdbool.h>

#include "agent/admin_token.h"
#include "agent/agent.h"
#include "agent/agent_clock.h"
#include "agent/agent_metrics.h"
#include "agent/agent_peers.h"
#include "agent/config.h"
#include "agent/event_reporting.h"
#include "agent/kube_events.h"
#include "agent/scheduler_tracking.h"
#include "agent/servers.h"
#include "agent/supervisor.h"
#include "agent/vm_metrics.h"
#include "agent/vm_watch.h"
#include "base/arena.h"
#include "base/token_bucket.h"
#include "kube/client.h"
#include "metrics/text_parser.h"
#include "net/http_client.h"
#include "net/log_pump.h"
#include "net/loop.h"

struct agent {
	const struct agent_arguments *arguments;
	struct loop *loop;
	struct log_sink *log_sink;
	struct log_pump log_pump;
	int signals; /* descriptor; -1: none */
	struct loop_watch *signal_watch;
	bool fatal;
	bool stopping;
	bool servers_drained;
	bool events_delivered; /* or given up */
	struct loop_timer linger;

	struct agent_clock clock;
	struct arena arena; /* of the configuration */
	struct agent_config config;
	struct agent_metrics *metrics;
	struct vm_metrics *vm_metrics;
	struct http_client *http; /* to VMs and schedulers */
	struct metrics_text_parser parser;
	struct kube_client *kube;
	struct token_bucket vm_limiter, pod_limiter; /* protocols 9.3.1 */
	struct vm_watch *vm_watch;
	struct scheduler_tracking *schedulers;
	struct plugin_versions plugin_versions;
	struct agent_peers peers;
	struct event_reporting *reporting;
	struct scaling_event_sink scaling_events;
	struct kube_events *kube_events; /* NULL: not asked for */
	struct supervisor *supervisor;   /* NULL until the main loop begins */
	struct admin_token admin_token;
	struct servers *servers;
};

struct logger agent_logger(const struct agent *agent);
/* Logs the line that is the last, and ends the loop: exit status 2. */
void agent_fail(struct agent *agent, const char *message, struct slice error_text);

/*
 * For whoever runs an agent on a loop of his own (the simulator) instead of agent_run: the struct is zero but for
 * arguments, loop and log_sink. agent_prepare comes before agent_start; agent_dismantle after it, whatever it said, and
 * leaves loop and log sink alone.
 */
void agent_prepare(struct agent *agent);
void agent_dismantle(struct agent *agent);
/* As SIGTERM: ends in good order, then stops the loop. */
void agent_stop(struct agent *agent);

/* Does the steps of 1.2 up to the VM watch; the others follow from the loop. False: agent_fail was called. */
bool agent_start(struct agent *agent);

#endif
