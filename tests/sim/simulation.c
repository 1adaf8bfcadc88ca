#include "simulation.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"

enum {
	TEXT_BYTES = 512,
	STORM_LOW_S = 20,
	STORM_HIGH_S = 240,
	DISTURB_LOW_MS = 500,
	DISTURB_LIGHT_MS = 40000, /* between two misfortunes, at most */
	DISTURB_HEAVY_MS = 8000,
	RECOVER_S = 75, /* reconnects with back-off of 30 s, silent peers found after 30 s */
	GROW_S = 75,    /* a new size: scrapes, denials, unplugging, one after the other */
	STEPS_PER_SECOND_MAX = 200000,
};

struct simulation {
	struct sim_options options;
	struct sim_world *world;
	struct sim_actor actors[SIM_ACTORS_MAX];
	unsigned actor_count;
	bool in_storm;
	uint64_t calm_since_ns;
	uint64_t next_second_ns;
	uint64_t steps_this_second;
	unsigned long blocks_before;
	struct sim_counts counts;
	bool broken;
	char broken_name[64];
	char broken_text[TEXT_BYTES];
};

/* ---- what may be asked ---- */

bool simulation_is_whole(const struct simulation *simulation)
{
	return !simulation->broken;
}

void simulation_broken(struct simulation *simulation, const char *name, const char *format, ...)
{
	va_list arguments;

	if (simulation->broken)
		return;
	simulation->broken = true;
	(void)snprintf(simulation->broken_name, sizeof simulation->broken_name, "%s", name);
	va_start(arguments, format);
	(void)vsnprintf(simulation->broken_text, sizeof simulation->broken_text, format, arguments);
	va_end(arguments);
	sim_world_note(simulation->world, "BROKEN: %s: %s", name, simulation->broken_text);
}

const char *simulation_broken_name(const struct simulation *simulation)
{
	return simulation->broken_name;
}

const char *simulation_broken_text(const struct simulation *simulation)
{
	return simulation->broken_text;
}

struct sim_world *simulation_world(struct simulation *simulation)
{
	return simulation->world;
}

const struct sim_options *simulation_options(const struct simulation *simulation)
{
	return &simulation->options;
}

uint64_t simulation_now_ns(const struct simulation *simulation)
{
	return sim_world_now_ns(simulation->world);
}

bool simulation_in_storm(const struct simulation *simulation)
{
	return simulation->in_storm;
}

uint64_t simulation_calm_since_ns(const struct simulation *simulation)
{
	return simulation->in_storm ? UINT64_MAX : simulation->calm_since_ns;
}

uint64_t simulation_settle_ns(const struct simulation *simulation)
{
	(void)simulation;
	return (uint64_t)(RECOVER_S + GROW_S) * NS_PER_S;
}

struct sim_counts simulation_counts(const struct simulation *simulation)
{
	return simulation->counts;
}

/* ---- making it ---- */

struct simulation *simulation_create(const struct sim_options *options, struct error *err)
{
	const int64_t wall_ns = INT64_C(1700000000) * NS_PER_S;
	unsigned long blocks_before = memory_block_count();
	struct simulation *simulation = memory_allocate(sizeof *simulation);

	if (simulation == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a simulation");
		return NULL;
	}
	simulation->options = *options;
	simulation->blocks_before = blocks_before;
	simulation->world = sim_world_create(options->seed, wall_ns, err);
	if (simulation->world == NULL) {
		memory_release(simulation);
		return NULL;
	}
	return simulation;
}

bool simulation_add(struct simulation *simulation, const struct sim_actor *actor)
{
	if (simulation->actor_count == SIM_ACTORS_MAX)
		return false;
	simulation->actors[simulation->actor_count++] = *actor;
	return true;
}

/* ---- running ---- */

static void check_second(struct simulation *simulation)
{
	if (simulation->steps_this_second > STEPS_PER_SECOND_MAX)
		simulation_broken(simulation, "no-busy-loop", "%llu steps in one second",
		                  (unsigned long long)simulation->steps_this_second);
	simulation->steps_this_second = 0;
	simulation->next_second_ns += NS_PER_S;
	for (unsigned i = 0; i < simulation->actor_count && !simulation->broken; i++)
		if (simulation->actors[i].check_second != NULL)
			simulation->actors[i].check_second(simulation->actors[i].context, simulation);
}

static void check_step(struct simulation *simulation)
{
	for (unsigned i = 0; i < simulation->actor_count && !simulation->broken; i++)
		if (simulation->actors[i].check != NULL)
			simulation->actors[i].check(simulation->actors[i].context, simulation);
	while (simulation_now_ns(simulation) >= simulation->next_second_ns && !simulation->broken)
		check_second(simulation);
}

/* False when a loop failed or an invariant broke. */
static bool run_until(struct simulation *simulation, uint64_t until_ns)
{
	struct error err;

	while (!simulation->broken && sim_world_step(simulation->world, until_ns, &err)) {
		simulation->counts.steps++;
		simulation->steps_this_second++;
		check_step(simulation);
	}
	if (!simulation->broken && err.code != ERROR_NONE)
		simulation_broken(simulation, "loop", "a loop failed: %s", err.text);
	if (!simulation->broken)
		check_step(simulation);
	return !simulation->broken;
}

