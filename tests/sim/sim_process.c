#include "sim_process.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/memory.h"
#include "torture.h"

enum {
	LOG_RING_BYTES = 1024 * 1024,
	RESTART_LOW_MS = 300,
	RESTART_HIGH_MS = 8000,
	FREEZE_HIGH_MS = 15000,
	PARTITION_HIGH_MS = 90000,
	CLOCK_STEP_S = 24 * 3600, /* at most, in either direction */
	CUT_BYTES = 20000,
	FAIL_WITHIN = 400, /* allocations or calls */
	PATIENCE_HIGH = 10,
};

/* In the order of SIM_PROCESS_MISFORTUNE_NAMES. */
enum misfortune {
	CRASH,
	FREEZE,
	PARTITION,
	PARTITION_AGAIN,
	STEP_CLOCK,
	TOLD_TO_END,
	CUT,
	CUT_AGAIN,
	CUT_ONCE_MORE,
	FAIL_ALLOCATION,
	FAIL_CALL,
};

_Static_assert(sizeof((const char *const[]){ SIM_PROCESS_MISFORTUNE_NAMES }) / sizeof(char *) ==
                       SIM_PROCESS_MISFORTUNES,
               "each has a name");

static void call(const struct sim_process *process, void (*function)(void *context))
{
	if (function != NULL)
		function(process->options.context);
}

static struct sim_torture *torture_of(const struct sim_process *process)
{
	return simulation_options(process->simulation)->torture;
}

static struct sim_world *world_of(const struct sim_process *process)
{
	return simulation_world(process->simulation);
}

/* ---- what is its own ---- */

void sim_process_enter(struct sim_process *process)
{
	sim_torture_before(torture_of(process), process->options.name, process->loop, &process->fail_allocation_in);
	process->blocks_before = memory_block_count();
	process->failed_calls_before = sim_world_fault_count(world_of(process), SIM_FAULT_FAILED_CALL);
	memory_fail_at(process->fail_allocation_in);
}

static void note_failure(struct sim_process *process, unsigned long used)
{
	if (process->fail_allocation_in == 0)
		return;
	if (used < process->fail_allocation_in) {
		process->fail_allocation_in -= used;
		return;
	}
	process->fail_allocation_in = 0;
	process->options.counts->failed_allocations++;
	sim_world_note(world_of(process), "%s: an allocation failed", process->options.name);
	call(process, process->options.handler->on_starved);
}

void sim_process_leave(struct sim_process *process)
{
	unsigned long used = memory_allocation_count();

	memory_fail_at(0);
	sim_torture_after(torture_of(process), process->options.name, process->loop, used);
	process->blocks += (long)(memory_block_count() - process->blocks_before);
	note_failure(process, used);
	if (sim_world_fault_count(world_of(process), SIM_FAULT_FAILED_CALL) != process->failed_calls_before)
		call(process, process->options.handler->on_failed_call);
}

static void watch_turn(void *context, bool begins)
{
	struct sim_process *process = context;

	if (begins) {
		sim_process_enter(process);
		process->turns_this_second++;
		return;
	}
	sim_process_leave(process);
	call(process, process->options.handler->after_turn);
}

/* ---- its life ---- */

static int64_t wall_ns(void *context)
{
	return loop_wall_ns(context);
}

/* Nothing of it may be left. */
static void free_process(struct sim_process *process, bool had_started)
{
	const struct sim_world *world = world_of(process);
	const char *name = process->options.name;

	sim_process_enter(process);
	if (had_started)
		process->options.handler->dismantle(process->options.context);
	if (process->log_sink != NULL)
		log_sink_destroy(process->log_sink, 0);
	process->log_sink = NULL;
	if (process->loop != NULL)
		loop_destroy(process->loop);
	process->loop = NULL;
	sim_process_leave(process);
	process->runs = false;
	if (sim_world_leaked_sockets(world) > 0)
		simulation_broken(process->simulation, "descriptors", "%s left %zu sockets behind", name,
		                  sim_world_leaked_sockets(world));
	if (sim_world_leaked_timers(world) > 0)
		simulation_broken(process->simulation, "timers", "%s left %zu timers behind", name,
		                  sim_world_leaked_timers(world));
	if (process->blocks != 0)
		simulation_broken(process->simulation, "memory", "%s left %ld blocks of memory behind", name,
		                  process->blocks);
}

static void forget(struct sim_process *process)
{
	process->blocks = 0;
	process->ending = false;
	process->clock_error_ns = 0;
	process->frozen_until_ns = 0;
	process->quiet_checks = 0;
	process->started_ns = simulation_now_ns(process->simulation);
}

static bool make_loop(struct sim_process *process, struct error *err)
{
	const struct sim_process_options *options = &process->options;

	process->loop = loop_sim_create(world_of(process), options->name, &options->address, err);
	if (process->loop == NULL || process->log_descriptor < 0)
		return process->loop != NULL;
	process->log_sink = log_sink_create(process->log_descriptor, LOG_FORMAT_JSON, options->log_level,
	                                    LOG_RING_BYTES, wall_ns, process->loop, err);
	return process->log_sink != NULL;
}

