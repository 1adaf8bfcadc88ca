#include "simulation.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

bool simulation_was_calm(const struct simulation *simulation, uint64_t at_ns, unsigned seconds)
{
	return !simulation->in_storm && at_ns >= simulation->calm_since_ns + (uint64_t)seconds * NS_PER_S;
}

bool simulation_is_calm(const struct simulation *simulation, unsigned seconds)
{
	return simulation_was_calm(simulation, simulation_now_ns(simulation), seconds);
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

/* Weather of the network; each storm has its own. NULL: it is calm. */
static void set_network(struct simulation *simulation, struct rng *storm)
{
	struct rng *rng = storm != NULL ? storm : sim_world_rng(simulation->world);
	struct sim_faults faults = { .delay_low_ns = 50000, .delay_high_ns = 2 * NS_PER_MS };
	bool heavy = simulation->options.storm == SIM_STORM_HEAVY;

	/* How bytes are cut is never wrong. */
	faults.split = per_million(rng, 300000);
	faults.unmerged = per_million(rng, 300000);
	faults.short_writes = per_million(rng, 200000);
	faults.single_bytes = per_million(rng, 100000);
	if (storm != NULL) {
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

/* ---- what happens, one by one ---- */

static void begin_phase(struct simulation *simulation, unsigned phase)
{
	set_network(simulation, NULL);
	for (unsigned i = 0; i < simulation->actor_count; i++)
		if (simulation->actors[i].begin_phase != NULL)
			simulation->actors[i].begin_phase(simulation->actors[i].context, simulation, phase);
}

static void begin_storm(struct simulation *simulation, uint64_t seed)
{
	struct rng rng;

	rng_seed(&rng, seed);
	simulation->counts.storms++;
	simulation->in_storm = true;
	sim_world_note(simulation->world, "a storm begins");
	set_network(simulation, &rng);
}

static void end_storm(struct simulation *simulation)
{
	if (!simulation->in_storm)
		return;
	for (unsigned i = 0; i < simulation->actor_count; i++)
		if (simulation->actors[i].calm != NULL)
			simulation->actors[i].calm(simulation->actors[i].context, simulation);
	simulation->in_storm = false;
	simulation->calm_since_ns = simulation_now_ns(simulation);
	sim_world_note(simulation->world, "the storm is over");
	set_network(simulation, NULL);
}

/* What isn't known any more is left out. */
static void hit(struct simulation *simulation, const struct sim_event *event)
{
	const struct sim_actor *actor = simulation->actors;
	const struct sim_actor *end = simulation->actors + simulation->actor_count;
	struct rng rng;
	unsigned misfortune = 0;

	while (actor < end && strcmp(actor->name, event->actor) != 0)
		actor++;
	if (actor == end || !simulation->in_storm)
		return;
	rng_seed(&rng, event->number);
	if (actor->misfortunes == NULL)
		return;
	while (actor->misfortunes[misfortune] != NULL && strcmp(actor->misfortunes[misfortune], event->misfortune) != 0)
		misfortune++;
	if (actor->misfortunes[misfortune] != NULL)
		actor->strike(actor->context, simulation, misfortune, &rng);
}

static void check_settled(struct simulation *simulation)
{
	if (simulation->in_storm ||
	    simulation_now_ns(simulation) < simulation->calm_since_ns + simulation_settle_ns(simulation))
		return;
	for (unsigned i = 0; i < simulation->actor_count && !simulation->broken; i++)
		if (simulation->actors[i].check_settled != NULL)
			simulation->actors[i].check_settled(simulation->actors[i].context, simulation);
	simulation->counts.cycles++;
}

/* False when a loop failed or an invariant broke. */
static bool perform(struct simulation *simulation, const struct sim_event *event)
{
	if (!run_until(simulation, event->at_ns))
		return false;
	if (simulation->options.record != NULL)
		sim_case_add(simulation->options.record, event);
	switch (event->kind) {
	case SIM_EVENT_PHASE:
		begin_phase(simulation, (unsigned)event->number);
		break;
	case SIM_EVENT_STORM:
		begin_storm(simulation, event->number);
		break;
	case SIM_EVENT_HIT:
		hit(simulation, event);
		break;
	case SIM_EVENT_CALM:
		end_storm(simulation);
		break;
	case SIM_EVENT_CHECK:
		check_settled(simulation);
		break;
	}
	return !simulation->broken;
}

/* ---- what a seed makes up ---- */

static bool perform_at(struct simulation *simulation, uint64_t at_ns, enum sim_event_kind kind, uint64_t number)
{
	return perform(simulation, &(struct sim_event){ .at_ns = at_ns, .kind = kind, .number = number });
}

static bool hit_somebody(struct simulation *simulation, uint64_t at_ns)
{
	struct rng *rng = sim_world_rng(simulation->world);
	const struct sim_actor *actor = &simulation->actors[rng_between(rng, 0, simulation->actor_count)];
	struct sim_event event = { .at_ns = at_ns, .kind = SIM_EVENT_HIT, .number = rng_next(rng) };
	unsigned misfortunes = 0;

	if (actor->misfortunes == NULL)
		return run_until(simulation, at_ns);
	while (actor->misfortunes[misfortunes] != NULL)
		misfortunes++;
	(void)snprintf(event.actor, sizeof event.actor, "%s", actor->name);
	(void)snprintf(event.misfortune, sizeof event.misfortune, "%s",
	               actor->misfortunes[rng_between(rng, 0, misfortunes)]);
	return perform(simulation, &event);
}

static bool storm(struct simulation *simulation)
{
	struct rng *rng = sim_world_rng(simulation->world);
	uint64_t at_ns = simulation_now_ns(simulation);
	uint64_t end_ns = at_ns + rng_between(rng, STORM_LOW_S, STORM_HIGH_S) * NS_PER_S;
	uint64_t most_ms = simulation->options.storm == SIM_STORM_HEAVY ? DISTURB_HEAVY_MS : DISTURB_LIGHT_MS;

	if (!perform_at(simulation, at_ns, SIM_EVENT_STORM, rng_next(rng)))
		return false;
	while ((at_ns += rng_between(rng, DISTURB_LOW_MS, most_ms) * NS_PER_MS) < end_ns)
		if (!hit_somebody(simulation, at_ns))
			return false;
	return perform_at(simulation, end_ns, SIM_EVENT_CALM, 0);
}

static bool cycle(struct simulation *simulation, unsigned phase)
{
	struct rng *rng = sim_world_rng(simulation->world);
	bool stormy = simulation->options.storm != SIM_STORM_NONE && rng_between(rng, 0, 5) != 0;

	return perform_at(simulation, simulation_now_ns(simulation), SIM_EVENT_PHASE, phase) &&
	       (!stormy || storm(simulation)) &&
	       perform_at(simulation, simulation_now_ns(simulation) + simulation_settle_ns(simulation), SIM_EVENT_CHECK,
	                  0);
}

bool simulation_run(struct simulation *simulation)
{
	const struct sim_case *play = simulation->options.play;
	uint64_t end_ns = (uint64_t)(simulation->options.hours * 3600 * (double)NS_PER_S);

	simulation->next_second_ns = NS_PER_S;
	if (play != NULL) {
		for (size_t i = 0; i < play->count; i++)
			if (!perform(simulation, &play->events[i]))
				return false;
		return true;
	}
	for (unsigned phase = 0; simulation_now_ns(simulation) < end_ns; phase++)
		if (!cycle(simulation, phase))
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
