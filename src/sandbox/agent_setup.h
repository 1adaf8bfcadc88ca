/*
 * What an agent finds in its pod: the configuration file, the service account's folder and the environment, here in a
 * temporary folder made for one run.
 */
#ifndef BALLAST_SANDBOX_AGENT_SETUP_H
#define BALLAST_SANDBOX_AGENT_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "sandbox/generation.h"

enum {
	AGENT_SETUP_SYSTEM_PORT = 9100,
	AGENT_SETUP_LFC_PORT = 9499,
	AGENT_SETUP_MONITOR_PORT = 10301,
	AGENT_SETUP_PLUGIN_PORT = 10299,
	AGENT_SETUP_DUMP_PORT = 10300,
	AGENT_SETUP_API_PORT = 6443,
	AGENT_SETUP_RECEIVER_PORT = 8080,
	AGENT_SETUP_COLLECT_S = 4, /* periods of billing, as shipped */
	AGENT_SETUP_ACCUMULATE_S = 24,
	AGENT_SETUP_PATH_BYTES = 512,
	AGENT_SETUP_LOG_PATH_BYTES = AGENT_SETUP_PATH_BYTES + 64,
	AGENT_SETUP_VARIABLES = 16,
};

#define AGENT_SETUP_SCHEDULER_NAME "autoscale-scheduler"
#define AGENT_SETUP_CPU_METRIC "effective_compute_seconds"
#define AGENT_SETUP_ACTIVE_METRIC "active_time_seconds"

struct agent_setup {
	char folder[AGENT_SETUP_PATH_BYTES];
};

/* Where one agent lives. Texts are read during the call only. */
struct agent_place {
	const char *node;
	const char *address; /* its pod's IP, on which it listens */
	const char *api_address;
};

struct agent_environment {
	char texts[AGENT_SETUP_VARIABLES][AGENT_SETUP_PATH_BYTES + 64];
	const char *variables[AGENT_SETUP_VARIABLES + 1]; /* NULL-terminated, point at texts: not to be moved */
};

/* What the configuration makes of a period: divided by speed, rounded up, at least 1. */
uint64_t agent_setup_scaled_s(unsigned seconds, double speed);

/*
 * Appends the agent's configuration as JSON: the values as shipped (spec agent-runtime 2.2), all seconds divided by speed,
 * rounded up, at least 1. negotiates: the agent is to find out the version of the scheduler plugin's protocol. receiver:
 * the address to which billing and scaling events go; NULL: to nobody.
 */
bool agent_setup_write_config(double speed, bool negotiates, const char *receiver, struct buffer *out,
                              struct error *err);

/* Makes the folder below $TMPDIR or /tmp, with everything in it. Only this user can read it. */
bool agent_setup_create(struct agent_setup *ret_setup, double speed, const struct sandbox_generation *generation,
                        const char *receiver, const char *token, struct slice ca_pem, struct error *err);

/* Adds another service account's folder, for the extender; ret_path is what BALLAST_SERVICEACCOUNT_DIR shall say. */
bool agent_setup_add_extender(const struct agent_setup *setup, const char *token, struct slice ca_pem,
                              char ret_path[AGENT_SETUP_LOG_PATH_BYTES], struct error *err);

/* The file for what an agent writes: log_path, or if that is NULL FOLDER/NODE.log, written to room. */
const char *agent_setup_log_path(const struct agent_setup *setup, const char *node, const char *log_path,
                                 char room[AGENT_SETUP_LOG_PATH_BYTES]);
/* Opens that file, to append. -1 on failure. */
int agent_setup_open_log(const struct agent_setup *setup, const char *node, const char *log_path, struct error *err);

/* The environment that the pod's manifest gives it. */
void agent_setup_fill_environment(const struct agent_setup *setup, const struct agent_place *place,
                                  struct agent_environment *ret_environment);

/* Removes the folder and what is in it; does nothing if it was never made. */
void agent_setup_remove(struct agent_setup *setup);

#endif
