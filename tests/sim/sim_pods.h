/*
 * The storage side of a simulated cluster: an API server with nodes, disks and pods with claims, and the stand-ins of
 * whoever works on them (src/sandbox): kube-scheduler, which calls the extender over the simulated network, and
 * csi-baremetal's controller with its provisioner. Each has a loop of its own.
 *
 * Pods come, go and come again for ever. It knows which of them fit, and holds every answer of the extender against the
 * reservations in the store.
 */
#ifndef BALLAST_TESTS_SIM_SIM_PODS_H
#define BALLAST_TESTS_SIM_SIM_PODS_H

#include <stdbool.h>

#include "sandbox/object_store.h"
#include "sim_answers.h"
#include "sim_peers.h"
#include "simulation.h"

struct sim_pods;

/* How scheduler and extender are set up; a function of the seed. */
struct sim_pods_mode {
	bool node_names;  /* the scheduler sends names (nodeCacheCapable) */
	bool strict;      /* not `ignorable`: a failed call fails the attempt */
	bool patching;    /* --isPatchingEnabled */
	uint64_t wait_ns; /* --wait-for-reservation */
};

struct sim_pods_mode sim_pods_mode(uint64_t seed);

/* Adds itself to the simulation as an actor. */
struct sim_pods *sim_pods_create(struct simulation *simulation, struct error *err);

const char *sim_pods_token(const struct sim_pods *pods);
struct slice sim_pods_ca_pem(const struct sim_pods *pods);
struct address sim_pods_api_address(void);
struct address sim_pods_extender_address(uint16_t port);
struct object_store *sim_pods_store(const struct sim_pods *pods);
struct sim_answers *sim_pods_answers(struct sim_pods *pods);
/* API server, scheduler, controller, in this order; NULL while a process is away. */
enum { SIM_PODS_LOOPS = 3 };
struct loop *sim_pods_loop(const struct sim_pods *pods, unsigned index);
/* Any of the pods that are there; false if there are none. Fills the pod's object, valid until the store changes. */
bool sim_pods_pick(struct sim_pods *pods, struct rng *rng, struct slice *ret_name, struct slice *ret_text);
/* Whether somebody asks for a pod at this very moment: the next one that is picked is that one. */
bool sim_pods_is_curious(const struct sim_pods *pods);
/* When the simulation itself changed claims or volumes at last. */
uint64_t sim_pods_changed_ns(const struct sim_pods *pods);

/* Tells which claims the extender knows as they are in the store, now. */
void sim_pods_note_known(struct sim_pods *pods, bool (*is_known)(void *context, const struct stored_object *claim),
                         void *context);

/* Misfortunes and observations so far, for the report. */
struct sim_pods_counts {
	unsigned created, deleted, bound, volumes_released;
	unsigned scheduler_restarts, controller_restarts, meddlings, lost_reservations, drives_away, slow_controllers;
	struct sim_api_counts api;
	unsigned stuck; /* pods that lost the room for their other volumes to somebody else */
	unsigned settled_checks;
	unsigned request_faults; /* that the API server drew for a request, and hasty schedulers */
};

struct sim_pods_counts sim_pods_counts(const struct sim_pods *pods);

#endif
