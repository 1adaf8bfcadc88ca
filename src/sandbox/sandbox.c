/*
 * Phases and outages are timers, all counted from the moment the agents are started. Whatever ends the run (the last phase, the
 * time to stop the agents, a signal, an agent that dies) goes through finish(): what is true then is judged, the agents get
 * SIGTERM, and when they are gone the loop stops.
 */
#include "sandbox/sandbox_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/errno_text.h"
#include "net/loop_epoll.h"

enum {
	GOALS_SHOWN = 8, /* in the line at the start of a phase */
	PHASE_BYTES_MAX = 4096,
	OUTAGES_BYTES = OUTAGES_MAX * 40,
};

uint64_t sandbox_elapsed_ns(const struct sandbox *sandbox)
{
	return loop_now_ns(sandbox->loop) - sandbox->start_ns;
}

/* Starts a timer that is due at that time of the run. */
static void start_timer_at(struct sandbox *sandbox, struct loop_timer *timer, uint64_t at_ns,
                           void (*callback)(void *context), void *context)
{
	uint64_t now_ns = sandbox_elapsed_ns(sandbox);

	loop_timer_start(sandbox->loop, timer, at_ns > now_ns ? at_ns - now_ns : 0, callback, context);
}

/* ---- the end ---- */

void sandbox_finish(struct sandbox *sandbox, bool phase_complete, bool judged)
{
	if (sandbox->finished)
		return;
	sandbox->finished = true;
	sandbox->duration_ns = sandbox_elapsed_ns(sandbox);
	loop_timer_stop(sandbox->loop, &sandbox->phase_timer);
	loop_timer_stop(sandbox->loop, &sandbox->end_timer);
	for (size_t i = 0; i < sandbox->options->outage_count; i++) {
		/* The receiver matters to the agents as long as they live. */
		if (sandbox->options->outages[i].peer == OUTAGE_RECEIVER)
			continue;
		loop_timer_stop(sandbox->loop, &sandbox->outages[i].start);
		loop_timer_stop(sandbox->loop, &sandbox->outages[i].end);
	}
	/* An end that nobody could foresee comes amid faults. */
	if (sandbox->options->faults != FAULTS_NONE && !sandbox->faults.suspended)
		judge_disturbed(&sandbox->judge, sandbox->duration_ns);
	sandbox_faults_stop(sandbox);
	sandbox_events_end(sandbox);
	sandbox->events.voided = !judged;
	if (judged) {
		sandbox_pods_judge(sandbox);
		judge_phase_end(&sandbox->judge, sandbox->cluster, sandbox->duration_ns, phase_complete);
		judge_end(&sandbox->judge, sandbox->cluster);
	} else {
		judge_phase_void(&sandbox->judge);
	}
	/* A scheduler whose extender ends would place pods unchecked. */
	sandbox_pods_end(sandbox);
	sandbox_agents_stop(sandbox);
	if (sandbox->agents_running == 0)
		loop_stop(sandbox->loop);
}

static void on_end(void *context)
{
	sandbox_finish(context, false, true);
}

/* ---- phases ---- */

/* Names with what each gets, or those of the others; only some, if they are many. */
static void list_goals(const struct sandbox *sandbox, bool changing, struct buffer *out)
{
	const struct workload *workload = sandbox->workload;
	unsigned count = 0;

	for (unsigned i = 0; i < workload->options.vms; i++) {
		const struct workload_phase *phase = workload_phase(workload, i, sandbox->phase);
		unsigned before = workload_expected_before(workload, i, sandbox->phase);

		if ((phase->expected != before || phase->held != 0) != changing || ++count > GOALS_SHOWN)
			continue;
		buffer_append_format(out, "%s%s", count > 1 ? ", " : "", workload->vms[i].name);
		if (changing && phase->expected != before)
			buffer_append_format(out, " %u→%u CU", before, phase->expected);
		if (phase->held != 0)
			buffer_append_text(out, " (held)");
	}
	if (count > GOALS_SHOWN)
		buffer_append_format(out, " and %u more", count - GOALS_SHOWN);
	if (count == 0)
		buffer_append_text(out, changing ? "nothing changes" : "none");
}

static void tell_phase(struct sandbox *sandbox)
{
	struct buffer text;

	buffer_init(&text, PHASE_BYTES_MAX);
	buffer_append_format(&text, "phase %u", sandbox->phase + 1);
	if (sandbox->workload->phase_count > 0)
		buffer_append_format(&text, " of %u", sandbox->workload->phase_count);
	buffer_append_text(&text, ": ");
	list_goals(sandbox, true, &text);
	buffer_append_text(&text, "; unchanged: ");
	list_goals(sandbox, false, &text);
	live_view_event(sandbox->view, "%.*s", SLICE_ARGS(buffer_slice(&text)));
	buffer_destroy(&text);
}

