/*
 * Phases and outages are timers, all counted from the moment the agents are started. Whatever ends the run (the last phase, the
 * time to stop the agents, a signal, an agent that dies) goes through finish(): what is true then is judged, the agents get
 * SIGTERM, and when they are gone the loop stops.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/servers.h"
#include "base/clock.h"
#include "net/loop_epoll.h"
#include "sandbox/agent_setup.h"
#include "sandbox/child_process.h"
#include "sandbox/cluster.h"
#include "sandbox/judge.h"
#include "sandbox/live_view.h"
#include "sandbox/report.h"
#include "sandbox/workload.h"

enum {
	AGENT_STOP_S = 10, /* from SIGTERM to SIGKILL */
	GOALS_SHOWN = 8,   /* in the line at the start of a phase */
	DESCRIPTORS_PER_VM = 12,
	DESCRIPTORS_BESIDE = 256,
};

struct sandbox_agent {
	struct sandbox *sandbox;
	struct agent_place place;
	struct agent_environment environment;
	struct child_process *process;
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
	struct report_usage usage;
	struct sandbox_outage outages[OUTAGES_MAX];
	struct loop_timer phase_timer, end_timer;
	struct loop_watch *signal_watch;
	int signals;
	uint64_t start_ns;
	uint64_t duration_ns; /* how long it ran, once it has finished */
	unsigned phase;
	bool started;
	bool finished;
	bool interrupted; /* by a signal, before it started */
};

static uint64_t elapsed_ns(const struct sandbox *sandbox)
{
	return loop_now_ns(sandbox->loop) - sandbox->start_ns;
}

/* Starts a timer that is due at that time of the run. */
static void start_timer_at(struct sandbox *sandbox, struct loop_timer *timer, uint64_t at_ns,
                           void (*callback)(void *context), void *context)
{
	uint64_t now_ns = elapsed_ns(sandbox);

	loop_timer_start(sandbox->loop, timer, at_ns > now_ns ? at_ns - now_ns : 0, callback, context);
}

/* ---- the end ---- */

static void signal_agents(struct sandbox *sandbox, int signal_number)
{
	for (unsigned i = 0; i < CLUSTER_AGENTS_MAX; i++) {
		if (sandbox->agents[i].process != NULL)
			child_process_signal(sandbox->agents[i].process, signal_number);
	}
}

static void on_agents_late(void *context)
{
	struct sandbox *sandbox = context;

	judge_mismatch(&sandbox->judge, "an agent didn't end within %d s of SIGTERM", AGENT_STOP_S);
	signal_agents(sandbox, SIGKILL);
}

static void finish(struct sandbox *sandbox, bool phase_complete, bool judged)
{
	if (sandbox->finished)
		return;
	sandbox->finished = true;
	sandbox->duration_ns = elapsed_ns(sandbox);
	loop_timer_stop(sandbox->loop, &sandbox->phase_timer);
	for (size_t i = 0; i < sandbox->options->outage_count; i++) {
		loop_timer_stop(sandbox->loop, &sandbox->outages[i].start);
		loop_timer_stop(sandbox->loop, &sandbox->outages[i].end);
	}
	if (judged) {
		judge_phase_end(&sandbox->judge, sandbox->cluster, sandbox->duration_ns, phase_complete);
		judge_end(&sandbox->judge, sandbox->cluster);
	}
	live_view_event(sandbox->view, "stopping the agents");
	signal_agents(sandbox, SIGTERM);
	loop_timer_start(sandbox->loop, &sandbox->end_timer, (uint64_t)AGENT_STOP_S * NS_PER_S, on_agents_late,
	                 sandbox);
	if (sandbox->agents_running == 0)
		loop_stop(sandbox->loop);
}

static void on_agent_exit(void *context, const struct child_exit *how)
{
	struct sandbox_agent *agent = context;
	struct sandbox *sandbox = agent->sandbox;
	const char *what = how->signalled ? "signal" : "exit status";

	sandbox->agents_running--;
	if (how->max_resident_kib > sandbox->usage.max_resident_kib)
		sandbox->usage.max_resident_kib = how->max_resident_kib;
	sandbox->usage.cpu_us += how->cpu_us;
	live_view_event(sandbox->view, "the agent of %s ended: %s %d", agent->place.node, what, how->status);
	if (!sandbox->finished) {
		judge_mismatch(&sandbox->judge, "the agent of %s ended by itself: %s %d", agent->place.node, what,
		               how->status);
		finish(sandbox, false, false);
	} else if (how->signalled || how->status != 0) {
		judge_mismatch(&sandbox->judge, "the agent of %s ended with %s %d instead of exit status 0",
		               agent->place.node, what, how->status);
	}
	if (sandbox->agents_running == 0)
		loop_stop(sandbox->loop);
}

