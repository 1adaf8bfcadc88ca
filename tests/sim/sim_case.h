/*
 * What befalls a run, written down: when phases begin, storms come and go, and who meets which misfortune. A seed makes
 * one up while the run goes on; a file has one that was kept, and means the same when the simulator has changed: what it
 * names still happens at that time, each with chances of its own, even if the network behaves another way.
 *
 * The file has a line for each event, and one with the run's options:
 *
 *     run seed 17 vms 7 pods 0 nodes 3 faults heavy memory 0 tls 0
 *     0.000 phase 0
 *     0.000 storm 8512340123
 *     13.250 hit agent-a freeze 17012311
 *     98.000 calm
 *     248.000 check
 *
 * Lines that begin with # say what it was that once broke.
 */
#ifndef BALLAST_TESTS_SIM_SIM_CASE_H
#define BALLAST_TESTS_SIM_SIM_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { SIM_CASE_NAME_BYTES = 32 };

/* How bad storms may be. */
enum sim_storm { SIM_STORM_NONE, SIM_STORM_LIGHT, SIM_STORM_HEAVY };

const char *sim_storm_name(enum sim_storm storm);
/* False for a name that isn't one. */
bool sim_storm_of(const char *name, enum sim_storm *ret_storm);

enum sim_event_kind { SIM_EVENT_PHASE, SIM_EVENT_STORM, SIM_EVENT_HIT, SIM_EVENT_CALM, SIM_EVENT_CHECK };

struct sim_event {
	uint64_t at_ns;
	enum sim_event_kind kind;
	uint64_t number; /* of the phase; the seed of a storm's weather, or of a misfortune */
	char actor[SIM_CASE_NAME_BYTES], misfortune[SIM_CASE_NAME_BYTES];
};

/* Zero is an empty one. */
struct sim_case {
	uint64_t seed;
	unsigned vms, pods, nodes;
	enum sim_storm storm;
	bool memory, tls;
	struct sim_event *events;
	size_t count, capacity;
	bool failed; /* there was no memory for an event */
};

void sim_case_add(struct sim_case *record, const struct sim_event *event);
void sim_case_destroy(struct sim_case *record);
bool sim_case_write(const struct sim_case *record, const char *path, const char *comment, struct error *err);
bool sim_case_read(const char *path, struct sim_case *ret_case, struct error *err);

/*
 * Takes away half of the events, a quarter, and so on down to single ones, as long as the same invariant breaks without
 * them, which breaks tells.
 */
void sim_case_shrink(struct sim_case *record, const char *broken,
                     bool (*breaks)(void *context, const struct sim_case *play, const char *broken), void *context);

#endif