static void begin_phase(struct sandbox *sandbox);

static void on_phase_end(void *context)
{
	struct sandbox *sandbox = context;

	if (sandbox->workload->phase_count != 0 && sandbox->phase + 1 == sandbox->workload->phase_count) {
		sandbox_finish(sandbox, true, true);
		return;
	}
	judge_phase_end(&sandbox->judge, sandbox->cluster, sandbox_elapsed_ns(sandbox), true);
	sandbox->phase++;
	begin_phase(sandbox);
}

static void begin_phase(struct sandbox *sandbox)
{
	cluster_begin_phase(sandbox->cluster, sandbox->phase);
	judge_phase_begin(&sandbox->judge, sandbox->cluster, sandbox->phase, sandbox_elapsed_ns(sandbox));
	live_view_set_phase(sandbox->view, sandbox->phase);
	if (sandbox->options->vms > 0)
		tell_phase(sandbox);
	sandbox_faults_begin_phase(sandbox);
	start_timer_at(sandbox, &sandbox->phase_timer, (sandbox->phase + 1) * sandbox->workload->phase_length_ns,
	               on_phase_end, sandbox);
}

/* ---- outages ---- */

/* Whether another one keeps the same peer away. */
static bool is_away(const struct sandbox *sandbox, const struct outage *outage)
{
	for (size_t i = 0; i < sandbox->options->outage_count; i++) {
		const struct sandbox_outage *other = &sandbox->outages[i];

		if (other->active && outage_same_peer(other->outage, outage))
			return true;
	}
	return false;
}

static void show_outages(struct sandbox *sandbox)
{
	char text[OUTAGES_BYTES] = "";
	size_t length = 0;

	for (size_t i = 0; i < sandbox->options->outage_count; i++) {
		const struct sandbox_outage *outage = &sandbox->outages[i];
		bool repeated = false;
		char peer[64];

		for (size_t j = 0; j < i; j++)
			repeated |= sandbox->outages[j].active &&
			            outage_same_peer(sandbox->outages[j].outage, outage->outage);
		if (!outage->active || repeated)
			continue;
		outage_print_peer(outage->outage, peer, sizeof peer);
		length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? ", " : "", peer);
	}
	live_view_set_outages(sandbox->view, text);
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
	show_outages(sandbox);
	bool ok = sandbox_events_outage(sandbox, outage->outage, away, &err) &&
	          (outage->outage->peer == OUTAGE_EXTENDER
	                   ? sandbox_extender_set_away(sandbox, away, &err)
	                   : cluster_set_away(sandbox->cluster, outage->outage, away, &err));

	if (!ok)
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
	judge_patched(&sandbox->judge, cluster_vm_name(sandbox->cluster, vm), vm, before, after,
	              sandbox_elapsed_ns(sandbox));
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

	live_view_vm_event(sandbox->view, vm, "%s", text);
}

static void on_cpu(void *context, unsigned vm, uint32_t cpu_milli)
{
	sandbox_events_cpu(context, vm, cpu_milli);
}

void sandbox_on_accept_error(void *context, const struct error *err)
{
	struct sandbox *sandbox = context;
	struct rlimit limit = { .rlim_cur = 0 };

	if (sandbox->descriptors_were_short ||
	    strncmp(error_root(err), errno_text(EMFILE), strlen(errno_text(EMFILE))) != 0)
		return;
	sandbox->descriptors_were_short = true;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	live_view_event(sandbox->view, "%s", err->text);
	judge_mismatch(&sandbox->judge,
	               "the sandbox itself ran out of open files, of which %llu are allowed (ulimit -n): %s",
	               (unsigned long long)limit.rlim_cur, error_root(err));
}

/* ---- the beginning ---- */

/* Agents inherit the limit. */
static bool raise_file_limit(unsigned vms, unsigned needed, struct error *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return error_set_errno(err, errno, "getrlimit");
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
			return error_set_errno(err, errno, "setrlimit");
	}
	return limit.rlim_max >= needed ||
	       error_set(err, ERROR_LIMIT,
	                 "%u VM%s need about %u open files, and only %llu are allowed: raise that (ulimit -Hn), or run "
	                 "with fewer --vms",
	                 vms, vms == 1 ? "" : "s", needed, (unsigned long long)limit.rlim_max);
}

