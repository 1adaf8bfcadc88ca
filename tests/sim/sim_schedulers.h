/*
 * The scheduler's pods, each with a plugin process of its own: one, or two while a new one takes over. A plugin knows
 * what it granted itself and what another one wrote to the VMs' annotations.
 *
 * Agents ask the newest that is ready (spec agent-runtime 9.4); its pod's age is what the API server says.
 */
#ifndef BALLAST_TESTS_SIM_SIM_SCHEDULERS_H
#define BALLAST_TESTS_SIM_SIM_SCHEDULERS_H

#include "agent/core/resources.h"
#include "sandbox/scheduler_plugin.h"
#include "simulation.h"

enum { SIM_SCHEDULERS = 2, SIM_SCHEDULER_NAME_BYTES = 48 };

struct sim_cluster;
struct sim_vm;

struct sim_scheduler {
	struct sim_cluster *cluster;
	struct loop *loop;
	struct scheduler_plugin *plugin; /* NULL: this place is free */
	char pod_name[SIM_SCHEDULER_NAME_BYTES];
	int64_t created_s; /* since 1970, as the API server has it */
	bool away;         /* it is down, until */
	uint64_t back_ns;
	bool unready; /* it isn't ready yet, until */
	uint64_t ready_ns;
	uint64_t leaves_ns; /* when it goes; UINT64_MAX: not before another comes */
	unsigned requests;  /* a second ago */
};

/* The first one, with all nodes; and one more beside it, which knows what the other does. */
bool sim_schedulers_start(struct sim_cluster *cluster, struct error *err);
void sim_schedulers_destroy(struct sim_cluster *cluster);

/* For all plugins: the VM's pod, and what it uses. */
bool sim_schedulers_add_pod(struct sim_cluster *cluster, const struct sim_vm *vm, struct resources use,
                            struct error *err);
void sim_schedulers_remove_pod(struct sim_cluster *cluster, const char *pod_name);

/* The one that agents must ask; the first that they may ask if several are of the same age. Never NULL. */
const struct sim_scheduler *sim_schedulers_current(const struct sim_cluster *cluster);
/* Whether agents may ask the pod of that name. */
bool sim_schedulers_may_ask(const struct sim_cluster *cluster, const char *pod_name);

/* Of struct sim_actor; context: the cluster. */
extern const char *const SIM_SCHEDULER_MISFORTUNES[];
void sim_schedulers_strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng);
/* Brings back what has been away for its time, and takes away whose time has come. UINT64_MAX: all of that. */
void sim_schedulers_restore(struct sim_cluster *cluster, uint64_t now_ns);
/* Once a second. */
void sim_schedulers_check_rates(struct sim_cluster *cluster);

#endif
