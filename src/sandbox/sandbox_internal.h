/*
 * What the files of a run share: sandbox.c (its course), sandbox_agents.c (the agents' processes), sandbox_signals.c.
 */
#ifndef BALLAST_SANDBOX_SANDBOX_INTERNAL_H
#define BALLAST_SANDBOX_SANDBOX_INTERNAL_H

#include "sandbox/agent_setup.h"
#include "sandbox/child_process.h"
#include "sandbox/cluster.h"
#include "sandbox/judge.h"
#include "sandbox/live_view.h"
#include "sandbox/report.h"
#include "sandbox/sandbox.h"
#include "sandbox/workload.h"

/* Addresses of a run are its own; but who listens on all addresses has the port of each. */
#define SANDBOX_PORT_ADVICE "something listens on that port on all addresses; stop it"

struct sandbox_agent {
	struct sandbox *sandbox;
	struct agent_place place;
	struct agent_environment environment;
	struct child_process *process;
	uint64_t log_start; /* where its log begins in the file */
	bool killed;        /* by us; how it ended says nothing then */
};

struct sandbox_outage {
	struct sandbox *sandbox;
	const struct outage *outage;
	struct loop_timer start, end;
	bool active;
};

struct sandbox {
	const struct sandbox_options *options;
	const char *program;
	struct workload *workload;
	struct loop *loop;
	struct cluster *cluster;
	struct agent_setup setup;
	struct judge judge;
	struct live_view *view;
	struct sandbox_agent agents[CLUSTER_AGENTS_MAX];
	unsigned agents_running;
	bool agents_were_started;
	struct report_usage usage;
	struct sandbox_outage outages[OUTAGES_MAX];
	struct loop_timer phase_timer, end_timer;
	struct loop_timer stop_timer; /* how long agents have to end */
	bool hurried;                 /* … which was shortened by a second signal */
	struct loop_watch *signal_watch;
	int signals;
	uint64_t start_ns;
	uint64_t duration_ns; /* how long it ran, once it has finished */
	unsigned phase;
	bool started;
	bool finished;
	bool interrupted;            /* by a signal, before it started */
	bool descriptors_were_short; /* as was told already */
};

uint64_t sandbox_elapsed_ns(const struct sandbox *sandbox);
/* The run is over, for whatever reason; agents are told to end, and the loop stops when they have. */
void sandbox_finish(struct sandbox *sandbox, bool phase_complete, bool judged);

/* ---- sandbox_agents.c ---- */

bool sandbox_agent_start(struct sandbox *sandbox, unsigned index, struct error *err);
void sandbox_agents_signal(struct sandbox *sandbox, int signal_number);
/* SIGTERM, and SIGKILL to those that take too long. */
void sandbox_agents_stop(struct sandbox *sandbox);
/* They are being stopped, and it shall take no long time any more. */
void sandbox_agents_hurry(struct sandbox *sandbox);

/* ---- sandbox_signals.c ---- */

bool sandbox_signals_watch(struct sandbox *sandbox, struct error *err);
void sandbox_signals_end(struct sandbox *sandbox);

#endif
