#include "base/memory.h"
#include "extender/process_limits.h"
#include "sandbox/storage_objects.h"
#include "sim_extender_internal.h"

enum {
	KNOWN_S = 65,   /* after the last fault dead connections have been found, and caches are as the store … */
	BEHIND_S = 4,   /* … but for so long … */
	CHANGED_S = 2,  /* … after a change */
	LATE_MS = 1500, /* what turns may be late */
	HELD_S = 75,    /* a call whose peer fell silent is held until that is found */
	QUIET_HELD_S = 6,
	TURNS_MAX = 1500,
	QUIET_TURNS_MAX = 700,
	BLOCKS_SLACK = 300,
	SOCKETS_MAX = 3 + 4 + 8 + 12, /* listeners, watches, calls, scheduler and others */
	TIMERS_MAX = 60,
	COMPARE_S = 3,
};

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* For so long nothing went wrong. */
static bool is_quiet_for(const struct sim_extender *self, unsigned seconds)
{
	uint64_t calm_ns = simulation_calm_since_ns(self->simulation);

	return calm_ns != UINT64_MAX && simulation_now_ns(self->simulation) >= calm_ns + (uint64_t)seconds * NS_PER_S;
}

/* P6: no port is open before the caches are complete. P9: the end comes within the grace of 10 s. */
void sim_extender_check_process(const struct sim_extender *self)
{
	uint64_t since_ns = later_of(self->ending_since_ns, self->frozen_until_ns);

	if (self->extender.server != NULL && caches_missing(self->extender.caches) != NULL)
		simulation_broken(self->simulation, "serves", "the extender serves without %s",
		                  caches_missing(self->extender.caches));

	if (self->ending &&
	    simulation_now_ns(self->simulation) > since_ns + (uint64_t)(EXTENDER_STOP_MS + LATE_MS) * NS_PER_MS)
		simulation_broken(self->simulation, "ends", "the extender was told to end, and hasn't after %d ms",
		                  EXTENDER_STOP_MS + LATE_MS);
}

/* ---- calls ---- */

/* I3, whatever goes wrong. */
static void check_budget(const struct sim_extender *self)
{
	uint64_t now_ns = simulation_now_ns(self->simulation);
	uint64_t oldest_ns =
		self->extender.server != NULL ? extender_server_oldest_call_ns(self->extender.server) : UINT64_MAX;
	const uint64_t most_ns = (uint64_t)(EXTENDER_CALL_BUDGET_MS + LATE_MS) * NS_PER_MS;

	/* A process that is stopped notices no deadline. */
	if (oldest_ns != UINT64_MAX && now_ns > later_of(oldest_ns, self->frozen_until_ns) + most_ns)
		simulation_broken(self->simulation, "request-ends", "a filter call is under way for %.1f s",
		                  (double)(now_ns - oldest_ns) / (double)NS_PER_S);
}

static void check_held(struct sim_extender *self)
{
	uint64_t now_ns = simulation_now_ns(self->simulation);
	unsigned most_s = is_quiet_for(self, KNOWN_S) ? QUIET_HELD_S : HELD_S;

	if (self->extender.server == NULL || extender_server_held_bytes(self->extender.server) == 0) {
		self->held_since_ns = 0;
		return;
	}
	if (self->held_since_ns == 0)
		self->held_since_ns = now_ns;
	if (now_ns > self->held_since_ns + (uint64_t)most_s * NS_PER_S && now_ns > self->frozen_until_ns)
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
	if (!is_quiet_for(self, KNOWN_S) || self->extender.server == NULL ||
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
	bool quiet = is_quiet_for(self, KNOWN_S);

	if (self->turns_this_second > self->counts->most_turns_per_second)
		self->counts->most_turns_per_second = self->turns_this_second;
	if (self->turns_this_second > (quiet ? QUIET_TURNS_MAX : TURNS_MAX))
		simulation_broken(simulation, "no-busy-loop", "the extender turned %llu times in one second",
		                  (unsigned long long)self->turns_this_second);
	self->turns_this_second = 0;
	if (quiet && (!self->runs || self->extender.server == NULL))
		simulation_broken(simulation, "serves", "the extender doesn't serve %d s after the last fault",
		                  KNOWN_S);
	if (self->runs) {
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
	size_t sockets, timers;

	if (!self->runs)
		return; /* the check of each second has said so */
	sockets = loop_sim_socket_count(self->loop);
	timers = loop_sim_timer_count(self->loop);
	if (sockets > SOCKETS_MAX)
		simulation_broken(simulation, "descriptors", "the extender has %zu sockets open", sockets);
	if (timers > TIMERS_MAX)
		simulation_broken(simulation, "timers", "the extender has %zu timers running", timers);
	if (self->quiet_checks++ == 0)
		self->first_quiet_blocks = (unsigned long)self->blocks;
	else if (self->blocks > (long)(self->first_quiet_blocks + BLOCKS_SLACK))
		simulation_broken(simulation, "memory",
		                  "the extender has %ld blocks of memory, and %lu when it was quiet first",
		                  self->blocks, self->first_quiet_blocks);
	if (sockets > self->counts->quiet_sockets)
		self->counts->quiet_sockets = sockets;
	if (timers > self->counts->quiet_timers)
		self->counts->quiet_timers = timers;
	if ((unsigned long)self->blocks > self->counts->quiet_blocks)
		self->counts->quiet_blocks = (unsigned long)self->blocks;
}