static bool start(struct sim_process *process, struct error *err)
{
	const struct sim_process_options *options = &process->options;
	bool made;

	forget(process);
	options->counts->starts++;
	sim_process_enter(process);
	made = make_loop(process, err);
	sim_process_leave(process);
	if (!made || !options->handler->prepare(options->context, err)) {
		free_process(process, false);
		return false;
	}
	sim_world_note(world_of(process), "%s: starts", options->name);
	loop_sim_set_watcher(process->loop, watch_turn, process);
	process->runs = true;
	sim_process_enter(process);
	options->handler->start(options->context);
	sim_process_leave(process);
	return true;
}

static void end(struct sim_process *process, enum sim_process_end how, enum sim_crash crash)
{
	process->options.handler->on_end(process->options.context, how);
	loop_sim_crash(process->loop, crash);
	free_process(process, true);
}

static void start_later(struct sim_process *process)
{
	process->start_again_ns =
		simulation_now_ns(process->simulation) +
		rng_between(sim_world_rng(world_of(process)), RESTART_LOW_MS, RESTART_HIGH_MS) * NS_PER_MS;
}

/* It stopped its loop: as told, or because of a fatal failure. */
static void end_by_itself(struct sim_process *process)
{
	const struct sim_process_options *options = &process->options;
	bool fatal = options->handler->is_fatal(options->context);

	sim_world_note(world_of(process), "%s: ends (%s)", options->name, fatal ? "fatal" : "as told");
	if (fatal)
		options->counts->fatal_exits++;
	else
		options->counts->orderly_ends++;
	if (!fatal && !process->ending)
		simulation_broken(process->simulation, "lives", "%s ended and nobody asked it to", options->name);
	if (fatal && simulation_is_calm(process->simulation, SIM_KNOWN_S))
		simulation_broken(process->simulation, "lives", "%s can't live, %d s after the last fault",
		                  options->name, SIM_KNOWN_S);
	end(process, fatal ? SIM_PROCESS_FATAL : SIM_PROCESS_TOLD, SIM_CRASH_END);
	start_later(process);
}

void sim_process_note_told(struct sim_process *process)
{
	sim_world_note(world_of(process), "%s: is told to end", process->options.name);
	if (!process->ending)
		process->told_to_end_ns = simulation_now_ns(process->simulation);
	process->ending = true;
}

bool sim_process_go_on(struct sim_process *process)
{
	struct error err;

	if (process->runs && loop_sim_stopped(process->loop))
		end_by_itself(process);
	/* Out of memory at once: as a process that dies while it starts. */
	else if (!process->runs && simulation_now_ns(process->simulation) >= process->start_again_ns &&
	         !start(process, &err))
		start_later(process);
	return process->runs;
}

/* ---- misfortunes ---- */

static void step_clock(struct sim_process *process, int64_t by_ns)
{
	loop_sim_step_clock(process->loop, by_ns);
	process->clock_error_ns += by_ns;
	if (by_ns != 0)
		call(process, process->options.handler->on_clock_set);
}

static void freeze(struct sim_process *process, uint64_t until_ns)
{
	if (until_ns > process->frozen_until_ns)
		process->frozen_until_ns = until_ns;
	loop_sim_freeze(process->loop, until_ns);
}

/* An answer is lost, or cut in the middle. */
static void cut(struct sim_process *process, struct rng *rng)
{
	bool silent = rng_between(rng, 0, 2) == 0, at_once = rng_between(rng, 0, 3) == 0;

	(void)loop_sim_cut_connection(process->loop, at_once ? 0 : rng_between(rng, 0, CUT_BYTES), silent);
}

static void partition(struct sim_process *process, struct rng *rng)
{
	const struct sim_process_options *options = &process->options;
	uint64_t lasts_ms = rng_between(rng, 100, PARTITION_HIGH_MS);

	loop_sim_partition(process->loop, options->handler->pick_peer(options->context, rng),
	                   simulation_now_ns(process->simulation) + lasts_ms * NS_PER_MS);
}

