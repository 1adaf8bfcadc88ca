#include "base/memory.h"
#include "extender/process_limits.h"
#include "sandbox/storage_objects.h"
#include "sim_extender_internal.h"

enum {
	BEHIND_S = 4,  /* for so long caches may be behind the store … */
	CHANGED_S = 2, /* … after a change */
	HELD_S = 75,   /* a call whose peer fell silent is held until that is found */
	QUIET_HELD_S = 6,
	TURNS_MAX = 1000,      /* seen: 331 */
	QUIET_TURNS_MAX = 600, /* seen: 263 */
	COMPARE_S = 3,
};

static const struct sim_process_limits LIMITS = {
	.sockets = 3 + 4 + 8 + 12, /* listeners, watches, calls, scheduler and others */
	.timers = 30,              /* seen: 14 */
	.more_blocks = 160,        /* seen: 78 */
};

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* P6: no port is open before the caches are complete. P9: the end comes within the grace of 10 s. */
void sim_extender_check_process(const struct sim_extender *self)
{
	if (self->extender.server != NULL && caches_missing(self->extender.caches) != NULL)
		simulation_broken(self->simulation, "serves", "the extender serves without %s",
		                  caches_missing(self->extender.caches));
	sim_process_check_end(&self->process, (uint64_t)EXTENDER_STOP_MS * NS_PER_MS);
}

/* ---- calls ---- */

/* I3, whatever goes wrong. */
static void check_budget(const struct sim_extender *self)
{
	uint64_t now_ns = simulation_now_ns(self->simulation);
	uint64_t oldest_ns =
		self->extender.server != NULL ? extender_server_oldest_call_ns(self->extender.server) : UINT64_MAX;
	uint64_t end_ns = oldest_ns + (uint64_t)EXTENDER_CALL_BUDGET_MS * NS_PER_MS;

	/* A process that is stopped notices no deadline. */
	if (oldest_ns != UINT64_MAX &&
	    now_ns > later_of(end_ns, self->process.frozen_until_ns) + (uint64_t)SIM_PROCESS_LATE_MS * NS_PER_MS)
		simulation_broken(self->simulation, "request-ends", "a filter call is under way for %.1f s",
		                  (double)(now_ns - oldest_ns) / (double)NS_PER_S);
}

static void check_held(struct sim_extender *self)
{
	uint64_t now_ns = simulation_now_ns(self->simulation);
	unsigned most_s = simulation_is_calm(self->simulation, SIM_KNOWN_S) ? QUIET_HELD_S : HELD_S;

	if (self->extender.server == NULL || extender_server_held_bytes(self->extender.server) == 0) {
		self->held_since_ns = 0;
		return;
	}
	if (self->held_since_ns == 0)
		self->held_since_ns = now_ns;
	if (now_ns > self->held_since_ns + (uint64_t)most_s * NS_PER_S && now_ns > self->process.frozen_until_ns)
		simulation_broken(self->simulation, "request-ends", "calls hold %zu bytes for more than %u s",
		                  extender_server_held_bytes(self->extender.server), most_s);
}

/* ---- caches ---- */

static bool is_claim_known(void *context, const struct stored_object *object)
{
	const struct sim_extender *self = context;
	const struct storage_view *view = caches_view(self->extender.caches);
	struct storage_claim claim;
	struct claim_view seen;
	struct arena arena;
	struct error err;
	bool same = false;

	arena_init(&arena, STORAGE_ARENA_BYTES);
	if (storage_read_claim(object, &arena, &claim, &err))
		same = view->find_claim(view->context, object->name_space, object->name, &seen) &&
		       slice_equal(seen.phase, claim.phase) && seen.size_bytes == claim.size_bytes &&
		       slice_equal(seen.class_name, claim.class_name) && slice_equal(seen.storage_group, claim.group);
	arena_destroy(&arena);
	return same;
}