static void on_signal(void *context)
{
	struct sandbox *sandbox = context;
	struct signalfd_siginfo signal_info;

	if (read(sandbox->signals, &signal_info, sizeof signal_info) != (ssize_t)sizeof signal_info)
		return;
	if (!sandbox->started)
		sandbox->interrupted = true;
	else if (sandbox->finished)
		signal_agents(sandbox, SIGKILL); /* asked twice */
	else
		finish(sandbox, false, true);
}

static void on_end(void *context)
{
	finish(context, false, true);
}

/* ---- phases ---- */

static void tell_phase(struct sandbox *sandbox)
{
	const struct workload *workload = sandbox->workload;
	char goals[GOALS_SHOWN * (WORKLOAD_NAME_BYTES + 32)] = "";
	size_t length = 0;
	unsigned shown = 0, left_out = 0;

	for (unsigned i = 0; i < workload->options.vms; i++) {
		const struct workload_phase *phase = workload_phase(workload, i, sandbox->phase);
		int added;

		if (phase->expected == workload_expected_before(workload, i, sandbox->phase) && phase->held == 0)
			continue;
		if (shown == GOALS_SHOWN) {
			left_out++;
			continue;
		}
		added = snprintf(goals + length, sizeof goals - length, "%s%s %u CU%s", shown > 0 ? ", " : "",
		                 workload->vms[i].name, phase->expected, phase->held != 0 ? " (held)" : "");
		length += (size_t)added;
		shown++;
	}
	if (left_out > 0)
		live_view_event(sandbox->view, "phase %u: %s and %u more", sandbox->phase + 1, goals, left_out);
	else
		live_view_event(sandbox->view, "phase %u: %s", sandbox->phase + 1,
		                shown > 0 ? goals : "nothing changes");
}

static void begin_phase(struct sandbox *sandbox);

static void on_phase_end(void *context)
{
	struct sandbox *sandbox = context;

	if (sandbox->workload->phase_count != 0 && sandbox->phase + 1 == sandbox->workload->phase_count) {
		finish(sandbox, true, true);
		return;
	}
	judge_phase_end(&sandbox->judge, sandbox->cluster, elapsed_ns(sandbox), true);
	sandbox->phase++;
	begin_phase(sandbox);
}

static void begin_phase(struct sandbox *sandbox)
{
	cluster_begin_phase(sandbox->cluster, sandbox->phase);
	judge_phase_begin(&sandbox->judge, sandbox->cluster, sandbox->phase, elapsed_ns(sandbox));
	live_view_set_phase(sandbox->view, sandbox->phase);
	tell_phase(sandbox);
	start_timer_at(sandbox, &sandbox->phase_timer, (sandbox->phase + 1) * sandbox->workload->phase_length_ns,
	               on_phase_end, sandbox);
}

/* ---- outages ---- */

/* Whether another one keeps the same peer away. */
static bool is_away(const struct sandbox *sandbox, const struct outage *outage)
{
	for (size_t i = 0; i < sandbox->options->outage_count; i++) {
		const struct sandbox_outage *other = &sandbox->outages[i];

		if (other->active && other->outage->peer == outage->peer && other->outage->vm == outage->vm)
			return true;
	}
	return false;
}

static void set_away(struct sandbox_outage *outage, bool away)
{
	struct sandbox *sandbox = outage->sandbox;
	bool was_away = is_away(sandbox, outage->outage);
	char peer[64];
	struct error err;

	outage->active = away;
	if (was_away == is_away(sandbox, outage->outage))
		return;
	outage_print_peer(outage->outage, peer, sizeof peer);
	live_view_event(sandbox->view, "outage: %s is %s", peer, away ? "away" : "back");
	if (!cluster_set_away(sandbox->cluster, outage->outage, away, &err))
		judge_mismatch(&sandbox->judge, "outage of the %s: %s", peer, err.text);
}

static void on_outage_end(void *context)
{
	set_away(context, false);
}

static void on_outage_start(void *context)
{
	set_away(context, true);
}

static void plan_outages(struct sandbox *sandbox)
{
	for (size_t i = 0; i < sandbox->options->outage_count; i++) {
		struct sandbox_outage *outage = &sandbox->outages[i];

		outage->sandbox = sandbox;
		outage->outage = &sandbox->options->outages[i];
		start_timer_at(sandbox, &outage->start, outage->outage->start_ns, on_outage_start, outage);
		start_timer_at(sandbox, &outage->end, outage->outage->end_ns, on_outage_end, outage);
	}
}