void sim_process_strike(struct sim_process *process, unsigned misfortune, struct rng *rng)
{
	const struct sim_process_options *options = &process->options;
	uint64_t now_ns = simulation_now_ns(process->simulation);
	bool may_fail = simulation_options(process->simulation)->memory;

	switch ((enum misfortune)misfortune) {
	case CRASH:
		if (rng_between(rng, 0, process->patience) != 0)
			return;
		options->counts->crashes++;
		end(process, SIM_PROCESS_CRASHED, (enum sim_crash)rng_between(rng, 0, 3));
		start_later(process);
		return;
	case FREEZE:
		freeze(process, now_ns + rng_between(rng, 100, FREEZE_HIGH_MS) * NS_PER_MS);
		return;
	case PARTITION:
	case PARTITION_AGAIN:
		partition(process, rng);
		return;
	case STEP_CLOCK:
		step_clock(process, (int64_t)(rng_between(rng, 0, 2 * CLOCK_STEP_S) * NS_PER_S) -
		                            (int64_t)CLOCK_STEP_S * NS_PER_S);
		return;
	case TOLD_TO_END:
		if (rng_between(rng, 0, process->patience) == 0)
			options->handler->on_told_to_end(options->context, rng);
		return;
	case CUT:
	case CUT_AGAIN:
	case CUT_ONCE_MORE:
		cut(process, rng);
		return;
	case FAIL_ALLOCATION:
		if (may_fail)
			process->fail_allocation_in = rng_between(rng, 1, FAIL_WITHIN);
		return;
	case FAIL_CALL:
		if (may_fail)
			loop_sim_fail_call(process->loop, rng_between(rng, 1, FAIL_WITHIN));
		return;
	}
}

void sim_process_calm(struct sim_process *process)
{
	uint64_t soon_ns = simulation_now_ns(process->simulation) + NS_PER_S;

	process->fail_allocation_in = 0;
	process->frozen_until_ns = 0; /* the world is healed */
	if (process->runs) {
		loop_sim_fail_call(process->loop, 0);
		step_clock(process, -process->clock_error_ns); /* or certificates aren't valid */
	} else if (process->start_again_ns > soon_ns) {
		process->start_again_ns = soon_ns;
	}
}

/* ---- what must hold ---- */

void sim_process_check_turns(struct sim_process *process, uint64_t most)
{
	struct sim_process_counts *counts = process->options.counts;

	if (process->turns_this_second > counts->most_turns_per_second)
		counts->most_turns_per_second = process->turns_this_second;
	if (process->turns_this_second > most)
		simulation_broken(process->simulation, "no-busy-loop", "%s turned %llu times in one second",
		                  process->options.name, (unsigned long long)process->turns_this_second);
	process->turns_this_second = 0;
}

void sim_process_check_end(const struct sim_process *process, uint64_t most_ns)
{
	uint64_t end_ns = process->told_to_end_ns + most_ns;

	/* A process that is stopped notices no deadline. */
	if (end_ns < process->frozen_until_ns)
		end_ns = process->frozen_until_ns;
	if (process->runs && process->ending &&
	    simulation_now_ns(process->simulation) > end_ns + (uint64_t)SIM_PROCESS_LATE_MS * NS_PER_MS)
		simulation_broken(process->simulation, "ends", "%s was told to end, and hasn't after %.1f s",
		                  process->options.name, (double)most_ns / (double)NS_PER_S);
}

void sim_process_check_quiet(struct sim_process *process, const struct sim_process_limits *limits)
{
	struct sim_process_counts *counts = process->options.counts;
	const char *name = process->options.name;
	size_t sockets = loop_sim_socket_count(process->loop), timers = loop_sim_timer_count(process->loop);
	unsigned long blocks = (unsigned long)process->blocks;

	if (process->quiet_checks++ == 0)
		process->first_quiet_blocks = blocks;
	if (sockets > limits->sockets)
		simulation_broken(process->simulation, "descriptors", "%s has %zu sockets open", name, sockets);
	if (timers > limits->timers)
		simulation_broken(process->simulation, "timers", "%s has %zu timers running", name, timers);
	if (process->blocks > (long)(process->first_quiet_blocks + limits->more_blocks))
		simulation_broken(process->simulation, "memory",
		                  "%s has %ld blocks of memory, and %lu when it was quiet first", name, process->blocks,
		                  process->first_quiet_blocks);
	if (sockets > counts->quiet_sockets)
		counts->quiet_sockets = sockets;
	if (timers > counts->quiet_timers)
		counts->quiet_timers = timers;
	if (blocks > counts->quiet_blocks)
		counts->quiet_blocks = blocks;
}

/* ---- making it ---- */

bool sim_process_init(struct sim_process *process, struct simulation *simulation,
                      const struct sim_process_options *options, struct error *err)
{
	const char *log_path = simulation_options(simulation)->log_path;

	*process = (struct sim_process){ .simulation = simulation, .options = *options, .log_descriptor = -1 };
	/* In some runs processes are killed often, in others hardly ever: then they get old. */
	process->patience = (unsigned)rng_between(sim_world_rng(simulation_world(simulation)), 1, PATIENCE_HIGH);
	if (log_path == NULL)
		return true;
	process->log_descriptor = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	return process->log_descriptor >= 0 || error_set_errno(err, errno, log_path);
}

void sim_process_destroy(struct sim_process *process)
{
	if (process->runs) {
		loop_sim_crash(process->loop, SIM_CRASH_END);
		free_process(process, true);
	}
	if (process->log_descriptor >= 0)
		(void)close(process->log_descriptor);
}
