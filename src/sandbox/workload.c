/*
 * Each kind of VM states its demands for WORKLOAD_PHASES phases; what it must then have is computed from them in one place.
 * Each VM draws from a generator of its own, so that one VM more changes nothing for the others.
 */
#include "sandbox/workload.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"

enum {
	LEAST_UNITS = 1,
	MAX_LOW = 5, /* the spec's maximum is drawn from here … */
	MAX_HIGH = 8,
	BOUND_UNITS = 4,
	HELD_LOW = 3,
	MEMORY_HIGH = 5, /* memory grows by one unit a second, which is all the time there is */
	TAKEOVER_UNITS = 3,
	FULL_FIRST_UNITS = 5,
	FULL_SECOND_UNITS = 6,
	SETTLE_LEAST_S = 8,
	SETTLE_SCALED_S = 24, /* divided by the speed: waits that the config states … */
	SETTLE_FIXED_S = 2,   /* … and those that it doesn't */
	PATCHES_BURST = 100,  /* what an agent may send at once, and … */
	PATCHES_PER_S = 50,
};

static const double PATCHES_PER_VM = 2.5; /* in a phase; seen: 1.7 */

static const char *const KIND_NAMES[] = {
	[WORKLOAD_RAMP] = "ramp",
	[WORKLOAD_HELD] = "held",
	[WORKLOAD_MEMORY] = "memory",
	[WORKLOAD_TAKEOVER] = "takeover",
	[WORKLOAD_FULL_FIRST] = "full-first",
	[WORKLOAD_FULL_SECOND] = "full-second",
	[WORKLOAD_LFC] = "lfc",
	[WORKLOAD_BOUNDED] = "bounded",
	[WORKLOAD_SPIKE] = "spike",
	[WORKLOAD_RANDOM] = "random",
};

static const char *const TREES[] = {
	"pine",  "oak", "elm",   "birch",  "cedar", "maple", "ash",   "larch",  "willow", "beech", "hazel",  "rowan",
	"alder", "yew", "aspen", "spruce", "fir",   "lime",  "holly", "walnut", "olive",  "plum",  "cherry", "juniper",
};

enum { TREE_COUNT = sizeof TREES / sizeof TREES[0] };

const char *workload_kind_name(enum workload_kind kind)
{
	return KIND_NAMES[kind];
}

const char *workload_cause_name(enum workload_cause cause)
{
	static const char *const names[] = { "load", "memory", "lfc" };

	return names[cause];
}

uint64_t workload_least_ns(double speed)
{
	double least_s = SETTLE_SCALED_S / speed + SETTLE_FIXED_S;

	return (uint64_t)((least_s < SETTLE_LEAST_S ? SETTLE_LEAST_S : least_s) * NS_PER_S);
}

uint64_t workload_settle_ns(double speed, unsigned vms)
{
	double waiting = vms * PATCHES_PER_VM - PATCHES_BURST;

	return workload_least_ns(speed) + (waiting > 0 ? (uint64_t)(waiting / PATCHES_PER_S * NS_PER_S) : 0);
}

/* ---- what each kind demands ---- */

static unsigned draw(struct rng *rng, unsigned low, unsigned high)
{
	return (unsigned)rng_between(rng, low, (uint64_t)high + 1);
}

static void demand_ramp(struct workload_vm *vm, struct rng *rng)
{
	for (unsigned i = 0; i < WORKLOAD_PHASES; i += 6) {
		unsigned middle = draw(rng, 3, vm->max - 1);

		vm->phases[i].demand = 2;
		vm->phases[i + 1].demand = middle;
		vm->phases[i + 2].demand = vm->max;
		vm->phases[i + 3].demand = middle;
		vm->phases[i + 4].demand = 2;
		vm->phases[i + 5].demand = LEAST_UNITS;
	}
}

/* Up, then little to do but memory that can't be given back, then free. */
static void demand_held(struct workload_vm *vm, struct rng *rng)
{
	for (unsigned i = 0; i < WORKLOAD_PHASES; i += 3) {
		unsigned held = draw(rng, HELD_LOW, vm->max);

		vm->phases[i].demand = held;
		vm->phases[i + 1].demand = LEAST_UNITS;
		vm->phases[i + 1].held = held;
		vm->phases[i + 2].demand = draw(rng, LEAST_UNITS, 2);
	}
}

static void demand_up_and_down(struct workload_vm *vm, struct rng *rng, enum workload_cause cause, unsigned most)
{
	for (unsigned i = 0; i < WORKLOAD_PHASES; i += 2) {
		vm->phases[i].cause = cause;
		vm->phases[i].demand = draw(rng, 3, most);
		vm->phases[i + 1].cause = cause;
		vm->phases[i + 1].demand = draw(rng, LEAST_UNITS, 2);
	}
}