/* ---- what the cluster tells ---- */

static void on_patched(void *context, unsigned vm, struct cluster_size before, struct cluster_size after)
{
	struct sandbox *sandbox = context;
	char from[CLUSTER_SIZE_TEXT_BYTES], to[CLUSTER_SIZE_TEXT_BYTES];

	cluster_size_print(before, from);
	cluster_size_print(after, to);
	live_view_vm_event(sandbox->view, vm, "patched %s → %s", from, to);
	judge_patched(&sandbox->judge, cluster_vm_name(sandbox->cluster, vm), vm, before, after, elapsed_ns(sandbox));
}

static void on_short_permit(void *context, unsigned vm, struct cluster_size wanted, struct cluster_size permit,
                            bool denied)
{
	struct sandbox *sandbox = context;
	char some[CLUSTER_SIZE_TEXT_BYTES], all[CLUSTER_SIZE_TEXT_BYTES];

	cluster_size_print(permit, some);
	cluster_size_print(wanted, all);
	live_view_vm_event(sandbox->view, vm, "plugin %s %s of %s", denied ? "left it at" : "granted", some, all);
}

static void on_monitor(void *context, unsigned vm, const char *text)
{
	struct sandbox *sandbox = context;

	live_view_vm_event(sandbox->view, vm, "monitor %s", text);
}

/* ---- the beginning ---- */

/* Each guest listens three times; the soft limit of 1024 files is too low for 200 of them. Agents inherit the limit. */
static void raise_file_limit(unsigned vms)
{
	rlim_t wanted = (rlim_t)vms * DESCRIPTORS_PER_VM + DESCRIPTORS_BESIDE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static bool watch_signals(struct sandbox *sandbox, struct error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return error_set_errno(err, errno, "sigprocmask");
	sandbox->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sandbox->signals < 0)
		return error_set_errno(err, errno, "signalfd");
	sandbox->signal_watch =
		loop_watch_descriptor(sandbox->loop, sandbox->signals, SOCKET_READ, on_signal, sandbox, err);
	return sandbox->signal_watch != NULL;
}

static bool start_agent(struct sandbox *sandbox, unsigned index, struct error *err)
{
	struct sandbox_agent *agent = &sandbox->agents[index];
	const char *arguments[] = { "ballast", "agent", "--listen-address", NULL, NULL };
	struct child_options options = { .path = sandbox->program, .arguments = arguments };

	agent->sandbox = sandbox;
	agent->place = cluster_agent_place(sandbox->cluster, index);
	arguments[3] = agent->place.address;
	agent_setup_fill_environment(&sandbox->setup, &agent->place, &agent->environment);
	options.environment = agent->environment.variables;
	options.output = agent_setup_open_log(&sandbox->setup, agent->place.node, sandbox->options->agent_log, err);
	if (options.output < 0)
		return error_wrap(err, "the agent's log");
	agent->process = child_process_start(sandbox->loop, &options, on_agent_exit, agent, err);
	close(options.output);
	if (agent->process == NULL)
		return false;
	sandbox->agents_running++;
	live_view_event(sandbox->view, "started the agent of %s: http://%s:%d/metrics (VMs: port %d, state: port %d)",
	                agent->place.node, agent->place.address, SERVERS_METRICS_PORT, SERVERS_VM_METRICS_PORT,
	                AGENT_SETUP_DUMP_PORT);
	return true;
}

static bool set_up(struct sandbox *sandbox, struct error *err)
{
	static const struct cluster_handler handler = {
		.on_patched = on_patched,
		.on_short_permit = on_short_permit,
		.on_monitor = on_monitor,
	};
	const struct sandbox_options *options = sandbox->options;
	const struct workload_options workload = {
		.seed = options->seed,
		.vms = options->vms,
		.nodes = options->nodes,
		.speed = options->speed,
		.duration_ns = options->duration_ns,
	};

	raise_file_limit(options->vms);
	sandbox->workload = workload_create(&workload, err);
	if (sandbox->workload == NULL || !judge_init(&sandbox->judge, sandbox->workload, options, err))
		return false;
	sandbox->loop = loop_epoll_create(err);
	if (sandbox->loop == NULL || !watch_signals(sandbox, err))
		return false;
	sandbox->view = live_view_create(sandbox->loop, sandbox->workload, options->live, err);
	if (sandbox->view == NULL)
		return false;
	sandbox->cluster = cluster_start(sandbox->loop, sandbox->workload, &handler, sandbox, err);
	return sandbox->cluster != NULL &&
	       agent_setup_create(&sandbox->setup, options->speed, cluster_token(sandbox->cluster),
	                          cluster_ca_pem(sandbox->cluster), err);
}