static unsigned per_million(struct rng *rng, unsigned most)
{
	/* Mostly little, seldom much. */
	return (unsigned)(rng_unit(rng) * rng_unit(rng) * most);
}

/* Weather of the network; each storm has its own. */
static void set_network(struct simulation *simulation, bool storm)
{
	struct rng *rng = sim_world_rng(simulation->world);
	struct sim_faults faults = { .delay_low_ns = 50000, .delay_high_ns = 2 * NS_PER_MS };
	bool heavy = simulation->options.storm == SIM_STORM_HEAVY;

	/* How bytes are cut is never wrong. */
	faults.split = per_million(rng, 300000);
	faults.unmerged = per_million(rng, 300000);
	faults.short_writes = per_million(rng, 200000);
	faults.single_bytes = per_million(rng, 100000);
	if (storm) {
		unsigned scale = heavy ? 10 : 1;

		faults.delay_high_ns = (1 + rng_between(rng, 0, heavy ? 200 : 20)) * NS_PER_MS;
		faults.lost = per_million(rng, 20000 * scale);
		faults.stalled = per_million(rng, 1000 * scale);
		faults.stall_ns = rng_between(rng, 1, 25) * NS_PER_S;
		faults.reset = per_million(rng, 500 * scale);
		faults.silent = per_million(rng, 200 * scale);
		faults.refused_connect = per_million(rng, 10000 * scale);
		faults.failed_accept = per_million(rng, 5000 * scale);
	}
	sim_world_set_faults(simulation->world, &faults);
}

static void disturb(struct simulation *simulation)
{
	struct rng *rng = sim_world_rng(simulation->world);
	const struct sim_actor *actor = &simulation->actors[rng_between(rng, 0, simulation->actor_count)];

	if (actor->disturb != NULL)
		actor->disturb(actor->context, simulation, rng);
}

static bool storm(struct simulation *simulation)
{
	struct rng *rng = sim_world_rng(simulation->world);
	uint64_t end_ns = simulation_now_ns(simulation) + rng_between(rng, STORM_LOW_S, STORM_HIGH_S) * NS_PER_S;
	uint64_t most_ms = simulation->options.storm == SIM_STORM_HEAVY ? DISTURB_HEAVY_MS : DISTURB_LIGHT_MS;

	simulation->counts.storms++;
	simulation->in_storm = true;
	sim_world_note(simulation->world, "a storm begins");
	set_network(simulation, true);
	while (simulation_now_ns(simulation) < end_ns) {
		uint64_t next_ns =
			simulation_now_ns(simulation) + rng_between(rng, DISTURB_LOW_MS, most_ms) * NS_PER_MS;

		if (!run_until(simulation, next_ns < end_ns ? next_ns : end_ns))
			return false;
		if (next_ns < end_ns)
			disturb(simulation);
	}
	for (unsigned i = 0; i < simulation->actor_count; i++)
		if (simulation->actors[i].calm != NULL)
			simulation->actors[i].calm(simulation->actors[i].context, simulation);
	simulation->in_storm = false;
	simulation->calm_since_ns = simulation_now_ns(simulation);
	sim_world_note(simulation->world, "the storm is over");
	return true;
}

static bool cycle(struct simulation *simulation)
{
	struct rng *rng = sim_world_rng(simulation->world);
	bool stormy = simulation->options.storm != SIM_STORM_NONE && rng_between(rng, 0, 5) != 0;

	set_network(simulation, false);
	for (unsigned i = 0; i < simulation->actor_count; i++)
		if (simulation->actors[i].begin_phase != NULL)
			simulation->actors[i].begin_phase(simulation->actors[i].context, simulation,
			                                  simulation->counts.cycles);
	if (stormy && !storm(simulation))
		return false;
	set_network(simulation, false);
	if (!run_until(simulation, simulation_now_ns(simulation) + simulation_settle_ns(simulation)))
		return false;
	for (unsigned i = 0; i < simulation->actor_count && !simulation->broken; i++)
		if (simulation->actors[i].check_settled != NULL)
			simulation->actors[i].check_settled(simulation->actors[i].context, simulation);
	simulation->counts.cycles++;
	return !simulation->broken;
}

bool simulation_run(struct simulation *simulation)
{
	uint64_t end_ns = (uint64_t)(simulation->options.hours * 3600 * (double)NS_PER_S);

	simulation->next_second_ns = NS_PER_S;
	while (simulation_now_ns(simulation) < end_ns)
		if (!cycle(simulation))
			return false;
	return true;
}

/* ---- the end ---- */

void simulation_end(struct simulation *simulation)
{
	while (simulation->actor_count > 0) {
		const struct sim_actor *actor = &simulation->actors[--simulation->actor_count];

		if (actor->destroy != NULL)
			actor->destroy(actor->context, simulation);
	}
	if (sim_world_leaked_sockets(simulation->world) > 0)
		simulation_broken(simulation, "descriptors", "%zu sockets were left open at the end",
		                  sim_world_leaked_sockets(simulation->world));
	/* The simulation itself is one block. */
	if (memory_block_count() != simulation->blocks_before + 1)
		simulation_broken(simulation, "memory", "%ld blocks of memory were left at the end",
		                  (long)(memory_block_count() - simulation->blocks_before - 1));
}

void simulation_destroy(struct simulation *simulation)
{
	sim_world_destroy(simulation->world);
	memory_release(simulation);
}