static void demand_spike(struct workload_vm *vm)
{
	for (unsigned i = 0; i < WORKLOAD_PHASES; i++)
		vm->phases[i].demand = i % 2 == 0 ? LEAST_UNITS : vm->max;
}

static void demand_takeover(struct workload_vm *vm)
{
	vm->initial = TAKEOVER_UNITS;
	demand_spike(vm);
	vm->phases[0].demand = TAKEOVER_UNITS;
}

static void demand_bounded(struct workload_vm *vm, struct rng *rng)
{
	vm->max = MAX_HIGH;
	vm->bound = BOUND_UNITS;
	for (unsigned i = 0; i < WORKLOAD_PHASES; i++)
		vm->phases[i].demand = i % 2 == 0 ? draw(rng, BOUND_UNITS + 1, MAX_HIGH) : draw(rng, LEAST_UNITS, 2);
}

static void demand_random(struct workload_vm *vm, struct rng *rng)
{
	for (unsigned i = 0; i < WORKLOAD_PHASES; i++) {
		bool memory = draw(rng, 0, 1) == 1;

		vm->phases[i].cause = memory ? WORKLOAD_CAUSE_MEMORY : WORKLOAD_CAUSE_LOAD;
		vm->phases[i].demand = draw(rng, LEAST_UNITS, memory ? MEMORY_HIGH : vm->max);
	}
}

static void demand_full_node(struct workload_vm *vm)
{
	static const unsigned first[] = { FULL_FIRST_UNITS, FULL_FIRST_UNITS, LEAST_UNITS, LEAST_UNITS };
	static const unsigned second[] = { LEAST_UNITS, FULL_SECOND_UNITS, FULL_SECOND_UNITS, LEAST_UNITS };
	const unsigned *demands = vm->kind == WORKLOAD_FULL_FIRST ? first : second;

	vm->max = MAX_HIGH;
	for (unsigned i = 0; i < WORKLOAD_PHASES; i++)
		vm->phases[i].demand = demands[i % 4];
}

static void state_demands(struct workload_vm *vm, struct rng *rng)
{
	vm->min = LEAST_UNITS;
	vm->max = draw(rng, MAX_LOW, MAX_HIGH);
	vm->initial = LEAST_UNITS;
	vm->plugged = LEAST_UNITS;
	switch (vm->kind) {
	case WORKLOAD_RAMP:
		demand_ramp(vm, rng);
		break;
	case WORKLOAD_HELD:
		demand_held(vm, rng);
		break;
	case WORKLOAD_MEMORY:
		demand_up_and_down(vm, rng, WORKLOAD_CAUSE_MEMORY, MEMORY_HIGH);
		break;
	case WORKLOAD_TAKEOVER:
		demand_takeover(vm);
		break;
	case WORKLOAD_FULL_FIRST:
	case WORKLOAD_FULL_SECOND:
		demand_full_node(vm);
		break;
	case WORKLOAD_LFC:
		demand_up_and_down(vm, rng, WORKLOAD_CAUSE_LFC, vm->max);
		break;
	case WORKLOAD_BOUNDED:
		demand_bounded(vm, rng);
		break;
	case WORKLOAD_SPIKE:
		demand_spike(vm);
		break;
	case WORKLOAD_RANDOM:
		demand_random(vm, rng);
		break;
	}
}

/* ---- what follows from it ---- */

static void expect_alone(struct workload_vm *vm)
{
	unsigned most = vm->bound != 0 ? vm->bound : vm->max;

	for (unsigned i = 0; i < WORKLOAD_PHASES; i++) {
		struct workload_phase *phase = &vm->phases[i];

		phase->expected = phase->demand;
		if (phase->expected < vm->min)
			phase->expected = vm->min;
		if (phase->expected > most)
			phase->expected = most;
		if (phase->expected < phase->held)
			phase->expected = phase->held;
	}
}

/* A cause that the agent doesn't look at. */
static void expect_least(struct workload_vm *vm)
{
	for (unsigned i = 0; i < WORKLOAD_PHASES; i++)
		vm->phases[i].expected = vm->min;
}

/* Of what the VM wants more than it has, it gets what the other one leaves of the node. */
static unsigned share_of_node(unsigned had, unsigned wanted, unsigned other)
{
	unsigned room = WORKLOAD_FULL_NODE_UNITS - had - other;

	return wanted - had < room ? wanted : had + room;
}

/*
 * Two VMs on one small node. At most one of them rises in a phase, and the other one's decrease needs nobody's leave, so there
 * is one outcome only.
 */
static void expect_sharing(struct workload_vm *first, struct workload_vm *second)
{
	unsigned first_has = first->initial, second_has = second->initial;

	for (unsigned i = 0; i < WORKLOAD_PHASES; i++) {
		struct workload_phase *a = &first->phases[i], *b = &second->phases[i];

		first_has = a->demand < first_has ? a->demand : first_has;
		second_has = b->demand < second_has ? b->demand : second_has;
		first_has = share_of_node(first_has, a->demand, second_has);
		second_has = share_of_node(second_has, b->demand, first_has);
		a->expected = first_has;
		b->expected = second_has;
		a->contended = b->contended = first_has < a->demand || second_has < b->demand;
	}
}

