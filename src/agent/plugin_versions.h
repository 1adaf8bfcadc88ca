/*
 * Which version of the protocol to speak to the scheduler plugin (spec generations 2.7): always the configured one, or
 * with "auto" what is found out for each scheduler pod, by its refusals.
 *
 * Pure; one for all runners, so that what one of them learned spares the others the same refusal. What is known of the
 * latest PLUGIN_VERSIONS_PODS pods is remembered.
 */
#ifndef BALLAST_AGENT_PLUGIN_VERSIONS_H
#define BALLAST_AGENT_PLUGIN_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/plugin_protocol.h"
#include "base/slice.h"

enum {
	PLUGIN_VERSIONS_PODS = 4,
	PLUGIN_VERSIONS_SENDS = 5, /* of one request, at most */
	PLUGIN_VERSIONS_UID_BYTES = 64,
	PLUGIN_VERSION_TEXT_BYTES = 48,
};

/* What is known of one scheduler pod. */
struct plugin_versions_pod {
	char uid[PLUGIN_VERSIONS_UID_BYTES]; /* longer ones are cut */
	uint64_t last_asked;                 /* 0: not in use */
	enum plugin_protocol current;
	unsigned refused;    /* bit N: version N */
	bool confirmed;      /* a version was accepted once */
	bool unit_complaint; /* that its compute unit isn't ours has been said */
};

struct plugin_versions {
	enum plugin_protocol first;
	bool negotiates;
	uint64_t asked;
	struct plugin_versions_pod pods[PLUGIN_VERSIONS_PODS];
};

/* Without a compute unit of its own, an agent that is to find out a version speaks 2.0. */
void plugin_versions_init(struct plugin_versions *versions, enum plugin_protocol setting, bool has_compute_unit);

/* What to send to the pod with this uid now. */
enum plugin_protocol plugin_versions_current(struct plugin_versions *versions, const char *uid);
/* It answered with 200 to a request of that version. True if that was to be found out, and is news. */
bool plugin_versions_accepted(struct plugin_versions *versions, const char *uid, enum plugin_protocol sent);
/*
 * It answered with 400 and that body. True if the same request is to be sent again, at *ret_next: that is
 * plugin_versions_current now.
 */
bool plugin_versions_refused(struct plugin_versions *versions, const char *uid, enum plugin_protocol sent,
                             struct slice body, enum plugin_protocol *ret_next);
/* True the first time it is asked about this pod. */
bool plugin_versions_complain_of_unit(struct plugin_versions *versions, const char *uid);

/*
 * Whether the body of a 400 says that the plugin wants another version, or a compute unit. Then ret_wants says what, as
 * the plugin wrote it: "v5.0", "v1.0 to v4.0", or "a compute unit".
 */
bool plugin_versions_read_refusal(struct slice body, char ret_wants[PLUGIN_VERSION_TEXT_BYTES]);

/* As the plugin writes it: "v2.0"; static. */
const char *plugin_version_name(enum plugin_protocol version);

#endif