static void do_nothing(void *context)
{
	(void)context;
}

/* Everything stands: the clock of the run begins. */
static bool start(struct sandbox *sandbox, struct error *err)
{
	struct loop_task task = { .next = NULL };

	/* The set-up may have taken a while: one turn brings the loop's time up to date; the task keeps it from waiting. */
	loop_run_soon(sandbox->loop, &task, do_nothing, NULL);
	if (!loop_turn(sandbox->loop, err))
		return false;
	loop_task_cancel(sandbox->loop, &task);
	if (sandbox->interrupted)
		return error_set(err, ERROR_CANCELLED, "interrupted");
	sandbox->start_ns = loop_now_ns(sandbox->loop);
	sandbox->started = true;
	live_view_start(sandbox->view, sandbox->cluster);
	for (unsigned i = 0; i < cluster_agent_count(sandbox->cluster); i++) {
		if (!start_agent(sandbox, i, err))
			return false;
	}
	begin_phase(sandbox);
	plan_outages(sandbox);
	if (sandbox->options->stops_agent)
		start_timer_at(sandbox, &sandbox->end_timer, sandbox->options->stop_agent_ns, on_end, sandbox);
	return true;
}

/* ---- the report ---- */

static bool print_report(struct sandbox *sandbox, struct error *err)
{
	struct report report = { .mismatches = NULL };
	struct buffer text;
	bool ok;

	buffer_init(&text, REPORT_BYTES_MAX);
	ok = report_init(&report, &sandbox->judge, sandbox->cluster, sandbox->duration_ns, &sandbox->usage, err) &&
	     (sandbox->options->report == SANDBOX_REPORT_JSON ? report_print_json(&report, &text, err)
	                                                      : report_print_text(&report, &text, err));
	if (ok && (fwrite(text.data, 1, text.length, stdout) != text.length || fflush(stdout) != 0))
		ok = error_set_errno(err, errno, "standard output");
	report_destroy(&report);
	buffer_destroy(&text);
	return ok;
}

static bool is_as_stated(const struct sandbox *sandbox)
{
	return sandbox->judge.sentence_count == 0 && sandbox->judge.sentences_left_out == 0;
}

static void tear_down(struct sandbox *sandbox, bool keep_folder)
{
	for (unsigned i = 0; i < CLUSTER_AGENTS_MAX; i++)
		child_process_destroy(sandbox->agents[i].process);
	live_view_destroy(sandbox->view);
	cluster_destroy(sandbox->cluster);
	judge_destroy(&sandbox->judge);
	loop_watch_stop(sandbox->signal_watch);
	if (sandbox->signals >= 0)
		close(sandbox->signals);
	if (sandbox->loop != NULL) {
		loop_timer_stop(sandbox->loop, &sandbox->phase_timer);
		loop_timer_stop(sandbox->loop, &sandbox->end_timer);
		for (size_t i = 0; i < OUTAGES_MAX; i++) {
			loop_timer_stop(sandbox->loop, &sandbox->outages[i].start);
			loop_timer_stop(sandbox->loop, &sandbox->outages[i].end);
		}
		loop_destroy(sandbox->loop);
	}
	workload_destroy(sandbox->workload);
	if (keep_folder && sandbox->setup.folder[0] != '\0')
		(void)fprintf(stderr, "ballast sandbox: the agents' configuration and logs are in %s\n",
		              sandbox->setup.folder);
	else
		agent_setup_remove(&sandbox->setup);
}

bool sandbox_run(const struct sandbox_options *options, const char *program, enum sandbox_outcome *ret_outcome,
                 struct error *err)
{
	struct sandbox sandbox = { .options = options, .program = program, .signals = -1 };
	bool ok = set_up(&sandbox, err) && start(&sandbox, err) && loop_run(sandbox.loop, err);
	bool as_stated;

	live_view_destroy(sandbox.view);
	sandbox.view = NULL;
	if (ok)
		ok = print_report(&sandbox, err);
	as_stated = ok && is_as_stated(&sandbox);
	tear_down(&sandbox, !as_stated);
	if (ok)
		*ret_outcome = as_stated ? SANDBOX_AS_STATED : SANDBOX_MISMATCHES;
	return ok;
}
