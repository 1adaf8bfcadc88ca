/*
 * Whose cluster the sandbox is: the newest one's, or that of late 2023 (spec generations); and which release of the
 * scheduler plugin is in it.
 */
#ifndef BALLAST_SANDBOX_GENERATION_H
#define BALLAST_SANDBOX_GENERATION_H

#include <stdbool.h>

#include "base/error.h"
#include "sandbox/plugin_release.h"

/* Zero: the newest. */
struct sandbox_generation {
	bool late_2023;
	const struct plugin_release *plugin; /* NULL: the one of that time */
	const char *metrics_prefix;          /* of names on the guests' pages; NULL: "host_" */
	bool negotiates; /* the agent is to find out the version of the plugin's protocol; else it has its default */
};

/* "A" or "B". */
const char *sandbox_generation_name(const struct sandbox_generation *generation);
const struct plugin_release *sandbox_generation_plugin(const struct sandbox_generation *generation);
/* The protoVersion that agents come to. */
uint32_t sandbox_generation_version(const struct sandbox_generation *generation);
const char *sandbox_generation_prefix(const struct sandbox_generation *generation);

/*
 * Takes the texts of --plugin-protocol and --metrics-prefix (NULL: not given), and checks that they go with the
 * generation that is set already. False with a sentence for the user.
 */
bool sandbox_generation_read(struct sandbox_generation *generation, const char *plugin_protocol,
                             const char *metrics_prefix, struct error *err);

#endif
