/*
 * Holds the extender's answers against what is true: whether they have the right form, name nodes that were sent, in that
 * order and unchanged, and follow from a reservation as it stood in the store at some time during the call (spec extender
 * 3, 6).
 */
#ifndef BALLAST_TESTS_SIM_SIM_ANSWERS_H
#define BALLAST_TESTS_SIM_SIM_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>

#include "sandbox/object_store.h"
#include "sandbox/pod_workload.h"
#include "simulation.h"

struct sim_answers;

struct sim_sent_node {
	struct slice name, text; /* text: the object */
};

/* A call that is over. */
struct sim_call {
	bool filter; /* or prioritize */
	struct slice name_space, pod;
	bool by_name;
	const struct sim_sent_node *nodes;
	size_t node_count;
	uint64_t started_ns;
	int status;
	struct slice content_type, body;
};

/* What a pod asks for. */
struct sim_asked {
	const struct pod_plan *plan;
	bool too_large;
	bool bound;      /* all of its claims are */
	bool ever_bound; /* one of its claims is, or one of that name was: the extender may take that for the present one */
	uint64_t since_ns;
	uint64_t known_ns; /* since then the extender has known its claims as they are; 0: maybe not yet */
};

struct sim_answers_handler {
	/* False: there is no such pod now. */
	bool (*asked_of)(void *context, struct slice pod, struct sim_asked *ret_asked);
	void *context;
};

struct sim_answers *sim_answers_create(struct simulation *simulation, struct object_store *store,
                                       const struct sim_answers_handler *handler, struct error *err);
void sim_answers_destroy(struct sim_answers *answers); /* NULL is fine */
/* While the extender runs short of memory, it may have nothing to say. Until when, in simulated time. */
void sim_answers_excuse_starved(struct sim_answers *answers, uint64_t until_ns);
bool sim_answers_are_starved(const struct sim_answers *answers);
void sim_answers_check(struct sim_answers *answers, const struct sim_call *call);

struct sim_answers_counts {
	unsigned placed, passed, pending, nothing, errors, scored;
};

struct sim_answers_counts sim_answers_counts(const struct sim_answers *answers);

#endif