/* NULL: all of them are. */
static const struct stored_object *find_unknown_claim(struct sim_extender *self)
{
	struct object_store *store = sim_pods_store(self->options.pods);
	const struct resource_kind *kind = resource_kind(RESOURCE_CLAIMS);

	for (size_t i = 0; i < object_store_count(store, kind); i++)
		if (!is_claim_known(self, object_store_at(store, kind, i)))
			return object_store_at(store, kind, i);
	return NULL;
}

static bool are_volumes_known(struct sim_extender *self)
{
	struct object_store *store = sim_pods_store(self->options.pods);
	const struct resource_kind *nodes = resource_kind(RESOURCE_NODES), *volumes = resource_kind(RESOURCE_VOLUMES);
	const struct volume_counts *counts;
	bool same = true;
	struct arena arena;
	struct error err;

	counts = caches_volume_counts(self->extender.caches, &err);
	if (counts == NULL)
		return false;
	arena_init(&arena, STORAGE_ARENA_BYTES);
	for (size_t i = 0; same && i < object_store_count(store, nodes); i++) {
		struct json_node *root;
		struct slice id = { 0 };
		size_t count = 0;

		if (storage_parse(object_store_at(store, nodes, i), &arena, &root, &err))
			id = storage_text(root, "/metadata/uid");
		for (size_t j = 0; j < object_store_count(store, volumes); j++)
			if (storage_parse(object_store_at(store, volumes, j), &arena, &root, &err) &&
			    slice_equal(storage_text(root, "/spec/NodeId"), id))
				count++;
		same = volume_counts_of(counts, id) == count;
	}
	arena_destroy(&arena);
	return same;
}

/* A dead watch is found and opened anew, and no event is lost: what the caches have is what the store has. */
static void check_caches(struct sim_extender *self)
{
	uint64_t now_ns = simulation_now_ns(self->simulation);
	const struct stored_object *claim = NULL;

	if (now_ns < sim_pods_changed_ns(self->options.pods) + (uint64_t)CHANGED_S * NS_PER_S)
		return;
	if (!simulation_is_calm(self->simulation, SIM_KNOWN_S) || self->extender.server == NULL ||
	    ((claim = find_unknown_claim(self)) == NULL && are_volumes_known(self))) {
		self->different_since_ns = 0;
		return;
	}
	if (self->different_since_ns == 0)
		self->different_since_ns = now_ns;
	if (now_ns > self->different_since_ns + (uint64_t)BEHIND_S * NS_PER_S)
		simulation_broken(self->simulation, "watches",
		                  "the extender's cache of %s%.*s differs from the store for %d s",
		                  claim != NULL ? "claims: " : "volumes",
		                  SLICE_ARGS(claim != NULL ? claim->name : slice_of("")), BEHIND_S);
}

/* ---- each second ---- */

void sim_extender_check_second(void *context, struct simulation *simulation)
{
	struct sim_extender *self = context;
	bool quiet = simulation_is_calm(self->simulation, SIM_KNOWN_S);

	sim_process_check_turns(&self->process, quiet ? QUIET_TURNS_MAX : TURNS_MAX);
	if (quiet && (!self->process.runs || self->extender.server == NULL))
		simulation_broken(simulation, "serves", "the extender doesn't serve %d s after the last fault",
		                  SIM_KNOWN_S);
	if (self->process.runs) {
		check_budget(self);
		if (self->extender.caches != NULL)
			sim_pods_note_known(self->options.pods, is_claim_known, self);
		check_held(self);
		if (++self->seconds % COMPARE_S == 0 || self->different_since_ns != 0)
			check_caches(self);
	}
	sim_prober_go_on(self->prober);
}

/* ---- when all is quiet ---- */

void sim_extender_check_settled(void *context, struct simulation *simulation)
{
	struct sim_extender *self = context;

	(void)simulation;
	if (self->process.runs) /* otherwise the check of each second has said so */
		sim_process_check_quiet(&self->process, &LIMITS);
}
