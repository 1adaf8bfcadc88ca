/*
 * A stand-in for the scheduler plugin (spec surroundings section 1): capacity per node, grants in whole units, the exact
 * checks and texts, and the times the real one takes. The newest one, unless it is told to be an older release.
 */
#ifndef BALLAST_SANDBOX_SCHEDULER_PLUGIN_H
#define BALLAST_SANDBOX_SCHEDULER_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/resources.h"
#include "base/error.h"
#include "net/address.h"
#include "net/loop.h"
#include "sandbox/faults.h"
#include "sandbox/plugin_release.h"

struct scheduler_plugin;

struct scheduler_plugin_pod {
	const char *name_space;
	const char *name;
	const char *node; /* NULL: not bound yet */
	bool is_vm;
	struct resources use;          /* what a VM uses at start; a plain pod's requests */
	uint32_t overcommit_cpu_milli; /* 0: 1000 */
	uint32_t overcommit_memory_milli;
	struct resources maximum; /* of a VM; for releases that reserve it after a restart. Zero: not known */
	uint64_t slot_bytes;      /* of its memory; 0: 1 GiB */
};

/* An answer with a permit. */
struct scheduler_plugin_answer {
	const char *pod_name;
	struct resources wanted;
	struct resources permit;
	bool denied; /* an increase was asked for and nothing of it granted */
};

struct scheduler_plugin_handler {
	/* May be NULL. */
	void (*on_answer)(void *context, const struct scheduler_plugin_answer *answer);
	/* The annotations of surroundings 1.4.1, to be written to the VM of that pod. May be NULL. */
	void (*on_annotate)(void *context, const char *pod_name, const char *key, struct slice json);
	/* It couldn't accept a connection. May be NULL. */
	void (*on_accept_error)(void *context, const struct error *err);
};

struct scheduler_plugin_counters {
	unsigned requests; /* all of them */
	unsigned denials;
	unsigned errors;    /* answered with a status other than 200 */
	unsigned malformed; /* of these, with 400: nothing that an agent should send */
	uint32_t version;   /* protoVersion of the last request that was answered with 200; 0 before it */
};

/* Typical times of the real plugin (1 s for a denial, 5 s until freed capacity is granted) are divided by speed. */
struct scheduler_plugin *scheduler_plugin_start(struct loop *loop, const struct address *address, double speed,
                                                const struct scheduler_plugin_handler *handler, void *context,
                                                struct error *err);
/* Which release to be. Before the first request. */
void scheduler_plugin_be(struct scheduler_plugin *plugin, const struct plugin_release *release);
bool scheduler_plugin_address(const struct scheduler_plugin *plugin, struct address *ret_address);
bool scheduler_plugin_add_node(struct scheduler_plugin *plugin, const char *name, struct resources total,
                               struct error *err);
bool scheduler_plugin_add_pod(struct scheduler_plugin *plugin, const struct scheduler_plugin_pod *pod,
                              struct error *err);
void scheduler_plugin_remove_pod(struct scheduler_plugin *plugin, const char *name_space, const char *name);
/* What is reserved for a pod now; false if there is no such pod. */
bool scheduler_plugin_reserved(const struct scheduler_plugin *plugin, const char *name_space, const char *name,
                               struct resources *ret_reserved);
struct scheduler_plugin_counters scheduler_plugin_counters(const struct scheduler_plugin *plugin);
/*
 * An outage: connections are cut and refused until it is available again. What is reserved survives, as in the
 * annotations that the real plugin reads back, or with older releases becomes the maximum until the VM's next request;
 * requests that waited for an answer don't survive.
 */
bool scheduler_plugin_set_available(struct scheduler_plugin *plugin, bool available, struct error *err);
/* Requests meet these faults from now on; they must outlive the plugin. NULL: none. */
void scheduler_plugin_set_faults(struct scheduler_plugin *plugin, struct faults *faults);
void scheduler_plugin_destroy(struct scheduler_plugin *plugin);

#endif
