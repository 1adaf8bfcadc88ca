/*
 * The releases of the scheduler plugin that the sandbox can play, and what each of them reads, refuses and answers (spec
 * generations 2.2 … 2.6). Pure: capacity and network are scheduler_plugin's.
 */
#ifndef BALLAST_SANDBOX_PLUGIN_RELEASE_H
#define BALLAST_SANDBOX_PLUGIN_RELEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/resources.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "gen/plugin.gen.h"

enum { PLUGIN_RELEASE_TEXT_BYTES = 160 };

/* When a request must have a compute unit. */
enum plugin_unit_rule {
	PLUGIN_UNIT_IGNORED,
	PLUGIN_UNIT_BY_VERSION, /* from 4.0 on, and not before */
	PLUGIN_UNIT_ALWAYS,
};

struct plugin_release {
	const char *name;         /* the last release that is like this: "v0.19"; or "newest" */
	const char *others;       /* the releases it stands for, for people */
	uint32_t lowest, highest; /* protoVersion */
	uint32_t best;            /* the highest that an agent comes to that has a compute unit of its own */
	bool knows_bytes;         /* reads memory as an amount of bytes, which numbers of slots are, too */
	enum plugin_unit_rule unit_rule;
	bool checks_metrics; /* that they have what their version has, and no more */
	bool small_letters;  /* of its sentences */
	/*
	 * Keeps its state in annotations, grants in whole compute units and waits before it denies (surroundings 1.4,
	 * 1.5). The others answer at once from memory, and reserve VMs at their maximum after a restart (1.7).
	 */
	bool keeps_annotations;
};

/* NULL if there is none. */
const struct plugin_release *plugin_release_find(const char *name);
/* The one of index 0, 1, …, oldest first; NULL beyond the last. */
const struct plugin_release *plugin_release_at(unsigned index);
const struct plugin_release *plugin_release_newest(void);

/* "2.0" for protoVersion 3, and so on; "" for others. */
const char *plugin_release_version_name(uint32_t version);

/*
 * Reads a request as that release would. Memory is what the request has: slots or bytes, by its version. False: "bad
 * JSON". What follows the first value is ignored.
 */
bool plugin_release_read(const struct plugin_release *release, struct slice body, struct arena *arena,
                         struct plugin_agent_request *ret_request);
/* What is wrong with the request itself: false with the body of a 400. */
bool plugin_release_check(const struct plugin_release *release, const struct plugin_agent_request *request,
                          char ret_text[PLUGIN_RELEASE_TEXT_BYTES]);
/* What is wrong with it when the pod is known. */
bool plugin_release_check_pod(const struct plugin_release *release, const struct plugin_agent_request *request,
                              uint64_t slot_bytes, char ret_text[PLUGIN_RELEASE_TEXT_BYTES]);

/* What it takes a request's memory for, in bytes. */
void plugin_release_to_bytes(const struct plugin_release *release, uint64_t slot_bytes,
                             struct plugin_agent_request *request);
/* Appends the answer to a request of that version, with the compute unit where the version has it. */
bool plugin_release_write(uint32_t version, struct resources permit, struct resources compute_unit, uint64_t slot_bytes,
                          struct buffer *body, struct error *err);

#endif