static bool advise_on_address(struct error *err)
{
	struct error cause = *err;

	if (strcmp(error_root(err), errno_text(EADDRINUSE)) != 0)
		return false;
	return error_set(err, cause.code, "%s: " SANDBOX_PORT_ADVICE, cause.text);
}

static bool set_up(struct sandbox *sandbox, struct error *err)
{
	static const struct cluster_handler handler = {
		.on_patched = on_patched,
		.on_short_permit = on_short_permit,
		.on_monitor = on_monitor,
		.on_cpu = on_cpu,
		.on_accept_error = sandbox_on_accept_error,
	};
	const struct sandbox_options *options = sandbox->options;
	const struct workload_options workload = {
		.seed = options->seed,
		.vms = options->vms,
		.nodes = options->nodes,
		.speed = options->speed,
		.generation = options->generation,
		.duration_ns = options->duration_ns,
	};

	sandbox->workload = workload_create(&workload, err);
	if (sandbox->workload == NULL || !judge_init(&sandbox->judge, sandbox->workload, options, err))
		return false;
	if (!raise_file_limit(options->vms, cluster_descriptors(sandbox->workload), err))
		return false;
	sandbox->loop = loop_epoll_create(err);
	if (sandbox->loop == NULL || !sandbox_signals_watch(sandbox, err))
		return false;
	sandbox->view = live_view_create(sandbox->loop, sandbox->workload, options->live, err);
	if (sandbox->view == NULL)
		return false;
	sandbox->cluster = cluster_start(sandbox->loop, sandbox->workload, &handler, sandbox, err);
	if (sandbox->cluster == NULL || !sandbox_events_prepare(sandbox, err))
		return advise_on_address(err);
	return agent_setup_create(&sandbox->setup, options->speed, &options->generation, sandbox->events.address,
	                          cluster_token(sandbox->cluster), cluster_ca_pem(sandbox->cluster), err) &&
	       sandbox_pods_set_up(sandbox, err);
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
	sandbox_events_start(sandbox);
	for (unsigned i = 0; i < cluster_agent_count(sandbox->cluster); i++) {
		if (!sandbox_agent_start(sandbox, i, err))
			return false;
	}
	if (!sandbox_pods_start(sandbox, err))
		return false;
	sandbox_faults_start(sandbox);
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
	     sandbox_pods_report(sandbox, &report, err) &&
	     sandbox_events_describe(sandbox, &report.message.billing, err) &&
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

static void tear_down(struct sandbox *sandbox)
{
	for (unsigned i = 0; i < CLUSTER_AGENTS_MAX; i++)
		child_process_destroy(sandbox->agents[i].process);
	live_view_destroy(sandbox->view);
	sandbox_pods_tear_down(sandbox);
	sandbox_events_destroy(sandbox);
	cluster_destroy(sandbox->cluster);
	judge_destroy(&sandbox->judge);
	sandbox_signals_end(sandbox);
	if (sandbox->loop != NULL) {
		loop_timer_stop(sandbox->loop, &sandbox->phase_timer);
		loop_timer_stop(sandbox->loop, &sandbox->end_timer);
		loop_timer_stop(sandbox->loop, &sandbox->stop_timer);
		for (size_t i = 0; i < OUTAGES_MAX; i++) {
			loop_timer_stop(sandbox->loop, &sandbox->outages[i].start);
			loop_timer_stop(sandbox->loop, &sandbox->outages[i].end);
		}
		loop_destroy(sandbox->loop);
	}
	workload_destroy(sandbox->workload);
	agent_setup_remove(&sandbox->setup);
}

bool sandbox_run(const struct sandbox_options *options, const char *program, struct sandbox_end *ret_end,
                 struct error *err)
{
	struct sandbox sandbox = { .options = options, .program = program, .signals = -1 };
	bool ran = set_up(&sandbox, err) && start(&sandbox, err) && loop_run(sandbox.loop, err);
	bool as_stated, reported;

	if (ran)
		sandbox_events_judge(&sandbox);
	as_stated = ran && is_as_stated(&sandbox);
	live_view_destroy(sandbox.view);
	sandbox.view = NULL;
	reported = ran && print_report(&sandbox, err);
	*ret_end = (struct sandbox_end){ .outcome = as_stated ? SANDBOX_AS_STATED : SANDBOX_MISMATCHES };
	/* What agents did that went wrong can be looked into. */
	if (!as_stated && sandbox.agents_were_started) {
		memcpy(ret_end->folder, sandbox.setup.folder, sizeof ret_end->folder);
		sandbox.setup.folder[0] = '\0';
	}
	tear_down(&sandbox);
	return reported;
}
