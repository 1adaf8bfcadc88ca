/*
 * What the files of the simulated extender share: sim_extender.c has its life, sim_extender_checks.c its invariants,
 * sim_prober.c whoever asks its ports.
 */
#ifndef BALLAST_TESTS_SIM_SIM_EXTENDER_INTERNAL_H
#define BALLAST_TESTS_SIM_SIM_EXTENDER_INTERNAL_H

#include "extender/extender_internal.h"
#include "net/http_client.h"
#include "sim_extender.h"

enum {
	SIM_EXTENDER_PATH_BYTES = AGENT_SETUP_LOG_PATH_BYTES + 64,
	SIM_EXTENDER_PORT = 8889,
	SIM_EXTENDER_METRICS_PORT = 8787,
	SIM_EXTENDER_HEALTH_PORT = 9999,
	SIM_PROBES = 8, /* at the same time */
};

struct sim_prober;

struct sim_extender {
	struct simulation *simulation;
	struct sim_extender_options options;
	struct sim_pods_mode mode;
	char ip[ADDRESS_TEXT_BYTES], api_host[ADDRESS_TEXT_BYTES], api_port[8];
	char metrics_address[ADDRESS_TEXT_BYTES + 8];
	char account[AGENT_SETUP_LOG_PATH_BYTES];
	char kubeconfig_path[SIM_EXTENDER_PATH_BYTES], readiness_path[SIM_EXTENDER_PATH_BYTES];
	struct extender_arguments arguments;
	struct sim_prober *prober;
	bool restarted; /* what the readiness file says; since … */
	uint64_t flipped_ns;

	struct sim_extender_counts *counts;
	struct sim_process process;

	/* Of the process, if there is one. */
	uint64_t end_at_ns; /* it is going to be told; 0: not */
	struct extender extender;
	uint64_t held_since_ns;      /* 0: nothing is held */
	uint64_t different_since_ns; /* caches and store; 0: they are the same */
	unsigned seconds;
};

/* Of struct sim_actor; context: the extender. */
void sim_extender_check_second(void *context, struct simulation *simulation);
void sim_extender_check_settled(void *context, struct simulation *simulation);
/* After each step. */
void sim_extender_check_process(const struct sim_extender *self);

struct sim_prober *sim_prober_create(struct sim_extender *extender, struct error *err);
void sim_prober_destroy(struct sim_prober *prober); /* NULL is fine */
/* Once a second. */
void sim_prober_go_on(struct sim_prober *prober);
/* Now, if it has room for one more question. */
enum sim_ask { SIM_ASK_READY, SIM_ASK_FILTER };
void sim_prober_ask(struct sim_prober *prober, enum sim_ask what);
struct loop *sim_prober_loop(const struct sim_prober *prober);

#endif
