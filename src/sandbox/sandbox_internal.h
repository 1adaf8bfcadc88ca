/*
 * What the files of a run share: sandbox.c (its course), sandbox_agents.c (the agents' processes), sandbox_signals.c.
 */
#ifndef BALLAST_SANDBOX_SANDBOX_INTERNAL_H
#define BALLAST_SANDBOX_SANDBOX_INTERNAL_H

#include "net/http_client.h"
#include "sandbox/agent_setup.h"
#include "sandbox/billing_judge.h"
#include "sandbox/child_process.h"
#include "sandbox/cluster.h"
#include "sandbox/event_receiver.h"
#include "sandbox/faults.h"
#include "sandbox/judge.h"
#include "sandbox/live_view.h"
#include "sandbox/pod_cluster.h"
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

enum { SANDBOX_TOKEN_BYTES = 48 };

/* The extender's process, with --pods. */
struct sandbox_extender {
	struct child_process *process;
	char token[SANDBOX_TOKEN_BYTES], account[AGENT_SETUP_LOG_PATH_BYTES], address[ADDRESS_TEXT_BYTES];
	struct agent_environment environment;
	uint64_t log_start;
	bool away;     /* by an outage: it isn't started anew when it has ended */
	bool expected; /* its end was made, or asked for */
	bool killed;   /* at the end of the run: how it ended says nothing */
	struct loop_timer restart_timer;
	unsigned restarts;
	struct report_usage usage;
	struct http_client *client; /* asks whether it is ready, at the start */
	struct loop_timer ready_timer;
	uint64_t ready_until_ns;
};

/* A fault that comes by itself. */
struct sandbox_fault {
	struct sandbox *sandbox;
	enum fault_kind kind;
	struct loop_timer timer, end_timer;
	bool active;
	unsigned vm; /* that it is over, while it is active */
};

/* What becomes of the agents' events. */
struct sandbox_events {
	char address[ADDRESS_TEXT_BYTES]; /* the receiver's */
	struct event_receiver *receiver;
	struct billing_judge judge;
	bool voided; /* the run ended in a way that says nothing of billing */
	struct sandbox_report_billed_vm *described;
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
	struct sandbox_events events;
	struct sandbox_agent agents[CLUSTER_AGENTS_MAX];
	unsigned agents_running;
	bool agents_were_started;
	struct report_usage usage;
	struct pod_workload *pod_workload; /* NULL without --pods, as pods */
	struct pod_cluster *pods;
	struct sandbox_extender extender;
	struct faults faults;
	struct loop_timer faults_timer; /* to the first of them */
	struct loop_timer quiet_timer;  /* to the time before a judgement, in which there are none */
	struct sandbox_fault timed_faults[FAULT_COUNT];
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

/* context: the sandbox. A stand-in can't accept a connection. */
void sandbox_on_accept_error(void *context, const struct error *err);

/* ---- sandbox_agents.c ---- */

bool sandbox_agent_start(struct sandbox *sandbox, unsigned index, struct error *err);
void sandbox_agents_signal(struct sandbox *sandbox, int signal_number);
/* SIGTERM, and SIGKILL to those that take too long. */
void sandbox_agents_stop(struct sandbox *sandbox);
/* They are being stopped, and it shall take no long time any more. */
void sandbox_agents_hurry(struct sandbox *sandbox);

/* ---- sandbox_pods.c: pods; all do nothing without --pods ---- */

bool sandbox_pods_set_up(struct sandbox *sandbox, struct error *err);
bool sandbox_pods_start(struct sandbox *sandbox, struct error *err);
/* The extender is ready: pods may come. */
void sandbox_pods_begin(struct sandbox *sandbox);
void sandbox_pods_end(struct sandbox *sandbox);
/* The run ends: what is true of each pod is compared with what the workload states. */
void sandbox_pods_judge(struct sandbox *sandbox);
/* Adds pods, capacity, extender and faults. */
bool sandbox_pods_report(const struct sandbox *sandbox, struct report *report, struct error *err);
void sandbox_pods_tear_down(struct sandbox *sandbox);

/* ---- sandbox_extender.c ---- */

bool sandbox_extender_set_up(struct sandbox *sandbox, struct error *err);
bool sandbox_extender_start(struct sandbox *sandbox, struct error *err);
/* Goes on with sandbox_pods_begin once it says that it is ready. If it doesn't say so in time, the run ends with a mismatch. */
bool sandbox_extender_await(struct sandbox *sandbox, struct error *err);
/* Kills it; it is started anew soon, unless it is away. */
void sandbox_extender_kill(struct sandbox *sandbox);
bool sandbox_extender_set_away(struct sandbox *sandbox, bool away, struct error *err);
/* At the end of the run. */
void sandbox_extender_signal(struct sandbox *sandbox, int signal_number);
/* Whether it hasn't ended in time. */
bool sandbox_extender_is_late(struct sandbox *sandbox);
void sandbox_extender_destroy(struct sandbox *sandbox);

/* ---- sandbox_faults.c: those of --faults that come by themselves ---- */

void sandbox_faults_start(struct sandbox *sandbox);
/* A phase begins: there are faults again, until it is time to let things settle. */
void sandbox_faults_begin_phase(struct sandbox *sandbox);
void sandbox_faults_stop(struct sandbox *sandbox);

/* ---- sandbox_events.c ---- */

/* Once the cluster stands. */
bool sandbox_events_prepare(struct sandbox *sandbox, struct error *err);
/* The agents are started, and told to end. */
void sandbox_events_start(struct sandbox *sandbox);
void sandbox_events_end(struct sandbox *sandbox);
/* A VM has another amount of CPU. */
void sandbox_events_cpu(struct sandbox *sandbox, unsigned vm, uint32_t cpu_milli);
/* A peer goes away or comes back; any peer. */
bool sandbox_events_outage(struct sandbox *sandbox, const struct outage *outage, bool away, struct error *err);
/* The agents have ended: adds what is wrong to the mismatches. */
void sandbox_events_judge(struct sandbox *sandbox);
/* For the report; *ret_billing points at memory of the sandbox's. */
bool sandbox_events_describe(struct sandbox *sandbox, struct sandbox_report_billing *ret_billing, struct error *err);
void sandbox_events_destroy(struct sandbox *sandbox); /* fine before it was prepared */

/* ---- sandbox_signals.c ---- */

bool sandbox_signals_watch(struct sandbox *sandbox, struct error *err);
void sandbox_signals_end(struct sandbox *sandbox);

#endif