static enum workload_kind kind_of(const struct workload *workload, unsigned vm)
{
	static const enum workload_kind first[] = { WORKLOAD_RAMP, WORKLOAD_HELD, WORKLOAD_MEMORY, WORKLOAD_TAKEOVER };
	static const enum workload_kind others[] = { WORKLOAD_LFC,  WORKLOAD_BOUNDED, WORKLOAD_SPIKE, WORKLOAD_RAMP,
		                                     WORKLOAD_HELD, WORKLOAD_MEMORY,  WORKLOAD_RANDOM };
	enum { FIRST_COUNT = sizeof first / sizeof first[0], OTHER_COUNT = sizeof others / sizeof others[0] };

	if (workload->has_full_node && vm + 2 == workload->options.vms)
		return WORKLOAD_FULL_FIRST;
	if (workload->has_full_node && vm + 1 == workload->options.vms)
		return WORKLOAD_FULL_SECOND;
	return vm < FIRST_COUNT ? first[vm] : others[(vm - FIRST_COUNT) % OTHER_COUNT];
}

static void name_vm(struct workload_vm *vm, unsigned index)
{
	const char *tree = TREES[index % TREE_COUNT];

	if (index < TREE_COUNT)
		(void)snprintf(vm->name, sizeof vm->name, "%s", tree);
	else
		(void)snprintf(vm->name, sizeof vm->name, "%s-%u", tree, index / TREE_COUNT + 1);
}

bool workload_check_duration(double speed, unsigned vms, uint64_t duration_ns, struct error *err)
{
	uint64_t least_ns = workload_settle_ns(speed, vms);

	/* Rounded up: what the text names must be enough. */
	return duration_ns == 0 || duration_ns >= least_ns ||
	       error_set(err, ERROR_LIMIT, "at %u VM%s and speed %g a run takes at least %.1f s", vms,
	                 vms == 1 ? "" : "s", speed, ceil((double)least_ns / NS_PER_S * 10) / 10);
}

static bool divide_time(struct workload *workload, struct error *err)
{
	uint64_t duration_ns = workload->options.duration_ns;

	workload->settle_ns = workload_settle_ns(workload->options.speed, workload->options.vms);
	if (duration_ns == 0) {
		workload->phase_length_ns = workload->settle_ns;
		return true;
	}
	if (!workload_check_duration(workload->options.speed, workload->options.vms, duration_ns, err))
		return false;
	workload->phase_count = (unsigned)(duration_ns / workload->settle_ns);
	workload->phase_length_ns = duration_ns / workload->phase_count;
	return true;
}

struct workload *workload_create(const struct workload_options *options, struct error *err)
{
	struct workload *workload = memory_allocate(sizeof *workload + options->vms * sizeof workload->vms[0]);

	if (workload == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory for the workload");
		return NULL;
	}
	workload->options = *options;
	workload->has_full_node = options->vms >= WORKLOAD_FULL_VMS_LEAST && options->nodes >= 2;
	if (!divide_time(workload, err)) {
		workload_destroy(workload);
		return NULL;
	}
	for (unsigned i = 0; i < options->vms; i++) {
		struct workload_vm *vm = &workload->vms[i];
		struct rng rng;

		rng_seed(&rng, options->seed * WORKLOAD_VMS_MAX + i);
		name_vm(vm, i);
		vm->kind = kind_of(workload, i);
		vm->node = vm->kind == WORKLOAD_FULL_FIRST || vm->kind == WORKLOAD_FULL_SECOND ? 1 : 0;
		state_demands(vm, &rng);
		expect_alone(vm);
		if (options->generation.late_2023 && vm->kind == WORKLOAD_LFC)
			expect_least(vm);
	}
	if (workload->has_full_node)
		expect_sharing(&workload->vms[options->vms - 2], &workload->vms[options->vms - 1]);
	return workload;
}

void workload_destroy(struct workload *workload)
{
	memory_release(workload);
}

/* ---- questions ---- */

const struct workload_phase *workload_phase(const struct workload *workload, unsigned vm, unsigned index)
{
	return &workload->vms[vm].phases[index % WORKLOAD_PHASES];
}

unsigned workload_expected_before(const struct workload *workload, unsigned vm, unsigned index)
{
	return index == 0 ? workload->vms[vm].initial : workload_phase(workload, vm, index - 1)->expected;
}

unsigned workload_phase_at(const struct workload *workload, uint64_t elapsed_ns)
{
	uint64_t index = elapsed_ns / workload->phase_length_ns;

	if (workload->phase_count != 0 && index >= workload->phase_count)
		index = workload->phase_count - 1;
	return (unsigned)index;
}
